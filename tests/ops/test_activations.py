"""Activation functions."""

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from sardonyx.errors import ConversionError, EvaluationError, InferenceError
from sardonyx.ops.convert import convert_opset
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

X = np.float32([[-np.inf, -20, -3.5, -1, -0.5], [-0.0, 0, 0.25, 1, 30]])
BFLOAT = ml_dtypes.bfloat16


def _here(operator: str, *arrays: Any, opset: int = 28, **attributes: Any) -> Any:
    inputs = {f"x{place}": array for place, array in enumerate(arrays) if array is not None}
    names = [f"x{place}" if array is not None else "" for place, array in enumerate(arrays)]
    content = one_node(operator, inputs, ["y"], opset, arguments=names, **attributes)
    return run_here(content, inputs)[0]


WITH_ONNXRUNTIME = [
    ("Relu", {}),
    ("LeakyRelu", {"alpha": 0.25}),
    ("LeakyRelu", {}),
    ("ThresholdedRelu", {"alpha": 0.5}),
    ("Elu", {"alpha": 2.0}),
    ("Selu", {}),
    ("Selu", {"alpha": 1.5, "gamma": 0.5}),
    ("Celu", {"alpha": 2.0}),
    ("HardSigmoid", {"alpha": 0.3, "beta": 0.4}),
    ("HardSwish", {}),
    ("Mish", {}),
    ("Gelu", {}),
    ("Gelu", {"approximate": "tanh"}),
    ("Shrink", {"lambd": 1.0, "bias": 0.25}),
]


@pytest.mark.parametrize(("operator", "attributes"), WITH_ONNXRUNTIME)
def test_like_onnxruntime(operator: str, attributes: dict[str, Any]) -> None:
    x = X[np.isfinite(X)] if operator in ("Gelu", "HardSwish", "Mish") else X
    content = one_node(operator, {"x": x}, ["y"], 20, **attributes)
    same(run_here(content, {"x": x}), run_there(content, {"x": x}), rtol=2e-6, atol=1e-6)


def test_gelu_keeps_small_results() -> None:
    x = np.float32([-5, -4, -0.001])
    expected = [0.5 * float(item) * math.erfc(-float(item) / math.sqrt(2)) for item in x]
    np.testing.assert_allclose(_here("Gelu", x), expected, rtol=1e-6)
    assert _here("Gelu", np.float32([-np.inf, np.inf])).tolist() == [0, np.inf]


def test_swish_and_its_gated_form() -> None:
    x = X[np.isfinite(X)]
    wide = x.astype(np.float64)
    expected = wide / (1 + np.exp(-1.5 * wide))
    np.testing.assert_allclose(_here("Swish", x, alpha=1.5), expected, rtol=1e-5)
    np.testing.assert_allclose(_here("SwiGLU", x, x, alpha=1.5), expected * wide, rtol=1e-5)
    with pytest.raises(EvaluationError, match="differ"):
        _here("SwiGLU", x, x[:1])


SINCE_1 = [
    ("Relu", {}, {}),
    ("LeakyRelu", {"alpha": 0.1}, {}),
    ("Elu", {"alpha": 2.0}, {}),
    ("HardSigmoid", {"alpha": 0.1}, {}),
    ("Selu", {}, {"alpha": 1.6732, "gamma": 1.0507}),
    ("Selu", {"alpha": 2.0}, {"gamma": 1.0507}),
]


@pytest.mark.parametrize(("operator", "attributes", "defaults"), SINCE_1)
def test_first_opset(operator: str, attributes: dict[str, Any], defaults: dict[str, Any]) -> None:
    x = X[np.isfinite(X)]
    old = _here(operator, x, opset=1, consumed_inputs=[0], **attributes)
    np.testing.assert_array_equal(old, _here(operator, x, **attributes, **defaults))


FUNCTIONS = [
    ("HardSwish", {}, np.float32, 14, 13),
    ("Mish", {}, np.float32, 18, 17),
    ("Gelu", {}, np.float32, 20, 17),
    ("Gelu", {"approximate": "tanh"}, np.float64, 20, 17),
    ("Swish", {"alpha": 1.5}, np.float32, 24, 17),
    ("Swish", {}, np.float16, 24, 17),
    ("Celu", {"alpha": 2.0}, np.float16, 28, 17),
    ("Relu", {}, np.int32, 14, 13),
    ("Relu", {}, np.int8, 14, 13),
    ("HardSwish", {}, BFLOAT, 22, 17),
    ("Mish", {}, BFLOAT, 22, 17),
    ("Gelu", {}, BFLOAT, 22, 17),
    ("Elu", {"alpha": 2.0}, BFLOAT, 22, 17),
    ("Selu", {}, BFLOAT, 22, 17),
    ("HardSigmoid", {}, BFLOAT, 22, 17),
    ("ThresholdedRelu", {}, BFLOAT, 22, 17),
    ("LeakyRelu", {"alpha": 0.25}, BFLOAT, 16, 15),
]


@pytest.mark.parametrize(("operator", "attributes", "dtype", "since", "opset"), FUNCTIONS)
def test_function(
    operator: str, attributes: dict[str, Any], dtype: Any, since: int, opset: int
) -> None:
    inputs = {"x": X[np.isfinite(X)].astype(dtype)}
    content = one_node(operator, inputs, ["y"], since, **attributes)
    eps = 8 * float(ml_dtypes.finfo(dtype).eps) if inputs["x"].dtype.kind not in "iu" else 0
    same(run_converted(content, inputs, opset), run_here(content, inputs), rtol=eps, atol=eps)


def test_gated_form_as_other_operators() -> None:
    inputs = {"a": X[1], "b": X[1, ::-1].copy()}
    content = one_node("SwiGLU", inputs, ["y"], 28, alpha=0.5)
    for opset in (27, 17):
        same(run_converted(content, inputs, opset), run_here(content, inputs))


@pytest.mark.parametrize("known", [True, False])
def test_function_needs_no_declared_type_from_opset_15(known: bool) -> None:
    model = load(one_node("Gelu", {"x": X[1]}, ["y"], 20))
    assert model.graph is not None
    if not known:
        model.graph.inputs[0].type = None
    converted = convert_opset(model, 17)
    assert converted.graph is not None
    used = {node.op_type for node in converted.graph.nodes}
    assert ("CastLike" in used) is not known
    same(run_model(converted, {"x": X[1]}), run_model(model, {"x": X[1]}))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint32"])
def test_prelu(dtype: str) -> None:
    x = np.array([[-2, 3], [4, -5]]).astype(dtype)
    slope = np.array([2, 3]).astype(dtype)
    content = one_node("PRelu", {"x": x, "slope": slope}, ["y"], 16)
    inputs = {"x": x, "slope": slope}
    same(run_here(content, inputs), [np.where(x < 0, x * slope, x)])
    assert inferred(content) == [
        f"{'float' if dtype == 'float32' else 'double' if dtype == 'float64' else dtype}[2,2]"
    ]


@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 4), (2, 3, 4, 5)])
def test_prelu_before_opset_7_was_along_channels(shape: tuple[int, ...], declared: bool) -> None:
    x = np.linspace(-3, 3, math.prod(shape), dtype=np.float32).reshape(shape)
    slope = np.float32([0.5, 2, 3])
    model = load(one_node("PRelu", {"x": x, "slope": slope}, ["y"], 6))
    assert model.graph is not None
    if not declared:
        model.graph.inputs[0].type = None
    aligned = slope.reshape(-1, *[1] * (len(shape) - 2))
    same(run_model(model, {"x": x, "slope": slope}), [np.where(x < 0, x * aligned, x)])
    one = {"x": x, "slope": np.float32([0.25])}
    (result,) = run_here(one_node("PRelu", one, ["y"], 6), one)
    np.testing.assert_array_equal(result, np.where(x < 0, x * 0.25, x))


@pytest.mark.parametrize("shape", [(3, 1, 1), (1,), ()])
def test_prelu_downgrade(shape: tuple[int, ...]) -> None:
    x = np.linspace(-3, 3, 24, dtype=np.float32).reshape(1, 3, 4, 2)
    inputs = {"x": x, "slope": np.arange(1, 1 + math.prod(shape), dtype=np.float32).reshape(shape)}
    content = one_node("PRelu", inputs, ["y"], 16)
    same(run_converted(content, inputs, 6), run_here(content, inputs))
    row = {"x": x, "slope": np.float32([1, 2])}
    with pytest.raises(ConversionError, match="for each channel"):
        convert_opset(load(one_node("PRelu", row, ["y"], 16)), 6)


def test_prelu_with_a_slope_larger_than_x() -> None:
    inputs = {"x": np.float32([1, 2]), "slope": np.ones((3, 2), np.float32)}
    with pytest.raises(InferenceError, match="does not broadcast"):
        inferred(one_node("PRelu", inputs, ["y"], 16))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64", "float32", "float64"])
def test_clip_like_onnxruntime(dtype: str) -> None:
    x = np.array([0, 1, 5, 9, 100]).astype(dtype)
    inputs = {"x": x, "min": np.array(2, dtype), "max": np.array(9, dtype)}
    content = one_node("Clip", inputs, ["y"], 13)
    same(run_here(content, inputs), run_there(content, inputs))


def test_clip_with_bounds_left_out_or_crossed() -> None:
    x = np.float32([-np.inf, -1, 0, 1, np.inf, np.nan])
    np.testing.assert_array_equal(
        _here("Clip", x, np.float32(0)), np.float32([0, 0, 0, 1, np.inf, np.nan])
    )
    np.testing.assert_array_equal(
        _here("Clip", x, None, np.float32(0)), np.float32([-np.inf, -1, 0, 0, 0, np.nan])
    )
    np.testing.assert_array_equal(_here("Clip", x), x)
    assert _here("Clip", np.float32([0, 5]), np.float32(3), np.float32(1)).tolist() == [1, 1]


@pytest.mark.parametrize("opset", [1, 6])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64])
@pytest.mark.parametrize("bounds", [{}, {"min": -1.5}, {"max": 2.5}, {"min": -1.5, "max": 2.5}])
def test_clip_with_attributes(opset: int, dtype: Any, bounds: dict[str, float]) -> None:
    x = np.linspace(-5, 5, 11).astype(dtype)
    result = _here("Clip", x, opset=opset, **bounds)
    assert result.dtype == dtype
    np.testing.assert_array_equal(result, np.clip(x, bounds.get("min"), bounds.get("max")))


def test_clip_downgrade() -> None:
    x = np.linspace(-5, 5, 11).astype(np.float32)
    model = load(
        one_node("Clip", {"x": x, "low": np.float32(-1), "high": np.float32(2)}, ["y"], 13)
    )
    assert model.graph is not None
    with pytest.raises(ConversionError, match="'min' must be a constant"):
        convert_opset(model, 10)
    wide = one_node("Clip", {"x": x.astype(np.int32), "low": np.int32(-1)}, ["y"], 13)
    with pytest.raises(ConversionError, match="integers begin with opset 12"):
        convert_opset(load(wide), 11)
    old = one_node("Clip", {"x": x}, ["y"], 6, min=-1.0, max=2.0)
    raised = convert_opset(load(old), 21)
    lowered = convert_opset(raised, 10)
    assert lowered.graph is not None
    (node,) = lowered.graph.nodes
    assert (node.attribute("min"), node.attribute("max")) == (-1, 2)
    same(run_model(lowered, {"x": x}), run_here(old, {"x": x}))


def test_clip_of_integers_in_opset_12_function() -> None:
    inputs = {"x": np.arange(5).astype(BFLOAT), "low": np.float32(1).astype(BFLOAT)}
    content = one_node("Clip", inputs, ["y"], 13)
    assert run_here(content, inputs)[0].tolist() == [1, 1, 2, 3, 4]


def test_clip_bounds_must_be_scalars() -> None:
    inputs = {"x": X, "low": np.float32([1, 2])}
    with pytest.raises(InferenceError, match="must be a scalar"):
        inferred(one_node("Clip", inputs, ["y"], 13))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "float16"])
def test_shrink_of_other_types(dtype: str) -> None:
    x = np.array([0, 1, 2, 3]).astype(dtype)
    assert _here("Shrink", x, lambd=1.5, bias=1.0).tolist() == [0, 0, 1, 2]
