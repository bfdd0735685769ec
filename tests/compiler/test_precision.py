"""Products whose factors are rounded to bfloat16, at the edges of tiles and words."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import sardonyx as sx
from sardonyx.compiler.digest import image_key
from sardonyx.compiler.host import host_features
from sardonyx.compiler.program import compile_model
from sardonyx.compiler.targets import GENERIC, TARGETS, allowing
from sardonyx.dtypes import DataType
from tests.compiler.case import Case, normal
from tests.compiler.cases_sliding import conv
from tests.compiler.test_meaning import run_by_meaning

RUN_HERE = [target for target in TARGETS if host_features().issuperset(target.needs)]
every_target = pytest.mark.parametrize("target", RUN_HERE, ids=lambda target: target.name)
if_pairs = pytest.mark.skipif(
    not RUN_HERE[0].pairs, reason="this processor has no products of bfloat16"
)


def rounded(array: NDArray[Any]) -> NDArray[Any]:
    """Elements as a product of medium precision takes them."""
    return array.astype(DataType.BFLOAT16.numpy).astype(np.float64)


def matrices(rows: int, depth: int, columns: int) -> Case:
    return Case("MatMul", (normal(rows, depth), normal(depth, columns)), fixed=(1,))


def compare(found: NDArray[Any], expected: NDArray[Any]) -> None:
    scale = np.abs(expected).max(initial=1.0)
    np.testing.assert_allclose(found / scale, expected / scale, rtol=0, atol=2e-6)


@every_target
@pytest.mark.parametrize("depth", [1, 2, 3, 255, 256, 257])
@pytest.mark.parametrize("columns", [1, 31, 64])
def test_few_rows(target: Any, depth: int, columns: int) -> None:
    for rows in (1, 2):
        case = matrices(rows, depth, columns)
        model, feeds = case.model(symbolic=False)
        program = compile_model(model, target=target.name, threads=1, precision="medium")
        left, right = map(rounded, case.inputs)
        # A sum may be near 0 although its terms, which are rounded, are not.
        scale = max(1.0, (np.abs(left) @ np.abs(right)).max())
        np.testing.assert_allclose(program.run(feeds)[0], left @ right, atol=scale * 3e-7)


@if_pairs
@pytest.mark.parametrize(("depth", "columns"), [(1, 64), (31, 65), (257, 129)])
def test_any_number_of_rows(depth: int, columns: int) -> None:
    weights = normal(depth, columns)
    graph = sx.Graph("product")
    x = graph.add_input("x", sx.TensorType(DataType.FLOAT, ("rows", depth)))
    graph.outputs.append(sx.Builder(graph, opset=21).MatMul(x, weights))
    model = sx.Model(graph, sx.Opsets({"": 21}), ir_version=10)
    one, two = (compile_model(model, threads=count, precision="medium") for count in (1, 2))
    images = normal(50, depth)
    (whole,) = one.run({"x": images})
    compare(whole, rounded(images) @ rounded(weights))
    for rows in (0, 1, 3, 8, 13, 50):
        for program in (one, two):
            (found,) = program.run({"x": images[:rows]})
            np.testing.assert_array_equal(found, whole[:rows])


@if_pairs
@pytest.mark.parametrize(
    "case",
    [
        conv((1, 3, 9, 8), (64, 3, 3, 3), strides=[2, 2], pads=[1, 1, 1, 1]),
        conv((2, 17, 5, 6), (65, 17, 1, 1)),
        conv((2, 16, 5, 6), (64, 16, 1, 1)),
        conv((1, 8, 7, 7), (128, 4, 2, 3), group=2, dilations=[2, 1]),
        conv((1, 6, 7, 7), (128, 3, 3, 3), group=2, strides=[2, 1]),
        conv((2, 5, 20), (70, 5, 3), pads=[1, 1], strides=[2]),
    ],
    ids=lambda case: case.name,
)
@pytest.mark.parametrize("symbolic", [False, True])
def test_convolutions(case: Case, symbolic: bool) -> None:
    model, feeds = case.model(symbolic=symbolic)
    exact, narrow = (
        compile_model(model, threads=1, precision=word).run(feeds)[0] for word in ("high", "medium")
    )
    close = Case(case.op_type, tuple(rounded(item).astype(np.float32) for item in case.inputs),
                 case.attributes, case.fixed)  # fmt: skip
    (expected,) = sx.evaluate(*close.model(symbolic=False))
    odd = case.attributes.get("group", 1) > 1 and case.inputs[1].shape[1] % 2
    compare(narrow, exact if odd else expected)


def test_meaning_is_what_is_computed() -> None:
    case = matrices(2, 5, 3)
    model, feeds = case.model(symbolic=False)
    (found,) = run_by_meaning(model, allowing(GENERIC, "medium"), feeds)
    compare(found.reshape(2, 3), rounded(case.inputs[0]) @ rounded(case.inputs[1]))


def test_what_is_not_finite_stays_so() -> None:
    x = np.array([[1.0, np.nan, 2.0], [np.inf, 1.0, 1.0]], np.float32)
    case = Case("MatMul", (x, np.ones((3, 4), np.float32)), fixed=(1,))
    model, feeds = case.model(symbolic=False)
    (found,) = compile_model(model, threads=1, precision="medium").run(feeds)
    assert np.isnan(found[0]).all() and np.isposinf(found[1]).all()


def test_products_of_two_fed_sides_keep_float32() -> None:
    case = Case("MatMul", (normal(1, 40), normal(40, 64)))
    model, feeds = case.model(symbolic=False)
    exact, narrow = (
        compile_model(model, threads=1, precision=word).run(feeds)[0]
        for word in ("highest", "medium")
    )
    np.testing.assert_array_equal(exact, narrow)


def test_images_of_different_precision_have_different_names() -> None:
    keys = [image_key("model", True, allowing(GENERIC, word))
            for word in ("highest", "high", "medium")]  # fmt: skip
    assert keys[0] == keys[1] != keys[2]
