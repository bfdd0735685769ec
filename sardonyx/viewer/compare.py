"""What differs between two described models: each node gets its twin and a mark."""

from typing import Any

Data = dict[str, Any]
Place = tuple[int, int]
"""A graph's number and a node's place in it."""


def mark_differences(left: Data, right: Data) -> None:
    """Give nodes a `twin` in the other model, and a `status`: gone, new or changed.

    Twins make a value of the same name, or have the same name and operator, in graphs that are
    reached in the same way.
    """
    others = {_path(right, number): number for number in range(len(right["graphs"]))}
    for number, graph in enumerate(left["graphs"]):
        other = others.get(_path(left, number))
        if other is not None:
            _pair(graph, right["graphs"][other], number, other)
    for side, status in ((left, "gone"), (right, "new")):
        for graph in side["graphs"]:
            for node in graph["nodes"]:
                if "twin" not in node:
                    node["status"] = status


def _path(side: Data, number: int) -> tuple[Any, ...]:
    """How a graph is reached; the main one by nothing, whatever its name."""
    steps: list[Any] = []
    place: int | None = number
    while place is not None:
        graph = side["graphs"][place]
        steps.append((graph.get("owner"), graph["title"] if place else ""))
        place = graph["outer"]
    return tuple(steps)


def _pair(left: Data, right: Data, number: int, other: int) -> None:
    for keys in (_outputs, _names):
        known: dict[Any, int] = {}
        for at, node in enumerate(right["nodes"]):
            if "twin" not in node:
                for key in keys(right, node):
                    known.setdefault(key, at)
        for at, node in enumerate(left["nodes"]):
            if "twin" in node:
                continue
            found = next((known[key] for key in keys(left, node) if key in known), None)
            if found is None or "twin" in right["nodes"][found]:
                continue
            twin = right["nodes"][found]
            node["twin"], twin["twin"] = [other, found], [number, at]
            if _content(left, node) != _content(right, twin):
                node["status"] = twin["status"] = "changed"


def _outputs(graph: Data, node: Data) -> list[Any]:
    if "value" in node:
        return [(node["kind"], node["name"])]
    names = [graph["values"][number][0] for _, number in node.get("outputs", ())]
    return [(0, name) for name in names if name]


def _names(graph: Data, node: Data) -> list[Any]:
    return [(node["name"], node["operator"])] if node.get("name") and "operator" in node else []


def _content(graph: Data, node: Data) -> Any:
    """What makes two nodes the same: operator, attributes, and the types of what they read."""
    if "value" in node:
        return graph["values"][node["value"]][1]
    attributes = sorted(row[:3] for row in node.get("attributes", ()))
    count = len(node.get("inputs", ()))
    return node["operator"], node.get("domain"), attributes, count
