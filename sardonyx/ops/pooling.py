"""Pools: one number for each window of an image, or for the whole of it."""

from typing import Any

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.errors import ConversionError, EvaluationError, InferenceError
from sardonyx.graph import Node, Value
from sardonyx.ops.bfloat16 import through_float
from sardonyx.ops.build import Builder
from sardonyx.ops.element_type import constant_like
from sardonyx.ops.evaluate import Context
from sardonyx.ops.fact import Fact, require_room, same_size, tensor, unknown
from sardonyx.ops.infer import InferContext
from sardonyx.ops.operator import Operator
from sardonyx.ops.precision import Array, narrow, widen
from sardonyx.ops.sliding import (
    Ints,
    Sliding,
    ceil_pad,
    drop_trivial,
    is_image,
    output_sizes,
    pad_pairs,
    per_axis,
    require_kernel,
    slide,
)


def pooled(x: Fact, kernel_shape: Ints, **steps: Any) -> Fact:
    """The fact of an image with one element for each window."""
    if not is_image(x) or x.shape is None:
        return unknown(len(kernel_shape) + 2, x.dtype)
    spatial = output_sizes(x.shape[2:], tuple(kernel_shape), **steps)
    return tensor(x.dtype, (*x.shape[:2], *spatial))


def _kernel_axes(sliding: Sliding) -> tuple[int, ...]:
    return tuple(range(-len(sliding.kernel), 0))


def pad_instead_of_ceil(node: Node) -> None:
    """Let padding make the windows that `ceil_mode` asks for; what is padded must not count."""
    kernel = node.attribute("kernel_shape")
    rank = len(kernel)
    if not node.attribute("ceil_mode", 0) or not _pads_itself(node):
        node.attributes.pop("ceil_mode", None)
        return
    strides = per_axis(node.attribute("strides"), rank, "strides")
    dilations = per_axis(node.attribute("dilations"), rank, "dilations")
    pairs = pad_pairs(node.attribute("pads"), rank)
    ends = [
        ceil_pad(end, stride, (taps - 1) * dilation + 1)
        for (_, end), stride, taps, dilation in zip(pairs, strides, kernel, dilations, strict=True)
    ]
    node.set_attribute("pads", [*(begin for begin, _ in pairs), *ends])
    del node.attributes["ceil_mode"]


class AveragePool(Operator):
    """The mean of each window; padding counts only on demand."""

    signatures = (
        "1(X: T, auto_pad: string = 'NOTSET', kernel_shape: ints, pads?: ints, strides?: ints)"
        " -> Y: T; T: floats3",
        "7(X: T, auto_pad: string = 'NOTSET', count_include_pad: int = 0, kernel_shape: ints,"
        " pads?: ints, strides?: ints) -> Y: T; T: floats3",
        "10(X: T, auto_pad: string = 'NOTSET', ceil_mode: int = 0, count_include_pad: int = 0,"
        " kernel_shape: ints, pads?: ints, strides?: ints) -> Y: T; T: floats3",
        "11(X: T, auto_pad: string = 'NOTSET', ceil_mode: int = 0, count_include_pad: int = 0,"
        " kernel_shape: ints, pads?: ints, strides?: ints) -> Y: T; T: floats3",
        "19(X: T, auto_pad: string = 'NOTSET', ceil_mode: int = 0, count_include_pad: int = 0,"
        " dilations?: ints, kernel_shape: ints, pads?: ints, strides?: ints) -> Y: T; T: floats3",
        "22(X: T, auto_pad: string = 'NOTSET', ceil_mode: int = 0, count_include_pad: int = 0,"
        " dilations?: ints, kernel_shape: ints, pads?: ints, strides?: ints) -> Y: T; T: floats",
    )
    downgrade_22 = through_float

    def infer(x: Fact, count_include_pad: int, kernel_shape: Ints, **steps: Any) -> Fact:
        return pooled(x, kernel_shape, **steps)

    def reference(x: Array, count_include_pad: int, kernel_shape: Ints, **steps: Any) -> Array:
        sliding = slide(x.shape[2:], kernel_shape, **steps)
        total = sliding.windows(sliding.pad(widen(x))).sum(axis=_kernel_axes(sliding))
        counts: Any = 1
        for axis, size in enumerate(sliding.sizes):
            begin, end = sliding.pads[axis] if count_include_pad else (0, 0)
            at = sliding.positions(axis)
            counts = np.multiply.outer(counts, ((at >= -begin) & (at < size + end)).sum(axis=1))
        return narrow(total / counts.astype(total.dtype), x.dtype)

    def downgrade_19(node: Node, build: Builder) -> Any:
        if drop_trivial(node, "dilations"):
            return None
        (x,) = node.inputs
        assert x is not None
        pads = node.attribute("pads") or (0, 0) * len(node.attribute("kernel_shape"))
        pad_instead_of_ceil(node)
        total = _window_sums(node, build, x)
        return build.Div(total, _window_counts(node, build, x, pads))

    def downgrade_10(node: Node, build: Builder) -> None:
        rounded = node.attribute("ceil_mode", 0) and _pads_itself(node)
        if rounded and node.attribute("count_include_pad", 0):
            if any(node.attribute("pads", ())):
                raise ConversionError("ceil_mode with padding that counts begins with opset 10")
            del node.attributes["count_include_pad"]
        pad_instead_of_ceil(node)


def _pads_itself(node: Node) -> bool:
    return node.attribute("auto_pad", "NOTSET") in ("NOTSET", "")


def _window_counts(node: Node, build: Builder, x: Value, pads: Ints) -> Any:
    """By how much to divide sums of dilated windows; `pads` are those without rounding up."""
    counted = node.attribute("count_include_pad", 0)
    if counted and not _pads_itself(node):
        return constant_like(build, float(np.prod(node.attribute("kernel_shape"))), x)
    ones = build.Expand(constant_like(build, 1, x), build.Shape(x))
    if counted and any(pads):
        rank = len(pads) // 2
        widths = [0, 0, *pads[:rank], 0, 0, *pads[rank:]]
        ones = build.Pad(ones, widths, constant_like(build, 1, x))
        rounded = node.attribute("pads")
        more = [max(new - old, 0) for new, old in zip(rounded, pads, strict=True)]
        node.set_attribute("pads", more)
    return _window_sums(node, build, ones)


def _window_sums(node: Node, build: Builder, x: Value) -> Any:
    """Sums of dilated windows, as a convolution of every channel alone with ones."""
    kernel = node.attribute("kernel_shape")
    lead, spatial = build.Shape(x, end=2), build.Shape(x, start=2)
    alone = build.Reshape(x, build.Concat([-1, 1], spatial, axis=0))
    ones = build.Expand(constant_like(build, 1, x), [1, 1, *kernel])
    steps = {name: node.attribute(name) for name in ("auto_pad", "dilations", "pads", "strides")}
    sums = build.Conv(alone, ones, **steps)
    return build.Reshape(sums, build.Concat(lead, build.Shape(sums, start=2), axis=0))


class MaxPool(Operator):
    """The largest element of each window, and where it lies in the input."""

    signatures = (
        "1(X: T, auto_pad: string = 'NOTSET', kernel_shape: ints, pads?: ints, strides?: ints)"
        " -> Y: T; T: floats3",
        "8(X: T, auto_pad: string = 'NOTSET', kernel_shape: ints, pads?: ints,"
        " storage_order: int = 0, strides?: ints) -> (Y: T, Indices?: I); T: floats3; I: int64",
        "10(X: T, auto_pad: string = 'NOTSET', ceil_mode: int = 0, dilations?: ints,"
        " kernel_shape: ints, pads?: ints, storage_order: int = 0, strides?: ints)"
        " -> (Y: T, Indices?: I); T: floats3; I: int64",
        "11(X: T, auto_pad: string = 'NOTSET', ceil_mode: int = 0, dilations?: ints,"
        " kernel_shape: ints, pads?: ints, storage_order: int = 0, strides?: ints)"
        " -> (Y: T, Indices?: I); T: floats3; I: int64",
        "12(X: T, auto_pad: string = 'NOTSET', ceil_mode: int = 0, dilations?: ints,"
        " kernel_shape: ints, pads?: ints, storage_order: int = 0, strides?: ints)"
        " -> (Y: T, Indices?: I); T: floats3 int8 uint8; I: int64",
        "22(X: T, auto_pad: string = 'NOTSET', ceil_mode: int = 0, dilations?: ints,"
        " kernel_shape: ints, pads?: ints, storage_order: int = 0, strides?: ints)"
        " -> (Y: T, Indices?: I); T: floats int8 uint8; I: int64",
    )
    downgrade_22 = through_float

    def infer(
        x: Fact, kernel_shape: Ints, storage_order: int, context: InferContext, **steps: Any
    ) -> tuple[Fact, ...]:
        result = pooled(x, kernel_shape, **steps)
        return (result, tensor(DataType.INT64, result.shape))[: context.outputs]

    def reference(
        x: Array, kernel_shape: Ints, storage_order: int, context: Context, **steps: Any
    ) -> tuple[Array, ...]:
        sliding = slide(x.shape[2:], kernel_shape, **steps)
        wide = widen(x)
        lowest = np.iinfo(x.dtype).min if x.dtype.kind in "iu" else -np.inf
        windows = sliding.windows(sliding.pad(wide, lowest))
        largest = windows.max(axis=_kernel_axes(sliding))
        result = largest.astype(x.dtype, copy=False)
        if context.outputs < 2:
            return (result,)
        return result, _places(windows, largest, sliding, x.shape, storage_order)

    def downgrade_10(node: Node, build: Builder) -> None:
        if not drop_trivial(node, "dilations"):
            raise ConversionError("dilations begin with opset 10")
        pad_instead_of_ceil(node)

    def downgrade_8(node: Node, build: Builder) -> None:
        if len(node.outputs) == 1:
            node.attributes.pop("storage_order", None)


def _places(
    windows: Array, largest: Array, sliding: Sliding, shape: tuple[int, ...], storage_order: int
) -> Array:
    """Indices, in the flattened input, of the first element of each window that is largest."""
    rank = len(sliding.kernel)
    grids = [sliding.positions(axis) for axis in range(rank)]
    inside: Any = True
    offsets: Any = 0
    step = 1
    for axis in range(rank) if storage_order else reversed(range(rank)):
        spread = [1] * (2 * rank)
        spread[axis], spread[rank + axis] = grids[axis].shape
        at = grids[axis].reshape(spread)
        inside = inside & (at >= 0) & (at < sliding.sizes[axis])
        offsets = offsets + at * step
        step *= sliding.sizes[axis]
    peak = largest.reshape(*largest.shape, *(1,) * rank)
    hits = ((windows == peak) | np.isnan(windows)) & inside
    flat = (*sliding.outputs, int(np.prod(sliding.kernel)))
    first = hits.reshape(*shape[:2], *flat).argmax(axis=-1)
    offsets = np.broadcast_to(offsets, (*sliding.outputs, *sliding.kernel)).reshape(flat)
    chosen = np.take_along_axis(np.broadcast_to(offsets, (*shape[:2], *flat)), first[..., None], -1)
    planes = np.arange(shape[0] * shape[1]).reshape(*shape[:2], *(1,) * rank) * step
    return (chosen[..., 0] + planes).astype(np.int64)


class LpPool(Operator):
    """The Lp norm of each window."""

    signatures = (
        "1(X: T, auto_pad: string = 'NOTSET', kernel_shape?: ints, p: float = 2.0, pads?: ints,"
        " strides?: ints) -> Y: T; T: floats3",
        "2(X: T, auto_pad: string = 'NOTSET', kernel_shape: ints, p: int = 2, pads?: ints,"
        " strides?: ints) -> Y: T; T: floats3",
        "11(X: T, auto_pad: string = 'NOTSET', kernel_shape: ints, p: int = 2, pads?: ints,"
        " strides?: ints) -> Y: T; T: floats3",
        "18(X: T, auto_pad: string = 'NOTSET', ceil_mode: int = 0, dilations?: ints,"
        " kernel_shape: ints, p: int = 2, pads?: ints, strides?: ints) -> Y: T; T: floats3",
        "22(X: T, auto_pad: string = 'NOTSET', ceil_mode: int = 0, dilations?: ints,"
        " kernel_shape: ints, p: int = 2, pads?: ints, strides?: ints) -> Y: T; T: floats",
    )
    downgrade_22 = through_float

    def infer(x: Fact, kernel_shape: Ints, p: int, **steps: Any) -> Fact:
        return pooled(x, kernel_shape, **steps)

    def reference(x: Array, kernel_shape: Ints, p: int, **steps: Any) -> Array:
        sliding = slide(x.shape[2:], kernel_shape, **steps)
        windows = sliding.windows(sliding.pad(np.abs(widen(x)) ** p))
        total = windows.sum(axis=_kernel_axes(sliding))
        return narrow(total ** (1 / p), x.dtype)

    def upgrade_1(node: Node, build: Builder) -> Any:
        return _whole_power(node, build)

    def downgrade_18(node: Node, build: Builder) -> Any:
        pad_instead_of_ceil(node)
        if drop_trivial(node, "dilations"):
            return None
        (x,) = node.inputs
        assert x is not None
        power = node.attribute("p", 2)
        raised = build.Pow(build.Abs(x), constant_like(build, power, x))
        sums = _window_sums(node, build, raised)
        return build.Pow(sums, constant_like(build, 1 / power, x))

    def downgrade_2(node: Node, build: Builder) -> None:
        node.set_attribute("p", float(node.attribute("p", 2)))


def _whole_power(node: Node, build: Builder) -> Any:
    """From opset 2 on `p` is a whole number: other powers are taken before and after a sum."""
    power = node.attribute("p", 2.0)
    if power == int(power):
        node.set_attribute("p", int(power))
        return None
    (x,) = node.inputs
    assert x is not None
    attributes = node.attributes | {"p": 1}
    raised = build.Pow(build.Abs(x), constant_like(build, power, x), broadcast=1)
    sums = build.node(node.op_type, (raised,), 1, "", attributes)
    return build.Pow(sums, constant_like(build, 1 / power, x), broadcast=1)


def _globally_pooled(x: Fact) -> Fact:
    if x.shape is None:
        return x
    if len(x.shape) < 2:
        raise InferenceError(f"an image needs a batch and channels, not {x}")
    return tensor(x.dtype, (*x.shape[:2], *(1,) * (len(x.shape) - 2)))


def _spatial_axes(x: Array) -> tuple[int, ...]:
    return tuple(range(2, x.ndim))


class GlobalAveragePool(Operator):
    """The mean over all spatial axes."""

    signatures = ("1(X: T) -> Y: T; T: floats3", "22(X: T) -> Y: T; T: floats")
    downgrade_22 = through_float

    def infer(x: Fact) -> Fact:
        return _globally_pooled(x)

    def reference(x: Array) -> Array:
        return narrow(widen(x).mean(axis=_spatial_axes(x), keepdims=True), x.dtype)


class GlobalMaxPool(Operator):
    """The largest element over all spatial axes."""

    signatures = ("1(X: T) -> Y: T; T: floats3", "22(X: T) -> Y: T; T: floats")
    downgrade_22 = through_float

    def infer(x: Fact) -> Fact:
        for size in (x.shape or ())[2:]:
            if size is not None:
                require_room(size - 1, f"an image of {x} has no largest element")
        return _globally_pooled(x)

    def reference(x: Array) -> Array:
        return narrow(widen(x).max(axis=_spatial_axes(x), keepdims=True), x.dtype)


class GlobalLpPool(Operator):
    """The Lp norm over all spatial axes."""

    signatures = (
        "1(X: T, p: float = 2.0) -> Y: T; T: floats3",
        "2(X: T, p: int = 2) -> Y: T; T: floats3",
        "22(X: T, p: int = 2) -> Y: T; T: floats",
    )
    downgrade_22 = through_float

    def infer(x: Fact, p: int) -> Fact:
        return _globally_pooled(x)

    def reference(x: Array, p: int) -> Array:
        total = (np.abs(widen(x)) ** p).sum(axis=_spatial_axes(x), keepdims=True)
        return narrow(total ** (1 / p), x.dtype)

    def upgrade_1(node: Node, build: Builder) -> Any:
        return _whole_power(node, build)

    def downgrade_2(node: Node, build: Builder) -> None:
        node.set_attribute("p", float(node.attribute("p", 2)))


class MaxUnpool(Operator):
    """Puts elements back where a max pool found them; everything else is zero."""

    signatures = (
        "9(X: T1, I: T2, output_shape?: T2, kernel_shape: ints, pads?: ints, strides?: ints)"
        " -> output: T1; T1: floats3; T2: int64",
        "11(X: T1, I: T2, output_shape?: T2, kernel_shape: ints, pads?: ints, strides?: ints)"
        " -> output: T1; T1: floats3; T2: int64",
        "22(X: T1, I: T2, output_shape?: T2, kernel_shape: ints, pads?: ints, strides?: ints)"
        " -> output: T1; T1: floats; T2: int64",
    )
    downgrade_22 = through_float

    def infer(
        x: Fact, indices: Fact, output_shape: Fact | None = None, *,
        kernel_shape: Ints, pads: Ints | None, strides: Ints | None,
    ) -> Fact:  # fmt: skip
        if x.shape is not None and indices.shape is not None:
            same_size(len(x.shape), len(indices.shape), f"indices {indices} do not fit {x}")
        per_axis(strides, len(kernel_shape), "strides")
        pad_pairs(pads, len(kernel_shape))
        if output_shape is not None:
            return tensor(x.dtype, output_shape.sizes() or (None,) * (len(kernel_shape) + 2))
        if not is_image(x) or x.shape is None:
            return unknown(len(kernel_shape) + 2, x.dtype)
        return tensor(x.dtype, _unpooled(x.shape, kernel_shape, pads, strides))

    def reference(
        x: Array, indices: Array, output_shape: Array | None = None, *,
        kernel_shape: Ints, pads: Ints | None, strides: Ints | None,
    ) -> Array:  # fmt: skip
        shape = _unpooled(x.shape, kernel_shape, pads, strides)
        flat = np.zeros(int(np.prod(shape)), x.dtype)
        if indices.size and not 0 <= indices.min() <= indices.max() < flat.size:
            raise EvaluationError(
                f"indices lie between {indices.min()} and {indices.max()}, outside of the "
                f"{flat.size} elements of the output",
                hint="feed indices that a MaxPool of the same sizes gives",
            )
        flat[indices.reshape(-1)] = x.reshape(-1)
        image = flat.reshape(shape)
        if output_shape is None:
            return image
        result = np.zeros(tuple(output_shape), x.dtype)
        both = tuple(slice(min(a, b)) for a, b in zip(shape, result.shape, strict=True))
        result[both] = image[both]
        return result


def _unpooled(shape: Any, kernel: Ints, pads: Ints | None, strides: Ints | None) -> tuple[Any, ...]:
    rank = len(kernel)
    require_kernel(tuple(kernel), len(shape) - 2)
    strides, pairs = per_axis(strides, rank, "strides"), pad_pairs(pads, rank)
    return (*shape[:2], *(
        None if size is None else (size - 1) * stride - begin - end + taps
        for size, stride, (begin, end), taps in zip(shape[2:], strides, pairs, kernel, strict=True)
    ))  # fmt: skip
