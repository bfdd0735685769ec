"""Horizontal coordinates after Brandes and Köpf: chains and long edges become straight lines."""

from collections.abc import Sequence
from itertools import pairwise

from sardonyx.viewer.order import Layers

Conflicts = set[tuple[int, int]]
"""Pairs of neighbours that are not to be joined."""


def place(
    layers: Layers,
    widths: Sequence[float],
    gaps: Sequence[float],
    passing: Sequence[bool],
    weak: Conflicts,
) -> list[float]:
    """The centre of each item: four extreme placements, of which the middle is taken.

    `gaps` is the space each item keeps on both sides; `passing` marks points of long edges, whose
    straightness goes before everything else. Edges in `weak` (upper, lower) need not be straight.
    """
    conflicts = _conflicts(layers, passing)
    above = _strong(layers.above, {(lower, upper) for upper, lower in weak})
    below = _strong(layers.below, weak)
    placements: list[list[float]] = []
    for downward in (True, False):
        for leftward in (True, False):
            rows = layers.rows if downward else layers.rows[::-1]
            rows = rows if leftward else [row[::-1] for row in rows]
            neighbours = above if downward else below
            root = _align(rows, neighbours, conflicts, len(widths))
            centres = _compact(rows, root, widths, gaps)
            placements.append(centres if leftward else [-centre for centre in centres])
    return _middle(placements, widths)


def _strong(neighbours: list[list[int]], weak: Conflicts) -> list[list[int]]:
    if not weak:
        return neighbours
    return [
        [other for other in around if (item, other) not in weak]
        for item, around in enumerate(neighbours)
    ]


def _conflicts(layers: Layers, passing: Sequence[bool]) -> Conflicts:
    """Edges that cross a segment of a long edge, as pairs in both directions."""
    found: Conflicts = set()
    positions = layers.positions()
    for upper, lower in pairwise(layers.rows):
        left, scanned = 0, 0
        for place_, item in enumerate(lower):
            inner = next((o for o in layers.above[item] if passing[item] and passing[o]), None)
            if inner is None and place_ < len(lower) - 1:
                continue
            right = len(upper) - 1 if inner is None else positions[inner]
            for other in lower[scanned : place_ + 1]:
                for neighbour in layers.above[other]:
                    crosses = not left <= positions[neighbour] <= right
                    if crosses and not (passing[other] and passing[neighbour]):
                        found.add((other, neighbour))
                        found.add((neighbour, other))
            left, scanned = right, place_ + 1
    return found


def _align(
    rows: list[list[int]], neighbours: list[list[int]], conflicts: Conflicts, count: int
) -> list[int]:
    """Join each item with a middle neighbour of the row before, as far as nothing crosses.

    Returns the first item of the block that each item is in.
    """
    root, align = list(range(count)), list(range(count))
    positions = [0] * count
    for row in rows:
        for position, item in enumerate(row):
            positions[item] = position
    for row in rows:
        taken = -1
        for item in row:
            around = sorted(neighbours[item], key=positions.__getitem__)
            if not around:
                continue
            middles = {(len(around) - 1) // 2, len(around) // 2}
            for middle in sorted(middles):
                other = around[middle]
                free = align[item] == item and taken < positions[other]
                if free and (item, other) not in conflicts:
                    align[other], root[item] = item, root[other]
                    align[item] = root[item]
                    taken = positions[other]
    return root


def _compact(
    rows: list[list[int]], root: list[int], widths: Sequence[float], gaps: Sequence[float]
) -> list[float]:
    """Blocks of joined items as far left as their neighbours allow, then drawn to the right."""
    after: dict[int, dict[int, float]] = {}
    before: dict[int, int] = {}
    for row in rows:
        for left, right in pairwise(row):
            a, b = root[left], root[right]
            apart = (widths[left] + widths[right]) / 2 + max(gaps[left], gaps[right])
            known = after.setdefault(a, {})
            if b not in known:
                before[b] = before.get(b, 0) + 1
            known[b] = max(known.get(b, 0.0), apart)
    ready = [item for item in range(len(root)) if root[item] == item and item not in before]
    centre = [0.0] * len(root)
    for block in ready:
        for other, apart in after.get(block, {}).items():
            centre[other] = max(centre[other], centre[block] + apart)
            before[other] -= 1
            if before[other] == 0:
                ready.append(other)
    for block in reversed(ready):
        limit = min((centre[o] - apart for o, apart in after.get(block, {}).items()), default=None)
        if limit is not None and limit > centre[block]:
            centre[block] = limit
    return [centre[root[item]] for item in range(len(root))]


def _middle(placements: list[list[float]], widths: Sequence[float]) -> list[float]:
    """The four placements shifted onto the narrowest one, and the mean of the two in the middle."""
    if not widths:
        return []
    spans = []
    for centres in placements:
        low = min(centre - width / 2 for centre, width in zip(centres, widths, strict=True))
        high = max(centre + width / 2 for centre, width in zip(centres, widths, strict=True))
        spans.append((low, high))
    narrow = min(spans, key=lambda span: span[1] - span[0])
    shifted = []
    for index, centres in enumerate(placements):
        side = index % 2
        shift = narrow[side] - spans[index][side]
        shifted.append([centre + shift for centre in centres])
    found = []
    for four in zip(*shifted, strict=True):
        _, second, third, _ = sorted(four)
        found.append((second + third) / 2)
    least = min(centre - width / 2 for centre, width in zip(found, widths, strict=True))
    return [centre - least for centre in found]
