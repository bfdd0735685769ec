"""Operators that move elements: views where that is possible, else copies."""

from typing import Any

import numpy as np

from sardonyx.compiler.forms import (
    Axis,
    Form,
    Gather,
    Join,
    NotLowered,
    View,
    expand,
    number,
    reshape,
    squeeze,
    transpose,
    unsqueeze,
)
from sardonyx.compiler.lowerings.request import Agreement, Lowerings, Request
from sardonyx.dims import Size, is_nonnegative, maximum, minimum
from sardonyx.dtypes import DataType, from_numpy
from sardonyx.loops.nodes import STORED
from sardonyx.ops.fact import axis_of
from sardonyx.ops.slicing import BEYOND, bounded_start, first_position


def same(request: Request, x: Form) -> Form:
    """The input itself."""
    return x


def reshaped(request: Request, x: Form, *_: Form | None, **__: int) -> Form:
    """Reshape, Flatten: the shape is inference's; one that is given must be known to fit."""
    if request.given(1):
        request.sizes(1, "the shape")
    return reshape(x, request.told(1))


def squeezed(request: Request, x: Form, axes: Form | None = None) -> Form:
    """Without axes of size 1."""
    if axes is None:
        return reshape(x, request.told())
    return squeeze(x, request.integers(1, "the list of axes"))


def unsqueezed(request: Request, x: Form, axes: Form) -> Form:
    """With more axes of size 1."""
    return unsqueeze(x, request.integers(1, "the list of axes"))


def transposed(request: Request, x: Form, perm: tuple[int, ...] | None) -> Form:
    """Axes in another order, by default reversed."""
    return transpose(x, perm or tuple(reversed(range(len(x.shape)))))


def expanded(request: Request, x: Form, shape: Form) -> Form:
    """Axes of size 1 repeated, on either side."""
    wanted, result = request.sizes(1, "the shape"), request.told(1)
    for size, found in zip(reversed(wanted), reversed(result), strict=False):
        if size not in (1, found):
            if isinstance(size, int) and isinstance(found, int):
                raise NotLowered(f"size {found} does not repeat to {size}")
            request.agreements.append(Agreement(size, found, True))
    return expand(x, result)


def sliced(request: Request, x: Form, *_: Form | None) -> Form:
    """A range of each axis."""
    rank = len(x.shape)
    starts = [bounded_start(start) for start in request.sizes(1, "a bound", far=True)]
    request.sizes(2, "a bound", far=True)
    given, steps = list(range(len(starts))), [1] * len(starts)
    if request.given(3):
        given = request.integers(3, "the list of axes", count=len(starts))
    if request.given(4):
        steps = request.integers(4, "the list of steps", count=len(starts))
    if len(given) > rank:
        raise NotLowered(f"there are {len(given)} ranges and {rank} axes")
    places: list[Axis] = [Axis(axis) for axis in range(rank)]
    for axis, start, by in zip(given, starts, steps, strict=True):
        place, step = axis_of(axis, rank), by
        if abs(step) >= BEYOND:
            step = 1 if step > 0 else -1  # there is one element at most
        places[place] = Axis(place, _first(x.shape[place], start, step), step)
    return View(request.told(1, 2), x.dtype, x, tuple(places))


def _first(size: Size, start: Size, step: int) -> Size:
    """The first index of a range, as slicing in Python has it."""
    if isinstance(size, int) and isinstance(start, int):
        return slice(first_position(start, size, step), 0, step).indices(size)[0]
    if isinstance(start, int):
        start = start if start >= 0 else size + start
    elif not is_nonnegative(start):
        raise NotLowered(f"whether {start} counts from the end is only known later")
    return maximum(minimum(start, size if step > 0 else size - 1), 0)


def split(
    request: Request, x: Form, *_: Form | None, axis: int, num_outputs: int | None
) -> tuple[Form, ...]:
    """Parts along an axis, as views."""
    place = axis_of(axis, len(x.shape))
    if request.given(1):
        request.sizes(1, "the list of sizes")
    parts: list[Form] = []
    start: Size = 0
    for output in range(len(request.outputs)):
        shape = request.shape(output)
        axes = [Axis(number) for number in range(len(shape))]
        axes[place] = Axis(place, start)
        parts.append(View(shape, x.dtype, x, tuple(axes)))
        start = start + shape[place]
    request.agree(start, x.shape[place])
    return tuple(parts)


def joined(request: Request, *parts: Form, axis: int) -> Form:
    """Parts one after another."""
    place = axis_of(axis, len(parts[0].shape))
    shape = request.shape()
    for part in parts:
        for other, (size, whole) in enumerate(zip(part.shape, shape, strict=True)):
            if other != place:
                request.agree(size, whole)
    return Join(shape, parts[0].dtype, parts, place)


def gathered(request: Request, table: Form, indices: Form, axis: int) -> Form:
    """Slices chosen by indices; a constant scalar index is a view."""
    place = axis_of(axis, len(table.shape))
    known = request.inputs[1].constant if request.inputs[1] is not None else None
    size = table.shape[place]
    if known is not None and known.ndim == 0 and (isinstance(size, int) or known >= 0):
        rest = iter(range(len(table.shape)))
        start = int(known) if known >= 0 else int(known) + size
        axes = tuple(
            Axis(None, start) if number == place else Axis(next(rest))
            for number in range(len(table.shape))
        )
        shape = (*table.shape[:place], *table.shape[place + 1 :])
        return View(shape, table.dtype, table, axes)
    return Gather(request.shape(), table.dtype, table, indices, place)


def tiled(request: Request, x: Form, repeats: Form) -> Form:
    """The whole tensor repeated along its axes: axes of its own, then merged."""
    counts = request.sizes(1, "the list of repeats")
    rank = len(x.shape)
    shape = [size for pair in zip(counts, x.shape, strict=True) for size in pair]
    axes = tuple(Axis(2 * axis + 1) for axis in range(rank))
    spread = View(tuple(shape), x.dtype, x, axes)
    return reshape(spread, [size * count for size, count in zip(x.shape, counts, strict=True)])


def filled(request: Request, shape: Form, *, value: Any) -> Form:
    """One number everywhere."""
    array = np.zeros(1, np.float32) if value is None else np.asarray(value)
    dtype = from_numpy(array.dtype)
    if dtype in STORED or array.dtype == object:
        raise NotLowered(f"a constant of {dtype.text} has no native form")
    return expand(number(array.reshape(-1)[0].item(), dtype), request.told(0))


LOWERINGS: Lowerings = {
    ("com.microsoft", "ExpandDims"): unsqueezed,
    ("", "Tile"): tiled,
    ("", "ConstantOfShape"): filled,
    ("", "Identity"): same,
    ("", "OptionalGetElement"): same,
    ("", "Dropout"): lambda request, x, *_, **__: _inference_only(request, x),
    ("", "Reshape"): reshaped,
    ("", "Flatten"): reshaped,
    ("", "Squeeze"): squeezed,
    ("", "Unsqueeze"): unsqueezed,
    ("", "Transpose"): transposed,
    ("", "Expand"): expanded,
    ("", "Slice"): sliced,
    ("", "Split"): split,
    ("", "Concat"): joined,
    ("", "Gather"): gathered,
}


def _inference_only(request: Request, x: Form) -> Form | tuple[Form, Form]:
    trains = request.given(2) and bool(request.constant(2, "whether it trains").reshape(-1)[0])
    if trains and not (request.given(1) and request.constant(1, "the ratio").reshape(-1)[0] == 0):
        raise NotLowered("random numbers are drawn in the order of the reference")
    mask = expand(number(True, DataType.BOOL), x.shape)
    return x if len(request.outputs) < 2 else (x, mask)
