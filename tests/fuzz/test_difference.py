"""The judge of differences: exact where nothing rounds, by condition where something does."""

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import sardonyx as sx
from tests.fuzz.difference import difference
from tests.fuzz.judge import moved_reference


def _sum(op: str = "ReduceSum") -> bytes:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([helper.make_node(op, ["x"], ["y"])], "g", [x], [y])
    opsets = [helper.make_opsetid("", 21)]
    return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString())


def _run(content: bytes, feeds: dict[str, Any]) -> list[Any]:
    return list(sx.evaluate(sx.load(content), feeds))


def _judged(content: bytes, x: list[float], found: Any) -> str:
    feeds = {"x": np.array(x, np.float32)}
    wanted = _run(content, feeds)
    given = [np.array(found, np.float32).reshape(wanted[0].shape)]
    return difference(content, feeds, given, wanted, _run)


def test_a_sum_may_be_off_by_what_rounding_its_terms_makes() -> None:
    terms = [1e8, 1.0, -1e8]
    assert _judged(_sum(), terms, 0.0) == ""
    assert _judged(_sum(), terms, 1.0) == ""
    assert "differ" in _judged(_sum(), terms, 1e5)
    assert "differ" in _judged(_sum(), [1.0, 1.0, 1.0], 3.001)


def test_a_sum_that_overflows_in_some_order_may_be_infinite_or_nan() -> None:
    terms = [3e38, 3e38, -3e38]
    for found in (np.inf, 3e38, np.nan):
        assert _judged(_sum(), terms, found) == ""
    assert "differ" in _judged(_sum(), [1e30, 1e30, -1e30], np.nan)


def test_a_product_that_overflows_before_a_zero_may_be_anything_that_some_order_gives() -> None:
    factors = [3e38, 3e38, 0.0, -1.0]
    for found in (np.nan, 0.0, -np.inf):
        assert _judged(_sum("ReduceProd"), factors, found) == ""
    assert "differ" in _judged(_sum("ReduceProd"), [2.0, 0.0, -1.0], np.nan)


@pytest.mark.parametrize("found", [[1.0000001, 2.0], [1.0, np.nan], [np.inf, 2.0]])
def test_what_only_moves_is_exact(found: list[float]) -> None:
    assert _judged(_sum("Identity"), [1.0, 2.0], [1.0, 2.0]) == ""
    assert "differ" in _judged(_sum("Identity"), [1.0, 2.0], found)


def test_types_and_shapes_count() -> None:
    content, feeds = _sum("Neg"), {"x": np.ones(2, np.float32)}
    wanted = _run(content, feeds)
    assert "type" in difference(content, feeds, [wanted[0].astype(np.float64)], wanted, _run)
    assert "shape" in difference(content, feeds, [wanted[0][:1]], wanted, _run)
    assert "length" in difference(content, feeds, [], wanted, _run)


def _difference_of_exponentials() -> bytes:
    nodes = [
        helper.make_node("Exp", ["x"], ["e"]),
        helper.make_node("Constant", [], ["one"], value_float=1.0),
        helper.make_node("Sub", ["e", "one"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "g", [x], [y])
    opsets = [helper.make_opsetid("", 21)]
    return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString())


@pytest.mark.parametrize(("steps", "fine"), [(0, True), (1, True), (3, True), (500, False)])
def test_the_result_of_each_operator_may_be_off_by_some_steps(steps: int, fine: bool) -> None:
    content, feeds = _difference_of_exponentials(), {"x": np.float32([1e-6, -1e-5, 0.25])}
    wanted = _run(content, feeds)
    found = [wanted[0] + np.float32(steps * np.finfo(np.float32).eps)]
    said = difference(content, feeds, found, wanted, _run, reference=moved_reference)
    assert (said == "") == fine
