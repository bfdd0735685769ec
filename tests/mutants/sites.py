"""Places in the source where a small change means something else: comparisons, signs, and/or."""

import ast
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

SWAPS = {
    "<": ("<=", ">"), "<=": ("<", ">"), ">": (">=", "<"), ">=": (">", "<"),
    "==": ("!=",), "!=": ("==",), "is": ("is not",), "is not": ("is",),
    "in": ("not in",), "not in": ("in",), "+": ("-",), "-": ("+",), "and": ("or",), "or": ("and",),
}  # fmt: skip
"""What may stand in the place of an operator between two operands."""
WORDS: dict[type[ast.AST], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
    ast.Add: "+", ast.Sub: "-", ast.And: "and", ast.Or: "or",
}  # fmt: skip
HIT = "_mutant_hit"


@dataclass(frozen=True)
class Site:
    """One possible change: the bytes `[begin, end)` of a file become `new`.

    `[first, last)` are the bytes of the expression around it, whose evaluation a probe notices.
    """

    path: str
    line: int
    begin: int
    end: int
    old: str
    new: str
    first: int
    last: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.old!r} -> {self.new!r}"


class _Finder(ast.NodeVisitor):
    """Expressions that run; no annotations, patterns, f-strings (whose places are not told), and no
    asserts, which state what is known."""

    def __init__(self) -> None:
        self.found: list[ast.Compare | ast.BinOp | ast.BoolOp | ast.UnaryOp] = []

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, ast.JoinedStr | ast.Assert | ast.MatchValue):
            return
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            return
        if isinstance(node, ast.Compare | ast.BinOp | ast.BoolOp | ast.UnaryOp):
            self.found.append(node)
        for name, part in ast.iter_fields(node):
            if name in ("annotation", "returns"):
                continue
            for item in part if isinstance(part, list) else [part]:
                if isinstance(item, ast.AST):
                    self.visit(item)


def find(path: str, source: bytes) -> list[Site]:
    """Every possible change of a file.

    >>> [str(site) for site in find("f.py", b"y = a < b and -c\\n")]
    ["f.py:1: 'and' -> 'or'", "f.py:1: '<' -> '<='", "f.py:1: '<' -> '>'", "f.py:1: '-' -> ''"]
    """
    finder = _Finder()
    finder.visit(ast.parse(source))
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    return [site for node in finder.found for site in _sites(path, source, starts, node)]


def _sites(path: str, source: bytes, starts: list[int], node: ast.expr) -> Iterator[Site]:
    def begin(item: ast.expr) -> int:
        return starts[item.lineno - 1] + item.col_offset

    def end(item: ast.expr) -> int:
        return starts[(item.end_lineno or 0) - 1] + (item.end_col_offset or 0)

    def site(at: int, old: str, new: str) -> Site:
        line = source.count(b"\n", 0, at) + 1
        return Site(path, line, at, at + len(old), old, new, begin(node), end(node))

    match node:
        case ast.UnaryOp(ast.USub() | ast.Not() as sign):
            yield site(begin(node), "-" if isinstance(sign, ast.USub) else "not", "")
        case ast.BinOp(left, ast.Add() | ast.Sub() as sign, right):
            pairs = [(left, sign, right)]
            yield from _between(source, pairs, begin, end, site)
        case ast.BoolOp(sign, values):
            several = [(a, sign, b) for a, b in pairwise(values)]
            yield from _between(source, several[:1], begin, end, site)
        case ast.Compare(left, signs, values):
            chain = zip([left, *values], signs, values, strict=False)
            yield from _between(source, list(chain), begin, end, site)


def _between(source, pairs, begin, end, site) -> Iterator[Site]:  # type: ignore[no-untyped-def]
    for left, sign, right in pairs:
        word = WORDS[type(sign)]
        gap = source[end(left) : begin(right)].decode()
        found = re.search(re.escape(word).replace(r"\ ", r"\s+"), gap)
        if found:
            for other in SWAPS[word]:
                yield site(end(left) + len(gap[: found.start()].encode()), found[0], other)


def apply(source: bytes, site: Site) -> bytes:
    """The file after a change."""
    return source[: site.begin] + site.new.encode() + source[site.end :]


def is_change(source: bytes, site: Site) -> bool:
    """False where a change cannot be parsed, or is none."""
    try:
        return ast.dump(ast.parse(apply(source, site))) != ast.dump(ast.parse(source))
    except SyntaxError:
        return False


def probed(source: bytes, sites: dict[int, Site]) -> bytes:
    """The file in which the expressions around some sites, by number, say that they are run."""
    pieces = [(site.first, 1, f"({HIT}({number}) or (") for number, site in sites.items()]
    pieces += [(site.last, 0, "))") for site in sites.values()]
    for at, _, text in sorted(pieces, reverse=True):
        source = source[:at] + text.encode() + source[at:]
    return source


def choose(root: Path, package: str, count: int, seed: int) -> list[Site]:
    """Sites at random over all files of a package, whose expressions do not overlap."""
    rng = random.Random(seed)
    everything = [
        site
        for path in sorted((root / package).rglob("*.py"))
        for site in find(str(path.relative_to(root)), path.read_bytes())
    ]
    rng.shuffle(everything)
    chosen: list[Site] = []
    for site in everything:
        apart = all(
            other.path != site.path or other.last <= site.first or site.last <= other.first
            for other in chosen
        )
        if apart and is_change((root / site.path).read_bytes(), site):
            chosen.append(site)
        if len(chosen) == count:
            break
    return chosen
