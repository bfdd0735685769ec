"""Random models of nested subgraphs, and with wrong declarations: the compiler is the reference."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.compiler.program import compile_model
from tests.compiler.random_compare import apart
from tests.compiler.random_declared import random_declared
from tests.compiler.random_maker import Case
from tests.compiler.random_subgraphs import random_subgraphs

SAMPLE, ALL, STEP = 200, 5000, 20
MAKERS = [random_subgraphs, random_declared]
PARTS = pytest.mark.parametrize("make", MAKERS, ids=["subgraphs", "declared"])


def differ(found: Any, wanted: Any) -> str:
    """Where two results differ; lists item by item."""
    if isinstance(wanted, list):
        if not isinstance(found, list) or len(found) != len(wanted):
            return f"{found} instead of {wanted}"
        return "; ".join(
            said for pair in zip(found, wanted, strict=True) if (said := differ(*pair))
        )
    return apart(np.asarray(found), np.asarray(wanted))


def problems(make: Callable[[int], Case], seed: int) -> list[str]:
    """Disagreements on one model; every other one is optimized first."""
    case = make(seed)
    wanted = sx.evaluate(case.model, case.feeds)
    model = sx.optimize(case.model) if seed % 2 else case.model
    found = compile_model(model, threads=1).run(case.feeds)
    pairs = zip(found, wanted, strict=True)
    return [f"seed {seed}, output {place}: {said}" for place, pair in enumerate(pairs)
            if (said := differ(*pair))]  # fmt: skip


@PARTS
@pytest.mark.parametrize("start", range(0, SAMPLE, STEP))
def test_random_models_agree(make: Callable[[int], Case], start: int) -> None:
    assert [line for seed in range(start, start + STEP) for line in problems(make, seed)] == []


@pytest.mark.slow
@PARTS
@pytest.mark.parametrize("start", range(SAMPLE, ALL, STEP))
def test_many_random_models_agree(make: Callable[[int], Case], start: int) -> None:
    assert [line for seed in range(start, start + STEP) for line in problems(make, seed)] == []
