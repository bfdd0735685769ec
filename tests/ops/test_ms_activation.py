"""Activations with a bias folded in."""

from math import erf

import ml_dtypes
import numpy as np
import pytest

from tests.ops.contrib_case import (
    Draw,
    assert_close,
    check,
    check_against,
    check_inference,
    run_here,
)

HALVES = (np.float16, ml_dtypes.bfloat16)


@pytest.fixture
def draw():
    return Draw()


def gelu(x):
    return np.vectorize(lambda item: item * 0.5 * (1 + erf(item / 2**0.5)))(x)


@pytest.mark.parametrize("shape", [(2, 3, 4), (5,), (), (0, 3)])
def test_gelu(draw, shape):
    check("Gelu", [draw.floats(*shape) * 3])


def test_gelu_at_the_ends_of_its_range():
    x = np.array([np.inf, -np.inf, np.nan, 0, -0.0, 40, -40], np.float32)
    (y,) = run_here("Gelu", [x])
    assert y[0] == np.inf
    assert np.isnan(y[2])
    assert y[3:6].tolist() == [0, 0, 40]


def test_bias_gelu(draw):
    check("BiasGelu", [draw.floats(2, 3, 8), draw.floats(8)])


@pytest.mark.parametrize("bias", [False, True])
def test_fast_gelu(draw, bias):
    check("FastGelu", [draw.floats(2, 3, 8), *([draw.floats(8)] if bias else [])])


@pytest.mark.parametrize("alpha", [1.702, 0.5, -1.0])
def test_quick_gelu(draw, alpha):
    check("QuickGelu", [draw.floats(2, 3, 8) * 30], {"alpha": alpha})


@pytest.mark.parametrize("op", ["Gelu", "FastGelu", "QuickGelu"])
@pytest.mark.parametrize("dtype", [*HALVES, np.float64])
def test_other_types_round_the_exact_result(draw, op, dtype):
    x = draw.floats(3, 7, dtype=dtype)
    (y,) = run_here(op, [x])
    (exact,) = run_here(op, [x.astype(np.float64)])
    assert_close(y, exact.astype(dtype), rtol=1e-2 if dtype in HALVES else 1e-12, atol=0)


def test_bias_add(draw):
    x, bias, skip = draw.floats(2, 5, 4), draw.floats(4), draw.floats(2, 5, 4)
    check_against(x + bias + skip, "BiasAdd", [x, bias, skip])


def test_bias_split_gelu(draw):
    x, bias = draw.floats(2, 3, 8), draw.floats(8)
    left, right = np.split((x + bias).astype(np.float64), 2, axis=-1)
    expected = (left * gelu(right)).astype(np.float32)
    check_against(expected, "BiasSplitGelu", [x, bias])


@pytest.mark.parametrize(
    ("axis", "bias", "inner"),
    [
        (3, (2, 1, 1, 5), 1),
        (3, (1, 1, 4, 5), 0),
        (3, (4, 5), 0),
        (-1, (5,), 0),
        (2, (2, 1, 4, 5), 1),
        (2, (1, 3, 4, 5), 0),
        (0, (2, 3, 4, 5), 0),
    ],
)
def test_bias_softmax(draw, axis, bias, inner):
    data, shift = draw.floats(2, 3, 4, 5), draw.floats(*bias)
    total = data.astype(np.float64) + shift
    axes = tuple(range(axis % 4, 4))
    powers = np.exp(total)
    expected = (powers / powers.sum(axes, keepdims=True)).astype(np.float32)
    check_against(
        expected, "BiasSoftmax", [data, shift], {"axis": axis, "is_inner_broadcast": inner}
    )


def test_bias_dropout_in_inference(draw):
    data, bias, residual = draw.floats(2, 3, 4), draw.floats(4), draw.floats(2, 3, 4)
    expected = (data + bias + residual, np.ones((2, 3, 4), np.bool_))
    check_against(expected, "BiasDropout", [data, bias, residual], outputs=2)


def test_bias_dropout_in_training(draw):
    data, bias, residual = draw.floats(50, 40) + 9, draw.floats(40), draw.floats(50, 40)
    inputs = [data, bias, residual, np.array(0.25, np.float32), np.array(True)]
    output, mask = run_here("BiasDropout", inputs, {"seed": 3}, 2)
    np.testing.assert_allclose(
        output, np.where(mask, (data + bias) / 0.75, 0) + residual, rtol=1e-5
    )
    assert 0.7 < mask.mean() < 0.8
    again, _ = run_here("BiasDropout", inputs, {"seed": 3}, 2)
    np.testing.assert_array_equal(output, again)
    check_inference("BiasDropout", inputs, {"seed": 3}, 2, [output, mask])
