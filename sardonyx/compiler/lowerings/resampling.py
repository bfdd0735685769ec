"""Resize: along each axis weighted sums of elements, at places that are constants where sizes are.

Where sizes are only known when the program runs, places are computed from indices.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sardonyx.compiler.forms import (
    Form,
    NotLowered,
    binary,
    cast,
    constant,
    iota,
    number,
    reshape,
    select,
    take,
    unary,
)
from sardonyx.compiler.lowerings.request import Lowerings, Request
from sardonyx.dims import Size, minimum
from sardonyx.dtypes import DataType
from sardonyx.ops.fact import axis_of
from sardonyx.ops.interpolate import Line, Method, nearest, neighbours, positions
from sardonyx.ops.resize import resize_lines, resize_method

MOST_PLACES = 1 << 24
"""Places along an axis that are computed before a program runs."""


def resize(
    request: Request, x: Form, roi: Form | None = None, scales: Form | None = None,
    sizes: Form | None = None, **how: Any,
) -> Form:  # fmt: skip
    """A tensor resampled to given sizes, or by given factors."""
    method, rank = resize_method(how), len(x.shape)
    along = [
        axis_of(axis, rank) for axis in (how["axes"] if how["axes"] is not None else range(rank))
    ]
    given = [_content(request, place) for place in (1, 2, 3)]
    crop = given[0] if method.coordinates == "tf_crop_and_resize" else None
    shape = [x.shape[axis] for axis in along]
    result = x if method.mode == "nearest" else _wide(x)
    if all(isinstance(size, int) for size in shape):
        whole = [size for size in shape if isinstance(size, int)]
        lines = resize_lines(whole, crop, given[1], given[2], how["keep_aspect_ratio_policy"])
        for axis, line in zip(along, lines, strict=True):
            if not line.unchanged:
                result = _resampled(result, axis, line, method)
    else:
        result = _dynamic(request, result, along, given[1], method, how)
    return cast(_rounded(result, x.dtype), x.dtype)


def _content(request: Request, position: int) -> NDArray[Any] | None:
    if not request.given(position):
        return None
    fact = request.inputs[position]
    if position == 3 and fact is not None and fact.value is not None:
        return fact.value
    return request.constant(position, "a size or factor")


def _wide(x: Form) -> Form:
    return cast(x, DataType.DOUBLE if x.dtype.bits > 32 else DataType.FLOAT)


def _rounded(x: Form, dtype: DataType) -> Form:
    """Interpolated integers are rounded, and brought into their range."""
    if dtype.is_float or not x.dtype.is_float:
        return x
    limits = np.iinfo(dtype.numpy)
    inside = binary("max", unary("rint", x), float(limits.min))
    return binary("min", inside, float(limits.max))


def _spread(vector: Form, axis: int, rank: int) -> Form:
    return reshape(vector, [1] * axis + [vector.shape[0]] + [1] * (rank - axis - 1))


def _resampled(x: Form, axis: int, line: Line, method: Method) -> Form:
    """Elements along an axis at places that are known now."""
    if line.size == 0 and line.result:
        raise NotLowered("a dimension of size 0 cannot be made larger")
    if line.result > MOST_PLACES:
        raise NotLowered(f"{line.result} places are too many to keep")
    if method.mode == "nearest":
        places = positions(line, method.coordinates, np.float32)
        result = _along(x, axis, nearest(places, method.nearest, line.size))
    else:
        places = positions(line, method.coordinates, np.float64)
        indices, weights = neighbours(places, line, method)
        result = _weighted(x, axis, indices, weights)
    if method.coordinates == "tf_crop_and_resize":
        inside = (places >= 0) & (places <= line.size - 1)
        outside = _spread(constant(~inside), axis, len(x.shape))
        result = select(outside, number(method.extrapolation, x.dtype), result)
    return result


def _weighted(x: Form, axis: int, indices: NDArray[np.int64], weights: NDArray[np.float64]) -> Form:
    """Sums of neighbours times their weights; one that weighs nothing counts for nothing."""
    pairs = list(zip(indices.T, weights.T, strict=True))
    heavy = [pair for pair in pairs if np.any(pair[1])] or pairs[:1]
    total: Form | None = None
    for places, factors in heavy:
        weight = _spread(constant(factors.astype(x.dtype.numpy)), axis, len(x.shape))
        part = _along(x, axis, places) * weight
        if not np.all(factors):
            part = select(binary("eq", weight, 0.0), 0.0, part)
        total = part if total is None else total + part
    if total is None:
        raise NotLowered("no element has any weight")
    return total


def _along(x: Form, axis: int, places: NDArray[np.int64]) -> Form:
    return _taken(x, axis, _spread(constant(np.ascontiguousarray(places)), axis, len(x.shape)))


def _taken(x: Form, axis: int, places: Form) -> Form:
    shape = (*x.shape[:axis], places.shape[axis], *x.shape[axis + 1 :])
    indices = [places if other == axis else iota(shape, other) for other in range(len(shape))]
    return take(x, indices)


def _dynamic(
    request: Request, x: Form, along: list[int], scales: NDArray[Any] | None, method: Method,
    how: dict[str, Any],
) -> Form:  # fmt: skip
    """Elements along axes whose sizes are only known when the program runs."""
    plain = not method.antialias and not method.exclude_outside
    if not plain or method.mode == "cubic" or how["keep_aspect_ratio_policy"] != "stretch":
        raise NotLowered("with sizes known only later it has no native form")
    by_factor = scales is not None and scales.size > 0
    shape = request.told(2, 3)
    for place, axis in enumerate(along):
        factor = float(scales[place]) if scales is not None and by_factor else None
        if factor == 1.0 or (factor is None and shape[axis] == x.shape[axis]):
            continue
        request.fit(minimum(shape[axis], 1), x.shape[axis])
        places = _places(x.shape[axis], shape[axis], factor, method)
        x = _interpolated(x, axis, _spread(places, axis, len(shape)), method)
    return x


def _places(size: Size, result: Size, factor: float | None, method: Method) -> Form:
    """Where each position of the result lies in the original axis, as float32."""
    steps = cast(iota((result,), 0), DataType.FLOAT)
    before, after = (cast(number(item, DataType.INT64), DataType.FLOAT) for item in (size, result))
    width = after if factor is None else before * factor

    def back(at: Form) -> Form:
        return at * before / after if factor is None else at / factor

    match method.coordinates:
        case "half_pixel":
            return back(steps + 0.5) - 0.5
        case "pytorch_half_pixel":
            return select(binary("gt", after, 1.0), back(steps + 0.5) - 0.5, 0.0)
        case "asymmetric":
            return back(steps)
        case "align_corners":
            there = steps * (before - 1.0) / (width - 1.0)
            return select(binary("eq", width, 1.0), 0.0, there)
    raise NotLowered(f"'{method.coordinates}' with sizes known only later has no native form")


def _interpolated(x: Form, axis: int, places: Form, method: Method) -> Form:
    last = number(x.shape[axis], DataType.INT64) - 1

    def inside(at: Form) -> Form:
        return binary("max", binary("min", cast(at, DataType.INT64), last), 0)

    if method.mode == "linear":
        low = unary("floor", places)
        weight = places - low
        left, right = (_taken(x, axis, inside(at)) for at in (low, low + 1.0))
        return left * (1.0 - cast(weight, x.dtype)) + right * cast(weight, x.dtype)
    match method.nearest:
        case "round_prefer_floor":
            found = unary("ceil", places - 0.5)
        case "round_prefer_ceil":
            found = unary("floor", places + 0.5)
        case mode:
            found = unary(mode, places)
    return _taken(x, axis, inside(found))


LOWERINGS: Lowerings = {("", "Resize"): resize}
