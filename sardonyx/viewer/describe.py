"""A model as plain data for the page: graphs with places, values with types, weights."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from sardonyx.dims import HIDDEN
from sardonyx.errors import SardonyxError
from sardonyx.graph import Graph, Model, Node, SparseTensor, Tensor, Value
from sardonyx.ops.fact import Fact, to_type
from sardonyx.ops.infer import infer_facts
from sardonyx.viewer.describe_graph import describe_graph, is_constant_node
from sardonyx.viewer.families import FUNCTION, family_of
from sardonyx.viewer.text import DOC_LIMIT, NAME_LIMIT, TEXT_LIMIT, cut, type_text
from sardonyx.viewer.weights import describe_tensor

MOST_STATISTICS = 3_000
"""Weights that get statistics, the largest first."""

Data = dict[str, Any]


class Describer:
    """What describing the graphs of one model shares: types, weights, numbers of graphs."""

    def __init__(self, model: Model, profile: Mapping[str, float] | None = None) -> None:
        self.model = model
        self.profile = dict(profile or {})
        self.graphs = list(model.graphs()) or [Graph("(no graph)")]
        self.numbers = {graph: number for number, graph in enumerate(self.graphs)}
        self.functions = {function.key: function for function in model.functions}
        self._titles = _titles(model)
        self.weights: list[Data] = []
        self._weight_numbers: dict[int, int] = {}
        self._tensors: list[Tensor | SparseTensor] = []
        self._facts = _facts(model)

    def run(self) -> Data:
        """The whole model as plain data."""
        graphs = [describe_graph(self, graph) for graph in self.graphs]
        self._add_statistics()
        return {
            "about": _about(self.model),
            "doc": cut(self.model.doc_string, DOC_LIMIT),
            "operators": self._operators(),
            "graphs": graphs,
            "weights": self.weights,
        }

    def type_of(self, value: Value) -> str:
        """A value's type, declared or inferred, as text."""
        fact = self._facts.get(value)
        inferred = None if fact is None else to_type(fact, HIDDEN)
        return type_text(inferred) or type_text(value.type)

    def family_of(self, node: Node) -> int:
        """The family of a node; calls of the model's own functions form one."""
        key = (node.domain, node.op_type, node.overload)
        return FUNCTION if key in self.functions else family_of(node)

    def weight(self, tensor: Tensor | SparseTensor, name: str, maker: str = "") -> int:
        """The number of a constant, described when first asked for."""
        number = self._weight_numbers.get(id(tensor))
        if number is None:
            number = self._weight_numbers[id(tensor)] = len(self.weights)
            data: Data = {"name": cut(name, NAME_LIMIT), "type": type_text(tensor.type)}
            data["bytes"] = _bytes(tensor)
            if maker:
                data["maker"] = cut(maker, NAME_LIMIT)
            if isinstance(tensor, SparseTensor):
                data["sparse"] = True
            self.weights.append(data)
            self._tensors.append(tensor)
        return number

    def title(self, graph: Graph) -> str:
        """What the trail of graphs calls this one."""
        if graph.owner is None:
            return self._titles.get(graph) or graph.name or "graph"
        for name, attribute in graph.owner.attributes.items():
            if graph in attribute.graphs:
                many = len(attribute.graphs) > 1
                return f"{name}[{attribute.graphs.index(graph)}]" if many else name
        return graph.name

    def is_inline(self, value: Value) -> bool:
        """True for constants that are shown inside the boxes of the nodes that read them."""
        if value.tensor is not None:
            return True
        return value.producer is not None and is_constant_node(value.producer)

    def _add_statistics(self) -> None:
        """Describe the largest weights, and all small ones in the room that is left."""
        order = sorted(range(len(self.weights)), key=lambda number: -self.weights[number]["bytes"])
        for number in order[:MOST_STATISTICS]:
            self.weights[number] |= describe_tensor(self._tensors[number])

    def _operators(self) -> list[list[Any]]:
        """Operator, family and number of nodes, the most frequent first."""
        counts: Counter[tuple[str, int]] = Counter()
        for graph in self.graphs:
            for node in graph.nodes:
                counts[cut(node.op_type, 80), self.family_of(node)] += 1
        return [[name, family, number] for (name, family), number in counts.most_common()]


def describe_model(model: Model, profile: Mapping[str, float] | None = None) -> Data:
    """A model as plain data; `profile` gives seconds by the name of a node or its first output.

    >>> import sardonyx as sx
    >>> data = describe_model(sx.load("examples/digits.onnx"))
    >>> [node["title"] for node in data["graphs"][0]["nodes"]]
    ['pixels', 'Gemm', 'Relu', 'Gemm', 'Softmax', 'probabilities']
    """
    return Describer(model, profile).run()


def _facts(model: Model) -> dict[Value, Fact]:
    try:
        return infer_facts(model)
    except (SardonyxError, RecursionError):
        return {}


def _titles(model: Model) -> dict[Graph, str]:
    """Names of graphs that are not the main one: functions, and the two steps of training."""
    titles = {
        function.graph: f"function {function.domain}{'.' if function.domain else ''}{function.name}"
        for function in model.functions
    }
    for training in model.training:
        if training.initialization is not None:
            titles[training.initialization] = "training: initialization"
        if training.algorithm is not None:
            titles[training.algorithm] = "training: algorithm"
    return titles


def _bytes(tensor: Tensor | SparseTensor) -> int:
    try:
        return tensor.nbytes
    except SardonyxError:
        return 0


def _about(model: Model) -> list[list[str]]:
    graphs = list(model.graphs())
    nodes = sum(len(graph.nodes) for graph in graphs)
    parameters = sum(map(_size, model.tensors()))
    opsets = ", ".join(f"{domain or 'ai.onnx'} {number}" for domain, number in model.opsets.items())
    producer = f"{model.producer_name} {model.producer_version}".strip()
    rows = [
        ["file", model.source.strip("'")],
        ["producer", producer],
        ["operator sets", opsets],
        ["IR version", str(model.ir_version)],
        ["domain", model.domain],
        ["version", str(model.model_version or "")],
        ["nodes", f"{nodes:,}"],
        ["parameters", f"{parameters:,}"],
        *([key, text] for key, text in model.metadata.items()),
    ]
    return [[cut(key, NAME_LIMIT), cut(text, TEXT_LIMIT)] for key, text in rows if text]


def _size(tensor: Tensor) -> int:
    try:
        return tensor.size
    except SardonyxError:
        return 0
