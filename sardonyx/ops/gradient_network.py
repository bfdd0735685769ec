"""Gradients of products, convolutions, pooling and batch normalisation."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sardonyx.graph import Value
from sardonyx.ops.gradient_elementwise import share_of
from sardonyx.ops.gradient_step import Rule, Step, one

Gradients = Sequence[Value | None]


def _swapped(step: Step, value: Value, rank: int) -> Value:
    order = [*range(rank - 2), rank - 1, rank - 2]
    return step.op.Transpose(value, perm=order)  # type: ignore[no-any-return]


def _matmul(step: Step, gradients: Gradients) -> Gradients:
    op, gradient, a, b = step.op, one(gradients), step.x, step.needed(1)
    ranks = step.rank(a), step.rank(b)
    left = op.Unsqueeze(a, [0]) if ranks[0] == 1 else a
    right = op.Unsqueeze(b, [1]) if ranks[1] == 1 else b
    missing = [axis for axis, rank in ((-2, ranks[0]), (-1, ranks[1])) if rank == 1]
    gradient = op.Unsqueeze(gradient, missing) if missing else gradient
    to_left = op.MatMul(gradient, _swapped(step, right, max(ranks[1], 2)))
    to_right = op.MatMul(_swapped(step, left, max(ranks[0], 2)), gradient)
    results = []
    for found, matrix, given in ((to_left, left, a), (to_right, right, b)):
        batch, own = step.shape(step.y), step.shape(matrix)
        sizes = None if missing or batch is None or own is None else (*batch[:-2], *own[-2:])
        summed = step.sum_to(found, found, matrix, sizes)
        results.append(summed if matrix is given else op.Reshape(summed, op.Shape(given)))
    return results


def _gemm(step: Step, gradients: Gradients) -> Gradients:
    op, gradient, a, b, c = step.op, one(gradients), step.x, step.needed(1), step.input(2)
    alpha, flip_a, flip_b = (step.attributes[name] for name in ("alpha", "transA", "transB"))
    if flip_a:
        to_a = op.Gemm(b, gradient, alpha=alpha, transA=flip_b, transB=1)
    else:
        to_a = op.Gemm(gradient, b, alpha=alpha, transB=1 - flip_b)
    if flip_b:
        to_b = op.Gemm(gradient, a, alpha=alpha, transA=1, transB=flip_a)
    else:
        to_b = op.Gemm(a, gradient, alpha=alpha, transA=1 - flip_a)
    if c is None:
        return [to_a, to_b]
    return [
        to_a,
        to_b,
        step.sum_to(op.Mul(gradient, step.number(step.attributes["beta"])), step.y, c),
    ]


def _window(step: Step, filters: Value | None) -> tuple[int, dict[str, Any]]:
    """The number of spatial axes, and strides and dilations for each."""
    count = step.rank(step.x if filters is None else filters) - 2
    strides = step.attributes["strides"] or (1,) * count
    dilations = step.attributes.get("dilations") or (1,) * count
    return count, {"strides": strides, "dilations": dilations}


def _leading_pads(step: Step, image: Value, filters: Value, window: dict[str, Any]) -> Value:
    """How much was padded before each spatial axis, as a vector."""
    op, mode = step.op, step.attributes["auto_pad"]
    count = len(window["strides"])
    if mode not in ("SAME_UPPER", "SAME_LOWER"):
        pads = step.attributes["pads"] if mode == "NOTSET" else None
        return op.constant((pads or (0,) * count)[:count])
    strides = op.constant(window["strides"])
    size, kernel = op.Shape(image, start=2), op.Shape(filters, start=2)
    reach = op.Add(op.Mul(op.Sub(kernel, [1]), window["dilations"]), [1])
    steps = op.Div(op.Sub(op.Add(size, strides), [1]), strides)
    total = op.Max(op.Sub(op.Add(op.Mul(op.Sub(steps, [1]), strides), reach), size), [0])
    half = op.Div(total, [2])
    return half if mode == "SAME_UPPER" else op.Sub(total, half)  # type: ignore[no-any-return]


def _fit(step: Step, value: Value, before: Value, like: Value) -> Value:
    """Without the first `before` elements of each spatial axis, and as long as `like`."""
    op = step.op
    after = op.Sub(op.Add(op.Shape(like, start=2), before), op.Shape(value, start=2))
    pads = op.Concat([0, 0], op.Neg(before), [0, 0], after, axis=0)
    return op.Pad(value, pads)  # type: ignore[no-any-return]


def _filter_gradient(
    step: Step, image: Value, gradient: Value, filters: Value, before: Value
) -> Value:
    """Of a convolution from `image` to the shape of `gradient`, with respect to its filters.

    Batches and channels change places, strides and dilations too; groups are kept apart.
    """
    op, group = step.op, step.attributes["group"]
    count, window = _window(step, filters)
    axes = range(count)
    padded = op.Pad(image, op.Concat([0, 0], before, [0, 0], before, axis=0))
    parts = op.Reshape(padded, op.Concat([0, group, -1], op.Shape(padded, start=2), axis=0))
    parts = op.Transpose(parts, perm=[2, 1, 0, *(axis + 3 for axis in axes)])
    merged = op.Concat(op.Shape(parts, end=1), [-1], op.Shape(parts, start=3), axis=0)
    images = op.Reshape(parts, merged)
    back = [1, 0, *(axis + 2 for axis in axes)]
    kernels = op.Transpose(gradient, perm=back)
    result = op.Conv(images, kernels, group=group, strides=window["dilations"],
                     dilations=window["strides"])  # fmt: skip
    found = op.Transpose(result, perm=back)
    return _fit(step, found, op.constant([0] * count), filters)


def _channel_sums(step: Step, gradient: Value) -> Value:
    axes = [axis for axis in range(step.rank(step.x)) if axis != 1]
    return step.op.ReduceSum(gradient, axes, keepdims=0)  # type: ignore[no-any-return]


def _conv(step: Step, gradients: Gradients) -> Gradients:
    op, gradient, filters = step.op, one(gradients), step.needed(1)
    _, window = _window(step, filters)
    before = _leading_pads(step, step.x, filters, window)
    spread = op.ConvTranspose(gradient, filters, group=step.attributes["group"], **window)
    result = [
        _fit(step, spread, before, step.x),
        _filter_gradient(step, step.x, gradient, filters, before),
    ]
    return result if step.input(2) is None else [*result, _channel_sums(step, gradient)]


def _conv_transpose(step: Step, gradients: Gradients) -> Gradients:
    op, gradient, filters = step.op, one(gradients), step.needed(1)
    if step.attributes["auto_pad"] != "NOTSET" or step.attributes["output_shape"]:
        raise step.unsupported("auto_pad or output_shape")
    count, window = _window(step, filters)
    group, pads = step.attributes["group"], step.attributes["pads"] or (0,) * (2 * count)
    before = op.constant(pads[:count])
    gathered = op.Conv(gradient, filters, group=group, pads=pads, **window)
    result = [
        _fit(step, gathered, op.constant([0] * count), step.x),
        _filter_gradient(step, gradient, step.x, filters, before),
    ]
    return result if step.input(2) is None else [*result, _channel_sums(step, gradient)]


def _max_pool(step: Step, gradients: Gradients) -> Gradients:
    op = step.op
    attributes = {name: item.value for name, item in step.node.attributes.items()}
    attributes["storage_order"] = 0
    _, places = op.node("MaxPool", (step.x,), 2, "", attributes)
    slots = op.Expand(step.number(0), op.Reshape(op.Size(step.x), [1]))
    flat = [op.Reshape(item, [-1]) for item in (places, one(gradients))]
    added = op.ScatterElements(slots, *flat, axis=0, reduction="add")
    return [op.Reshape(added, op.Shape(step.x))]


def _average_pool(step: Step, gradients: Gradients) -> Gradients:
    """Each window's gradient in equal shares, by a transposed convolution with ones."""
    op = step.op
    _, window = _window(step, None)
    kernel = step.attributes["kernel_shape"]
    one_channel = op.Concat([-1, 1], op.Shape(step.x, start=2), axis=0)
    image = op.Reshape(step.x, one_channel)
    filters = op.Expand(step.number(1), [1, 1, *kernel])
    settings = {
        name: item.value
        for name, item in step.node.attributes.items()
        if name != "count_include_pad"
    }
    ones = op.Expand(step.number(1), op.Shape(image))
    inside = op.AveragePool(ones, count_include_pad=1, **settings)
    share = step.number(1 / float(np.prod(kernel)))
    if not step.attributes["count_include_pad"]:
        share = op.Div(share, inside)
    shape = op.Concat([-1, 1], op.Shape(step.y, start=2), axis=0)
    scaled = op.Mul(op.Reshape(one(gradients), shape), share)
    spread = op.ConvTranspose(scaled, filters, **window)
    before = _leading_pads(step, image, filters, window)
    return [op.Reshape(_fit(step, spread, before, image), op.Shape(step.x))]


def _global_average_pool(step: Step, gradients: Gradients) -> Gradients:
    return [step.op.Expand(share_of(step, one(gradients)), step.op.Shape(step.x))]


def _global_max_pool(step: Step, gradients: Gradients) -> Gradients:
    op = step.op
    share = op.CastLike(op.Equal(step.x, step.y), step.x)
    axes = list(range(2, step.rank(step.x)))
    return [op.Mul(one(gradients), op.Div(share, op.ReduceSum(share, axes, keepdims=1)))]


def _batch_normalization(step: Step, gradients: Gradients) -> Gradients:
    op, gradient, x = step.op, one(gradients), step.x
    rank = step.rank(x)
    axes = [axis for axis in range(rank) if axis != 1]
    column = [-1, *[1] * (rank - 2)]
    training = bool(step.attributes["training_mode"])
    if any(item is not None for item in gradients[1:]):
        raise step.unsupported("gradients of running statistics")
    scale = op.Reshape(step.needed(1), column)
    if training:
        mean = op.ReduceMean(x, axes, keepdims=1)
        variance = op.ReduceMean(op.Mul(op.Sub(x, mean), op.Sub(x, mean)), axes, keepdims=1)
    else:
        mean, variance = (op.Reshape(op.CastLike(step.needed(i), x), column) for i in (3, 4))
    root = op.Sqrt(op.Add(variance, step.number(step.attributes["epsilon"])))
    normal = op.Div(op.Sub(x, mean), root)
    factor = op.Div(scale, root)
    to_scale = op.ReduceSum(op.Mul(gradient, normal), axes, keepdims=0)
    to_bias = op.ReduceSum(gradient, axes, keepdims=0)
    if not training:
        to_mean = op.Neg(op.ReduceSum(op.Mul(gradient, factor), axes, keepdims=0))
        half = op.Mul(op.Div(op.Mul(gradient, op.Mul(factor, normal)), root), step.number(-0.5))
        to_variance = op.ReduceSum(half, axes, keepdims=0)
        return [op.Mul(gradient, factor), to_scale, to_bias, to_mean, to_variance]
    along = op.Mul(normal, op.ReduceMean(op.Mul(gradient, normal), axes, keepdims=1))
    centred = op.Sub(op.Sub(gradient, op.ReduceMean(gradient, axes, keepdims=1)), along)
    return [op.Mul(factor, centred), to_scale, to_bias]


NETWORK: dict[str, Rule] = {
    "AveragePool": _average_pool,
    "BatchNormalization": _batch_normalization,
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "Gemm": _gemm,
    "GlobalAveragePool": _global_average_pool,
    "GlobalMaxPool": _global_max_pool,
    "MatMul": _matmul,
    "MaxPool": _max_pool,
}
