"""Drawings: nothing overlaps, edges go down, chains are straight, and it takes no long time."""

import random
import time
from itertools import pairwise

import pytest

from sardonyx.viewer.layout import EDGE_GAP, NODE_GAP, RANK_GAP, Edge, Layout, lay_out
from sardonyx.viewer.order import Layers, _bands, _exchange, count_crossings, reduce_crossings
from sardonyx.viewer.place import place
from sardonyx.viewer.ranks import assign_ranks, forward_edges

Sizes = list[tuple[float, float]]


def make(count: int, seed: int, *, far: float = 0.02) -> tuple[Sizes, list[Edge]]:
    """A graph like a network: mostly chains, some branches, a few long ways."""
    chance = random.Random(seed)
    edges: list[Edge] = []
    for node in range(1, count):
        near = node - 1 if chance.random() < 0.7 else max(0, node - chance.randint(1, 12))
        edges.append((near, node, 0))
        if chance.random() < 0.2:
            edges.append((max(0, node - chance.randint(2, 30)), node, chance.randint(0, 1)))
        if chance.random() < far:
            edges.append((chance.randint(0, node - 1), node, 0))
    sizes = [
        (float(chance.randint(60, 180)), float(chance.choice((24, 45, 60)))) for _ in range(count)
    ]
    return sizes, edges


def assert_apart(sizes: Sizes, layout: Layout) -> None:
    rows: dict[int, list[tuple[float, float]]] = {}
    for (width, height), left, top, rank in zip(
        sizes, layout.left, layout.top, layout.ranks, strict=True
    ):
        rows.setdefault(rank, []).append((left, left + width))
        assert top + height <= layout.bottoms[rank] + 1e-6
        assert left >= -1e-6
        assert left + width <= layout.width + 1e-6
    for row in rows.values():
        for (_, end), (start, _) in pairwise(sorted(row)):
            assert start - end >= NODE_GAP - 1e-6
    tops = dict(zip(layout.ranks, layout.top, strict=True))
    for rank in sorted(tops)[1:]:
        assert tops[rank] >= layout.bottoms[rank - 1] + RANK_GAP - 1e-6


def assert_downward(edges: list[Edge], layout: Layout) -> None:
    for (source, target, _), way in zip(edges, layout.ways, strict=True):
        assert layout.ranks[source] < layout.ranks[target]
        heights = [layout.bottoms[layout.ranks[source]]]
        for _, upper, lower in way or ():
            heights += [upper, lower]
        heights.append(layout.top[target])
        assert all(upper <= lower for upper, lower in pairwise(heights))


@pytest.mark.parametrize("seed", range(6))
def test_nothing_overlaps_and_edges_go_down(seed: int) -> None:
    sizes, edges = make(300, seed)
    layout = lay_out(sizes, edges)
    assert_apart(sizes, layout)
    assert_downward(edges, layout)


@pytest.mark.parametrize("seed", range(3))
def test_ways_keep_clear_of_boxes(seed: int) -> None:
    sizes, edges = make(200, seed)
    layout = lay_out(sizes, edges)
    boxes = [
        (left, left + size[0], top, top + size[1])
        for size, left, top in zip(sizes, layout.left, layout.top, strict=True)
    ]
    for way in layout.ways:
        for x, upper, lower in way or ():
            for left, right, top, bottom in boxes:
                if upper < bottom and lower > top:
                    assert not left - EDGE_GAP / 2 < x < right + EDGE_GAP / 2


def test_the_same_graph_gives_the_same_drawing() -> None:
    assert lay_out(*make(400, 7)) == lay_out(*make(400, 7))


def test_a_chain_is_one_straight_line() -> None:
    sizes: Sizes = [(80.0, 24.0), (140.0, 45.0), (60.0, 24.0), (200.0, 60.0)] * 50
    layout = lay_out(sizes, [(node, node + 1, 0) for node in range(199)])
    middles = {left + size[0] / 2 for left, size in zip(layout.left, sizes, strict=True)}
    assert len(middles) == 1


def test_a_trunk_stays_straight_beside_its_weights() -> None:
    edges: list[Edge] = []
    for node in range(0, 60, 2):
        edges.append((node + 1, node + 2, 0))
        edges.append((node, node + 2, 0))
    sizes: Sizes = [(100.0, 30.0)] * 62
    layout = lay_out(sizes, edges)
    trunk = {round(layout.left[node], 3) for node in range(2, 61, 2)}
    assert len(trunk) == 1
    assert layout.width < 400


def test_a_long_edge_is_straight_between_its_ends() -> None:
    edges: list[Edge] = [(node, node + 1, 0) for node in range(20)] + [(0, 20, 0)]
    layout = lay_out([(80.0, 24.0)] * 21, edges)
    way = layout.ways[-1]
    assert way is not None
    assert len(way) == 1


def test_edges_of_one_output_share_their_way() -> None:
    edges: list[Edge] = [(node, node + 1, 0) for node in range(10)]
    edges += [(0, 8, 1), (0, 10, 1), (0, 9, 2)]
    layout = lay_out([(80.0, 24.0)] * 11, edges)
    first, second, other = layout.ways[-3:]
    assert first is not None and second is not None and other is not None
    assert first[0][:2] == second[0][:2]
    assert other[0][0] != first[0][0]


def test_what_is_read_everywhere_is_not_drawn_everywhere() -> None:
    count = 300
    edges: list[Edge] = [(node, node + 1, 0) for node in range(1, count - 1)]
    edges += [(0, node, 0) for node in range(1, count)]
    layout = lay_out([(80.0, 24.0)] * count, edges)
    undrawn = [edge for edge, way in zip(edges, layout.ways, strict=True) if way is None]
    assert len(undrawn) > 250
    assert {source for source, _, _ in undrawn} == {0}


def test_cycles_and_loops_are_drawn_too() -> None:
    edges: list[Edge] = [(0, 1, 0), (1, 2, 0), (2, 0, 0), (1, 1, 0)]
    layout = lay_out([(50.0, 20.0)] * 3, edges)
    assert_apart([(50.0, 20.0)] * 3, layout)
    assert layout.ranks == [0, 1, 2]
    assert layout.ways[3] is None
    assert layout.ways[2] is not None
    assert forward_edges(3, [(0, 1), (1, 2), (2, 0)]) == [True, True, False]


def test_nodes_without_neighbours_stand_below_in_rows() -> None:
    sizes: Sizes = [(100.0, 30.0)] * 42
    layout = lay_out(sizes, [(0, 1, 0)])
    assert_apart(sizes, layout)
    assert min(layout.ranks[2:]) == 2
    assert len(set(layout.ranks)) > 4
    assert layout.width <= 1200


@pytest.mark.parametrize("count", [0, 1, 2])
def test_hardly_any_nodes(count: int) -> None:
    layout = lay_out([(70.0, 24.0)] * count, [])
    assert len(layout.left) == count
    assert layout.height == (24 if count else 0)


def test_sources_lie_close_to_what_reads_them() -> None:
    chain = [(node, node + 1) for node in range(10)]
    ranks = assign_ranks(14, [*chain, (11, 9), (12, 13), (12, 8), (13, 8)])
    assert ranks[11] == ranks[9] - 1
    assert ranks[13] == ranks[8] - 1
    assert ranks[12] == ranks[13] - 1
    assert ranks[:11] == list(range(11))


def test_sweeps_leave_fewer_crossings() -> None:
    chance = random.Random(3)
    rows = [list(range(row * 12, row * 12 + 12)) for row in range(6)]
    above: list[list[int]] = [[] for _ in range(72)]
    below: list[list[int]] = [[] for _ in range(72)]
    for upper, lower in pairwise(rows):
        for item in upper:
            for other in chance.sample(lower, 2):
                below[item].append(other)
                above[other].append(item)
    layers = Layers(rows, above, below)
    before = count_crossings(layers)
    reduce_crossings(layers)
    assert count_crossings(layers) < before * 0.75
    assert sorted(item for row in layers.rows for item in row) == list(range(72))


def layered(seed: int, width: int = 8, depth: int = 5) -> Layers:
    """Rows of which each item has two neighbours at random in the next."""
    chance = random.Random(seed)
    rows = [list(range(row * width, row * width + width)) for row in range(depth)]
    above: list[list[int]] = [[] for _ in range(width * depth)]
    below: list[list[int]] = [[] for _ in range(width * depth)]
    for upper, lower in pairwise(rows):
        for item in upper:
            for other in chance.sample(lower, 2):
                below[item].append(other)
                above[other].append(item)
    return Layers(rows, above, below)


@pytest.mark.parametrize(("seed", "most"), enumerate([77, 72, 59, 71, 64, 64]))
def test_so_few_crossings_are_left(seed: int, most: int) -> None:
    """Sweeps and exchanges together: without either, there are more."""
    layers = layered(seed)
    reduce_crossings(layers)
    assert count_crossings(layers) <= most


def test_crossings_by_hand() -> None:
    """Each pair of edges between two rows that change sides counts once, shared ends do not."""
    for below, crossings in (
        ([[3], [4], [5]], 0), ([[4], [3], [5]], 1), ([[5], [4], [3]], 3), ([[3], [3], [3]], 0),
        ([[3, 4], [3, 4], []], 1), ([[4, 5], [3, 4], [3]], 6), ([[5], [], [3, 4]], 2),
    ):  # fmt: skip
        above = [[item for item in range(3) if other in below[item]] for other in range(3, 6)]
        layers = Layers([[0, 1, 2], [3, 4, 5]], [[], [], [], *above], [*below, [], [], []])
        assert count_crossings(layers) == crossings


def test_rows_that_continue_one_another_are_a_band() -> None:
    straight = Layers(
        [[0, 1], [2, 3], [4, 5]],
        [[], [], [1], [0], [3], [2]],
        [[3], [2], [5], [4], [], []],
    )
    assert _bands(straight) == [range(3)]
    reduce_crossings(straight)
    assert count_crossings(straight) == 0
    joined = Layers([[0, 1], [2, 3], [4]], [[], [], [0], [1], [2, 3]], [[2], [3], [4], [4], []])
    assert _bands(joined) == [range(2), range(2, 3)]
    forked = Layers([[0], [1, 2], [3, 4]], [[], [0], [0], [1], [2]], [[1, 2], [3], [4], [], []])
    assert _bands(forked) == [range(1), range(1, 3)]
    uneven = Layers([[0, 1], [2, 3]], [[], [], [0, 1], []], [[2], [2], [], []])
    assert _bands(uneven) == [range(1), range(1, 2)]


def test_crossings_are_counted() -> None:
    layers = Layers([[0, 1], [2, 3]], [[], [], [1], [0]], [[3], [2], [], []])
    assert count_crossings(layers) == 1
    reduce_crossings(layers)
    assert count_crossings(layers) == 0


def test_places_keep_the_order_of_rows() -> None:
    layers = Layers([[0, 1, 2], [3, 4]], [[], [], [], [0, 2], [1]], [[3], [4], [3], [], []])
    centres = place(layers, [40.0] * 5, [10.0] * 5, [False] * 5, set())
    assert centres[0] + 50 <= centres[1] and centres[1] + 50 <= centres[2]
    assert centres[3] + 50 <= centres[4]


@pytest.mark.parametrize(("count", "seconds"), [(5_000, 2.0), (20_000, 10.0)])
def test_thousands_of_nodes_take_seconds(count: int, seconds: float) -> None:
    sizes, edges = make(count, 1)
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        layout = lay_out(sizes, edges)
        best = min(best, time.process_time() - start)
        if best < seconds:
            break
    assert best < seconds
    assert_apart(sizes, layout)
    assert_downward(edges, layout)


def test_neighbours_change_places_where_that_uncrosses() -> None:
    rows = [[0, 1, 2], [3, 4, 5]]
    layers = Layers(rows, [[], [], [], [1], [0], [2]], [[4], [3], [5], [], [], []])
    _exchange(layers, [range(1), range(1, 2)])
    assert count_crossings(layers) == 0
    assert sorted(layers.rows[1]) == [3, 4, 5]
