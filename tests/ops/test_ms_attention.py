"""Self-attention that projects its input itself."""

from itertools import pairwise

import ml_dtypes
import numpy as np
import pytest

from sardonyx.errors import InferenceError
from sardonyx.ops.infer import infer_facts
from tests.ops.contrib_case import (
    Draw,
    check,
    check_against,
    node_model,
    read,
    run_here,
    run_there,
)
from tests.ops.exact_products import along, whole

BATCH, LENGTH, INPUT, HEADS, HIDDEN, PAST = 2, 3, 12, 2, 8, 4
LOWEST = float(np.finfo(np.float32).min)
MASKS = {
    "none": None,
    "ends": np.array([2, 3], np.int32),
    "ends and starts": np.array([2, 3, 1, 0], np.int32),
    "keys": np.array([[1, 1, 0], [0, 1, 1]], np.int32),
    "queries and keys": np.array(
        [[[1, 0, 1], [0, 0, 1], [1, 1, 1]], [[0, 1, 0], [1, 1, 0], [0, 0, 0]]], np.int32
    ),
}


@pytest.fixture
def draw():
    return Draw()


def projection(draw, columns=3 * HIDDEN):
    return [draw.floats(BATCH, LENGTH, INPUT), draw.floats(INPUT, columns), draw.floats(columns)]


def attend(query, key, value, heads, *, scale=None, bias=0.0):
    """Attention head by head in float64, of queries and keys [length, hidden]."""
    parts = [np.split(item.astype(np.float64), heads, axis=1) for item in (query, key, value)]
    results = []
    for head, (q, k, v) in enumerate(zip(*parts, strict=True)):
        shift = bias if np.ndim(bias) == 0 else bias[head if len(bias) > 1 else 0]
        scores = q @ k.T * (scale or q.shape[1] ** -0.5) + shift
        powers = np.exp(scores - scores.max(1, keepdims=True))
        results.append(powers / powers.sum(1, keepdims=True) @ v)
    return np.concatenate(results, 1).astype(np.float32)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("unidirectional", [0, 1])
@pytest.mark.parametrize("more", [{}, {"scale": 0.3, "mask_filter_value": LOWEST}])
def test_attention(draw, mask, unidirectional, more):
    attributes = {"num_heads": HEADS, "unidirectional": unidirectional, **more}
    check("Attention", [*projection(draw), MASKS[mask]], attributes, 2)


@pytest.mark.parametrize("mask", [None, (BATCH,), (BATCH, LENGTH + PAST), (BATCH, LENGTH, 7)])
@pytest.mark.parametrize("unidirectional", [0, 1])
def test_attention_with_a_past(draw, mask, unidirectional):
    past = draw.floats(2, BATCH, HEADS, PAST, HIDDEN // HEADS)
    given = None if mask is None else draw.whole(0, 2, *mask)
    if mask == (BATCH,):
        given = np.array([6, 7], np.int32)
    inputs = [*projection(draw), given, past]
    check("Attention", inputs, {"num_heads": HEADS, "unidirectional": unidirectional}, 2)


def test_attention_with_values_of_another_size(draw):
    attributes = {"num_heads": HEADS, "qkv_hidden_sizes": [8, 8, 6]}
    check("Attention", projection(draw, 22), attributes)


@pytest.mark.parametrize("shape", [(BATCH, HEADS), (1, HEADS), (BATCH, 1), (1, 1)])
def test_attention_with_a_bias_for_scores(draw, shape):
    bias = draw.floats(*shape, LENGTH, LENGTH)
    check("Attention", [*projection(draw), None, None, bias], {"num_heads": HEADS})


def test_attention_without_a_bias_for_the_projection(draw):
    x, weights, _ = projection(draw)
    parts = np.split(x @ weights, 3, axis=-1)
    rows = [attend(*(part[row] for part in parts), HEADS) for row in range(BATCH)]
    check_against(np.stack(rows), "Attention", [x, weights], {"num_heads": HEADS})


def test_attention_with_a_mask_of_four_axes_equals_one_of_three(draw):
    mask = draw.whole(0, 2, BATCH, 1, 8, 8)
    inputs = projection(draw)
    attributes = {"num_heads": HEADS}
    (left,) = run_here("Attention", [*inputs, mask], attributes)
    (right,) = run_here("Attention", [*inputs, mask[:, 0, :LENGTH, :LENGTH]], attributes)
    np.testing.assert_array_equal(left, right)


def test_attention_in_a_shared_buffer_equals_a_past_of_its_own(draw):
    inputs = projection(draw)
    buffer = draw.floats(2, BATCH, HEADS, 9, HIDDEN // HEADS)
    before = np.array([PAST], np.int32)
    attributes = {"num_heads": HEADS, "unidirectional": 1}
    shared = attributes | {"past_present_share_buffer": 1}
    left, present = run_here("Attention", [*inputs, None, buffer, None, before], shared, 2)
    right, grown = run_here("Attention", [*inputs, None, buffer[:, :, :, :PAST]], attributes, 2)
    np.testing.assert_allclose(left, right, rtol=1e-6)
    np.testing.assert_array_equal(present[:, :, :, : PAST + LENGTH], grown)
    np.testing.assert_array_equal(present[:, :, :, 7:], buffer[:, :, :, 7:])


def test_attention_with_rotation(draw):
    x, weights, bias = projection(draw)
    parts = np.split(x.astype(np.float64) @ weights + bias, 3, axis=-1)
    size = HIDDEN // HEADS
    for which in (0, 1):
        turned = parts[which].reshape(BATCH, LENGTH, HEADS, 2, size // 2)
        pair = turned[..., 0, :] + 1j * turned[..., 1, :]
        steps = 10000.0 ** (-np.arange(0, size, 2) / size)
        angles = np.arange(LENGTH)[:, None] * steps
        pair = pair * np.exp(1j * angles)[None, :, None]
        parts[which] = np.stack([pair.real, pair.imag], -2).reshape(BATCH, LENGTH, HIDDEN)
    rows = [attend(*(part[row] for part in parts), HEADS) for row in range(BATCH)]
    attributes = {"num_heads": HEADS, "do_rotary": 1}
    check_against(np.stack(rows), "Attention", [x, weights, bias], attributes)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("parameters", ["one", "a column", "no zero"])
@pytest.mark.parametrize("past", [False, True])
def test_quantized_attention(draw, dtype, parameters, past):
    scale, zero = np.array(0.01, np.float32), np.array(3, dtype)
    if parameters == "a column":
        scale, zero = np.abs(draw.floats(24)) * 0.01, draw.whole(0, 5, 24, dtype=dtype)
    inputs = [
        draw.codes(np.uint8, BATCH, LENGTH, INPUT), draw.codes(dtype, INPUT, 24), draw.floats(24),
        np.array(0.02, np.float32), scale, None if past else np.array([2, 3], np.int32),
        np.array(100, np.uint8), None if parameters == "no zero" else zero,
        draw.floats(2, BATCH, HEADS, PAST, 4) if past else None,
    ]  # fmt: skip
    attributes = {"num_heads": HEADS, "unidirectional": 1}
    x = whole(inputs[0], inputs[6]) * float(inputs[3])
    weights = whole(inputs[1], inputs[7], 1) * along(scale, 2, 1)
    floats = [x.astype(np.float32), weights.astype(np.float32), inputs[2], inputs[5], inputs[8]]
    expected = run_there("Attention", floats, attributes, 2, [np.dtype(np.float32)] * 2)
    check_against(tuple(expected), "QAttention", inputs, attributes, 2)


OFFSETS = np.array([[0, 4, 5, 8], [9, 10, 11, 1], [2, 3, 6, 7]], np.int32)
LIMITS = np.array([0, 1, 3, 7], np.int32)


def packed(parts, heads, bias, scale):
    rows = []
    for index, (start, end) in enumerate(pairwise(LIMITS)):
        shift = 0.0
        if bias is not None:
            shift = bias[index if len(bias) > 1 else 0, :, : end - start, : end - start]
        rows.append(attend(*(part[start:end] for part in parts), heads, scale=scale, bias=shift))
    return np.concatenate(rows)


@pytest.mark.parametrize("bias", [None, (3, 2), (1, 1)])
@pytest.mark.parametrize("sizes", [None, [8, 8, 6]])
def test_packed_attention(draw, bias, sizes):
    columns = sum(sizes or [24])
    x, weights, shift = draw.floats(7, INPUT), draw.floats(INPUT, columns), draw.floats(columns)
    given = None if bias is None else draw.floats(*bias, 4, 4)
    parts = np.split(x @ weights + shift, [8, 16], axis=1)
    expected = packed(parts, HEADS, given, 0.4)
    attributes = {"num_heads": HEADS, "scale": 0.4} | ({"qkv_hidden_sizes": sizes} if sizes else {})
    inputs = [x, weights, shift, OFFSETS, LIMITS, given]
    check_against(expected, "PackedAttention", inputs, attributes)


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_packed_multi_head_attention(draw, whole, bias):
    query = draw.floats(7, HEADS, 3, 4)
    parts = [query[:, :, which].reshape(7, -1) for which in range(3)]
    shift = draw.floats(24) if bias else None
    moved = parts
    if shift is not None:
        moved = [part + row for part, row in zip(parts, np.split(shift, 3), strict=True)]
    expected = packed(moved, HEADS, None, None)
    inputs = [query, None, None] if whole else parts
    inputs = [*inputs, shift, OFFSETS, LIMITS]
    check_against(expected, "PackedMultiHeadAttention", inputs, {"num_heads": HEADS})


def test_contradicting_sizes_are_reported(draw):
    inputs = [draw.floats(2, 3, 12), draw.floats(11, 24), draw.floats(24)]
    model = read(node_model("Attention", inputs, {"num_heads": 2}))
    with pytest.raises(InferenceError, match="input does not fit the weights: 12 against 11"):
        infer_facts(model, strict=True)


@pytest.mark.parametrize(("dtype", "atol"), [(np.float16, 2e-2), (ml_dtypes.bfloat16, 2e-1)])
def test_half_precision(draw, dtype, atol):
    inputs = [item.astype(dtype) for item in projection(draw)]
    wide = [item.astype(np.float32) for item in inputs]
    expected = run_here("Attention", wide, {"num_heads": HEADS}, 2)
    exact = tuple(item.astype(dtype) for item in expected)
    check_against(exact, "Attention", inputs, {"num_heads": HEADS}, 2, atol=atol)
