"""Runs of every generator: none crashes, hangs, raises what is not ours, or gives other results."""

import pytest

from tests.fuzz.batch import NAMES, Batch, do, warm_up
from tests.fuzz.known import known

FEW = {"extremes": 480, "lying": 360, "perturbed": 360, "nested": 240, "structure": 480,
       "arrays": 960, "bytes": 480}  # fmt: skip
"""How many runs of each are made among the fast tests."""

MEMORIES = dict(zip(NAMES, ("guard", "checked", "guard", "checked") * 2, strict=False))


def findings(name: str, start: int, count: int, memory: str) -> list[str]:
    """What was found that is not known, with its run; and that anything was done at all."""
    warm_up((name,))
    (done,) = do(iter([Batch(name, start, start + count, memory)]), 1)
    assert sum(done.outcomes.values()) == count
    assert done.outcomes.get("ran", 0) + done.outcomes.get("opened", 0) > count // 40
    return [
        f"run {number} {item.kind} [{item.what}] {item.place}: {item.text}"
        for number, item in done.findings
        if not known(item)
    ]


@pytest.mark.parametrize("name", NAMES)
def test_a_few_runs_of_each_generator(name: str) -> None:
    assert findings(name, 0, FEW[name], MEMORIES[name]) == []


@pytest.mark.slow
@pytest.mark.parametrize("memory", ["plain", "guard", "checked"])
@pytest.mark.parametrize("name", NAMES)
def test_more_runs_of_each_generator(name: str, memory: str) -> None:
    assert findings(name, 1_000_000, 3000, memory) == []
