"""Texts matched with regular expressions of RE2, in time linear in the text.

The places of a pattern's program that can be reached together are a state. A state's moves are
found when a letter is first met there and kept, so that a letter costs one look-up from then on.
"""

from collections.abc import Iterator
from functools import lru_cache

from sardonyx.ops.regular import Program, is_word, parse

MOST_MOVES = 20_000
"""Moves that are kept; then all are forgotten and found again."""
EDGE, LINE_END, WORD, OTHER = "edge", "line end", "word", "other"
"""What lies beside a position, as far as assertions ask."""


class _State:
    """Places reached so far, with what the letter passed last was; moves by the next letter."""

    __slots__ = ("moves", "passed", "places")

    def __init__(self, places: frozenset[int], passed: str) -> None:
        self.places, self.passed = places, passed
        self.moves: dict[str, tuple[bool, _State | None]] = {}


class Automaton:
    """A pattern's program run for all alternatives at once, forward or from the end backward."""

    def __init__(self, program: Program, *, backward: bool = False) -> None:
        self._program = program
        self._backward = backward
        self._asserts = any(step.assertion for step in program)
        self._states: dict[tuple[frozenset[int], str], _State] = {}
        self._moves = 0

    def ends(self, text: str, start: int) -> tuple[int, bool]:
        """Where the longest match that begins at `start` ends, or -1; and whether all was read."""
        state = self._state(frozenset((0,)), _kind(text[start - 1] if start else ""))
        longest = -1
        for position in range(start, len(text)):
            accepted, following = self._move(state, text[position])
            if accepted:
                longest = position
            if following is None:
                return longest, False
            state = following
        return (len(text) if self._accepts(state) else longest), True

    def starts(self, text: str) -> list[bool]:
        """For each position whether a match begins there; of a program that reads backward."""
        zero = frozenset((0,))
        found = [False] * (len(text) + 1)
        state = self._state(zero, EDGE)
        for position in range(len(text), 0, -1):
            found[position], following = self._move(state, text[position - 1])
            places = zero if following is None else following.places | zero
            state = self._state(places, _kind(text[position - 1]))
        found[0] = self._accepts(state)
        return found

    def _state(self, places: frozenset[int], passed: str) -> _State:
        key = (places, passed if self._asserts else OTHER)
        state = self._states.get(key)
        if state is None:
            state = self._states[key] = _State(*key)
        return state

    def _move(self, state: _State, letter: str) -> tuple[bool, _State | None]:
        """Whether a match ends before a letter, and the state behind it."""
        known = state.moves.get(letter)
        if known is not None:
            return known
        if self._moves >= MOST_MOVES:
            self._states, self._moves = {}, 0
            state = self._state(state.places, state.passed)
        reached = self._closure(state, _kind(letter))
        following = []
        for place in reached:
            test = self._program[place].test if place < len(self._program) else None
            if test is not None and test(letter):
                following.append(place + 1)
        target = self._state(frozenset(following), _kind(letter)) if following else None
        self._moves += 1
        move = state.moves[letter] = (len(self._program) in reached, target)
        return move

    def _accepts(self, state: _State) -> bool:
        """Whether a match ends where the text does."""
        return len(self._program) in self._closure(state, EDGE)

    def _closure(self, state: _State, coming: str) -> set[int]:
        """All places reached without reading a letter, between what was passed and what comes."""
        before, behind = (coming, state.passed) if self._backward else (state.passed, coming)
        reached: set[int] = set()
        waiting = list(state.places)
        while waiting:
            place = waiting.pop()
            if place in reached:
                continue
            reached.add(place)
            if place < len(self._program):
                step = self._program[place]
                waiting.extend(place + distance for distance in step.go)
                if step.assertion and _holds(step.assertion, before, behind):
                    waiting.append(place + 1)
        return reached


def _kind(letter: str) -> str:
    if not letter:
        return EDGE
    return WORD if is_word(letter) else LINE_END if letter == "\n" else OTHER


def _holds(assertion: str, before: str, behind: str) -> bool:
    match assertion:
        case "start":
            return before == EDGE
        case "end":
            return behind == EDGE
        case "line start":
            return before in (EDGE, LINE_END)
        case "line end":
            return behind in (EDGE, LINE_END)
    boundary = (before == WORD) != (behind == WORD)
    return boundary if assertion == "boundary" else not boundary


@lru_cache(256)
def _forward(pattern: str) -> Automaton:
    return Automaton(parse(pattern))


@lru_cache(256)
def _backward(pattern: str) -> Automaton:
    return Automaton(parse(pattern, backward=True), backward=True)


def full_match(pattern: str, text: str) -> bool:
    """Whether a pattern matches a whole text.

    >>> full_match("(a|b)*c", "abbac"), full_match("a{2}", "aaa")
    (True, False)
    """
    end, read = _forward(pattern).ends(text, 0)
    return read and end == len(text)


def longest_matches(pattern: str, text: str) -> Iterator[tuple[int, int]]:
    """Where a pattern matches: the first place, of matches there the longest, and on behind it.

    Behind a match of nothing it goes on with the next letter.

    >>> list(longest_matches("a|ab|b*", "xabbx"))
    [(0, 0), (1, 3), (3, 4), (4, 4), (5, 5)]
    """
    automaton = _forward(pattern)
    position = 0
    begins = _backward(pattern).starts(text)
    while position <= len(text):
        if not begins[position]:
            position += 1
            continue
        end, _ = automaton.ends(text, position)
        yield position, end
        position = max(end, position + 1)
