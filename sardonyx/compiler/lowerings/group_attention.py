"""Attention whose query heads share keys and values, with what is kept of them for the next step.

Letters as in `attention`; C is how many positions the past has room for.
"""

import math

from sardonyx.compiler.forms import (
    Form,
    NotLowered,
    binary,
    cast,
    iota,
    number,
    reshape,
    select,
    take,
    transpose,
)
from sardonyx.compiler.lowerings.attention import attend, merged, scale_of, split_heads
from sardonyx.compiler.lowerings.fused import DOMAIN, part, rotate, table_rows
from sardonyx.compiler.lowerings.request import Lowerings, Request
from sardonyx.dims import Size, floor_divide, maximum
from sardonyx.dtypes import DataType
from sardonyx.loops.nodes import symbols

FLOAT, INT64 = DataType.FLOAT, DataType.INT64


def group_query_attention(
    request: Request, query: Form, key: Form | None, value: Form | None, past_key: Form | None,
    past_value: Form | None, lengths: Form, total_length: Form, cosines: Form | None = None,
    sines: Form | None = None, positions: Form | None = None, attention_bias: Form | None = None,
    *more: Form | None, causal: int, do_rotary: int | None, k_quant_type: str,
    kv_cache_bit_width: int | None, kv_num_heads: int, local_window_size: int, num_heads: int,
    qk_norm_epsilon: float, qk_output: int, rotary_interleaved: int | None, scale: float | None,
    sliding_window_cache: int, smooth_softmax: int, softcap: float | None, v_quant_type: str,
) -> tuple[Form, ...]:  # fmt: skip
    """Causal attention over the past and new keys, of which each sequence has its own number."""
    plain = {k_quant_type, v_quant_type} == {"NONE"} and not sliding_window_cache
    if not plain or smooth_softmax == 1 or len(request.outputs) > 3 or any(more):
        raise NotLowered("quantized or sliding caches, sinks, norms and scores have no native form")
    total = _total(request)
    q, k, v = _heads(query, key, value, num_heads, kv_num_heads)
    batch, length = q.shape[0], q.shape[2]
    first = binary("eq", number(length, INT64), number(total, INT64))
    totals = cast(reshape(lengths, (batch, 1, 1, 1)), INT64) + 1
    before = select(first, 0, binary("max", totals - number(length, INT64), 0))
    if do_rotary and cosines is not None and sines is not None:
        places = reshape(before, (batch, 1)) + iota((1, length), 1)
        if positions is not None:
            start = reshape(part(part(positions, 0, 0, 1), 1, 0, 1), (1, 1))
            places = select(first, start + iota((1, length), 1), positions)
        angles = (table_rows(cosines, places), table_rows(sines, places))
        q, k = (rotate(x, *angles, bool(rotary_interleaved)) for x in (q, k))
    room = total if past_key is None else maximum(past_key.shape[2], total)
    keys, values = _kept(past_key, k, before, room), _kept(past_value, v, before, room)
    bias = _limit(length, total, before, totals, first, (bool(causal), local_window_size))
    if attention_bias is not None:
        if attention_bias.shape[-1] != total:
            raise NotLowered("a bias for another number of keys")
        bias = attention_bias + bias
    made = attend(
        request, q, part(keys, 2, 0, total), part(values, 2, 0, total),
        scale=scale_of(scale, q.shape[3]), softcap=softcap or 0.0, bias=bias, empty=True,
    )  # fmt: skip
    return merged(made), keys, values


def _total(request: Request) -> Size:
    """The length of the longest sequence, which sizes must tell: a feed would tell it too late."""
    fact = request.inputs[6]
    sizes = None if fact is None else fact.sizes()
    if not sizes or sizes[0] is None or not symbols(sizes[0]) <= set(request.bound):
        raise NotLowered("the total length is not known from sizes")
    return sizes[0]


def _heads(
    query: Form, key: Form | None, value: Form | None, heads: int, groups: int
) -> tuple[Form, Form, Form]:
    if key is not None and value is not None:
        return split_heads(query, heads), split_heads(key, groups), split_heads(value, groups)
    count = heads + 2 * groups
    shape = (*query.shape[:2], count, floor_divide(query.shape[2], count))
    joint = reshape(query, shape)
    q = part(joint, 2, 0, heads)
    k, v = part(joint, 2, heads, groups), part(joint, 2, heads + groups, groups)
    return transpose(q, (0, 2, 1, 3)), transpose(k, (0, 2, 1, 3)), transpose(v, (0, 2, 1, 3))


def _kept(past: Form | None, x: Form, before: Form, room: Size) -> Form:
    """`room` positions: those of the past, new ones behind them, and zeros."""
    sizes = (*x.shape[:2], room, x.shape[3])
    at = [iota((*(1,) * axis, size, *(1,) * (3 - axis)), axis) for axis, size in enumerate(sizes)]
    made = take(x, [at[0], at[1], at[2] - before, at[3]])
    if past is None:
        return made
    return select(binary("lt", at[2], before), take(past, at), made)


def _limit(
    queries: Size, keys: Size, before: Form, totals: Form, first: Form, limits: tuple[bool, int]
) -> Form:
    """-inf for keys that a query may not see."""
    causal, window = limits
    key = iota((1, 1, 1, keys), 3)
    position = iota((1, 1, queries, 1), 2) + before
    end = before + number(queries, INT64)
    seen: Form = binary("lt", key, select(first, binary("min", end, totals), end))
    if causal:
        seen = binary("and", seen, binary("le", key, position))
        if window > 0:
            seen = binary("and", seen, binary("gt", key, position - window))
    return select(seen, number(0.0, FLOAT), -math.inf)


LOWERINGS: Lowerings = {(DOMAIN, "GroupQueryAttention"): group_query_attention}
