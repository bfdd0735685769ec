"""The register tile: the one building block of all products.

mr rows by nv vectors of accumulators stay in registers while all k products are added; then the
epilogue is applied and the result stored. The right side lies packed in panels of nr columns. A
sum of float32 is taken in pieces, which keeps rounding errors low.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sardonyx.compiler.forms import EXPENSIVE
from sardonyx.compiler.image import aligned_room
from sardonyx.compiler.kernels.words import BYTES, pack_words
from sardonyx.compiler.targets import Target
from sardonyx.dims import Size, ceil_divide, maximum, minimum, product, symbol
from sardonyx.dtypes import DataType
from sardonyx.loops.build import dense, nest
from sardonyx.loops.nodes import (
    Binary,
    Cast,
    Dot,
    Guard,
    Kind,
    Let,
    Load,
    Local,
    Loop,
    Read,
    Register,
    Statement,
    Store,
    Unary,
    Update,
    Value,
    Whole,
    dtype_of,
    values_in,
)
from sardonyx.loops.rewrite import flattened
from sardonyx.record import record

Steps = Sequence[tuple[str, Size]]
"""Loops: their variables and extents, the outermost first."""
Pixel = Callable[[Size, tuple[Size, ...], Size], Value]
"""An image's element at batch, place along spatial axes, and channel."""
FEW_ROWS = 2
"""Rows of a product that is bound by memory."""
MANY_COLUMNS = 64
"""Columns of a product that pay for rounding its left side."""
ACCUMULATORS, BEFORE, SUMS = "acc", "before", "sums"
ROW, VECTOR, LANE, CHUNK, WITHIN = "%r", "%c", "%l", "%chunk", "%within"
DEPTH = 128
"""Products at most that are added up before their sum is added to the others'."""


@record
class Tile:
    """mr rows by nv vectors of `lanes` elements."""

    mr: int
    nv: int
    lanes: int

    @property
    def nr(self) -> int:
        """Columns."""
        return self.nv * self.lanes


@record
class Arithmetic:
    """The type that products are added up in, and that of factors which lie in words."""

    dtype: DataType = DataType.FLOAT
    narrow: DataType | None = None
    """Of the left side: UINT8, by INT8 on the right, or BFLOAT16."""

    @property
    def words(self) -> bool:
        """Whether several factors lie in a word."""
        return self.narrow is not None

    @property
    def parts(self) -> int:
        """Factors that are multiplied at once."""
        return 1 if self.narrow is None else BYTES // self.narrow.numpy.itemsize

    def pack(self, matrix: NDArray[Any]) -> NDArray[Any]:
        """The right side, [..., K, N], as its factors are read."""
        if self.narrow is DataType.BFLOAT16:
            with np.errstate(over="ignore"):
                matrix = matrix.astype(self.narrow.numpy)
        return matrix if self.narrow is None else pack_words(matrix)

    def multiply(self, left: Value, right: Value) -> Value:
        """The product of two factors, or the sum of those of their parts."""
        if self.words:
            return Dot(left, right, self.dtype)
        wide = [x if dtype_of(x) is self.dtype else Cast(x, self.dtype) for x in (left, right)]
        return Binary("mul", *wide)


FLOATS = Arithmetic()


PAIRS = Arithmetic(narrow=DataType.BFLOAT16)


def arithmetic_of(left: DataType, right: DataType, dtype: DataType) -> Arithmetic:
    """How products of elements are computed."""
    return Arithmetic(dtype, left if (left, right) == (DataType.UINT8, DataType.INT8) else None)


def suits_pairs(rows: Size, columns: Size, dtype: DataType, target: Target) -> bool:
    """Whether a product by constants may round its factors to bfloat16, and gains by it.

    Without an instruction for pairs only a few rows do, which wait for the constants to be read.
    """
    if not target.narrow or dtype is not DataType.FLOAT:
        return False
    few = isinstance(rows, int) and rows <= FEW_ROWS
    many = isinstance(columns, int) and columns >= MANY_COLUMNS
    return few or (many and bool(target.pairs))


@lru_cache(maxsize=1 << 10)
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
    steps: Steps,
    left: Callable[[Size], Value],
    right: Callable[[Size], Value],
    store: Callable[[Size, Size], tuple[Statement, ...]],
    arithmetic: Arithmetic = FLOATS,
    depth: int = DEPTH,
) -> list[Statement]:
    """One tile: `left(row) * right(column)` added up over `steps`, then `store(row, column)`.

    Sums of float32 are taken in pieces of at most `depth` products.
    """
    row, column = symbol(ROW), symbol(VECTOR) * tile.lanes + symbol(LANE)
    multiplied = arithmetic.multiply(left(row), right(column))
    single = [step for step in steps if step[1] == 1]
    longer = [step for step in steps if step[1] != 1]
    floats = arithmetic.dtype is DataType.FLOAT
    pieces = _cut(longer, depth) if longer and floats else _Pieces((), longer)

    def add(value: Value) -> tuple[Statement, ...]:
        return over_tile(tile, (Update(ACCUMULATORS, "add", value, (row, column)),))

    clear = Register(ACCUMULATORS, arithmetic.dtype, (tile.mr, tile.nr), 0, lanes=True)
    products = nest(pieces.inner, (*pieces.names, *add(multiplied)))
    last = _epilogue(tile, store(row, column), arithmetic.dtype)
    if not pieces.outer:
        return [clear, *nest(single, products), *last]
    kept = dense(BEFORE, arithmetic.dtype, (tile.mr, tile.nr))
    number, count = _position(pieces.outer)
    keep = Store(kept, (row, column), accumulated(row, column, arithmetic.dtype))
    body = (
        clear,
        *products,
        Guard(0, number, add(Load(kept, (row, column)))),
        Guard(number, count - 1, over_tile(tile, (keep,))),
        Guard(count - 2, number, last),
    )
    return [
        Local(BEFORE, arithmetic.dtype, (tile.mr, tile.nr)),
        *nest([*single, *pieces.outer], body),
    ]


def _position(steps: Steps) -> tuple[Size, Size]:
    """The number of an iteration of loops, and how many there are."""
    number: Size = 0
    for name, extent in steps:
        number = number * extent + symbol(name)
    return number, product([extent for _, extent in steps])


class _Pieces(NamedTuple):
    """Loops over the pieces of a sum, those within a piece, and names made of both's variables."""

    outer: Steps
    inner: Steps
    names: tuple[Let, ...] = ()


def _cut(steps: Steps, depth: int) -> _Pieces:
    """Pieces of `depth` products at most: the last few loops, or parts of the last one."""
    for first in range(min(1, len(steps) - 1), len(steps)):
        size = product([extent for _, extent in steps[first:]])
        if isinstance(size, int) and size <= depth:
            return _Pieces(steps[:first], steps[first:])
    name, extent = steps[-1]
    here = minimum(depth, extent - symbol(CHUNK) * depth)
    place = Let(name, Whole(symbol(CHUNK) * depth + symbol(WITHIN)))
    outer = [*steps[:-1], (CHUNK, maximum(ceil_divide(extent, depth), 1))]
    return _Pieces(outer, [(WITHIN, here)], (place,))


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
    packed = aligned_room((*batch, -(-columns // nr), depth, nr), matrix.dtype)
    fill_panels(packed, matrix)
    return packed


def fill_panels(packed: NDArray[Any], matrix: NDArray[Any]) -> None:
    """Put columns, [..., K, N], into their places in panels, [..., panels, K, nr]."""
    *batch, depth, columns = matrix.shape
    nr = packed.shape[-1]
    whole, rest = divmod(columns, nr)
    panels = matrix[..., : whole * nr].reshape(*batch, depth, whole, nr)
    packed[..., :whole, :, :] = np.moveaxis(panels, -2, -3)
    if rest:
        packed[..., whole, :, :rest] = matrix[..., whole * nr :]
        packed[..., whole, :, rest:] = 0
