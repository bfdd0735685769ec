"""Windows of an image gathered where offsets say, and windows summed back into an image."""

import math
from itertools import product
from typing import Any

import numpy as np

from sardonyx.dims import Size
from sardonyx.dims import product as size_product
from sardonyx.dtypes import DataType
from sardonyx.errors import ConversionError, InferenceError
from sardonyx.graph import TensorType, Value
from sardonyx.ops.bfloat16 import through_float
from sardonyx.ops.build import Builder
from sardonyx.ops.convolution import along_channels, convolution_shape, fold
from sardonyx.ops.element_type import constant_like, element_type
from sardonyx.ops.fact import Fact, Sizes, same_size, sizes_text, tensor
from sardonyx.ops.operator import Operator
from sardonyx.ops.precision import Array, narrow, widen
from sardonyx.ops.sliding import Ints, output_sizes, pad_pairs, per_axis, slide


class Col2Im(Operator):
    """Columns, each the flattened window of an image, summed back into the image."""

    expands = False
    signatures = (
        "18(input: T, image_shape: tensor(int64), block_shape: tensor(int64), dilations?: ints,"
        " pads?: ints, strides?: ints) -> output: T; T: all",
    )

    def infer(
        x: Fact, image_shape: Fact, block_shape: Fact, *,
        dilations: Ints | None, pads: Ints | None, strides: Ints | None,
    ) -> Fact:  # fmt: skip
        if x.shape is not None and len(x.shape) != 3:
            raise InferenceError(f"columns have three axes, not {x}")
        batch, columns, windows = x.shape or (None, None, None)
        sizes, block = image_shape.sizes(), block_shape.sizes()
        if sizes is None:
            return tensor(x.dtype, None)
        if block is not None and len(block) != len(sizes):
            raise InferenceError(f"image_shape has {len(sizes)} axes, block_shape {len(block)}")
        if any(isinstance(size, int) and size < 1 for size in block or ()):
            raise InferenceError(f"a window of {sizes_text(block or ())} has no elements")
        counts = output_sizes(
            sizes, block or (None,) * len(sizes), strides=strides, dilations=dilations, pads=pads
        )
        known = [count for count in counts if count is not None]
        if len(known) == len(counts):
            what = f"{x} has not as many columns as there are windows"
            same_size(windows, size_product(known), what)
        return tensor(x.dtype, (batch, _divided(columns, block), *sizes))

    def reference(
        x: Array, image_shape: Array, block_shape: Array, *,
        dilations: Ints | None, pads: Ints | None, strides: Ints | None,
    ) -> Array:  # fmt: skip
        sizes, block = tuple(map(int, image_shape)), tuple(map(int, block_shape))
        steps = slide(sizes, block, strides=strides, dilations=dilations, pads=pads)
        channels = x.shape[1] // int(np.prod(block))
        columns = x.reshape(x.shape[0], channels, *block, *steps.outputs)
        begins = [begin for begin, _ in steps.pads]
        return fold(columns, sizes, begins, steps.strides, steps.dilations).copy()

    def function(
        build: Builder, x: Value, image_shape: Value, block_shape: Value, *,
        dilations: Ints | None, pads: Ints | None, strides: Ints | None,
    ) -> Any:  # fmt: skip
        kind = element_type(x)
        if kind not in (None, DataType.FLOAT, DataType.FLOAT16, DataType.DOUBLE):
            raise ConversionError(f"{kind and kind.text} columns cannot be summed before opset 18")
        rank = len(pads or ()) // 2
        padding = [sum(pair) for pair in pad_pairs(pads, rank)] or 0
        reach = build.Add(build.Mul(build.Sub(block_shape, 1), list(dilations or [1])), 1)
        room = build.Sub(build.Add(image_shape, padding), reach)
        counts = build.Add(build.Div(room, list(strides or [1])), 1)
        taps = build.ReduceProd(block_shape, keepdims=1)
        square = build.ConstantOfShape(build.Concat(taps, taps, axis=0))
        filters = build.Reshape(build.EyeLike(square), build.Concat(taps, [1], block_shape, axis=0))
        columns = build.Reshape(x, build.Concat([-1], taps, counts, axis=0))
        image = build.ConvTranspose(
            columns, build.CastLike(filters, x), dilations=dilations, pads=pads, strides=strides
        )
        missing = build.Sub(image_shape, build.Shape(image, start=2))
        before = build.Expand([0], build.Add(build.Shape(image_shape), 4))
        padded = build.Pad(image, build.Concat(before, missing, axis=0), constant_like(build, 0, x))
        batch = build.Shape(x, end=1)
        return build.Reshape(padded, build.Concat(batch, [-1], image_shape, axis=0))


def _divided(columns: Size | None, block: Sizes | None) -> Size | None:
    if columns is None or block is None:
        return None
    known = [size for size in block if size is not None]
    taps = size_product(known)
    if len(known) < len(block) or not taps:
        return None
    if isinstance(columns, int) and isinstance(taps, int) and columns % taps:
        raise InferenceError(f"columns of {columns} elements do not make blocks of {taps}")
    same_size(columns, columns // taps * taps, f"columns do not make blocks of {taps}")
    return columns // taps


_MOST_TAPS = 1 << 16
"""Places of a kernel that may stand in a model as constants."""


class DeformConv(Operator):
    """Convolution whose taps are moved by offsets, with linear interpolation between pixels."""

    signatures = (
        "19(X: T, W: T, offset: T, B?: T, mask?: T, dilations?: ints, group: int = 1,"
        " kernel_shape?: ints, offset_group: int = 1, pads?: ints, strides?: ints) -> Y: T;"
        " T: floats3",
        "22(X: T, W: T, offset: T, B?: T, mask?: T, dilations?: ints, group: int = 1,"
        " kernel_shape?: ints, offset_group: int = 1, pads?: ints, strides?: ints) -> Y: T;"
        " T: floats",
    )
    downgrade_22 = through_float

    def infer(
        x: Fact, w: Fact, offset: Fact, bias: Fact | None = None, mask: Fact | None = None, *,
        offset_group: int, **attributes: Any,
    ) -> Fact:  # fmt: skip
        shape = convolution_shape(x, w, auto_pad="NOTSET", **attributes)
        if shape is None or offset.shape is None:
            return tensor(x.dtype, shape)
        if len(offset.shape) != len(shape):
            raise InferenceError(f"offset {offset} is for another rank than {x}")
        spatial = [
            same_size(size, moved, f"offset {offset} does not fit the output's size")
            for size, moved in zip(shape[2:], offset.shape[2:], strict=True)
        ]
        return tensor(x.dtype, (*shape[:2], *spatial))

    def reference(
        x: Array, w: Array, offset: Array, bias: Array | None = None, mask: Array | None = None, *,
        group: int, kernel_shape: Ints | None, offset_group: int, **steps: Any,
    ) -> Array:  # fmt: skip
        sliding = slide(x.shape[2:], w.shape[2:], **steps)
        batch, rank, taps = x.shape[0], x.ndim - 2, int(np.prod(sliding.kernel))
        moves = widen(offset).reshape(batch, offset_group, taps, rank, *sliding.outputs)
        coordinates = []
        for axis in range(rank):
            spread = [1] * (2 * rank)
            spread[axis], spread[rank + axis] = sliding.kernel[axis], sliding.outputs[axis]
            at = sliding.positions(axis).T.reshape(spread)
            grid = np.broadcast_to(at, (*sliding.kernel, *sliding.outputs))
            coordinates.append(moves[:, :, :, axis] + grid.reshape(taps, *sliding.outputs))
        sampled = _sample(widen(x), offset_group, coordinates)
        if mask is not None:
            sampled *= widen(mask).reshape(batch, offset_group, 1, taps, *sliding.outputs)
        maps, inner = w.shape[:2]
        columns = sampled.reshape(batch, group, inner * taps, int(np.prod(sliding.outputs)))
        result = np.matmul(widen(w).reshape(group, maps // group, inner * taps), columns)
        result = result.reshape(batch, maps, *sliding.outputs)
        if bias is not None:
            result = result + along_channels(widen(bias), x.ndim)
        return narrow(result, x.dtype)

    def function(build: Builder, *inputs: Any, kernel_shape: Ints | None, **attributes: Any) -> Any:
        x = inputs[0]
        attributes["kernel"] = kernel = kernel_shape or _spatial_sizes(inputs[1])
        if math.prod(kernel) > _MOST_TAPS:
            raise ConversionError(f"a kernel of {list(kernel)} taps is too large to write out")
        if element_type(x) not in (DataType.FLOAT16, DataType.BFLOAT16):
            return _built_convolution(build, *inputs, **attributes)
        wide = [item and build.Cast(item, to=int(DataType.FLOAT)) for item in inputs]
        return build.CastLike(_built_convolution(build, *wide, **attributes), x)


def _built_convolution(
    build: Builder, x: Value, w: Value, offset: Value, bias: Value | None = None,
    mask: Value | None = None, *, group: int, kernel: Ints, offset_group: int, **steps: Any,
) -> Any:  # fmt: skip
    sampled = _built_samples(build, x, offset, offset_group, kernel, **steps)
    if mask is not None:
        sampled = build.Mul(sampled, build.Reshape(mask, [0, offset_group, 1, -1]))
    batch, maps, spatial = (
        build.Shape(x, end=1),
        build.Shape(w, end=1),
        build.Shape(offset, start=2),
    )
    positions = build.ReduceProd(spatial, keepdims=1)
    columns = build.Reshape(sampled, build.Concat(batch, [group, -1], positions, axis=0))
    taps = build.Mul(build.Shape(w, start=1, end=2), [int(np.prod(kernel))])
    filters = build.Reshape(w, build.Concat([group, -1], taps, axis=0))
    flat = build.Concat(batch, maps, positions, axis=0)
    result = build.Reshape(build.MatMul(filters, columns), flat)
    if bias is not None:
        result = build.Add(result, build.Unsqueeze(bias, [1]))
    return build.Reshape(result, build.Concat(batch, maps, spatial, axis=0))


def _sample(x: Array, groups: int, coordinates: list[Array]) -> Array:
    """Pixels at fractional coordinates [batch, group, ...]; what lies outside is zero."""
    batch, channels, *sizes = x.shape
    image = x.reshape(batch, groups, channels // groups, int(np.prod(sizes)))
    lows = [np.floor(at) for at in coordinates]
    result: Any = 0
    for corner in product((0, 1), repeat=len(sizes)):
        weight: Any = 1
        index: Any = 0
        for at, low, step, size in zip(coordinates, lows, corner, sizes, strict=True):
            pixel = low + step
            inside = (pixel >= 0) & (pixel < size)
            weight = weight * np.where(inside, 1 - np.abs(at - pixel), 0)
            index = index * size + np.where(inside, pixel, 0).astype(np.int64)
        flat = index.reshape(batch, groups, 1, -1)
        pixels = np.take_along_axis(image, flat, axis=-1)
        shape = (batch, groups, channels // groups, *index.shape[2:])
        result = result + pixels.reshape(shape) * weight[:, :, None].astype(x.dtype)
    return np.asarray(result)


def _spatial_sizes(w: Value) -> tuple[int, ...]:
    kind = w.type
    if isinstance(kind, TensorType) and kind.shape is not None:
        sizes = [size for size in kind.shape[2:] if isinstance(size, int)]
        if len(sizes) == len(kind.shape) - 2:
            return tuple(sizes)
    raise ConversionError("the kernel's shape must be known to write it with older operators")


def _built_samples(
    build: Builder, x: Value, offset: Value, groups: int, kernel: Ints, *,
    dilations: Ints | None, pads: Ints | None, strides: Ints | None,
) -> Any:  # fmt: skip
    """What `_sample` does, as nodes: [batch, group, channels of it, taps * positions]."""
    rank, taps = len(kernel), int(np.prod(kernel))
    strides, dilations = per_axis(strides, rank, "strides"), per_axis(dilations, rank, "dilations")
    places = np.indices(kernel).reshape(rank, taps, 1)
    grid, sizes = build.Shape(offset, start=2), build.Shape(x, start=2)
    moves = build.Reshape(offset, [0, groups, taps, rank, -1])
    axes = []
    for axis, (begin, _) in enumerate(pad_pairs(pads, rank)):
        steps = build.Range(0, build.Gather(grid, axis, axis=0), 1)
        starts = build.Sub(build.Mul(steps, strides[axis]), begin)
        column = build.Reshape(starts, [-1] + [1] * (rank - 1 - axis))
        line = build.Reshape(build.Expand(column, grid), [-1])
        at = build.CastLike(build.Add(line, places[axis] * dilations[axis]), offset)
        moved = build.Add(build.Gather(moves, axis, axis=3), at)
        low = build.Floor(moved)
        whole = build.Cast(low, to=int(DataType.INT64))
        axes.append((whole, build.Sub(moved, low), build.Gather(sizes, axis, axis=0)))
    pixels = build.ReduceProd(sizes, keepdims=1)
    image = build.Reshape(x, build.Concat(build.Shape(x, end=1), [groups, -1], pixels, axis=0))
    corners = [_built_corner(build, image, axes, corner) for corner in product((0, 1), repeat=rank)]
    return build.Sum(*corners)


def _built_corner(
    build: Builder, image: Value, axes: list[tuple[Any, Any, Any]], corner: tuple[int, ...]
) -> Any:
    """The part of every sample that comes from one of the pixels around it."""
    zero, one = constant_like(build, 0, image), constant_like(build, 1, image)
    index: Any = None
    weight: Any = None
    for (low, fraction, size), step in zip(axes, corner, strict=True):
        pixel = build.Add(low, step)
        inside = build.And(build.GreaterOrEqual(pixel, 0), build.Less(pixel, size))
        part = build.Where(inside, fraction if step else build.Sub(one, fraction), zero)
        safe = build.Where(inside, pixel, 0)
        weight = part if weight is None else build.Mul(weight, part)
        index = safe if index is None else build.Add(build.Mul(index, size), safe)
    channels = build.Shape(image, start=2, end=3)
    flat = build.Reshape(index, [0, 0, 1, -1])
    spread = build.Expand(flat, build.Concat([1, 1], channels, [1], axis=0))
    return build.Mul(
        build.GatherElements(image, spread, axis=3), build.Reshape(weight, [0, 0, 1, -1])
    )
