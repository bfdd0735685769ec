"""Where intermediate results lie: one arena, shared by those that do not live at the same time."""

from collections.abc import Sequence

from sardonyx.record import record

ALIGNMENT = 64


@record
class Lifetime:
    """The first and last step at which something must be in memory."""

    first: int
    last: int


def neighbours(lifetimes: Sequence[Lifetime]) -> list[list[int]]:
    """For each block, the blocks that are needed at some step at which it is too.

    >>> neighbours([Lifetime(0, 1), Lifetime(2, 3), Lifetime(1, 2)])
    [[2], [2], [0, 1]]
    """
    found: list[list[int]] = [[] for _ in lifetimes]
    alive: list[int] = []
    for block in sorted(range(len(lifetimes)), key=lambda item: lifetimes[item].first):
        first = lifetimes[block].first
        alive = [other for other in alive if lifetimes[other].last >= first]
        for other in alive:
            found[other].append(block)
            found[block].append(other)
        alive.append(block)
    return [sorted(others) for others in found]


def arrange(sizes: Sequence[int], lifetimes: Sequence[Lifetime]) -> list[tuple[int, list[int]]]:
    """Blocks from the lowest up, each with those that it lies upon; the largest are placed first.

    The arrangement fits `sizes` best and is right for all others: blocks that live at the same time
    lie one upon the other.

    >>> arrange([64, 64, 128], [Lifetime(0, 1), Lifetime(2, 3), Lifetime(1, 2)])
    [(2, []), (0, [2]), (1, [2])]
    """
    near = neighbours(lifetimes)
    offsets: dict[int, int] = {}
    for block in sorted(range(len(sizes)), key=lambda item: (-sizes[item], item)):
        taken = sorted((offsets[other], sizes[other]) for other in near[block] if other in offsets)
        at = 0
        for begin, size in taken:
            if at + max(sizes[block], 1) <= begin:
                break
            at = max(at, begin + max(size, 1))
        offsets[block] = at
    order = sorted(offsets, key=lambda block: (offsets[block], block))
    return [(block, _below(block, near, offsets)) for block in order]


def _below(block: int, near: list[list[int]], offsets: dict[int, int]) -> list[int]:
    """What a block lies upon, without what lies under that."""
    below = [other for other in near[block] if offsets[other] < offsets[block]]
    return [
        other
        for other in below
        if not any(other in near[upper] and offsets[other] < offsets[upper] for upper in below)
    ]
