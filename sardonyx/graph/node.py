"""Values and the nodes that make and use them; each knows the other."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Union

from sardonyx.errors import GraphError
from sardonyx.graph.attribute import Attribute, AttributeType
from sardonyx.graph.tensor import SparseTensor, Tensor
from sardonyx.graph.types import Type

if TYPE_CHECKING:
    from sardonyx.graph.graph import Graph

Use = tuple[Union["Node", "Graph"], int]
"""Who uses a value, and at which position: a node's input or a graph's output."""


class Value:
    """A named edge: a graph's input, a constant, or what a node produces.

    `uses` holds each use once, in the order in which they were made. A name can be changed at any
    time, since users refer to the value and not to its name.

    >>> x = Value("x")
    >>> relu = Node("Relu", [x])
    >>> [(user.op_type, index) for user, index in x.uses]
    [('Relu', 0)]
    """

    __slots__ = (
        "declared",
        "doc_string",
        "leftover",
        "metadata",
        "name",
        "producer",
        "tensor",
        "uses",
    )

    def __init__(
        self, name: str = "", type: Type | None = None, tensor: Tensor | SparseTensor | None = None
    ) -> None:
        self.name = name
        self.declared = type
        self.tensor = tensor
        self.producer: Node | None = None
        self.uses: dict[Use, None] = {}
        self.doc_string = ""
        self.metadata: dict[str, str] | None = None
        self.leftover = b""

    @property
    def type(self) -> Type | None:
        """The declared type, or the type of the constant it holds."""
        if self.declared is None and self.tensor is not None:
            return self.tensor.type
        return self.declared

    @type.setter
    def type(self, type: Type | None) -> None:
        self.declared = type

    @property
    def index(self) -> int:
        """Which output of its producer this is."""
        if self.producer is None:
            raise GraphError(f"value '{self.name}' has no producer")
        return self.producer.outputs.index(self)

    @property
    def users(self) -> tuple["Node", ...]:
        """The nodes that read this value, each once."""
        return tuple(dict.fromkeys(user for user, _ in self.uses if isinstance(user, Node)))

    @property
    def is_output(self) -> bool:
        """True where a graph returns this value."""
        return any(not isinstance(user, Node) for user, _ in self.uses)

    def replace_all_uses(self, other: "Value", *, outputs: bool = True) -> None:
        """Let every user read `other`; with `outputs=False`, graphs still return this one."""
        if other is self:
            return
        for user, position in list(self.uses):
            if isinstance(user, Node):
                user.replace_input(position, other)
            elif outputs:
                user.outputs[position] = other

    def __repr__(self) -> str:
        return f"Value({self.name!r}, {self.type})"


WITH_GRAPHS = (AttributeType.GRAPH, AttributeType.GRAPHS)


class Node:
    """One operation: an operator's name, what it reads, what it makes, and its attributes.

    An absent optional input is None; an absent optional output has an empty name.

    >>> x = Value("x")
    >>> node = Node("LeakyRelu", [x], ["y"], {"alpha": 0.1})
    >>> node.outputs[0].producer is node, node.attributes["alpha"].value
    (True, 0.1)
    """

    __slots__ = (
        "_inputs", "_link", "attributes", "device_configurations", "doc_string", "domain", "graph",
        "leftover", "metadata", "name", "op_type", "outputs", "overload", "surplus",
    )  # fmt: skip

    _inputs: tuple[Value | None, ...] | list[Value | None]
    """A list while many are replaced one after another, so that each takes constant time."""
    outputs: tuple[Value, ...]
    graph: "Graph | None"

    def __init__(
        self,
        op_type: str,
        inputs: Iterable[Value | None] = (),
        outputs: Iterable[Value | str] = ("",),
        attributes: dict[str, Any] | None = None,
        *,
        domain: str = "",
        name: str = "",
        overload: str = "",
    ) -> None:
        self.op_type = op_type
        self.domain = domain
        self.name = name
        self.overload = overload
        self.attributes: dict[str, Attribute] = {}
        self.doc_string = ""
        self.metadata: dict[str, str] | None = None
        self.device_configurations: list[Any] | None = None
        self.surplus: tuple[Attribute, ...] = ()
        self.leftover = b""
        self.graph = None
        self._link: Any = None
        self._inputs = ()
        self.set_inputs(inputs)
        self.outputs = tuple(Value(item) if isinstance(item, str) else item for item in outputs)
        for output in self.outputs:
            _claim(output, self)
        for key, value in (attributes or {}).items():
            self.set_attribute(key, value)

    @classmethod
    def read(
        cls, op_type: str, domain: str, name: str, inputs: tuple[Value | None, ...],
        outputs: tuple[Value, ...], attributes: dict[str, Attribute],
    ) -> "Node":  # fmt: skip
        """A node made of parts that are known to fit: what a reader calls, many times."""
        node = cls.__new__(cls)
        node.op_type, node.domain, node.name, node.overload = op_type, domain, name, ""
        node._inputs, node.outputs, node.attributes = inputs, outputs, attributes
        node.doc_string, node.leftover, node.surplus = "", b"", ()
        node.metadata = node.device_configurations = node.graph = node._link = None
        for position, value in enumerate(inputs):
            if value is not None:
                value.uses[(node, position)] = None
        for value in outputs:
            value.producer = node
        return node

    @property
    def inputs(self) -> tuple[Value | None, ...]:
        """The values it reads."""
        found = self._inputs
        if isinstance(found, list):
            found = self._inputs = tuple(found)
        return found

    @property
    def output(self) -> Value:
        """The first output."""
        return self.outputs[0]

    def set_inputs(self, inputs: Iterable[Value | None]) -> None:
        """Read these values instead of the present ones."""
        for position, value in enumerate(self._inputs):
            if value is not None:
                del value.uses[(self, position)]
        self._inputs = tuple(inputs)
        for position, value in enumerate(self._inputs):
            if value is not None:
                value.uses[(self, position)] = None

    def replace_input(self, position: int, value: Value | None) -> None:
        """Read `value` at `position`."""
        inputs = self._inputs
        old = inputs[position]
        if old is not None:
            del old.uses[(self, position)]
        if not isinstance(inputs, list):
            inputs = self._inputs = list(inputs)
        inputs[position] = value
        if value is not None:
            value.uses[(self, position)] = None

    def set_outputs(self, outputs: Iterable[Value]) -> None:
        """Produce these values; outputs that go must be unused."""
        kept = tuple(outputs)
        staying = set(kept)
        for old in self.outputs:
            if old not in staying:
                if old.uses:
                    raise GraphError(
                        f"output '{old.name}' of node '{self.name}' ({self.op_type}) is still used",
                        hint="replace its uses first",
                    )
                old.producer = None
        for value in kept:
            if value.producer is not self:
                _claim(value, self)
        self.outputs = kept

    def set_attribute(self, name: str, value: Any) -> None:
        """Set an attribute from a Python value or an `Attribute`."""
        attribute = value if isinstance(value, Attribute) else Attribute(name, value)
        for graph in attribute.graphs:
            graph.owner = self
        self.attributes[name] = attribute

    def attribute(self, name: str, default: Any = None) -> Any:
        """An attribute's value, with strings as text; `default` where it is absent.

        >>> Node("Resize", attributes={"mode": "linear"}).attribute("mode")
        'linear'
        """
        found = self.attributes.get(name)
        if found is None or (found.value is None and not found.reference):
            return default
        return found.text if isinstance(found.value, bytes) else found.value

    @property
    def subgraphs(self) -> Iterator["Graph"]:
        """The graphs in this node's attributes."""
        found: tuple[Graph, ...] = ()
        for attribute in self.attributes.values():
            if attribute.type in WITH_GRAPHS:
                found += attribute.graphs
        return iter(found)

    def detach(self) -> None:
        """Stop using inputs, in subgraphs too; what a node does when it is thrown away."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            node.set_inputs(())
            for graph in node.subgraphs:
                waiting.extend(graph.nodes)
                graph.outputs.clear()

    def where(self) -> str:
        """How messages name this node."""
        label = (
            f"'{self.name}'"
            if self.name
            else f"of '{self.outputs[0].name}'"
            if self.outputs
            else ""
        )
        kind = f"{self.domain}.{self.op_type}" if self.domain else self.op_type
        return f"node {label} ({kind})" if label else f"node ({kind})"

    def __repr__(self) -> str:
        inputs = ", ".join("-" if value is None else value.name for value in self.inputs)
        outputs = ", ".join(value.name for value in self.outputs)
        return f"Node({outputs} = {self.op_type}({inputs}))"


def _claim(value: Value, node: Node) -> None:
    if value.producer is not None and value.producer is not node:
        raise GraphError(
            f"value '{value.name}' is already made by {value.producer.where()}",
            hint="make a new value, or remove that node first",
        )
    value.producer = node
