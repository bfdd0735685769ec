"""Where the largest elements of sliding windows lie, as a routine."""

import math
from collections.abc import Sequence

from sardonyx.compiler.forms import Form, Memories, Room, Routine, Window, results
from sardonyx.compiler.kernels.nest import parallel_kernel
from sardonyx.dims import Size, ceil_divide, product, symbol
from sardonyx.dtypes import DataType
from sardonyx.loops.build import constant, nest
from sardonyx.loops.nodes import (
    Binary,
    Cast,
    Guard,
    Kernel,
    Kind,
    Loop,
    Pick,
    Read,
    Register,
    Select,
    Statement,
    Store,
    Update,
    Value,
    Whole,
)

INT32, INT64 = DataType.INT32, DataType.INT64
N, C, BLOCK, LANE = "%n", "%c", "%block", "%l"


def peaks(window: Window, column_major: bool) -> tuple[Form, ...]:
    """The largest element of each window, the first of equals, and its index in the flat image.

    Indices count through spatial axes from the last one, or `column_major` from the first.
    """
    image = window.image

    def write(memories: Memories) -> Sequence[Kernel]:
        return [_kernel(window, column_major, memories)]

    rooms = (Room(window.shape, window.dtype), Room(window.shape, INT64))
    work = product(window.shape) * math.prod(window.kernel)
    return results(Routine((image,), rooms, write, work))


def _kernel(window: Window, column_major: bool, memories: Memories) -> Kernel:
    """Lanes lie along the last axis; a register holds which tap was best so far, -1 at first."""
    (image,), lanes = memories.arguments, memories.lanes
    rank, lane = len(window.kernel), (symbol(LANE),)
    last = symbol(BLOCK) * lanes + symbol(LANE)
    places = (*(symbol(f"%s{axis}") for axis in range(rank - 1)), last)
    best, tap = Read("best", window.dtype, lane), Read("tap", INT32, lane)
    number: Size = 0
    for axis, size in enumerate(window.kernel):
        number = number * size + symbol(f"%t{axis}")
    met = [
        place * step - begin + symbol(f"%t{axis}") * spread
        for axis, (place, step, begin, spread) in enumerate(
            zip(places, window.strides, window.begins, window.dilations, strict=True)
        )
    ]
    *outer_sizes, width = image.shape[2:]
    element = Pick(image, tuple(map(Whole, (symbol(N), symbol(C), *met))))
    inside = _both(_whole("ge", met[-1], 0), _whole("lt", met[-1], width))
    better = _both(inside, _is_better(element, best, tap, window.dtype))
    take: tuple[Statement, ...] = (
        Update("tap", "set", Select(better, Cast(Whole(number), INT32), tap), lane),
        Update("best", "set", Select(better, element, best), lane),
    )
    inner: tuple[Statement, ...] = (Loop(LANE, lanes, take, Kind.VECTOR),)
    for at, limit in zip(met, outer_sizes, strict=False):
        inner = (Guard(-1, at, (Guard(at, limit, inner),)),)
    index = (symbol(N), symbol(C), *places)
    values, indices = memories.results
    place = _flat_index(window, column_major, tap, places)
    stores = (Store(values, index, best), Store(indices, index, place))
    body = (
        Register("best", window.dtype, (lanes,), window.initial, lanes=True),
        Register("tap", INT32, (lanes,), -1, lanes=True),
        *nest([(f"%t{axis}", size) for axis, size in enumerate(window.kernel)], inner),
        Loop(LANE, lanes, (Guard(last, window.shape[-1], stores),), Kind.VECTOR),
    )
    names = [N, C, *(f"%s{axis}" for axis in range(rank - 1))]
    outer = list(zip(names, window.shape, strict=False))
    return parallel_kernel(outer, [Loop(BLOCK, ceil_divide(window.shape[-1], lanes), body)])


def _both(left: Value, right: Value) -> Value:
    return Binary("and", left, right)


def _whole(name: str, left: Size, right: Size) -> Value:
    return Binary(name, Whole(left), Whole(right))


def _is_better(element: Value, best: Value, tap: Value, dtype: DataType) -> Value:
    """The first element met is taken, then larger ones; nothing is larger than NaN."""
    first = Binary("lt", tap, constant(0, INT32))
    better: Value = Binary("or", first, Binary("gt", element, best))
    if dtype.is_float:
        fresh = _both(Binary("ne", element, element), Binary("eq", best, best))
        better = Binary("or", better, fresh)
    return better


def _flat_index(window: Window, column_major: bool, tap: Value, places: Sequence[Size]) -> Value:
    """Where a tap met the image; a window that meets nothing is taken to meet its first tap."""
    sizes = window.image.shape[2:]
    rank = len(window.kernel)
    rest: Value = Binary("max", Cast(tap, INT64), constant(0, INT64))
    taps: list[Value] = []
    for size in reversed(window.kernel):
        taps.insert(0, Binary("mod", rest, constant(size, INT64)))
        rest = Binary("div", rest, constant(size, INT64))
    total: Value = constant(0, INT64)
    step: Size = 1
    for axis in range(rank) if column_major else reversed(range(rank)):
        start = places[axis] * window.strides[axis] - window.begins[axis]
        spread = Binary("mul", taps[axis], constant(window.dilations[axis], INT64))
        at = Binary("add", Whole(start), spread)
        total = Binary("add", total, Binary("mul", at, Whole(step)))
        step = step * sizes[axis]
    plane = (symbol(N) * window.shape[1] + symbol(C)) * step
    return Binary("add", total, Whole(plane))
