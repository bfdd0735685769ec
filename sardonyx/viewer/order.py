"""Order within ranks: items side by side so that few edges cross."""

from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass

SWEEPS = 8
"""Passes down or up over the whole drawing."""
PATIENCE = 3
"""Passes without fewer crossings after which no more are made."""
EXCHANGES = 4
"""Passes in which neighbours change places, where that leaves fewer crossings."""


@dataclass(slots=True)
class Layers:
    """Items by rank, left to right, with the neighbours of each item one rank above and below."""

    rows: list[list[int]]
    above: list[list[int]]
    below: list[list[int]]

    def positions(self) -> list[int]:
        """Where in its row each item stands."""
        found = [0] * len(self.above)
        for row in self.rows:
            for position, item in enumerate(row):
                found[item] = position
        return found


def reduce_crossings(layers: Layers) -> None:
    """Reorder rows by barycentres of neighbours, and keep the best order met.

    Rows that continue one another item by item form a band with one order: a chain costs nothing.
    """
    bands = _bands(layers)
    _descend(layers)
    _copy_leaders(layers, bands)
    best = [list(row) for row in layers.rows]
    fewest = count_crossings(layers, bands)
    idle = 0
    for sweep in range(SWEEPS):
        if fewest == 0 or idle == PATIENCE:
            break
        _sweep(layers, bands, downward=sweep % 2 == 0)
        number = count_crossings(layers, bands)
        idle += 1
        if number < fewest:
            best, fewest, idle = [list(row) for row in layers.rows], number, 0
    layers.rows[:] = best
    if fewest:
        _exchange(layers, bands)


def count_crossings(layers: Layers, bands: list[range] | None = None) -> int:
    """How many pairs of edges between neighbouring rows cross; with bands, only between bands."""
    positions = layers.positions()
    starts = range(1, len(layers.rows)) if bands is None else [band.start for band in bands[1:]]
    total = 0
    for rank in starts:
        if len(layers.rows[rank]) > 1 and len(layers.rows[rank - 1]) > 1:
            seen: list[int] = []
            for item in layers.rows[rank - 1]:
                ends = [positions[other] for other in layers.below[item]]
                total += sum(len(seen) - bisect_right(seen, end) for end in ends)
                for end in ends:
                    insort(seen, end)
    return total


def _bands(layers: Layers) -> list[range]:
    """Maximal runs of rows in which each item has one neighbour in the next row and back."""
    bands: list[range] = []
    start = 0
    for rank in range(1, len(layers.rows) + 1):
        if rank == len(layers.rows) or not _continues(layers, rank):
            bands.append(range(start, rank))
            start = rank
    return bands


def _continues(layers: Layers, rank: int) -> bool:
    upper, lower = layers.rows[rank - 1], layers.rows[rank]
    return (
        len(upper) == len(lower)
        and all(len(layers.below[item]) == 1 for item in upper)
        and all(len(layers.above[item]) == 1 for item in lower)
    )


def _descend(layers: Layers) -> None:
    """A first order: items as a walk downward from the top meets them."""
    rank_of = [0] * len(layers.above)
    for rank, row in enumerate(layers.rows):
        for item in row:
            rank_of[item] = rank
    rows: list[list[int]] = [[] for _ in layers.rows]
    seen = bytearray(len(layers.above))
    for row in layers.rows:
        for root in row:
            waiting = [root]
            while waiting:
                item = waiting.pop()
                if not seen[item]:
                    seen[item] = 1
                    rows[rank_of[item]].append(item)
                    waiting.extend(reversed(layers.below[item]))
    layers.rows[:] = rows


def _copy_leaders(layers: Layers, bands: list[range], *, downward: bool = True) -> None:
    """Give all rows of each band the order of its first row, or of its last."""
    for band in bands:
        ranks = band if downward else reversed(band)
        following: list[int] | None = None
        for rank in ranks:
            if following is not None:
                layers.rows[rank] = following
            neighbours = layers.below if downward else layers.above
            last = band[-1] if downward else band[0]
            if rank != last:
                following = [neighbours[item][0] for item in layers.rows[rank]]


def _sweep(layers: Layers, bands: list[range], *, downward: bool) -> None:
    neighbours = layers.above if downward else layers.below
    positions = [0.0] * len(layers.above)
    previous: list[int] = []
    for band in bands if downward else reversed(bands):
        first = band[0] if downward else band[-1]
        for position, item in enumerate(previous):
            positions[item] = float(position)
        layers.rows[first] = _sorted_row(layers.rows[first], neighbours, positions)
        _copy_leaders(layers, [band], downward=downward)
        previous = layers.rows[band[-1] if downward else band[0]]


def _exchange(layers: Layers, bands: list[range]) -> None:
    """Let neighbours change places, in all rows of a band, as long as that uncrosses edges."""
    positions = layers.positions()
    for _ in range(EXCHANGES):
        changed = False
        for band in bands:
            upper, lower = layers.rows[band[0]], layers.rows[band[-1]]
            for at in range(len(upper) - 1):
                gain = _gain(layers.above[upper[at]], layers.above[upper[at + 1]], positions)
                gain += _gain(layers.below[lower[at]], layers.below[lower[at + 1]], positions)
                if gain > 0:
                    changed = True
                    for rank in band:
                        row = layers.rows[rank]
                        row[at], row[at + 1] = row[at + 1], row[at]
                        positions[row[at]], positions[row[at + 1]] = at, at + 1
        if not changed:
            return


def _gain(left: list[int], right: list[int], positions: list[int]) -> int:
    """How many crossings fewer two items have when they change places, by their neighbours."""
    if not left or not right:
        return 0
    places = sorted(positions[item] for item in right)
    gain = 0
    for item in left:
        place = positions[item]
        gain += bisect_left(places, place) - (len(places) - bisect_right(places, place))
    return gain


def _sorted_row(row: list[int], neighbours: list[list[int]], positions: list[float]) -> list[int]:
    """Items by the mean position of their neighbours; those without any keep their places."""
    if len(row) < 2:
        return row
    keys: dict[int, float] = {}
    for item in row:
        around = neighbours[item]
        if around:
            keys[item] = sum(positions[other] for other in around) / len(around)
    moved = iter(sorted(keys, key=keys.__getitem__))
    return [next(moved) if item in keys else item for item in row]
