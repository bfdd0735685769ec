"""A part of a program that is one native call: its plans for given sizes, and its runs."""

import ctypes
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sardonyx.compiler.address import address_of
from sardonyx.compiler.image import ARENA, FIRST_INPUT, STOP, SegmentImage, WaveImage
from sardonyx.compiler.interrupts import VARYING_WORK, Pace, Work, pace_of
from sardonyx.compiler.limits import check_bound
from sardonyx.compiler.plan import ALIGNMENT
from sardonyx.compiler.sizes import function
from sardonyx.compiler.stop import NEVER, Stop
from sardonyx.compiler.threads import Team
from sardonyx.compiler.watch import Watch
from sardonyx.dtypes import data_type
from sardonyx.errors import EvaluationError
from sardonyx.ops.work import WORK_LIMIT, require_work
from sardonyx.record import once, record

PIECES_EACH = 8
"""Pieces of a call's tasks for each thread, so that a thread that is held up holds up little."""
MOST_PLANS = 1024
"""Plans that are remembered; when there are more, all are made anew as they are needed."""
MOST_BYTES = 1 << 46
"""More than any machine has."""
Rooms = Mapping[int, NDArray[Any]]
"""Memory for outputs, by their numbers: in one piece, and apart from all that a run reads."""
NO_ROOMS: Rooms = {}
_RUN = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
_STOPPED = 2
"""What a run returns that was stopped."""
_OFFSETS, _SLOTS, _CALLS, _COUNT = 4, 5, 6, 7
"""Where a run's record has the address of the plan's offsets, the number of slots, the calls and
their number; `emit_program` tells the others."""


@dataclass(eq=False)
class _Arena:
    """Memory for one run at a time, and the tables of addresses that go with it."""

    memory: NDArray[np.uint8]
    size: int
    base: int
    addresses: NDArray[np.int64]
    record: NDArray[np.int64]
    record_address: int
    stop: Stop
    """What ends the run that uses it."""


@record
class _Part:
    """Calls that run one after another, several times where they take a batch in parts."""

    first: int
    end: int
    offsets: NDArray[np.int64]
    times: int = 1
    step: NDArray[np.int64] | None = None
    """How much further offsets lie each time."""


@dataclass(eq=False)
class Plan:
    """What a run needs to know once all sizes are numbers."""

    offsets: NDArray[np.int64]
    offsets_address: int
    arena_bytes: int
    shared: bool
    """Whether workers may help."""
    outputs: list[tuple[tuple[int, ...], np.dtype[Any]]]
    parts: list[_Part]
    """Empty where all calls run once, one after another."""
    pace: Pace | None
    """None where no run takes long."""
    paces: list[Pace | None]
    """The same for each call."""
    quick: bool
    """Whether a run is one native call that never takes long."""

    def turns(self) -> Iterator[tuple[NDArray[np.int64], int, int]]:
        """Offsets, and the calls from where to where that run with them."""
        for part in self.parts:
            offsets = part.offsets
            for turn in range(part.times):
                if turn and part.step is not None:
                    offsets = offsets + part.step
                yield offsets, part.first, part.end


@record
class Native:
    """Addresses of what runs a segment and of a program's kernels, and who shares the work."""

    run: int
    kernels: tuple[int, ...]
    team: Team
    describe: Callable[[str], str] = str
    """A kernel in words, by its name."""
    work_limit: int = WORK_LIMIT


class Segment:
    """Calls of kernels that run as one native function."""

    def __init__(self, image: SegmentImage, constants: Sequence[Any], native: Native) -> None:
        self.image = image
        self._native = _RUN(native.run)
        self._team = native.team
        self._work_limit = native.work_limit
        self._describe = native.describe
        self._dtypes = [data_type(number).numpy for number in image.dtypes]
        self._constants = [constants[number] for number in image.constants]
        self._bases = np.array(image.bases, np.int64)
        if max(image.offsets, default=0) > MOST_BYTES:
            raise EvaluationError(
                f"results would take {max(image.offsets)} bytes or more", hint="check the model"
            )
        self._offsets = np.array(image.offsets, np.int64)
        self._positions = np.array(image.positions, np.int64)
        self._chosen = np.array(image.chosen, np.int64)
        rows = [(native.kernels[kernel], start, last) for kernel, start, last in image.calls]
        self._calls = np.array(rows, np.int64)
        self._record = [
            native.team.address, 0, 0, self._bases.ctypes.data, 0, len(image.bases),
            self._calls.ctypes.data, len(image.calls),
        ]  # fmt: skip
        self._by_shapes: dict[tuple[Any, ...], Plan] = {}
        self._by_sizes: dict[tuple[int, ...], Plan] = {}
        self._free: list[_Arena] = []

    @once
    def _compute(self) -> Callable[..., Any]:
        return function(self.image.source)

    def _pieces(self, tasks: int, stepwise: bool) -> int:
        """Into how many pieces threads cut a call's tasks, or those of each of its steps."""
        threads = self._team.threads
        each = 1 if stepwise else PIECES_EACH
        return min(tasks, threads * each) if threads > 1 else 1

    def _plan(self, sizes: tuple[int, ...]) -> Plan:
        if max(sizes, default=0) > self.image.limit:
            check_bound(self.image.bound, sizes, self.image.sizes)
        values, arena_bytes, shapes, works = self._compute(*sizes, self._pieces)
        whole = self._work(works)
        needed = arena_bytes + sum(
            math.prod(max(size, 1) for size in shape) * dtype.itemsize
            for shape, dtype in zip(shapes, self._dtypes, strict=True)
        )
        if needed > MOST_BYTES:
            raise EvaluationError(
                f"results would take more than {needed} bytes", hint="feed smaller shapes"
            )
        offsets = self._filled(values)
        outputs = list(zip(shapes, self._dtypes, strict=True))
        shared = bool(self._calls.size) and int(offsets[self._calls[:, 2] + 1].max()) > 1
        parts, more = self._parts(sizes, offsets, arena_bytes)
        room = arena_bytes + more + ALIGNMENT
        pace, *paces = map(pace_of, (whole, *works))
        quick = pace is None and not parts
        return Plan(offsets, offsets.ctypes.data, room, shared, outputs, parts, pace, paces, quick)

    def _work(self, works: Sequence[Work]) -> Work:
        """What all calls together do; an error where that is too much."""
        each = [work for work, _, _ in works]
        if sum(each) > self._work_limit:
            name = self.image.names[each.index(max(each))]
            most = f"; {max(each)} of them are in {self._describe(name)}"
            require_work("a run", sum(each), self._work_limit, most)
        varies = sum(most for _, most, varies in works if varies) >= VARYING_WORK
        return sum(each), sum(most for _, most, _ in works), varies

    def _filled(self, values: Sequence[int]) -> NDArray[np.int64]:
        """The frame's offsets, with what a plan found."""
        offsets = self._offsets.copy()
        if values:
            offsets[self._positions] = np.array(values, np.int64)[self._chosen]
        return offsets

    def _parts(
        self, sizes: tuple[int, ...], offsets: NDArray[np.int64], arena_bytes: int
    ) -> tuple[list[_Part], int]:
        """Waves for batches that are larger than they take, and what runs once between them.

        What only a wave uses lies behind the arena of the whole batch, in so many bytes.
        """
        parts: list[_Part] = []
        more = at = 0
        for wave in self.image.waves:
            count = sizes[wave.symbol]
            if count <= wave.images:
                continue
            if at < wave.first:
                parts.append(_Part(at, wave.first, offsets))
            at = wave.end
            each = -(-count // -(-count // wave.images))
            step = np.zeros_like(offsets)
            step[list(wave.moving)] = np.array(wave.strides, np.int64) * each
            made, room = self._some(wave, sizes, each, offsets, arena_bytes)
            parts.append(_Part(wave.first, wave.end, made, count // each, step))
            if count % each:
                rest, _ = self._some(wave, sizes, count % each, offsets, arena_bytes)
                rest += step * (count // each)
                parts.append(_Part(wave.first, wave.end, rest))
            more = max(more, room)
        if parts and at < len(self.image.calls):
            parts.append(_Part(at, len(self.image.calls), offsets))
        return parts, more

    def _some(
        self, wave: WaveImage, sizes: tuple[int, ...], images: int,
        offsets: NDArray[np.int64], arena_bytes: int,
    ) -> tuple[NDArray[np.int64], int]:  # fmt: skip
        """The frame of a wave's first images, and the bytes behind the arena that it needs."""
        fewer = (*sizes[: wave.symbol], images, *sizes[wave.symbol + 1 :])
        values, room, *_ = self._compute(*fewer, self._pieces)
        made = self._filled(values)
        made[list(wave.inner)] += arena_bytes
        made[list(wave.moving)] = offsets[list(wave.moving)]
        return made, room

    def run(
        self, arrays: Sequence[NDArray[Any]], sizes: Sequence[int | None],
        watch: Watch | None = None, rooms: Rooms = NO_ROOMS,
    ) -> list[Any]:  # fmt: skip
        """Run on arrays, with every size known; results lie in `rooms` where those fit."""
        key = tuple([sizes[number] for number in self.image.symbols])
        plan = self._by_sizes.get(key)  # type: ignore[arg-type]
        if len(self._by_shapes) >= MOST_PLANS:
            self._by_shapes.clear()
            self._by_sizes.clear()
        if plan is None:
            plan = self._by_sizes[key] = self._plan(key)  # type: ignore[index,arg-type]
        self._by_shapes[tuple([(array.shape, array.dtype) for array in arrays])] = plan
        return self._go(plan, [np.ascontiguousarray(array) for array in arrays], watch, rooms)

    def run_again(
        self, arrays: Sequence[Any], watch: Watch | None = None, rooms: Rooms = NO_ROOMS
    ) -> list[Any] | None:
        """Run on arrays of types and shapes that were there before; None where they were not."""
        shapes = []
        for array in arrays:
            if type(array) is not np.ndarray or not array.flags.c_contiguous:
                return None
            shapes.append((array.shape, array.dtype))
        plan = self._by_shapes.get(tuple(shapes))
        return None if plan is None else self._go(plan, arrays, watch, rooms)

    def _go(
        self, plan: Plan, arrays: Sequence[NDArray[Any]], watch: Watch | None, rooms: Rooms
    ) -> list[Any]:
        results = [make_room(shape, dtype) for shape, dtype in plan.outputs] if not rooms else [
            _given_room(rooms.get(number), shape, dtype)
            for number, (shape, dtype) in zip(self.image.outputs, plan.outputs, strict=True)
        ]  # fmt: skip
        arena = self._take(plan.arena_bytes)
        addresses = arena.addresses
        at = FIRST_INPUT
        for array in (*arrays, *results):
            addresses[at] = address_of(array)
            at += 1
        if plan.quick and watch is None and arena.stop is NEVER:
            arena.record[_OFFSETS] = plan.offsets_address
            if plan.shared:
                self._team.gather()
            if self._native(arena.record_address):
                raise self._failure(arena)
            if self.image.reports:
                self._check(arena)
        else:
            self._perform(arena, plan, watch, (arrays, results))
        self._free.append(arena)
        return results

    def _perform(self, arena: _Arena, plan: Plan, watch: Watch | None, used: Any) -> None:
        """Run a plan whose addresses are in their place; an error where it does not end well."""
        stop = NEVER if watch is None else watch.stop
        if arena.stop is not stop:
            arena.stop = stop
            arena.addresses[STOP] = stop.address
        arena.record[_OFFSETS] = plan.offsets_address
        if plan.shared:
            self._team.gather()
        if plan.parts:
            failed = self._run_parts(arena, plan, watch, used)
        elif watch is not None and watch.one_by_one:
            failed = self._run_each(arena, plan, watch, (0, len(self.image.calls)), used)
        else:
            failed = self._call(arena, plan.pace, (plan, used))
        if failed == _STOPPED and watch is not None:
            watch.checkpoint.check()
        if failed:
            raise self._failure(arena)
        if self.image.reports:
            self._check(arena)

    def _failure(self, arena: _Arena) -> EvaluationError:
        """Why a call did not come to its end."""
        return EvaluationError(
            "there is no memory for what kernels keep to themselves",
            hint="feed smaller shapes, or use fewer threads",
        )

    def _run_parts(self, arena: _Arena, plan: Plan, watch: Watch | None, used: Any) -> int:
        """Run a plan's parts one after another; not 0 where one failed."""
        record, row = arena.record, self._calls.strides[0]
        failed = 0
        try:
            for offsets, first, end in plan.turns():
                record[_OFFSETS] = offsets.ctypes.data
                if watch is not None and watch.one_by_one:
                    failed = self._run_each(arena, plan, watch, (first, end), used)
                else:
                    record[_CALLS] = self._record[_CALLS] + first * row
                    record[_COUNT] = end - first
                    failed = self._call(arena, plan.pace, (offsets, used))
                if failed:
                    break
        finally:
            record[_SLOTS:] = self._record[_SLOTS:]
        return failed

    def _call(self, arena: _Arena, pace: Pace | None, used: Any) -> int:
        """Run what the record says; 0, or why it did not come to its end."""
        if pace is None:
            return int(self._native(arena.record_address))
        if not pace.apart():
            return pace.call(self._native, arena.record_address)
        if arena.stop is NEVER:
            arena.stop = Stop()
            arena.addresses[STOP] = arena.stop.address
        kept = (self, arena, used)
        return pace.call_apart(self._native, arena.record_address, arena.stop, kept)

    def _run_each(
        self, arena: _Arena, plan: Plan, watch: Watch, calls: tuple[int, int], used: Any
    ) -> int:
        """Fill the frame, then run calls one by one, with somebody watching between them; not 0
        where one of them failed."""
        first, end = calls
        record, row = arena.record, self._calls.strides[0]
        try:
            record[_COUNT] = 0
            self._native(arena.record_address)
            record[_SLOTS], record[_COUNT] = 0, 1
            record[_CALLS] += first * row
            for number in range(first, end):
                with watch.during(self.image.names[number]):
                    failed = self._call(arena, plan.paces[number], (plan, used))
                if failed:
                    return int(failed)
                record[_CALLS] += row
            return 0
        finally:
            record[_SLOTS:] = self._record[_SLOTS:]

    def _take(self, size: int) -> _Arena:
        """An arena that no other run uses; one that is too small is let go."""
        try:
            arena = self._free.pop()
        except IndexError:
            return self._arena(size)
        return arena if arena.size >= size else self._arena(size)

    def _arena(self, size: int) -> _Arena:
        memory = make_room((size + ALIGNMENT,), np.dtype(np.uint8))
        memory[: len(self._bases) * 8 + 8 + ALIGNMENT] = 0
        base = memory.ctypes.data + (-memory.ctypes.data % ALIGNMENT)
        outside = len(self.image.inputs) + len(self.image.dtypes)
        constants = [array.ctypes.data for array in self._constants]
        addresses = np.array([0] * (FIRST_INPUT + outside) + constants, np.int64)
        addresses[ARENA] = base
        record = np.array(self._record, np.int64)
        record[1:3] = base, addresses.ctypes.data
        addresses[STOP] = NEVER.address
        return _Arena(memory, size, base, addresses, record, record.ctypes.data, NEVER)

    def _check(self, arena: _Arena) -> None:
        start = arena.base - arena.memory.ctypes.data + len(self._bases) * 8
        status = arena.memory[start : start + 8].view(np.int64)
        if status[0]:
            raise EvaluationError(
                "an index is out of range", hint="check the values of inputs that select elements"
            )


def _given_room(
    given: NDArray[Any] | None, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> NDArray[Any]:
    fits = given is not None and given.shape == shape and given.dtype == dtype
    return given if given is not None and fits else make_room(shape, dtype)


def make_room(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """An array of any content; an error where there is no memory for it."""
    try:
        return np.empty(shape, dtype)
    except MemoryError:
        size = math.prod(shape) * dtype.itemsize
        raise EvaluationError(
            f"there is no memory for {size} bytes", hint="feed smaller shapes"
        ) from None
