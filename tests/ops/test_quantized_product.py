"""Products of quantized tensors against exact arithmetic."""

import ml_dtypes
import numpy as np
import pytest

from sardonyx.dims import symbol
from sardonyx.dtypes import DataType
from sardonyx.errors import ConversionError, EvaluationError
from sardonyx.ops.fact import tensor
from sardonyx.ops.quantized_product import MatMulInteger, QLinearConv, QLinearMatMul, saturate
from tests.ops.exact_products import along, assert_codes, convolve, pads_of, whole
from tests.ops.one_node import inferred, one_node, run_converted, run_here, same

FLOAT8 = [
    ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2,
    ml_dtypes.float8_e5m2fnuz,
]  # fmt: skip


def draw(*shape, dtype=np.uint8, seed=0):
    limits = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(limits.min, limits.max + 1, shape).astype(dtype)


def scalar(value, dtype=np.float32):
    return np.asarray(value, dtype)


PAIRS = [(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)]


@pytest.mark.parametrize(("left", "right"), PAIRS)
@pytest.mark.parametrize("points", ["none", "scalar", "vector"])
def test_matmul_integer(left, right, points):
    inputs = {"A": draw(3, 4, dtype=left), "B": draw(4, 5, dtype=right, seed=1)}
    if points == "scalar":
        inputs |= {"a0": scalar(3, left), "b0": scalar(5, right)}
    if points == "vector":
        inputs |= {"a0": scalar(3, left), "b0": np.arange(5).astype(right)}
    content = one_node("MatMulInteger", inputs, ["Y"], opset=10)
    exact = whole(inputs["A"], inputs.get("a0")) @ whole(inputs["B"], inputs.get("b0"), 1)
    same(run_here(content, inputs), [exact.astype(np.int32)], rtol=0, atol=0)
    assert inferred(content) == ["int32[3,5]"]


def test_matmul_integer_by_row():
    a, b = draw(2, 3, 4), draw(2, 4, 5, seed=1)
    rows = np.array([1, 2, 3], np.uint8)
    exact = (a.astype(int) - rows[:, None]) @ b.astype(int)
    np.testing.assert_array_equal(MatMulInteger.reference(a, b, rows), exact)
    deep = np.arange(6, dtype=np.uint8).reshape(2, 3, 1)
    exact = (a.astype(int) - deep) @ b.astype(int)
    np.testing.assert_array_equal(MatMulInteger.reference(a, b, deep), exact)
    assert MatMulInteger.reference(a[0, 0], b[0, :, 0]).shape == ()


def quantized(left, right, out, *, shape=((3, 4), (4, 5)), b_scale=0.5, b_zero=1):
    return {
        "a": draw(*shape[0], dtype=left),
        "a_scale": scalar(0.25),
        "a0": scalar(7, left),
        "b": draw(*shape[1], dtype=right, seed=1),
        "b_scale": np.asarray(b_scale, np.float32),
        "b0": np.asarray(b_zero).astype(right),
        "y_scale": scalar(60.0),
        "y0": scalar(4, out),
    }


@pytest.mark.parametrize("columns", [
    {}, {"b_scale": [0.1, 0.2, 0.3, 0.4, 0.5], "b_zero": [0, 1, 2, 3, 4]},
], ids=["one scale", "a scale a column"])  # fmt: skip
@pytest.mark.parametrize(("left", "right"), PAIRS)
def test_qlinear_matmul(left, right, columns):
    inputs = quantized(left, right, left, **columns)
    (found,) = run_here(one_node("QLinearMatMul", inputs, ["y"], opset=10), inputs)
    exact = whole(inputs["a"], inputs["a0"]) @ whole(inputs["b"], inputs["b0"], 1)
    scale = along(inputs["a_scale"], 2, None) * along(inputs["b_scale"], 2, 1)
    assert found.dtype == left
    assert_codes(found, exact * scale / inputs["y_scale"].astype(float), inputs["y0"])


def test_saturation_rounds_to_even_before_the_zero_point():
    values = np.array([0.5, 1.5, -0.5, -1.5, 300, -300], np.float32)
    assert saturate(values, scalar(1, np.uint8)).tolist() == [1, 3, 1, 0, 255, 0]
    assert saturate(values, scalar(0, np.int8)).tolist() == [0, 2, 0, -2, 127, -128]
    for dtype in FLOAT8:
        top = float(ml_dtypes.finfo(dtype).max)
        result = saturate(np.array([1e9, -1e9, 1.5], np.float32), scalar(0, dtype))
        assert result.astype(np.float32).tolist() == [top, -top, 1.5]


@pytest.mark.parametrize("kind", FLOAT8)
@pytest.mark.parametrize("scale", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_qlinear_matmul_of_float8(kind, scale):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(3, 4)).astype(kind), rng.normal(size=(4, 2)).astype(kind)
    inputs = {
        "a": a, "a_scale": scalar(0.5, scale), "a0": scalar(0, kind),
        "b": b, "b_scale": scalar(2, scale), "b0": scalar(0, kind),
        "y_scale": scalar(0.25, scale), "y0": scalar(0, kind),
    }  # fmt: skip
    content = one_node("QLinearMatMul", inputs, ["y"], opset=21)
    (result,) = run_here(content, inputs)
    exact = a.astype(np.float64) @ b.astype(np.float64) * 4
    assert result.dtype == kind
    np.testing.assert_allclose(result.astype(np.float64), exact, rtol=2**-2, atol=0.1)
    if scale != np.float16:
        same(run_converted(content, inputs, 20), [result], rtol=0.26, atol=0.1)


def test_qlinear_matmul_goes_down_by_its_function_only_where_it_must():
    inputs = quantized(np.uint8, np.int8, np.uint8)
    content = one_node("QLinearMatMul", inputs, ["y"], opset=21)
    same(run_converted(content, inputs, 17), run_here(content, inputs))
    halved = {
        name: item.astype(np.float16) if "scale" in name else item for name, item in inputs.items()
    }
    content = one_node("QLinearMatMul", halved, ["y"], opset=21)
    same(run_converted(content, halved, 17), run_here(content, halved), atol=1)


def test_qlinear_matmul_inference():
    n = symbol("n")
    quarter = tensor(DataType.FLOAT, ())
    a, zero = tensor(DataType.UINT8, (n, 4)), tensor(DataType.INT8, ())
    result = QLinearMatMul.infer(a, quarter, zero, a, quarter, zero, quarter, zero)
    assert (result.dtype, result.shape) == (DataType.INT8, (n, 4))


@pytest.mark.parametrize("attributes", [
    {}, {"pads": [1, 1, 1, 1], "strides": [2, 2]}, {"group": 2}, {"auto_pad": "SAME_UPPER"},
    {"dilations": [2, 2]},
])  # fmt: skip
def test_conv_integer(attributes):
    inputs = {
        "x": draw(1, 4, 7, 6),
        "w": draw(6, 4 // attributes.get("group", 1), 3, 3, seed=1),
        "x0": scalar(9, np.uint8),
        "w0": scalar(3, np.uint8),
    }
    content = one_node("ConvInteger", inputs, ["y"], opset=10, **attributes)
    result = run_here(content, inputs)
    given = dict(attributes)
    if given.pop("auto_pad", None):
        given["pads"] = pads_of("SAME_UPPER", (7, 6), (3, 3))
    exact = convolve(whole(inputs["x"], inputs["x0"]), whole(inputs["w"], inputs["w0"]), **given)
    same(result, [exact.astype(np.int32)], rtol=0, atol=0)
    assert inferred(content) == [f"int32[{','.join(map(str, result[0].shape))}]"]


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(
    "attributes", [{}, {"pads": [1, 2, 0, 1]}, {"group": 2, "strides": [2, 1]}]
)
def test_qlinear_conv(attributes, bias, per_channel):
    inputs = {
        "x": draw(2, 4, 7, 6),
        "x_scale": scalar(0.1),
        "x0": scalar(120, np.uint8),
        "w": draw(6, 4 // attributes.get("group", 1), 3, 3, dtype=np.int8, seed=1),
        "w_scale": np.linspace(0.1, 0.3, 6, dtype=np.float32) if per_channel else scalar(0.2),
        "w0": np.zeros(6, np.int8) if per_channel else scalar(0, np.int8),
        "y_scale": scalar(13.0),
        "y0": scalar(100, np.uint8),
        "B": np.arange(-3000, 3000, 1000, dtype=np.int32) if bias else None,
    }
    content = one_node("QLinearConv", inputs, ["y"], opset=10, **attributes)
    (found,) = run_here(content, inputs)
    exact = convolve(whole(inputs["x"], inputs["x0"]), whole(inputs["w"], inputs["w0"], 0),
                     **attributes)  # fmt: skip
    if bias:
        exact = exact + along(inputs["B"], 4, 1)
    scale = along(inputs["x_scale"], 4, None) * along(inputs["w_scale"], 4, 1)
    assert found.dtype == np.uint8
    assert_codes(found, exact * scale / inputs["y_scale"].astype(float), inputs["y0"])


def test_qlinear_conv_has_the_type_of_its_zero_point():
    x, w = tensor(DataType.UINT8, (None, 2, 8)), tensor(DataType.INT8, (3, 2, 3))
    scale, zero = tensor(DataType.FLOAT, ()), tensor(DataType.INT8, ())
    attributes = {"auto_pad": "NOTSET", "dilations": None, "group": 1, "kernel_shape": None,
                  "pads": None, "strides": None}  # fmt: skip
    fact = QLinearConv.infer(x, scale, zero, w, scale, zero, scale, zero, **attributes)
    assert (fact.dtype, fact.shape) == (DataType.INT8, (None, 3, 6))


def test_float8_does_not_go_below_opset_19():
    kind = ml_dtypes.float8_e4m3fn
    one, zero = scalar(1), scalar(0, kind)
    inputs = {"a": np.ones((1, 1), kind), "s": one, "z": zero}
    content = one_node(
        "QLinearMatMul", inputs, ["y"], opset=21,
        arguments=["a", "s", "z", "a", "s", "z", "s", "z"],
    )  # fmt: skip
    with pytest.raises(ConversionError):
        run_converted(content, inputs, 18)


def test_scales_for_other_filters():
    x, w = np.ones((1, 1, 3, 3), np.uint8), np.ones((1, 1, 1, 1), np.uint8)
    scale, zero = np.float32(0.5), np.uint8(0)
    with pytest.raises(EvaluationError, match="2 scales of weights do not fit 1 filters"):
        QLinearConv.reference(x, scale, zero, w, np.float32([1, 2]), zero, scale, zero)
