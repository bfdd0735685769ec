# mypy: disable-error-code="misc, no-any-return"
"""Attention over projected queries, keys and values: whole sequences, or one token at a time."""

from typing import Any

import numpy as np

from sardonyx.dims import Size
from sardonyx.dtypes import DataType
from sardonyx.errors import EvaluationError
from sardonyx.graph import Node, TensorType
from sardonyx.ops.allocate import repeat
from sardonyx.ops.evaluate import Context
from sardonyx.ops.fact import Fact, tensor
from sardonyx.ops.infer import InferContext
from sardonyx.ops.ms_arithmetic import over, plus, scalar, size_of, times
from sardonyx.ops.ms_attention_math import (
    attend,
    joined,
    merge_heads,
    score_bias,
    split_heads,
    stored,
)
from sardonyx.ops.operator import Operator
from sardonyx.ops.precision import Array, widen
from sardonyx.record import record


@record
class _Layout:
    """Sizes of the inputs, however they are packed."""

    batch: Size | None
    queries: Size | None
    keys: Size | None
    head: Size | None
    value_head: Size | None


def _layout(query: Fact, key: Fact | None, value: Fact | None, heads: int) -> _Layout:
    batch, queries = size_of(query, 0), size_of(query, 1)
    if query.rank == 5:
        head = size_of(query, 4)
        return _Layout(batch, queries, queries, head, head)
    if key is None:
        head = over(size_of(query, 2), 3 * heads)
        return _Layout(batch, queries, queries, head, head)
    head = over(size_of(query, 2), heads)
    if key.rank == 5:
        return _Layout(batch, queries, size_of(key, 1), head, size_of(key, 4))
    if key.rank == 4:
        return _Layout(batch, queries, size_of(key, 2), head, size_of(value, 3))
    if key.rank is None:
        return _Layout(batch, queries, None, head, None)
    return _Layout(batch, queries, size_of(key, 1), head, over(size_of(value, 2), heads))


def _facts(
    layout: _Layout, query: Fact, past: tuple[Fact | None, Fact | None], heads: int, *,
    length: Fact | None, score_type: DataType | None,
) -> tuple[Fact, ...]:  # fmt: skip
    dtype = query.dtype
    output = (layout.batch, layout.queries, times(heads, layout.value_head))
    if length is not None and past[0] is not None and past[1] is not None:
        kept = (tensor(dtype, past[0].shape), tensor(dtype, past[1].shape))
        scores = (layout.batch, heads, layout.queries, plus(_size(length), layout.keys))
    else:
        before = 0 if past[0] is None else size_of(past[0], 2)
        total = plus(before, layout.keys)
        sizes = (layout.batch, heads, total)
        kept = (
            tensor(dtype, (*sizes, layout.head)),
            tensor(dtype, (*sizes, layout.value_head)),
        )
        scores = (layout.batch, heads, layout.queries, total)
    return tensor(dtype, output), *kept, tensor(score_type or dtype, scores)


def _size(length: Fact) -> Size | None:
    sizes = length.sizes()
    return sizes[0] if sizes and len(sizes) == 1 else None


def _score_type(node: Node) -> DataType | None:
    """The type that scores are declared to have; without one they have that of the queries."""
    declared = node.outputs[3].declared if len(node.outputs) > 3 else None
    if isinstance(declared, TensorType) and isinstance(declared.element, DataType):
        return declared.element or None
    return None


def _typed(made: tuple[Array, ...], query: Array, node: Node) -> tuple[Array, ...]:
    kind = _score_type(node)
    scores = made[3].astype(kind.numpy if kind else query.dtype)
    return *(item.astype(query.dtype) for item in made[:3]), scores


def _unpacked(
    query: Array, key: Array | None, value: Array | None, bias: Array | None, heads: int
) -> tuple[Array, Array, Array]:
    """Queries, keys and values as B, N, S, H, whatever form they come in, with their bias."""
    if query.ndim == 5:
        parts = [widen(query[:, :, :, which]) for which in range(3)]
        parts = [part.reshape(*part.shape[:2], -1) for part in parts]
    elif key is None:
        parts = np.split(widen(query), 3, axis=-1)
    elif key.ndim == 5:
        pair = [widen(key[:, :, :, which]) for which in range(2)]
        parts = [widen(query), *(part.reshape(*part.shape[:2], -1) for part in pair)]
    elif value is None:
        raise EvaluationError("there are keys but no values")
    else:
        parts = [widen(query), widen(key), widen(value)]
    whole = parts[1].ndim == 4
    if bias is not None:
        sizes = [parts[0].shape[-1]] * 2
        shifts = np.split(widen(bias), np.cumsum(sizes))
        flat = range(1 if whole else 3)
        parts = [part + shifts[at] if at in flat else part for at, part in enumerate(parts)]
    if whole:
        return split_heads(parts[0], heads), parts[1], parts[2]
    return split_heads(parts[0], heads), split_heads(parts[1], heads), split_heads(parts[2], heads)


class MultiHeadAttention(Operator):
    """Attention over projected queries, keys and values, which may come packed in one another."""

    domain = "com.microsoft"
    signatures = (
        "1(query: T, key?: T, value?: T, bias?: T, key_padding_mask?: M, attention_bias?: T,"
        " past_key?: T, past_value?: T, past_sequence_length?: M, cache_indirection?: M,"
        " mask_filter_value?: float, num_heads: int, scale?: float, unidirectional: int = 0)"
        " -> (output: T, present_key?: T, present_value?: T, qk?: QK);"
        " T: bfloat16 float float16; QK: bfloat16 float float16; M: int32",
    )

    def infer(
        query: Fact, key: Fact | None = None, value: Fact | None = None, bias: Fact | None = None,
        mask: Fact | None = None, attention_bias: Fact | None = None, past_key: Fact | None = None,
        past_value: Fact | None = None, past_length: Fact | None = None,
        indirection: Fact | None = None, *, num_heads: int, context: InferContext, **_: Any,
    ) -> tuple[Fact, ...]:  # fmt: skip
        layout = _layout(query, key, value, num_heads)
        past = (past_key, past_value)
        kind = _score_type(context.node)
        made = _facts(layout, query, past, num_heads, length=past_length, score_type=kind)
        return made[: context.outputs]

    def reference(
        query: Array, key: Array | None = None, value: Array | None = None,
        bias: Array | None = None, mask: Array | None = None, attention_bias: Array | None = None,
        past_key: Array | None = None, past_value: Array | None = None,
        past_length: Array | None = None, indirection: Array | None = None, *,
        mask_filter_value: float | None, num_heads: int, scale: float | None, unidirectional: int,
        context: Context,
    ) -> tuple[Array, ...]:  # fmt: skip
        if indirection is not None and past_length is not None:
            made = _decode(
                query, key, value, bias, mask, attention_bias, past_key, past_value,
                past_length, indirection, heads=num_heads, scale=scale, filtered=mask_filter_value,
            )  # fmt: skip
            return _typed(made, query, context.node)
        q, k, v = _unpacked(query, key, value, bias, num_heads)
        present_key, present_value, before = k, v, 0
        if past_key is not None and past_value is not None:
            if past_length is not None:
                before = int(scalar(past_length))
                present_key = stored(widen(past_key), before, k)
                present_value = stored(widen(past_value), before, v)
                end = before + k.shape[2]
                k, v = present_key[:, :, :end], present_value[:, :, :end]
            else:
                before = past_key.shape[2]
                k = present_key = joined(widen(past_key), k)
                v = present_value = joined(widen(past_value), v)
        bias_all = score_bias(
            attention_bias, mask, mask_filter_value, causal=bool(unidirectional) and q.shape[2] > 1,
            batch=len(q), queries=q.shape[2], keys=k.shape[2], before=before,
        )  # fmt: skip
        output, scores = attend(q, k, v, scale, bias_all)
        made = (merge_heads(output), present_key, present_value, scores)
        return _typed(made, query, context.node)


def _decode(
    query: Array, key: Array | None, value: Array | None, bias: Array | None, mask: Array | None,
    attention_bias: Array | None, past_key: Array | None, past_value: Array | None,
    past_length: Array | None, indirection: Array | None, *, heads: int, scale: float | None,
    filtered: float | None,
) -> tuple[Array, ...]:  # fmt: skip
    """One more token for each row of a batch; with beams, the past is found through other rows."""
    q, k, v = _unpacked(query, key, value, bias, heads)
    if past_key is None or past_value is None:
        present_key, present_value = k, v
    else:
        before = past_key.shape[2] if past_length is None else int(scalar(past_length))
        if past_length is None:
            present_key, present_value = joined(widen(past_key), k), joined(widen(past_value), v)
        else:
            present_key = stored(widen(past_key), before, k)
            present_value = stored(widen(past_value), before, v)
        k, v = present_key[:, :, : before + 1], present_value[:, :, : before + 1]
        if indirection is not None:
            rows = _source_rows(indirection, before + 1)
            at = np.arange(before + 1)
            k = k.swapaxes(1, 2)[rows, at].swapaxes(1, 2)
            v = v.swapaxes(1, 2)[rows, at].swapaxes(1, 2)
    if attention_bias is not None and 1 < len(attention_bias) < len(q):
        attention_bias = repeat(attention_bias, len(q) // len(attention_bias), 0)
    total = score_bias(
        attention_bias,
        mask,
        filtered,
        causal=False,
        batch=len(q),
        queries=1,
        keys=k.shape[2],
        before=0,
    )
    output, scores = attend(q, k, v, scale, total)
    return merge_heads(output), present_key, present_value, scores


def _source_rows(indirection: Array, length: int) -> Array:
    """For each row of a batch of beams and each position, the row its keys and values stand in."""
    batch, beams, _ = indirection.shape
    rows = indirection[:, :, :length] + np.arange(batch)[:, None, None] * beams
    rows[:, :, length - 1] = np.arange(batch * beams).reshape(batch, beams)
    return rows.reshape(batch * beams, length)


class DecoderMaskedMultiHeadAttention(Operator):
    """Attention of one new token to those before it, or to the keys and values of an encoder."""

    domain = "com.microsoft"
    signatures = (
        "1(query: T, key?: T, value?: T, mask_index?: M, attention_bias?: T, past_key?: T,"
        " past_value?: T, past_sequence_length?: M, beam_width?: M, cache_indirection?: M,"
        " bias?: T, mask_filter_value?: float, num_heads: int, output_qk?: int,"
        " past_present_share_buffer?: int, scale?: float)"
        " -> (output: T, present_key?: T, present_value?: T, qk?: QK);"
        " T: float float16; QK: float float16; M: int32",
    )

    def infer(
        query: Fact, key: Fact | None = None, value: Fact | None = None, mask: Fact | None = None,
        attention_bias: Fact | None = None, past_key: Fact | None = None,
        past_value: Fact | None = None, past_length: Fact | None = None, *rest: Fact | None,
        num_heads: int, past_present_share_buffer: int | None, context: InferContext, **_: Any,
    ) -> tuple[Fact, ...]:  # fmt: skip
        layout = _layout(query, key, value, num_heads)
        past, kind = (past_key, past_value), _score_type(context.node)
        length = past_length if past_present_share_buffer else None
        made = _facts(layout, query, past, num_heads, length=length, score_type=kind)
        return made[: context.outputs]

    def reference(
        query: Array, key: Array | None = None, value: Array | None = None,
        mask: Array | None = None, attention_bias: Array | None = None,
        past_key: Array | None = None, past_value: Array | None = None,
        past_length: Array | None = None, beam_width: Array | None = None,
        indirection: Array | None = None, bias: Array | None = None, *,
        mask_filter_value: float | None, num_heads: int, output_qk: int | None,
        past_present_share_buffer: int | None, scale: float | None, context: Context,
    ) -> tuple[Array, ...]:  # fmt: skip
        if query.shape[1] != 1:
            raise EvaluationError(f"{query.shape[1]} queries in a row where one token is expected")
        if int(scalar(beam_width, 1)) > 1 and indirection is None:
            raise EvaluationError("several beams need a cache_indirection")
        made = _decode(
            query, key, value, bias, mask, attention_bias, past_key, past_value,
            past_length if past_present_share_buffer else None, indirection,
            heads=num_heads, scale=scale, filtered=mask_filter_value,
        )  # fmt: skip
        return _typed(made, query, context.node)
