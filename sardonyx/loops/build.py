"""Build kernels: dense buffers, arithmetic on values, and a kernel from its statements."""

from collections.abc import Sequence

from sardonyx.dims import Size, symbol
from sardonyx.dtypes import DataType
from sardonyx.loops.nodes import (
    Binary,
    Buffer,
    Constant,
    Kernel,
    Kind,
    Let,
    Local,
    Loop,
    Statement,
    Value,
    buffers_in,
    sizes_in,
    symbols,
    walk,
)


def dense_strides(shape: Sequence[Size], order: Sequence[int] | None = None) -> tuple[Size, ...]:
    """Strides of elements without gaps; `order` lists axes from the outermost in memory.

    >>> dense_strides((2, 3, 4)), dense_strides((2, 3, 4), (0, 2, 1))
    ((12, 4, 1), (12, 1, 3))
    """
    strides: list[Size] = [0] * len(shape)
    step: Size = 1
    for axis in reversed(range(len(shape)) if order is None else order):
        strides[axis] = step
        step = step * shape[axis]
    return tuple(strides)


def dense(
    memory: str, dtype: DataType, shape: Sequence[Size], order: Sequence[int] | None = None
) -> Buffer:
    """A buffer without gaps."""
    return Buffer(memory, dtype, tuple(shape), dense_strides(shape, order))


def variable(name: str) -> tuple[str, Size]:
    """A loop variable: its name in loops, and itself in indices."""
    return f"%{name}", symbol(f"%{name}")


def constant(value: float, dtype: DataType = DataType.FLOAT) -> Constant:
    """A number of an element type."""
    return Constant(value, dtype)


def multiply_add(left: Value, right: Value, addend: Value) -> Value:
    """`left * right + addend`; one rounding where the target has it."""
    return Binary("add", Binary("mul", left, right), addend)


def nest(
    axes: Sequence[tuple[str, Size]], body: tuple[Statement, ...], kind: Kind = Kind.SERIAL
) -> tuple[Statement, ...]:
    """Loops around a body, the first axis outermost."""
    for name, extent in reversed(axes):
        body = (Loop(name, extent, body, kind),)
    return body


def kernel(body: Sequence[Statement]) -> Kernel:
    """A kernel from its statements; names that nothing binds become its parameters."""
    statements = tuple(body)
    memories = {buffer.memory: None for buffer in buffers_in(statements)}
    for item in walk(statements):
        if isinstance(item, Local):
            memories.pop(item.memory, None)
    bound = {item.index for item in walk(statements) if isinstance(item, Loop)}
    bound |= {item.name for item in walk(statements) if isinstance(item, Let)}
    free = {name for size in sizes_in(statements) for name in symbols(size)} - bound
    return Kernel(tuple(sorted(memories)), tuple(sorted(free)), statements)
