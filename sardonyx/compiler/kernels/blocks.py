"""Tiles over a whole result: blocks that stay in the cache, tasks for threads, and the edges.

The last tile of a result that is not a multiple of its height lies over the one before it: both
compute the same numbers. A result lower than a tile gets lower ones.
"""

from collections.abc import Callable, Sequence

from sardonyx.compiler.kernels.nest import PARALLEL, tasks
from sardonyx.compiler.kernels.tile import Tile
from sardonyx.dims import Size, ceil_divide, maximum, minimum, product, symbol
from sardonyx.loops.build import kernel
from sardonyx.loops.nodes import Guard, Kernel, Kind, Let, Loop, Statement, Whole
from sardonyx.loops.rewrite import flattened
from sardonyx.record import record

PANEL, BLOCK, TILE, START, LINE = "%panel", "%block", "%tile", "%start", "%line"
TASKS = 16
"""Tasks that a kernel should have, for threads to share."""
SMALL_ROWS = 4
"""Rows of the tile for results with fewer rows than the large one has."""


@record
class Lines:
    """An axis outside of the rows that a task walks along, `count` of it at a time."""

    name: str
    extent: Size
    count: int


OneTile = Callable[[Tile, Callable[[Size], Size]], list[Statement]]
"""The statements of a tile, and where the result has the row that is the tile's own."""


def _shared_out(most: int, there: Size, wanted: int) -> Size:
    """How many of what is there a block gets, where there should be some number of blocks."""
    if wanted == 1:
        return most
    return maximum(minimum(most, there // wanted), 1)


def blocked_kernel(
    outer: Sequence[tuple[str, Size]],
    gone: dict[str, Size],
    rows: Size,
    tile: Tile,
    panels: Size,
    in_block: int,
    one_tile: OneTile,
    lines: Lines | None = None,
    *,
    seldom_low: bool = False,
) -> Kernel:
    """All tiles of a result: for each outer index, block and panel one task.

    A block is `in_block` tiles of rows, or where there are `lines`, some of those with all rows.
    A result that is `seldom_low` is computed row by row where it has fewer than a tile has.
    """
    height = tile.mr if not isinstance(rows, int) else min(tile.mr, max(rows, 1))
    tiles = ceil_divide(rows, height)
    block = symbol(BLOCK)

    def tile_loop(mr: int, begin: Size, count: Size) -> Statement:
        start = minimum((symbol(TILE) + begin) * mr, rows - mr)
        made = one_tile(Tile(mr, tile.nv, tile.lanes), lambda row: symbol(START) + row)
        return Loop(TILE, count, (Let(START, Whole(start)), *flattened(tuple(made), gone)))

    def low_tiles(mr: int) -> Statement:
        """Tiles for fewer rows than a high one has; rows that are not there are the last one."""
        start = maximum(minimum(symbol(TILE) * mr, rows - mr), 0)
        made = one_tile(
            Tile(mr, tile.nv, tile.lanes), lambda row: minimum(symbol(START) + row, rows - 1)
        )
        body = (Let(START, Whole(start)), *flattened(tuple(made), gone))
        return Loop(TILE, ceil_divide(rows, mr), body)

    others = product([extent for _, extent in outer]) * panels
    wanted = -(-TASKS // max(others, 1)) if isinstance(others, int) else 1
    if lines is not None:
        main = tile_loop(height, 0, tiles)
        count = _shared_out(lines.count, lines.extent, wanted)
        blocks = ceil_divide(lines.extent, count)
    else:
        count = _shared_out(in_block, tiles, wanted)
        main = tile_loop(height, block * count, minimum(count, tiles - block * count))
        blocks = ceil_divide(tiles, count)
    body: tuple[Statement, ...] = (main,)
    if not isinstance(rows, int):
        low: tuple[Statement, ...] = (tile_loop(1, 0, rows),)
        if not seldom_low:
            some = low_tiles(min(SMALL_ROWS, height))
            low = (Guard(1, rows, (some,)), Guard(rows, 2, low))
        body = (Guard(height - 1, rows, (main,)), Guard(rows, height, low))
    if lines is not None:
        first = block * count
        here = minimum(count, lines.extent - first)
        body = (Loop(LINE, here, (Let(lines.name, Whole(first + symbol(LINE))), *body)),)
    axes = [*outer, (BLOCK, blocks), (PANEL, panels)]
    total = product([extent for _, extent in axes])
    return kernel([Loop(PARALLEL, total, (*tasks(axes, symbol(PARALLEL)), *body), Kind.PARALLEL)])
