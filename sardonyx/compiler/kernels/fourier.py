"""Discrete Fourier transforms of several signals at once, in memory of a task's own.

A signal's length is taken apart into small factors; a pass for each of them goes over all signals
of a block, which lie side by side, and writes them in the order the next pass reads (Stockham's
way). A length with a large prime factor is done as a convolution with a chirp (Bluestein's way).
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from sardonyx.dims import Size, symbol
from sardonyx.dtypes import DataType
from sardonyx.loops.build import constant, dense
from sardonyx.loops.nodes import (
    Binary,
    Buffer,
    Guard,
    Kind,
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
    dtype_of,
)
from sardonyx.record import record

RADICES = (4, 2, 3, 5, 7, 11, 13)
"""Factors that have a pass of their own."""
LANE, PLACE = "%l", "%j"
HELD, TURN = ("real", "imaginary"), ("cosine", "sine")
"""Registers for elements, and for what they are turned by."""


@record
class Complex:
    """A complex number of two floats."""

    real: Value
    imaginary: Value

    def __add__(self, other: "Complex") -> "Complex":
        return Complex(_add(self.real, other.real), _add(self.imaginary, other.imaginary))

    def __sub__(self, other: "Complex") -> "Complex":
        return Complex(_sub(self.real, other.real), _sub(self.imaginary, other.imaginary))

    def __mul__(self, other: "Complex") -> "Complex":
        real = _sub(_mul(self.real, other.real), _mul(self.imaginary, other.imaginary))
        return Complex(
            real, _add(_mul(self.real, other.imaginary), _mul(self.imaginary, other.real))
        )

    def scaled(self, factor: float) -> "Complex":
        """Times a number."""
        return Complex(*(_mul(part, constant(factor, dtype_of(part))) for part in self.parts))

    @property
    def parts(self) -> tuple[Value, Value]:
        """The real and the imaginary part."""
        return self.real, self.imaginary

    @property
    def turned(self) -> "Complex":
        """Times -i."""
        return Complex(self.imaginary, Unary("neg", self.real))

    @property
    def swapped(self) -> "Complex":
        """Parts exchanged: a transform of these is an inverse one, but for the length."""
        return Complex(self.imaginary, self.real)

    @property
    def conjugate(self) -> "Complex":
        """The other sign of the imaginary part."""
        return Complex(self.real, Unary("neg", self.imaginary))


def _add(left: Value, right: Value) -> Value:
    return Binary("add", left, right)


def _sub(left: Value, right: Value) -> Value:
    return Binary("sub", left, right)


def _mul(left: Value, right: Value) -> Value:
    return Binary("mul", left, right)


def factors_of(length: int) -> tuple[int, ...] | None:
    """The passes of a transform; None where the length has a prime factor that is too large.

    >>> factors_of(400), factors_of(34)
    ((4, 4, 5, 5), None)
    """
    found = []
    for radix in RADICES:
        while length % radix == 0:
            found.append(radix)
            length //= radix
    return tuple(found) if length == 1 else None


def roots(turns: NDArray[np.int64], length: int) -> NDArray[np.float64]:
    """exp(-2 pi i turns / length), its parts along a last axis."""
    angles = (turns % length) * (2 * math.pi / length)
    return np.stack([np.cos(angles), -np.sin(angles)], axis=-1)


def _pass_roots(length: int, factors: Sequence[int]) -> list[NDArray[np.float64]]:
    """For each pass but the last the factors of its results, [places * (radix - 1), 2]."""
    made = []
    for radix in factors[:-1]:
        places = np.arange(length // radix)
        made.append(roots(np.outer(places, np.arange(1, radix)).reshape(-1), length))
        length //= radix
    return made


@record
class Plan:
    """How signals of a length are transformed: by passes of `size`, which is the length itself or
    that of a convolution; and the numbers that takes, [count, 2]."""

    length: int
    size: int
    factors: tuple[int, ...]
    table: NDArray[np.float64]

    @property
    def is_chirped(self) -> bool:
        """True where the transform is a convolution."""
        return self.size != self.length

    @property
    def passes(self) -> int:
        """How many numbers of the table belong to passes; a chirp and its spectrum follow."""
        return len(self.table) - (self.length + self.size if self.is_chirped else 0)


def plan_transform(length: int) -> Plan:
    """The plan for a length."""
    factors = factors_of(length)
    if factors is not None:
        made = _pass_roots(length, factors) or [np.zeros((1, 2))]
        return Plan(length, length, factors, np.concatenate(made))
    size = 1 << (2 * length - 2).bit_length()
    whole = factors_of(size)
    assert whole is not None
    chirp = roots(np.arange(length, dtype=np.int64) ** 2, 2 * length)
    answer = np.zeros(size, np.complex128)
    answer[:length] = chirp[:, 0] - 1j * chirp[:, 1]
    answer[size - length + 1 :] = answer[length - 1 : 0 : -1]
    spectrum = np.fft.fft(answer) / size
    parts = np.stack([spectrum.real, spectrum.imag], axis=-1)
    return Plan(length, size, whole, np.concatenate([*_pass_roots(size, whole), chirp, parts]))


@record
class Block:
    """Signals that a task transforms together, and the memory it needs: two buffers of both parts,
    [2, size * count]."""

    plan: Plan
    count: int
    lanes: int
    table: Buffer
    """The plan's numbers, in the type that is computed with."""

    @property
    def dtype(self) -> DataType:
        """The type that is computed with."""
        return self.table.dtype

    def buffer(self, name: str) -> Buffer:
        """One of the buffers."""
        return dense(name, self.dtype, (2, self.plan.size * self.count))

    @property
    def memory(self) -> tuple[Statement, ...]:
        """The statements that take memory."""
        shape = (2, self.plan.size * self.count)
        return tuple(Local(name, self.dtype, shape) for name in ("first", "second"))

    def at(self, buffer: Buffer, place: Size) -> Complex:
        """An element of each signal, for the vector loop of `each`."""
        index = place * self.count + symbol(LANE)
        return Complex(Load(buffer, (0, index)), Load(buffer, (1, index)))

    def put(self, buffer: Buffer, place: Size, value: Complex) -> tuple[Statement, ...]:
        """Store an element of each signal."""
        index = place * self.count + symbol(LANE)
        return tuple(Store(buffer, (part, index), item) for part, item in enumerate(value.parts))

    def each(self, places: Size, body: Sequence[Statement]) -> Loop:
        """The body for places of all signals."""
        return Loop(PLACE, places, (Loop(LANE, self.count, tuple(body), Kind.VECTOR),))

    def number(self, index: Size) -> Complex:
        """A number of the table."""
        return Complex(Load(self.table, (index, 0)), Load(self.table, (index, 1)))


def transformed(
    block: Block, signal: Callable[[Size], Complex]
) -> tuple[list[Statement], Callable[[Size], Complex]]:
    """Statements that transform signals, and how the spectrum is read afterwards.

    `signal` gives elements of all signals of a block for a place; both are meant for `each`.
    """
    plan, place = block.plan, symbol(PLACE)
    first, second = block.buffer("first"), block.buffer("second")
    if not plan.is_chirped:
        body, result = _passes(block, first, second)
        fill = block.each(plan.length, block.put(first, place, signal(place)))
        return [*block.memory, fill, *body], lambda at: block.at(result, at)
    chirp, spectrum = plan.passes, plan.passes + plan.length
    nothing = Complex(constant(0, block.dtype), constant(0, block.dtype))
    bent = signal(place) * block.number(place + chirp)
    body, middle = _passes(block, first, second)
    other = second if middle is first else first
    answer = block.at(middle, place) * block.number(place + spectrum)
    back, result = _passes(block, other, middle)
    statements = [
        *block.memory,
        block.each(plan.length, block.put(first, place, bent)),
        block.each(plan.size - plan.length, block.put(first, place + plan.length, nothing)),
        *body,
        block.each(plan.size, block.put(other, place, answer.swapped)),
        *back,
    ]
    return statements, lambda at: block.at(result, at).swapped * block.number(at + chirp)


def _passes(block: Block, source: Buffer, target: Buffer) -> tuple[list[Statement], Buffer]:
    """A pass for each factor, from one buffer to the other and back; and where the result is."""
    statements: list[Statement] = []
    length, apart, first = block.plan.size, block.count, 0
    for radix in block.plan.factors:
        statements += _pass(block, source, target, radix, length // radix, apart, first)
        first += (length // radix) * (radix - 1)
        length, apart = length // radix, apart * radix
        source, target = target, source
    return statements, source


def _pass(
    block: Block, source: Buffer, target: Buffer, radix: int, places: int, apart: int, first: int
) -> tuple[Statement, ...]:
    """Small transforms of elements that lie `places * apart` apart, of which `apart` are alike.

    Elements are held in registers, since nothing may be read again behind a store.
    """
    lanes, place, lane = block.lanes, symbol(PLACE), symbol(LANE)
    at = symbol("%u") * lanes + lane
    inner: list[Statement] = []
    for item in range(radix):
        index = (place + item * places) * apart + at
        inner += [
            Update(name, "set", Load(source, (part, index)), (item, lane))
            for part, name in enumerate(HELD)
        ]
    made = small_transform([_held(block, HELD, (item, lane)) for item in range(radix)])
    if places > 1:
        turned = (value * _held(block, TURN, (item,)) for item, value in enumerate(made[1:]))
        made = [made[0], *turned]
    for item, result in enumerate(made):
        index = (place * radix + item) * apart + at
        inner += [Store(target, (part, index), value) for part, value in enumerate(result.parts)]
    body = tuple(inner)
    if apart % lanes:
        body = (Guard(at, apart, body),)
    over = Loop("%u", -(-apart // lanes), (Loop(LANE, lanes, body, Kind.VECTOR),))
    turns = [
        Update(name, "set", Load(block.table, (place * (radix - 1) + first + item, part)), (item,))
        for part, name in enumerate(TURN)
        for item in range(radix - 1)
    ]
    return (
        *(Register(name, block.dtype, (radix - 1,), 0) for name in TURN),
        *(Register(name, block.dtype, (radix, lanes), 0, lanes=True) for name in HELD),
        Loop(PLACE, places, (*turns, over) if places > 1 else (over,)),
    )


def _held(block: Block, names: tuple[str, str], indices: tuple[Size, ...]) -> Complex:
    """A number that two registers hold."""
    return Complex(*(Read(name, block.dtype, indices) for name in names))


def small_transform(values: Sequence[Complex]) -> list[Complex]:
    """The transform of a few numbers, written out."""
    if len(values) == 2:
        return [values[0] + values[1], values[0] - values[1]]
    if len(values) == 4:
        even, odd = values[0] + values[2], values[1] + values[3]
        left, right = values[0] - values[2], (values[1] - values[3]).turned
        return [even + odd, left + right, even - odd, left - right]
    return _odd_transform(values)


def _odd_transform(values: Sequence[Complex]) -> list[Complex]:
    """A transform of an odd length; elements that mirror each other share their cosines."""
    length = len(values)
    half = range(1, length // 2 + 1)
    sums = [values[item] + values[length - item] for item in half]
    differences = [(values[item] - values[length - item]).turned for item in half]
    first = values[0]
    for pair in sums:
        first = first + pair
    front, back = [], []
    for row in half:
        even, odd = values[0], None
        for item in half:
            angle = 2 * math.pi * (row * item % length) / length
            even = even + sums[item - 1].scaled(math.cos(angle))
            more = differences[item - 1].scaled(math.sin(angle))
            odd = more if odd is None else odd + more
        assert odd is not None
        front.append(even + odd)
        back.append(even - odd)
    return [first, *front, *reversed(back)]
