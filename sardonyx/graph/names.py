"""Names that are not taken yet."""

from sardonyx.graph.graph import Graph


class Names:
    """The names in a graph, the graphs inside it and those `around` it; makes new ones.

    Values and nodes share them: some runtimes refuse two nodes of one name.

    >>> graph = Graph("g")
    >>> _ = graph.add_input("x")
    >>> names = Names(graph)
    >>> names.fresh("x"), names.fresh("x"), names.fresh("y")
    ('x_1', 'x_2', 'y')
    """

    def __init__(self, graph: Graph, *, around: bool = True) -> None:
        top = graph
        while around and top.parent is not None:
            top = top.parent
        self._taken: set[str] = set()
        self._counts: dict[str, int] = {}
        for part in top.walk():
            self._taken.update(value.name for value in part.values())
            self._taken.update(value.name for value in part.outputs)
            for node in part.nodes:
                self._taken.add(node.name)
                self._taken.update(value.name for value in node.inputs if value is not None)

    def fresh(self, wish: str) -> str:
        """`wish` if it is free, else with the lowest number behind it that makes it so."""
        name = wish or "value"
        while not name or name in self._taken:
            count = self._counts[wish] = self._counts.get(wish, 0) + 1
            name = f"{wish or 'value'}_{count}"
        self._taken.add(name)
        return name

    def release(self, name: str) -> None:
        """Give a name back."""
        self._taken.discard(name)
