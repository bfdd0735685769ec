"""3x3 convolutions of stride 1 with fewer products: Winograd's F(2x2, 3x3).

Four by four pixels of the image give two by two of the result. Both the patch and the filter are
transformed into 16 numbers a channel; products of those, added up over channels, are transformed
back. A task does so for a block of patches: `V` holds the transformed patches, `M` their products.

A result is still made of the nine pixels under its filter alone. But rounding errors are as large
as the largest pixel times the largest weight of a channel allow, while those of the direct sum are
as small as the products that stand in it. The two come to the same within a small factor unless
large pixels meet small weights only. So filters must have weights of about one size at every tap,
added up over channels (`winograd_filters.is_even`, asked when a model is lowered), and the elements
that make a result must not be dominated by a few of the patch (`_plainness`, asked of every patch).
A patch that fails takes the direct sum, which also says what becomes of infinities and NaN.
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from sardonyx.compiler.forms import Convolution
from sardonyx.compiler.fuse import Group
from sardonyx.compiler.kernels.nest import PARALLEL, parallel_kernel, tasks
from sardonyx.compiler.kernels.reader import Call, Reader, Scratch, pack
from sardonyx.compiler.kernels.tile import (
    LANE,
    Pixel,
    Tile,
    accumulated,
    choose_tile,
    guarded,
    tile_cost,
    tile_statements,
    waste,
)
from sardonyx.compiler.kernels.winograd_filters import (
    EDGE,
    MADE,
    PLACES,
    plain_filters,
    transformed_filters,
)
from sardonyx.compiler.targets import Target
from sardonyx.dims import Size, ceil_divide, minimum, product, symbol
from sardonyx.dtypes import DataType
from sardonyx.loops.build import constant, dense, kernel
from sardonyx.loops.nodes import (
    Binary,
    Bits,
    Buffer,
    Guard,
    Kernel,
    Kind,
    Let,
    Load,
    Local,
    Loop,
    Read,
    Register,
    Select,
    Statement,
    Store,
    Unary,
    Update,
    Value,
    Whole,
)
from sardonyx.record import record

DEPTH = 16
"""Channels of a piece of a sum: transformed numbers lose more by rounding than others."""
IMAGE = ((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, 1, 0, -1))
RESULT = ((1, 1, 1, 0), (0, 1, -1, -1))
LARGEST_BLOCK = 56
"""Patches of a block at most."""
FEWEST_COLUMNS = 128
"""Columns of a task where nobody knows how many patches there will be."""
FEWEST_ALIKE = 6
"""Times the largest element of a patch that the elements below a filter must add up to."""
LARGEST_PIXEL = 1e20
"""Elements beyond which sums might overflow that the direct one would not reach."""
DIRECT_DEPTH = 32
"""Products of a piece of a direct sum."""
GROUP, BLOCK, PATCH, N, Y, X, INSIDE = "%g", "%block", "%p", "%n", "%y", "%x", "%inside"
DIRECT, DOWN, ACROSS = "%direct", "%ty", "%tx"
CHANNELS, PLACE, PANEL, TILE, START, K = (
    "%cb", "%xi", "%panel", "%tile", "%start", "%k"
)  # fmt: skip
PATCHES, FIELDS, LARGEST = "d", "fields", "largest"

Row = Sequence[float]


@record
class _Problem:
    form: Convolution
    group: Group
    reader: Reader
    pixel: Pixel
    tile: Tile
    filters: Buffer
    plain: Buffer
    """Filters as they were: [panels, taps, channels, nr]."""
    depth: int
    columns: int
    height: int
    """Patches of a block."""
    panels: int
    """Panels of columns that a task computes."""
    shared: tuple[Buffer, Buffer] | None
    """V and D, where one call makes them for all tasks of another."""

    @property
    def transformed(self) -> Buffer:
        """V: [places, patches, channels]."""
        shape = (PLACES, self.height, self.depth)
        return self.shared[0] if self.shared else dense("V", DataType.FLOAT, shape)

    @property
    def direct(self) -> Buffer:
        """D: 1 for each patch that takes the direct sum, else 0."""
        return self.shared[1] if self.shared else dense("D", DataType.INT64, (self.height,))

    @property
    def patch(self) -> Buffer:
        """P: [places, channels], a patch that takes the direct sum."""
        return dense("P", DataType.FLOAT, (PLACES, self.depth))

    @property
    def products(self) -> Buffer:
        """M: [places, patches, columns of a task]."""
        return dense("M", DataType.FLOAT, (PLACES, self.height, self.panels * self.tile.nr))

    @property
    def across(self) -> tuple[Size, Size]:
        """Patches along both spatial axes."""
        height, width = (ceil_divide(size, MADE) for size in self.form.shape[2:])
        return height, width

    @property
    def total(self) -> Size:
        """Patches of all images."""
        return self.form.shape[0] * product(self.across)


def winograd_calls(
    group: Group, reader: Reader, pixel: Pixel, weights: NDArray[np.float32], target: Target
) -> list[Call]:
    """Patches in, products, results out: by one kernel, or two where there is only one block."""
    form = group.tile
    assert isinstance(form, Convolution)
    columns, depth = weights.shape[:2]
    patches = form.shape[0] * product([ceil_divide(size, MADE) for size in form.shape[2:]])
    height, tile = _choose_block(patches, depth, columns, target)
    panels = -(-columns // tile.nr)
    shape = (PLACES, panels, depth, tile.nr)
    packing = partial(transformed_filters, nr=tile.nr)
    filters = reader.packed(pack(form.weights, shape, DataType.FLOAT, packing))
    packing = partial(plain_filters, nr=tile.nr)
    shape = (panels, 9, depth, tile.nr)
    plain = reader.packed(pack(form.weights, shape, DataType.FLOAT, packing))
    shared = None
    each = panels
    if isinstance(patches, int) and patches <= height:
        each = 1
        v = reader.scratch(Scratch((PLACES, height, depth), DataType.FLOAT))
        shared = v, reader.scratch(Scratch((height,), DataType.INT64))
    elif not isinstance(patches, int):
        each = max(1, FEWEST_COLUMNS // tile.nr)
    problem = _Problem(
        form, group, reader, pixel, tile, filters, plain, depth, columns, height, each, shared
    )
    kernels = [_kernel(problem)]
    if shared is not None:
        first = (*_position(problem, 0), *_transform_patch(problem))
        kernels.insert(0, parallel_kernel([(PATCH, patches)], first))
    work = product(form.shape) * depth * 4
    return [Call(made, reader.places(made), work) for made in kernels]


def _choose_block(patches: Size, depth: int, columns: int, target: Target) -> tuple[int, Tile]:
    """Patches of a block and the tile for them.

    V shares the second cache with the filters if those fit, else it may fill most of it.
    """
    cache = target.second_cache
    room = cache // 4 if 4 * PLACES * depth * columns <= cache else cache * 4 // 5
    most = max(8, min(LARGEST_BLOCK, room // (4 * PLACES * depth)))
    best: tuple[float, int, Tile] | None = None
    for height in range(most // 2 if isinstance(patches, int) else most, most + 1):
        tile = choose_tile(height, columns, target)
        cost = waste(patches, height) * tile_cost(tile, height, columns) * (1 + 2 / height)
        if best is None or cost < best[0]:
            best = cost, height, tile
    assert best is not None
    return -(-best[1] // best[2].mr) * best[2].mr, best[2]


def _kernel(problem: _Problem) -> Kernel:
    height = problem.height
    panels = problem.filters.shape[1]
    assert isinstance(panels, int)
    axes = [(GROUP, -(-panels // problem.panels)), (BLOCK, ceil_divide(problem.total, height))]
    first = symbol(BLOCK) * height
    here = minimum(height, problem.total - first)
    v, m = problem.transformed, problem.products
    own = (m, problem.patch) if problem.shared else (v, m, problem.direct, problem.patch)
    taken = Loop(PATCH, here, (*_position(problem, first), *_transform_patch(problem)))
    body: list[Statement] = [
        *(Local(item.memory, item.dtype, item.shape) for item in own),  # type: ignore[arg-type]
        *(() if problem.shared else (taken,)),
        *_multiply(problem, here),
        Loop(PATCH, here, (*_position(problem, first), *_finish_patch(problem))),
    ]
    whole = Loop(PARALLEL, product([extent for _, extent in axes]),
                 (*tasks(axes, symbol(PARALLEL)), *body), Kind.PARALLEL)  # fmt: skip
    return kernel([whole])


def _position(problem: _Problem, first: Size) -> list[Statement]:
    """The image of a patch and its place in that, from its number."""
    return tasks([(N, problem.form.shape[0]), *zip((Y, X), problem.across, strict=True)],
                 first + symbol(PATCH))  # fmt: skip


def _transform_patch(problem: _Problem) -> list[Statement]:
    """V from the image, and D."""
    v, lanes = problem.transformed, problem.tile.lanes
    channel = symbol(CHANNELS) * lanes + symbol(LANE)
    stores: list[Statement] = [
        Store(v, (place, symbol(PATCH), channel), value)
        for place, value in enumerate(_both_ways(IMAGE, _element))
    ]
    sizes = [Unary("abs", _element(*divmod(place, EDGE))) for place in range(PLACES)]
    rows = [_three(sizes[row : row + EDGE]) for row in range(0, PLACES, EDGE)]
    for side in range(MADE):
        for half, total in enumerate(_three([row[side] for row in rows])):
            stores.append(Update(FIELDS, "add", total, (side * MADE + half, symbol(LANE))))
    for size in sizes:
        stores.append(Update(LARGEST, "max", Bits(size, DataType.INT32), (symbol(LANE),)))
    return [
        Register(FIELDS, DataType.FLOAT, (MADE * MADE, lanes), 0.0, lanes=True),
        Register(LARGEST, DataType.INT32, (lanes,), 0, lanes=True),
        *_take_patch(problem, stores, often=True),
        *_plainness(problem),
    ]


def _three(values: Sequence[Value]) -> tuple[Value, Value]:
    """The sums of the first three and of the last three of four values."""
    first, *middle, last = values
    both = Binary("add", *middle)
    return Binary("add", first, both), Binary("add", both, last)


def _plainness(problem: _Problem) -> list[Statement]:
    """D from what was found of a patch; of NaN and infinities sizes are larger than any number."""
    lanes, whole = problem.tile.lanes, DataType.INT32
    totals = [Read(f"total{field}", DataType.FLOAT) for field in range(MADE * MADE)]
    highest = Read("highest", whole)
    found = [
        Update(total.register, "add", Read(FIELDS, DataType.FLOAT, (field, symbol(LANE))))
        for field, total in enumerate(totals)
    ]
    found.append(Update("highest", "max", Read(LARGEST, whole, (symbol(LANE),))))
    most = constant(int(np.float32(LARGEST_PIXEL).view(np.int32)), whole)
    safe = Binary("le", highest, most)
    wanted = Binary("mul", constant(FEWEST_ALIKE, DataType.FLOAT), Bits(highest, DataType.FLOAT))
    for total in totals:
        safe = Binary("and", safe, Binary("le", wanted, total))
    flag = Select(safe, constant(0, DataType.INT64), constant(1, DataType.INT64))
    return [
        *(Register(total.register, DataType.FLOAT, (), 0.0) for total in totals),
        Register("highest", whole, (), 0),
        Loop(LANE, lanes, tuple(found), Kind.VECTOR),
        Store(problem.direct, (symbol(PATCH),), flag),
    ]


def _element(row: int, column: int) -> Value:
    """One of the pixels or products that a patch of registers holds."""
    return Read(PATCHES, DataType.FLOAT, (row * EDGE + column, symbol(LANE)))


def _take_patch(problem: _Problem, then: Sequence[Statement], *, often: bool) -> list[Statement]:
    """A patch in registers, vector by vector, elements beyond the image's edges being 0.

    What is done often has code of its own for patches inside of the image.
    """
    form, lanes = problem.form, problem.tile.lanes
    top, left = form.pads[:2]
    height, width = form.image.shape[2:]
    y, x = symbol(Y) * MADE - top, symbol(X) * MADE - left
    channel = symbol(CHANNELS) * lanes + symbol(LANE)

    def take(row: int, column: int) -> Statement:
        place = (row * EDGE + column, symbol(LANE))
        element = problem.pixel(symbol(N), (y + row, x + column), channel)
        return Update(PATCHES, "add", element, place)

    every = [[take(row, column) for column in range(EDGE)] for row in range(EDGE)]
    careful = [
        _between(y + row, height, [_between(x + column, width, [item])
                                   for column, item in enumerate(items)])
        for row, items in enumerate(every)
    ]  # fmt: skip
    last = _in_lanes(channel, problem.depth, lanes, then)
    if not often:
        taken = _in_lanes(channel, problem.depth, lanes, careful)
        return [Loop(CHANNELS, -(-problem.depth // lanes), (_patch_register(lanes), taken, last))]
    flat = [item for items in every for item in items]
    both = [_in_lanes(channel, problem.depth, lanes, body) for body in (flat, careful)]
    bounds = [(-1, y), (y + EDGE - 1, height), (-1, x), (x + EDGE - 1, width)]
    inside: Value | None = None
    for low, high in bounds:
        fits = Binary("lt", Whole(low), Whole(high))
        inside = fits if inside is None else Binary("and", inside, fits)
    assert inside is not None
    flag = Select(inside, constant(1, DataType.INT64), constant(0, DataType.INT64))
    body = (
        _patch_register(lanes),
        Guard(0, symbol(INSIDE), (both[0],)),
        Guard(symbol(INSIDE), 1, (both[1],)),
        last,
    )
    return [Let(INSIDE, flag), Loop(CHANNELS, -(-problem.depth // lanes), body)]


def _multiply(problem: _Problem, here: Size) -> list[Statement]:
    """M: for each of the 16 places the product of V and the filters."""
    tile, v, m = problem.tile, problem.transformed, problem.products
    panels = problem.filters.shape[1]
    panel = symbol(GROUP) * problem.panels + symbol(PANEL)

    def left(row: Size) -> Value:
        return Load(v, (symbol(PLACE), symbol(START) + row, symbol(K)))

    def right(column: Size) -> Value:
        return Load(problem.filters, (symbol(PLACE), panel, symbol(K), column))

    def store(row: Size, column: Size) -> tuple[Statement, ...]:
        at = (symbol(PLACE), symbol(START) + row, symbol(PANEL) * tile.nr + column)
        return (Store(m, at, accumulated(row, column)),)

    sums = tile_statements(tile, [(K, problem.depth)], left, right, store, depth=DEPTH)
    one = (Let(START, Whole(symbol(TILE) * tile.mr)), *sums)
    rows = Loop(TILE, ceil_divide(here, tile.mr), one)
    count = minimum(problem.panels, panels - symbol(GROUP) * problem.panels)
    return [Loop(PLACE, PLACES, (Loop(PANEL, count, (rows,)),))]


def _finish_patch(problem: _Problem) -> list[Statement]:
    """The results of a patch: from M, or by the direct sum."""
    direct = symbol(DIRECT)
    return [
        Let(DIRECT, Load(problem.direct, (symbol(PATCH),))),
        Guard(direct, 1, tuple(_transform_back(problem))),
        Guard(0, direct, tuple(_add_directly(problem))),
    ]


def _add_directly(problem: _Problem) -> list[Statement]:
    """The results of a patch as sums of products of its pixels and the filters as they were."""
    form, patch, reader = problem.form, problem.patch, problem.reader
    tile = Tile(MADE * MADE, problem.tile.nv, problem.tile.lanes)
    channel = symbol(CHANNELS) * tile.lanes + symbol(LANE)
    stores = [
        Store(patch, (place, channel), _element(*divmod(place, EDGE))) for place in range(PLACES)
    ]
    panels = problem.plain.shape[0]
    panel = symbol(GROUP) * problem.panels + symbol(PANEL)

    def left(row: Size) -> Value:
        place = (row // MADE + symbol(DOWN)) * EDGE + row % MADE + symbol(ACROSS)
        return Load(patch, (place, symbol(K)))

    def right(column: Size) -> Value:
        return Load(problem.plain, (panel, symbol(DOWN) * 3 + symbol(ACROSS), symbol(K), column))

    def store(row: Size, column: Size) -> tuple[Statement, ...]:
        reader.computed[form] = lambda _: accumulated(row, column)
        place = panel * tile.nr + column
        y, x = symbol(Y) * MADE + row // MADE, symbol(X) * MADE + row % MADE
        made = _store_result(problem, place, y, x)
        return guarded(place, problem.columns, tile, made)

    steps = [(DOWN, 3), (ACROSS, 3), (K, problem.depth)]
    sums = tile_statements(tile, steps, left, right, store, depth=DIRECT_DEPTH)
    reader.forget()
    count = minimum(problem.panels, panels - symbol(GROUP) * problem.panels)
    return [*_take_patch(problem, stores, often=False), Loop(PANEL, count, tuple(sums))]


def _transform_back(problem: _Problem) -> list[Statement]:
    """The result and its epilogue from M."""
    form, m, lanes, reader = problem.form, problem.products, problem.tile.lanes, problem.reader
    width = problem.panels * problem.tile.nr
    inner = symbol(CHANNELS) * lanes + symbol(LANE)
    channel = symbol(GROUP) * width + inner
    taken: list[Statement] = [
        Update(PATCHES, "add", Load(m, (place, symbol(PATCH), inner)), (place, symbol(LANE)))
        for place in range(PLACES)
    ]
    for number, result in enumerate(_both_ways(RESULT, _element)):
        reader.computed[form] = lambda _, result=result: result  # type: ignore[misc]
        y, x = (symbol(name) * MADE + part
                for name, part in zip((Y, X), divmod(number, MADE), strict=True))  # fmt: skip
        taken.append(_store_result(problem, channel, y, x))
    reader.forget()
    count = minimum(width, problem.columns - symbol(GROUP) * width)
    body = _in_lanes(channel, problem.columns, lanes, taken)
    return [Loop(CHANNELS, ceil_divide(count, lanes), (_patch_register(lanes), body))]


def _store_result(problem: _Problem, channel: Size, y: Size, x: Size) -> Statement:
    """One element of the result with its epilogue, where it lies inside."""
    form, root, reader = problem.form, problem.group.root, problem.reader
    reader.forget()
    index = (symbol(N), channel, y, x)
    store: Statement = Store(reader.buffer(root), index, reader.value(root, index))
    for place, size in ((y, form.shape[2]), (x, form.shape[3])):
        if not isinstance(size, int) or size % MADE:
            store = Guard(place, size, (store,))
    return store


def _patch_register(lanes: int) -> Register:
    """A patch of vectors; adding to -0.0 leaves a number as it is."""
    return Register(PATCHES, DataType.FLOAT, (PLACES, lanes), -0.0, lanes=True)


def _in_lanes(channel: Size, channels: int, lanes: int, body: Sequence[Statement]) -> Statement:
    inner = tuple(body) if channels % lanes == 0 else (Guard(channel, channels, tuple(body)),)
    return Loop(LANE, lanes, inner, Kind.VECTOR)


def _between(place: Size, size: Size, body: list[Statement]) -> Statement:
    return Guard(-1, place, (Guard(place, size, tuple(body)),))


def _both_ways(matrix: Sequence[Row], element: Callable[[int, int], Value]) -> list[Value]:
    """`matrix * elements * transposed matrix`, row by row."""
    across = range(EDGE)
    rows = [
        [_sum(row, [element(place, column) for place in across]) for column in across]
        for row in matrix
    ]
    return [_sum(column, items) for items in rows for column in matrix]


def _sum(factors: Row, values: Sequence[Value]) -> Value:
    """A sum with factors 1, -1 and 0."""
    total: Value | None = None
    for factor, value in sorted(zip(factors, values, strict=True), key=lambda pair: -pair[0]):
        if factor == 0:
            continue
        if total is None:
            total = value if factor > 0 else Unary("neg", value)
        else:
            total = Binary("add" if factor > 0 else "sub", total, value)
    assert total is not None
    return total
