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
)
from sardonyx.compiler.kernels.nest import parallel_kernel
from sardonyx.compiler.kernels.sorting import Order, merge_sort
from sardonyx.compiler.lowerings.request import Lowerings, Request
from sardonyx.dims import Size, product, symbol
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
    """The different elements, where each stands first, which each is, and how often."""
    if axis is not None and len(x.shape) != 1:
        raise NotLowered("different slices along an axis have no native form")
    if x.dtype in STORED or x.dtype is DataType.BOOL:
        raise NotLowered(f"the order of {x.dtype.text} has no native form")
    size = product(x.shape)

    def write(memories: Memories) -> Sequence[Kernel]:
        return [_unique_kernel(memories, size, bool(sorted))]

    rooms = (Room((size,), x.dtype), *(Room((size,), INT64) for _ in range(3)), COUNT)
    pairs = tuple(Room((2, 1, size), dtype) for dtype in (x.dtype, INT64))
    scratch = (*pairs, *(Room((size,), INT64) for _ in range(3)))
    flat = reshape(x, (size,))
    *made, count = results(Routine((flat,), rooms, write, size * 16, scratch))
    values, first, inverse, counts = made
    return Trim(values, count, 0), Trim(first, count, 0), inverse, Trim(counts, count, 0)


def _unique_kernel(memories: Memories, size: Size, in_order: bool) -> Kernel:
    """Sort, number the groups of elements alike, then go through elements as they stand.

    Ranks are the groups' numbers, or where the order of values does not count, the order in which
    their first elements stand.
    """
    (source,), (values, first, inverse, counts, count) = memories.arguments, memories.results
    keys, places, starts, lengths, ranks = memories.scratch
    order, item, group, rank = Order(False), symbol("%item"), symbol("%group"), symbol("%rank")
    fill = (
        Store(keys, (0, 0, item), Load(source, (item,))),
        Store(places, (0, 0, item), Whole(item)),
    )
    key = Load(keys, (symbol("%sorted"), 0, item))
    former = Load(keys, (symbol("%sorted"), 0, symbol("%former")))
    is_first = Binary("or", Binary("lt", Whole(item), _whole(1)), order.less(former, key))
    place = symbol("%place")
    numbered: tuple[Statement, ...] = (
        Let("%former", Binary("max", Whole(item - 1), _whole(0))),
        Let("%starts", Cast(is_first, INT64)),
        Update("group", "add", Whole(symbol("%starts"))),
        Let("%group", Read("group", INT64)),
        Let("%place", Load(places, (symbol("%sorted"), 0, item))),
        Guard(0, symbol("%starts"), (
            Store(starts, (group,), Whole(place)), Store(lengths, (group,), _whole(0)),
        )),
        Store(lengths, (group,), Binary("add", Load(lengths, (group,)), _whole(1))),
        Store(inverse, (place,), Whole(group)),
    )  # fmt: skip
    next_rank = Whole(group) if in_order else Read("next", INT64)
    is_start = Binary("eq", Load(starts, (group,)), Whole(item))
    told: tuple[Statement, ...] = (
        Let("%group", Load(inverse, (item,))),
        Let("%starts", Cast(is_start, INT64)),
        Guard(0, symbol("%starts"), (
            Let("%rank", next_rank),
            Store(ranks, (group,), Whole(rank)),
            Store(values, (rank,), Load(source, (item,))),
            Store(first, (rank,), Whole(item)),
            Store(counts, (rank,), Load(lengths, (group,))),
            Update("next", "add", _whole(1)),
        )),
        Store(inverse, (item,), Load(ranks, (group,))),
    )  # fmt: skip
    body: list[Statement] = [
        Loop("%item", size, fill),
        *merge_sort(keys, places, 0, size, order, ascending=True),
        Register("group", INT64, (), -1),
        Register("next", INT64, (), 0),
        Loop("%item", size, numbered),
        Loop("%item", size, told),
        Store(count, (0,), Read("next", INT64)),
    ]
    return kernel(body)


def _whole(number: int) -> Value:
    return constant(number, INT64)


LOWERINGS: Lowerings = {
    ("", "NonZero"): non_zero,
    ("", "Compress"): compress,
    ("", "Unique"): unique,
}
