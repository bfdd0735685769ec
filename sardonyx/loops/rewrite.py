"""Rewrite kernels' bodies: names replaced, buffers taken as flat memory, axes of a nest merged."""

from collections.abc import Callable, Iterator, Mapping

from sardonyx.dims import Expression, Size
from sardonyx.loops.nodes import (
    Binary,
    Bits,
    Buffer,
    Cast,
    Dot,
    Guard,
    Let,
    Load,
    Loop,
    Pick,
    Read,
    Select,
    Statement,
    Store,
    Unary,
    Update,
    Value,
    Whole,
    operands,
    substitute,
    symbols,
    values_in,
    walk,
)

Body = tuple[Statement, ...]


def offset(buffer: Buffer, indices: tuple[Size, ...]) -> Size:
    """Where an element lies in its memory."""
    total: Size = 0
    for index, stride in zip(indices, buffer.strides, strict=True):
        total = total + index * stride
    return total


def flattened(body: Body, names: dict[str, Size], kept: Mapping[str, Buffer] | None = None) -> Body:
    """The body with names replaced, and every access by its place in flat memory.

    Elements of registers that are `kept` in buffers are loaded from those.
    """
    return tuple(_statement(statement, names, kept or {}) for statement in body)


def _statement(
    statement: Statement, names: dict[str, Size], kept: Mapping[str, Buffer]
) -> Statement:
    def size(item: Size) -> Size:
        return substitute(item, names)

    match statement:
        case Loop(index, extent, body, kind):
            return Loop(index, size(extent), flattened(body, names, kept), kind)
        case Guard(left, right, body):
            return Guard(size(left), size(right), flattened(body, names, kept))
        case Let(name, value):
            return Let(name, _value(value, size, kept))
        case Update(register, combine, value, indices):
            return Update(register, combine, _value(value, size, kept), tuple(map(size, indices)))
        case Store(buffer, indices, value):
            flat, at = _flat(buffer, indices, size)
            return Store(flat, at, _value(value, size, kept))
    return statement


def _flat(
    buffer: Buffer, indices: tuple[Size, ...], size: Callable[[Size], Size]
) -> tuple[Buffer, tuple[Size, ...]]:
    flat = Buffer(buffer.memory, buffer.dtype, (_reach(buffer),), (1,))
    return flat, (size(offset(buffer, indices)),)


def _reach(buffer: Buffer) -> Size:
    """How many elements of flat memory a buffer lies among: its own, where it has no gaps."""
    reach: Size = 1
    for size, stride in zip(buffer.shape, buffer.strides, strict=True):
        reach = reach + (size - 1) * stride
    return reach


def rebuilt(value: Value, make: Callable[[Value, list[Value]], Value]) -> Value:
    """A value made anew from its innermost parts on; parts that are shared stay shared.

    >>> inner = Whole(2)
    >>> doubled = rebuilt(Binary("add", inner, inner), with_parts)
    >>> doubled == Binary("add", inner, inner)
    True
    """
    made: dict[int, Value] = {}
    waiting = [value]
    while waiting:
        item = waiting[-1]
        missing = [part for part in operands(item) if id(part) not in made]
        if missing:
            waiting.extend(missing)
            continue
        waiting.pop()
        if id(item) not in made:
            made[id(item)] = make(item, [made[id(part)] for part in operands(item)])
    return made[id(value)]


def with_parts(value: Value, parts: list[Value]) -> Value:
    """A value with other operands; one that reads memory or a register stays.

    >>> with_parts(Unary("neg", Whole(1)), [Whole(2)]) == Unary("neg", Whole(2))
    True
    """
    match value:
        case Unary(name, _):
            return Unary(name, *parts)
        case Binary(name, _, _):
            return Binary(name, *parts)
        case Select():
            return Select(*parts)
        case Cast(_, dtype):
            return Cast(parts[0], dtype)
        case Bits(_, dtype):
            return Bits(parts[0], dtype)
        case Dot(dtype=dtype):
            return Dot(parts[0], parts[1], dtype)
    return value


def _value(value: Value, size: Callable[[Size], Size], kept: Mapping[str, Buffer]) -> Value:
    return rebuilt(value, lambda item, parts: _single(item, parts, size, kept))


def _single(
    value: Value, parts: list[Value], size: Callable[[Size], Size], kept: Mapping[str, Buffer]
) -> Value:
    match value:
        case Whole(inner):
            return Whole(size(inner))
        case Load(buffer, indices):
            return Load(*_flat(buffer, indices, size))
        case Pick(buffer, _, report):
            return Pick(buffer, tuple(parts), report)
        case Read(register, _, indices) if register in kept:
            return Load(*_flat(kept[register], indices, size))
        case Read(register, dtype, indices):
            return Read(register, dtype, tuple(map(size, indices)))
    return with_parts(value, parts)


def accesses(body: Body) -> Iterator[Size]:
    """The place in memory of every load and store."""
    for value in values_in(body):
        if isinstance(value, Load):
            yield offset(value.buffer, value.indices)
    for statement in walk(body):
        if isinstance(statement, Store):
            yield offset(statement.buffer, statement.indices)


def merge_axes(
    axes: list[tuple[str, Size]], body: Body
) -> tuple[list[tuple[str, Size]], dict[str, Size]]:
    """Axes of a nest, outermost first, with neighbours made one wherever every access allows it.

    Returns the axes left and what to put for the names of those that went. The body must then be
    flattened, since merged indices leave the bounds of their own axis.
    """
    places = list(accesses(body))
    values = [item.size for item in values_in(body) if isinstance(item, Whole)]
    kept: list[tuple[str, Size]] = []
    gone: dict[str, Size] = {}
    for name, extent in axes:
        if extent == 1:
            gone[name] = 0
            continue
        if kept and not any({name, kept[-1][0]} & symbols(size) for size in values):
            outer, outer_extent = kept[-1]
            steps = [(step(place, outer), step(place, name)) for place in places]
            if all(a is not None and c is not None and a == c * extent for a, c in steps):
                gone[outer] = 0
                kept[-1] = (name, outer_extent * extent)
                continue
        kept.append((name, extent))
    return kept, gone


def step(place: Size, name: str) -> Size | None:
    """By how much a place in memory grows with a name; None where that is not one size."""
    if name not in symbols(place):
        return 0
    assert isinstance(place, Expression)
    return place.growth(name)
