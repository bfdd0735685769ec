"""What a pass works on: a graph, its operator sets, and what is known of its values."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import filterfalse
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sardonyx.dtypes import DataType
from sardonyx.graph import Graph, Model, Node, Opsets, Tensor, Value
from sardonyx.graph.names import Names
from sardonyx.ops.build import constant_array
from sardonyx.ops.catalog import Catalog, canonical_domain
from sardonyx.ops.fact import Fact, Sizes
from sardonyx.ops.operator import Operator, plain_value
from sardonyx.ops.signature import REQUIRED
from sardonyx.passes.options import Options

UNKNOWN: Any = type("Unknown", (), {"__repr__": lambda self: "UNKNOWN"})()
"""A parameter that is only known at run time."""

FROM = "sardonyx.from"
"""The key in a node's metadata under which the names of the nodes it came from stand."""

LEAST_SLACK, MOST_SLACK = 1 << 20, 1 << 24

_NOTHING = Fact()


@dataclass(eq=False)
class Unit:
    """An outermost graph of a model, with all graphs inside it.

    `facts` says what inference found; it stays true for values that live on, and knows nothing of
    values made since. `op_types` are the operators' names there were, and those that rules made;
    `unread_bytes` is what constants take that rules left without a reader, and `slack` how much
    that may be: a part of all weights.
    """

    model: Model
    graph: Graph
    opsets: Opsets
    catalog: Catalog
    options: Options
    facts: dict[Value, Fact] = field(default_factory=dict)
    refused: set[Value] = field(default_factory=set)
    """Results of nodes that break their operator's rules; passes leave these as they are."""
    is_function: bool = False
    reasons: dict[str, int] = field(default_factory=dict)
    """Why rules that nearly fitted were not applied, and how often."""

    def __post_init__(self) -> None:
        self.names = Names(self.graph)
        self.overridable = {value for part in self.graph.walk() for value in part.inputs}
        self.unread_bytes = 0
        weights = sum(value.tensor.nbytes for part in self.graph.walk()
                      for value in part.initializers if value.tensor is not None)  # fmt: skip
        self.slack = min(max(weights // 16, LEAST_SLACK), MOST_SLACK)
        self.op_types = {node.op_type for node in self.nodes()}

    @property
    def opset(self) -> int:
        """The version of the default operator set."""
        return self.opsets.get("", self.opsets.get("ai.onnx", 0))

    def nodes(self) -> Iterator[Node]:
        """All nodes, those of inner graphs too, each graph in order; without refused ones."""
        for part in self.graph.walk():
            yield from filterfalse(self.is_refused, part.nodes) if self.refused else part.nodes

    def is_refused(self, node: Node) -> bool:
        """True for a node that breaks its operator's rules, as a run will say."""
        return not self.refused.isdisjoint(node.outputs)

    def fact(self, value: Value | None) -> Fact:
        """What is known of a value."""
        if value is None:
            return _NOTHING
        found = self.facts.get(value)
        if found is None and isinstance(value.tensor, Tensor) and value not in self.overridable:
            tensor = value.tensor
            found = Fact(None, tensor.dtype, tensor.shape)
        return found or _NOTHING

    def shape(self, value: Value | None) -> Sizes | None:
        """A value's shape, where its rank is known."""
        return self.fact(value).shape

    def dtype(self, value: Value | None) -> DataType | None:
        """A value's element type, where it is known."""
        return self.fact(value).dtype

    def is_constant(self, value: Value | None) -> bool:
        """True for weights that no caller can override, and for Constant nodes."""
        if value is None or value in self.overridable:
            return False
        if value.producer is None:
            return isinstance(value.tensor, Tensor)
        return is_operator(value.producer, "Constant") and not refers(value.producer)

    def array(self, value: Value | None) -> NDArray[Any] | None:
        """A constant's elements; None for what is not constant."""
        if value is None or value in self.overridable:
            return None
        if value.producer is None:
            return value.tensor.numpy() if isinstance(value.tensor, Tensor) else None
        if is_operator(value.producer, "Constant") and not refers(value.producer):
            attributes = value.producer.attributes
            return constant_array({name: plain_value(item) for name, item in attributes.items()})
        fact = self.fact(value)
        known = fact.constant
        if known is None or fact.dtype is None or fact.dtype == DataType.STRING:
            return None
        return known.astype(fact.dtype.numpy, copy=False)

    def operator(self, node: Node) -> type[Operator] | None:
        """The operator of a node; None where it is not known or is one of the model's functions."""
        return self.catalog.get((canonical_domain(node.domain), node.op_type))

    def parameter(self, node: Node, name: str, default: Any = None) -> Any:
        """An attribute, or the constant input that took its place in later versions.

        `default` where it is absent, UNKNOWN where only a run tells.
        """
        operator = self.operator(node)
        version = None if operator is None else operator.at(self._version(node))
        if version is None:
            return UNKNOWN
        for position, formal in enumerate(version.inputs):
            if formal.name == name:
                value = node.inputs[position] if position < len(node.inputs) else None
                if value is None:
                    return default
                array = self.array(value)
                return UNKNOWN if array is None else array
        attribute = node.attributes.get(name)
        if attribute is not None:
            return UNKNOWN if attribute.reference else plain_value(attribute)
        formal_attribute = version.attributes.get(name)
        if formal_attribute is None or formal_attribute.default in (None, REQUIRED):
            return default
        return formal_attribute.default

    def integers(self, node: Node, name: str) -> tuple[int, ...] | None:
        """A parameter as whole numbers; None where it is absent or not known."""
        found = self.parameter(node, name)
        if found is None or found is UNKNOWN:
            return None
        return tuple(int(item) for item in np.asarray(found).reshape(-1))

    def _version(self, node: Node) -> int:
        domain = canonical_domain(node.domain)
        return self.opset if domain == "" else self.opsets.get(domain, 1)

    def add_constant(self, graph: Graph, array: Any, name: str, before: Node | None) -> Value:
        """A new constant of `graph`: an initializer, or in a function a node before `before`."""
        tensor = array if isinstance(array, Tensor) else Tensor(array)
        if not self.is_function:
            return graph.add_initializer(tensor, self.names.fresh(name))
        node = Node("Constant", [], [self.names.fresh(name)], {"value": tensor})
        if before is None:
            first = next(iter(graph.nodes), None)
            if first is None:
                graph.nodes.append(node)
                return node.output
            before = first
        graph.nodes.insert_before(before, node)
        return node.output

    def count_unread(self, value: Value | None) -> None:
        """Note what a constant takes if it has lost its last reader."""
        if value is not None and isinstance(value.tensor, Tensor) and not value.uses:
            self.unread_bytes += value.tensor.nbytes

    def substitute(self, old: Value, new: Value) -> bool:
        """Let all who read `old` read `new`, equal to it; False where nothing could be done.

        Where a graph returns `old`, what makes `new` makes `old` instead, so that names stay.
        """
        if old is new:
            return False
        returned = [user for user, _ in old.uses if isinstance(user, Graph)]
        if not returned:
            changed = bool(old.uses)
            old.replace_all_uses(new)
            return changed
        maker = new.producer
        here = old.producer.graph if old.producer is not None else None
        if maker is None or maker.graph is not here or new.is_output:
            changed = any(isinstance(user, Node) for user, _ in old.uses)
            old.replace_all_uses(new, outputs=False)
            return changed
        self._hand_over(old, new, maker)
        return True

    def _hand_over(self, old: Value, new: Value, maker: Node) -> None:
        previous = old.producer
        assert previous is not None
        several = len(previous.outputs) > 1
        fill = Value(self.names.fresh(f"{old.name}/unused") if several else "")
        fill.producer = previous
        previous.outputs = tuple(fill if item is old else item for item in previous.outputs)
        new.replace_all_uses(old)
        new.producer = None
        old.producer = maker
        maker.outputs = tuple(old if item is new else item for item in maker.outputs)
        if old not in self.facts and new in self.facts:
            self.facts[old] = self.facts[new]


def is_operator(node: Node | None, *names: str) -> bool:
    """True for a node of one of these operators of the default domain."""
    return node is not None and node.op_type in names and node.domain in ("", "ai.onnx")


def refers(node: Node) -> bool:
    """True where an attribute is taken from the function's caller: its value is not known."""
    return bool(node.attributes) and any(item.reference for item in node.attributes.values())


def producer(value: Value | None, *names: str) -> Node | None:
    """The node that makes a value, where it is of one of these operators."""
    maker = None if value is None else value.producer
    return maker if is_operator(maker, *names) else None


def graph_of(node: Node) -> Graph:
    """The graph a node lies in."""
    assert node.graph is not None
    return node.graph


def label_of(node: Node) -> str:
    """A node's name, or that of what it makes."""
    return node.name or (node.outputs[0].name if node.outputs else "")


def drop_unused(nodes: Iterable[Node]) -> list[Node]:
    """Take out nodes that nothing reads; returns those that made what they had read."""
    freed: list[Node] = []
    present = [node for node in nodes if node.graph is not None]
    while unused := [node for node in present if not any(item.uses for item in node.outputs)]:
        for node in unused:
            freed += [item.producer for item in node.inputs if item and item.producer]
            graph_of(node).nodes.remove(node)
        present = [node for node in present if node.graph is not None]
    return freed


def record_origin(unit: Unit, made: Iterable[Node], origins: Iterable[Node]) -> None:
    """Note in new nodes' metadata, where the IR has it, which nodes they came from."""
    if unit.model.ir_version < 10 or not unit.options.provenance:
        return
    names: dict[str, None] = {}
    for node in origins:
        earlier = (node.metadata or {}).get(FROM)
        names.update(dict.fromkeys(earlier.split(";") if earlier else [label_of(node)]))
    text = ";".join(name for name in names if name)
    for node in made:
        if text:
            node.metadata = (node.metadata or {}) | {FROM: text}
