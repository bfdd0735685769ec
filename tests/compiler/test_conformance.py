"""The official backend suite, compiled: every case with an operator that has a native form."""

from typing import Any

import numpy as np
import pytest

from sardonyx.compiler.lowerings import LOWERINGS
from sardonyx.compiler.program import compile_model
from sardonyx.format.read import read_model
from tests.conformance.suite import KINDS, RANDOM, Case, cases

NATIVE = {name for _, name in LOWERINGS}
WIDER = {"test_attention_4d_causal_fp16_expanded": 2e-3}
"""Cases whose tolerance is below the rounding of their own element type."""


def chosen(kind: str) -> list[Case]:
    return [case for case in cases(kind) if case.operators & NATIVE and case.name not in RANDOM]


def run_case(case: Case) -> None:
    model = read_model(memoryview(case.model.SerializeToString()), case.name, None)
    program = compile_model(model, threads=1)
    names = [value.name for value in case.model.graph.input]
    constants = {tensor.name for tensor in case.model.graph.initializer}
    for inputs, outputs in case.data_sets:
        given = zip(names, inputs, strict=False)
        feeds = {name: array for name, array in given if name not in constants}
        for found, expected in zip(program.run(feeds), outputs, strict=True):
            check(case, found, expected)


def check(case: Case, found: Any, expected: Any) -> None:
    if not isinstance(found, np.ndarray) or found.dtype.kind not in "fiub":
        return
    assert found.shape == expected.shape and found.dtype == expected.dtype
    near = max(case.rtol, WIDER.get(case.name, 0.0))
    np.testing.assert_allclose(found, expected, rtol=near, atol=max(case.atol, 1e-6))


@pytest.mark.parametrize("kind", KINDS[1:])
def test_models(kind: str) -> None:
    for case in chosen(kind):
        run_case(case)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_nodes(part: int) -> None:
    for case in chosen("node")[part::8]:
        run_case(case)
