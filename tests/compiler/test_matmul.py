"""Matrix products at the edges of their tiles: one program for all numbers of rows."""

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.compiler.kernels.tile import DEPTH
from sardonyx.compiler.program import Program, compile_model
from tests.compiler.case import normal
from tests.compiler.native import LOWER

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


@pytest.mark.parametrize("target", [*LOWER, None])
@pytest.mark.parametrize(("depth", "columns"), [(1, 1), (31, 47), (64, 64), (5, 129)])
def test_any_number_of_rows(depth: int, columns: int, target: str | None) -> None:
    made, weights = program(depth, columns, target)
    for rows in ROWS:
        x = normal(rows, depth)
        (found,) = made.run({"x": x})
        np.testing.assert_allclose(found, np.maximum(x @ weights, 0), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("depth", [DEPTH - 1, DEPTH, DEPTH + 1, 2 * DEPTH, 3072])
@pytest.mark.parametrize("target", [*LOWER, None])
def test_long_sums_keep_their_digits(depth: int, target: str | None) -> None:
    made, weights = program(depth, 33, target)
    for rows in (1, 3, 14):
        x = normal(rows, depth)
        (found,) = made.run({"x": x})
        exact = np.maximum(x.astype(np.float64) @ weights, 0)
        error = np.sqrt(np.mean((found - exact) ** 2) / np.mean(np.square(exact)))
        assert error < 6e-7


def test_rows_do_not_depend_on_each_other() -> None:
    made, _ = program(300, 50, None)
    x = normal(40, 300)
    (whole,) = made.run({"x": x})
    for rows in (1, 2, 7, 39):
        (part,) = made.run({"x": x[:rows]})
        np.testing.assert_array_equal(part, whole[:rows])


@pytest.mark.parametrize("target", [*LOWER, None])
@pytest.mark.parametrize(("depth", "columns"), [(1, 1), (5, 129)])
def test_a_long_epilogue_of_any_number_of_rows(
    depth: int, columns: int, target: str | None
) -> None:
    made, weights = program(depth, columns, target, "Sigmoid")
    for rows in ROWS:
        x = normal(rows, depth)
        (found,) = made.run({"x": x})
        np.testing.assert_allclose(found, 1 / (1 + np.exp(-(x @ weights))), rtol=1e-4, atol=1e-5)
