"""Models: a graph with its operator sets, functions, and what is said about them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sardonyx.graph.attribute import Attribute
from sardonyx.graph.graph import Graph
from sardonyx.graph.node import Node
from sardonyx.graph.tensor import SparseTensor, Tensor

FunctionKey = tuple[str, str, str]
"""Domain, name and overload: what a node refers to a function by."""


class Opsets(dict[str, int]):
    """Operator-set imports: domain -> version.

    `unnamed` remembers that the file leaves the default domain's name out instead of writing "".

    >>> Opsets({"": 17})[""]
    17
    """

    __slots__ = ("unnamed",)

    def __init__(self, imports: Any = (), *, unnamed: bool = False) -> None:
        super().__init__(imports)
        self.unnamed = unnamed


class Function:
    """An operator defined by a graph, that models carry along.

    >>> body = Graph()
    >>> x = body.add_input("x")
    >>> body.outputs.append(body.add("Neg", [x], ["y"]).output)
    >>> Function("local", "Minus", body).key
    ('local', 'Minus', '')
    """

    __slots__ = (
        "attribute_defaults", "attributes", "doc_string", "domain", "graph", "leftover", "metadata",
        "name", "opsets", "overload",
    )  # fmt: skip

    def __init__(
        self, domain: str, name: str, graph: Graph | None = None, opsets: Opsets | None = None,
        overload: str = "",
    ) -> None:  # fmt: skip
        self.domain = domain
        self.name = name
        self.overload = overload
        self.graph = Graph(name) if graph is None else graph
        self.opsets = Opsets() if opsets is None else opsets
        self.attributes: list[str] = []
        self.attribute_defaults: list[Attribute] = []
        self.doc_string = ""
        self.metadata: dict[str, str] | None = None
        self.leftover = b""

    @property
    def key(self) -> FunctionKey:
        """What nodes refer to this function by."""
        return (self.domain, self.name, self.overload)

    def __repr__(self) -> str:
        return f"Function({self.domain!r}, {self.name!r}, {len(self.graph.nodes)} nodes)"


@dataclass(slots=True)
class TrainingInfo:
    """How a model is initialized and updated in training."""

    initialization: Graph | None = None
    algorithm: Graph | None = None
    initialization_binding: list[tuple[str, str]] = field(default_factory=list)
    update_binding: list[tuple[str, str]] = field(default_factory=list)
    leftover: bytes = b""


class Model:
    """A whole model.

    >>> model = Model(Graph("g"), Opsets({"": 21}))
    >>> model.opset
    21
    """

    __slots__ = (
        "device_configurations", "doc_string", "domain", "functions", "graph", "ir_version",
        "leftover", "metadata", "model_version", "opsets", "producer_name", "producer_version",
        "source", "training",
    )  # fmt: skip

    def __init__(
        self, graph: Graph | None = None, opsets: Mapping[str, int] | None = None,
        ir_version: int = 0,
    ) -> None:  # fmt: skip
        self.ir_version = ir_version
        self.opsets = opsets if isinstance(opsets, Opsets) else Opsets(opsets or ())
        self.producer_name = ""
        self.producer_version = ""
        self.domain = ""
        self.model_version = 0
        self.doc_string = ""
        self.graph = graph
        self.metadata: dict[str, str] = {}
        self.training: list[TrainingInfo] = []
        self.functions: list[Function] = []
        self.device_configurations: list[Any] = []
        self.leftover = b""
        self.source = ""
        """Where the model was read from, for messages."""

    @property
    def opset(self) -> int:
        """The version of the default operator set; 0 where it is not imported."""
        return self.opsets.get("", self.opsets.get("ai.onnx", 0))

    def function(self, node: Node) -> Function | None:
        """The function that `node` calls, if it calls one of this model's."""
        key = (node.domain, node.op_type, node.overload)
        return next((function for function in self.functions if function.key == key), None)

    def graphs(self) -> Iterator[Graph]:
        """Every graph: the main one, training graphs, function bodies, and all subgraphs."""
        roots = [self.graph] if self.graph is not None else []
        for training in self.training:
            roots += [graph for graph in (training.initialization, training.algorithm) if graph]
        roots += [function.graph for function in self.functions]
        for root in roots:
            yield from root.walk()

    def tensors(self) -> Iterator[Tensor]:
        """Every dense tensor stored anywhere: constants, attributes, halves of sparse tensors."""
        for graph in self.graphs():
            for value in graph.initializers:
                yield from _dense(value.tensor)
            for node in graph.nodes:
                for attribute in node.attributes.values():
                    for tensor in attribute.tensors:
                        yield from _dense(tensor)
        for function in self.functions:
            for attribute in function.attribute_defaults:
                for tensor in attribute.tensors:
                    yield from _dense(tensor)

    def __repr__(self) -> str:
        return f"Model({self.graph!r}, opsets {dict(self.opsets)}, IR {self.ir_version})"


def _dense(tensor: Tensor | SparseTensor | None) -> Iterator[Tensor]:
    if isinstance(tensor, SparseTensor):
        yield from (part for part in (tensor.values, tensor.indices) if part is not None)
    elif tensor is not None:
        yield tensor
