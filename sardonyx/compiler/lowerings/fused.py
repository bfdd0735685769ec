"""Operators of `com.microsoft` that join several others: activations, products, normalisations."""

import math
from collections.abc import Sequence

from sardonyx.compiler.forms import (
    Axis,
    Form,
    Gather,
    NotLowered,
    View,
    binary,
    cast,
    count,
    fold,
    iota,
    reshape,
    select,
    squeeze,
    take,
    transpose,
    unary,
    unsqueeze,
)
from sardonyx.compiler.lowerings.products import matmul
from sardonyx.compiler.lowerings.request import Lowering, Lowerings, Request
from sardonyx.dims import Size, floor_divide, product
from sardonyx.dtypes import DataType
from sardonyx.ops.fact import axis_of

DOMAIN = "com.microsoft"
LARGEST_INDEX = (1 << 31) - 1


def gelu(request: Request, x: Form, bias: Form | None = None) -> Form:
    """x + bias times the probability that a normal variable is below it."""
    return _gelu(x if bias is None else x + bias)


def _gelu(x: Form) -> Form:
    return 0.5 * x * (1.0 + unary("erf", x * math.sqrt(0.5)))


def fast_gelu(request: Request, x: Form, bias: Form | None = None) -> Form:
    """The same by the formula with tanh."""
    total = x if bias is None else x + bias
    inner = total * (0.7978845608028654 + 0.035677408136300125 * total * total)
    return 0.5 * total * (1.0 + unary("tanh", inner))


def quick_gelu(request: Request, x: Form, alpha: float) -> Form:
    """x * sigmoid(alpha * x)."""
    return x * unary("sigmoid", x * alpha)


def bias_add(request: Request, x: Form, bias: Form, skip: Form) -> Form:
    """x + bias + skip."""
    return x + bias + skip


def bias_split_gelu(request: Request, x: Form, bias: Form) -> Form:
    """The left half of x + bias times Gelu of the right one."""
    total = x + bias
    half = floor_divide(x.shape[-1], 2)
    return part(total, -1, 0, half) * _gelu(part(total, -1, half, half))


def part(x: Form, axis: int, start: Size, size: Size) -> Form:
    """Some of the elements along an axis."""
    place = axis_of(axis, len(x.shape))
    axes = tuple(Axis(at, start if at == place else 0) for at in range(len(x.shape)))
    return View((*x.shape[:place], size, *x.shape[place + 1 :]), x.dtype, x, axes)


def bias_softmax(
    request: Request, data: Form, bias: Form, axis: int, is_inner_broadcast: int
) -> Form:
    """Softmax of data + bias over all axes from one on, where shapes say how the bias repeats."""
    rank = len(data.shape)
    first = axis_of(axis, rank)
    missing = rank - len(bias.shape)
    ones = [size == 1 for size in bias.shape[: max(first - missing, 0)]]
    ordered = sorted(ones) if is_inner_broadcast else sorted(ones, reverse=True)
    if ones != ordered or (missing > 0 and is_inner_broadcast) or missing < 0:
        raise NotLowered("a bias that repeats in another way than its shape says")
    if bias.shape[first - missing :] != data.shape[first:]:
        raise NotLowered("a bias that repeats in another way than its shape says")
    total = data + bias
    if total.shape != data.shape:
        raise NotLowered("a bias that is larger than the data")
    axes = range(first, rank)
    powers = unary("exp", total - fold("max", total, axes, -math.inf))
    return powers * unary("reciprocal", fold("add", powers, axes, 0))


def bias_dropout(
    request: Request, x: Form, bias: Form, residual: Form | None = None, ratio: Form | None = None,
    training_mode: Form | None = None, *, seed: int | None,
) -> Form:  # fmt: skip
    """x + bias + residual: nothing is dropped when a model is used."""
    if len(request.outputs) > 1 or (request.given(4) and request.constant(4, "the mode").any()):
        raise NotLowered("training has no native form")
    total = x + bias
    return total if residual is None else total + residual


def fused_matmul(
    request: Request, a: Form, b: Form, *, alpha: float, transA: int, transB: int,
    transBatchA: int = 0, transBatchB: int = 0,
) -> Form:  # fmt: skip
    """alpha * A * B, with axes in another order on demand."""
    result = matmul(request, _turned(a, transA, transBatchA), _turned(b, transB, transBatchB))
    return result if alpha == 1.0 else result * alpha


def _turned(x: Form, transposed: int, batch_transposed: int) -> Form:
    order = list(range(len(x.shape)))
    if batch_transposed and len(order) > 2:
        order = [*order[1:-1], 0, order[-1]]
    if transposed and len(order) > 1:
        order[-2:] = order[-1], order[-2]
    return transpose(x, order)


def _normalized(x: Form, axes: Sequence[int], epsilon: float) -> tuple[Form, Form]:
    """x over its root mean square, and the inverse of that."""
    mean = fold("add", x * x, axes, 0) / count(x, axes)
    inverse = unary("rsqrt", mean + epsilon)
    return x * inverse, inverse


def simplified_layer_normalization(
    request: Request, x: Form, scale: Form, *, axis: int, epsilon: float, stash_type: int
) -> tuple[Form, ...]:
    """Root mean square 1 over the last axes, then scale."""
    if x.dtype is not scale.dtype or stash_type != DataType.FLOAT:
        raise NotLowered("mixed precision has no native form")
    unit, inverse = _normalized(x, range(axis_of(axis, len(x.shape)), len(x.shape)), epsilon)
    return unit * scale, cast(inverse, DataType.FLOAT)


def skip_layer_normalization(
    request: Request, x: Form, skip: Form, gamma: Form, beta: Form | None = None,
    bias: Form | None = None, *, epsilon: float,
) -> tuple[Form, ...]:  # fmt: skip
    """Layer normalization of x + skip + bias; mean, inverse deviation, and the sum."""
    total = x + skip if bias is None else x + skip + bias
    mean = fold("add", total, [-1], 0) / count(total, [-1])
    unit, inverse = _normalized(total - mean, [len(total.shape) - 1], epsilon)
    result = unit * gamma if beta is None else unit * gamma + beta
    return result, mean, inverse, total


def skip_simplified_layer_normalization(
    request: Request, x: Form, skip: Form, gamma: Form, bias: Form | None = None, *, epsilon: float
) -> tuple[Form, ...]:
    """x + skip + bias over its root mean square; a mean of 0, the inverse, and the sum."""
    total = x + skip if bias is None else x + skip + bias
    unit, inverse = _normalized(total, [len(total.shape) - 1], epsilon)
    return unit * gamma, inverse * 0.0, inverse, total


def embed_layer_normalization(
    request: Request, ids: Form, segment_ids: Form | None, words: Form, positions: Form,
    segments: Form | None, gamma: Form, beta: Form, mask: Form | None = None,
    position_ids: Form | None = None, *, epsilon: float, mask_index_type: int | None,
) -> tuple[Form, ...]:  # fmt: skip
    """Layer normalization of the sum of embeddings; lengths of masks; the sum."""
    places = iota((1, ids.shape[1]), 1) if position_ids is None else position_ids
    total = table_rows(words, ids) + table_rows(positions, places)
    if segments is not None and segment_ids is not None:
        total = total + table_rows(segments, segment_ids)
    mean = fold("add", total, [2], 0) / count(total, [2])
    unit, _ = _normalized(total - mean, [2], epsilon)
    if mask is None:
        length: Form = binary("mul", part(ids, 1, 0, 1), 0)
    else:
        length = fold("add", cast(binary("eq", mask, 1), DataType.INT32), [1], 0)
    return unit * gamma + beta, squeeze(length, [1]), total


def table_rows(table: Form, indices: Form) -> Form:
    """Rows of a table; a negative index lies outside like one that is too large."""
    places = select(binary("lt", indices, 0), LARGEST_INDEX, indices)
    return Gather((*indices.shape, table.shape[1]), table.dtype, table, places, 0)


def rotary_embedding(
    request: Request, x: Form, positions: Form, cosines: Form, sines: Form, *,
    interleaved: int | None, is_packed_batching: int | None, num_heads: int | None,
    rotary_embedding_dim: int | None, scale: float | None,
) -> Form:  # fmt: skip
    """Pairs of each head's elements turned by the angles of their positions."""
    half = cosines.shape[1]
    heads = x
    if len(x.shape) == 3:
        size = (
            floor_divide(x.shape[2], num_heads) if rotary_embedding_dim and num_heads else 2 * half
        )
        groups = floor_divide(x.shape[2], size)
        heads = transpose(reshape(x, (*x.shape[:2], groups, size)), (0, 2, 1, 3))
    if not isinstance(half, int) or not isinstance(heads.shape[3], int):
        raise NotLowered("the size of a head is only known later")
    length = heads.shape[2]
    if len(positions.shape) < 2:
        positions = reshape(positions, (product(positions.shape), 1)) + iota((1, length), 1)
    turned = rotate(
        heads, table_rows(cosines, positions), table_rows(sines, positions), bool(interleaved)
    )
    if len(x.shape) == 4:
        return turned
    return reshape(transpose(turned, (0, 2, 1, 3)), x.shape)


def rotate(x: Form, cosines: Form, sines: Form, interleaved: bool) -> Form:
    """B, N, S, H with its first elements turned by the angles of B, S, half of them."""
    half, size = cosines.shape[-1], x.shape[3]
    assert isinstance(half, int) and isinstance(size, int)
    cosine, sine = unsqueeze(cosines, [1]), unsqueeze(sines, [1])
    at = iota((1, 1, 1, size), 3)
    if interleaved:
        pair, second = binary("div", at, 2), binary("ne", binary("mod", at, 2), 0)
        other = select(second, at - 1, at + 1)
    else:
        second = binary("ge", at, half)
        pair = select(second, at - half, at)
        other = select(second, at - half, at + half)
    turned = binary("lt", at, 2 * half)
    from_pair = _along_last(cosine, pair), _along_last(sine, pair)
    partner = _along_last(x, other)
    signed = select(second, partner, -partner)
    made = x * from_pair[0] + signed * from_pair[1]
    return made if 2 * half == size else select(turned, made, x)


def _along_last(x: Form, places: Form) -> Form:
    """Elements at computed places along the last of four axes."""
    before = [
        iota((*(1,) * axis, size, *(1,) * (3 - axis)), axis)
        for axis, size in enumerate(x.shape[:3])
    ]
    return take(x, [*before, places])


_NAMED: dict[str, Lowering] = {
    "Gelu": gelu, "BiasGelu": gelu, "FastGelu": fast_gelu, "QuickGelu": quick_gelu,
    "BiasAdd": bias_add, "BiasSplitGelu": bias_split_gelu, "BiasSoftmax": bias_softmax,
    "BiasDropout": bias_dropout, "FusedMatMul": fused_matmul, "TransposeMatMul": fused_matmul,
    "SkipLayerNormalization": skip_layer_normalization,
    "SkipSimplifiedLayerNormalization": skip_simplified_layer_normalization,
    "SimplifiedLayerNormalization": simplified_layer_normalization,
    "EmbedLayerNormalization": embed_layer_normalization,
    "RotaryEmbedding": rotary_embedding,
}  # fmt: skip
LOWERINGS: Lowerings = {
    **{(DOMAIN, name): lower for name, lower in _NAMED.items()},
    ("", "SimplifiedLayerNormalization"): simplified_layer_normalization,
}
