"""Operators that only a run tells the size of: routines fill what could be, then it is cut."""

from collections.abc import Sequence

from sardonyx.compiler.forms import (
    Form,
    Memories,
    NotLowered,
    Room,
    Routine,
    Trim,
    reshape,
    results,
    transpose,
)
from sardonyx.compiler.kernels.nest import parallel_kernel
from sardonyx.compiler.kernels.sorting import Order, merge_sort
from sardonyx.compiler.lowerings.request import Lowerings, Request
from sardonyx.dims import product, symbol
from sardonyx.dtypes import DataType
from sardonyx.loops.build import constant, kernel, nest
from sardonyx.loops.nodes import (
    STORED,
    Binary,
    Buffer,
    Cast,
    Guard,
    Kernel,
    Kind,
    Let,
    Load,
    Loop,
    Read,
    Register,
    Statement,
    Store,
    Update,
    Value,
    Whole,
)
from sardonyx.ops.fact import axis_of

INT64 = DataType.INT64
COUNT = Room((1,), INT64)


def non_zero(request: Request, x: Form) -> Trim:
    """The coordinates of elements that are not zero."""
    if not x.shape or x.dtype in STORED:
        raise NotLowered(f"of one {x.dtype.text} it has no native form")

    def write(memories: Memories) -> Sequence[Kernel]:
        (source,), (places, count) = memories.arguments, memories.results
        names = [f"%i{axis}" for axis in range(len(x.shape))]
        element = Load(source, tuple(map(symbol, names)))
        stores = tuple(
            Store(places, (axis, symbol("%at")), Whole(symbol(name)))
            for axis, name in enumerate(names)
        )
        loops = nest(
            list(zip(names, x.shape, strict=True)), _counted(_is_not_zero(element), stores)
        )
        return [_counting(loops, count)]

    rooms = (Room((len(x.shape), product(x.shape)), INT64), COUNT)
    places, count = results(Routine((x,), rooms, write, product(x.shape)))
    return Trim(places, count, 1)


def _is_not_zero(element: Load) -> Value:
    if element.buffer.dtype is DataType.BOOL:
        return element
    return Binary("ne", element, constant(0, element.buffer.dtype))


def _counted(condition: Value, stores: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """Stores at the place `%at`, which the next ones overwrite unless the condition holds.

    There is room: no more have been counted than elements have gone by.
    """
    return (
        Let("%at", Read("count", INT64)),
        *stores,
        Update("count", "add", Cast(condition, INT64)),
    )


def _counting(loops: Sequence[Statement], count: Buffer) -> Kernel:
    register = Register("count", INT64, (), 0)
    return kernel([register, *loops, Store(count, (0,), Read("count", INT64))])


def compress(request: Request, x: Form, condition: Form, axis: int | None) -> Trim:
    """Slices along an axis, or single elements, for which a condition holds."""
    data = reshape(x, (product(x.shape),)) if axis is None else x
    place = 0 if axis is None else axis_of(axis, len(x.shape))
    size, (asked,) = data.shape[place], condition.shape
    before, behind = data.shape[:place], data.shape[place + 1 :]

    def write(memories: Memories) -> Sequence[Kernel]:
        (source, flags), (result, count), (places,) = (
            memories.arguments, memories.results, memories.scratch,
        )  # fmt: skip
        item = symbol("%item")
        report = (Store(memories.report, (0,), constant(1, INT64)),)
        flag = Load(flags, (item,))
        stores = (
            Store(places, (symbol("%at"),), Whole(item)),
            Let("%holds", Cast(flag, INT64)),
            Guard(size - 1, item, (Guard(0, symbol("%holds"), report),)),
        )
        chosen = _counting([Loop("%item", asked, _counted(flag, stores))], count)
        outer = [(f"%o{number}", extent) for number, extent in enumerate(before)]
        inner = [(f"%i{number}", extent) for number, extent in enumerate(behind)]
        around, within = ([symbol(name) for name, _ in axes] for axes in (outer, inner))
        target = (*around, item, *within)
        copy: tuple[Statement, ...] = (
            Store(result, target, Load(source, (*around, symbol("%from"), *within))),
        )
        if inner:
            *others, (name, extent) = inner
            copy = nest(others, (Loop(name, extent, copy, Kind.VECTOR),))
        body = (
            Let("%count", Load(count, (0,))),
            Guard(item, symbol("%count"), (
                Let("%from", Load(places, (item,))), Guard(symbol("%from"), size, copy),
            )),
        )  # fmt: skip
        return [chosen, parallel_kernel([*outer, ("%item", size)], body)]

    rooms = (Room(data.shape, x.dtype), COUNT)
    scratch = (Room((asked,), INT64),)
    made, count = results(Routine((data, condition), rooms, write, product(x.shape), scratch))
    return Trim(made, count, place)


def unique(request: Request, x: Form, axis: int | None, sorted: int) -> tuple[Form | Trim, ...]:
    """The different elements or slices, where each stands first, which each is, and how often."""
    if x.dtype in STORED or x.dtype is DataType.BOOL:
        raise NotLowered(f"the order of {x.dtype.text} has no native form")
    place = 0 if axis is None else axis % len(x.shape)
    data = reshape(x, (product(x.shape),)) if axis is None else x
    order = (place, *(other for other in range(len(data.shape)) if other != place))
    turned = transpose(data, order)
    size, width = turned.shape[0], product(turned.shape[1:])

    def write(memories: Memories) -> Sequence[Kernel]:
        return [_unique_kernel(memories, bool(sorted))]

    rooms = (Room((size, width), x.dtype), *(Room((size,), INT64) for _ in range(3)), COUNT)
    pairs = tuple(Room((2, 1, size), dtype) for dtype in (x.dtype, INT64))
    scratch = (*pairs, *(Room((size,), INT64) for _ in range(4)))
    rows = reshape(turned, (size, width))
    *made, count = results(Routine((rows,), rooms, write, size * width * 16, scratch))
    values, first, inverse, counts = made
    back = [order.index(other) for other in range(len(order))]
    whole = transpose(reshape(values, turned.shape), back)
    return Trim(whole, count, place), Trim(first, count, 0), inverse, Trim(counts, count, 0)


def _unique_kernel(memories: Memories, in_order: bool) -> Kernel:
    """Sort, number the groups of rows alike, then go through rows as they stand.

    Ranks are the groups' numbers, or where the order of values does not count, the order in which
    their first rows stand.
    """
    (source,), (values, first, inverse, counts, count) = memories.arguments, memories.results
    _, _, starts, lengths, ranks, _ = memories.scratch
    (size, width), item = source.shape, symbol("%item")
    group, rank, column = symbol("%group"), symbol("%rank"), symbol("%column")
    next_rank = Whole(group) if in_order else Read("next", INT64)
    is_start = Binary("eq", Load(starts, (group,)), Whole(item))
    copy = Store(values, (rank, column), Load(source, (item, column)))
    told: tuple[Statement, ...] = (
        Let("%group", Load(inverse, (item,))),
        Let("%starts", Cast(is_start, INT64)),
        Guard(0, symbol("%starts"), (
            Let("%rank", next_rank),
            Store(ranks, (group,), Whole(rank)),
            Loop("%column", width, (copy,)),
            Store(first, (rank,), Whole(item)),
            Store(counts, (rank,), Load(lengths, (group,))),
            Update("next", "add", _whole(1)),
        )),
        Store(inverse, (item,), Load(ranks, (group,))),
    )  # fmt: skip
    body: list[Statement] = [
        *_sorted_rows(memories),
        Register("group", INT64, (), -1),
        Register("next", INT64, (), 0),
        Register("differs", INT64, (), 0),
        Loop("%item", size, _numbered(memories)),
        Loop("%item", size, told),
        Store(count, (0,), Read("next", INT64)),
    ]
    return kernel(body)


def _sorted_rows(memories: Memories) -> tuple[Statement, ...]:
    """The places of rows in their order: sorted by each column, the last one first."""
    (source,), (keys, places, *_, order) = memories.arguments, memories.scratch
    (size, width), item, place = source.shape, symbol("%item"), symbol("%place")
    fill = (
        Let("%place", Load(order, (item,))),
        Store(keys, (0, 0, item), Load(source, (place, width - 1 - symbol("%column")))),
        Store(places, (0, 0, item), Whole(place)),
    )
    keep = Store(order, (item,), Load(places, (symbol("%sorted"), 0, item)))
    once = (
        Loop("%item", size, fill),
        *merge_sort(keys, places, 0, size, Order(False), ascending=True),
        Loop("%item", size, (keep,)),
    )
    start = Store(order, (item,), Whole(item))
    return Loop("%item", size, (start,)), Loop("%column", width, once)


def _numbered(memories: Memories) -> tuple[Statement, ...]:
    """A row in its order gets the number of its group, a new one where it differs."""
    (source,), inverse = memories.arguments, memories.results[2]
    _, _, starts, lengths, _, order = memories.scratch
    item, group, place = symbol("%item"), symbol("%group"), symbol("%place")
    here, before = (Load(source, (at, symbol("%column"))) for at in (place, symbol("%former")))
    less = Order(False).less
    apart = Binary("or", less(before, here), less(here, before))
    is_first = Binary("or", Binary("lt", Whole(item), _whole(1)),
                      Binary("gt", Read("differs", INT64), _whole(0)))  # fmt: skip
    return (
        Let("%before", Binary("max", Whole(item - 1), _whole(0))),
        Let("%former", Load(order, (symbol("%before"),))),
        Let("%place", Load(order, (item,))),
        Update("differs", "set", _whole(0)),
        Loop("%column", source.shape[1], (Update("differs", "max", Cast(apart, INT64)),)),
        Let("%starts", Cast(is_first, INT64)),
        Update("group", "add", Whole(symbol("%starts"))),
        Let("%group", Read("group", INT64)),
        Guard(0, symbol("%starts"), (
            Store(starts, (group,), Whole(place)), Store(lengths, (group,), _whole(0)),
        )),
        Store(lengths, (group,), Binary("add", Load(lengths, (group,)), _whole(1))),
        Store(inverse, (place,), Whole(group)),
    )  # fmt: skip


def _whole(number: int) -> Value:
    return constant(number, INT64)


LOWERINGS: Lowerings = {
    ("", "NonZero"): non_zero,
    ("", "Compress"): compress,
    ("", "Unique"): unique,
}
