"""Where intermediate results lie: one arena, shared by those that do not live at the same time."""

from collections.abc import Sequence
from dataclasses import dataclass

ALIGNMENT = 64


@dataclass(frozen=True, slots=True)
class Lifetime:
    """The first and last step at which something must be in memory."""

    first: int
    last: int

    def overlaps(self, other: "Lifetime") -> bool:
        """True where both are needed at some step."""
        return self.first <= other.last and other.first <= self.last


def place(sizes: Sequence[int], lifetimes: Sequence[Lifetime]) -> tuple[list[int], int]:
    """Offsets for blocks of bytes, and the bytes needed in all; the largest are placed first.

    >>> place([64, 64, 128], [Lifetime(0, 1), Lifetime(2, 3), Lifetime(1, 2)])
    ([128, 128, 0], 192)
    """
    offsets = [0] * len(sizes)
    placed: list[int] = []
    total = 0
    for block in sorted(range(len(sizes)), key=lambda item: (-sizes[item], item)):
        near = sorted(
            (offsets[other], offsets[other] + sizes[other])
            for other in placed
            if lifetimes[block].overlaps(lifetimes[other])
        )
        at = 0
        for begin, end in near:
            if at + sizes[block] <= begin:
                break
            at = max(at, -(-end // ALIGNMENT) * ALIGNMENT)
        offsets[block] = at
        placed.append(block)
        total = max(total, at + sizes[block])
    return offsets, total
