# mypy: disable-error-code="no-any-return"
"""Resampling of a tensor along one dimension: where output positions lie, and the weights there."""

import math
from typing import Any

import numpy as np

from sardonyx.errors import EvaluationError
from sardonyx.ops.precision import Array
from sardonyx.record import record

COORDINATE_MODES = (
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
    "tf_crop_and_resize",
)  # fmt: skip
NEAREST_MODES = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
MODES = ("nearest", "linear", "cubic")


@record
class Line:
    """One dimension to resample: its size, the size it gets, and the part of it to take.

    `width` is the size it would get if sizes could be fractions.
    """

    size: int
    result: int
    scale: float
    width: float
    region: tuple[float, float] = (0.0, 1.0)

    @property
    def unchanged(self) -> bool:
        """True where every position stays where it is."""
        return self.size == self.result and self.scale == 1 and self.region == (0, 1)


@record
class Method:
    """How to resample: an operator's attributes."""

    mode: str
    coordinates: str
    nearest: str
    cubic: float
    antialias: bool
    exclude_outside: bool
    extrapolation: float


_LARGEST_RESULT = 1 << 48
"""Positions beyond which nobody has memory, and NumPy counts wrong."""


def resample(x: Array, axis: int, line: Line, method: Method) -> Array:
    """A tensor resampled along one dimension; interpolated values are in a wide type."""
    if line.result == 0:
        return np.take(x, np.zeros(0, np.int64), axis)
    if line.size == 0:
        raise EvaluationError("a dimension of size 0 cannot be made larger")
    if line.result > _LARGEST_RESULT:
        raise EvaluationError(f"a dimension of size {line.result} is too large")
    if method.mode == "nearest":
        places = positions(line, method.coordinates, np.float32)
        result = np.take(x, nearest(places, method.nearest, line.size), axis)
    else:
        places = positions(line, method.coordinates, np.float64)
        result = _weighted(x, axis, places, line, method)
    if method.coordinates == "tf_crop_and_resize":
        outside = ~((places >= 0) & (places <= line.size - 1))
        shape = [1] * x.ndim
        shape[axis] = -1
        result = np.where(outside.reshape(shape), np.asarray(method.extrapolation), result)
    return result


def positions(line: Line, mode: str, dtype: Any) -> Array:
    """Where each position of the result lies in the original dimension."""
    steps = np.arange(line.result, dtype=dtype)
    scale, size, width = dtype(line.scale), dtype(line.size), dtype(line.width)
    half = dtype(0.5)

    def back(places: Array) -> Array:
        return places * size / width if line.width == line.result else places / scale

    match mode:
        case "half_pixel":
            return back(steps + half) - half
        case "pytorch_half_pixel":
            return back(steps + half) - half if line.result > 1 else np.zeros_like(steps)
        case "half_pixel_symmetric":
            offset = size / 2 * (1 - line.result / width)
            return (offset + back(steps + half) - half).astype(dtype)
        case "asymmetric":
            return back(steps)
        case "align_corners":
            return np.zeros_like(steps) if width == 1 else steps * (size - 1) / (width - 1)
        case "tf_crop_and_resize":
            with np.errstate(over="ignore", invalid="ignore"):
                start, end = (dtype(item) * (size - 1) for item in line.region)
                if line.result == 1:
                    return np.full(1, (start + end) / 2, dtype)
                return start + steps * (end - start) / dtype(max(line.result - 1, 1))
    raise EvaluationError(f"'{mode}' is not one of {', '.join(COORDINATE_MODES)}")


def nearest(places: Array, mode: str, size: int) -> Array:
    """The position inside a dimension that is nearest to each of `places`."""
    match mode:
        case "round_prefer_floor":
            found = np.ceil(places - places.dtype.type(0.5))
        case "round_prefer_ceil":
            found = np.floor(places + places.dtype.type(0.5))
        case "floor":
            found = np.floor(places)
        case "ceil":
            found = np.ceil(places)
        case _:
            raise EvaluationError(f"'{mode}' is not one of {', '.join(NEAREST_MODES)}")
    inside = np.clip(np.where(np.isnan(found), 0, found), 0, max(size - 1, 0))
    return np.asarray(inside.astype(np.int64))


def neighbours(places: Array, line: Line, method: Method) -> tuple[Array, Array]:
    """The positions each place is made of, brought inside, and their weights."""
    places = np.clip(np.where(np.isnan(places), 0, places), -line.size, 2 * line.size)
    reach = 1 if method.mode == "linear" else 2
    shrink = min(line.scale, 1.0) if method.antialias else 1.0
    first = math.floor(-reach / shrink) + 1
    left = np.ceil(places) - 1
    found = left[:, None] + np.arange(first, 2 - first)
    distances = (found - places[:, None]) * shrink
    weights = _triangle(distances) if method.mode == "linear" else cubic(distances, method.cubic)
    if method.exclude_outside:
        weights = np.where((found < 0) | (found >= line.size), 0, weights)
    if method.exclude_outside or method.antialias:
        total = weights.sum(1, keepdims=True)
        weights = weights / np.where(total == 0, 1, total)
    return np.clip(found, 0, line.size - 1).astype(np.int64), weights


def _weighted(x: Array, axis: int, places: Array, line: Line, method: Method) -> Array:
    """Each output as a weighted sum of its neighbours."""
    indices, weights = neighbours(places, line, method)
    shape = [1] * x.ndim
    shape[axis] = -1
    result = np.zeros((*x.shape[:axis], line.result, *x.shape[axis + 1 :]), x.dtype)
    for index, weight in zip(indices.T, weights.T, strict=True):
        spread = weight.reshape(shape)
        result += np.where(spread == 0, 0, np.take(x, index, axis) * spread)
    return result


def _triangle(distances: Array) -> Array:
    return np.maximum(1 - np.abs(distances), 0)


def cubic(distances: Array, a: float) -> Array:
    """The weights of cubic convolution (Keys 1981) with the coefficient `a`."""
    d = np.abs(distances)
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0))
