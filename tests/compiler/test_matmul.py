"""Matrix products at the edges of their tiles: one program for all numbers of rows."""

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.compiler.program import Program, compile_model
from tests.compiler.case import normal

ROWS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 25, 200)


def program(
    depth: int, columns: int, target: str | None, then: str = "Relu"
) -> tuple[Program, np.ndarray]:
    weights = normal(depth, columns)
    graph = sx.Graph("product")
    x = graph.add_input("x", sx.TensorType(sx.DataType.FLOAT, ("rows", depth)))
    op = sx.Builder(graph, opset=21)
    graph.outputs.append(op.node(then, (op.MatMul(x, weights),), 1, "", {}))
    model = sx.Model(graph, sx.Opsets({"": 21}), ir_version=10)
    made = compile_model(model, target=target, threads=1)
    assert isinstance(made, Program)
    return made, weights


@pytest.mark.parametrize("target", ["generic", "avx2", None])
@pytest.mark.parametrize(("depth", "columns"), [(1, 1), (31, 47), (64, 64), (5, 129)])
def test_any_number_of_rows(depth: int, columns: int, target: str | None) -> None:
    made, weights = program(depth, columns, target)
    for rows in ROWS:
        x = normal(rows, depth)
        (found,) = made.run({"x": x})
        np.testing.assert_allclose(found, np.maximum(x @ weights, 0), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("target", ["generic", "avx2", None])
@pytest.mark.parametrize(("depth", "columns"), [(1, 1), (5, 129)])
def test_a_long_epilogue_of_any_number_of_rows(
    depth: int, columns: int, target: str | None
) -> None:
    made, weights = program(depth, columns, target, "Sigmoid")
    for rows in ROWS:
        x = normal(rows, depth)
        (found,) = made.run({"x": x})
        np.testing.assert_allclose(found, 1 / (1 + np.exp(-(x @ weights))), rtol=1e-4, atol=1e-5)
