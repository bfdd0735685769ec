# mypy: disable-error-code="misc, no-any-return"
"""Convolutions and pools with activations, quantization or channels last, and crops of images."""

from typing import Any

import numpy as np

from sardonyx.errors import EvaluationError, InferenceError
from sardonyx.graph import Value
from sardonyx.ops.build import Builder
from sardonyx.ops.convolution import Conv, ConvTranspose
from sardonyx.ops.evaluate import Context
from sardonyx.ops.fact import Fact, Sizes, same_size, tensor
from sardonyx.ops.grid import GridSample as StandardGridSample
from sardonyx.ops.ms_arithmetic import dequantize, requantize, size_of
from sardonyx.ops.ms_product import activate, build_activation
from sardonyx.ops.operator import Operator
from sardonyx.ops.pooling import AveragePool, MaxPool, pooled
from sardonyx.ops.precision import Array, widen
from sardonyx.ops.quantized_product import QLinearConv as StandardQLinearConv
from sardonyx.ops.sliding import Ints


def channels_first(x: Fact) -> Fact:
    """What an image with channels last looks like with its channels behind the batch."""
    if x.shape is None or len(x.shape) < 3:
        return x
    return tensor(x.dtype, (x.shape[0], x.shape[-1], *x.shape[1:-1]))


def channels_last(x: Fact) -> Fact:
    """The inverse of `channels_first`."""
    if x.shape is None or len(x.shape) < 3:
        return x
    return tensor(x.dtype, (x.shape[0], *x.shape[2:], x.shape[1]))


class FusedConv(Operator):
    """Convolution, a sum with Z, and an activation."""

    domain = "com.microsoft"
    signatures = (
        "1(X: T, W: T, B?: T, Z?: T, activation?: string, activation_params?: floats,"
        " auto_pad: string = 'NOTSET', dilations?: ints, group: int = 1, kernel_shape?: ints,"
        " pads?: ints, strides?: ints) -> Y: T; T: floats3",
    )

    def infer(
        x: Fact, w: Fact, b: Fact | None = None, z: Fact | None = None, *,
        activation: str | None, activation_params: tuple[float, ...] | None, **steps: Any,
    ) -> Fact:  # fmt: skip
        return Conv.infer(x, w, b, **steps)

    def reference(
        x: Array, w: Array, b: Array | None = None, z: Array | None = None, *,
        activation: str | None, activation_params: tuple[float, ...] | None, **steps: Any,
    ) -> Array:  # fmt: skip
        wide = None if b is None else widen(b)
        total = Conv.reference(widen(x), widen(w), wide, **steps)
        if z is not None:
            total = total + widen(z)
        return activate(total, activation, activation_params or ()).astype(x.dtype)

    def function(
        build: Builder, x: Value, w: Value, b: Value | None = None, z: Value | None = None, *,
        activation: str | None, activation_params: tuple[float, ...] | None, **steps: Any,
    ) -> Value:  # fmt: skip
        given = {name: value for name, value in steps.items() if value is not None}
        total = build.Conv(x, w, b, **given)
        if z is not None:
            total = build.Add(total, z)
        return build_activation(build, total, activation, activation_params or ())


class NhwcMaxPool(Operator):
    """The largest element of each window of an image with channels last."""

    domain = "com.microsoft"
    signatures = (
        "1(x: T, auto_pad: string = 'NOTSET', ceil_mode: int = 0, dilations?: ints,"
        " kernel_shape: ints, pads?: ints, strides?: ints) -> y: T; T: int8 uint8",
    )

    def infer(x: Fact, kernel_shape: Ints, **steps: Any) -> Fact:
        return channels_last(pooled(channels_first(x), kernel_shape, **steps))

    def reference(x: Array, context: Context, **steps: Any) -> Array:
        image = np.moveaxis(x, -1, 1)
        (largest, *_) = MaxPool.reference(image, storage_order=0, context=context, **steps)
        return np.moveaxis(largest, 1, -1)


class QLinearConv(Operator):
    """Convolution of a quantized image, which may have its channels last."""

    domain = "com.microsoft"
    signatures = (
        "1(x: T1, x_scale: tensor(float), x_zero_point: T1, w: T2, w_scale: tensor(float),"
        " w_zero_point: T2, y_scale: tensor(float), y_zero_point: T3, B?: T4,"
        " auto_pad: string = 'NOTSET', channels_last: int = 0, dilations?: ints, group: int = 1,"
        " kernel_shape?: ints, pads?: ints, strides?: ints) -> y: T3;"
        " T1: int8 uint8; T2: int8 uint8; T3: int8 uint8; T4: int32",
    )

    def infer(x: Fact, *rest: Fact, **attributes: Any) -> Fact:
        last = attributes.pop("channels_last")
        made = StandardQLinearConv.infer(channels_first(x) if last else x, *rest, **attributes)
        return channels_last(made) if last else made

    def reference(x: Array, *rest: Array, **attributes: Any) -> Array:
        last = attributes.pop("channels_last")
        image = np.moveaxis(x, -1, 1) if last else x
        result = StandardQLinearConv.reference(image, *rest, **attributes)
        return np.moveaxis(result, 1, -1) if last else result


class QLinearAveragePool(Operator):
    """The mean of each window of a quantized image."""

    domain = "com.microsoft"
    signatures = (
        "1(X: T, x_scale: tensor(float), x_zero_point?: T, y_scale: tensor(float),"
        " y_zero_point?: T, auto_pad: string = 'NOTSET', ceil_mode: int = 0,"
        " channels_last: int = 0, count_include_pad: int = 0, kernel_shape: ints, pads?: ints,"
        " strides?: ints) -> Y: T; T: int8 uint8",
    )

    def infer(
        x: Fact, *rest: Fact | None, channels_last: int, count_include_pad: int,
        kernel_shape: Ints, **steps: Any,
    ) -> Fact:  # fmt: skip
        if not channels_last:
            return pooled(x, kernel_shape, **steps)
        return _last(pooled(channels_first(x), kernel_shape, **steps))

    def reference(
        x: Array, x_scale: Array, x_zero: Array | None, y_scale: Array,
        y_zero: Array | None = None, *, channels_last: int, **steps: Any,
    ) -> Array:  # fmt: skip
        image = dequantize(np.moveaxis(x, -1, 1) if channels_last else x, x_scale, x_zero)
        mean = AveragePool.reference(image, dilations=None, **steps)
        result = requantize(mean, y_scale, y_zero, x.dtype)
        return np.moveaxis(result, 1, -1) if channels_last else result


_last = channels_last


class QLinearGlobalAveragePool(Operator):
    """The mean of each channel of a quantized image."""

    domain = "com.microsoft"
    signatures = (
        "1(X: T, x_scale: tensor(float), x_zero_point: T, y_scale: tensor(float), y_zero_point: T,"
        " channels_last: int = 0) -> Y: T; T: int8 uint8",
    )

    def infer(x: Fact, *rest: Fact, channels_last: int) -> Fact:
        if x.shape is None:
            return tensor(x.dtype, None)
        ones = (1,) * (len(x.shape) - 2)
        last = (x.shape[0], *ones, x.shape[-1])
        return tensor(x.dtype, last if channels_last else (*x.shape[:2], *ones))

    def reference(
        x: Array, x_scale: Array, x_zero: Array, y_scale: Array, y_zero: Array, *,
        channels_last: int,
    ) -> Array:  # fmt: skip
        axes = tuple(range(1, x.ndim - 1) if channels_last else range(2, x.ndim))
        mean = dequantize(x, x_scale, x_zero).mean(axes, keepdims=True)
        return requantize(mean, y_scale, y_zero, x.dtype)


class ConvTransposeWithDynamicPads(Operator):
    """Transposed convolution whose pads are an input."""

    domain = "com.microsoft"
    signatures = (
        "1(X: T, W: T, Pads?: tensor(int64), B?: T, auto_pad: string = 'NOTSET', dilations?: ints,"
        " group: int = 1, kernel_shape?: ints, output_padding?: ints, strides?: ints) -> Y: T;"
        " T: floats3",
    )

    def infer(
        x: Fact, w: Fact, pads: Fact | None = None, b: Fact | None = None, **steps: Any
    ) -> Fact:
        known = None if pads is None or pads.constant is None else tuple(map(int, pads.constant))
        made: Fact = ConvTranspose.infer(x, w, b, pads=known, output_shape=None, **steps)
        if pads is None or known is not None or made.shape is None:
            return made
        return tensor(made.dtype, (*made.shape[:2], *(None for _ in made.shape[2:])))

    def reference(
        x: Array, w: Array, pads: Array | None = None, b: Array | None = None, **steps: Any
    ) -> Array:
        given = None if pads is None else tuple(map(int, pads))
        return ConvTranspose.reference(x, w, b, pads=given, output_shape=None, **steps)


class GridSample(Operator):
    """Values of an image at places given for each output pixel, in coordinates from -1 to 1."""

    domain = "com.microsoft"
    signatures = (
        "1(X: T1, Grid: T1, align_corners: int = 0, mode: string = 'bilinear',"
        " padding_mode: string = 'zeros') -> Y: T2; T1: all15; T2: floats3",
    )

    def infer(x: Fact, grid: Fact, align_corners: int, mode: str, padding_mode: str) -> Fact:
        if mode not in _SAMPLING:
            raise InferenceError(f"mode '{mode}' is not one of {', '.join(_SAMPLING)}")
        return StandardGridSample.infer(x, grid, align_corners, _SAMPLING[mode], padding_mode)

    def reference(x: Array, grid: Array, align_corners: int, mode: str, padding_mode: str) -> Array:
        mode = _SAMPLING[mode]
        if mode == "cubic" and padding_mode == "border":
            x, grid = _with_border(x, grid, bool(align_corners))
            align_corners = 1
        return StandardGridSample.reference(x, grid, align_corners, mode, padding_mode)


def _with_border(x: Array, grid: Array, align_corners: bool) -> tuple[Array, Array]:
    """An image with its edges repeated, and a grid on it: taps may lie outside, not only places."""
    margin, places = 4, []
    for axis, size in zip((-1, -2), (x.shape[3], x.shape[2]), strict=True):
        place = widen(grid)[..., -1 - axis]
        at = (place + 1) * (size - 1) / 2 if align_corners else ((place + 1) * size - 1) / 2
        within = np.clip(at + margin, 2, size + 2 * margin - 3)
        places.append(within * 2 / (size + 2 * margin - 1) - 1)
    widths = ((0, 0), (0, 0), (margin, margin), (margin, margin))
    return np.pad(x, widths, mode="edge"), np.stack(places, -1).astype(grid.dtype)


_SAMPLING = {"bilinear": "linear", "nearest": "nearest", "bicubic": "cubic"}


class CropAndResize(Operator):
    """Regions of images, each cut out and resized to one size."""

    domain = "com.microsoft"
    signatures = (
        "1(X: T1, rois: T1, batch_indices: T2, crop_size: T2, extrapolation_value: float = 0.0,"
        " mode: string = 'bilinear') -> Y: T1; T1: floats3; T2: int32",
    )

    def infer(
        x: Fact, regions: Fact, batches: Fact, size: Fact, extrapolation_value: float, mode: str
    ) -> Fact:
        if mode not in ("bilinear", "nearest"):
            raise InferenceError(f"mode '{mode}' is neither bilinear nor nearest")
        count = same_size(size_of(regions, 0), size_of(batches, 0), "not one batch for each region")
        crop: Sizes = size.sizes() or (None, None)
        return tensor(x.dtype, (count, size_of(x, 1), *crop))

    def reference(
        x: Array, regions: Array, batches: Array, size: Array, extrapolation_value: float, mode: str
    ) -> Array:
        height, width = (int(item) for item in size)
        if batches.size and not 0 <= batches.min() <= batches.max() < len(x):
            raise EvaluationError(f"a region lies outside the {len(x)} images")
        wide, spread = widen(x), widen(regions)
        result = np.empty((len(regions), x.shape[1], height, width), wide.dtype)
        outside = wide.dtype.type(extrapolation_value)
        for index, (top, left, bottom, right) in enumerate(spread):
            image = wide[batches[index]]
            rows = _sample_points(top, bottom, image.shape[1], height)
            columns = _sample_points(left, right, image.shape[2], width)
            sampled = _sample(image, rows, columns, mode)
            inside = _within(rows, image.shape[1])[:, None] & _within(columns, image.shape[2])
            result[index] = np.where(inside, sampled, outside)
        return result.astype(x.dtype)


def _sample_points(start: Any, end: Any, size: int, count: int) -> Array:
    """Where `count` points between two relative places lie on an axis of `size` pixels."""
    last = start.dtype.type(size - 1)
    if count == 1:
        return np.asarray([(start + end) * last / 2])
    return start * last + np.arange(count, dtype=start.dtype) * ((end - start) * last / (count - 1))


def _within(points: Array, size: int) -> Array:
    return (points >= 0) & (points <= size - 1)


def _sample(image: Array, rows: Array, columns: Array, mode: str) -> Array:
    """Pixels at points of a grid: the nearest one, or weighed from the four around."""
    limits = [len(axis) - 1 for axis in (image[0], image[0, 0])]
    if mode == "nearest":
        near = [np.floor(points + 0.5) for points in (rows, columns)]
        at = [np.clip(p, 0, top).astype(int) for p, top in zip(near, limits, strict=True)]
        return image[:, at[0][:, None], at[1]]
    low = [np.floor(points) for points in (rows, columns)]
    high = [np.ceil(points) for points in (rows, columns)]
    part_y, part_x = (rows - low[0])[:, None], columns - low[1]
    first = [np.clip(p, 0, top).astype(int) for p, top in zip(low, limits, strict=True)]
    second = [np.clip(p, 0, top).astype(int) for p, top in zip(high, limits, strict=True)]
    lines = []
    for y in (first[0], second[0]):
        left, right = image[:, y[:, None], first[1]], image[:, y[:, None], second[1]]
        lines.append(left + (right - left) * part_x)
    result: Array = lines[0] + (lines[1] - lines[0]) * part_y
    return result
