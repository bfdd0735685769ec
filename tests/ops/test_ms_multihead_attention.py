"""Attention over projected queries, keys and values."""

import numpy as np
import pytest

from sardonyx.errors import EvaluationError
from tests.ops.contrib_case import Draw, check, check_inference, run_here

BATCH, QUERIES, KEYS, HIDDEN, HEADS, SIZE, PAST = 2, 3, 5, 8, 2, 4, 4


@pytest.fixture
def draw():
    return Draw()


@pytest.mark.parametrize("mask", [None, (BATCH,), (BATCH, KEYS), (BATCH, QUERIES, KEYS)])
@pytest.mark.parametrize("bias", [None, (1, HEADS), (BATCH, 1)])
@pytest.mark.parametrize("projected", [True, False])
def test_cross_attention(draw, mask, bias, projected):
    inputs = [
        draw.floats(BATCH, QUERIES, HIDDEN), draw.floats(BATCH, KEYS, HIDDEN),
        draw.floats(BATCH, KEYS, 12), draw.floats(28) if projected else None,
        None if mask is None else draw.whole(0, 2 if len(mask) > 1 else 5, *mask),
        None if bias is None else draw.floats(*bias, QUERIES, KEYS),
    ]  # fmt: skip
    more = {} if projected else {"scale": 0.4, "mask_filter_value": -1e9}
    check("MultiHeadAttention", inputs, {"num_heads": HEADS, **more}, 1 if projected else 3)


@pytest.mark.parametrize("mask", [False, True])
def test_causal_attention_and_its_scores(draw, mask):
    inputs = [draw.floats(BATCH, QUERIES, HIDDEN) for _ in range(3)]
    given = np.array([[1, 1, 0], [1, 1, 1]], np.int32) if mask else None
    inputs += [None, given, draw.floats(1, 1, QUERIES, QUERIES)]
    check("MultiHeadAttention", inputs, {"num_heads": HEADS, "unidirectional": 1}, 4)


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("bias", [False, True])
def test_keys_and_values_by_heads(draw, outputs, bias):
    inputs = [draw.floats(BATCH, QUERIES, HIDDEN)]
    inputs += [draw.floats(BATCH, HEADS, KEYS, SIZE) for _ in range(2)]
    inputs += [draw.floats(24)] if bias else []
    check("MultiHeadAttention", inputs, {"num_heads": HEADS}, outputs)


@pytest.mark.parametrize("unidirectional", [0, 1])
@pytest.mark.parametrize("mask", [False, True])
def test_a_past_stands_before_new_keys(draw, unidirectional, mask):
    inputs = [draw.floats(BATCH, QUERIES, HIDDEN) for _ in range(3)]
    inputs += [draw.floats(24), draw.whole(0, 2, BATCH, QUERIES + PAST) if mask else None, None]
    inputs += [draw.floats(BATCH, HEADS, PAST, SIZE) for _ in range(2)]
    attributes = {"num_heads": HEADS, "unidirectional": unidirectional}
    check("MultiHeadAttention", inputs, attributes, 4)


def test_a_shared_buffer(draw):
    inputs = [draw.floats(BATCH, 1, HIDDEN) for _ in range(3)] + [None, None, None]
    inputs += [draw.floats(BATCH, HEADS, 8, SIZE) for _ in range(2)] + [np.array([3], np.int32)]
    check("MultiHeadAttention", inputs, {"num_heads": HEADS}, 3)


def test_packed_forms_equal_separate_ones(draw):
    packed = draw.floats(BATCH, QUERIES, HEADS, 3, SIZE)
    parts = [packed[:, :, :, which].reshape(BATCH, QUERIES, HIDDEN) for which in range(3)]
    attributes = {"num_heads": HEADS}
    (expected,) = run_here("MultiHeadAttention", parts, attributes)
    pair = packed[:, :, :, 1:]
    for inputs in ([packed], [parts[0], np.ascontiguousarray(pair)]):
        (found,) = run_here("MultiHeadAttention", inputs, attributes)
        np.testing.assert_allclose(found, expected, rtol=1e-6)
        check_inference("MultiHeadAttention", inputs, attributes, 1, [found])


def test_cumulated_lengths_say_the_same_as_lengths(draw):
    parts = [draw.floats(BATCH, QUERIES, HIDDEN) for _ in range(3)]
    lengths = np.array([2, 3, 0, 2, 5, 0, 2, 5], np.int32)
    check("MultiHeadAttention", [*parts, None, lengths], {"num_heads": HEADS})


@pytest.mark.parametrize("before", [0, 3, 6])
@pytest.mark.parametrize("mask", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_one_more_token(draw, before, mask, bias):
    inputs = [draw.floats(BATCH, 1, HIDDEN) for _ in range(3)]
    inputs += [draw.whole(0, 2, BATCH, before + 1) if mask else None]
    inputs += [draw.floats(1, HEADS, 1, before + 1) if bias else None]
    inputs += [draw.floats(BATCH, HEADS, 7, SIZE) for _ in range(2)]
    inputs += [np.array([before], np.int32), None, None, draw.floats(24)]
    attributes = {"num_heads": HEADS, "past_present_share_buffer": 1, "output_qk": 1}
    check("DecoderMaskedMultiHeadAttention", inputs, attributes, 4, constants=(7,))


@pytest.mark.parametrize("mask", [False, True])
def test_one_token_against_an_encoder(draw, mask):
    inputs = [draw.floats(BATCH, 1, HIDDEN)]
    inputs += [draw.floats(BATCH, HEADS, KEYS, SIZE) for _ in range(2)]
    inputs += [draw.whole(0, 2, BATCH, KEYS) if mask else None]
    inputs += [None] * 6 + [draw.floats(24)]
    attributes = {"num_heads": HEADS, "scale": 0.3}
    check("DecoderMaskedMultiHeadAttention", inputs, attributes)


def beams(draw, *, mask):
    inputs = [draw.floats(6, 1, HIDDEN) for _ in range(3)]
    inputs += [draw.whole(0, 2, 6, 5) if mask else None, None]
    inputs += [draw.floats(6, HEADS, 7, SIZE) for _ in range(2)]
    indirection = draw.whole(0, 3, 2, 3, 7)
    return [*inputs, np.array([4], np.int32), np.array([3], np.int32), indirection]


def test_beams_find_their_past_in_other_rows(draw):
    attributes = {"num_heads": HEADS, "past_present_share_buffer": 1}
    check("DecoderMaskedMultiHeadAttention", beams(draw, mask=False), attributes, 3)


@pytest.mark.parametrize("mask", [False, True])
def test_beams_of_either_operator_are_the_same(draw, mask):
    query, key, value, masked, _, *past, length, width, indirection = beams(draw, mask=mask)
    own = [query, key, value, None, masked, None, *past, length, indirection]
    found = run_here("MultiHeadAttention", own, {"num_heads": HEADS}, 3)
    other = [query, key, value, masked, None, *past, length, width, indirection]
    attributes = {"num_heads": HEADS, "past_present_share_buffer": 1}
    expected = run_here("DecoderMaskedMultiHeadAttention", other, attributes, 3)
    for left, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-6)


def test_a_shared_buffer_without_beams(draw):
    query, key, value, _, _, *past, length, _, _ = beams(draw, mask=False)
    attributes = {"num_heads": HEADS}
    shared = [query, key, value, None, None, None, *past, length]
    output, keys, values = run_here("MultiHeadAttention", shared, attributes, 3)
    apart = [query, key, value, None, None, None, *(part[:, :, :4] for part in past)]
    expected, more, others = run_here("MultiHeadAttention", apart, attributes, 3)
    np.testing.assert_allclose(output, expected, rtol=1e-6)
    np.testing.assert_array_equal(keys[:, :, :5], more)
    np.testing.assert_array_equal(values[:, :, :5], others)
    np.testing.assert_array_equal(keys[:, :, 5:], past[0][:, :, 5:])
    np.testing.assert_array_equal(values[:, :, 5:], past[1][:, :, 5:])


def test_beams_need_an_indirection(draw):
    inputs = beams(draw, mask=True)[:-1]
    attributes = {"num_heads": HEADS, "past_present_share_buffer": 1}
    with pytest.raises(EvaluationError, match="cache_indirection"):
        run_here("DecoderMaskedMultiHeadAttention", inputs, attributes)


def test_a_packed_token_equals_separate_ones(draw):
    parts = [draw.floats(BATCH, 1, HIDDEN) for _ in range(3)]
    past = [draw.floats(BATCH, HEADS, 7, SIZE) for _ in range(2)]
    rest = [None, None, *past, np.array([2], np.int32)]
    attributes = {"num_heads": HEADS, "past_present_share_buffer": 1}
    inputs = [np.concatenate(parts, -1), None, None, *rest]
    found = run_here("DecoderMaskedMultiHeadAttention", inputs, attributes, 3)
    expected = run_here("DecoderMaskedMultiHeadAttention", [*parts, *rest], attributes, 3)
    for left, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-6)
    check_inference("DecoderMaskedMultiHeadAttention", inputs, attributes, 3, found)
