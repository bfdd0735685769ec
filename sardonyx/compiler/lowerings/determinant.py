"""Determinants, as a routine: rows are eliminated from the largest pivot of each column on."""

from collections.abc import Sequence

from sardonyx.compiler.forms import Form, Memories, NotLowered, Room, Routine, results
from sardonyx.compiler.kernels.nest import parallel_kernel
from sardonyx.compiler.lowerings.request import Lowerings, Request
from sardonyx.dims import Size, product, symbol
from sardonyx.dtypes import DataType
from sardonyx.loops.build import constant
from sardonyx.loops.nodes import (
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
    Unary,
    Update,
    Value,
    Whole,
)
from sardonyx.record import record

STEP, ROW, COLUMN, PIVOT = (symbol(name) for name in ("%step", "%row", "%column", "%pivot"))
"""The column that is eliminated, a row and a column of what is left, and the largest row."""


def determinant(request: Request, x: Form) -> Form:
    """The determinant of each square matrix."""
    if not x.dtype.is_float:
        raise NotLowered(f"of {x.dtype.text} it has no native form")
    *outer, rows, columns = x.shape
    size = request.agree(rows, columns)
    room = Room(tuple(outer), x.dtype)
    work = product(x.shape) * size
    return results(Routine((x,), (room,), _write, work, (Room(x.shape, x.dtype),)))[0]


def _write(memories: Memories) -> Sequence[Kernel]:
    (source,), (result,), (matrix,) = memories.arguments, memories.results, memories.scratch
    outer = [(f"%b{axis}", size) for axis, size in enumerate(result.shape)]
    around = tuple(symbol(name) for name, _ in outer)
    size, dtype = matrix.shape[-1], matrix.dtype
    copy = Store(matrix, (*around, ROW, COLUMN), Load(source, (*around, ROW, COLUMN)))
    body = (
        Loop("%row", size, (Loop("%column", size, (copy,), Kind.VECTOR),)),
        Register("result", dtype, (), 1),
        Register("held", dtype, (), 0),
        Loop("%step", size, _Matrix(matrix, around).step()),
        Store(result, around, Read("result", dtype)),
    )
    return [parallel_kernel(outer, body)]


@record
class _Matrix:
    """A matrix that is eliminated column by column, and where it stands among others."""

    buffer: Buffer
    around: tuple[Size, ...]

    def at(self, row: Size, column: Size) -> Load:
        """An element."""
        return Load(self.buffer, (*self.around, row, column))

    def put(self, row: Size, column: Size, value: Value) -> Statement:
        """A new element."""
        return Store(self.buffer, (*self.around, row, column), value)

    def step(self) -> tuple[Statement, ...]:
        """One column: its largest element comes to the diagonal, rows below lose theirs."""
        size, dtype = self.buffer.shape[-1], self.buffer.dtype
        is_zero = Binary("eq", self.at(STEP, STEP), constant(0, dtype))
        turn = Update("result", "mul", constant(-1, dtype))
        return (
            Register("best", dtype, (), -1),
            Register("pivot", DataType.INT64, (), 0),
            Update("pivot", "set", Whole(STEP)),
            Loop("%row", size - STEP, self.search()),
            Let("%pivot", Read("pivot", DataType.INT64)),
            Guard(STEP, PIVOT, (Loop("%column", size, self.swap()), turn)),
            Update("result", "mul", self.at(STEP, STEP)),
            Let("%zero", Cast(is_zero, DataType.INT64)),
            Guard(symbol("%zero"), 1, (Loop("%row", size - 1 - STEP, self.eliminate()),)),
        )

    def search(self) -> tuple[Statement, ...]:
        """Remember a row whose element is larger than the best before it."""
        here = Unary("abs", self.at(STEP + ROW, STEP))
        larger = Binary("gt", here, Read("best", self.buffer.dtype))
        found = (Update("best", "set", here), Update("pivot", "set", Whole(STEP + ROW)))
        return Let("%more", Cast(larger, DataType.INT64)), Guard(0, symbol("%more"), found)

    def swap(self) -> tuple[Statement, ...]:
        """Exchange an element of the diagonal's row with the largest row's."""
        return (
            Update("held", "set", self.at(STEP, COLUMN)),
            self.put(STEP, COLUMN, self.at(PIVOT, COLUMN)),
            self.put(PIVOT, COLUMN, Read("held", self.buffer.dtype)),
        )

    def eliminate(self) -> tuple[Statement, ...]:
        """Take as much of the diagonal's row from a row below as makes its element 0."""
        below, right = STEP + 1 + ROW, STEP + 1 + COLUMN
        less = Binary("mul", Read("held", self.buffer.dtype), self.at(STEP, right))
        change = self.put(below, right, Binary("sub", self.at(below, right), less))
        return (
            Update("held", "set", Binary("div", self.at(below, STEP), self.at(STEP, STEP))),
            Loop("%column", self.buffer.shape[-1] - 1 - STEP, (change,), Kind.VECTOR),
        )


LOWERINGS: Lowerings = {("", "Det"): determinant}
