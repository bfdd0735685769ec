"""Fourier transforms along an axis and of frames of a signal, as routines."""

from collections.abc import Callable, Sequence

import numpy as np

from sardonyx.compiler.forms import (
    Form,
    Memories,
    NotLowered,
    Room,
    Routine,
    constant,
    reshape,
    results,
)
from sardonyx.compiler.kernels.fourier import (
    LANE,
    PLACE,
    Block,
    Complex,
    Plan,
    plan_transform,
    roots,
    transformed,
)
from sardonyx.compiler.kernels.nest import parallel_kernel
from sardonyx.compiler.lowerings.request import Lowerings, Request
from sardonyx.dims import Size, ceil_divide, minimum, product, symbol
from sardonyx.loops.build import constant as number
from sardonyx.loops.nodes import (
    Binary,
    Buffer,
    Guard,
    Kernel,
    Load,
    Pick,
    Select,
    Statement,
    Store,
    Unary,
    Value,
    Whole,
    dtype_of,
)
from sardonyx.record import entity

LONGEST = 1 << 18
"""Elements of a signal beyond which the reference takes over."""
LARGEST_BLOCK = 1 << 16
"""Elements of all signals that a task takes together, unless one alone has more."""
OUTER = symbol("%o")

Element = Callable[[Memories, Size, Size], Complex]
"""An element in memory, for the number of a signal and a place; 0 beyond the signal's end."""
Index = Callable[[Size, Size], tuple[Size, ...]]
"""Where a result lies, for the number of a signal and a place in its spectrum, but for its part."""


@entity
class _Signals:
    """Signals to be transformed: `outer` times `across` of them."""

    arguments: tuple[Form, ...]
    element: Element
    outer: Size
    across: Size
    length: int
    is_real: bool
    inverse: bool = False
    to_real: bool = False
    """Whether a signal is one half of the spectrum of real numbers, which are the result."""

    @property
    def is_halved(self) -> bool:
        """Whether a transform of half the length does, with real numbers taken in pairs."""
        return self.is_real and not self.inverse and self.length % 2 == 0

    def plan(self) -> Plan:
        """How they are transformed."""
        return plan_transform(self.length // 2 if self.is_halved else self.length)

    def read(self, memories: Memories, signal: Size, place: Size) -> Complex:
        """What is transformed at a place."""
        if self.is_halved:
            pair = (self.element(memories, signal, place * 2 + item) for item in (0, 1))
            return Complex(*(item.real for item in pair))
        if not self.to_real:
            item = self.element(memories, signal, place)
            return item.swapped if self.inverse else item
        item = self.element(memories, signal, minimum(place, self.length - place))
        ends = Binary("eq", Whole(place * 2 % self.length), Whole(0))
        behind = Binary("lt", Whole(self.length), Whole(place * 2))
        mirrored = Select(behind, Unary("neg", item.imaginary), item.imaginary)
        return Complex(item.real, Select(ends, number(0, dtype_of(mirrored)), mirrored)).swapped

    def write(self, spectrum: Callable[[Size], Complex], turn: Complex, place: Size) -> Complex:
        """What the result is at a place; where it is halved, `turn` is that of the place."""
        if self.inverse:
            return spectrum(place).swapped.scaled(1 / self.length)
        if not self.is_halved:
            return spectrum(place)
        half = self.length // 2
        here, there = spectrum(place % half), spectrum((self.length - place) % half).conjugate
        return (here + there).scaled(0.5) + (here - there).turned.scaled(0.5) * turn


def _spectra(signals: _Signals, room: Room, rows: int, index: Index) -> Form:
    """The first rows of all signals' transforms."""
    plan = signals.plan()
    turns = roots(np.arange(rows), signals.length)
    table = constant(np.concatenate([plan.table, turns]).astype(room.dtype.numpy))
    parts = 1 if signals.to_real else 2

    def write(memories: Memories) -> Sequence[Kernel]:
        (*_, numbers), (result,) = memories.arguments, memories.results
        count = _together(signals.across, plan.size, memories.lanes)
        block = Block(plan, count, memories.lanes, numbers)
        signal = symbol("%t") * count + symbol(LANE)
        place = symbol(PLACE)
        body, spectrum = transformed(block, lambda at: signals.read(memories, signal, at))
        made = signals.write(spectrum, block.number(place + len(plan.table)), place)
        stores: tuple[Statement, ...] = tuple(
            Store(result, (*index(signal, place), part), value)
            for part, value in enumerate(made.parts[:parts])
        )
        if signals.across != count:
            stores = (Guard(signal, signals.across, stores),)
        outer = [("%o", signals.outer), ("%t", ceil_divide(signals.across, count))]
        return [parallel_kernel(outer, [*body, block.each(rows, stores)])]

    work = product(room.shape) * 8 * max(1, plan.size.bit_length())
    return results(Routine((*signals.arguments, table), (room,), write, work))[0]


def _together(across: Size, size: int, lanes: int) -> int:
    """How many signals a task takes: as many as there are lanes, if there are and memory allows."""
    most = min(lanes, max(1, LARGEST_BLOCK // size))
    return max(1, min(across, most)) if isinstance(across, int) else most


def _picked(buffer: Buffer, index: tuple[Size, ...], parts: int) -> Complex:
    """A number of one or two parts along the last axis; 0 outside of the buffer."""
    found: list[Value] = [Pick(buffer, tuple(map(Whole, (*index, part)))) for part in range(parts)]
    return Complex(found[0], found[1] if parts > 1 else number(0, buffer.dtype))


def _parts(x: Form) -> int:
    """1 for real numbers, 2 for complex ones."""
    parts = x.shape[-1]
    if parts not in (1, 2) or not isinstance(parts, int):
        raise NotLowered(f"numbers of {parts} parts have no native form")
    return parts


def _length(size: Size) -> int:
    """How long a transform is, which kernels are made for."""
    if not isinstance(size, int):
        raise NotLowered("how long a signal is is only known later")
    if not 0 < size <= LONGEST:
        raise NotLowered(f"transforms of {size} elements have no native form")
    return size


def fourier(
    request: Request, x: Form, dft_length: Form | None = None, axis: Form | None = None, *,
    inverse: int, onesided: int,
) -> Form:  # fmt: skip
    """The discrete Fourier transform along an axis, or its inverse."""
    rank = len(x.shape)
    at = -2 if axis is None else request.integers(2, "the axis", count=1)[0]
    if not -rank <= at < rank or at % rank == rank - 1:
        raise NotLowered(f"axis {at} holds no signal")
    at %= rank
    size, parts, to_real = x.shape[at], _parts(x), bool(inverse and onesided)
    wanted: Size = 2 * (size - 1) if to_real else size
    if dft_length is not None:
        (wanted,) = request.sizes(1, "the length")
    length = _length(wanted)
    before, behind = product(x.shape[:at]), product(x.shape[at + 1 : -1])
    rows = length // 2 + 1 if onesided and not inverse else length
    flat = reshape(x, (before, size, behind, parts))
    alone = behind == 1

    def index(signal: Size, place: Size) -> tuple[Size, ...]:
        return (signal, place, 0) if alone else (OUTER, place, signal)

    def element(memories: Memories, signal: Size, place: Size) -> Complex:
        return _picked(memories.arguments[0], index(signal, place), parts)

    signals = _Signals(
        (flat,), element, 1 if alone else before, before if alone else behind, length,
        parts == 1, bool(inverse), to_real,
    )  # fmt: skip
    made = 1 if to_real else 2
    spectra = _spectra(signals, Room((before, rows, behind, made), x.dtype), rows, index)
    return reshape(spectra, (*x.shape[:at], rows, *x.shape[at + 1 : -1], made))


def framed_fourier(
    request: Request, signal: Form, frame_step: Form, window: Form | None = None,
    frame_length: Form | None = None, *, onesided: int,
) -> Form:  # fmt: skip
    """The transforms of frames that are cut from a signal at equal steps, times a window."""
    batch, total, _ = signal.shape
    parts = _parts(signal)
    (step,) = request.sizes(1, "the step")
    if not isinstance(step, int) or step < 1:
        raise NotLowered(f"frames {step} apart have no native form")
    size = total if window is None else window.shape[0]
    if frame_length is not None:
        (size,) = request.sizes(3, "the length of a frame")
    length = _length(size)
    if window is not None:
        request.agree(window.shape[0], length)
    count = (total - length) // step + 1
    rows = length // 2 + 1 if onesided else length

    def element(memories: Memories, frame: Size, place: Size) -> Complex:
        found = _picked(memories.arguments[0], (OUTER, frame * step + place), parts)
        if window is None:
            return found
        weight = Load(memories.arguments[1], (place,))
        return Complex(*(Binary("mul", part, weight) for part in found.parts))

    arguments = (signal,) if window is None else (signal, window)
    signals = _Signals(arguments, element, batch, count, length, parts == 1)
    room = Room((batch, count, rows, 2), signal.dtype)
    return _spectra(signals, room, rows, lambda frame, place: (OUTER, frame, place))


LOWERINGS: Lowerings = {("", "DFT"): fourier, ("", "STFT"): framed_fourier}
