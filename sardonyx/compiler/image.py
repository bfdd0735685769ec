"""A compiled program as plain data: all that its runs need, and nothing of how it was made."""

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sardonyx.compiler.plan import ALIGNMENT
from sardonyx.dtypes import data_type
from sardonyx.record import entity, record

NOTHING, ARENA, STOP, FIRST_INPUT = 0, 1, 2, 3
"""Places in a run's table of addresses: zero, the arena, the word that stops the run where it is
not 0, then inputs, outputs and constants. That of a checked run goes on with where these end, and
with a pattern to fill memory with."""
FURTHER = 3
"""Slots that a checked call has behind the ends of its memories: the access and the element that
were outside, and the pattern."""


@record
class Checks:
    """Sizes that must be equal: source that finds the first that are not, and each pair's text."""

    symbols: tuple[int, ...]
    source: str
    texts: tuple[tuple[str, str], ...]


@record
class Told:
    """What the shape of an array tells: sizes by their numbers, and what others must be."""

    array: int
    name: str
    dtype: int
    shape: tuple[int | str, ...]
    symbols: tuple[tuple[int, int], ...]
    """An axis, and the number of the size that it tells."""
    computed: tuple[tuple[int, tuple[int, ...], str], ...]
    """An axis, and the source of its size with the numbers of the sizes that needs."""


@record
class Fed:
    """An input: the array it becomes, and the constant that stands for it where it is not fed."""

    name: str
    array: int
    default: int | None
    fixed: bool


@record
class WaveImage:
    """Calls from `first` up to `end`, which may run for `images` of a batch at a time."""

    first: int
    end: int
    images: int
    symbol: int
    """Which of the segment's symbols counts the images."""
    moving: tuple[int, ...]
    """Slots of what lies there for the whole batch."""
    strides: tuple[int, ...]
    """Bytes of an image in each of them."""
    inner: tuple[int, ...]
    """Slots of what only these calls use: room for a few images will do."""


@record
class SegmentImage:
    """Calls of kernels that run without anything between them.

    The frame has slots for every call: its arguments, the number of its tasks, of pieces and steps,
    and where the word lies that stops the run.
    `bases` says which address each slot is relative to, `offsets` what is added, where `positions`
    take the results of the plan's source that `chosen` numbers.
    """

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    dtypes: tuple[int, ...]
    """The element types of the outputs."""
    constants: tuple[int, ...]
    calls: tuple[tuple[int, int, int], ...]
    """A kernel's number, its first slot, and the slot of the number of its tasks."""
    names: tuple[str, ...]
    """The name of the kernel each call belongs to, as in `rows`."""
    bases: tuple[int, ...]
    offsets: tuple[int, ...]
    positions: tuple[int, ...]
    chosen: tuple[int, ...]
    symbols: tuple[int, ...]
    source: str
    reports: bool
    """Whether kernels may say that an index was out of range."""
    waves: tuple[WaveImage, ...]
    limit: int
    """A size up to which all numbers in kernels fit into 64 bits; above it `bound` tells."""
    bound: tuple[tuple[float, tuple[int, ...]], ...]
    """Factors, and which of the symbols to multiply: no number in a kernel is above the sum."""
    sizes: tuple[str, ...]
    """What the symbols are called."""
    checked: str = ""
    """What runs check, of `targets.CHECKS`. If anything, `dtypes` goes on with those of blocks that
    lie in memory of their own, and the frame has behind each call's number of steps the ends of its
    memories, two slots for what kernels note, and a pattern."""


@record
class ReferenceImage:
    """A node that runs its reference: what it reads and makes, by numbers of arrays."""

    node: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    told: tuple[Told, ...]
    checks: Checks | None


@record
class CutImage:
    """An array that is the first `count[0]` elements of `whole` along an axis."""

    whole: int
    count: int
    axis: int
    output: int
    told: tuple[Told, ...]
    checks: Checks | None


@record
class Tables:
    """The program without its code and constants."""

    target: str
    symbols: tuple[str, ...]
    arrays: int
    fed: tuple[Fed, ...]
    told: tuple[Told, ...]
    checks: Checks | None
    steps: tuple[SegmentImage | ReferenceImage | CutImage, ...]
    outputs: tuple[int, ...]
    names: tuple[str, ...]
    """What the outputs are called."""
    sparse: frozenset[str]
    """The outputs that were declared as sparse tensors."""
    held: tuple[tuple[int, int], ...]
    """Arrays that are constants, each with the constant's number."""
    promised: tuple[tuple[int, tuple[int | None, ...]], ...]
    """Shapes that outputs are declared to have and may not, each with the output's place."""
    believes: bool
    """Whether some rank is only declared: a run that finds another one needs another program."""


Row = tuple[str, str, str, tuple[str, ...], str]
"""Of one node: its place, its operator, its kernel, the nodes together with it, a reason."""


@record
class Wanted:
    """In the place of an image: inputs whose contents decide about a program, and all names."""

    model: str
    names: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    constants: tuple[Any, ...] = ()
    sparse: frozenset[str] = frozenset()
    """The outputs that were declared as sparse tensors."""


@entity
class Unmade:
    """A constant that is made when it is written down: together they may be as large as a model."""

    shape: tuple[int, ...]
    dtype: int
    make: Callable[[], NDArray[Any]]

    @property
    def nbytes(self) -> int:
        """The bytes it will have."""
        return prod(self.shape) * data_type(self.dtype).numpy.itemsize


def aligned_room(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """An array of any content that begins at a cache line.

    >>> aligned_room((2, 3), np.dtype(np.float32)).ctypes.data % 64
    0
    """
    size = prod(shape) * dtype.itemsize
    room = np.empty(size + ALIGNMENT, np.uint8)
    start = -room.ctypes.data % ALIGNMENT
    return room[start : start + size].view(dtype).reshape(shape)


def aligned(array: NDArray[Any]) -> NDArray[Any]:
    """An array without gaps that begins at a cache line: itself, or a copy.

    >>> aligned(np.arange(3)).tolist()
    [0, 1, 2]
    """
    if array.flags.c_contiguous and array.ctypes.data % ALIGNMENT == 0:
        return array
    copy = aligned_room(array.shape, array.dtype)
    copy[...] = array
    return copy


@record
class Image:
    """A compiled program; `graph` holds its inputs, outputs and nodes without kernels, as bytes."""

    model: str
    """What it was made from, for people."""
    tables: Tables
    code: tuple[bytes, ...]
    pool: bytes
    """The workers' code, which is the same in all images."""
    graph: bytes
    rows: tuple[Row, ...]
    constants: tuple[Any, ...]
    """Arrays as kernels read them, or what makes them."""
    accesses: tuple[tuple[str, ...], ...] = ()
    """For each kernel, what it checks before it touches it."""

    def whole(self) -> "Image":
        """The image with all constants made."""
        made = tuple(
            aligned(item.make()) if isinstance(item, Unmade) else item for item in self.constants
        )
        return replace(self, constants=made)
