"""Kernels that differ only in numbers: one with those numbers as parameters stands for all.

A model with many layers of one kind, each of another width, has a kernel for each layer. The first
few keep their numbers, which makes them a little faster; those behind them share one kernel.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from sardonyx.dims import Product, Size, floor_divide, maximum, minimum, remainder, symbol
from sardonyx.dims import broadcast as together
from sardonyx.loops.nodes import (
    Buffer,
    Constant,
    Guard,
    Kernel,
    Kind,
    Let,
    Load,
    Local,
    Loop,
    Pick,
    Read,
    Register,
    Statement,
    Store,
    Update,
    Value,
    Whole,
    walk,
)
from sardonyx.loops.rewrite import rebuilt, with_parts
from sardonyx.record import record

OWN = 2
"""Kernels of a family that keep their numbers."""
MOST = 16
"""Numbers in which the kernels of a family may differ."""
PARAMETER = "%number"
"""What the names of parameters for numbers begin with; no model's symbol does."""
_NUMBER = re.compile(r"(?<![\w%.])\d+")


@record
class General:
    """A kernel that takes numbers as parameters, and which of those of its first user these are."""

    kernel: Kernel
    walked: "_Walk"
    parameters: dict[int, str]

    def arguments(self, other: "_Walk") -> dict[str, int] | None:
        """What the parameters are for another kernel; None where it cannot stand for that."""
        if other.fixed != self.walked.fixed:
            return None
        found: dict[str, int] = {}
        for place, (own, number) in enumerate(zip(self.walked.numbers, other.numbers, strict=True)):
            name = self.parameters.get(place)
            if number != (own if name is None else found.setdefault(name, number)):
                return None
        return found


@dataclass(eq=False)
class Family:
    """Kernels with the same text but for numbers, and those that stand for several of them."""

    members: list[Kernel] = field(default_factory=list)
    general: list[General] = field(default_factory=list)

    def find(self, kernel: Kernel) -> tuple[General, dict[str, int]] | None:
        """What stands for a kernel, and with which arguments; None for one that is to be a member.

        >>> from sardonyx.loops.build import dense, kernel
        >>> from sardonyx.dtypes import DataType
        >>> def clear(size):
        ...     x = dense("x", DataType.INT64, (size,))
        ...     return kernel([Loop("%i", size, (Store(x, (symbol("%i"),), Whole(2)),))])
        >>> family = Family([clear(5), clear(6)])
        >>> family.find(clear(8))[1]
        {'%number0': 8}
        """
        if len(self.members) < OWN:
            return None
        walked = _walk(kernel)
        for general in self.general:
            arguments = general.arguments(walked)
            if arguments is not None:
                return general, arguments
        made = self._generalize(kernel, walked)
        if made is None:
            return None
        self.general.append(made)
        arguments = made.arguments(walked)
        assert arguments is not None
        return made, arguments

    def _generalize(self, kernel: Kernel, walked: "_Walk") -> General | None:
        """What stands for a kernel and all members like it, if they differ in few numbers."""
        others = [item for item in map(_walk, self.members) if item.fixed == walked.fixed]
        if len(others) < OWN:
            return None
        names: dict[tuple[int, ...], str] = {}
        columns = zip(walked.numbers, *(item.numbers for item in others), strict=True)
        parameters = {
            place: names.setdefault(column, f"{PARAMETER}{len(names)}")
            for place, column in enumerate(columns)
            if len(set(column)) > 1
        }
        if len(names) > MOST:
            return None
        body = _Walk(parameters).body(kernel.body)
        own = (*kernel.parameters, *names.values())
        return General(Kernel(kernel.memories, own, body), walked, parameters)


def family_text(text: str) -> str:
    """A kernel's text without numbers."""
    return _NUMBER.sub("#", text)


def _walk(kernel: Kernel) -> "_Walk":
    walked = _Walk({})
    walked.body(kernel.body)
    return walked


class _Walk:
    """Goes through a kernel, in one order for a family, and puts parameters for numbers.

    `numbers` are those that may become parameters, `fixed` what must be the same in a family: with
    these, 0 and 1, other code is made.
    """

    def __init__(self, parameters: dict[int, str]) -> None:
        self.parameters = parameters
        self.numbers: list[int] = []
        self.fixed: list[object] = []

    def body(self, body: tuple[Statement, ...]) -> tuple[Statement, ...]:
        return tuple(map(self.statement, body))

    def statement(self, statement: Statement) -> Statement:
        match statement:
            case Loop(index, extent, body, kind):
                if kind is Kind.SERIAL or (kind is Kind.VECTOR and not _reduces(body)):
                    extent = self.size(extent)
                elif kind not in (Kind.PARALLEL, Kind.STEPS):
                    self.fixed.append(extent)
                return Loop(index, extent, self.body(body), kind)
            case Guard(left, right, body):
                return Guard(self.size(left), self.size(right), self.body(body))
            case Let(name, value):
                return Let(name, self.value(value))
            case Register(_, _, shape, initial) as register:
                self.fixed += [shape, repr(initial)]
                return register
            case Local(_, _, shape) as local:
                self.fixed.append(shape)
                return local
            case Update(register, combine, value, indices):
                self.fixed.append(indices)
                return Update(register, combine, self.value(value), indices)
            case Store(buffer, indices, value):
                return Store(self.buffer(buffer), self.sizes(indices), self.value(value))

    def buffer(self, buffer: Buffer) -> Buffer:
        shape, strides = self.sizes(buffer.shape), self.sizes(buffer.strides)
        return Buffer(buffer.memory, buffer.dtype, shape, strides)

    def value(self, value: Value) -> Value:
        return rebuilt(value, self.single)

    def single(self, value: Value, parts: list[Value]) -> Value:
        match value:
            case Constant(number):
                self.fixed.append(repr(number))
            case Read(_, _, indices):
                self.fixed.append(indices)
            case Whole(size):
                return Whole(self.size(size))
            case Load(buffer, indices):
                return Load(self.buffer(buffer), self.sizes(indices))
            case Pick(buffer, _, report):
                seen = None if report is None else self.buffer(report)
                return Pick(self.buffer(buffer), tuple(parts), seen)
        return with_parts(value, parts)

    def sizes(self, sizes: tuple[Size, ...]) -> tuple[Size, ...]:
        return tuple(map(self.size, sizes))

    def size(self, size: Size) -> Size:
        if isinstance(size, int):
            return self.number(size)
        total: Size = 0
        for atoms, factor in sorted(size.terms.items(), key=_without_numbers):
            term = self.number(factor)
            for atom in atoms:
                if isinstance(atom, str):
                    term = term * symbol(atom)
                else:
                    sign, left, right = atom
                    term = term * _OPERATIONS[sign](self.size(left), self.size(right))
            total = total + term
        return total

    def number(self, number: int) -> Size:
        """A number, or its parameter: that is never below zero, as sizes are not."""
        if abs(number) < 2:
            self.fixed.append(number)
        self.numbers.append(abs(number))
        name = self.parameters.get(len(self.numbers) - 1)
        return number if name is None else symbol(name) * (-1 if number < 0 else 1)


def _broadcast(left: Size, right: Size) -> Size:
    made = together(left, right)
    assert made is not None, "the kernel was made with these sizes"
    return made


_OPERATIONS: dict[str, Callable[[Size, Size], Size]] = {
    "//": floor_divide,
    "%": remainder,
    "min": minimum,
    "max": maximum,
    "broadcast": _broadcast,
}


def _without_numbers(term: tuple[Product, int]) -> str:
    return _NUMBER.sub("#", "*".join(map(str, term[0])))


def _reduces(body: tuple[Statement, ...]) -> bool:
    """True where lanes are added up: in which order, the extent decides."""
    return any(isinstance(item, Update) for item in walk(body))
