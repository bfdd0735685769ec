"""Convolution, its transpose, and the causal one that keeps state."""

from typing import Any, ClassVar

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.errors import InferenceError
from sardonyx.graph import Value
from sardonyx.ops.bfloat16 import through_float
from sardonyx.ops.build import Builder
from sardonyx.ops.fact import Fact, Sizes, same_size, tensor, unknown
from sardonyx.ops.operator import Operator
from sardonyx.ops.precision import Array, compute_type, narrow, widen
from sardonyx.ops.sliding import (
    AUTO_PADS,
    Ints,
    Sliding,
    is_image,
    kernel_sizes,
    output_sizes,
    pad_pairs,
    per_axis,
    require_kernel,
    slide,
)

LARGEST_COLUMNS = 1 << 24
"""How many elements of unfolded windows are held at a time, beyond what one image needs."""


def convolve(x: Array, w: Array, sliding: Sliding, group: int) -> Array:
    """The sums of products of windows and filters, as matrix products over unfolded windows."""
    batch, channels = x.shape[:2]
    maps, inner = w.shape[:2]
    if group < 1 or channels != inner * group or maps % group:
        raise ValueError(
            f"{channels} channels in {group} groups do not fit weights {list(w.shape)}"
        )
    rank, taps = len(sliding.kernel), inner * int(np.prod(sliding.kernel))
    positions = int(np.prod(sliding.outputs))
    padded = sliding.pad(x)
    windows = sliding.windows(padded.reshape(batch, group, inner, *padded.shape[2:]))
    columns = windows.transpose(0, 1, 2, *range(3 + rank, 3 + 2 * rank), *range(3, 3 + rank))
    filters = w.reshape(group, maps // group, taps)
    result = np.empty((batch, group, maps // group, positions), x.dtype)
    step = max(1, LARGEST_COLUMNS // max(1, group * taps * positions))
    for start in range(0, batch, step):
        part = columns[start : start + step]
        unfolded = part.reshape(len(part), group, taps, positions)
        np.matmul(filters, unfolded, out=result[start : start + step])
    return result.reshape(batch, maps, *sliding.outputs)


def convolution_shape(
    x: Fact, w: Fact, *, group: int, kernel_shape: Ints | None, **steps: Any
) -> Sizes | None:
    """The shape of a convolution's result, as far as the image's and the weights' are known."""
    x = _as_ranked_as(x, w)
    if x.shape is None:
        return None
    maps = None
    if w.shape is not None:
        if len(w.shape) != len(x.shape):
            raise InferenceError(f"weights {w} are for another rank than {x}")
        maps = w.shape[0]
        if w.shape[1] is not None:
            same_size(x.shape[1], w.shape[1] * group, f"weights {w} do not fit the channels of {x}")
    kernel = kernel_sizes(w, kernel_shape, len(x.shape) - 2)
    spatial = output_sizes(x.shape[2:], kernel, **steps)
    return (x.shape[0], maps, *spatial)


def _as_ranked_as(x: Fact, w: Fact) -> Fact:
    """An image whose rank is that of its weights, where it is not known itself."""
    is_image(x)
    if not is_image(w) or x.shape is not None:
        return x
    return unknown(w.rank, x.dtype)


def along_channels(bias: Array, rank: int) -> Array:
    """A vector shaped so that it broadcasts along the channels of an image with `rank` axes."""
    return bias.reshape(-1, *(1,) * (rank - 2))


class Conv(Operator):
    """Convolution (in truth cross-correlation) of an image with filters, in groups of channels."""

    signatures = (
        "1(X: T, W: T, B?: T, auto_pad: string = 'NOTSET', dilations?: ints, group: int = 1,"
        " kernel_shape?: ints, pads?: ints, strides?: ints) -> Y: T; T: floats3",
        "11(X: T, W: T, B?: T, auto_pad: string = 'NOTSET', dilations?: ints, group: int = 1,"
        " kernel_shape?: ints, pads?: ints, strides?: ints) -> Y: T; T: floats3",
        "22(X: T, W: T, B?: T, auto_pad: string = 'NOTSET', dilations?: ints, group: int = 1,"
        " kernel_shape?: ints, pads?: ints, strides?: ints) -> Y: T; T: floats",
    )
    downgrade_22 = through_float

    def infer(x: Fact, w: Fact, b: Fact | None = None, **attributes: Any) -> Fact:
        return tensor(x.dtype or w.dtype, convolution_shape(x, w, **attributes))

    def reference(
        x: Array, w: Array, b: Array | None = None, *, group: int, kernel_shape: Ints | None,
        **steps: Any,
    ) -> Array:  # fmt: skip
        sliding = slide(x.shape[2:], w.shape[2:], **steps)
        result = convolve(widen(x), widen(w), sliding, group)
        if b is not None:
            result += along_channels(widen(b), x.ndim)
        return narrow(result, x.dtype)


class ConvTranspose(Operator):
    """The transpose of a convolution: elements spread filters, overlaps are summed."""

    signatures = (
        "1(X: T, W: T, B?: T, auto_pad: string = 'NOTSET', dilations?: ints, group: int = 1,"
        " kernel_shape?: ints, output_padding?: ints, output_shape?: ints, pads?: ints,"
        " strides?: ints) -> Y: T; T: floats3",
        "11(X: T, W: T, B?: T, auto_pad: string = 'NOTSET', dilations?: ints, group: int = 1,"
        " kernel_shape?: ints, output_padding?: ints, output_shape?: ints, pads?: ints,"
        " strides?: ints) -> Y: T; T: floats3",
        "22(X: T, W: T, B?: T, auto_pad: string = 'NOTSET', dilations?: ints, group: int = 1,"
        " kernel_shape?: ints, output_padding?: ints, output_shape?: ints, pads?: ints,"
        " strides?: ints) -> Y: T; T: floats",
    )
    choices: ClassVar = {"auto_pad": AUTO_PADS}
    downgrade_22 = through_float

    def infer(
        x: Fact, w: Fact, b: Fact | None = None, *, group: int, kernel_shape: Ints | None,
        **steps: Any,
    ) -> Fact:  # fmt: skip
        x = _as_ranked_as(x, w)
        if x.shape is None:
            return tensor(x.dtype or w.dtype, None)
        maps = None
        if w.shape is not None:
            same_size(x.shape[1], w.shape[0], f"weights {w} do not fit the channels of {x}")
            maps = None if w.shape[1] is None else w.shape[1] * group
        kernel = kernel_sizes(w, kernel_shape, len(x.shape) - 2)
        spatial, _ = spread_sizes(x.shape[2:], kernel, **steps)
        return tensor(x.dtype or w.dtype, (x.shape[0], maps, *spatial))

    def reference(
        x: Array, w: Array, b: Array | None = None, *, group: int, kernel_shape: Ints | None,
        **steps: Any,
    ) -> Array:  # fmt: skip
        rank = x.ndim - 2
        sizes, begins = spread_sizes(x.shape[2:], w.shape[2:], **steps)
        columns = _spread(widen(x), widen(w), group)
        strides = per_axis(steps["strides"], rank, "strides")
        dilations = per_axis(steps["dilations"], rank, "dilations")
        result = fold(columns, sizes, begins, strides, dilations)
        if b is not None:
            result = result + along_channels(widen(b), x.ndim)
        return narrow(result, x.dtype)


def spread_sizes(
    sizes: Sizes, kernel: Sizes, *, strides: Ints | None, dilations: Ints | None,
    pads: Ints | None, output_padding: Ints | None, output_shape: Ints | None, auto_pad: str,
) -> tuple[Any, Any]:  # fmt: skip
    """Sizes of a transposed convolution's result, and how much is cut off before each axis."""
    rank = len(sizes)
    strides, dilations = per_axis(strides, rank, "strides"), per_axis(dilations, rank, "dilations")
    require_kernel(kernel, rank)
    pairs = pad_pairs(None if auto_pad == "VALID" else pads, rank)
    outputs, begins = [], []
    for axis, (size, taps) in enumerate(zip(sizes, kernel, strict=True)):
        full: Any = None
        if size is not None and taps is not None:
            full = (size - 1) * strides[axis] + (taps - 1) * dilations[axis] + 1
        extra = output_padding[axis] if output_padding else 0
        begin, end = pairs[axis]
        wanted: Any = full if full is None else full + extra - begin - end
        if output_shape:
            wanted = output_shape[axis - rank]
        elif auto_pad.startswith("SAME"):
            wanted = None if size is None else size * strides[axis]
        if isinstance(full, int) and (output_shape or auto_pad.startswith("SAME")):
            total = max(full + extra - wanted, 0)
            begin = total // 2 if auto_pad == "SAME_UPPER" else total - total // 2
        outputs.append(wanted)
        begins.append(begin)
    return tuple(outputs), tuple(begins)


def _spread(x: Array, w: Array, group: int) -> Array:
    """Every element times its filters: [batch, maps, kernel..., sizes...]."""
    batch, channels = x.shape[:2]
    if group < 1 or channels != w.shape[0] or channels % group:
        raise ValueError(
            f"{channels} channels in {group} groups do not fit weights {list(w.shape)}"
        )
    inner, taps = channels // group, int(np.prod(w.shape[1:]))
    filters = w.reshape(group, inner, taps).transpose(0, 2, 1)
    pixels = int(np.prod(x.shape[2:]))
    columns: Array = np.matmul(filters, x.reshape(batch, group, inner, pixels))
    return columns.reshape(batch, group * w.shape[1], *w.shape[2:], *x.shape[2:])


def fold(columns: Array, sizes: Ints, begins: Ints, strides: Ints, dilations: Ints) -> Array:
    """Sum columns [batch, channels, kernel..., windows...] into an image where its windows stand.

    `begins` is how much is cut off before each axis of the image.
    """
    rank = len(sizes)
    kernel, counts = columns.shape[2 : 2 + rank], columns.shape[2 + rank :]
    room = [
        max((count - 1) * stride + (taps - 1) * dilation + 1, begin + size)
        for count, stride, taps, dilation, begin, size in zip(
            counts, strides, kernel, dilations, begins, sizes, strict=True
        )
    ]
    fill: Any = "" if columns.dtype == object else 0
    image = np.full((*columns.shape[:2], *room), fill, columns.dtype)
    for tap in np.ndindex(*kernel):
        target = tuple(
            slice(at * dilation, at * dilation + count * stride, stride)
            for at, dilation, count, stride in zip(tap, dilations, counts, strides, strict=True)
        )
        part = image[(slice(None), slice(None), *target)]
        trimmed = part[(slice(None), slice(None), *(slice(count) for count in counts))]
        trimmed += columns[(slice(None), slice(None), *tap)]
    cut = tuple(slice(at, at + size) for at, size in zip(begins, sizes, strict=True))
    return image[(slice(None), slice(None), *cut)]


class CausalConvWithState(Operator):
    """A convolution of each channel with the present and past positions; the past is carried on."""

    signatures = (
        "27(input: T, weight: T, bias?: T, past_state?: T, activation: string = 'none')"
        " -> (output: T, present_state: T); T: bfloat16 float float16",
    )

    def infer(
        x: Fact,
        weight: Fact,
        bias: Fact | None = None,
        past: Fact | None = None,
        *,
        activation: str,
    ) -> tuple[Fact, Fact]:
        _check_activation(activation)
        for fact in (x, weight, *(() if past is None else (past,))):
            if fact.shape is not None and len(fact.shape) != 3:
                raise InferenceError(f"inputs must have rank 3, not {fact}")
        batch, channels, length = x.shape or (None, None, None)
        if weight.shape is not None:
            channels = same_size(channels, weight.shape[0], f"weights {weight} do not fit {x}")
        taps = None if weight.shape is None else weight.shape[2]
        kept = None if taps is None else taps - 1
        if past is not None and past.shape is not None:
            kept = same_size(
                kept, past.shape[2], f"past_state {past} does not fit weights {weight}"
            )
            batch = same_size(batch, past.shape[0], f"past_state {past} does not fit {x}")
        return (
            tensor(x.dtype, (batch, channels, length)),
            tensor(x.dtype, (batch, channels, kept)),
        )

    def reference(
        x: Array, weight: Array, bias: Array | None = None, past: Array | None = None, *,
        activation: str,
    ) -> tuple[Array, Array]:  # fmt: skip
        _check_activation(activation)
        batch, channels, length = x.shape
        kept = weight.shape[2] - 1
        before = np.zeros((batch, channels, kept), x.dtype) if past is None else past
        padded = np.concatenate([before, x], axis=2)
        result = np.zeros(x.shape, compute_type(x.dtype))
        for tap in range(kept + 1):
            result += widen(padded[:, :, tap : tap + length]) * widen(weight[:, :, tap])
        if bias is not None:
            result += along_channels(widen(bias), 3)
        result = result.astype(x.dtype, copy=False)
        if activation != "none":
            wide = widen(result)
            result = (wide / (1 + np.exp(-wide))).astype(x.dtype, copy=False)
        return result, padded[:, :, padded.shape[2] - kept :].copy()

    def function(
        build: Builder, x: Value, weight: Value, bias: Value | None = None,
        past: Value | None = None, *, activation: str,
    ) -> tuple[Value, Value]:  # fmt: skip
        _check_activation(activation)
        taps = build.Shape(weight, start=2)
        kept = build.Sub(taps, [1])
        if past is None:
            shape = build.Concat(build.Shape(x, end=2), kept, axis=0)
            past = build.Expand(build.CastLike(0.0, x), shape)
        padded = build.Concat(past, x, axis=2)
        starts = build.Range(0, build.Squeeze(build.Shape(x, start=2), [0]), 1)
        steps = build.Range(0, build.Squeeze(taps, [0]), 1)
        places = build.Add(build.Unsqueeze(starts, [1]), steps)
        windows = build.Cast(build.Gather(padded, places, axis=2), to=DataType.FLOAT)
        products = build.Mul(windows, build.Cast(weight, to=DataType.FLOAT))
        result = build.ReduceSum(products, [3], keepdims=0)
        if bias is not None:
            column = build.Unsqueeze(build.Cast(bias, to=DataType.FLOAT), [1])
            result = build.Add(result, column)
        if activation != "none":
            rounded = build.Cast(build.CastLike(result, x), to=DataType.FLOAT)
            result = build.Mul(rounded, build.Sigmoid(rounded))
        length = build.Shape(padded, start=2)
        present = build.Slice(padded, build.Sub(length, kept), length, [2])
        return build.CastLike(result, x), present


def _check_activation(activation: str) -> None:
    if activation not in ("none", "silu", "swish"):
        raise InferenceError(f"activation '{activation}' is not one of none, silu, swish")
