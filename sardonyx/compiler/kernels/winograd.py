"""3x3 convolutions of stride 1 with fewer products: Winograd's F(2x2, 3x3).

Four by four pixels of the image give two by two of the result. Both the patch and the filter are
transformed into 16 numbers a channel; products of those, added up over channels, are transformed
back. A task does so for a block of patches: `V` holds the transformed patches, `M` their products.
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from sardonyx.compiler.forms import Convolution
from sardonyx.compiler.fuse import Group
from sardonyx.compiler.image import aligned_room
from sardonyx.compiler.kernels.nest import PARALLEL, parallel_kernel, tasks
from sardonyx.compiler.kernels.reader import Call, Reader, Scratch, pack
from sardonyx.compiler.kernels.tile import (
    LANE,
    Pixel,
    Tile,
    accumulated,
    choose_tile,
    fill_panels,
    tile_cost,
    tile_statements,
    waste,
)
from sardonyx.compiler.targets import Target
from sardonyx.dims import Size, ceil_divide, minimum, product, symbol
from sardonyx.dtypes import DataType
from sardonyx.loops.build import constant, dense, kernel
from sardonyx.loops.nodes import (
    Binary,
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

EDGE, MADE = 4, 2
"""Pixels of a patch along an axis, and of the result that come from it."""
PLACES = EDGE * EDGE
DEPTH = 16
"""Channels of a piece of a sum: transformed numbers lose more by rounding than others."""
IMAGE = ((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, 1, 0, -1))
FILTER = ((1, 0, 0), (0.5, 0.5, 0.5), (0.5, -0.5, 0.5), (0, 0, 1))
RESULT = ((1, 1, 1, 0), (0, 1, -1, -1))
LARGEST_BLOCK = 56
"""Patches of a block at most."""
FEWEST_COLUMNS = 128
"""Columns of a task where nobody knows how many patches there will be."""
FILTERS_AT_ONCE = 1 << 12
"""Filters that are transformed together, so that they stay in the cache."""
SMALLEST = 16
"""Channels on either side below which transforming costs more than it saves."""
GROUP, BLOCK, PATCH, N, Y, X, INSIDE = "%g", "%block", "%p", "%n", "%y", "%x", "%inside"
CHANNELS, PLACE, PANEL, TILE, START, K = (
    "%cb", "%xi", "%panel", "%tile", "%start", "%k"
)  # fmt: skip
PATCHES = "d"

Row = Sequence[float]


def suits(form: Convolution) -> bool:
    """Whether a convolution of constant weights can be computed this way and gains by it."""
    columns, depth, *size = form.weights.shape
    plain = size == [3, 3] and form.groups == 1 and {*form.strides, *form.dilations} == {1}
    if not plain or not isinstance(columns, int) or not isinstance(depth, int):
        return False
    pixels = product(form.shape[2:])
    plain = form.dtype is DataType.FLOAT and min(columns, depth) >= SMALLEST
    return plain and not (isinstance(pixels, int) and pixels < 36)


@record
class _Problem:
    form: Convolution
    group: Group
    reader: Reader
    pixel: Pixel
    tile: Tile
    filters: Buffer
    depth: int
    columns: int
    height: int
    """Patches of a block."""
    panels: int
    """Panels of columns that a task computes."""
    shared: Buffer | None
    """V, where one call makes it for all tasks of another."""

    @property
    def transformed(self) -> Buffer:
        """V: [places, patches, channels]."""
        return self.shared or dense("V", DataType.FLOAT, (PLACES, self.height, self.depth))

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
    packing = partial(_packed_filters, nr=tile.nr)
    filters = reader.packed(pack(form.weights, shape, DataType.FLOAT, packing))
    shared = None
    each = panels
    if isinstance(patches, int) and patches <= height:
        each = 1
        shared = reader.scratch(Scratch((PLACES, height, depth), DataType.FLOAT))
    elif not isinstance(patches, int):
        each = max(1, FEWEST_COLUMNS // tile.nr)
    problem = _Problem(
        form, group, reader, pixel, tile, filters, depth, columns, height, each, shared
    )
    kernels = [_kernel(problem)]
    if shared is not None:
        first = (*_position(problem, 0), *_transform_patch(problem))
        kernels.insert(0, parallel_kernel([(PATCH, patches)], first))
    work = product(form.shape) * depth * 4
    return [Call(made, reader.places(made), work) for made in kernels]


def _packed_filters(weights: NDArray[np.float32], nr: int) -> NDArray[np.float32]:
    """Filters transformed: [M, C, 3, 3] -> [16, panels, C, nr]."""
    columns, depth = weights.shape[:2]
    matrix = np.kron(FILTER, FILTER)
    packed = aligned_room((PLACES, -(-columns // nr), depth, nr), weights.dtype)
    each = max(1, FILTERS_AT_ONCE // max(columns, 1))
    for first in range(0, depth, each):
        part = weights[:, first : first + each].transpose(2, 3, 1, 0).astype(np.float64, order="C")
        made = matrix @ part.reshape(matrix.shape[1], -1)
        fill_panels(packed[:, :, first : first + each], made.reshape(PLACES, -1, columns))
    return packed


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
    own = (m,) if problem.shared else (v, m)
    taken = Loop(PATCH, here, (*_position(problem, first), *_transform_patch(problem)))
    body: list[Statement] = [
        *(Local(item.memory, item.dtype, item.shape) for item in own),  # type: ignore[arg-type]
        *(() if problem.shared else (taken,)),
        *_multiply(problem, here),
        Loop(PATCH, here, (*_position(problem, first), *_transform_back(problem))),
    ]
    whole = Loop(PARALLEL, product([extent for _, extent in axes]),
                 (*tasks(axes, symbol(PARALLEL)), *body), Kind.PARALLEL)  # fmt: skip
    return kernel([whole])


def _position(problem: _Problem, first: Size) -> list[Statement]:
    """The image of a patch and its place in that, from its number."""
    return tasks([(N, problem.form.shape[0]), *zip((Y, X), problem.across, strict=True)],
                 first + symbol(PATCH))  # fmt: skip


def _transform_patch(problem: _Problem) -> list[Statement]:
    """V from the image; elements beyond its edges are 0."""
    form, v, lanes = problem.form, problem.transformed, problem.tile.lanes
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

    def read(row: int, column: int) -> Value:
        return Read(PATCHES, DataType.FLOAT, (row * EDGE + column, symbol(LANE)))

    stores = [
        Store(v, (place, symbol(PATCH), channel), value)
        for place, value in enumerate(_both_ways(IMAGE, read))
    ]

    flat = [item for items in every for item in items]
    taken = [_in_lanes(channel, problem.depth, lanes, body) for body in (flat, careful)]
    bounds = [(-1, y), (y + EDGE - 1, height), (-1, x), (x + EDGE - 1, width)]
    inside: Value | None = None
    for low, high in bounds:
        fits = Binary("lt", Whole(low), Whole(high))
        inside = fits if inside is None else Binary("and", inside, fits)
    assert inside is not None
    flag = Select(inside, constant(1, DataType.INT64), constant(0, DataType.INT64))
    body = (
        _patch_register(lanes),
        Guard(0, symbol(INSIDE), (taken[0],)),
        Guard(symbol(INSIDE), 1, (taken[1],)),
        _in_lanes(channel, problem.depth, lanes, stores),
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


def _transform_back(problem: _Problem) -> list[Statement]:
    """The result and its epilogue from M."""
    form, m, lanes, reader = problem.form, problem.products, problem.tile.lanes, problem.reader
    root, group = problem.group.root, problem.group
    width = problem.panels * problem.tile.nr
    inner = symbol(CHANNELS) * lanes + symbol(LANE)
    channel = symbol(GROUP) * width + inner
    taken: list[Statement] = [
        Update(PATCHES, "add", Load(m, (place, symbol(PATCH), inner)), (place, symbol(LANE)))
        for place in range(PLACES)
    ]

    def read(row: int, column: int) -> Value:
        return Read(PATCHES, DataType.FLOAT, (row * EDGE + column, symbol(LANE)))

    results = _both_ways(RESULT, read)
    for number, result in enumerate(results):
        reader.forget()
        reader.computed[form] = lambda _, result=result: result  # type: ignore[misc]
        y, x = (symbol(name) * MADE + part
                for name, part in zip((Y, X), divmod(number, MADE), strict=True))  # fmt: skip
        index = (symbol(N), channel, y, x)
        store: Statement = Store(reader.buffer(root), index, reader.value(group.root, index))
        for place, size in ((y, form.shape[2]), (x, form.shape[3])):
            if not isinstance(size, int) or size % MADE:
                store = Guard(place, size, (store,))
        taken.append(store)
    reader.forget()
    count = minimum(width, problem.columns - symbol(GROUP) * width)
    body = _in_lanes(channel, problem.columns, lanes, taken)
    return [Loop(CHANNELS, ceil_divide(count, lanes), (_patch_register(lanes), body))]


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
