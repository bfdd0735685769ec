"""Graphs: inputs, constants, nodes, outputs; and the scopes that subgraphs form."""

from collections.abc import Iterable, Iterator, MutableSequence
from dataclasses import dataclass, field
from typing import Any

from sardonyx.errors import GraphError
from sardonyx.graph.node import WITH_GRAPHS, Node, Value
from sardonyx.graph.nodes import NodeList
from sardonyx.graph.tensor import SparseTensor, Tensor
from sardonyx.graph.types import Type


@dataclass(slots=True)
class QuantizationAnnotation:
    """Names the tensors that hold a value's scale, zero point and so on."""

    value: Value
    parameters: dict[str, Value]
    leftover: bytes = b""


@dataclass(frozen=True, slots=True)
class Declaration:
    """What a file says of a value in a second place, where it differs from the first."""

    type: Type | None
    doc_string: str = ""
    metadata: dict[str, str] = field(default_factory=dict)
    leftover: bytes = b""


class Outputs(MutableSequence[Value]):
    """The values a graph returns; a use of each is kept."""

    __slots__ = ("_graph", "_values")

    def __init__(self, graph: "Graph") -> None:
        self._graph = graph
        self._values: list[Value] = []

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, index: Any) -> Any:
        return self._values[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, int):
            old, position = self._values[index], index % len(self._values)
            del old.uses[(self._graph, position)]
            self._values[index] = value
            value.uses[(self._graph, position)] = None
            return
        values = list(self._values)
        values[index] = value
        self._assign(values)

    def __delitem__(self, index: Any) -> None:
        values = list(self._values)
        del values[index]
        self._assign(values)

    def insert(self, index: int, value: Value) -> None:
        """Return one more value."""
        if index >= len(self._values):
            value.uses[(self._graph, len(self._values))] = None
            self._values.append(value)
            return
        values = list(self._values)
        values.insert(index, value)
        self._assign(values)

    def extend(self, values: Iterable[Value]) -> None:
        """Return more values."""
        self._assign([*self._values, *values])

    def clear(self) -> None:
        """Return nothing."""
        self._assign([])

    def _assign(self, values: list[Value]) -> None:
        for position, value in enumerate(self._values):
            del value.uses[(self._graph, position)]
        self._values = values
        for position, value in enumerate(values):
            value.uses[(self._graph, position)] = None

    def __repr__(self) -> str:
        return repr(self._values)


class Graph:
    """A computation: nodes that turn inputs and constants into outputs.

    >>> from sardonyx.dtypes import DataType
    >>> from sardonyx.graph import TensorType
    >>> graph = Graph("g")
    >>> x = graph.add_input("x", TensorType(DataType.FLOAT, ("N", 4)))
    >>> node = graph.add("Relu", [x], ["y"])
    >>> graph.outputs.append(node.output)
    >>> [value.name for value in graph.values()]
    ['x', 'y']
    """

    __slots__ = (
        "declared", "doc_string", "initializers", "inputs", "leftover", "metadata", "name", "nodes",
        "output_declarations", "outputs", "owner", "quantization",
    )  # fmt: skip

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.inputs: list[Value] = []
        self.initializers: list[Value] = []
        self.nodes = NodeList(self)
        self.outputs = Outputs(self)
        self.owner: Node | None = None
        self.declared: dict[Value, None] = {}
        self.output_declarations: dict[Value, Declaration] = {}
        self.quantization: list[QuantizationAnnotation] = []
        self.doc_string = ""
        self.metadata: dict[str, str] | None = None
        self.leftover = b""

    @property
    def parent(self) -> "Graph | None":
        """The graph whose names this one sees, or None at the top."""
        return self.owner.graph if self.owner is not None else None

    def add(
        self,
        op_type: str,
        inputs: Iterable[Value | None],
        outputs: Iterable[Value | str] = ("",),
        attributes: dict[str, Any] | None = None,
        *,
        domain: str = "",
        name: str = "",
    ) -> Node:
        """Make a node and append it."""
        return self.nodes.append(
            Node(op_type, inputs, outputs, attributes, domain=domain, name=name)
        )

    def add_input(self, name: str, type: Type | None = None) -> Value:
        """Make an input."""
        value = Value(name, type)
        self.inputs.append(value)
        return value

    def add_initializer(self, tensor: Tensor | SparseTensor, name: str | None = None) -> Value:
        """Make a constant; its name is the tensor's unless given."""
        value = Value(tensor.name if name is None else name, None, tensor)
        self.initializers.append(value)
        return value

    def values(self) -> Iterator[Value]:
        """Every value defined in this graph, once: inputs, constants, what nodes make."""
        seen: dict[Value, None] = dict.fromkeys(self.inputs)
        seen.update(dict.fromkeys(self.initializers))
        yield from seen
        for node in self.nodes:
            yield from node.outputs

    def value(self, name: str) -> Value:
        """The value called `name` in this graph or one it lies in."""
        graph: Graph | None = self
        while graph is not None:
            found = next((value for value in graph.values() if value.name == name), None)
            if found is not None:
                return found
            graph = graph.parent
        raise GraphError(f"graph '{self.name}' has no value '{name}'")

    def node(self, name: str) -> Node:
        """The first node called `name`, in this graph or a subgraph."""
        for graph in self.walk():
            for node in graph.nodes:
                if node.name == name:
                    return node
        raise GraphError(f"graph '{self.name}' has no node '{name}'")

    def walk(self) -> Iterator["Graph"]:
        """This graph and every graph inside it, outer before inner."""
        waiting = [self]
        while waiting:
            graph = waiting.pop()
            yield graph
            inner = [
                sub
                for node in graph.nodes
                for attribute in node.attributes.values()
                if attribute.type in WITH_GRAPHS
                for sub in attribute.graphs
            ]
            waiting.extend(reversed(inner))

    def all_nodes(self) -> Iterator[Node]:
        """Every node of this graph and of the graphs inside it."""
        for graph in self.walk():
            yield from graph.nodes

    def captured(self) -> list[Value]:
        """Values of outer graphs that nodes in here, or in graphs inside, read or return."""
        own: set[Value] = set()
        for graph in self.walk():
            own.update(graph.values())
        found: dict[Value, None] = {}
        for graph in self.walk():
            for node in graph.nodes:
                found.update(dict.fromkeys(value for value in node.inputs if value is not None))
            found.update(dict.fromkeys(graph.outputs))
        return [value for value in found if value not in own]

    def move(self, node: Node, target: "Graph", *, before: Node | None = None) -> None:
        """Take a node over into another graph with its connections, at the end or before a node."""
        self.nodes.remove(node, safe=False)
        if before is None:
            target.nodes.append(node)
        else:
            target.nodes.insert_before(before, node)

    def __repr__(self) -> str:
        return (
            f"Graph({self.name!r}, {len(self.inputs)} inputs, {len(self.initializers)} constants, "
            f"{len(self.nodes)} nodes, {len(self.outputs)} outputs)"
        )
