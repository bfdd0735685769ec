"""Regular expressions as automata: like Python's where those mean the same, and in linear time."""

import random
import re
import time

import pytest

from sardonyx.errors import EvaluationError
from sardonyx.ops import automaton
from sardonyx.ops.automaton import full_match, longest_matches

ATOMS = [
    "a", "b", "c", ".", "[ab]", "[^a]", r"\d", r"\w", r"\s", r"\W", "é", "[à-ü]", r"\x{e9}", "ß",
    "[a-cé]", r"[\d_]", " ",
]  # fmt: skip
EDGES = ["^", r"\b", r"\B", r"\A"]
TEXTS = ["a", "b", "ab", "abc", "aab", "a b", "b1_", "éab", "aéé", "ß", "cab c", "aaaaab", "1 a\n"]


def _pattern(chance: random.Random, depth: int) -> str:
    kind = chance.randrange(8 if depth else 2)
    if kind < 2:
        pool = EDGES if chance.random() < 0.15 else ATOMS
        return chance.choice(pool)
    inner = [_pattern(chance, depth - 1) for _ in range(2)]
    if kind < 4:
        return "".join(inner)
    if kind == 4:
        return f"(?:{inner[0]}|{inner[1]})"
    if kind == 5:
        return f"({inner[0]})"
    return f"(?:{inner[0]}){chance.choice(['*', '+', '?', '{2}', '{1,3}', '{0}', '*?', '+?'])}"


def _python(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern.replace(r"\x{e9}", "é"), re.ASCII)


def test_an_empty_text_has_no_boundary() -> None:
    """Before 3.14 Python says otherwise."""
    assert full_match(r"\B", "") and not full_match(r"\b", "")
    assert full_match("a*", "") and list(longest_matches("a*", "")) == [(0, 0)]


@pytest.mark.parametrize("seed", range(4))
def test_whole_texts_like_python(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(500):
        pattern = _pattern(chance, 3)
        expected = _python(pattern)
        for text in TEXTS:
            found = expected.fullmatch(text) is not None
            assert full_match(pattern, text) == found, (pattern, text)


@pytest.mark.parametrize("seed", range(4))
def test_longest_matches_like_trying_all(seed: int) -> None:
    chance = random.Random(100 + seed)
    for _ in range(150):
        pattern = _pattern(chance, 3)
        for text in chance.sample(TEXTS, 4):
            assert list(longest_matches(pattern, text)) == _tried(pattern, text), (pattern, text)


def _tried(pattern: str, text: str) -> list[tuple[int, int]]:
    """The longest match at each place, by asking for each end; what lies behind it is seen."""
    found, start = [], 0
    while start <= len(text):
        ends = []
        for end in range(start, len(text) + 1):
            rest = f"(?=(?s:.{{{len(text) - end}}})\\Z)"
            if _python(f"(?:{pattern}){rest}").match(text, start):
                ends.append(end)
        if ends:
            found.append((start, ends[-1]))
        start = max(ends[-1], start + 1) if ends else start + 1
    return found


@pytest.mark.parametrize(
    "pattern",
    ["(a+)+b", "(a|a)*b", "(a*)*b", "(a|aa)+b", "(a?){30}a{30}b", "(.*)(.*)(.*)(.*)b", "a*a*a*a*b"],
)
def test_no_pattern_takes_exponential_time(pattern: str) -> None:
    text = "a" * 3000 + "c"
    start = time.process_time()
    assert not full_match(pattern, text)
    assert list(longest_matches(pattern, text)) == []
    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("((a{1000}){1000}){1000}", "more than 50000 steps"),
        ("x{1000}" * 100, "more than 50000 steps"),
        ("(" * 5000 + "a" + ")" * 5000, "groups lie inside one another"),
        ("a{" + "9" * 5000 + "}", "out of bounds"),
        (r"(a)\1", "escape"),
        ("(?=a)b", "group"),
        ("(?<!a)b", "group"),
        (r"\x{110000}", "no character"),
    ],
)
def test_what_is_refused(pattern: str, message: str) -> None:
    with pytest.raises(EvaluationError, match=message) as caught:
        full_match(pattern, "a")
    assert len(str(caught.value)) < 300


def test_moves_are_forgotten_and_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(automaton, "MOST_MOVES", 5)
    text = "".join(map(chr, range(0x4E00, 0x4E40))) + "a"
    for _ in range(2):
        assert full_match(r"[^b]*a", text) and not full_match(r"[^b]*b", text)
        assert list(longest_matches("[^a]+", text)) == [(0, 64)]
