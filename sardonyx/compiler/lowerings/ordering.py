"""The first elements of an order, as routines."""

from collections.abc import Sequence

from sardonyx.compiler.forms import Form, Memories, NotLowered, Room, Routine, results
from sardonyx.compiler.kernels.nest import parallel_kernel
from sardonyx.compiler.kernels.sorting import (
    Item,
    Order,
    Row,
    heap_select,
    keep_first,
    merge_sort,
)
from sardonyx.compiler.lowerings.request import Lowerings, Request
from sardonyx.dims import Size, product, symbol
from sardonyx.dtypes import DataType
from sardonyx.loops.build import constant
from sardonyx.loops.nodes import (
    STORED,
    Buffer,
    Guard,
    Kernel,
    Load,
    Loop,
    Statement,
    Store,
    Whole,
)
from sardonyx.ops.fact import axis_of

INT64 = DataType.INT64
LARGEST_LIST = 16
"""Elements up to which the first ones are kept in registers."""
SMALLEST_PART = 4
"""The share of a row, one in so many, up to which a heap of it is cheaper than a sort of all."""


def top_k(
    request: Request, x: Form, k: Form, axis: int, largest: int, sorted: int
) -> tuple[Form, ...]:
    """The largest or smallest elements along an axis, and where they stand, in order."""
    if x.dtype in STORED or not x.shape:
        raise NotLowered(f"the order of {x.dtype.text} has no native form")
    counts = request.sizes(1, "how many elements are taken")
    if len(counts) != 1:
        raise NotLowered("how many elements are taken is not one number")
    (count,) = counts
    place = axis_of(axis, len(x.shape))
    size, others = x.shape[place], (*x.shape[:place], *x.shape[place + 1 :])
    order, in_row = Order(bool(largest)), _sorted_size(count, size)

    def write(memories: Memories) -> Sequence[Kernel]:
        (keys,), (values, indices) = memories.arguments, memories.results
        names = [f"%i{number}" for number in range(len(others))]
        around = tuple(map(symbol, names))

        def at(position: Size) -> tuple[Size, ...]:
            return (*around[:place], position, *around[place:])

        def store(slot: Size, item: Item) -> tuple[Statement, ...]:
            return Store(values, at(slot), item.key), Store(indices, at(slot), item.place)

        row = Row(lambda item: Load(keys, at(item)), x.dtype, size, place == len(others))
        body: Sequence[Statement]
        if in_row is not None:
            number: Size = 0
            for name, extent in zip(names, others, strict=True):
                number = number * extent + symbol(name)
            ordered, places = memories.scratch
            body = _sorted_row(row, count, in_row, order, ordered, places, number)
            found = (symbol("%sorted"), number, symbol("%item"))
            item = Item(*(Load(buffer, found) for buffer in memories.scratch))
            body = (*body, Loop("%item", count, store(symbol("%item"), item)))
        elif isinstance(count, int) and count:
            body = keep_first(row, count, order, store)
        else:
            body = (Loop("%item", 0, store(0, Item(row.keys(0), Whole(0)))),)
        report = Store(memories.report, (0,), constant(1, INT64))
        checked = (Guard(size, count, (report,)), Guard(count - 1, size, tuple(body)))
        return [parallel_kernel(list(zip(names, others, strict=True)), checked)]

    shape = (*x.shape[:place], count, *x.shape[place + 1 :])
    rooms = (Room(shape, x.dtype), Room(shape, INT64))
    scratch: tuple[Room, ...] = ()
    if in_row is not None:
        scratch = tuple(Room((2, product(others), in_row), dtype) for dtype in (x.dtype, INT64))
    return results(Routine((x,), rooms, write, product(x.shape) * 16, scratch))


def _sorted_size(count: Size, size: Size) -> Size | None:
    """How many elements of a row are sorted: the chosen ones, all, or none where few are kept."""
    if not isinstance(count, int):
        return size
    if count <= LARGEST_LIST:
        return None
    return size if isinstance(size, int) and count * SMALLEST_PART > size else count


def _sorted_row(
    row: Row, count: Size, in_row: Size, order: Order, keys: Buffer, places: Buffer, number: Size
) -> list[Statement]:
    """A row, or the first of it, sorted in memory."""
    whole = in_row == row.size
    if isinstance(count, int) and not whole:
        chosen = heap_select(row, count, order, keys, places, number)
    else:
        item = symbol("%item")
        fill = (
            Store(keys, (0, number, item), row.keys(item)),
            Store(places, (0, number, item), Whole(item)),
        )
        chosen = [Loop("%item", row.size, fill)]
    return [*chosen, *merge_sort(keys, places, number, in_row, order, ascending=whole)]


LOWERINGS: Lowerings = {("", "TopK"): top_k}
