# mypy: disable-error-code="misc"
"""Scaled dot-product attention, with heads, caches, masks and windows."""

from typing import Any

import numpy as np

from sardonyx.dims import Size, floor_divide
from sardonyx.dtypes import DataType, data_type
from sardonyx.errors import EvaluationError, InferenceError
from sardonyx.graph import Graph, Value
from sardonyx.ops.attention_function import expand_attention, expand_flex_attention
from sardonyx.ops.build import Builder
from sardonyx.ops.element_type import element_type
from sardonyx.ops.evaluate import Context
from sardonyx.ops.fact import Fact, Sizes, same_size, tensor
from sardonyx.ops.operator import Operator
from sardonyx.ops.precision import Array, widen


def split_heads(x: Array, heads: int | None) -> Array:
    """[batch, length, heads * size] -> [batch, heads, length, size]; four axes stay as they are.

    >>> split_heads(np.zeros((2, 5, 12)), 3).shape
    (2, 3, 5, 4)
    """
    if x.ndim == 4:
        return x
    if x.ndim != 3 or not heads or x.shape[2] % heads:
        raise EvaluationError(f"an input of shape {list(x.shape)} has no {heads} heads")
    return x.reshape(*x.shape[:2], heads, x.shape[2] // heads).swapaxes(1, 2)


def merge_heads(x: Array) -> Array:
    """[batch, heads, length, size] -> [batch, length, heads * size]."""
    batch, heads, length, size = x.shape
    return x.swapaxes(1, 2).reshape(batch, length, heads * size)


def grouped_product(left: Array, right: Array) -> Array:
    """A matrix product for each head of `left`, each head of `right` serving a group of them."""
    heads, shared = left.shape[1], right.shape[1]
    if shared == 0 or heads % shared:
        raise EvaluationError(f"{heads} query heads are no multiple of {shared} key heads")
    groups = left.reshape(left.shape[0], shared, heads // shared, *left.shape[2:])
    product = groups @ right[:, :, None]
    return product.reshape(left.shape[0], heads, *product.shape[3:])


def scaled_scores(q: Array, k: Array, scale: float | None) -> Array:
    """Q K' scale; both factors are scaled by its root, and every step is rounded to Q's type."""
    scale = q.shape[3] ** -0.5 if scale is None else scale
    root = np.sqrt(abs(scale)).astype(q.dtype)
    left, right = widen(q * root), widen((k * root).swapaxes(2, 3))
    scores = grouped_product(left, right).astype(q.dtype)
    return widen(-scores if scale < 0 else scores)


def softmax(x: Array) -> Array:
    """Along the last axis, which may be empty; every step but the sum is rounded to its type."""
    largest: Array = widen(x).max(-1, keepdims=True, initial=-np.inf).astype(x.dtype)
    exponentials: Array = np.exp(x - largest)
    total: Array = widen(exponentials).sum(-1, keepdims=True).astype(x.dtype)
    return exponentials / total


def mask_bias(mask: Array, keys: int) -> Array:
    """What a mask adds to scores; positions behind its end are not attended."""
    bias = np.where(mask, 0.0, -np.inf).astype(np.float32) if mask.dtype == bool else widen(mask)
    if bias.dtype.kind != "f":
        bias = bias.astype(np.float64)
    missing = keys - bias.shape[-1] if bias.ndim else 0
    if missing > 0:
        width = [(0, 0)] * (bias.ndim - 1) + [(0, missing)]
        bias = np.pad(bias, width, constant_values=-np.inf)
    return bias


def _allowed(
    queries: int,
    keys: int,
    offset: Any,
    valid: Array | None,
    is_causal: int,
    window: tuple[int, int],
) -> Array:
    """Which keys each query may see: [..., queries, keys]."""
    position = np.arange(queries)[:, None] + offset
    key = np.arange(keys)
    left, right = window
    allowed = np.ones((queries, keys), bool)
    if is_causal:
        allowed = allowed & (key <= position)
    if left >= 0:
        allowed = allowed & (key >= position - left)
    if right >= 0:
        allowed = allowed & (key <= position + right)
    return allowed if valid is None else allowed & (key < valid)


def _check_inputs(past_key: object, past_value: object, valid: object, *windows: int) -> None:
    if min(windows) < -1:
        raise InferenceError(f"a window size of {min(windows)} is neither -1 nor a size")
    if (past_key is None) != (past_value is None):
        raise InferenceError("past_key and past_value go together, one of them is absent")
    if valid is not None and past_key is not None:
        raise InferenceError("nonpad_kv_seqlen and past_key cannot be given together")


class Attention(Operator):
    """softmax(Q K' scale + bias) V for each head, where a key's head may serve several queries'."""

    signatures = (
        "23(Q: T1, K: T1, V: T2, attn_mask?: U, past_key?: T1, past_value?: T2, "
        "is_causal: int = 0, kv_num_heads?: int, q_num_heads?: int, "
        "qk_matmul_output_mode: int = 0, scale?: float, softcap: float = 0.0, "
        "softmax_precision?: int) -> (Y: T1, present_key?: T1, present_value?: T2, "
        "qk_matmul_output?: T1); T1: floats; T2: floats; U: numeric bool",
        "24(Q: T1, K: T1, V: T2, attn_mask?: U, past_key?: T1, past_value?: T2, "
        "nonpad_kv_seqlen?: tensor(int64), is_causal: int = 0, kv_num_heads?: int, "
        "q_num_heads?: int, qk_matmul_output_mode: int = 0, scale?: float, "
        "softcap: float = 0.0, softmax_precision?: int) -> (Y: T1, present_key?: T1, "
        "present_value?: T2, qk_matmul_output?: T1); T1: floats; T2: floats; U: numeric bool",
        "25(Q: T1, K: T1, V: T2, attn_mask?: U, past_key?: T1, past_value?: T2, "
        "nonpad_kv_seqlen?: tensor(int64), is_causal: int = 0, kv_num_heads?: int, "
        "left_window_size: int = -1, q_num_heads?: int, qk_matmul_output_mode: int = 0, "
        "right_window_size: int = -1, scale?: float, softcap: float = 0.0, "
        "softmax_precision?: int) -> (Y: T1, present_key?: T1, present_value?: T2, "
        "qk_matmul_output?: T1); T1: floats; T2: floats; U: numeric bool",
    )

    def infer(
        q: Fact, k: Fact, v: Fact, mask: Fact | None = None, past_key: Fact | None = None,
        past_value: Fact | None = None, valid: Fact | None = None, *,
        kv_num_heads: int | None, left_window_size: int, q_num_heads: int | None,
        qk_matmul_output_mode: int, right_window_size: int, **_: Any,
    ) -> tuple[Fact, Fact, Fact, Fact]:  # fmt: skip
        _check_inputs(past_key, past_value, valid, left_window_size, right_window_size)
        if not 0 <= qk_matmul_output_mode <= 3:
            raise InferenceError(f"qk_matmul_output_mode is {qk_matmul_output_mode}, not 0 to 3")
        packed = 3 in (q.rank, k.rank, v.rank)
        batch, heads, queries, size = _head_sizes(q, q_num_heads, "Q")
        key_batch, shared, length, key_size = _head_sizes(k, kv_num_heads, "K")
        value_batch, value_heads, value_length, value_size = _head_sizes(v, kv_num_heads, "V")
        batch = same_size(
            same_size(batch, key_batch, "batch of Q and K"), value_batch, "batch of V"
        )
        size = same_size(size, key_size, "head size of Q and K")
        shared = same_size(shared, value_heads, "heads of K and V")
        length = same_size(length, value_length, "length of K and V")
        if isinstance(heads, int) and isinstance(shared, int) and (not shared or heads % shared):
            raise InferenceError(f"{heads} query heads are no multiple of {shared} key heads")
        total = length
        if past_key is not None and past_value is not None:
            past = same_size(
                _size(past_key, 2), _size(past_value, 2), "length of past_key and past_value"
            )
            total = None if past is None or length is None else past + length
        if None in (q.rank, k.rank, v.rank) and not packed:
            y: Sizes | None = None
        elif packed:
            width = None if heads is None or value_size is None else heads * value_size
            y = (batch, queries, width)
        else:
            y = (batch, heads, queries, value_size)
        return (
            tensor(q.dtype, y),
            tensor(k.dtype or q.dtype, (batch, shared, total, size)),
            tensor(v.dtype, (batch, shared, total, value_size)),
            tensor(q.dtype, (batch, heads, queries, total)),
        )

    def reference(
        q: Array, k: Array, v: Array, mask: Array | None = None, past_key: Array | None = None,
        past_value: Array | None = None, valid: Array | None = None, *,
        is_causal: int, kv_num_heads: int | None, left_window_size: int, q_num_heads: int | None,
        qk_matmul_output_mode: int, right_window_size: int, scale: float | None, softcap: float,
        softmax_precision: int | None,
    ) -> tuple[Array, Array, Array, Array]:  # fmt: skip
        _check_inputs(past_key, past_value, valid, left_window_size, right_window_size)
        packed = q.ndim == 3
        q, k, v = (
            split_heads(q, q_num_heads),
            split_heads(k, kv_num_heads),
            split_heads(v, kv_num_heads),
        )
        offset: Any = 0
        if past_key is not None and past_value is not None:
            offset = past_key.shape[2]
            k, v = np.concatenate([past_key, k], 2), np.concatenate([past_value, v], 2)
        queries, keys = q.shape[2], k.shape[2]
        if valid is not None:
            valid = valid.reshape(-1, 1, 1, 1)
            offset = valid - queries
        scores = scaled_scores(q, k, scale)
        capped = softcap * np.tanh(scores / softcap) if softcap else scores
        window = (left_window_size, right_window_size)
        allowed = _allowed(queries, keys, offset, valid, is_causal, window)
        bias = np.where(allowed, 0, -np.inf).astype(scores.dtype)
        if mask is not None:
            bias = bias + mask_bias(mask, keys).astype(scores.dtype)
        biased = (capped + bias).astype(q.dtype)
        attended = bias.max(-1, keepdims=True, initial=-np.inf) != -np.inf
        precision = q.dtype if softmax_precision is None else data_type(softmax_precision).numpy
        weights = np.where(attended, softmax(biased.astype(precision)), 0).astype(q.dtype)
        y = grouped_product(widen(weights), widen(v)).astype(q.dtype)
        shown = (scores, capped, biased, weights)[qk_matmul_output_mode].astype(q.dtype)
        return merge_heads(y) if packed else y, k, v, shown

    function = expand_attention


def _head_sizes(x: Fact, heads: int | None, name: str) -> tuple[Size | None, ...]:
    """Batch, heads, length and head size of Q, K or V, as far as they are known."""
    if x.shape is None:
        return None, heads, None, None
    if x.rank == 4:
        return x.shape
    if x.rank != 3:
        raise InferenceError(f"{name} has rank {x.rank}, expected 3 or 4")
    if not heads:
        raise InferenceError(f"{name} has rank 3, which needs the number of heads as an attribute")
    batch, length, width = x.shape
    if isinstance(width, int) and width % heads:
        raise InferenceError(f"{name}'s last size {width} is no multiple of {heads} heads")
    return batch, heads, length, None if width is None else floor_divide(width, heads)


def _size(x: Fact, axis: int) -> Size | None:
    return None if x.shape is None or len(x.shape) <= axis else x.shape[axis]


class FlexAttention(Operator):
    """Attention whose scores and probabilities go through graphs the model gives."""

    domain = "ai.onnx.preview"
    signatures = (
        "1(Q: T1, K: T1, V: T1, prob_mod?: graph, scale?: float, score_mod?: graph, "
        "softmax_precision?: int) -> Y: T1; T1: floats",
    )

    def infer(
        q: Fact, k: Fact, v: Fact, *, prob_mod: Graph | None, scale: float | None,
        score_mod: Graph | None, softmax_precision: int | None, context: Any,
    ) -> Fact:  # fmt: skip
        batch, keys = _flexible_sizes(q, k, v)
        precision = _softmax_type(q.dtype, softmax_precision)
        scores = tensor(precision, (batch, _size(q, 1), _size(q, 2), keys))
        for graph in (score_mod, prob_mod):
            if graph is not None:
                context.infer(graph, [scores])
        return tensor(q.dtype, (batch, _size(q, 1), _size(q, 2), _size(v, 3)))

    def reference(
        q: Array, k: Array, v: Array, *, prob_mod: Graph | None, scale: float | None,
        score_mod: Graph | None, softmax_precision: int | None, context: Context,
    ) -> Array:  # fmt: skip
        _flexible_sizes(*(tensor(None, x.shape) for x in (q, k, v)))
        scores = scaled_scores(q, k, scale)
        element = _softmax_type(
            DataType.DOUBLE if q.dtype == np.float64 else None, softmax_precision
        )
        scores = scores.astype(element.numpy)
        if score_mod is not None:
            (scores,) = context.run(score_mod, [scores])
        weights = softmax(scores)
        if prob_mod is not None:
            (weights,) = context.run(prob_mod, [weights])
        return grouped_product(widen(weights), widen(v)).astype(q.dtype)

    def function(
        build: Builder, q: Value, k: Value, v: Value, *, prob_mod: Graph | None,
        scale: float | None, score_mod: Graph | None, softmax_precision: int | None,
    ) -> Value:  # fmt: skip
        if softmax_precision is None:
            element = _softmax_type(element_type(q), None)
        else:
            element = data_type(softmax_precision)
        return expand_flex_attention(build, (q, k, v), (score_mod, prob_mod), scale, element)


def _flexible_sizes(q: Fact, k: Fact, v: Fact) -> tuple[Size | None, Size | None]:
    """The batch and the number of keys; an error where Q, K and V do not fit each other."""
    for fact, name in ((q, "Q"), (k, "K"), (v, "V")):
        if fact.rank not in (None, 4):
            raise InferenceError(f"{name} has rank {fact.rank}, expected 4")
    same_size(_size(q, 3), _size(k, 3), "head size of Q and K")
    same_size(_size(k, 1), _size(v, 1), "heads of K and V")
    batch = same_size(_size(q, 0), _size(k, 0), "batch of Q and K")
    batch = same_size(batch, _size(v, 0), "batch of V")
    return batch, same_size(_size(k, 2), _size(v, 2), "length of K and V")


def _softmax_type(dtype: DataType | None, precision: int | None) -> DataType:
    if precision is not None:
        return data_type(precision)
    return DataType.DOUBLE if dtype == DataType.DOUBLE else DataType.FLOAT
