"""Regular expressions in RE2's syntax, as small programs.

Their instructions are run for all alternatives at once (`automaton`), so no pattern can take
exponential time. Classes of Unicode scripts (`\\p{Greek}`) are not known.
"""

import re
import sys
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field

from sardonyx.errors import EvaluationError
from sardonyx.record import record

LARGEST_PROGRAM = 50_000
"""Patterns that make more instructions than this are refused."""
DEEPEST = 1000
"""How many groups may lie inside one another."""

Test = Callable[[str], bool]


@record
class Instruction:
    """One step: test a character, check an assertion, or go on at one or two places from here."""

    test: Test | None = None
    assertion: str = ""
    go: tuple[int, ...] = ()


Program = tuple[Instruction, ...]


@dataclass(slots=True)
class _Level:
    """A group that is being read: finished alternatives, the present one, and its flags."""

    flags: frozenset[str]
    backward: bool
    alternatives: list[Program] = field(default_factory=list)
    pieces: list[Program] = field(default_factory=list)

    def sequence(self) -> Program:
        """The present alternative."""
        return _sequence(self.pieces[::-1] if self.backward else self.pieces)


def is_word(letter: str) -> bool:
    """Whether a letter is one of words, as assertions and classes mean it."""
    return letter.isascii() and (letter.isalnum() or letter == "_")


def parse(pattern: str, *, backward: bool = False) -> Program:
    """The program of a pattern; raises where the pattern is not one of RE2's.

    `backward`, it is one that reads what is matched from the end.
    """
    reader = _Reader(pattern)
    levels = [_Level(frozenset(), backward)]
    while not reader.done:
        level = levels[-1]
        match reader.take():
            case "(":
                _open(reader, levels)
            case ")" if len(levels) > 1:
                closed = levels.pop()
                levels[-1].pieces.append(_alternatives(closed))
            case "|":
                reader.charge(2)
                level.alternatives.append(level.sequence())
                level.pieces = []
            case "*" | "+" | "?" | "{" as sign if sign != "{" or reader.repetition():
                _repeat(reader, level, sign)
            case letter:
                made = _atoms(reader, letter, level.flags)
                reader.charge(len(made))
                level.pieces.extend(made)
    if len(levels) > 1:
        raise reader.error("a parenthesis is not closed")
    return _alternatives(levels[0])


class _Reader:
    """A place in a pattern."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.position = 0
        self._size = 0

    @property
    def done(self) -> bool:
        return self.position >= len(self.pattern)

    def take(self) -> str:
        if self.done:
            raise self.error("it ends too early")
        self.position += 1
        return self.pattern[self.position - 1]

    def take_match(self, expression: str) -> re.Match[str] | None:
        """Read what a simple expression finds here."""
        found = re.compile(expression, re.ASCII).match(self.pattern, self.position)
        if found is not None:
            self.position = found.end()
        return found

    def repetition(self) -> re.Match[str] | None:
        """What stands in braces behind the brace just read, if it is a repetition."""
        return re.compile(r"(\d+)(,?)(\d*)\}").match(self.pattern, self.position)

    def charge(self, instructions: int) -> None:
        """Count what a pattern makes, and refuse too much of it."""
        self._size += instructions
        if self._size > LARGEST_PROGRAM:
            raise self.error(f"it makes more than {LARGEST_PROGRAM} steps")

    def error(self, what: str) -> EvaluationError:
        shown = self.pattern if len(self.pattern) <= 100 else f"{self.pattern[:100]}..."
        return EvaluationError(f"the pattern '{shown}' is not one of RE2's: {what}")


def _open(reader: _Reader, levels: list[_Level]) -> None:
    level = levels[-1]
    if len(levels) > DEEPEST:
        raise reader.error(f"more than {DEEPEST} groups lie inside one another")
    reader.charge(2)
    if reader.take_match(r"\?P?<\w+>") or reader.take_match(r"(?!\?)"):
        levels.append(_Level(level.flags, level.backward))
        return
    found = reader.take_match(r"\?([imsU]*)(?:-([imsU]+))?([:)])")
    if found is None:
        raise reader.error("it has a group that is no plain, named or flag group")
    flags = (level.flags | set(found[1])) - set(found[2] or "")
    if found[3] == ")":
        level.flags = flags
    else:
        levels.append(_Level(flags, level.backward))


def _sequence(pieces: list[Program]) -> Program:
    return tuple(step for piece in pieces for step in piece)


def _alternatives(level: _Level) -> Program:
    choices = [*level.alternatives, level.sequence()]
    left = sum(len(choice) + 2 for choice in choices) - 2
    pieces: list[Program] = []
    for choice in choices[:-1]:
        left -= len(choice) + 2
        pieces += [(Instruction(go=(1, len(choice) + 2)),), choice, (Instruction(go=(left + 1,)),)]
    return _sequence([*pieces, choices[-1]])


def _repeat(reader: _Reader, level: _Level, sign: str) -> None:
    if not level.pieces:
        raise reader.error(f"there is nothing for '{sign}' to repeat")
    least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(sign, (0, None))
    if sign == "{":
        found = reader.take_match(r"(\d+)(,?)(\d*)\}")
        assert found is not None
        if max(len(found[1].lstrip("0")), len(found[3].lstrip("0"))) > 4:
            raise reader.error("a repetition is out of bounds")
        least = int(found[1].lstrip("0") or 0)
        most = int(found[3].lstrip("0") or 0) if found[3] else None if found[2] else least
        if max(least, most or 0) > 1000 or (most is not None and most < least):
            raise reader.error("a repetition is out of bounds")
    reader.take_match(r"\?")
    if reader.take_match(r"[*+?]|\{\d+,?\d*\}"):
        raise reader.error("a repetition is repeated")
    piece = level.pieces.pop()
    size = len(piece)
    reader.charge((size + 2) * max(least, most or 0, 1))
    loop = (Instruction(go=(1, size + 2)), *piece, Instruction(go=(-size - 1,)))
    option = (Instruction(go=(1, size + 1)), *piece)
    times = [loop] if most is None else [option] * (most - least)
    level.pieces.append(_sequence([piece] * least + times))


_PERL = {
    "d": lambda letter: "0" <= letter <= "9",
    "s": lambda letter: letter in "\t\n\f\r ",
    "w": is_word,
}
_POSIX: dict[str, Test] = {
    "alnum": lambda letter: letter.isascii() and letter.isalnum(),
    "alpha": lambda letter: letter.isascii() and letter.isalpha(),
    "ascii": str.isascii,
    "blank": lambda letter: letter in "\t ",
    "cntrl": lambda letter: letter < " " or letter == "\x7f",
    "digit": _PERL["d"],
    "graph": lambda letter: "!" <= letter <= "~",
    "lower": lambda letter: "a" <= letter <= "z",
    "print": lambda letter: " " <= letter <= "~",
    "punct": lambda letter: "!" <= letter <= "~" and not letter.isalnum(),
    "space": lambda letter: letter in "\t\n\v\f\r ",
    "upper": lambda letter: "A" <= letter <= "Z",
    "word": is_word,
    "xdigit": lambda letter: letter in "0123456789abcdefABCDEF",
}
_CONTROLS = {"a": "\a", "f": "\f", "t": "\t", "n": "\n", "r": "\r", "v": "\v"}
_ASSERTIONS = {"A": "start", "z": "end", "b": "boundary", "B": "no boundary"}


def _atoms(reader: _Reader, letter: str, flags: frozenset[str]) -> list[Program]:
    """The steps for one item of a pattern, whose first character was read."""
    lines = "line " if "m" in flags else ""
    match letter:
        case "^":
            return [(Instruction(assertion=f"{lines}start"),)]
        case "$":
            return [(Instruction(assertion=f"{lines}end"),)]
        case ".":
            return [_step(_any if "s" in flags else _no_line_end, frozenset())]
        case "[":
            return [(Instruction(test=_class(reader, flags)),)]
        case ")":
            raise reader.error("a parenthesis is not opened")
        case "\\":
            if reader.take_match(r"Q"):
                found = reader.take_match(r"((?s:.*?))(?:\\E|\Z)")
                return [_step(_literal(item), flags) for item in (found[1] if found else "")]
            if found := reader.take_match("[AzbB]"):
                return [(Instruction(assertion=_ASSERTIONS[found[0]]),)]
            escaped = _escape(reader)
            return [_step(_literal(escaped) if isinstance(escaped, str) else escaped, flags)]
    return [_step(_literal(letter), flags)]


def _step(test: Test, flags: frozenset[str]) -> Program:
    if "i" not in flags:
        return (Instruction(test=test),)
    return (Instruction(test=lambda letter: any(map(test, {letter, *_cases(letter)}))),)


def _cases(letter: str) -> list[str]:
    return [item for item in (letter.lower(), letter.upper()) if len(item) == 1]


def _any(letter: str) -> bool:
    return True


def _no_line_end(letter: str) -> bool:
    return letter != "\n"


def _literal(wanted: str) -> Test:
    return lambda letter: letter == wanted


def _escape(reader: _Reader) -> str | Test:
    """The character, or the class of characters, that an escape stands for."""
    if found := reader.take_match(r"x\{([0-9A-Fa-f]{1,6})\}|x([0-9A-Fa-f]{2})"):
        code = int(found[1] or found[2], 16)
        if code > sys.maxunicode:
            raise reader.error(f"there is no character {code:x}")
        return chr(code)
    if found := reader.take_match(r"0[0-7]{0,2}|[1-7][0-7]{1,2}"):
        return chr(int(found[0], 8))
    if found := reader.take_match(r"([pP])(?:\{(\^?)(\w+)\}|(\w))"):
        category, inverted = found[3] or found[4], (found[1] == "P") != bool(found[2])
        if (category != "Any" and category[0] not in "LMNPSZC") or len(category) > 3:
            raise reader.error(f"the class '{category}' is not known")
        return _category("" if category == "Any" else category, inverted)
    letter = reader.take()
    if letter == "C":
        return _any
    if letter.lower() in _PERL:
        test = _PERL[letter.lower()]
        return test if letter.islower() else lambda item: not test(item)
    if letter in _CONTROLS:
        return _CONTROLS[letter]
    if letter.isalnum() or not letter.isascii():
        raise reader.error(f"the escape '\\{letter}' is not known")
    return letter


def _category(name: str, inverted: bool) -> Test:
    return lambda letter: unicodedata.category(letter).startswith(name) != inverted


def _class(reader: _Reader, flags: frozenset[str]) -> Test:
    """The test of a class in brackets, of which the first was read."""
    inverted = reader.take_match(r"\^") is not None
    tests: list[Test] = []
    first = True
    while first or not reader.take_match(r"\]"):
        first = False
        if found := reader.take_match(r"\[:(\^?)(\w+):\]"):
            if found[2] not in _POSIX:
                raise reader.error(f"the class '{found[0]}' is not known")
            tests.append(_inverted(_POSIX[found[2]], found[1] == "^"))
            continue
        low = _class_item(reader)
        if not isinstance(low, str):
            tests.append(low)
        elif reader.take_match(r"-(?!\])"):
            high = _class_item(reader)
            if not isinstance(high, str) or high < low:
                raise reader.error("a range in brackets has no end, or ends before it begins")
            tests.append(_range(low, high))
        else:
            tests.append(_literal(low))
    if "i" in flags:
        plain = tests
        tests = [
            lambda letter: any(test(item) for test in plain for item in (letter, *_cases(letter)))
        ]
    return _inverted(lambda letter: any(test(letter) for test in tests), inverted)


def _class_item(reader: _Reader) -> str | Test:
    letter = reader.take()
    return _escape(reader) if letter == "\\" else letter


def _range(low: str, high: str) -> Test:
    return lambda letter: low <= letter <= high


def _inverted(test: Test, inverted: bool) -> Test:
    return (lambda letter: not test(letter)) if inverted else test
