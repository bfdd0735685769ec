"""Patterns in RE2's syntax."""

import itertools
import random
import re
import time

import pytest

from sardonyx.errors import EvaluationError
from sardonyx.ops.automaton import full_match

PATTERNS = [
    "", "a", "ab", "a|b", "a*", "a+b?", "(a|b)*", "(?:ab|a)(?:c|bcd)", "a{2}", "a{1,}", "a{0,2}b",
    "[ab]", "[^ab]", "[a-c]*", "[]a]", "[^]a]", "[a-]", "[-a]+", ".", "..", "a.b", "^a$", "^$",
    r"\d+", r"\w*", r"\s", r"\D\W\S", r"\.", r"\\", r"[\d.]+", r"[^\d]", "(a*)*", "(a|a)*", "(|a)b",
    "a|", "|", "()", "(?i)aB", "(?i:a)b", "(?s).", r"\bab\b", r"a\Bb", "(?P<name>a)b", "a*?b",
    "a+?",
    "a??", "a{2}?", "x{1", "{", "a{,2}", r"\x61", r"\x41|b", r"\t", "[a-b-c]", r"[\w-]+", "(?m)^a$",
]  # fmt: skip
TEXTS = [
    "".join(letters)
    for size in range(4)
    for letters in itertools.product("abcB1 .-\n"[: 9 if size < 3 else 5], repeat=size)
] + ["aaaa", "abcd", "]", "{", "x{1", "a{,2}", "\\", "\t", "A", "_", "é", "a\nb"]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_like_python(pattern: str) -> None:
    expected = re.compile(pattern.replace(r"(?P<name>", "("), re.ASCII)
    for text in TEXTS:
        found = expected.fullmatch(text) is not None
        if pattern == "a{,2}":
            found = text == "a{,2}"
        assert full_match(pattern, text) == found, (pattern, text)


def test_random_patterns_like_python() -> None:
    chance = random.Random(8)

    def make(depth: int) -> str:
        kind = chance.randrange(7 if depth else 2)
        if kind < 2:
            return chance.choice(["a", "b", ".", "[ab]", "[^a]", "c"])
        if kind < 4:
            return make(depth - 1) + make(depth - 1)
        if kind == 4:
            return f"(?:{make(depth - 1)}|{make(depth - 1)})"
        return f"(?:{make(depth - 1)}){chance.choice(['*', '+', '?', '{2}', '{1,2}', '{0}'])}"

    for _ in range(150):
        pattern = make(3)
        expected = re.compile(pattern)
        for text in ("", "a", "ab", "abc", "aab", "bcab", "cc", "aaaaa"):
            assert full_match(pattern, text) == bool(expected.fullmatch(text)), (pattern, text)


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        (r"\Aab\z", "ab", True),
        (r"\Qa.b\E*", "a.bbb", True),
        (r"\Q.*", ".*", True),
        (r"\pL+", "aéß中", True),
        (r"\p{Lu}\p{Ll}*", "Été", True),
        (r"\PN+", "ab1", False),
        (r"\p{^L}", "1", True),
        (r"[\pN_]+", "1_2", True),
        ("[[:alpha:]]+", "abC", True),
        ("[[:^digit:]]", "5", False),
        ("[[:space:][:punct:]]+", " !\t", True),
        (r"\x{e9}", "é", True),
        (r"\101", "A", True),
        (r"\C", "x", True),
        (r"\v", "\v", True),
        (r"\s", "\v", False),
        ("(?<name>a)", "a", True),
        ("(?i)[^a]", "A", False),
        ("(?i)[a-z]+", "ABC", True),
        ("(?-i)a", "A", False),
        ("(?U)a+", "aaa", True),
        ("(?ms)^.$", "\n", True),
        ("a$", "a\n", False),
        (r"\d", "٣", False),
        (r"(\W|^)[\w.\-]{0,25}@(yahoo|gmail)\.com(\W|$)", "x@gmail.com", True),
    ],
)
def test_what_only_re2_has(pattern: str, text: str, expected: bool) -> None:
    assert full_match(pattern, text) == expected


@pytest.mark.parametrize(
    "pattern",
    [
        "(", ")", "a)", "*", "a**", "a{2}{3}", "[a", "[b-a]", "[[:nope:]]", "(?=a)", "(?!a)",
        "(?<=a)b",
        r"(a)\1", r"\k<n>", r"\p{Greek}", r"\y", "a{1001}", "a{3,2}", "\\", "(?>a)",
        "(?x)a", "(?#c)",
        "((a{1000}){1000})",
    ],
)  # fmt: skip
def test_what_re2_refuses(pattern: str) -> None:
    with pytest.raises(EvaluationError, match="not one of RE2's"):
        full_match(pattern, "a")


@pytest.mark.parametrize("pattern", ["(a*)*b", "(a|aa)+c", "(.*)*x", "(a?){50}a{50}", "((a+)+)+$b"])
def test_no_pattern_takes_exponential_time(pattern: str) -> None:
    begin = time.perf_counter()
    full_match(pattern, "a" * 400)
    assert time.perf_counter() - begin < 5


CLASSES = {
    r"\d": "0-9", r"\s": r"\t\n\f\r ", r"\w": "0-9A-Za-z_", "[[:alnum:]]": "0-9A-Za-z",
    "[[:alpha:]]": "A-Za-z", "[[:ascii:]]": r"\x00-\x7f", "[[:blank:]]": r"\t ",
    "[[:cntrl:]]": r"\x00-\x1f\x7f", "[[:digit:]]": "0-9", "[[:graph:]]": "!-~",
    "[[:lower:]]": "a-z", "[[:print:]]": " -~", "[[:punct:]]": "!-/:-@[-`{-~",
    "[[:space:]]": r"\t\n\v\f\r ", "[[:upper:]]": "A-Z", "[[:word:]]": "0-9A-Za-z_",
    "[[:xdigit:]]": "0-9A-Fa-f", "[b-y]": "b-y", "[^b-y]": "^b-y", r"[\x41-\x5a]": "A-Z",
}  # fmt: skip


@pytest.mark.parametrize("written", CLASSES)
def test_every_letter_of_a_class(written: str) -> None:
    expected = re.compile(f"[{CLASSES[written].replace('[-`', chr(92) + '[-`')}]")
    for letter in [*map(chr, range(256)), "\u0660", "\uff10", "\u212a"]:
        found = expected.fullmatch(letter) is not None
        assert full_match(written, letter) == found, (written, letter)


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("a{1000}", "a" * 1000, True),
        ("a{999,1000}", "a" * 998, False),
        ("a{0,0}", "", True),
        ("a{0}", "a", False),
        ("a{2,2}", "aa", True),
        ("a{0002}", "aa", True),
        ("[a-a]", "a", True),
        (r"\x{10ffff}", "\U0010ffff", True),
        ("(" * 1000 + "a" + ")" * 1000, "a", True),
        ("(?:a{1000}){46}", "a", False),
        (r"\p{Any}", "a", True),
        (r"\PL", "1", True),
        (r"\p{^L}", "a", False),
        (r"\P{^L}", "a", True),
        ("[^^]", "^", False),
        ("[a^]", "^", True),
        (r"[\]]", "]", True),
        ("[[:^alpha:]]", "a", False),
        ("(?i)[^b]", "B", False),
        ("(?i)[[:upper:]]", "a", True),
        ("(?i-s:A.)", "a\n", False),
        ("(?s)(?-s:.)", "\n", False),
        ("((?i)a)b", "AB", False),
        ("(?m)a$\n^b", "a\nb", True),
        ("a$\n^b", "a\nb", False),
        ("(?m)a$b", "ab", False),
        ("((?i)a)b", "Ab", True),
    ],
)
def test_the_limits_of_patterns(pattern: str, text: str, expected: bool) -> None:
    assert full_match(pattern, text) == expected


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("a{1001}", "out of bounds"),
        ("a{0,1001}", "out of bounds"),
        ("a{2,1}", "out of bounds"),
        ("a{10000}", "out of bounds"),
        ("a{1,10000}", "out of bounds"),
        ("[b-a]", "ends before it begins"),
        (r"[a-\d]", "has no end"),
        (r"\x{110000}", "there is no character 110000"),
        ("(" * 1001 + "a" + ")" * 1001, "more than 1000 groups"),
        ("(?:a{1000}){47}", "more than 50000 steps"),
        ("(a", "not closed"),
        ("a)", "not opened"),
        ("+", "nothing for '\\+' to repeat"),
        ("(|*)", "nothing for '\\*' to repeat"),
        ("a+*", "a repetition is repeated"),
        ("a+{2}", "a repetition is repeated"),
        (r"\p{Lxyz}", "'Lxyz' is not known"),
        (r"\p{Q}", "'Q' is not known"),
        (r"\pX", "'X' is not known"),
        (r"\q", "is not known"),
        (r"\é", "is not known"),
        ("[", "ends too early"),
        ("(?i", "no plain, named or flag group"),
    ],
)
def test_what_is_wrong_with_a_pattern(pattern: str, message: str) -> None:
    with pytest.raises(EvaluationError, match=message):
        full_match(pattern, "a")


@pytest.mark.parametrize(("size", "cut"), [(100, False), (101, True)])
def test_long_patterns_are_cut_in_messages(size: int, cut: bool) -> None:
    with pytest.raises(EvaluationError) as caught:
        full_match("(".rjust(size, "a"), "")
    assert ("..." in str(caught.value)) == cut
