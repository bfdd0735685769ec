"""The first elements of an order, as routines."""

from collections.abc import Sequence

from sardonyx.compiler.forms import Form, Memories, NotLowered, Room, Routine, results
from sardonyx.compiler.kernels.nest import parallel_kernel
from sardonyx.compiler.kernels.sorting import ascending, descending, insert_best, merge_sort
from sardonyx.compiler.lowerings.request import Lowerings, Request
from sardonyx.dims import Size, product, symbol
from sardonyx.dtypes import DataType
from sardonyx.loops.build import constant
from sardonyx.loops.nodes import STORED, Guard, Kernel, Load, Loop, Statement, Store, Whole

INT64 = DataType.INT64
LARGEST_INSERTED = 64
"""Elements up to which a list is kept in order; more are sorted."""


def top_k(
    request: Request, x: Form, k: Form, axis: int, largest: int, sorted: int
) -> tuple[Form, ...]:
    """The largest or smallest elements along an axis, and where they stand, in order."""
    if x.dtype in STORED or not x.shape:
        raise NotLowered(f"the order of {x.dtype.text} has no native form")
    (count,) = request.sizes(1, "how many elements are taken")
    place = axis % len(x.shape)
    size = x.shape[place]
    shape = (*x.shape[:place], count, *x.shape[place + 1 :])
    rows = product([*x.shape[:place], *x.shape[place + 1 :]])
    short = isinstance(count, int) and count <= LARGEST_INSERTED
    before = descending if largest else ascending

    def write(memories: Memories) -> Sequence[Kernel]:
        (keys,), (values, indices) = memories.arguments[:1], memories.results
        names = [f"%i{number}" for number in range(len(x.shape))]
        del names[place]
        outer = list(zip(names, [*x.shape[:place], *x.shape[place + 1 :]], strict=True))
        around = tuple(map(symbol, names))

        def at(position: Size) -> tuple[Size, ...]:
            return (*around[:place], position, *around[place:])

        report = Store(memories.report, (0,), constant(1, DataType.INT64))
        body: list[Statement] = [Guard(size, count, (report,))]
        if short:
            body += insert_best(
                lambda item: Load(keys, at(item)), size, values, indices, at, count, before
            )
            return [parallel_kernel(outer, body)]
        row: Size = 0
        for name, extent in outer:
            row = row * extent + symbol(name)
        ordered, places = memories.scratch
        item = symbol("%item")
        fill = (
            Store(ordered, (0, row, item), Load(keys, at(item))),
            Store(places, (0, row, item), Whole(item)),
        )
        found = (symbol("%sorted"), row, item)
        take = (
            Store(values, at(item), Load(ordered, found)),
            Store(indices, at(item), Load(places, found)),
        )
        body += [
            Loop("%item", size, fill),
            *merge_sort(ordered, places, row, size, before),
            Guard(count - 1, size, (Loop("%item", count, take),)),
        ]
        return [parallel_kernel(outer, body)]

    scratch = () if short else (Room((2, rows, size), x.dtype), Room((2, rows, size), INT64))
    rooms = (Room(shape, x.dtype), Room(shape, INT64))
    return results(Routine((x,), rooms, write, product(x.shape) * 16, scratch))


LOWERINGS: Lowerings = {("", "TopK"): top_k}
