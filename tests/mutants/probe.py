"""Notes which tests run which sites; put into place by a `sitecustomize` of the probed tree."""

import builtins
import os
from pathlib import Path

from tests.mutants.sites import HIT

_SEEN: set[tuple[int, str]] = set()


def install(folder: str) -> None:
    """Let probed sources find their probe; each process writes to a file of its own."""

    def hit(number: int) -> None:
        test = os.environ.get("PYTEST_CURRENT_TEST", "")
        if (number, test) in _SEEN:
            return
        _SEEN.add((number, test))
        with open(Path(folder) / f"{os.getpid()}.hits", "a") as out:
            out.write(f"{number}\t{test}\n")

    setattr(builtins, HIT, hit)


def read_hits(folder: Path) -> dict[int, set[str]]:
    """The tests that ran each site; "" where that was outside of any, when modules are imported."""
    hits: dict[int, set[str]] = {}
    for path in folder.glob("*.hits"):
        for line in path.read_text().splitlines():
            number, _, test = line.partition("\t")
            hits.setdefault(int(number), set()).add(test.rsplit(" (", 1)[0])
    return hits
