"""Operators on quantized tensors, and quantization itself."""

import ml_dtypes
import numpy as np
import pytest

from sardonyx.errors import InferenceError
from sardonyx.ops.infer import infer_facts
from tests.ops.contrib_case import Draw, check, check_against, node_model, read

BYTES = (np.uint8, np.int8)
TYPES = (np.uint8, np.int8, np.uint16, np.int16, ml_dtypes.uint4, ml_dtypes.int4)


def number(value, dtype=np.float32):
    return np.array(value, dtype)


@pytest.fixture
def draw():
    return Draw()


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
@pytest.mark.parametrize(
    "shapes", [((2, 3, 4), (2, 3, 4)), ((2, 3, 4), (4,)), ((1,), (2, 3)), ((), (2, 2))]
)
def test_binary(draw, dtype, op, shapes):
    a, b = (draw.codes(dtype, *shape) for shape in shapes)
    zeros = [number(value, dtype) for value in (12, 3, 7)]
    inputs = [a, number(0.1037), zeros[0], b, number(0.0711), zeros[1], number(0.2093), zeros[2]]
    check(op, inputs)


def test_binary_without_zero_points(draw):
    a, b = draw.codes(np.int8, 5), draw.codes(np.int8, 5)
    inputs = [a, number(0.1), None, b, number(0.2), None, number(0.5)]
    expected = np.clip(np.rint((a * 0.1 + b * 0.2) / 0.5), -128, 127).astype(np.int8)
    check_against(expected, "QLinearAdd", inputs, atol=1)


@pytest.mark.parametrize("dtype", BYTES)
def test_activations(draw, dtype):
    x, scale, zero = draw.codes(dtype, 3, 50), number(0.05), number(10, dtype)
    low = number(0 if dtype == np.uint8 else -128, dtype)
    check("QLinearSigmoid", [x, scale, zero, number(1 / 256), low])
    check("QLinearLeakyRelu", [x, scale, zero, number(0.0413), zero], {"alpha": 0.3})


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("opset", [12, 13])
@pytest.mark.parametrize("axis", [-1, 1, 0])
def test_softmax(draw, dtype, opset, axis):
    zero = number(0, dtype)
    inputs = [draw.codes(dtype, 3, 5, 4), number(0.05), zero, number(1 / 256), zero]
    check("QLinearSoftmax", inputs, {"axis": axis, "opset": opset})


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("axis", [1, -1])
def test_concat(draw, dtype, axis):
    inputs = [number(0.1037), number(4, dtype)]
    for columns, scale in ((3, 0.2), (5, 0.05), (0, 1.0)):
        inputs += [draw.codes(dtype, 2, columns), number(scale), number(1, dtype)]
    check("QLinearConcat", inputs, {"axis": axis})


@pytest.mark.parametrize("dtype", BYTES)
def test_where(draw, dtype):
    condition = draw.whole(0, 2, 3, 4).astype(np.bool_)
    x = [draw.codes(dtype, 3, 4), number(0.2), number(1, dtype)]
    y = [draw.codes(dtype, 4), number(0.05), number(9, dtype)]
    check("QLinearWhere", [condition, *x, *y, number(0.1037), number(8, dtype)])


@pytest.mark.parametrize("axes", [[1], [0, -1], [0, 1, 2]])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_reduce_mean(draw, axes, keepdims):
    data = draw.codes(np.uint8, 3, 5, 4)
    inputs = [data, number(0.3), number(9, np.uint8), number(0.1), number(20, np.uint8)]
    wide = (data.astype(np.float64) - 9) * 0.3
    mean = wide.mean(tuple(axes), keepdims=bool(keepdims))
    expected = np.asarray(np.clip(np.rint(mean / 0.1 + 20), 0, 255).astype(np.uint8))
    check_against(expected, "QLinearReduceMean", inputs, {"axes": axes, "keepdims": keepdims})


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("axis", [None, 1, -1])
def test_quantize_and_dequantize(draw, dtype, axis):
    limits = ml_dtypes.iinfo(dtype)
    spread = (int(limits.max) - int(limits.min)) / 12
    x = draw.floats(3, 4, 5) * np.float32(spread)
    codes = draw.codes(dtype, 3, 4, 5)
    scale, zero, attributes = number(0.5), number(2).astype(dtype), {}
    if axis is not None:
        count = x.shape[axis]
        scale = np.abs(draw.floats(count)) + np.float32(0.1)
        zero, attributes = np.arange(count).astype(dtype), {"axis": axis}
    check("QuantizeLinear", [x, scale, zero], attributes)
    check("DequantizeLinear", [codes, scale, zero], attributes)
    check("DequantizeLinear", [codes, scale], attributes)


def test_quantization_rounds_half_to_even_and_saturates():
    x = np.array([0.5, 1.5, 2.5, -1, 300, np.inf, -np.inf], np.float32)
    (y,) = check("QuantizeLinear", [x, number(1)])
    assert y.tolist() == [0, 2, 2, 0, 255, 255, 0]


def test_dequantization_of_32_bits(draw):
    check("DequantizeLinear", [draw.whole(-9999, 9999, 7), number(0.01)])


@pytest.mark.parametrize("op", ["QuantizeLinear", "DequantizeLinear"])
def test_half_precision(draw, op):
    scale = number(0.5, np.float16)
    zero = number(3, np.int16)
    if op == "QuantizeLinear":
        x = draw.floats(4, 5, dtype=np.float16) * np.float16(100)
        expected = (np.rint(x.astype(np.float32) / 0.5) + 3).astype(np.int16)
    else:
        x = draw.whole(-100, 100, 4, 5, dtype=np.int16)
        expected = ((x - 3) * 0.5).astype(np.float16)
    check_against(expected, op, [x, scale, zero])


@pytest.mark.parametrize(
    ("op", "inputs", "attributes"),
    [
        ("QLinearConcat", [number(1), number(0, np.uint8), number(1)], {"axis": 0}),
        ("QuantizeLinear", [np.zeros((2, 3), np.float32), number(1)], {"axis": 2}),
    ],
)
def test_contradictions_are_reported(op, inputs, attributes):
    with pytest.raises(InferenceError):
        infer_facts(read(node_model(op, inputs, attributes)), strict=True)
