"""Verify that a graph's objects agree with one another: links, uses, producers, scopes.

This is about the objects, not about ONNX: what a pass must never break.
"""

from collections.abc import Iterator

from sardonyx.errors import GraphError
from sardonyx.graph.graph import Graph
from sardonyx.graph.model import Model
from sardonyx.graph.node import Node, Value

_SHOWN = 10


def verify(subject: Model | Graph) -> None:
    """Raise `GraphError`, with what is wrong, unless all objects of a model or graph agree.

    >>> graph = Graph("g")
    >>> graph.outputs.append(graph.add("Neg", [graph.add_input("x")], ["y"]).output)
    >>> verify(graph)
    >>> graph.nodes[0].outputs[0].producer = None
    >>> verify(graph)
    Traceback (most recent call last):
    sardonyx.errors.GraphError: the graph's objects disagree: output 0 of node of 'y' (Neg) says \
that nothing makes it
    """
    faults = find_faults(subject)
    if faults:
        more = f"; and {len(faults) - _SHOWN} more" if len(faults) > _SHOWN else ""
        raise GraphError("the graph's objects disagree: " + "; ".join(faults[:_SHOWN]) + more)


def find_faults(subject: Model | Graph) -> list[str]:
    """What `verify` would raise for, as a list.

    >>> find_faults(Graph("g"))
    []
    """
    faults: list[str] = []
    if isinstance(subject, Graph):
        faults += _Verifier(subject).run()
        return faults
    outer: _Verifier | None = None
    if subject.graph is not None:
        outer = _Verifier(subject.graph)
        for training in subject.training:
            if training.algorithm is not None:
                outer.readers.append(training.algorithm)
        faults += outer.run()
    for training in subject.training:
        if training.initialization is not None:
            faults += _Verifier(training.initialization).run()
        if training.algorithm is not None:
            faults += _Verifier(training.algorithm, outer).run()
    for function in subject.functions:
        faults += _Verifier(function.graph).run()
    return faults


class _Verifier:
    """One walk over a graph and those inside it; `outer` walked one whose names it sees."""

    def __init__(self, root: Graph, outer: "_Verifier | None" = None) -> None:
        self.root = root
        self.readers: list[Graph] = []
        self.defined: set[Value] = set() if outer is None else set(outer.defined)
        self.faults: list[str] = []
        self._graphs: set[Graph] = set()
        self._nodes: set[Node] = set()

    def run(self) -> list[str]:
        """All faults."""
        for root in (self.root, *self.readers):
            for graph in root.walk():
                self._graphs.add(graph)
                self._nodes.update(graph.nodes)
        self._walk()
        return self.faults

    def _walk(self) -> None:
        """Graphs in order, each subgraph when its node is reached, without recursion."""
        if self.root.owner is not None:
            self.faults.append(f"{_name(self.root)} is a root but has an owner")
        stack = [self._graph(self.root)]
        while stack:
            inner = next(stack[-1], None)
            if inner is None:
                stack.pop()
            else:
                stack.append(self._graph(inner))

    def _graph(self, graph: Graph) -> Iterator[Graph]:
        """Verify one graph; yields each graph inside it when its turn has come."""
        visible: list[Value] = []
        self._links(graph)
        self._names(graph)
        self._roots(graph, visible)
        for node in graph.nodes:
            self._node(graph, node)
            for inner in node.subgraphs:
                if inner.owner is not node:
                    self.faults.append(f"{_name(inner)} does not name {node.where()} as its owner")
                yield inner
            for value in node.outputs:
                self._define(value, visible)
        self._outputs(graph)
        if graph is not self.root:
            self.defined.difference_update(visible)

    def _roots(self, graph: Graph, visible: list[Value]) -> None:
        for kind, values in (("input", graph.inputs), ("initializer", graph.initializers)):
            if len(set(values)) < len(values):
                self.faults.append(f"{_name(graph)} lists an {kind} twice")
            for value in values:
                where = f"{kind} '{value.name}' of {_name(graph)}"
                if value.producer is not None:
                    self.faults.append(f"{where} is made by a node too")
                if kind == "initializer" and value.tensor is None:
                    self.faults.append(f"{where} has no tensor")
                self._define(value, visible)

    def _define(self, value: Value, visible: list[Value]) -> None:
        if value not in self.defined:
            self.defined.add(value)
            visible.append(value)
        self._uses(value)

    def _outputs(self, graph: Graph) -> None:
        for position, value in enumerate(graph.outputs):
            where = f"output {position} of {_name(graph)}, '{value.name}',"
            if value not in self.defined:
                self.faults.append(f"{where} is defined nowhere it can be seen")
            if (graph, position) not in value.uses:
                self.faults.append(f"{where} does not know of that use")

    def _links(self, graph: Graph) -> None:
        forward, backward = list(graph.nodes), list(reversed(graph.nodes))
        if forward != backward[::-1] or len(forward) != len(graph.nodes):
            self.faults.append(f"the nodes of {_name(graph)} are linked in two different orders")
        if len(set(forward)) < len(forward):
            self.faults.append(f"{_name(graph)} holds a node twice")

    def _names(self, graph: Graph) -> None:
        seen: set[str] = set()
        for value in graph.values():
            if value.name and value.name in seen:
                self.faults.append(f"two values of {_name(graph)} are called '{value.name}'")
            seen.add(value.name)

    def _node(self, graph: Graph, node: Node) -> None:
        if node.graph is not graph:
            self.faults.append(f"{node.where()} lies in {_name(graph)} but does not say so")
        for position, value in enumerate(node.inputs):
            if value is None:
                continue
            where = f"input {position} of {node.where()}, '{value.name}',"
            if (node, position) not in value.uses:
                self.faults.append(f"{where} does not know of that use")
            if value not in self.defined:
                self.faults.append(f"{where} is not defined before it is used")
        for position, output in enumerate(node.outputs):
            if output.producer is not node:
                maker = "nothing" if output.producer is None else output.producer.where()
                what = f"output {position} of {node.where()} says that {maker} makes it"
                self.faults.append(what)
        if len(set(node.outputs)) < len(node.outputs):
            self.faults.append(f"{node.where()} makes a value twice")

    def _uses(self, value: Value) -> None:
        for user, position in value.uses:
            if isinstance(user, Node):
                known = user in self._nodes and user.graph is not None
                actual = user.inputs[position] if position < len(user.inputs) else None
                name = user.where()
            else:
                known, name = user in self._graphs, _name(user)
                actual = user.outputs[position] if position < len(user.outputs) else None
            if actual is not value:
                what = f"'{value.name}' lists a use by {name} at {position} that is not there"
                self.faults.append(what)
            elif not known:
                self.faults.append(f"'{value.name}' is used by {name}, which is in no graph here")


def _name(graph: Graph) -> str:
    return f"graph '{graph.name}'"
