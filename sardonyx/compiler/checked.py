"""Segments that look at themselves while they run, for finding bugs of the compiler.

Every block lies in memory of its own, which is filled with a pattern before a run. A run is done
twice, with another pattern each time: where the results differ, something was read that nobody had
written, or was not written at all. Kernels that check their accesses note one that would leave its
memory, and end.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sardonyx.compiler.address import address_of
from sardonyx.compiler.image import FIRST_INPUT, FURTHER, SegmentImage
from sardonyx.compiler.segment import Native, Plan, Rooms, Segment, make_room
from sardonyx.compiler.watch import Watch
from sardonyx.errors import AccessError, EvaluationError

PATTERNS = 0xA5, 0xFF
"""Bytes that memory is filled with: small numbers below zero, then NaN, -1 and what is true."""
REPORT = "this is a bug of sardonyx: please report it with the model"


class CheckedSegment(Segment):
    """Calls of kernels, each run of which is looked at."""

    def __init__(
        self, image: SegmentImage, constants: Sequence[Any], native: Native,
        accesses: tuple[tuple[str, ...], ...], cuts: Mapping[int, tuple[int, int]],
    ) -> None:  # fmt: skip
        """`cuts` says by numbers of arrays which array has how much of one is used, and the axis.

        What lies behind that need not be written.
        """
        super().__init__(image, constants, native)
        self._accesses = accesses
        self._cuts = cuts

    def _go(
        self, plan: Plan, arrays: Sequence[NDArray[Any]], watch: Watch | None, rooms: Rooms
    ) -> list[Any]:
        first, *others = (self._once(pattern, plan, arrays, watch) for pattern in PATTERNS)
        for other in others:
            self._compare(first, other)
        for number, (result, made) in enumerate(zip(self.image.outputs, first, strict=False)):
            room = rooms.get(result)
            if room is not None and room.shape == made.shape and room.dtype == made.dtype:
                room[...] = made
                first[number] = room
        return first

    def _once(
        self, pattern: int, plan: Plan, arrays: Sequence[NDArray[Any]], watch: Watch | None
    ) -> list[Any]:
        """One run, in fresh memory that is filled with a pattern."""
        made = [make_room(shape, dtype) for shape, dtype in plan.outputs]
        for array in made:
            array.reshape(-1).view(np.uint8)[...] = pattern
        arena = self._take(plan.arena_bytes)
        behind = len(self._bases) * 8 + 8 + arena.base - arena.memory.ctypes.data
        arena.memory[behind:] = pattern
        outside = [*arrays, *made]
        begins = [address_of(array) for array in outside]
        ends = [begin + array.nbytes for begin, array in zip(begins, outside, strict=True)]
        arena.addresses[FIRST_INPUT : FIRST_INPUT + len(begins)] = begins
        further = FIRST_INPUT + len(begins) + len(self._constants)
        arena.addresses[further : further + len(ends)] = ends
        arena.addresses[-1] = pattern
        self._perform(arena, plan, watch, outside)
        self._free.append(arena)
        return made[: len(self.image.outputs)]

    def _arena(self, size: int) -> Any:
        """An arena whose table of addresses goes on with ends and a pattern."""
        arena = super()._arena(size)
        ends = [array.ctypes.data + array.nbytes for array in self._constants]
        known = len(arena.addresses) - FIRST_INPUT - len(ends)
        addresses = np.concatenate(
            [arena.addresses, np.zeros(known, np.int64), np.array([*ends, 0], np.int64)]
        )
        arena.record[2] = addresses.ctypes.data
        return replace(arena, addresses=addresses)

    def _failure(self, arena: Any) -> EvaluationError:
        """What a kernel noted of an access outside of its memory, if that is why it ended."""
        start = arena.base - arena.memory.ctypes.data
        frame = arena.memory[start : start + len(self._bases) * 8].view(np.int64)
        ends = [*[first for _, first, _ in self.image.calls][1:], len(self._bases)]
        for (kernel, _, _), name, end in zip(self.image.calls, self.image.names, ends, strict=True):
            access, element, _ = frame[end - FURTHER : end]
            if access:
                what = self._accesses[kernel][access - 1]
                return AccessError(
                    f"kernel{kernel} of '{name}' {what}, at element {element}, which lies "
                    "outside of that memory",
                    hint=REPORT,
                )
        return super()._failure(arena)

    def _used(self, results: Sequence[NDArray[Any]]) -> Iterator[NDArray[Any]]:
        """What may be used of each result."""
        known = dict(zip(self.image.outputs, results, strict=True))
        for number, result in known.items():
            count, axis = self._cuts.get(number, (number, 0))
            if count == number:
                yield result
            else:
                used = int(known[count][0]) if count in known else 0
                yield np.ascontiguousarray(result[(slice(None),) * axis + (slice(used),)])

    def _compare(self, left: Sequence[NDArray[Any]], right: Sequence[NDArray[Any]]) -> None:
        """An error where results of two runs are not the same bits."""
        pairs = zip(self._used(left), self._used(right), strict=True)
        for number, (one, other) in enumerate(pairs):
            width = one.dtype.itemsize
            rows = (item.reshape(-1).view(np.uint8).reshape(-1, width) for item in (one, other))
            if one.shape != other.shape:
                raise AccessError(
                    f"the size of output {number} of a native call depends on memory that "
                    "nobody wrote",
                    hint=REPORT,
                )
            differ = np.flatnonzero(np.any(np.not_equal(*rows), axis=1))
            if differ.size:
                place = tuple(map(int, np.unravel_index(differ[0], one.shape)))
                raise AccessError(
                    f"{differ.size} of {one.size} elements of output {number} of a native call "
                    f"depend on memory that nobody wrote, the first at {place}",
                    hint=REPORT,
                )
