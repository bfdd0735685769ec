"""Edges as the page draws them: from a port below one box to a port above another."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sardonyx.viewer.boxes import Box
from sardonyx.viewer.layout import Layout

FAR, CAPTURED = 1, 2
"""Marks of edges: too long to be drawn in full; read by a subgraph and not by the node itself."""
_PORT_STEP = 14.0


@dataclass(frozen=True, slots=True)
class Link:
    """One use of a value: from the box that makes it to the box that reads it."""

    source: int
    target: int
    value: int
    flags: int = 0


def draw_routes(boxes: Sequence[Box], layout: Layout, links: Sequence[Link]) -> list[list[Any]]:
    """For each link: source, target, value, marks, then coordinates.

    The coordinates are those of the start, then x and both ends of each vertical stretch, then
    those of the end.
    """
    starts = _starts(boxes, layout, links)
    ends = _ends(boxes, layout, links, starts)
    found: list[list[Any]] = []
    for index, link in enumerate(links):
        way = layout.ways[index]
        flags = link.flags | (FAR if way is None else 0)
        points = [round(number, 1) for stretch in way or () for number in stretch]
        start = [round(starts[index], 1), _bottom(boxes, layout, link.source)]
        floor = layout.bottoms[layout.ranks[link.source]]
        if way is not None and layout.ranks[link.target] > layout.ranks[link.source]:
            points = [start[0], start[1], round(floor, 1), *points] if floor > start[1] else points
        end = [round(ends[index], 1), round(layout.top[link.target], 1)]
        found.append([link.source, link.target, link.value, flags, *start, *points, *end])
    return found


def _bottom(boxes: Sequence[Box], layout: Layout, node: int) -> float:
    return round(layout.top[node] + boxes[node].height, 1)


def _starts(boxes: Sequence[Box], layout: Layout, links: Sequence[Link]) -> list[float]:
    """Where each link leaves: one port for each value, in the order of where they lead."""
    aims: dict[int, dict[int, list[float]]] = {}
    for index, link in enumerate(links):
        way = layout.ways[index]
        aim = way[0][0] if way else layout.left[link.target] + boxes[link.target].width / 2
        aims.setdefault(link.source, {}).setdefault(link.value, []).append(aim)
    ports: dict[tuple[int, int], float] = {}
    for node, values in aims.items():
        order = sorted(values, key=lambda value: (sum(values[value]) / len(values[value]), value))
        for value, place in zip(order, _spread(boxes, layout, node, len(order)), strict=True):
            ports[node, value] = place
    return [ports[link.source, link.value] for link in links]


def _ends(
    boxes: Sequence[Box], layout: Layout, links: Sequence[Link], starts: list[float]
) -> list[float]:
    """Where each link arrives, in the order of where they come from."""
    arriving: dict[int, list[int]] = {}
    for index, link in enumerate(links):
        arriving.setdefault(link.target, []).append(index)
    found = [0.0] * len(links)
    for node, indices in arriving.items():

        def origin(index: int) -> tuple[float, int]:
            way = layout.ways[index]
            return (way[-1][0] if way else starts[index], index)

        order = sorted(indices, key=origin)
        for index, place in zip(order, _spread(boxes, layout, node, len(order)), strict=True):
            found[index] = place
    return found


def _spread(boxes: Sequence[Box], layout: Layout, node: int, count: int) -> list[float]:
    """Places for `count` ports around the middle of a box."""
    middle = layout.left[node] + boxes[node].width / 2
    step = min(_PORT_STEP, boxes[node].width * 0.7 / max(1, count - 1))
    return [middle + (index - (count - 1) / 2) * step for index in range(count)]
