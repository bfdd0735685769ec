"""The ordered nodes of a graph: a linked list that may change while it is walked."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from sardonyx.errors import GraphError
from sardonyx.graph.node import Node

if TYPE_CHECKING:
    from sardonyx.graph.graph import Graph


class _Link:
    """A place in the list; a removed one keeps its `next`, so a walk that stands on it goes on."""

    __slots__ = ("next", "node", "previous")

    def __init__(self, node: Node | None) -> None:
        self.node = node
        self.previous: _Link = self
        self.next: _Link = self


class NodeList:
    """Nodes in order. Inserting and removing take constant time and are safe during iteration.

    >>> from sardonyx.graph import Graph
    >>> graph = Graph("g")
    >>> for op_type in ("Neg", "Abs", "Exp"):
    ...     _ = graph.nodes.append(Node(op_type))
    >>> for node in graph.nodes:
    ...     if node.op_type == "Abs":
    ...         graph.nodes.remove(node)
    >>> [node.op_type for node in graph.nodes]
    ['Neg', 'Exp']
    """

    __slots__ = ("_end", "_length", "graph")

    def __init__(self, graph: "Graph") -> None:
        self.graph = graph
        self._end = _Link(None)
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Node]:
        end = self._end
        link = end.next
        while link is not end:
            node = link.node
            if node is not None:
                yield node
            link = link.next

    def __reversed__(self) -> Iterator[Node]:
        end = self._end
        link = end.previous
        while link is not end:
            node = link.node
            if node is not None:
                yield node
            link = link.previous

    def __contains__(self, node: object) -> bool:
        return isinstance(node, Node) and node.graph is self.graph

    def __getitem__(self, index: Any) -> Any:
        """A node by position (walks from the nearer end), or a list of nodes by slice."""
        if isinstance(index, slice):
            return list(self)[index]
        wanted = index if index >= 0 else index + self._length
        if not 0 <= wanted < self._length:
            raise IndexError(f"node {index} of a graph with {self._length}")
        if wanted * 2 > self._length:
            return _nth(reversed(self), self._length - 1 - wanted)
        return _nth(iter(self), wanted)

    def append(self, node: Node) -> Node:
        """Add a node at the end, and return it."""
        return self._insert(node, self._end)

    def extend(self, nodes: Iterable[Node]) -> None:
        """Add nodes at the end."""
        for node in nodes:
            self._insert(node, self._end)

    def insert_before(self, anchor: Node, *nodes: Node) -> None:
        """Insert nodes, in this order, before `anchor`."""
        link = self._link_of(anchor)
        for node in nodes:
            self._insert(node, link)

    def insert_after(self, anchor: Node, *nodes: Node) -> None:
        """Insert nodes, in this order, after `anchor`."""
        link = self._link_of(anchor).next
        for node in nodes:
            self._insert(node, link)

    def remove(self, node: Node, *, safe: bool = True) -> None:
        """Take a node out; with `safe` its outputs must be unused, and its inputs are let go."""
        link = self._link_of(node)
        if safe:
            for output in node.outputs:
                if output.uses:
                    raise GraphError(
                        f"output '{output.name}' of {node.where()} is still used",
                        hint="replace its uses first, or take the node out with safe=False",
                    )
            node.detach()
        link.previous.next, link.next.previous = link.next, link.previous
        link.node = None
        node.graph = None
        node._link = None
        self._length -= 1

    def disband(self) -> None:
        """Throw all nodes away: each is left without inputs, outputs, attributes and neighbours."""
        link = self._end.next
        while link is not self._end:
            node, following = link.node, link.next
            if node is not None:
                node._inputs = node.outputs = ()
                node.graph, node._link, node.attributes = None, None, {}
            del link.previous, link.next
            link = following
        self._end.next = self._end.previous = self._end
        self._length = 0

    def reorder(self, order: list[Node]) -> None:
        """Put the nodes into this order, a permutation of the present one."""
        if len(order) != self._length or {id(node) for node in order} != {
            id(node) for node in self
        }:
            raise GraphError("the order must name each node of the graph once")
        previous = self._end
        for node in order:
            link = node._link
            previous.next, link.previous = link, previous
            previous = link
        previous.next, self._end.previous = self._end, previous

    def _link_of(self, node: Node) -> _Link:
        if node.graph is not self.graph:
            raise GraphError(f"{node.where()} is not in graph '{self.graph.name}'")
        link: _Link = node._link
        return link

    def _insert(self, node: Node, before: _Link) -> Node:
        if node.graph is not None:
            raise GraphError(
                f"{node.where()} is already in graph '{node.graph.name}'",
                hint="remove it there first, with safe=False to keep its connections",
            )
        link = _Link(node)
        link.next, link.previous = before, before.previous
        before.previous.next = link
        before.previous = link
        node.graph, node._link = self.graph, link
        self._length += 1
        return node


def _nth(nodes: Iterator[Node], count: int) -> Node:
    for _ in range(count):
        next(nodes)
    return next(nodes)
