"""The register tile: the one building block of all products.

mr rows by nv vectors of accumulators stay in registers while all k products are added; then the
epilogue is applied and the result stored. The right side lies packed in panels of nr columns.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sardonyx.compiler.targets import Target
from sardonyx.dims import Size, symbol
from sardonyx.dtypes import DataType
from sardonyx.loops.build import nest
from sardonyx.loops.nodes import (
    Binary,
    Guard,
    Kind,
    Loop,
    Read,
    Register,
    Statement,
    Update,
    Value,
)

Pixel = Callable[[Size, Size, Size, Size], Value]
"""An image's element at batch, row, column and channel."""
ACCUMULATORS = "acc"
ROW, VECTOR, LANE = "%r", "%c", "%l"


@dataclass(frozen=True, slots=True)
class Tile:
    """mr rows by nv vectors of `lanes` elements."""

    mr: int
    nv: int
    lanes: int

    @property
    def nr(self) -> int:
        """Columns."""
        return self.nv * self.lanes


def choose_tile(rows: Size, columns: Size, target: Target) -> Tile:
    """The tile that wastes least on the edges of a result and loads least for what it computes."""
    best: tuple[float, Tile] | None = None
    for nv in (target.vectors + 1, target.vectors, 2 * target.vectors, 1):
        most = target.registers * 3 // 4 // nv
        sizes = range(min(2, most), min(most, 14) + 1) if isinstance(rows, int) else (most,)
        for mr in sizes:
            tile = Tile(mr, nv, target.lanes)
            cost = tile_cost(tile, rows, columns)
            if best is None or cost < best[0]:
                best = cost, tile
    assert best is not None
    if isinstance(rows, int) and rows < best[1].mr:
        return Tile(max(rows, 1), best[1].nv, target.lanes)
    return best[1]


def tile_cost(tile: Tile, rows: Size, columns: Size) -> float:
    """What a tile costs for each element of a result, in comparison with others."""
    loads = 1 + 1 / tile.mr + 1 / tile.nv / 2
    return waste(rows, tile.mr) * waste(columns, tile.nr) * loads


def waste(size: Size, step: int) -> float:
    """How much more is computed than there is, where it is done in steps."""
    if not isinstance(size, int) or size == 0:
        return 1.0
    return -(-size // step) * step / size


def tile_statements(
    tile: Tile,
    steps: Sequence[tuple[str, Size]],
    left: Callable[[Size], Value],
    right: Callable[[Size], Value],
    store: Callable[[Size, Size], tuple[Statement, ...]],
) -> list[Statement]:
    """One tile: `left(row) * right(column)` added up over `steps`, then `store(row, column)`."""
    row, column = symbol(ROW), symbol(VECTOR) * tile.lanes + symbol(LANE)
    update = Update(ACCUMULATORS, "add", Binary("mul", left(row), right(column)), (row, column))
    return [
        Register(ACCUMULATORS, DataType.FLOAT, (tile.mr, tile.nr), 0.0, lanes=True),
        *nest(steps, over_tile(tile, (update,))),
        *over_tile(tile, store(row, column)),
    ]


def over_tile(tile: Tile, body: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """The body for every vector of a tile."""
    vector = (Loop(LANE, tile.lanes, body, Kind.VECTOR),)
    return nest([(ROW, tile.mr), (VECTOR, tile.nv)], vector, Kind.UNROLL)


def accumulated(row: Size, column: Size) -> Read:
    """What a tile's accumulators hold."""
    return Read(ACCUMULATORS, DataType.FLOAT, (row, column))


def guarded(column: Size, columns: Size, tile: Tile, store: Statement) -> tuple[Statement, ...]:
    """A statement, left out beyond the last column where the last panel may reach that far."""
    if isinstance(columns, int) and columns % tile.nr == 0:
        return (store,)
    return (Guard(column, columns, (store,)),)


def pack_columns(matrix: NDArray[np.float32], nr: int) -> NDArray[np.float32]:
    """[..., K, N] -> [..., panels, K, nr], with zeros behind the last column."""
    *batch, depth, columns = matrix.shape
    panels = -(-columns // nr)
    padded = np.zeros((*batch, depth, panels * nr), np.float32)
    padded[..., :columns] = matrix
    return np.moveaxis(padded.reshape(*batch, depth, panels, nr), -2, -3)
