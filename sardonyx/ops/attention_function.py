"""Attention built of products, additions and softmax."""

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.errors import ConversionError
from sardonyx.graph import Graph, TensorType, Value
from sardonyx.ops.build import Builder
from sardonyx.ops.element_type import cast_like, element_type


def expand_attention(
    build: Builder, q: Value, k: Value, v: Value, mask: Value | None = None,
    past_key: Value | None = None, past_value: Value | None = None, valid: Value | None = None, *,
    kv_num_heads: int | None, q_num_heads: int | None, qk_matmul_output_mode: int,
    scale: float | None, softcap: float, softmax_precision: int | None, **limits: int,
) -> tuple[Value, Value, Value, Value]:  # fmt: skip
    """Y, present_key, present_value and the scores that are asked for."""
    packed = q_num_heads is not None and _rank(q) != 4
    if packed:
        q, k, v = (
            _split(build, q, q_num_heads),
            _split(build, k, kv_num_heads),
            _split(build, v, kv_num_heads),
        )
    if past_key is not None:
        k, v = build.Concat(past_key, k, axis=2), build.Concat(past_value, v, axis=2)
    scores = scaled_scores(build, q, k, scale)
    capped = scores
    if softcap:
        cap = cast_like(build, build.constant(np.float32(softcap)), q)
        capped = build.Mul(build.Tanh(build.Div(scores, cap)), cap)
    bias = _bias(build, (q, k), mask, past_key, valid, limits)
    biased = capped if bias is None else build.Add(capped, bias)
    weights = biased if softmax_precision is None else build.Cast(biased, to=softmax_precision)
    weights = build.Softmax(weights, axis=-1)
    if softmax_precision is not None:
        weights = cast_like(build, weights, q)
    if bias is not None:
        lowest, zero = _limits(build, q)
        masked = build.Equal(_largest(build, bias), lowest)
        weights = build.Where(masked, zero, weights)
    y = weighted_values(build, q, weights, cast_like(build, v, q))
    if packed:
        y = build.Reshape(build.Transpose(y, perm=[0, 2, 1, 3]), [0, 0, -1])
    return y, k, v, (scores, capped, biased, weights)[qk_matmul_output_mode]


def expand_flex_attention(
    build: Builder, inputs: tuple[Value, Value, Value], graphs: tuple[Graph | None, Graph | None],
    scale: float | None, element: DataType,
) -> Value:  # fmt: skip
    """Attention with graphs for scores and probabilities put in line."""
    q, k, v = inputs
    scores = build.Cast(scaled_scores(build, q, k, scale), to=int(element))
    if graphs[0] is not None:
        (scores,) = build.inline(graphs[0], [scores], 1)
    weights = build.Softmax(scores, axis=-1)
    if graphs[1] is not None:
        (weights,) = build.inline(graphs[1], [weights], 1)
    y = weighted_values(build, q, weights, build.Cast(v, to=int(element)))
    return cast_like(build, y, q)  # type: ignore[no-any-return]


def scaled_scores(build: Builder, q: Value, k: Value, scale: float | None) -> Value:
    """Q K' scale, [batch, heads, queries, keys]; both factors are scaled by the root of it."""
    if scale is None:
        size = build.Cast(build.Shape(q, start=3, end=4), to=int(DataType.FLOAT))
        root = build.Reciprocal(build.Sqrt(build.Sqrt(size)))
        sign = 1.0
    else:
        root = build.constant(np.float32(abs(scale) ** 0.5))
        sign = float(np.sign(scale) or 1.0)
    root = cast_like(build, root, q)
    keys = build.Transpose(build.Mul(k, root), perm=[0, 1, 3, 2])
    scores = _grouped_product(build, build.Mul(q, root), keys, q)
    return scores if sign > 0 else build.Neg(scores)


def weighted_values(build: Builder, q: Value, weights: Value, v: Value) -> Value:
    """Each query's weights times the values, [batch, heads, queries, value size]."""
    return _grouped_product(build, weights, v, q)


def _grouped_product(build: Builder, left: Value, right: Value, q: Value) -> Value:
    """left[b, h] right[b, h // group] for every head h of Q."""
    if _size(q, 1) is not None and _size(q, 1) == _size(right, 1):
        return build.MatMul(left, right)  # type: ignore[no-any-return]
    heads, shared = build.Shape(left, start=1, end=2), build.Shape(right, start=1, end=2)
    parts = [build.Shape(left, end=1), shared, build.Div(heads, shared), build.Shape(left, start=2)]
    groups = build.Reshape(left, build.Concat(*parts, axis=0), allowzero=1)
    product = build.MatMul(groups, build.Unsqueeze(right, [2]))
    shape = build.Concat(build.Shape(left, end=3), build.Shape(right, start=3), axis=0)
    return build.Reshape(product, shape, allowzero=1)  # type: ignore[no-any-return]


def _bias(
    build: Builder, inputs: tuple[Value, Value], mask: Value | None, past_key: Value | None,
    valid: Value | None, limits: dict[str, int],
) -> Value | None:  # fmt: skip
    """What is added to the scores; None where nothing is."""
    q, k = inputs
    queries, keys = build.Shape(q, start=2, end=3), build.Shape(k, start=2, end=3)
    bias = None if mask is None else _mask_bias(build, mask, q, keys, _size(k, 2))
    allowed = _allowed(build, (queries, keys), past_key, valid, limits)
    if allowed is not None:
        lowest, zero = _limits(build, q)
        limit = build.Where(allowed, zero, lowest)
        bias = limit if bias is None else build.Add(bias, limit)
    return bias


def _limits(build: Builder, like: Value) -> tuple[Value, Value]:
    """What a key that is not attended adds to its score, and what one that is adds."""
    lowest = build.constant(np.float32(-np.inf))
    return cast_like(build, lowest, like), cast_like(build, build.constant(np.float32(0)), like)


def _mask_bias(build: Builder, mask: Value, q: Value, keys: Value, length: int | None) -> Value:
    """A mask as numbers to add, with -inf behind its end where it is shorter than `keys`."""
    lowest, zero = _limits(build, q)
    element = element_type(mask)
    if element is None:
        raise ConversionError("the element type of attn_mask is not known")
    bias = (
        build.Where(mask, zero, lowest) if element == DataType.BOOL else cast_like(build, mask, q)
    )
    if _size(mask, -1) is not None and _size(mask, -1) == length:
        return bias  # type: ignore[no-any-return]
    missing = build.Sub(keys, build.Shape(mask, start=-1))
    shape = build.Concat(build.Shape(mask, end=-1), build.Max(missing, [0]), axis=0)
    return build.Concat(bias, build.Expand(lowest, shape), axis=-1)  # type: ignore[no-any-return]


def _allowed(
    build: Builder, lengths: tuple[Value, Value], past_key: Value | None, valid: Value | None,
    limits: dict[str, int],
) -> Value | None:  # fmt: skip
    """Which keys each query may see, [..., queries, keys]; None for all of them."""
    windows = (limits["left_window_size"], limits["right_window_size"])
    if valid is None and not limits["is_causal"] and max(windows) < 0:
        return None
    queries, keys = lengths
    key = build.Range(0, build.Squeeze(keys, [0]), 1)
    conditions = []
    if valid is not None:
        valid = build.Reshape(valid, [-1, 1, 1, 1])
        conditions.append(build.Less(key, valid))
    position = build.Unsqueeze(build.Range(0, build.Squeeze(queries, [0]), 1), [1])
    if past_key is not None:
        position = build.Add(position, build.Shape(past_key, start=2, end=3))
    elif valid is not None:
        position = build.Add(position, build.Sub(valid, queries))
    if limits["is_causal"]:
        conditions.append(build.LessOrEqual(key, position))
    if windows[0] >= 0:
        first = build.Sub(position, [windows[0]])
        conditions.append(build.GreaterOrEqual(key, first))
    if windows[1] >= 0:
        last = build.Add(position, [windows[1]])
        conditions.append(build.LessOrEqual(key, last))
    allowed = None
    for condition in conditions:
        allowed = condition if allowed is None else build.And(allowed, condition)
    return allowed


def _largest(build: Builder, x: Value) -> Value:
    if build.opset < 18:
        return build.ReduceMax(x, axes=[-1], keepdims=1)  # type: ignore[no-any-return]
    return build.ReduceMax(x, [-1], keepdims=1)  # type: ignore[no-any-return]


def _split(build: Builder, x: Value, heads: int | None) -> Value:
    """[batch, length, heads * size] -> [batch, heads, length, size]."""
    return build.Transpose(build.Reshape(x, [0, 0, heads, -1]), perm=[0, 2, 1, 3])  # type: ignore[no-any-return]


def _rank(value: Value) -> int | None:
    kind = value.type
    return len(kind.shape) if isinstance(kind, TensorType) and kind.shape is not None else None


def _size(value: Value, axis: int) -> int | None:
    kind = value.type
    if not isinstance(kind, TensorType) or kind.shape is None or axis >= len(kind.shape):
        return None
    size = kind.shape[axis]
    return size if isinstance(size, int) else None
