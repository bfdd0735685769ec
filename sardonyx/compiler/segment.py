"""A part of a program that is one native call: its frame, its plans for given sizes, its runs."""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sardonyx.compiler.build import Step
from sardonyx.compiler.emit_engine import Engine
from sardonyx.compiler.emit_program import EmittedCall
from sardonyx.compiler.forms import Form, Source
from sardonyx.compiler.kernels.reader import Call, Packed, Place, Scratch, Status, aligned
from sardonyx.compiler.plan import ALIGNMENT, Lifetime, place
from sardonyx.compiler.threads import Team
from sardonyx.dims import Expression, Size
from sardonyx.errors import EvaluationError
from sardonyx.loops import Kernel, kernel_text

SMALLEST_SHARED_WORK = 1 << 17
"""Elementary operations below which waking threads costs more than it saves."""
PIECES_EACH = 8
"""Pieces of a call's tasks for each thread, so that a thread that is held up holds up little."""
MOST_PLANS = 1024
"""Plans that are remembered; when there are more, all are made anew as they are needed."""
_RUN = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 5, ctypes.c_int64)
_NOTHING, _ARENA, _FIRST_INPUT = 0, 1, 2


class Kernels:
    """The kernels of a program, equal ones once."""

    def __init__(self) -> None:
        self.unique: list[Kernel] = []
        self._numbers: dict[str, int] = {}

    def number(self, kernel: Kernel) -> int:
        """The number of a kernel."""
        key = kernel_text(kernel)
        if key not in self._numbers:
            self._numbers[key] = len(self.unique)
            self.unique.append(kernel)
        return self._numbers[key]


@dataclass(eq=False)
class _Arena:
    """Memory for one run at a time, and the table of addresses that goes with it."""

    memory: NDArray[np.uint8]
    size: int
    base: int
    addresses: NDArray[np.int64]
    table: int


@dataclass(eq=False)
class Plan:
    """What a run needs to know once all sizes are numbers."""

    offsets: NDArray[np.int64]
    offsets_address: int
    arena_bytes: int
    shared: bool
    """Whether workers may help."""
    outputs: list[tuple[tuple[int, ...], np.dtype[Any]]]


class Segment:
    """Calls of kernels that run as one native function."""

    def __init__(self, step: Step, emitted: list[EmittedCall]) -> None:
        self.calls = step.calls
        self.inputs = tuple(step.inputs)
        self.outputs = tuple(step.outputs)
        self.emitted = emitted
        self.slots = emitted[-1].start + emitted[-1].slots if emitted else 0
        self._reports = any(
            isinstance(place, Status) for call in self.calls for place in call.places
        )
        self._constants: dict[Place, NDArray[Any]] = {}
        self._lifetimes = self._live()
        self._sources = np.array(list(self._slot_sources()), np.int64)
        self._sources_address = self._sources.ctypes.data
        self._by_shapes: dict[tuple[Any, ...], Plan] = {}
        self._by_sizes: dict[tuple[int, ...], Plan] = {}
        self._symbols = sorted(self._names())
        self._free: list[_Arena] = []
        self._native: Any = None

    @classmethod
    def of(cls, step: Step, kernels: Kernels) -> "Segment":
        """Number the kernels of a step and lay out its frame."""
        emitted, start = [], 0
        for call in step.calls:
            slots = len(call.kernel.memories) + len(call.kernel.parameters) + 2
            emitted.append(EmittedCall(kernels.number(call.kernel), start, slots))
            start += slots
        return cls(step, emitted)

    def link(self, engine: Engine, name: str) -> None:
        """Take the native function from an engine."""
        self._engine = engine
        self._native = _RUN(engine.address(name))

    def _live(self) -> dict[Place, Lifetime]:
        """From which call to which each place in the arena is needed."""
        found: dict[Place, Lifetime] = {}
        for number, call in enumerate(self.calls):
            for item in call.places:
                inside = isinstance(item, Scratch) or (
                    isinstance(item, Form) and not isinstance(item, Source)
                    and item not in self.inputs and item not in self.outputs
                )  # fmt: skip
                if inside:
                    first = found[item].first if item in found else number
                    found[item] = Lifetime(first, number)
        return found

    def _slot_sources(self) -> Any:
        """For each slot, which address its value is relative to."""
        for call in self.calls:
            for item in call.places:
                if item in self.inputs:
                    yield _FIRST_INPUT + self.inputs.index(item)
                elif item in self.outputs:
                    yield _FIRST_INPUT + len(self.inputs) + self.outputs.index(item)
                elif isinstance(item, Status) or item in self._lifetimes:
                    yield _ARENA
                else:
                    yield _NOTHING
            yield from [_NOTHING] * (len(call.kernel.parameters) + 2)

    def _names(self) -> set[str]:
        names = {name for call in self.calls for name in call.kernel.parameters}
        shapes = [form.shape for form in self.outputs]
        shapes += [item.shape for item in self._lifetimes if isinstance(item, Form | Scratch)]
        for size in (size for shape in shapes for size in shape):
            names |= size.symbols if isinstance(size, Expression) else set()
        return names

    def _constant(self, item: Place) -> int:
        """The address of a constant, which stays where it is."""
        if item not in self._constants:
            array = item.array if isinstance(item, Packed) else item.constant  # type: ignore[union-attr]
            assert array is not None
            fits = array.flags.c_contiguous and array.ctypes.data % array.itemsize == 0
            self._constants[item] = array if fits else aligned(array)
        return self._constants[item].ctypes.data

    def _plan(self, sizes: dict[str, int], threads: int) -> Plan:
        blocks = list(self._lifetimes)
        lengths = [_bytes(item.shape, item.dtype.numpy, sizes) for item in blocks]  # type: ignore[union-attr]
        offsets, total = place(lengths, [self._lifetimes[item] for item in blocks])
        begin = -(-(self.slots * 8 + 8) // ALIGNMENT) * ALIGNMENT
        where = {item: begin + offset for item, offset in zip(blocks, offsets, strict=True)}
        values: list[int] = []
        shares = [_shares(call, sizes, threads) for call in self.calls]
        for call, share in zip(self.calls, shares, strict=True):
            for item in call.places:
                if isinstance(item, Status):
                    values.append(self.slots * 8)
                elif item in where:
                    values.append(where[item])
                elif item in self.inputs or item in self.outputs:
                    values.append(0)
                else:
                    values.append(self._constant(item))
            values += [sizes[name] for name in call.kernel.parameters]
            values += share
        shared = any(pieces > 1 for _, pieces in shares)
        table = np.array(values, np.int64)
        outputs = [
            (tuple(_number(size, sizes) for size in form.shape), form.dtype.numpy)
            for form in self.outputs
        ]
        return Plan(table, table.ctypes.data, begin + total + ALIGNMENT, shared, outputs)

    def run(self, arrays: Sequence[NDArray[Any]], sizes: dict[str, int], team: Team) -> list[Any]:
        """Run on arrays, with every name of a size known."""
        key = tuple(sizes[name] for name in self._symbols)
        plan = self._by_sizes.get(key)
        if len(self._by_shapes) >= MOST_PLANS:
            self._by_shapes.clear()
            self._by_sizes.clear()
        if plan is None:
            plan = self._by_sizes[key] = self._plan(sizes, team.threads)
        self._by_shapes[_shapes(arrays)] = plan
        return self._go(plan, [np.ascontiguousarray(array) for array in arrays], team)

    def run_again(self, arrays: Sequence[Any], team: Team) -> list[Any] | None:
        """Run on arrays of types and shapes that were there before; None where they were not."""
        for array in arrays:
            if type(array) is not np.ndarray or not array.flags.c_contiguous:
                return None
        plan = self._by_shapes.get(_shapes(arrays))
        return None if plan is None else self._go(plan, arrays, team)

    def _go(self, plan: Plan, arrays: Sequence[NDArray[Any]], team: Team) -> list[Any]:
        results = [np.empty(shape, dtype) for shape, dtype in plan.outputs]
        arena = self._take(plan.arena_bytes)
        addresses = arena.addresses
        at = _FIRST_INPUT
        for array in arrays:
            addresses[at] = array.__array_interface__["data"][0]
            at += 1
        for array in results:
            addresses[at] = array.__array_interface__["data"][0]
            at += 1
        if plan.shared:
            team.gather()
        self._native(
            team.address,
            arena.base,
            arena.table,
            self._sources_address,
            plan.offsets_address,
            self.slots,
        )
        if self._reports:
            self._check(arena)
        self._free.append(arena)
        return results

    def _take(self, size: int) -> _Arena:
        """An arena that no other run uses; one that is too small is let go."""
        try:
            arena = self._free.pop()
        except IndexError:
            return self._arena(size)
        return arena if arena.size >= size else self._arena(size)

    def _arena(self, size: int) -> _Arena:
        memory = np.empty(size + ALIGNMENT, np.uint8)
        memory[: self.slots * 8 + 8 + ALIGNMENT] = 0
        base = memory.ctypes.data + (-memory.ctypes.data % ALIGNMENT)
        addresses = np.zeros(_FIRST_INPUT + len(self.inputs) + len(self.outputs), np.int64)
        addresses[_ARENA] = base
        return _Arena(memory, size, base, addresses, addresses.ctypes.data)

    def _check(self, arena: _Arena) -> None:
        start = arena.base - arena.memory.ctypes.data + self.slots * 8
        status = arena.memory[start : start + 8].view(np.int64)
        if status[0]:
            raise EvaluationError(
                "an index is out of range", hint="check the values of inputs that select elements"
            )


def _shapes(arrays: Sequence[NDArray[Any]]) -> tuple[Any, ...]:
    return tuple([(array.shape, array.dtype) for array in arrays])


def _number(size: Size, sizes: dict[str, int]) -> int:
    value = size.substitute(sizes) if isinstance(size, Expression) else size
    if not isinstance(value, int):
        raise EvaluationError(f"the size {size} cannot be computed from what was fed")
    return max(value, 0)


def _bytes(shape: tuple[Size, ...], dtype: np.dtype[Any], sizes: dict[str, int]) -> int:
    return int(np.prod([_number(size, sizes) for size in shape], dtype=object)) * dtype.itemsize


def _shares(call: Call, sizes: dict[str, int], threads: int) -> tuple[int, int]:
    """How many tasks a call has, and into how many pieces threads cut them."""
    loop = call.kernel.parallel
    tasks = 1 if loop is None else _number(loop.extent, sizes)
    alone = tasks < 2 or _number(call.work, sizes) < SMALLEST_SHARED_WORK
    return tasks, 1 if alone or threads == 1 else min(tasks, threads * PIECES_EACH)
