# mypy: disable-error-code="misc, no-any-return"
"""Self-attention that projects its input itself: whole, quantized, and packed without padding."""

from itertools import pairwise
from typing import Any

import numpy as np

from sardonyx.dims import Size
from sardonyx.errors import EvaluationError, InferenceError
from sardonyx.ops.fact import Fact, same_size, tensor
from sardonyx.ops.infer import InferContext
from sardonyx.ops.ms_arithmetic import integer_product, over, plus, size_of, times
from sardonyx.ops.ms_attention_math import (
    attend,
    joined,
    merge_heads,
    rotate,
    score_bias,
    split_heads,
    standard_angles,
    stored,
)
from sardonyx.ops.operator import Operator
from sardonyx.ops.precision import Array, widen


def hidden_sizes(columns: int, sizes: tuple[int, ...] | None) -> tuple[int, int, int]:
    """How many of the projected columns are queries, keys and values."""
    if not sizes:
        return (columns // 3,) * 3
    if len(sizes) != 3 or sum(sizes) != columns:
        raise EvaluationError(f"hidden sizes {list(sizes)} do not divide {columns} columns")
    return sizes[0], sizes[1], sizes[2]


def _value_size(weights: Fact, bias: Fact | None, sizes: tuple[int, ...] | None) -> Size | None:
    if sizes:
        if len(sizes) != 3:
            raise InferenceError(f"qkv_hidden_sizes has {len(sizes)} elements, not 3")
        return sizes[2]
    columns = same_size(size_of(weights, 1), size_of(bias, 0), "bias does not fit the weights")
    return over(columns, 3)


def _project(
    x: Array, weights: Array, bias: Array | None, heads: int, sizes: tuple[int, ...] | None
) -> list[Array]:
    projected = x @ weights
    if bias is not None:
        projected = projected + bias
    query, key, _ = hidden_sizes(projected.shape[-1], sizes)
    parts = np.split(projected, [query, query + key], axis=-1)
    return [split_heads(part, heads) for part in parts]


def _self_attention(
    projected: list[Array], mask: Array | None, past: Array | None, attention_bias: Array | None,
    past_length: Array | None, *, filtered: float | None, shared: bool, rotary: int | None,
    scale: float | None, unidirectional: bool,
) -> tuple[Array, Array]:  # fmt: skip
    """Attention over projected queries, keys and values; also keys and values for the next step."""
    query, key, value = projected
    batch, _, length, _ = query.shape
    before = 0 if past is None else past.shape[3]
    if shared and past is not None:
        before = 0 if past_length is None else int(past_length.reshape(-1)[0])
    if rotary is not None:
        places = np.broadcast_to(np.arange(before, before + length), (batch, length))
        angles = standard_angles(before + length, rotary)
        query, key = (rotate(x, places, *angles, interleaved=False) for x in (query, key))
    if past is None:
        present = np.stack([key, value]) if key.shape == value.shape else np.empty(0, key.dtype)
    elif shared:
        present = np.stack([stored(past[0], before, key), stored(past[1], before, value)])
        key, value = present[:, :, :, : before + length]
    else:
        key, value = joined(past[0], key), joined(past[1], value)
        present = np.stack([key, value])
    keys = key.shape[2]
    bias = score_bias(
        attention_bias, mask, filtered, causal=unidirectional and length > 1, batch=batch,
        queries=length, keys=keys, before=before,
    )  # fmt: skip
    return merge_heads(attend(query, key, value, scale, bias)[0]), present


def _present(x: Fact, past: Fact | None, value_size: Size | None, heads: int, shared: bool) -> Fact:
    if past is not None and shared:
        return tensor(x.dtype, past.shape)
    length = size_of(x, 1)
    total = length if past is None else plus(size_of(past, 3), length)
    head = over(value_size, heads) if past is None else size_of(past, 4)
    return tensor(x.dtype, (2, size_of(x, 0), heads, total, head))


class Attention(Operator):
    """Multi-head self-attention: projection, mask, softmax, and the keys and values of the past."""

    domain = "com.microsoft"
    signatures = (
        "1(input: T, weights: T, bias?: T, mask_index?: M, past?: T, attention_bias?: T,"
        " past_sequence_length?: M, do_rotary?: int, mask_filter_value?: float, num_heads: int,"
        " past_present_share_buffer?: int, qkv_hidden_sizes?: ints, rotary_embedding_dim?: int,"
        " scale?: float, unidirectional: int = 0) -> (output: T, present?: T);"
        " T: bfloat16 float float16; M: int32",
    )

    def infer(
        x: Fact, weights: Fact, bias: Fact | None = None, mask: Fact | None = None,
        past: Fact | None = None, *rest: Fact | None, num_heads: int,
        past_present_share_buffer: int | None, qkv_hidden_sizes: tuple[int, ...] | None,
        context: InferContext, **_: Any,
    ) -> tuple[Fact, ...]:  # fmt: skip
        same_size(size_of(x, -1), size_of(weights, 0), "input does not fit the weights")
        value_size = _value_size(weights, bias, qkv_hidden_sizes)
        output = tensor(x.dtype, (size_of(x, 0), size_of(x, 1), value_size))
        present = _present(x, past, value_size, num_heads, bool(past_present_share_buffer))
        return (output, present)[: context.outputs]

    def reference(
        x: Array, weights: Array, bias: Array | None = None, mask: Array | None = None,
        past: Array | None = None, attention_bias: Array | None = None,
        past_length: Array | None = None, *, do_rotary: int | None,
        mask_filter_value: float | None, num_heads: int, past_present_share_buffer: int | None,
        qkv_hidden_sizes: tuple[int, ...] | None, rotary_embedding_dim: int | None,
        scale: float | None, unidirectional: int,
    ) -> tuple[Array, Array]:  # fmt: skip
        projected = _project(
            widen(x), widen(weights), None if bias is None else widen(bias), num_heads,
            qkv_hidden_sizes,
        )  # fmt: skip
        output, present = _self_attention(
            projected, mask, None if past is None else widen(past),
            attention_bias, past_length,
            filtered=mask_filter_value, shared=bool(past_present_share_buffer),
            rotary=(rotary_embedding_dim or projected[0].shape[-1]) if do_rotary else None,
            scale=scale, unidirectional=bool(unidirectional),
        )  # fmt: skip
        return output.astype(x.dtype), present.astype(x.dtype)


class QAttention(Operator):
    """Attention whose input and weights are quantized to 8 bits."""

    domain = "com.microsoft"
    signatures = (
        "1(input: T1, weight: T2, bias: T3, input_scale: T3, weight_scale: T3, mask_index?: T4,"
        " input_zero_point?: T1, weight_zero_point?: T2, past?: T3, do_rotary?: int,"
        " mask_filter_value?: float, num_heads: int, past_present_share_buffer?: int,"
        " scale?: float, unidirectional: int = 0) -> (output: T3, present?: T3);"
        " T1: int8 uint8; T2: int8 uint8; T3: float float16; T4: int32",
    )

    def infer(
        x: Fact, weight: Fact, bias: Fact, input_scale: Fact, weight_scale: Fact,
        mask: Fact | None = None, input_zero: Fact | None = None, weight_zero: Fact | None = None,
        past: Fact | None = None, *, num_heads: int, past_present_share_buffer: int | None,
        context: InferContext, **_: Any,
    ) -> tuple[Fact, ...]:  # fmt: skip
        same_size(size_of(x, -1), size_of(weight, 0), "input does not fit the weights")
        made = tensor(bias.dtype, x.shape)
        value_size = _value_size(weight, bias, None)
        output = tensor(bias.dtype, (size_of(x, 0), size_of(x, 1), value_size))
        present = _present(made, past, value_size, num_heads, bool(past_present_share_buffer))
        return (output, present)[: context.outputs]

    def reference(
        x: Array, weight: Array, bias: Array, input_scale: Array, weight_scale: Array,
        mask: Array | None = None, input_zero: Array | None = None,
        weight_zero: Array | None = None, past: Array | None = None, *, do_rotary: int | None,
        mask_filter_value: float | None, num_heads: int, past_present_share_buffer: int | None,
        scale: float | None, unidirectional: int,
    ) -> tuple[Array, Array]:  # fmt: skip
        left = x.astype(np.int32) - (0 if input_zero is None else input_zero.astype(np.int32))
        right = weight.astype(np.int32) - (
            0 if weight_zero is None else weight_zero.astype(np.int32)
        )
        steps = widen(input_scale) * widen(weight_scale)
        flat = integer_product(left, right).astype(np.float32) * steps + widen(bias)
        projected = [split_heads(part, num_heads) for part in np.split(flat, 3, axis=-1)]
        output, present = _self_attention(
            projected, mask, None if past is None else widen(past), None, None,
            filtered=mask_filter_value, shared=bool(past_present_share_buffer),
            rotary=projected[0].shape[-1] if do_rotary else None, scale=scale,
            unidirectional=bool(unidirectional),
        )  # fmt: skip
        return output.astype(bias.dtype), present.astype(bias.dtype)


def _packed_attention(
    parts: list[Array], limits: Array, heads: int, scale: float | None,
    attention_bias: Array | None,
) -> Array:  # fmt: skip
    """Attention within each of the sequences that stand behind each other as rows of tokens."""
    results = np.zeros((len(parts[0]), parts[2].shape[1]), np.float32)
    for index, (start, end) in enumerate(pairwise(limits)):
        query, key, value = (split_heads(part[None, start:end], heads) for part in parts)
        bias = None
        if attention_bias is not None:
            which = index if len(attention_bias) > 1 else 0
            bias = widen(attention_bias[which : which + 1, :, : end - start, : end - start])
        results[start:end] = merge_heads(attend(query, key, value, scale, bias)[0])[0]
    return results


class PackedAttention(Operator):
    """Attention over sequences without padding, whose tokens stand behind each other."""

    domain = "com.microsoft"
    signatures = (
        "1(input: T, weights: T, bias: T, token_offset: M, cumulative_sequence_length: M,"
        " attention_bias?: T, num_heads: int, qkv_hidden_sizes?: ints, scale?: float)"
        " -> output: T; T: float float16; M: int32",
    )

    def infer(
        x: Fact, weights: Fact, bias: Fact, *rest: Fact | None,
        qkv_hidden_sizes: tuple[int, ...] | None, **_: Any,
    ) -> Fact:  # fmt: skip
        return tensor(x.dtype, (size_of(x, 0), _value_size(weights, bias, qkv_hidden_sizes)))

    def reference(
        x: Array, weights: Array, bias: Array, offsets: Array, limits: Array,
        attention_bias: Array | None = None, *, num_heads: int,
        qkv_hidden_sizes: tuple[int, ...] | None, scale: float | None,
    ) -> Array:  # fmt: skip
        projected = widen(x) @ widen(weights) + widen(bias)
        query, key, _ = hidden_sizes(projected.shape[-1], qkv_hidden_sizes)
        parts = np.split(projected, [query, query + key], axis=-1)
        output = _packed_attention(parts, limits, num_heads, scale, attention_bias)
        return output.astype(x.dtype)


class PackedMultiHeadAttention(Operator):
    """Attention over projected queries, keys and values of sequences without padding."""

    domain = "com.microsoft"
    signatures = (
        "1(query: T, key?: T, value?: T, bias?: T, token_offset: M, cumulative_sequence_length: M,"
        " attention_bias?: T, mask_filter_value?: float, num_heads: int, scale?: float)"
        " -> output: T; T: float float16; M: int32",
    )

    def infer(
        query: Fact, key: Fact | None, value: Fact | None, *rest: Fact | None, num_heads: int,
        **_: Any,
    ) -> Fact:  # fmt: skip
        size = times(num_heads, size_of(query, 3)) if value is None else size_of(value, 1)
        return tensor(query.dtype, (size_of(query, 0), size))

    def reference(
        query: Array, key: Array | None, value: Array | None, bias: Array | None, offsets: Array,
        limits: Array, attention_bias: Array | None = None, *, mask_filter_value: float | None,
        num_heads: int, scale: float | None,
    ) -> Array:  # fmt: skip
        if key is None or value is None:
            parts = [widen(query[:, :, which]).reshape(len(query), -1) for which in range(3)]
        else:
            parts = [widen(query), widen(key), widen(value)]
        if bias is not None:
            ends = np.cumsum([part.shape[1] for part in parts])[:-1]
            shifts = np.split(widen(bias), ends)
            parts = [part + shift for part, shift in zip(parts, shifts, strict=True)]
        output = _packed_attention(parts, limits, num_heads, scale, attention_bias)
        return output.astype(query.dtype)
