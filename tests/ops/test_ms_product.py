"""Matrix products with transposes, activations or quantization folded in."""

import ml_dtypes
import numpy as np
import pytest

from sardonyx.errors import InferenceError, UnsupportedError
from sardonyx.ops.infer import infer_facts
from tests.ops.contrib_case import (
    Draw,
    check,
    check_against,
    check_codes,
    node_model,
    read,
    run_here,
)
from tests.ops.exact_products import along, dynamically_quantized, whole

BYTES = (np.uint8, np.int8)


def number(value, dtype=np.float32):
    return np.array(value, dtype)


@pytest.fixture
def draw():
    return Draw()


@pytest.mark.parametrize("trans_a", [0, 1])
@pytest.mark.parametrize("trans_b", [0, 1])
@pytest.mark.parametrize("batch_a", [0, 1])
@pytest.mark.parametrize("batch_b", [0, 1])
def test_fused_mat_mul(draw, trans_a, trans_b, batch_a, batch_b):
    left, right = (4, 3) if trans_a else (3, 4), (5, 4) if trans_b else (4, 5)
    left = (left[0], 2, 6, left[1]) if batch_a else (2, 6, *left)
    right = (right[0], 2, 6, right[1]) if batch_b else (2, 6, *right)
    attributes = {"transA": trans_a, "transB": trans_b, "alpha": 0.5}
    attributes |= {"transBatchA": batch_a, "transBatchB": batch_b}
    check("FusedMatMul", [draw.floats(*left), draw.floats(*right)], attributes)


@pytest.mark.parametrize(
    ("left", "right", "attributes"),
    [
        ((4,), (4, 5), {"transA": 1}),
        ((3, 4), (4,), {"transB": 1}),
        ((7, 3, 4), (4, 5), {}),
        ((1, 3, 4), (6, 4, 5), {"alpha": 2.0}),
        ((0, 4), (4, 5), {}),
    ],
)
def test_fused_mat_mul_of_other_ranks(draw, left, right, attributes):
    check("FusedMatMul", [draw.floats(*left), draw.floats(*right)], attributes)
    wide = [draw.floats(*left, dtype=np.float64), draw.floats(*right, dtype=np.float64)]
    check("FusedMatMul", wide, attributes)


@pytest.mark.parametrize("trans_a", [0, 1])
@pytest.mark.parametrize("trans_b", [0, 1])
def test_transpose_mat_mul(draw, trans_a, trans_b):
    left, right = (2, 4, 3) if trans_a else (2, 3, 4), (2, 5, 4) if trans_b else (2, 4, 5)
    attributes = {"transA": trans_a, "transB": trans_b, "alpha": 0.5}
    check("TransposeMatMul", [draw.floats(*left), draw.floats(*right)], attributes)


ACTIVATIONS = {
    "Relu": {},
    "LeakyRelu": {"activation_alpha": 0.1},
    "Sigmoid": {},
    "Tanh": {},
    "Elu": {"activation_alpha": 0.7},
    "HardSigmoid": {"activation_alpha": 0.3, "activation_beta": 0.4},
    "Selu": {"activation_alpha": 1.3, "activation_gamma": 1.2},
    "Celu": {"activation_alpha": 0.8},
    "Softplus": {},
    "Softsign": {},
    "ThresholdedRelu": {"activation_alpha": 0.3},
    "ScaledTanh": {"activation_alpha": 0.8, "activation_beta": 1.1},
    "ParametricSoftplus": {"activation_alpha": 0.8, "activation_beta": 1.1},
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_fused_gemm(draw, name):
    attributes = {"activation": name, "alpha": 0.4, "beta": 1.5, **ACTIVATIONS[name]}
    check("FusedGemm", [draw.floats(3, 4), draw.floats(4, 5), draw.floats(5)], attributes)


def test_fused_gemm_of_transposed_matrices(draw):
    attributes = {"transA": 1, "transB": 1, "activation": "Relu"}
    check("FusedGemm", [draw.floats(4, 3), draw.floats(5, 4)], attributes)


def test_an_unknown_activation_is_named(draw):
    with pytest.raises(UnsupportedError, match="'Mish2' is not known"):
        run_here("FusedGemm", [draw.floats(2, 2), draw.floats(2, 2)], {"activation": "Mish2"})


def test_mat_mul_integer16_wraps_around(draw):
    check("MatMulInteger16", [draw.codes(np.int16, 2, 3, 4), draw.codes(np.int16, 4, 5)])


def test_mat_mul_integer16_of_unsigned_numbers(draw):
    a, b = draw.codes(np.uint16, 3, 4), draw.codes(np.uint16, 4, 5)
    expected = (a.astype(np.uint64) @ b.astype(np.uint64)).astype(np.uint32)
    check_against(expected, "MatMulInteger16", [a, b])


def weights(draw, dtype, parameters):
    """B, its scale and its zero point."""
    if parameters == "a column":
        scale, zero = np.abs(draw.floats(5)) * 0.01, draw.whole(0, 5, 5, dtype=dtype)
    else:
        scale, zero = number([0.01]), number(3, dtype)
    return draw.codes(dtype, 4, 5), scale, None if parameters == "no zero" else zero


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("parameters", ["one", "a column", "no zero"])
@pytest.mark.parametrize("bias", [False, True])
def test_products_of_bytes(draw, dtype, parameters, bias):
    b, scale, zero = weights(draw, dtype, parameters)
    shift = draw.floats(5) if bias else None
    right = whole(b, zero, 1)

    def exact(left, left_scale):
        real = left @ right * (left_scale * along(scale, 2, 1)) + (0 if shift is None else shift)
        return real.astype(np.float32)

    x = draw.floats(2, 3, 4)
    check_against(exact(*dynamically_quantized(x)), "DynamicQuantizeMatMul",
                  [x, b, scale, zero, shift])  # fmt: skip
    a, a_zero, step = draw.codes(np.uint8, 2, 3, 4), number(7, np.uint8), number(0.02)
    check_against(exact(whole(a, a_zero), float(step)), "MatMulIntegerToFloat",
                  [a, b, step, scale, a_zero, zero, shift])  # fmt: skip
    if dtype == np.int8:
        signed = draw.codes(np.int8, 2, 3, 4)
        check_against(exact(whole(signed), float(step)), "MatMulIntegerToFloat",
                      [signed, b, step, scale, None, zero, shift])  # fmt: skip


@pytest.mark.parametrize("a", [np.zeros((2, 4)), -np.ones((2, 4)), np.full((2, 4), 3.5)])
def test_dynamic_quantization_of_one_sided_ranges(draw, a):
    b, (left, scale) = draw.codes(np.uint8, 4, 5), dynamically_quantized(a)
    exact = left @ whole(b) * (scale * float(number(0.1)))
    inputs = [a.astype(np.float32), b, number(0.1)]
    check_against(exact.astype(np.float32), "DynamicQuantizeMatMul", inputs)


def test_mat_mul_integer_to_float_with_a_scale_for_each_column(draw):
    a, b = draw.codes(np.uint8, 3, 4), draw.codes(np.int8, 4, 5)
    scale = np.abs(draw.floats(4))
    expected = (a * scale) @ (b * np.float32(0.1))
    check_against(expected, "MatMulIntegerToFloat", [a, b, scale, number(0.1)])


@pytest.mark.parametrize("trans_a", [0, 1])
@pytest.mark.parametrize("trans_b", [0, 1])
@pytest.mark.parametrize("quantized", [False, True])
@pytest.mark.parametrize("c", [None, (5,), (3, 5), (1, 5)])
def test_quantized_gemm(draw, trans_a, trans_b, quantized, c):
    left, right = (4, 3) if trans_a else (3, 4), (5, 4) if trans_b else (4, 5)
    addend = None if c is None else draw.whole(-500, 500, *c)
    attributes = {"transA": trans_a, "transB": trans_b, "alpha": 0.7}
    b = [draw.codes(np.int8, *right), np.abs(draw.floats(5)), np.zeros(5, np.int8), addend]
    for dtype in BYTES:
        a = [draw.codes(dtype, *left), number(0.1), number(12, dtype)]
        one, two = whole(a[0], a[2]), whole(b[0], b[2], 0 if trans_b else 1)
        product = (one.T if trans_a else one) @ (two.T if trans_b else two)
        real = (product + (0 if c is None else addend)) * (0.7 * 0.1 * along(b[1], 2, 1))
        if quantized:
            zero = number(10, dtype)
            check_codes(real / 9.3, zero, "QGemm", [*a, *b, number(9.3), zero], attributes)
        else:
            check_against(real.astype(np.float32), "QGemm", [*a, *b], attributes)


@pytest.mark.parametrize("shape", [(3, 4, 4), (4, 4), (2, 2, 1, 1)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_inverse(draw, shape, dtype):
    check("Inverse", [draw.floats(*shape, dtype=dtype)], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_distances(draw, metric, dtype):
    inputs = [draw.floats(3, 4, dtype=dtype), draw.floats(5, 4, dtype=dtype)]
    check("CDist", inputs, {"metric": metric}, rtol=1e-3, atol=1e-3)


METRICS = {
    "cityblock": lambda a, b: sum(abs(a - b)),
    "chebyshev": lambda a, b: max(abs(a - b)),
    "braycurtis": lambda a, b: sum(abs(a - b)) / sum(abs(a + b)),
    "canberra": lambda a, b: sum(abs(p - q) / (abs(p) + abs(q)) for p, q in zip(a, b, strict=True)),
    "hamming": lambda a, b: sum(a != b) / len(a),
    "cosine": lambda a, b: 1 - a @ b / (a @ a * (b @ b)) ** 0.5,
    "correlation": lambda a, b: 1 - np.corrcoef(a, b)[0, 1],
}


@pytest.mark.parametrize("metric", METRICS)
def test_other_distances(draw, metric):
    a, b = draw.floats(3, 4, dtype=np.float64), draw.floats(5, 4, dtype=np.float64)
    b[1, 2] = a[0, 2]
    expected = np.array([[METRICS[metric](p, q) for q in b] for p in a])
    check_against(expected, "CDist", [a, b], {"metric": metric}, rtol=1e-9)


def test_an_unknown_metric_is_named(draw):
    with pytest.raises(UnsupportedError, match="'yule' is not known"):
        run_here("CDist", [draw.floats(2, 2), draw.floats(2, 2)], {"metric": "yule"})


@pytest.mark.parametrize(
    ("op", "shapes", "attributes"),
    [
        ("FusedMatMul", [(3, 4), (5, 6)], {}),
        ("FusedMatMul", [(3, 4), (4, 6)], {"transA": 1}),
        ("FusedGemm", [(3, 4), (5, 6)], {}),
        ("Inverse", [(3, 4)], {}),
        ("CDist", [(3, 4), (3, 5)], {}),
    ],
)
def test_contradicting_sizes_are_reported(draw, op, shapes, attributes):
    model = read(node_model(op, [draw.floats(*shape) for shape in shapes], attributes))
    with pytest.raises(InferenceError):
        infer_facts(model, strict=True)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_half_precision_rounds_once(draw, dtype):
    a, b = draw.floats(3, 40, dtype=dtype), draw.floats(40, 5, dtype=dtype)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    check_against(exact.astype(dtype), "FusedMatMul", [a, b], rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32, np.uint64])
def test_fused_gemm_of_whole_numbers(draw, dtype):
    a, b, c = (draw.whole(0, 9, *shape, dtype=dtype) for shape in ((3, 4), (4, 5), (5,)))
    check_against(a @ b + c, "FusedGemm", [a, b, c], {"activation": "Relu"})


def test_inverse_in_half_precision(draw):
    x = draw.floats(3, 3, dtype=np.float16)
    expected = np.linalg.inv(x.astype(np.float32)).astype(np.float16)
    check_against(expected, "Inverse", [x])
