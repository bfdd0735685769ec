"""The register tile: the one building block of all products.

mr rows by nv vectors of accumulators stay in registers while all k products are added; then the
epilogue is applied and the result stored. The right side lies packed in panels of nr columns.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sardonyx.compiler.forms import EXPENSIVE
from sardonyx.compiler.targets import Target
from sardonyx.dims import Size, symbol
from sardonyx.dtypes import DataType
from sardonyx.loops.build import dense, nest
from sardonyx.loops.nodes import (
    Binary,
    Cast,
    Dot,
    Guard,
    Kind,
    Local,
    Loop,
    Read,
    Register,
    Statement,
    Store,
    Unary,
    Update,
    Value,
    dtype_of,
    values_in,
)
from sardonyx.loops.rewrite import flattened

Pixel = Callable[[Size, tuple[Size, ...], Size], Value]
"""An image's element at batch, place along spatial axes, and channel."""
ACCUMULATORS, SUMS = "acc", "sums"
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


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """The type that products are added up in; `words`: factors are four bytes in an int32."""

    dtype: DataType = DataType.FLOAT
    words: bool = False

    def multiply(self, left: Value, right: Value) -> Value:
        """The product of two factors, or the sum of those of their bytes."""
        if self.words:
            return Dot(left, right)
        wide = [x if dtype_of(x) is self.dtype else Cast(x, self.dtype) for x in (left, right)]
        return Binary("mul", *wide)


FLOATS = Arithmetic()


def arithmetic_of(left: DataType, right: DataType, dtype: DataType) -> Arithmetic:
    """How products of elements are computed."""
    return Arithmetic(dtype, (left, right) == (DataType.UINT8, DataType.INT8))


def choose_tile(
    rows: Size, columns: Size, target: Target, dtype: DataType = DataType.FLOAT
) -> Tile:
    """The tile that wastes least on the edges of a result and loads least for what it computes."""
    best: tuple[float, Tile] | None = None
    registers = target.registers * 32 // max(dtype.bits, 32)
    for nv in (target.vectors + 1, target.vectors, 2 * target.vectors, 1):
        most = max(registers * 3 // 4 // nv, 1)
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
    arithmetic: Arithmetic = FLOATS,
) -> list[Statement]:
    """One tile: `left(row) * right(column)` added up over `steps`, then `store(row, column)`."""
    row, column = symbol(ROW), symbol(VECTOR) * tile.lanes + symbol(LANE)
    update = Update(
        ACCUMULATORS, "add", arithmetic.multiply(left(row), right(column)), (row, column)
    )
    return [
        Register(ACCUMULATORS, arithmetic.dtype, (tile.mr, tile.nr), 0, lanes=True),
        *nest(steps, over_tile(tile, (update,))),
        *_epilogue(tile, store(row, column), arithmetic.dtype),
    ]


def _epilogue(tile: Tile, stores: tuple[Statement, ...], dtype: DataType) -> tuple[Statement, ...]:
    """What is done with every vector of sums: from registers, or where it is long, in a loop.

    A loop needs the sums in memory; but it stands once, and so can have its functions inside.
    """
    if not any(isinstance(item, Unary) and item.name in EXPENSIVE for item in values_in(stores)):
        return over_tile(tile, stores)
    kept = dense(SUMS, dtype, (tile.mr, tile.nr))
    row, column = symbol(ROW), symbol(VECTOR) * tile.lanes + symbol(LANE)
    keep = Store(kept, (row, column), accumulated(row, column, dtype))
    vector = Loop(LANE, tile.lanes, flattened(stores, {}, {ACCUMULATORS: kept}), Kind.VECTOR)
    return (
        Local(SUMS, dtype, (tile.mr, tile.nr)),
        *over_tile(tile, (keep,)),
        *nest([(ROW, tile.mr), (VECTOR, tile.nv)], (vector,)),
    )


def over_tile(tile: Tile, body: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """The body for every vector of a tile."""
    vector = (Loop(LANE, tile.lanes, body, Kind.VECTOR),)
    return nest([(ROW, tile.mr), (VECTOR, tile.nv)], vector, Kind.UNROLL)


def accumulated(row: Size, column: Size, dtype: DataType = DataType.FLOAT) -> Read:
    """What a tile's accumulators hold."""
    return Read(ACCUMULATORS, dtype, (row, column))


def guarded(column: Size, columns: Size, tile: Tile, store: Statement) -> tuple[Statement, ...]:
    """A statement, left out beyond the last column where the last panel may reach that far."""
    if isinstance(columns, int) and columns % tile.nr == 0:
        return (store,)
    return (Guard(column, columns, (store,)),)


def pack_columns(matrix: NDArray[Any], nr: int) -> NDArray[Any]:
    """[..., K, N] -> [..., panels, K, nr], with zeros behind the last column."""
    *batch, depth, columns = matrix.shape
    panels = -(-columns // nr)
    padded = np.zeros((*batch, depth, panels * nr), matrix.dtype)
    padded[..., :columns] = matrix
    return np.moveaxis(padded.reshape(*batch, depth, panels, nr), -2, -3)
