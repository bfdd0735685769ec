# mypy: disable-error-code="misc, no-any-return"
"""Attention in which groups of query heads share keys, and the rotation that goes with it."""

from typing import Any

import ml_dtypes
import numpy as np

from sardonyx.dims import maximum
from sardonyx.errors import EvaluationError, InferenceError
from sardonyx.ops.allocate import repeat
from sardonyx.ops.fact import Fact, tensor
from sardonyx.ops.infer import InferContext
from sardonyx.ops.ms_arithmetic import over, plus, scalar, size_of, times
from sardonyx.ops.ms_attention_math import merge_heads, rotate, split_heads
from sardonyx.ops.ms_normalization import normalize
from sardonyx.ops.operator import Operator
from sardonyx.ops.precision import Array, widen
from sardonyx.record import record


class RotaryEmbedding(Operator):
    """Turns pairs of each head's elements by angles that depend on their position."""

    domain = "com.microsoft"
    signatures = (
        "1(input: T, position_ids: M, cos_cache: T, sin_cache: T, interleaved?: int,"
        " is_packed_batching?: int, num_heads?: int, rotary_embedding_dim?: int, scale?: float)"
        " -> output: T; T: bfloat16 float float16; M: int64",
    )

    def infer(x: Fact, *rest: Fact, **_: Any) -> Fact:
        if x.rank not in (None, 3, 4):
            raise InferenceError(f"the input {x} has neither 3 nor 4 axes")
        return tensor(x.dtype, x.shape)

    def reference(
        x: Array, positions: Array, cosines: Array, sines: Array, *, interleaved: int | None,
        is_packed_batching: int | None, num_heads: int | None, rotary_embedding_dim: int | None,
        scale: float | None,
    ) -> Array:  # fmt: skip
        heads = x
        if x.ndim == 3:
            hidden = x.shape[2]
            size = 2 * cosines.shape[1]
            if rotary_embedding_dim:
                if not num_heads:
                    raise EvaluationError("rotary_embedding_dim is given without num_heads")
                size = hidden // num_heads
            heads = split_heads(x, hidden // size)
        batch, _, length, _ = heads.shape
        if positions.ndim < 2:  # where the first row of all begins, or that of each batch
            positions = positions + np.arange(length)
        positions = np.broadcast_to(positions, (batch, length))
        turned = rotate(
            widen(heads), positions, widen(cosines), widen(sines), interleaved=bool(interleaved)
        )
        return (merge_heads(turned) if x.ndim == 3 else turned).astype(x.dtype)


@record
class _Store:
    """How keys or values are kept from one step to the next: as they are, or quantized."""

    dtype: np.dtype[Any]
    scale: Array | None
    bits: int

    def load(self, kept: Array) -> Array:
        """Stored N, T, H as float32."""
        if self.scale is None:
            return widen(kept)
        codes = kept.astype(np.float32)
        if self.bits == 4:
            low, high = (kept & 15).astype(np.float32) - 8, (kept >> 4).astype(np.float32) - 8
            codes = np.stack([low, high], -1).reshape(*kept.shape[:-1], -1)
        return codes * self._steps(codes.shape)

    def save(self, x: Array) -> Array:
        """float32 N, T, H as it is stored."""
        if self.scale is None:
            return x.astype(self.dtype)
        ratio = x / self._steps(x.shape)
        if self.dtype == np.dtype(ml_dtypes.float8_e4m3fn):
            return np.clip(ratio, -448, 448).astype(self.dtype)
        least = -(1 << (self.bits - 1))
        codes = np.clip(np.rint(ratio), least, -least - 1).astype(np.int32)
        if self.bits == 8:
            return codes.astype(self.dtype)
        pairs = (codes + 8).astype(np.uint8)
        return pairs[..., 0::2] | pairs[..., 1::2] << 4

    def _steps(self, shape: tuple[int, ...]) -> Array:
        """The scale of each head and element; one for all where there is but one."""
        assert self.scale is not None
        heads, _, size = shape
        wide: Array = self.scale.astype(np.float32)
        return wide.reshape(()) if wide.size == 1 else wide.reshape(heads, 1, size)


@record
class _Step:
    """What one call of the operator does to each sequence of the batch."""

    first: bool
    causal: bool
    window: int
    sliding: bool
    softcap: float
    scale: float

    def resident(self, total: int, capacity: int) -> int:
        """How many positions a sliding cache holds after `total` tokens."""
        if total <= capacity:
            return total
        freed = capacity - self.window + 1
        return total - freed * -(-(total - capacity) // freed)

    def seen(self, places: Array, keys: Array) -> Array:
        """Which keys each query may attend to, by their positions."""
        if not self.causal:
            return np.ones((len(places), len(keys)), np.bool_)
        seen = keys <= places[:, None]
        if self.window > 0:
            seen &= keys > places[:, None] - self.window
        return seen


def _weights(scores: Array, seen: Array, sink: Array | None) -> Array:
    """Softmax over the keys that are seen; a sink takes its share and gives nothing."""
    scores = np.where(seen, scores, -np.inf)
    peak = scores.max(-1, keepdims=True, initial=-np.inf)
    if sink is not None:
        peak = np.maximum(peak, sink)
    peak = np.where(np.isfinite(peak), peak, 0)
    powers = np.exp(scores - peak)
    total = powers.sum(-1, keepdims=True)
    if sink is not None:
        total = total + np.exp(sink - peak)
    return powers / np.where(total == 0, 1, total)


class GroupQueryAttention(Operator):
    """Causal attention whose query heads share keys and values, with a cache and rotation."""

    domain = "com.microsoft"
    signatures = (
        "1(query: T, key?: T, value?: T, past_key?: T_CACHE, past_value?: T_CACHE, seqlens_k: M,"
        " total_sequence_length: M, cos_cache?: T, sin_cache?: T, position_ids?: tensor(int64),"
        " attention_bias?: T, head_sink?: T, k_scale?: T_KV_SCALE, v_scale?: T_KV_SCALE,"
        " q_norm_weight?: T, k_norm_weight?: T, causal: int = 1, do_rotary?: int,"
        " k_quant_type: string = 'NONE', kv_cache_bit_width?: int, kv_num_heads: int,"
        " local_window_size: int = -1, num_heads: int, qk_norm_epsilon: float = 1e-06,"
        " qk_output: int = 0, rotary_interleaved?: int, scale?: float,"
        " sliding_window_cache: int = 0, smooth_softmax: int = -1, softcap?: float,"
        " v_quant_type: string = 'NONE')"
        " -> (output: T, present_key?: T_CACHE, present_value?: T_CACHE, output_qk?: T);"
        " T: bfloat16 float float16; T_CACHE: bfloat16 float float16 float8e4m3fn int8 uint8;"
        " T_KV_SCALE: float; M: int32",
    )

    def infer(
        query: Fact, key: Fact | None, value: Fact | None, past_key: Fact | None,
        past_value: Fact | None, lengths: Fact, total_length: Fact, *rest: Fact | None,
        kv_num_heads: int, num_heads: int, sliding_window_cache: int,
        kv_cache_bit_width: int | None, context: InferContext, **_: Any,
    ) -> tuple[Fact, ...]:  # fmt: skip
        batch, length, hidden = size_of(query, 0), size_of(query, 1), size_of(query, 2)
        packed = num_heads + 2 * kv_num_heads
        head = over(hidden, packed if key is None else num_heads)
        sizes = total_length.sizes()
        total = sizes[0] if sizes and len(sizes) == 1 else None
        before = size_of(past_key, 2)
        if past_key is None:
            kept = total
        elif sliding_window_cache:
            kept = before
        else:
            kept = None if total is None or before is None else maximum(before, total)
        stored = past_key or query
        width = size_of(past_key, 3) if kv_cache_bit_width == 4 and past_key else head
        cache = tensor(stored.dtype, (batch, kv_num_heads, kept, width))
        output = tensor(query.dtype, (batch, length, times(num_heads, head)))
        scores = tensor(query.dtype, (batch, num_heads, length, plus(total)))
        return (output, cache, cache, scores)[: context.outputs]

    def reference(
        query: Array, key: Array | None, value: Array | None, past_key: Array | None,
        past_value: Array | None, lengths: Array, total_length: Array,
        cosines: Array | None = None, sines: Array | None = None, positions: Array | None = None,
        attention_bias: Array | None = None, head_sink: Array | None = None,
        k_scale: Array | None = None, v_scale: Array | None = None,
        q_norm: Array | None = None, k_norm: Array | None = None, *, causal: int,
        do_rotary: int | None, k_quant_type: str, kv_cache_bit_width: int | None,
        kv_num_heads: int, local_window_size: int, num_heads: int, qk_norm_epsilon: float,
        qk_output: int, rotary_interleaved: int | None, scale: float | None,
        sliding_window_cache: int, smooth_softmax: int, softcap: float | None, v_quant_type: str,
    ) -> tuple[Array, ...]:  # fmt: skip
        q, k, v = _group_heads(query, key, value, num_heads, kv_num_heads)
        if q_norm is not None and k_norm is not None:
            q = normalize(q, (-1,), qk_norm_epsilon, centre=False)[0] * widen(q_norm)
            k = normalize(k, (-1,), qk_norm_epsilon, centre=False)[0] * widen(k_norm)
        longest = int(scalar(total_length))
        step = _Step(
            q.shape[2] == longest, bool(causal), local_window_size, bool(sliding_window_cache),
            softcap or 0.0, scale or float(1 / np.sqrt(q.shape[-1])),
        )  # fmt: skip
        totals = lengths.reshape(-1).astype(np.int64) + 1
        if do_rotary and cosines is not None and sines is not None:
            places = _positions(step, positions, totals, q.shape[2])
            angles = (widen(cosines), widen(sines))
            pairs = bool(rotary_interleaved)
            q, k = (rotate(x, places, *angles, interleaved=pairs) for x in (q, k))
        stored = query.dtype if past_key is None else past_key.dtype
        bits = kv_cache_bit_width or 8
        stores = (
            _Store(stored, k_scale if k_quant_type != "NONE" else None, bits),
            _Store(stored, v_scale if v_quant_type != "NONE" else None, bits),
        )
        sink = _sink(head_sink, smooth_softmax, num_heads)
        made = _grouped(
            step, (q, k, v), (past_key, past_value), stores, totals, longest, attention_bias, sink,
            after=qk_output == 2,
        )  # fmt: skip
        output, present_key, present_value, scores = made
        return (
            merge_heads(output).astype(query.dtype), present_key, present_value,
            scores.astype(query.dtype),
        )  # fmt: skip


def _group_heads(
    query: Array, key: Array | None, value: Array | None, heads: int, groups: int
) -> list[Array]:
    if key is not None and value is not None:
        parts = [(query, heads), (key, groups), (value, groups)]
        return [split_heads(widen(part), count) for part, count in parts]
    joint = split_heads(widen(query), heads + 2 * groups)
    return np.split(joint, [heads, heads + groups], axis=1)


def _positions(step: _Step, given: Array | None, totals: Array, length: int) -> Array:
    """B, S positions of the queries and new keys."""
    ahead = np.arange(length)
    if given is not None:
        return given.reshape(-1)[:1, None] + ahead + 0 * totals[:, None] if step.first else given
    starts = np.zeros_like(totals) if step.first else totals - length
    return np.maximum(starts[:, None] + ahead, 0)


def _sink(head_sink: Array | None, smooth: int, heads: int) -> Array | None:
    """What each head's softmax leaves unspent, as N, 1, 1."""
    if head_sink is not None:
        return widen(head_sink).reshape(heads, 1, 1)
    return np.zeros((heads, 1, 1), np.float32) if smooth == 1 else None


def _grouped(
    step: _Step, parts: tuple[Array, Array, Array], past: tuple[Array | None, Array | None],
    stores: tuple[_Store, _Store], totals: Array, longest: int, attention_bias: Array | None,
    sink: Array | None, *, after: bool,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    """Attention sequence by sequence: outputs, what is kept of keys and values, and scores."""
    q, k, v = parts
    batch, heads, length, _ = q.shape
    capacity = 0 if past[0] is None else past[0].shape[2]
    kept = capacity if step.sliding else max(capacity, longest)
    presents = [
        np.zeros((batch, k.shape[1], kept, store.save(k[0, :, :0]).shape[-1]), store.dtype)
        for store in stores
    ]
    output = np.zeros_like(q)
    reported = np.zeros((batch, heads, length, longest), np.float32)
    for row, total in enumerate(totals.tolist()):
        before = 0 if step.first else total - k.shape[2]
        old = step.resident(before, capacity) if step.sliding else before
        keys, values = (
            _extended(past[which], row, old, new[row], store)
            for which, (new, store) in enumerate(zip((k, v), stores, strict=True))
        )
        left = step.resident(total, capacity) if step.sliding else keys.shape[1]
        end = before + k.shape[2]
        for present, content in zip(presents, (keys, values), strict=True):
            present[row, :, :left] = content[:, content.shape[1] - left :]
        if step.first:
            end = min(end, total)
        count = end - (before - old)
        ahead = np.arange(length) + (0 if step.first else total - length)
        places = np.arange(before - old, end)
        output[row], scores = _attend_row(
            step, q[row], stores[0].load(keys[:, :count]), stores[1].load(values[:, :count]),
            _bias_row(attention_bias, row, places), step.seen(ahead, places), sink, after=after,
        )  # fmt: skip
        reported[row, :, :, before - old : end] = scores
    return output, presents[0], presents[1], reported


def _extended(past: Array | None, row: int, old: int, new: Array, store: _Store) -> Array:
    if past is None or old <= 0:
        return store.save(new)
    return np.concatenate([past[row, :, :old], store.save(new)], 1)


def _bias_row(bias: Array | None, row: int, places: Array) -> Array | None:
    if bias is None:
        return None
    return widen(bias[row if len(bias) > 1 else 0][:, :, places])


def _attend_row(
    step: _Step, q: Array, k: Array, v: Array, bias: Array | None, seen: Array,
    sink: Array | None, *, after: bool,
) -> tuple[Array, Array]:  # fmt: skip
    """Attention of one sequence: N, S, H queries against the keys of fewer heads."""
    share = len(q) // len(k)
    k, v = repeat(k, share, 0), repeat(v, share, 0)
    scores = q @ k.swapaxes(-1, -2) * np.float32(step.scale)
    if step.softcap > 0:
        scores = np.float32(step.softcap) * np.tanh(scores / np.float32(step.softcap))
    if bias is not None:
        scores = scores + bias
    weights = _weights(scores, seen, sink)
    return weights @ v, weights if after else np.where(seen, scores, 0)
