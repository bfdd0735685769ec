"""For each pass, which kinds of tests it has; ends with 1 where one is missing.

    python -m tests.passes.coverage

A pass needs a model that it changes, one that it leaves alone for each reason it gives, one with an
open size, and one where it changes an inner graph. Results are compared in every run.
"""

import ast
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

import sardonyx.passes
from sardonyx.passes.pipeline import FUSIONS, PORTABLE
from tests.passes.cases import RUNS, Run

FOLDER = Path(__file__).parent
SOURCES = Path(sardonyx.passes.__file__).parent
PARTS = ("fuse_embeddings", "fuse_heads")
"""Passes that run inside of others."""
NAMES = tuple(dict.fromkeys(
    [step.__name__ for step in (*PORTABLE, *FUSIONS["com.microsoft"])] + list(PARTS)
))  # fmt: skip


@dataclass(frozen=True)
class Coverage:
    """How many runs of each kind a pass has, and the reasons that no run gives."""

    name: str
    positive: int
    near_miss: int
    symbolic: int
    inner: int
    missing: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """True where nothing is missing."""
        kinds = (self.positive, self.near_miss, self.symbolic, self.inner)
        return all(kinds) and not self.missing


def reasons_of(name: str) -> list[str]:
    """The reasons a pass can give, in the order of its source."""
    tree = ast.parse((SOURCES / f"{name}.py").read_text())
    return [
        item.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "because"
        for item in node.args
        if isinstance(item, ast.Constant) and isinstance(item.value, str)
    ]


def cover(name: str, runs: Iterable[Run]) -> Coverage:
    """Sum up the runs of a pass."""
    own = [run for run in runs if run.name == name]
    heard = {reason.split(": ", 1)[-1] for run in own for reason in run.reasons}
    return Coverage(
        name,
        sum(run.changed for run in own),
        sum(not run.changed for run in own),
        sum(run.changed and run.symbolic for run in own),
        sum(run.changed and run.inner for run in own),
        tuple(reason for reason in reasons_of(name) if reason not in heard),
    )


def main() -> int:
    """Run the passes' tests, print the table, and return 1 where something is missing."""
    files = [path for path in sorted(FOLDER.glob("test_*.py"))
             if "run_pass" in path.read_text() or "becomes" in path.read_text()]  # fmt: skip
    code = pytest.main(["-q", "-p", "no:xdist", "-k", "not export", *map(str, files)])
    found = [cover(name, RUNS) for name in NAMES]
    print(f"{'pass':22}{'positive':>9}{'near miss':>10}{'symbolic':>9}{'inner':>6}  not given")
    for item in found:
        numbers = f"{item.positive:9}{item.near_miss:10}{item.symbolic:9}{item.inner:6}"
        print(f"{item.name:22}{numbers}  {'; '.join(item.missing)}")
    return int(code) or int(not all(item.complete for item in found))


if __name__ == "__main__":
    sys.exit(main())
