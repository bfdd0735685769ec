"""Random graphs, simplified, are equal and no larger."""

import pytest

from sardonyx.graph.verify import verify
from sardonyx.passes.pipeline import RAISED_OPSET, optimize, simplify
from tests.passes.cases import operators, same
from tests.passes.random_graphs import random_model


def check(seed: int, opset: int | None = None) -> None:
    model = random_model(seed)
    verify(model)
    small = simplify(model, extra_opset=opset)
    verify(small)
    assert len(operators(small)) <= len(operators(model))
    assert [value.name for value in small.graph.outputs] == [
        value.name for value in model.graph.outputs
    ]
    same(model, small)


@pytest.mark.parametrize("start", range(0, 300, 20))
def test_random_graphs(start: int) -> None:
    for seed in range(start, start + 20):
        check(seed)


def test_random_graphs_at_a_newer_opset() -> None:
    for seed in range(2000, 2060):
        check(seed, RAISED_OPSET)


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_levels(level: int) -> None:
    for seed in range(1000, 1015):
        model = random_model(seed)
        same(model, optimize(model, level))


@pytest.mark.slow
@pytest.mark.parametrize("start", range(10_000, 15_000, 500))
def test_many_random_graphs(start: int) -> None:
    for seed in range(start, start + 500):
        check(seed)
