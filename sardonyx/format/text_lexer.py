"""Characters to words: blanks, names, literals, and errors that point at the place."""

import re
from enum import Enum
from typing import NamedTuple, NoReturn

from sardonyx.errors import TextError
from sardonyx.format.text_numbers import read_float32, read_float64

MAXIMUM_DEPTH = 100
"""How many messages may lie inside one another: what protobuf's decoders accept."""

_SPACES = " \t\n\v\f\r#"
_BLANK = re.compile(r"(?:[ \t\n\v\f\r]++|#[^\n]*+)*+")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*+")
_STRING = re.compile(r'"((?:[^"\\]++|\\.)*+)"', re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_LETTERS = re.compile(r"[A-Za-z]++")
_WORD_FLOAT = re.compile(r"(?i:infinity|inf|nan)(?![A-Za-z0-9])")
_NUMBER = re.compile(r"[0-9]++(\.[0-9]*+)?([eE][+-]?[0-9]*+)?")
_FOUND = re.compile(r'[A-Za-z_0-9.]+|"[^"\n]{0,20}"?|.', re.DOTALL)
_NUMERAL = re.compile(r"-?[0-9]+")
_WINDOW = 60


class Reason(Enum):
    """Why a text was refused, as far as a caller may want to tell cases apart."""

    SYNTAX = "syntax"
    DIGITS = "digits"
    RANGE = "range"
    DECIMAL = "decimal"
    DEPTH = "depth"
    ENCODING = "encoding"


class Kind(Enum):
    """What a literal is; NONE when there was none."""

    NONE = "nothing"
    INTEGER = "an integer"
    FLOAT = "a float"
    STRING = "a string"


class Literal(NamedTuple):
    """A literal as written; for a string, its content."""

    kind: Kind
    text: str
    at: int


class Failure(Exception):  # noqa: N818 - never leaves this package; becomes a TextError
    """Parsing cannot go on at offset `at`; turned into a TextError by `explain`."""

    def __init__(self, expected: str, at: int, hint: str, reason: Reason) -> None:
        super().__init__(expected)
        self.expected = expected
        self.at = at
        self.hint = hint
        self.reason = reason


def explain(failure: Failure, text: str) -> TextError:
    """The failure as an error with line, column, what was expected and found, and an excerpt."""
    at = min(failure.at, len(text))
    line = text.count("\n", 0, at) + 1
    start = text.rfind("\n", 0, at) + 1
    column = at - start + 1
    found = _FOUND.match(text, at)
    shown = repr(found.group()[:40]) if found else "the end of the text"
    what = f"expected {failure.expected}, found {shown}"
    hint = f"{failure.hint}\n{_excerpt(text, start, at)}"
    error = refuse(what, hint, failure.reason, where=f"line {line}, column {column}")
    vars(error).update(line=line, column=column, expected=failure.expected, found=shown)
    return error


def refuse(what: str, hint: str, reason: Reason, where: str = "") -> TextError:
    """An error about a text or about a message that cannot become one."""
    error = TextError(what, where=where, hint=hint)
    vars(error).update(reason=reason)
    return error


def refusal(error: TextError) -> Reason:
    """Why a text, or a message to be printed, was refused.

    >>> refusal(refuse("too deep", "flatten it", Reason.DEPTH))
    <Reason.DEPTH: 'depth'>
    """
    return Reason(vars(error)["reason"])


def _excerpt(text: str, start: int, at: int) -> str:
    """The line around offset `at`, and a caret below the place."""
    first = max(start, at - _WINDOW)
    end = text.find("\n", at, at + _WINDOW)
    shown = text[first : end if end >= 0 else at + _WINDOW]
    clean = "".join(letter if letter.isprintable() else " " for letter in shown)
    return f"    {clean}\n    {' ' * (at - first)}^"


class Scanner:
    """A place in a text, and the words that can be taken from there.

    With `standard`, exactly what ONNX's own parser accepts is accepted, spaces and signs included.

    >>> Scanner(" x1 = 3", standard=False).identifier()
    'x1'
    """

    def __init__(self, text: str, *, standard: bool) -> None:
        self.text = text.partition("\0")[0] if standard else text
        self.standard = standard
        self.position = 0

    def fail(
        self, expected: str, hint: str, at: int | None = None, reason: Reason = Reason.SYNTAX
    ) -> NoReturn:
        """Refuse the text, here or at offset `at`."""
        raise Failure(expected, self.position if at is None else at, hint, reason)

    def check_depth(self, depth: int) -> None:
        """Refuse messages nested too deeply to be saved and loaded."""
        if depth > MAXIMUM_DEPTH:
            self.fail(
                f"at most {MAXIMUM_DEPTH} levels of nesting",
                "no decoder of the binary format accepts more; flatten the model",
                reason=Reason.DEPTH,
            )

    def peek(self) -> str:
        """The next character that is not blank, or "" at the end."""
        text, position = self.text, self.position
        letter = text[position : position + 1]
        if letter and letter in _SPACES:
            blank = _BLANK.match(text, position)
            self.position = position = blank.end() if blank else position
            return text[position : position + 1]
        return letter

    def take(self, letter: str) -> bool:
        """Step over `letter` if it comes next."""
        if self.peek() != letter:
            return False
        self.position += 1
        return True

    def expect(self, letter: str, hint: str) -> None:
        """Step over `letter`, which must come next."""
        if self.peek() != letter:
            self.fail(repr(letter), hint)
        self.position += 1

    def expect_arrow(self) -> None:
        """Step over `=>`, written together."""
        hint = "inputs and outputs are separated by =>, as in g (x) => (y)"
        self.expect("=", hint)
        if not self.text.startswith(">", self.position):
            self.fail("'>'", hint)
        self.position += 1

    def expect_end(self) -> None:
        """Nothing but blanks may follow."""
        if self.peek():
            self.fail("the end of the text", "remove what follows, or parse it as something larger")

    def identifier(self) -> str:
        """The identifier that comes next, or "" when there is none."""
        if not self.peek():
            return ""
        found = _IDENTIFIER.match(self.text, self.position)
        if found is None:
            return ""
        self.position = found.end()
        return found.group()

    def peek_identifier(self) -> str:
        """The identifier that comes next, left in place."""
        self.peek()
        found = _IDENTIFIER.match(self.text, self.position)
        return found.group() if found else ""

    def expect_identifier(self, what: str) -> str:
        """The identifier that must come next."""
        found = self.identifier()
        if not found:
            self.fail(what, "an identifier has letters, digits and _, and starts with no digit")
        return found

    def name(self, what: str) -> str:
        """An identifier or a quoted name, one of which must come next."""
        if self.peek() == '"':
            return self.literal().text
        found = self.identifier()
        if not found:
            self.fail(what, "write an identifier, or any name in double quotes")
        return found

    def word(self, what: str) -> str:
        """A name where standard syntax has no quotes: there an identifier, otherwise as `name`."""
        return self.expect_identifier(what) if self.standard else self.name(what)

    def literal(self) -> Literal:
        """The number or string that comes next; of kind NONE when there is none."""
        letter = self.peek()
        start = self.position
        if letter == '"':
            return self._string(start)
        if letter == "-":
            self.position += 1
            letter = self.peek()
        if letter.isascii() and letter.isalpha():
            return self._word_float(start)
        found = _NUMBER.match(self.text, self.position)
        if found is None:
            return Literal(Kind.NONE, "", start)
        self.position = found.end()
        plain = found.group(1) is None and found.group(2) is None
        kind = Kind.INTEGER if plain else Kind.FLOAT
        return Literal(kind, self.text[start : self.position], start)

    def _string(self, start: int) -> Literal:
        found = _STRING.match(self.text, start)
        if found is None:
            self.position = len(self.text)
            self.fail("a closing double quote", "this string has no end", start)
        self.position = found.end()
        content = found.group(1)
        if "\\" in content:
            content = _ESCAPE.sub(r"\1", content)
        return Literal(Kind.STRING, content, start)

    def _word_float(self, start: int) -> Literal:
        if not self.next_is_word_float():
            self.fail("a number", "the only numbers in letters are inf, infinity and nan", start)
        found = _LETTERS.match(self.text, self.position)
        self.position = found.end() if found else self.position
        text = self.text[start : self.position]
        if read_float64(text) is None:
            return Literal(Kind.NONE, "", start)
        return Literal(Kind.FLOAT, text, start)

    def next_is_word_float(self) -> bool:
        """True before inf, infinity or nan, in capitals or not."""
        self.peek()
        return _WORD_FLOAT.match(self.text, self.position) is not None

    def string(self, what: str) -> str:
        """The content of the quoted string that must come next."""
        literal = self.literal()
        if literal.kind != Kind.STRING:
            self.fail(f"{what} in double quotes", 'write it as "..."', literal.at)
        return literal.text

    def integer(self, what: str, low: int = -(2**63), high: int = 2**63 - 1) -> int:
        """The integer within [low, high] that must come next."""
        literal = self.literal()
        if literal.kind != Kind.INTEGER:
            self.fail(what, "write a whole number without point or exponent", literal.at)
        return self.to_integer(literal, low, high)

    def to_integer(self, literal: Literal, low: int = -(2**63), high: int = 2**63 - 1) -> int:
        """The value of an integer literal, which must lie within [low, high]."""
        text = literal.text
        if _NUMERAL.fullmatch(text) is None:
            self.fail("digits right after the sign", "remove the space", literal.at, Reason.DIGITS)
        value = int(text) if len(text) < 1000 else _long_integer(text)
        if not low <= value <= high:
            hint = f"the field holds whole numbers from {low} to {high}"
            self.fail("an integer that fits", hint, literal.at, Reason.RANGE)
        return value

    def unsigned(self, what: str) -> int:
        """The integer below 2**64 that must come next; standard syntax wraps negative ones."""
        if not self.standard:
            return self.integer(what, 0, 2**64 - 1)
        return self.integer(what, -(2**64 - 1), 2**64 - 1) % 2**64

    def floating(self, what: str, single: bool = True) -> float:
        """The number that must come next, rounded to float32 (`single`) or float64."""
        literal = self.literal()
        if literal.kind not in (Kind.INTEGER, Kind.FLOAT):
            self.fail(what, "write a number such as 1, -2.5, 1e-3, inf or nan", literal.at)
        return self.to_float(literal, single)

    def to_float(self, literal: Literal, single: bool = True) -> float:
        """The value of a number literal as float32 (`single`) or float64."""
        value = read_float32(literal.text) if single else read_float64(literal.text)
        if value is None:
            width = 32 if single else 64
            hint = f"it must be complete and fit into {width} bits; infinity is written inf"
            self.fail("a complete number", hint, literal.at, Reason.DECIMAL)
        return value


def _long_integer(text: str) -> int:
    """An integer with very many digits: its value if leading zeros fill them, else out of range."""
    digits = text.lstrip("-").lstrip("0") or "0"
    value = int(digits) if len(digits) < 1000 else 2**64
    return -value if text.startswith("-") else value
