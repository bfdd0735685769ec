"""Attention in its spellings, as the forms that become one kernel.

Letters: B batch, N heads, M heads of keys, S queries, T keys (those of the past included), H size
of a head.
"""

import math
from collections.abc import Sequence

from sardonyx.compiler.forms import (
    Axis,
    Form,
    Join,
    NotLowered,
    View,
    binary,
    cast,
    fold,
    iota,
    number,
    reshape,
    select,
    transpose,
    unary,
    unsqueeze,
)
from sardonyx.compiler.fuse import permutation
from sardonyx.compiler.lowerings.contraction import matrix_product
from sardonyx.compiler.lowerings.fused import DOMAIN, part
from sardonyx.compiler.lowerings.request import Lowerings, Request
from sardonyx.dims import Size, floor_divide, product
from sardonyx.dtypes import DataType
from sardonyx.ops.ms_attention_math import LOWEST, MASK_FILTER

FLOAT, INT64 = DataType.FLOAT, DataType.INT64


def split_heads(x: Form, heads: int | None) -> Form:
    """B, S, N*H -> B, N, S, H; four axes stay as they are."""
    if len(x.shape) == 4:
        return x
    if not heads or len(x.shape) != 3:
        raise NotLowered("how many heads there are is not said")
    shape = (*x.shape[:2], heads, floor_divide(x.shape[2], heads))
    return transpose(reshape(x, shape), (0, 2, 1, 3))


def split_axis(x: Form, axis: int, sizes: tuple[Size, Size]) -> Form:
    """One axis as two; behind a change of their order, so that nothing has to move."""
    order = permutation(x) if isinstance(x, View) else None
    if order is None or not isinstance(x, View):
        return reshape(x, (*x.shape[:axis], *sizes, *x.shape[axis + 1 :]))
    inner = split_axis(x.source, order[axis], sizes)
    moved = [at + (at > order[axis]) for at in order]
    moved.insert(axis + 1, order[axis] + 1)
    return transpose(inner, moved)


def attend(
    request: Request, q: Form, k: Form, v: Form, *, scale: float, softcap: float = 0.0,
    bias: Form | None = None, empty: bool = False,
) -> Form:  # fmt: skip
    """B, N, S, H: what queries make of B, M, T, H values; `empty`: a row of -inf gives 0."""
    heads, shared = q.shape[1], k.shape[1]
    grouped = heads != shared
    if grouped:
        if not isinstance(heads, int) or not isinstance(shared, int) or heads % shared:
            raise NotLowered(f"{heads} heads that share {shared} have no native form")
        groups = (shared, heads // shared)
        q, k, v = split_axis(q, 1, groups), unsqueeze(k, [2]), unsqueeze(v, [2])
        bias = None if bias is None else _grouped_bias(bias, groups)
    last = len(q.shape) - 1
    scores = matrix_product(request, q, transpose(k, (*range(last - 1), last, last - 1))) * scale
    if softcap:
        scores = unary("tanh", scores / softcap) * softcap
    if bias is not None:
        scores = scores + bias
    weights = _weights(scores, last, empty)
    return matrix_product(request, weights, v)


def _grouped_bias(bias: Form, groups: tuple[int, int]) -> Form:
    if len(bias.shape) < 3:
        return bias
    axis = len(bias.shape) - 3
    if bias.shape[axis] == 1:
        return unsqueeze(bias, [axis])
    return split_axis(bias, axis, groups)


def _weights(scores: Form, last: int, empty: bool) -> Form:
    best = fold("max", scores, [last], -math.inf)
    if not empty:
        powers = unary("exp", scores - best)
        return powers * unary("reciprocal", fold("add", powers, [last], 0))
    powers = unary("exp", scores - select(binary("eq", best, -math.inf), 0.0, best))
    total = fold("add", powers, [last], 0)
    return powers * unary("reciprocal", select(binary("eq", total, 0.0), 1.0, total))


def merged(y: Form) -> Form:
    """B, N, S, H or B, M, N / M, S, H -> B, S, N*H."""
    *heads, length, size = y.shape[1:]
    order = (0, len(heads) + 1, *range(1, len(heads) + 1), len(heads) + 2)
    width: Size = size
    for count in heads:
        width = width * count
    return reshape(transpose(y, order), (y.shape[0], length, width))


def joined(past: Form | None, x: Form) -> Form:
    """Keys or values of the past and new ones behind each other."""
    if past is None:
        return x
    if len(past.shape) != 4 or len(x.shape) != 4 or past.dtype is not x.dtype:
        raise NotLowered("what is past is not laid out as what is new")
    shape = (*x.shape[:2], past.shape[2] + x.shape[2], x.shape[3])
    return Join(shape, x.dtype, (past, x), 2)


def scale_of(scale: float | None, head: Size) -> float:
    """What scores are multiplied by."""
    if scale:
        return scale
    if not isinstance(head, int):
        raise NotLowered("the size of a head is only known later")
    return 1 / math.sqrt(head)


def attention(
    request: Request, q: Form, k: Form, v: Form, mask: Form | None = None,
    past_key: Form | None = None, past_value: Form | None = None, valid: Form | None = None, *,
    is_causal: int, kv_num_heads: int | None, left_window_size: int, q_num_heads: int | None,
    qk_matmul_output_mode: int, right_window_size: int, scale: float | None, softcap: float,
    softmax_precision: int | None,
) -> tuple[Form, ...]:  # fmt: skip
    """softmax(Q K' scale + bias) V, with keys and values for the next step."""
    if len(request.outputs) > 3 or {q.dtype, k.dtype, v.dtype} != {FLOAT}:
        raise NotLowered("only floats without the scores have one kernel")
    if softmax_precision not in (None, FLOAT, DataType.FLOAT16, DataType.BFLOAT16):
        raise NotLowered("a softmax of doubles has no native form")
    packed = len(q.shape) == 3
    if scale == 0.0:
        raise NotLowered("scores that are all 0")
    q, k, v = (
        split_heads(q, q_num_heads),
        split_heads(k, kv_num_heads),
        split_heads(v, kv_num_heads),
    )
    k, v = joined(past_key, k), joined(past_value, v)
    queries, keys = q.shape[2], k.shape[2]
    offset = _offset(q, past_key, valid)
    limits = (bool(is_causal), left_window_size, right_window_size)
    bias = _limit(queries, keys, offset, valid, limits)
    if mask is not None:
        if mask.shape[-1] != keys:
            raise NotLowered("a mask that may be shorter than the keys")
        given = select(mask, number(0.0, FLOAT), -math.inf) if mask.dtype is DataType.BOOL else mask
        given = cast(given, FLOAT)
        bias = given if bias is None else bias + given
    made = attend(
        request, q, k, v, scale=scale_of(scale, q.shape[3]), softcap=softcap, bias=bias,
        empty=bias is not None,
    )  # fmt: skip
    shape = request.shape()
    y = merged(made) if packed else reshape(made, shape)
    return y, k, v


def _offset(q: Form, past_key: Form | None, valid: Form | None) -> Form:
    """Where the first query stands among the keys."""
    if valid is not None:
        return reshape(valid, (valid.shape[0], 1, 1, 1)) - number(q.shape[2], INT64)
    return number(0 if past_key is None else past_key.shape[2], INT64)


def _limit(
    queries: Size, keys: Size, offset: Form, valid: Form | None, limits: tuple[bool, int, int]
) -> Form | None:
    """-inf for keys that a query may not see; None where it may see all."""
    causal, left, right = limits
    key = iota((1, keys), 1)
    position = iota((queries, 1), 0) + offset
    conditions: list[Form] = []
    if valid is not None:
        conditions.append(binary("lt", key, reshape(valid, (valid.shape[0], 1, 1, 1))))
    if causal:
        conditions.append(binary("le", key, position))
    if left >= 0:
        conditions.append(binary("ge", key, position - left))
    if right >= 0:
        conditions.append(binary("le", key, position + right))
    if not conditions:
        return None
    allowed = conditions[0]
    for condition in conditions[1:]:
        allowed = binary("and", allowed, condition)
    return select(allowed, number(0.0, FLOAT), -math.inf)


def _score_bias(
    attention_bias: Form | None, mask: Form | None, filtered: float | None, *, causal: bool,
    q: Form, keys: Size, before: Size,
) -> Form | None:  # fmt: skip
    """What is added to scores: a bias, a mask, and that a query sees no later keys."""
    total: Form | None = None
    if mask is not None:
        outside = float(MASK_FILTER if filtered is None else filtered)
        total = select(_seen(mask, q, keys), number(0.0, FLOAT), outside)
    if causal:
        queries = q.shape[2]
        position = iota((queries, 1), 0) + number(before, INT64)
        later = binary("gt", iota((1, keys), 1), position)
        several = binary("gt", number(queries, INT64), 1)
        rest = number(0.0, FLOAT) if total is None else total
        total = select(binary("and", later, several), float(LOWEST), rest)
    if attention_bias is None:
        return total
    return attention_bias if total is None else attention_bias + total


def _seen(mask: Form, q: Form, keys: Size) -> Form:
    """Which keys are attended to, as B, 1, S or 1, T."""
    batch, queries = q.shape[0], q.shape[2]
    if len(mask.shape) == 1:
        if mask.shape[0] != batch and mask.shape[0] != batch * 2:
            raise NotLowered("a mask of offsets has no native form")
        at = iota((1, 1, 1, keys), 3)
        ends = cast(reshape(part(mask, 0, 0, batch), (batch, 1, 1, 1)), INT64)
        seen: Form = binary("lt", at, ends)
        if mask.shape[0] == batch:
            return seen
        starts = cast(reshape(part(mask, 0, batch, batch), (batch, 1, 1, 1)), INT64)
        return binary("and", seen, binary("ge", at, starts))
    seen = binary("gt", mask, 0)
    if len(mask.shape) == 4:
        seen = part(part(seen, 2, keys - queries, queries), 3, 0, keys)
    elif mask.shape[-1] != keys:
        raise NotLowered("a mask for another number of keys")
    return unsqueeze(seen, [1, 2] if len(mask.shape) == 2 else [1]) if len(mask.shape) < 4 else seen


def microsoft_attention(
    request: Request, x: Form, weights: Form, bias: Form | None = None, mask: Form | None = None,
    past: Form | None = None, attention_bias: Form | None = None, past_length: Form | None = None,
    *, do_rotary: int | None, mask_filter_value: float | None, num_heads: int,
    past_present_share_buffer: int | None, qkv_hidden_sizes: tuple[int, ...] | None,
    rotary_embedding_dim: int | None, scale: float | None, unidirectional: int,
) -> tuple[Form, ...]:  # fmt: skip
    """Self-attention that projects its input itself."""
    if do_rotary or past_present_share_buffer:
        raise NotLowered("rotation or a shared buffer of the past has no native form")
    projected = matrix_product(request, x, weights)
    if bias is not None:
        projected = projected + bias
    q, k, v = _projected_heads(projected, num_heads, qkv_hidden_sizes)
    same = k.shape == v.shape
    before: Size = 0
    if past is not None:
        before = past.shape[3]
        k, v = joined(_pick(past, 0, 0), k), joined(_pick(past, 0, 1), v)
    if len(request.outputs) > 1 and not same:
        raise NotLowered("keys and values of different sizes are not kept")
    total = _score_bias(
        attention_bias, mask, mask_filter_value, causal=bool(unidirectional), q=q,
        keys=k.shape[2], before=before,
    )  # fmt: skip
    made = merged(attend(request, q, k, v, scale=scale_of(scale, q.shape[3]), bias=total))
    if len(request.outputs) == 1:
        return (made,)
    shape = (2, *k.shape)
    return made, Join(shape, k.dtype, (unsqueeze(k, [0]), unsqueeze(v, [0])), 0)


def _pick(x: Form, axis: int, index: int) -> Form:
    """One slice along an axis, which goes."""
    rest = iter(range(len(x.shape)))
    axes = tuple(
        Axis(None, index) if at == axis else Axis(next(rest)) for at in range(len(x.shape))
    )
    return View((*x.shape[:axis], *x.shape[axis + 1 :]), x.dtype, x, axes)


def _projected_heads(x: Form, heads: int, sizes: tuple[int, ...] | None) -> list[Form]:
    """Queries, keys and values that stand behind each other along the last axis."""
    width = x.shape[-1]
    if not isinstance(width, int):
        raise NotLowered("how many columns are projected is only known later")
    if not sizes or len(set(sizes)) == 1:
        whole = reshape(x, (*x.shape[:2], 3, heads, width // 3 // heads))
        return [transpose(_pick(whole, 2, which), (0, 2, 1, 3)) for which in range(3)]
    starts = (0, sizes[0], sizes[0] + sizes[1])
    parts = [part(x, 2, start, size) for start, size in zip(starts, sizes, strict=True)]
    return [split_heads(item, heads) for item in parts]


def multi_head_attention(
    request: Request, query: Form, key: Form | None = None, value: Form | None = None,
    bias: Form | None = None, mask: Form | None = None, attention_bias: Form | None = None,
    past_key: Form | None = None, past_value: Form | None = None, past_length: Form | None = None,
    indirection: Form | None = None, *, mask_filter_value: float | None, num_heads: int,
    scale: float | None, unidirectional: int,
) -> tuple[Form, ...]:  # fmt: skip
    """Attention over projected queries, keys and values."""
    if len(request.outputs) > 3 or past_length is not None or indirection is not None:
        raise NotLowered("scores, or a shared buffer of the past, have no native form")
    q, k, v = _unpacked(query, key, value, bias, num_heads)
    before: Size = 0 if past_key is None else past_key.shape[2]
    k, v = joined(past_key, k), joined(past_value, v)
    total = _score_bias(
        attention_bias, mask, mask_filter_value, causal=bool(unidirectional), q=q,
        keys=k.shape[2], before=before,
    )  # fmt: skip
    made = attend(request, q, k, v, scale=scale_of(scale, q.shape[3]), bias=total)
    return merged(made), k, v


def _unpacked(
    query: Form, key: Form | None, value: Form | None, bias: Form | None, heads: int
) -> Sequence[Form]:
    """Queries, keys and values as B, N, S, H, whatever form they come in, with their bias."""
    if key is None and len(query.shape) == 3:
        return _projected_heads(query if bias is None else query + bias, heads, None)
    hidden = query.shape[2] if len(query.shape) == 3 else query.shape[2] * query.shape[4]
    if len(query.shape) == 5:
        parts = [_pick(query, 3, which) for which in range(3)]
    elif key is not None and len(key.shape) == 5:
        parts = [query, *(_pick(key, 3, which) for which in range(2))]
    elif key is None or value is None:
        raise NotLowered("there are keys but no values")
    elif len(key.shape) == 4:
        shifted = query if bias is None else query + part(bias, 0, 0, hidden)
        return [split_heads(shifted, heads), key, value]
    else:
        parts = [query, key, value]
    shape = (0, 2, 1, 3)
    made: list[Form] = []
    for position, item in enumerate(parts):
        inner = item.shape[2:]
        shift = None if bias is None else part(bias, 0, hidden * position, product(inner))
        total = item if shift is None else item + reshape(shift, inner)
        made.append(transpose(total, shape) if len(inner) == 2 else split_heads(total, heads))
    return made


LOWERINGS: Lowerings = {
    ("", "Attention"): attention,
    (DOMAIN, "Attention"): microsoft_attention,
    (DOMAIN, "MultiHeadAttention"): multi_head_attention,
}
