"""Where nodes and edges of a graph are drawn: ranks from top to bottom, edges that go down."""

from collections.abc import Sequence
from dataclasses import dataclass

from sardonyx.viewer.order import Layers, reduce_crossings
from sardonyx.viewer.place import place
from sardonyx.viewer.ranks import assign_ranks, forward_edges, loose_edges

Edge = tuple[int, int, int]
"""Source, target, and which of the source's outputs; edges of one output share their way."""
Pass = tuple[float, float, float]
"""A vertical stretch of an edge's way: x, upper y, lower y."""

NODE_GAP = 26.0
EDGE_GAP = 12.0
RANK_GAP = 44.0
EDGE_WIDTH = 4.0
LONELY_WIDTH = 1200.0
"""How wide rows of nodes without neighbours may be, where the rest is narrower."""
LONGEST_SPAN = 160
"""Edges across more ranks than this are not routed."""
WIDE_FAN = 6
"""An output with more far readers than this is not routed to them."""
FAN_SPAN = 12
"""How many ranks away a reader of such an output is far."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Places of all nodes (left, top) and the ways of all edges, between their two ends.

    A way is None where the edge is too long to be drawn without hiding others.
    """

    left: list[float]
    top: list[float]
    ranks: list[int]
    bottoms: list[float]
    """The lower end of each rank."""
    ways: list[tuple[Pass, ...] | None]
    width: float

    @property
    def height(self) -> float:
        """The lower end of all."""
        return max(self.bottoms, default=0.0)


def lay_out(sizes: Sequence[tuple[float, float]], edges: Sequence[Edge]) -> Layout:
    """Place nodes of given sizes (width, height); the same input always gives the same drawing.

    >>> drawing = lay_out([(80, 30), (80, 30)], [(0, 1, 0)])
    >>> drawing.left, drawing.top
    ([0.0, 0.0], [0.0, 74.0])
    """
    joined = {node for edge in edges if edge[0] != edge[1] for node in edge[:2]}
    if len(joined) < len(sizes):
        return _lay_out_apart(sizes, edges, sorted(joined))
    return _lay_out_joined(sizes, edges)


def _lay_out_joined(sizes: Sequence[tuple[float, float]], edges: Sequence[Edge]) -> Layout:
    count = len(sizes)
    pairs = [(source, target) for source, target, _ in edges]
    forward = forward_edges(count, pairs)
    loose = [source == target for source, target in pairs]
    lines = [
        (source, target, port) if ahead else (target, source, -1)
        for (source, target, port), ahead in zip(edges, forward, strict=True)
    ]
    kept = [index for index in range(len(edges)) if not loose[index]]
    downward = [lines[index][:2] for index in kept]
    ranks = assign_ranks(count, downward)
    routed = _routable(kept, lines, ranks)
    tracks = _Tracks(count, ranks)
    chains = {index: tracks.add(lines[index], index, forward[index]) for index in routed}
    layers = tracks.layers()
    reduce_crossings(layers)
    widths = [size[0] for size in sizes] + [EDGE_WIDTH] * (len(tracks.ranks) - count)
    gaps = [NODE_GAP] * count + [EDGE_GAP] * (len(tracks.ranks) - count)
    passing = [item >= count for item in range(len(widths))]
    centres = place(layers, widths, gaps, passing, tracks.weak(loose_edges(count, downward)))
    tops, bottoms = _bands(sizes, ranks, len(layers.rows))
    ways: list[tuple[Pass, ...] | None] = [None] * len(edges)
    for index, chain in chains.items():
        way = _merged([(centres[item], tops[tracks.ranks[item]], bottoms[tracks.ranks[item]])
                       for item in chain])  # fmt: skip
        ways[index] = tuple(way) if forward[index] else tuple((x, b, a) for x, a, b in way[::-1])
    left = [centres[node] - sizes[node][0] / 2 for node in range(count)]
    right = max((left[node] + sizes[node][0] for node in range(count)), default=0.0)
    right = max([right, *centres])
    return Layout(left, [tops[rank] for rank in ranks], ranks, bottoms, ways, right)


def _lay_out_apart(
    sizes: Sequence[tuple[float, float]], edges: Sequence[Edge], joined: list[int]
) -> Layout:
    """Nodes without neighbours stand in rows below the others."""
    numbers = {node: number for number, node in enumerate(joined)}
    inner = [index for index, edge in enumerate(edges) if edge[0] in numbers]
    drawn = _lay_out_joined(
        [sizes[node] for node in joined],
        [(numbers[edges[at][0]], numbers[edges[at][1]], edges[at][2]) for at in inner],
    )
    ways: list[tuple[Pass, ...] | None] = [None] * len(edges)
    for index, way in zip(inner, drawn.ways, strict=True):
        ways[index] = way
    left, top, ranks = [0.0] * len(sizes), [0.0] * len(sizes), [0] * len(sizes)
    for node, number in numbers.items():
        left[node], top[node] = drawn.left[number], drawn.top[number]
        ranks[node] = drawn.ranks[number]
    bottoms = list(drawn.bottoms)
    widest = max(drawn.width, LONELY_WIDTH)
    width, right = drawn.width, widest
    for node, (across, down) in enumerate(sizes):
        if node in numbers:
            continue
        if right + across > widest:
            start = bottoms[-1] + RANK_GAP if bottoms else 0.0
            bottoms.append(start)
            right = 0.0
        left[node], top[node], ranks[node] = right, start, len(bottoms) - 1
        bottoms[-1] = max(bottoms[-1], start + down)
        right += across + NODE_GAP
        width = max(width, left[node] + across)
    return Layout(left, top, ranks, bottoms, ways, width)


class _Tracks:
    """Nodes and the points at which long edges pass through ranks, as items of one numbering."""

    def __init__(self, count: int, ranks: list[int]) -> None:
        self.ranks = list(ranks)
        self._above: list[list[int]] = [[] for _ in range(count)]
        self._below: list[list[int]] = [[] for _ in range(count)]
        self._shared: dict[tuple[int, int, int], int] = {}
        self._joined: set[tuple[int, int]] = set()

    def add(self, line: Edge, index: int, shares: bool) -> list[int]:
        """The points of one edge, shared with earlier edges of the same output."""
        source, target, port = line
        chain: list[int] = []
        item = source
        for rank in range(self.ranks[source] + 1, self.ranks[target]):
            key = (source, port if shares else -2 - index, rank)
            point = self._shared.get(key)
            if point is None:
                point = self._shared[key] = len(self.ranks)
                self.ranks.append(rank)
                self._above.append([])
                self._below.append([])
            self._join(item, point)
            chain.append(point)
            item = point
        self._join(item, target)
        return chain

    def weak(self, loose: set[tuple[int, int]]) -> set[tuple[int, int]]:
        """Loose edges, and those to ends that hang on a node which others read too."""
        found = set(loose)
        for node, below in enumerate(self._below):
            ends = [item for item in below if not self._below[item] and len(self._above[item]) == 1]
            if len(ends) < len(below):
                found.update((node, item) for item in ends)
        return found

    def _join(self, upper: int, lower: int) -> None:
        if (upper, lower) not in self._joined:
            self._joined.add((upper, lower))
            self._below[upper].append(lower)
            self._above[lower].append(upper)

    def layers(self) -> Layers:
        """All items by rank, in order of their numbers."""
        rows: list[list[int]] = [[] for _ in range(max(self.ranks, default=-1) + 1)]
        for item, rank in enumerate(self.ranks):
            rows[rank].append(item)
        return Layers(rows, self._above, self._below)


def _routable(kept: list[int], lines: list[Edge], ranks: list[int]) -> list[int]:
    """The edges to draw in full: not those that cross very many ranks, or fan out far and wide."""
    far: dict[tuple[int, int], int] = {}
    for index in kept:
        source, target, port = lines[index]
        if ranks[target] - ranks[source] > FAN_SPAN:
            far[source, port] = far.get((source, port), 0) + 1
    found = []
    for index in kept:
        source, target, port = lines[index]
        span = ranks[target] - ranks[source]
        fans = span > FAN_SPAN and far[source, port] > WIDE_FAN
        if span <= LONGEST_SPAN and not fans:
            found.append(index)
    return found


def _bands(
    sizes: Sequence[tuple[float, float]], ranks: list[int], count: int
) -> tuple[list[float], list[float]]:
    """The upper and lower end of each rank."""
    heights = [0.0] * count
    for (_, height), rank in zip(sizes, ranks, strict=True):
        heights[rank] = max(heights[rank], height)
    tops: list[float] = []
    bottoms: list[float] = []
    top = 0.0
    for height in heights:
        tops.append(top)
        bottoms.append(top + height)
        top += height + RANK_GAP
    return tops, bottoms


def _merged(way: list[Pass]) -> list[Pass]:
    """Stretches one below the other on the same line become one."""
    found: list[Pass] = []
    for x, upper, lower in way:
        if found and abs(found[-1][0] - x) < 0.01:
            found[-1] = (found[-1][0], found[-1][1], lower)
        else:
            found.append((x, upper, lower))
    return found
