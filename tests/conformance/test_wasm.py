"""Official node cases as WebAssembly modules, run in Node."""

from typing import Any

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.compiler.coverage import official_cases
from tests.compiler.browser import needs_node, run_model
from tests.conformance.suite import Case, cases, check

SAMPLED = 24
"""Every so many of the cases run quickly; all among the slow tests."""
SUBGRAPHS = frozenset({"If", "Loop", "Scan"})
"""Operators whose bodies Python calls, which a module cannot."""


def chosen() -> list[Any]:
    """Cases that need no fallback, of tensors, without subgraphs."""
    found = [
        case
        for case in cases("node")
        if case.name not in official_cases().fallbacks
        and not case.operators & SUBGRAPHS
        and all(isinstance(item, np.ndarray) for inputs, _ in case.data_sets for item in inputs)
    ]
    return [
        pytest.param(case, id=case.name, marks=[pytest.mark.slow] if number % SAMPLED else [])
        for number, case in enumerate(found)
    ]


def run(content: bytes, inputs: list[Any]) -> list[Any]:
    """Run in Node."""
    model = sx.load(content)
    assert model.graph is not None
    names = [value.name for value in model.graph.inputs if value.tensor is None]
    return list(run_model(model, dict(zip(names, inputs, strict=False))))


@needs_node
@pytest.mark.parametrize("case", chosen())
def test_a_case_gives_its_outputs(case: Case) -> None:
    check(case, run)
