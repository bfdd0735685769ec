"""Determinants, as a routine: rows are eliminated from the largest pivot of each column on."""

from collections.abc import Sequence

from sardonyx.compiler.forms import Form, Memories, NotLowered, Room, Routine, results
from sardonyx.compiler.kernels.nest import parallel_kernel
from sardonyx.compiler.lowerings.request import Lowerings, Request
from sardonyx.dims import product, symbol
from sardonyx.dtypes import DataType
from sardonyx.loops.build import constant
from sardonyx.loops.nodes import (
    Binary,
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
    Whole,
)


def determinant(request: Request, x: Form) -> Form:
    """The determinant of each square matrix."""
    if not x.dtype.is_float:
        raise NotLowered(f"of {x.dtype.text} it has no native form")
    *outer, rows, columns = x.shape
    size, dtype = request.agree(rows, columns), x.dtype

    def write(memories: Memories) -> Sequence[Kernel]:
        (source,), (result,), (matrix,) = (
            memories.arguments, memories.results, memories.scratch,
        )  # fmt: skip
        names = [f"%b{axis}" for axis in range(len(outer))]
        around = tuple(map(symbol, names))
        step, row, column, pivot = (symbol(f"%{n}") for n in ("step", "row", "column", "pivot"))

        def at(*place: object) -> Load:
            return Load(matrix, (*around, *place))  # type: ignore[arg-type]

        def store(place: Load, value: object) -> Statement:
            return Store(place.buffer, place.indices, value)  # type: ignore[arg-type]

        copy = store(at(row, column), Load(source, (*around, row, column)))
        below = step + 1 + row
        size_here = Unary("abs", at(step + row, step))
        search: tuple[Statement, ...] = (
            Let("%more", Cast(Binary("gt", size_here, Read("best", dtype)), DataType.INT64)),
            Guard(0, symbol("%more"), (
                Update("best", "set", size_here), Update("pivot", "set", Whole(step + row)),
            )),
        )  # fmt: skip
        swap: tuple[Statement, ...] = (
            Update("held", "set", at(step, column)),
            store(at(step, column), at(pivot, column)),
            store(at(pivot, column), Read("held", dtype)),
        )
        right = step + 1 + column
        less = Binary("mul", Read("held", dtype), at(step, right))
        eliminate: tuple[Statement, ...] = (
            Update("held", "set", Binary("div", at(below, step), at(step, step))),
            Loop("%column", size - 1 - step, (
                store(at(below, right), Binary("sub", at(below, right), less)),
            ), Kind.VECTOR),
        )  # fmt: skip
        is_zero = Binary("eq", at(step, step), constant(0, dtype))
        each: tuple[Statement, ...] = (
            Register("best", dtype, (), -1),
            Register("pivot", DataType.INT64, (), 0),
            Update("pivot", "set", Whole(step)),
            Loop("%row", size - step, search),
            Let("%pivot", Read("pivot", DataType.INT64)),
            Guard(step, pivot, (
                Loop("%column", size, swap), Update("result", "mul", constant(-1, dtype)),
            )),
            Update("result", "mul", at(step, step)),
            Let("%zero", Cast(is_zero, DataType.INT64)),
            Guard(symbol("%zero"), 1, (Loop("%row", size - 1 - step, eliminate),)),
        )  # fmt: skip
        body = (
            Loop("%row", size, (Loop("%column", size, (copy,), Kind.VECTOR),)),
            Register("result", dtype, (), 1),
            Register("held", dtype, (), 0),
            Loop("%step", size, each),
            Store(result, around, Read("result", dtype)),
        )
        return [parallel_kernel(list(zip(names, outer, strict=True)), body)]

    routine = Routine(
        (x,), (Room(tuple(outer), dtype),), write, product(x.shape) * size, (Room(x.shape, dtype),)
    )
    return results(routine)[0]


LOWERINGS: Lowerings = {("", "Det"): determinant}
