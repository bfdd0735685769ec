"""Softmax and its relatives."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from sardonyx.errors import ConversionError, InferenceError
from sardonyx.ops.convert import convert_opset
from sardonyx.ops.softmax import log_softmax, softmax
from tests.ops.one_node import (
    inferred,
    load,
    one_node,
    run_converted,
    run_here,
    run_model,
    run_there,
    same,
)

OPERATORS = ("Softmax", "LogSoftmax", "Hardmax")
X = np.random.default_rng(3).normal(0, 3, (2, 3, 4)).astype(np.float32)


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
@pytest.mark.parametrize("opset", [11, 13])
def test_like_onnxruntime(operator: str, axis: int, opset: int) -> None:
    content = one_node(operator, {"x": X}, ["y"], opset, axis=axis)
    same(run_here(content, {"x": X}), run_there(content, {"x": X}))


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("opset", [8, 11, 13])
def test_default_axis_and_unknown_rank(operator: str, opset: int) -> None:
    content = one_node(operator, {"x": X}, ["y"], opset)
    model = load(content)
    assert model.graph is not None
    model.graph.inputs[0].type = None
    same(run_model(model, {"x": X}), run_there(content, {"x": X}))


def test_the_last_axis_needs_no_reshaping() -> None:
    for axis, count in ((2, 1), (-1, 1), (1, 4)):
        model = load(one_node("Softmax", {"x": X}, ["y"], 11, axis=axis))
        converted = convert_opset(model, 13)
        assert converted.graph is not None
        assert len(converted.graph.nodes) == count


@pytest.mark.parametrize("operator", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("known", [True, False])
def test_downgrade(operator: str, axis: int, known: bool) -> None:
    content = one_node(operator, {"x": X}, ["y"], 13, axis=axis)
    model = load(content)
    assert model.graph is not None
    if not known:
        model.graph.inputs[0].type = None
    converted = convert_opset(model, 12)
    same(run_model(converted, {"x": X}), run_here(content, {"x": X}))
    if known:
        same(run_converted(content, {"x": X}, 11), run_here(content, {"x": X}))


def test_hardmax_downgrade() -> None:
    content = one_node("Hardmax", {"x": X}, ["y"], 13, axis=1)
    same(run_converted(content, {"x": X}, 12), run_here(content, {"x": X}))
    model = load(content)
    assert model.graph is not None
    model.graph.inputs[0].type = None
    with pytest.raises(ConversionError, match="rank must be known"):
        convert_opset(model, 12)


def test_extremes() -> None:
    x = np.float32([[1000, 0, -1000], [-np.inf, 0, 0], [np.inf, 1, 2]])
    (result,) = run_here(one_node("Softmax", {"x": x}, ["y"], 13), {"x": x})
    np.testing.assert_array_equal(
        result, np.float32([[1, 0, 0], [0, 0.5, 0.5], [np.nan, np.nan, np.nan]])
    )
    (logs,) = run_here(one_node("LogSoftmax", {"x": x[:1]}, ["y"], 13), {"x": x[:1]})
    assert logs.tolist() == [[0, -1000, -2000]]


def test_hardmax_takes_the_first_of_equals() -> None:
    x = np.float32([[1, 3, 3], [2, 2, 2]])
    (result,) = run_here(one_node("Hardmax", {"x": x}, ["y"], 13), {"x": x})
    assert result.tolist() == [[0, 1, 0], [1, 0, 0]]


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_rounded_once(dtype: Any) -> None:
    x = X.astype(dtype)
    (result,) = run_here(one_node("Softmax", {"x": x}, ["y"], 13), {"x": x})
    exact = softmax(x.astype(np.float64))
    eps = float(np.finfo(dtype).eps)
    np.testing.assert_allclose(result.astype(np.float64), exact, rtol=eps, atol=eps / 8)
    np.testing.assert_allclose(np.exp(log_softmax(x.astype(np.float64))), exact)


def test_function_body_agrees_with_onnx() -> None:
    content = one_node("LogSoftmax", {"x": X}, ["y"], 13, axis=1)
    theirs = ReferenceEvaluator(onnx.load_from_string(content)).run(None, {"x": X})
    same(run_here(content, {"x": X}), theirs)


def test_axis_must_exist() -> None:
    with pytest.raises(InferenceError, match="axis 3 does not fit rank 3"):
        inferred(one_node("Softmax", {"x": X}, ["y"], 13, axis=3))
