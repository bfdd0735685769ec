"""Operators that choose elements by computed indices: takes, and maps of indices."""

from sardonyx.compiler.forms import (
    Axis,
    Form,
    NotLowered,
    View,
    binary,
    cast,
    iota,
    number,
    reshape,
    select,
    take,
    unary,
    unsqueeze,
)
from sardonyx.compiler.lowerings.request import Lowerings, Request
from sardonyx.compiler.narrow import convert
from sardonyx.dims import Size
from sardonyx.dtypes import DataType
from sardonyx.ops.fact import axis_of

LARGEST_INDEX = 2.0**62
"""What stands for indices that are no numbers, or larger: nothing has so many elements."""


def counted_from_end(indices: Form, size: Form) -> Form:
    """Indices as they are meant: a negative one counts from the end."""
    return select(binary("lt", indices, 0), indices + size, indices)


def extent(x: Form, axis: int) -> Form:
    """The size of an axis as a number."""
    return number(x.shape[axis], DataType.INT64)


def gather_elements(request: Request, x: Form, indices: Form, axis: int) -> Form:
    """For each index the element at its own place, but along one axis at the index."""
    place = axis_of(axis, len(x.shape))
    chosen = counted_from_end(cast(indices, DataType.INT64), extent(x, place))
    places = [
        chosen if other == place else iota(indices.shape, other) for other in range(len(x.shape))
    ]
    return take(x, places, checked=True)


def triangle(request: Request, x: Form, k: Form | None = None, *, upper: int) -> Form:
    """Elements on one side of a diagonal; 0 elsewhere."""
    row, column = iota(x.shape, -2), iota(x.shape, -1)
    offset = column - row
    limit = 0 if k is None else reshape(k, ())
    kept = binary("ge" if upper else "le", offset, limit)
    return select(kept, x, 0)


def pad(
    request: Request, x: Form, pads: Form, value: Form | None = None, axes: Form | None = None, *,
    mode: str,
) -> Form:  # fmt: skip
    """More elements before and behind along axes, or fewer."""
    rank = len(x.shape)
    amounts = request.sizes(1, "the list of pads")
    given = request.integers(3, "the list of axes") if request.given(3) else range(rank)
    chosen = [axis_of(int(axis), rank) for axis in given]
    if len(amounts) != 2 * len(chosen):
        raise NotLowered(f"there are {len(amounts)} pads for {len(chosen)} axes")
    shape = request.told(1)
    places: list[Form] = [iota(shape, axis) for axis in range(rank)]
    inside: Form | None = None
    for axis, begin, end in zip(
        chosen, amounts[: len(chosen)], amounts[len(chosen) :], strict=True
    ):
        if begin == 0 and end == 0:
            continue
        size = extent(x, axis)
        place = places[axis] - number(begin, DataType.INT64)
        if mode == "constant":
            here = binary("and", binary("ge", place, 0), binary("lt", place, size))
            inside = here if inside is None else binary("and", inside, here)
            places[axis] = place
        else:
            places[axis] = _mirrored(place, size, mode)
    if inside is None and mode == "constant":
        return take(x, places) if tuple(shape) != tuple(x.shape) else x
    taken = take(x, places)
    if inside is None or value is None:
        return taken
    return select(inside, taken, reshape(value, ()))


def _mirrored(place: Form, size: Form, mode: str) -> Form:
    """Where an element outside comes from."""
    match mode:
        case "edge":
            return binary("min", binary("max", place, 0), size - 1)
        case "wrap":
            return floor_mod(place, size)
        case "reflect":
            period = binary("max", (size - 1) * 2, 1)
            turned = floor_mod(place, period)
            return binary("min", turned, period - turned)
    raise NotLowered(f"the mode '{mode}' has no native form")


def floor_mod(x: Form, y: Form) -> Form:
    """The remainder with the sign of y, which is positive."""
    rest = binary("mod", x, y)
    return select(binary("lt", rest, 0), rest + y, rest)


def one_hot(request: Request, indices: Form, depth: Form, values: Form, axis: int) -> Form:
    """One of two numbers along an axis: the second where the index is."""
    shape = request.told(1)
    place = axis_of(axis, len(shape))
    size = number(shape[place], DataType.INT64)
    if indices.dtype.is_float:
        near = binary("lt", unary("abs", indices), LARGEST_INDEX)
        indices = select(near, indices, LARGEST_INDEX)
    wanted = unsqueeze(counted_from_end(cast(indices, DataType.INT64), size), [place])
    off, on = (View((), values.dtype, values, (Axis(None, at),)) for at in (0, 1))
    return select(binary("eq", iota(shape, place), wanted), on, off)


def eye_like(request: Request, x: Form, *, dtype: int | None, k: int) -> Form:
    """Ones on a diagonal."""
    offset = iota(x.shape, 1) - iota(x.shape, 0)
    kind = x.dtype if dtype is None else DataType(dtype)
    return convert(binary("eq", offset, k), kind)


def gather_nd(request: Request, x: Form, indices: Form, batch_dims: int) -> Form:
    """Elements or slices at indices that lie side by side along the last axis."""
    depth = indices.shape[-1]
    if not isinstance(depth, int):
        raise NotLowered("how many axes an index has is only known later")
    shape = request.shape()
    around = len(indices.shape) - 1
    wide = [*indices.shape[:-1], *[1] * (len(shape) - around)]
    places: list[Form] = [iota(shape, axis) for axis in range(batch_dims)]
    for position in range(depth):
        axes = (*map(Axis, range(around)), Axis(None, position))
        column = View(indices.shape[:-1], indices.dtype, indices, axes)
        chosen = counted_from_end(column, extent(x, batch_dims + position))
        places.append(reshape(chosen, wide) if len(wide) > around else chosen)
    rest = len(x.shape) - len(places)
    places += [iota(shape, len(shape) - rest + axis) for axis in range(rest)]
    return take(x, places, checked=True)


def reverse_sequence(
    request: Request, x: Form, lengths: Form, batch_axis: int, time_axis: int
) -> Form:
    """The first elements along one axis in reverse, as many as a length says."""
    rank = len(x.shape)
    time = iota(x.shape, time_axis)
    shape: list[Size] = [1] * rank
    shape[axis_of(batch_axis, rank)] = lengths.shape[0]
    count = reshape(cast(lengths, DataType.INT64), shape)
    turned = select(binary("lt", time, count), count - 1 - time, time)
    turned = select(binary("lt", count, 0), count, turned)
    places = [
        turned if axis == axis_of(time_axis, rank) else iota(x.shape, axis) for axis in range(rank)
    ]
    return take(x, places, checked=True)


LOWERINGS: Lowerings = {
    ("com.microsoft", "Trilu"): triangle,
    ("com.microsoft", "GatherND"): (
        lambda request, x, indices: gather_nd(request, x, cast(indices, DataType.INT64), 0)
    ),
    ("", "GatherElements"): gather_elements,
    ("", "GatherND"): gather_nd,
    ("", "Trilu"): triangle,
    ("", "Pad"): pad,
    ("", "OneHot"): one_hot,
    ("", "EyeLike"): eye_like,
    ("", "ReverseSequence"): reverse_sequence,
}
