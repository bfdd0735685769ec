"""A step as data: its frame, and the source of the plan that fills it for given sizes."""

import math
from collections.abc import Iterator
from typing import Any

from sardonyx.compiler.bounds import Bounds
from sardonyx.compiler.build import Step
from sardonyx.compiler.derive import Definitions
from sardonyx.compiler.estimate import estimate
from sardonyx.compiler.forms import Form, Source
from sardonyx.compiler.image import (
    ARENA,
    FIRST_INPUT,
    FURTHER,
    NOTHING,
    STOP,
    SegmentImage,
    WaveImage,
)
from sardonyx.compiler.kernels.reader import Call, Packed, Place, Scratch, Status
from sardonyx.compiler.numbering import Numbering
from sardonyx.compiler.plan import ALIGNMENT, Lifetime, arrange
from sardonyx.compiler.sizes import Code
from sardonyx.compiler.waves import Wave
from sardonyx.dims import Size, product
from sardonyx.loops.nodes import substitute, symbols
from sardonyx.record import record

SMALLEST_SHARED_WORK = 1 << 17
"""Elementary operations below which waking threads costs more than it saves."""
_PATTERN = -1
"""In the place of a base: what a checked run fills memory with."""
TYPICAL_SIZE = 128
"""What a size that is not known is taken for where the arena's arrangement is chosen."""


@record
class _Slot:
    """Which address a slot is relative to, and the number or name of what is added."""

    base: int
    offset: str
    end: bool = False
    """Whether it is relative to where that ends."""


def segment_image(
    step: Step, numbering: Numbering, definitions: Definitions, checked: str = ""
) -> SegmentImage:
    """Number what a step reads and makes, lay out its frame, and write down its plan."""
    return _Frame(step, numbering, definitions, checked).image()


class _Frame:
    def __init__(
        self, step: Step, numbering: Numbering, definitions: Definitions, checked: str
    ) -> None:
        self.step = step
        self.checked = checked
        self.numbering = numbering
        self.definitions = definitions
        self.names = sorted(definitions.told(_names(step)))
        self.code = Code(self.names, ["pieces"], definitions.sizes)
        self.bounds = Bounds(definitions.sizes)
        self.starts: list[int] = []
        self.slots = 0
        self.kernels = [numbering.kernel(call.kernel) for call in step.calls]
        for call, kernel in zip(step.calls, self.kernels, strict=True):
            self.bounds.add(call.kernel)
            self.starts.append(self.slots)
            self.slots += len(call.places) + len(kernel.arguments) + 4
            if checked:
                self.slots += len(call.places) + FURTHER
        places = [*step.inputs, *step.outputs]
        self.outside = {form: FIRST_INPUT + place for place, form in enumerate(places)}
        self.constants: dict[int, int] = {}
        lifetimes = _lifetimes(step, self.outside)
        self.own: list[Any] = list(lifetimes) if checked else []
        """Blocks in memory of their own."""
        self.outside |= {form: FIRST_INPUT + len(places) + n for n, form in enumerate(self.own)}
        self.arena = self.place_blocks({} if checked else lifetimes)

    def image(self) -> SegmentImage:
        slots = list(self.fill())
        dynamic = [place for place, slot in enumerate(slots) if not slot.offset.isdecimal()]
        results = {name: None for place in dynamic for name in [slots[place].offset]}
        numbers = {name: number for number, name in enumerate(results)}
        made = [*self.step.outputs, *self.own]
        shapes = [_tuple(map(self.code.count, form.shape)) for form in made]
        works = _tuple(map(self.work, self.step.calls))
        self.code.line(f"return {_tuple(results)}, {self.total}, {_tuple(shapes)}, {works}")
        return SegmentImage(
            inputs=tuple(self.numbering.array(form) for form in self.step.inputs),
            outputs=tuple(self.numbering.array(form) for form in self.step.outputs),
            dtypes=tuple(int(form.dtype) for form in made),
            constants=tuple(self.constants),
            calls=tuple(
                (kernel.number, start, start + len(call.places) + len(kernel.arguments))
                for call, kernel, start
                in zip(self.step.calls, self.kernels, self.starts, strict=True)
            ),
            names=tuple(self.step.names),
            bases=tuple(map(self.base, slots)),
            offsets=tuple(int(slot.offset) if slot.offset.isdecimal() else 0 for slot in slots),
            positions=tuple(dynamic),
            chosen=tuple(numbers[slots[place].offset] for place in dynamic),
            symbols=tuple(map(self.numbering.symbol, self.names)),
            source=self.code.source(),
            reports=any(isinstance(item, Status) for call in self.step.calls
                        for item in call.places),
            waves=tuple(map(self.wave, self.step.waves)),
            limit=self.bounds.limit(),
            bound=self.bounds.terms(self.names),
            sizes=tuple(self.names),
            checked=self.checked,
        )  # fmt: skip

    def base(self, slot: _Slot) -> int:
        """Which address a slot is relative to, once all constants are known."""
        known = len(self.outside) + len(self.constants)
        if slot.base == _PATTERN:
            return FIRST_INPUT + 2 * known
        return slot.base + known if slot.end else slot.base

    def wave(self, wave: Wave) -> WaveImage:
        """A wave's slots: those of its calls' places."""
        moving: dict[int, int] = {}
        inner: list[int] = []
        for number in range(wave.first, wave.end):
            for slot, item in enumerate(self.step.calls[number].places, self.starts[number]):
                if isinstance(item, Form) and item in wave.strides:
                    moving[slot] = wave.strides[item]
                elif item in self.arena:
                    inner.append(slot)
        return WaveImage(
            wave.first, wave.end, wave.images, self.names.index(wave.name),
            tuple(moving), tuple(moving.values()), tuple(inner),
        )  # fmt: skip

    def fill(self) -> Iterator[_Slot]:
        """Every slot of the frame."""
        for call, kernel in zip(self.step.calls, self.kernels, strict=True):
            for item in call.places:
                yield self.slot(item)
            for size in kernel.arguments:
                yield _Slot(NOTHING, self.code.value(size))
            for count in self.shares(call):
                yield _Slot(NOTHING, count)
            yield _Slot(STOP, "0")
            if self.checked:
                yield from map(self.end, call.places)
                yield from [_Slot(NOTHING, "0")] * (FURTHER - 1)
                yield _Slot(_PATTERN, "0")

    def end(self, item: Place) -> _Slot:
        """Where a place ends, for a checked run."""
        slot = self.slot(item)
        if isinstance(item, Status):
            return _Slot(slot.base, str(int(slot.offset) + 8))
        return _Slot(slot.base, slot.offset, end=True)

    def slot(self, item: Place) -> _Slot:
        if isinstance(item, Status):
            return _Slot(ARENA, str(self.slots * 8))
        if item in self.arena:
            return _Slot(ARENA, self.arena[item])
        if item in self.outside:
            return _Slot(self.outside[item], "0")
        assert isinstance(item, Packed | Source)
        array = item if isinstance(item, Packed) else item.constant
        number = self.constants.setdefault(self.numbering.constant(array), len(self.constants))
        return _Slot(FIRST_INPUT + len(self.outside) + number, "0")

    def shares(self, call: Call) -> tuple[str, str, str]:
        """A call's tasks, into how many pieces threads cut them, and how many steps it takes."""
        loop, around = call.kernel.parallel, call.kernel.steps
        tasks = "1" if loop is None else self.code.count(loop.extent)
        steps = "1" if around is None else self.code.count(around.extent)
        work = self.code.count(call.work)
        if tasks.isdecimal() and int(tasks) < 2:
            return tasks, "1", steps
        pieces = f"pieces({tasks}, {around is not None})"
        if work.isdecimal():
            alone = int(work) < SMALLEST_SHARED_WORK
            return tasks, "1" if alone else self.code.named(pieces), steps
        enough = f"{pieces} if {work} >= {SMALLEST_SHARED_WORK} else 1"
        return tasks, self.code.named(enough), steps

    def work(self, call: Call) -> str:
        """A call's operations in all its steps: about so many, at most, and whether that varies."""
        around = call.kernel.steps
        work = self.code.count(call.work if around is None else call.work * around.extent)
        most, varies = estimate(call.kernel, self.code)
        return _tuple([work, most, varies])

    def place_blocks(self, lifetimes: dict[Place, Lifetime]) -> dict[Place, str]:
        """Where each block begins in the arena, behind the frame and the status."""
        blocks: list[Any] = list(lifetimes)
        sample: dict[str, Size] = dict.fromkeys(self.names, TYPICAL_SIZE)
        for name, size in self.definitions.sizes.items():
            sample[name] = substitute(size, sample)
        typical = [max(_sample(item.shape, sample), 0) * item.dtype.numpy.itemsize
                   for item in blocks]  # fmt: skip
        begin = str(_round_up(self.slots * 8 + 8))
        tops: list[str] = [begin] * len(blocks)
        offsets: dict[Place, str] = {}
        for block, below in arrange(list(map(_round_up, typical)), list(lifetimes.values())):
            offset = self.most([tops[other] for other in below] or [begin])
            offsets[blocks[block]] = offset
            tops[block] = self.sum(offset, self.block_bytes(blocks[block]))
        self.total = self.most([*tops, begin])
        return offsets

    def block_bytes(self, item: Any) -> str:
        """The bytes of a block, up to the next cache line."""
        counts = [self.code.count(size) for size in item.shape]
        width = item.dtype.numpy.itemsize
        if all(count.isdecimal() for count in counts):
            return str(_round_up(math.prod(map(int, counts)) * width))
        size = "*".join([*counts, str(width)])
        return self.code.named(f"({size} + {ALIGNMENT - 1}) & -{ALIGNMENT}")

    def sum(self, left: str, right: str) -> str:
        if left.isdecimal() and right.isdecimal():
            return str(int(left) + int(right))
        return self.code.named(f"{left} + {right}")

    def most(self, items: list[str]) -> str:
        numbers = [int(item) for item in items if item.isdecimal()]
        names = sorted({item for item in items if not item.isdecimal()})
        if numbers:
            names.append(str(max(numbers)))
        return names[0] if len(names) == 1 else self.code.named(f"max({', '.join(names)})")


def _names(step: Step) -> set[str]:
    """The names of sizes that a step's plan depends on."""
    names = {name for call in step.calls for name in call.kernel.parameters}
    sizes: list[Size] = [size for form in step.outputs for size in form.shape]
    for call in step.calls:
        sizes += [size for item in call.places if isinstance(item, Form | Scratch)
                  for size in item.shape]  # fmt: skip
        sizes.append(call.work)
    return names.union(*map(symbols, sizes))


def _lifetimes(step: Step, outside: dict[Form, int]) -> dict[Place, Lifetime]:
    """From which call to which each place in the arena is needed.

    A wave's calls run again and again, so what they share with others is needed by all of them.
    """
    found: dict[Place, Lifetime] = {}
    for number, call in enumerate(step.calls):
        for item in call.places:
            form = isinstance(item, Form) and not isinstance(item, Source) and item not in outside
            if form or isinstance(item, Scratch):
                first = found[item].first if item in found else number
                found[item] = Lifetime(first, number)
    for wave in step.waves:
        for item in wave.strides.keys() & found.keys():
            first, last = min(found[item].first, wave.first), max(found[item].last, wave.end - 1)
            found[item] = Lifetime(first, last)
    return found


def _sample(shape: tuple[Size, ...], sizes: dict[str, Size]) -> int:
    total = substitute(product(shape), sizes)
    assert isinstance(total, int), "every name of a block's size is known to its segment"
    return total


def _round_up(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def _tuple(items: Any) -> str:
    return "(" + "".join(f"{item}, " for item in items) + ")"
