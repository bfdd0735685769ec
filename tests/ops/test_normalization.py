"""Normalizations against onnxruntime, their functions, versions, types and edges."""

import ml_dtypes
import numpy as np
import onnx.reference
import pytest

from sardonyx.dims import symbol
from sardonyx.dtypes import DataType
from sardonyx.errors import InferenceError
from sardonyx.graph import TensorType
from sardonyx.ops.convert import convert_opset
from sardonyx.ops.fact import tensor, unknown
from sardonyx.ops.normalization import (
    LRN,
    GroupNormalization,
    InstanceNormalization,
    LayerNormalization,
    LpNormalization,
    MeanVarianceNormalization,
    RMSNormalization,
)
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

OTHER_TYPES = [np.float16, np.float64, ml_dtypes.bfloat16]
SMALL = {"epsilon": 1e-5, "stash_type": 1}


def draw(*shape, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def forget_types(content):
    """A model whose inputs have no declared shapes."""
    model = load(content)
    for value in model.graph.inputs:
        value.type = TensorType(value.type.element, None)
    return model


@pytest.mark.parametrize("axis", [-1, -2, -3, 0, 1, 2])
@pytest.mark.parametrize("bias", [False, True])
def test_layer_normalization(axis, bias):
    x = draw(2, 3, 4)
    inner = x.shape[axis:]
    inputs = {"X": x, "S": draw(*inner, seed=1)} | ({"B": draw(*inner, seed=2)} if bias else {})
    content = one_node(
        "LayerNormalization", inputs, ["Y", "M", "D"], opset=17, axis=axis, epsilon=1e-3
    )
    result = run_here(content, inputs)
    same(result, run_there(content, inputs), rtol=1e-4, atol=1e-5)
    same(run_converted(content, inputs, 16), result, atol=1e-5)
    same(run_model(convert_opset(forget_types(content), 16), inputs), result, atol=1e-5)
    moments = ",".join(map(str, result[1].shape))
    assert inferred(content) == ["float[2,3,4]", f"float[{moments}]", f"float[{moments}]"]


@pytest.mark.parametrize("axis", [-1, -2, 0, 1])
def test_rms_normalization(axis):
    x = draw(2, 3, 4)
    inputs = {"X": x, "S": draw(*x.shape[axis:], seed=1)}
    content = one_node("RMSNormalization", inputs, ["Y"], opset=23, axis=axis)
    result = run_here(content, inputs)
    same(result, run_there(content, inputs), rtol=1e-4, atol=1e-5)
    same(run_converted(content, inputs, 17), result, atol=1e-5)
    same(run_model(convert_opset(forget_types(content), 17), inputs), result, atol=1e-5)


def test_rms_normalization_has_the_type_of_its_scale():
    for kind in (np.float16, np.float32, np.float64, ml_dtypes.bfloat16):
        for scale in (np.float16, np.float32, np.float64, ml_dtypes.bfloat16):
            x, s = draw(2, 8).astype(kind), np.full(8, 2).astype(scale)
            result = RMSNormalization.reference(x, s, axis=-1, **SMALL)
            assert result.dtype == scale
            wide = x.astype(np.float64)
            exact = 2 * wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-5)
            np.testing.assert_allclose(result.astype(np.float64), exact, rtol=2e-2)
    mixed = {"X": draw(2, 8, dtype=np.float16), "S": np.full(8, 2, np.float32)}
    content = one_node("RMSNormalization", mixed, ["Y"], opset=23)
    same(run_converted(content, mixed, 17), run_here(content, mixed), rtol=2e-3)


@pytest.mark.parametrize("dtype", OTHER_TYPES)
def test_layer_normalization_types(dtype):
    x, s, b = draw(4, 16, dtype=dtype), draw(16, dtype=dtype), draw(16, dtype=dtype)
    result, mean, inverse = LayerNormalization.reference(x, s, b, axis=-1, **SMALL)
    assert (result.dtype, mean.dtype, inverse.dtype) == (dtype, np.float32, np.float32)
    wide = x.astype(np.float64)
    unit = (wide - wide.mean(-1, keepdims=True)) / np.sqrt(wide.var(-1, keepdims=True) + 1e-5)
    exact = unit * s.astype(np.float64) + b.astype(np.float64)
    np.testing.assert_allclose(result.astype(np.float64), exact, rtol=3e-2, atol=3e-2)
    stashed = LayerNormalization.reference(x, s, b, axis=-1, epsilon=1e-5, stash_type=16)
    assert stashed[1].dtype == ml_dtypes.bfloat16


def test_layer_normalization_inference():
    n, h = symbol("n"), symbol("h")
    x, s = tensor(DataType.FLOAT16, (n, h, 8)), tensor(DataType.FLOAT16, (8,))
    result, mean, inverse = LayerNormalization.infer(x, s, axis=1, **SMALL)
    assert (result.dtype, result.shape) == (DataType.FLOAT16, (n, h, 8))
    assert (mean.dtype, mean.shape, inverse.shape) == (DataType.FLOAT, (n, 1, 1), (n, 1, 1))
    assert LayerNormalization.infer(unknown(None), s, axis=-1, **SMALL)[1].shape is None
    for wrong, axis in [((9,), -1), ((8,), 3), ((2, 2, 2, 8), -1)]:
        with pytest.raises(InferenceError):
            LayerNormalization.infer(x, tensor(None, wrong), axis=axis, **SMALL)
        with pytest.raises(InferenceError):
            RMSNormalization.infer(x, tensor(None, wrong), axis=axis, **SMALL)


@pytest.mark.parametrize("shape", [(2, 4), (2, 4, 5), (2, 4, 3, 2)])
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_group_normalization(shape, groups):
    inputs = {"X": draw(*shape), "S": draw(4, seed=1), "B": draw(4, seed=2)}
    content = one_node("GroupNormalization", inputs, ["Y"], opset=21, num_groups=groups)
    result = run_here(content, inputs)
    same(result, run_there(content, inputs), rtol=1e-3, atol=1e-4)
    for opset in (20, 17):
        same(run_converted(content, inputs, opset), result, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64])
def test_group_normalization_of_opset_18_scales_groups(dtype):
    inputs = {"X": draw(2, 6, 3), "S": draw(2, seed=1), "B": draw(2, seed=2)}
    inputs = {name: item.astype(dtype) for name, item in inputs.items()}
    content = one_node("GroupNormalization", inputs, ["Y"], opset=18, num_groups=2)
    x = inputs["X"].astype(np.float64).reshape(2, 2, 9)
    unit = (x - x.mean(2, keepdims=True)) / np.sqrt(x.var(2, keepdims=True) + 1e-5)
    exact = unit * inputs["S"].astype(np.float64)[:, None] + inputs["B"].astype(np.float64)[:, None]
    tolerance = {np.float16: 3e-3, np.float32: 1e-5, np.float64: 1e-12}[dtype]
    (result,) = run_here(content, inputs)
    assert result.dtype == dtype
    np.testing.assert_allclose(
        result.astype(np.float64), exact.reshape(2, 6, 3), rtol=tolerance, atol=tolerance
    )


def test_group_normalization_inference():
    n, h = symbol("n"), symbol("h")
    x, s = tensor(DataType.FLOAT, (n, None, h)), tensor(DataType.FLOAT, (6,))
    assert GroupNormalization.infer(x, s, s, num_groups=3, **SMALL).shape == (n, 6, h)
    with pytest.raises(InferenceError):
        GroupNormalization.infer(x, s, s, num_groups=4, **SMALL)
    with pytest.raises(InferenceError):
        GroupNormalization.infer(tensor(None, (n, 5, h)), s, s, num_groups=1, **SMALL)


@pytest.mark.parametrize("opset", [1, 6, 22])
@pytest.mark.parametrize("shape", [(2, 3, 5), (2, 3, 4, 5), (1, 3, 2, 3, 2)])
def test_instance_normalization(opset, shape):
    inputs = {"X": draw(*shape), "S": draw(3, seed=1), "B": draw(3, seed=2)}
    more = {"consumed_inputs": [0, 0, 0]} if opset == 1 else {}
    content = one_node("InstanceNormalization", inputs, ["Y"], opset=opset, **more)
    result = run_here(content, inputs)
    newer = one_node("InstanceNormalization", inputs, ["Y"], opset=6)
    same(result, run_there(newer, inputs), rtol=1e-4, atol=1e-5)
    same(run_converted(content, inputs, 6 if opset < 6 else 1), result)


@pytest.mark.parametrize("dtype", OTHER_TYPES)
def test_types_of_the_others(dtype):
    x, one, zero = (
        draw(2, 4, 6, 6, dtype=dtype),
        np.ones(4).astype(dtype),
        np.zeros(4).astype(dtype),
    )
    exact = x.astype(np.float64)
    results = {
        "instance": InstanceNormalization.reference(x, one, zero, epsilon=0.0),
        "group": GroupNormalization.reference(
            x, one, zero, epsilon=0.0, num_groups=4, stash_type=1
        ),
    }
    unit = (exact - exact.mean((2, 3), keepdims=True)) / exact.std((2, 3), keepdims=True)
    for result in results.values():
        assert result.dtype == dtype
        np.testing.assert_allclose(result.astype(np.float64), unit, rtol=2e-2, atol=2e-2)
    plain = MeanVarianceNormalization.reference(x, axes=(2, 3))
    np.testing.assert_allclose(plain.astype(np.float64), unit, rtol=2e-2, atol=2e-2)
    assert plain.dtype == dtype
    assert LRN.reference(x, alpha=1e-4, beta=0.75, bias=1.0, size=3).dtype == dtype
    assert LpNormalization.reference(x, axis=1, p=2).dtype == dtype


@pytest.mark.parametrize("axes", [[0, 2, 3], [2, 3], [-1], [0]])
def test_mean_variance_normalization(axes):
    inputs = {"X": draw(2, 3, 4, 5)}
    content = one_node("MeanVarianceNormalization", inputs, ["Y"], opset=13, axes=axes)
    result = run_here(content, inputs)
    model = onnx.load_from_string(content)
    same(result, onnx.reference.ReferenceEvaluator(model).run(None, inputs), rtol=1e-3, atol=1e-4)
    same(run_converted(content, inputs, 9), result)
    same(run_converted(content, inputs, 8), result)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7])
@pytest.mark.parametrize("shape", [(2, 5), (1, 6, 3), (1, 4, 3, 2)])
def test_lrn(size, shape):
    x = draw(*shape) * 10
    run = {"alpha": 0.01, "beta": 0.6, "bias": 2.0, "size": size}
    result = LRN.reference(x, **run)
    exact = np.empty_like(x)
    for c in range(x.shape[1]):
        low, high = max(0, c - (size - 1) // 2), min(x.shape[1] - 1, c + -(-(size - 1) // 2))
        total = (x[:, low : high + 1] ** 2).sum(1)
        exact[:, c] = x[:, c] / (2 + 0.01 / size * total) ** 0.6
    np.testing.assert_allclose(result, exact, rtol=1e-5)
    inputs = {"X": x}
    content = one_node("LRN", inputs, ["Y"], opset=13, **run)
    if len(shape) == 4 and size % 2:
        same([result], run_there(content, inputs))
    same(run_converted(content, inputs, 1), [result])


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_lp_normalization(power, axis):
    x = draw(3, 4, 5)
    x[0], x[:, 1], x[:, :, 2] = 0, 0, 0
    inputs = {"X": x}
    content = one_node("LpNormalization", inputs, ["Y"], opset=1, axis=axis, p=power)
    result = run_here(content, inputs)
    same(result, run_there(content, inputs))
    assert not np.isnan(result[0]).any()


def test_shapes_pass_through():
    x = tensor(DataType.FLOAT, (symbol("n"), 3, None))
    run = {"alpha": 1e-4, "beta": 0.75, "bias": 1.0, "size": 3}
    assert LRN.infer(x, **run).shape == x.shape
    assert LpNormalization.infer(x, axis=-1, p=2).shape == x.shape
    assert MeanVarianceNormalization.infer(x, axes=(0, 2)).shape == x.shape
    with pytest.raises(InferenceError):
        LpNormalization.infer(x, axis=3, p=2)
    with pytest.raises(InferenceError):
        MeanVarianceNormalization.infer(x, axes=(0, 2, 3))
    with pytest.raises(InferenceError):
        LRN.infer(tensor(None, (3,)), **run)


def test_empty_tensors():
    x, s = np.zeros((0, 4, 3), np.float32), np.ones(4, np.float32)
    assert InstanceNormalization.reference(x, s, s, epsilon=1e-5).shape == x.shape
    assert GroupNormalization.reference(x, s, s, num_groups=2, **SMALL).shape == x.shape
    flat = np.zeros((0, 3), np.float32)
    result, mean, _ = LayerNormalization.reference(flat, np.ones(3, np.float32), axis=-1, **SMALL)
    assert (result.shape, mean.shape) == ((0, 3), (0, 1))


def test_before_opset_17_the_scale_says_the_type_of_the_result():
    x = np.random.default_rng(0).normal(size=(3, 8)).astype(np.float16)
    scale = np.linspace(0.5, 2, 8, dtype=np.float32)
    result, *_ = LayerNormalization.reference(x, scale, axis=-1, **SMALL)
    wide = x.astype(np.float64)
    exact = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, exact * scale, rtol=1e-5, atol=1e-6)
    facts = tensor(DataType.FLOAT16, (3, 8)), tensor(DataType.FLOAT, (8,))
    assert LayerNormalization.infer(*facts, axis=-1, **SMALL)[0].dtype is DataType.FLOAT
