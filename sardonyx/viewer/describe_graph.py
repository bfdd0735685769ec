"""One graph as plain data: boxes with places, edges with ways, and what a click shows."""

from typing import TYPE_CHECKING, Any

from sardonyx.graph import Attribute, AttributeType, Graph, Node, SparseTensor, Tensor, Value
from sardonyx.viewer.boxes import (
    CONSTANT,
    INPUT,
    OPERATION,
    OUTER,
    OUTPUT,
    Box,
    node_box,
    value_box,
)
from sardonyx.viewer.families import CONSTANT as CONSTANT_FAMILY
from sardonyx.viewer.families import family_of, operator_of
from sardonyx.viewer.layout import Edge, lay_out
from sardonyx.viewer.routes import CAPTURED, Link, draw_routes
from sardonyx.viewer.text import (
    DOC_LIMIT,
    NAME_LIMIT,
    TEXT_LIMIT,
    attribute_text,
    cut,
    type_text,
)
from sardonyx.viewer.weights import small_text

if TYPE_CHECKING:
    from sardonyx.viewer.describe import Describer

Data = dict[str, Any]


def describe_graph(describer: "Describer", graph: Graph) -> Data:
    """A graph with everything in place."""
    return _GraphDescription(describer, graph).run()


def is_constant_node(node: Node) -> bool:
    """True for nodes that read nothing and hold one constant."""
    return not node.inputs and len(node.attributes) == 1 and family_of(node) == CONSTANT_FAMILY


def constant_tensor(value: Value) -> Tensor | SparseTensor | None:
    """The constant that a value holds, or that the node which makes it holds."""
    if value.tensor is not None or value.producer is None:
        return value.tensor
    if not is_constant_node(value.producer):
        return None
    (attribute,) = value.producer.attributes.values()
    return _as_tensor(attribute)


def _as_tensor(attribute: Attribute) -> Tensor | SparseTensor | None:
    kinds = (AttributeType.TENSOR, AttributeType.SPARSE_TENSOR)
    if attribute.type in kinds or attribute.value is None:
        held: Tensor | SparseTensor | None = attribute.value
        return held
    return None


class _GraphDescription:
    def __init__(self, describer: "Describer", graph: Graph) -> None:
        self.describer = describer
        self.graph = graph
        self.nodes: list[Data] = []
        self.boxes: list[Box] = []
        self.values: list[list[Any]] = []
        self.links: list[Link] = []
        self._value_numbers: dict[Value, int] = {}
        self._sources: dict[Value, int] = {}
        self._fed = set(graph.inputs) if describer.model.ir_version >= 4 else set()

    def run(self) -> Data:
        """All nodes first, then the links between them, then places."""
        self._inputs()
        drawn = [node for node in self.graph.nodes if not self._is_hidden(node)]
        numbers = [self._operation(node) for node in drawn]
        for node, number in zip(drawn, numbers, strict=True):
            self._link_inputs(node, number)
        for value in self.graph.initializers:
            self._value(value)
        for value in self.graph.outputs:
            number = self._add(OUTPUT, value_box(value.name, self._type(value)), value)
            self._link(value, number)
        return self._place()

    def _inputs(self) -> None:
        for value in self.graph.inputs:
            if value.tensor is None:
                number = self._add(INPUT, value_box(value.name, self._type(value)), value)
                self._sources[value] = number

    def _is_hidden(self, node: Node) -> bool:
        """A constant node is shown inside its readers, if it has any and is not returned."""
        if not is_constant_node(node):
            return False
        users = [user for output in node.outputs for user, _ in output.uses]
        return any(isinstance(user, Node) and user.graph is self.graph for user in users) and all(
            isinstance(user, Node) for user in users
        )

    def _operation(self, node: Node) -> int:
        operator = operator_of(node)
        constants = []
        for position, value in enumerate(node.inputs):
            if value is not None and self.describer.is_inline(value):
                constants.append((self._formal(node, position), self._constant_text(value)))
        box = node_box(node, operator, constants)
        number = len(self.nodes)
        data: Data = {"kind": OPERATION, "operator": cut(node.op_type, NAME_LIMIT),
                      "family": self.describer.family_of(node)}  # fmt: skip
        optional = {
            "name": cut(node.name, NAME_LIMIT),
            "domain": cut(node.domain, NAME_LIMIT),
            "doc": cut(node.doc_string, DOC_LIMIT),
            "metadata": _pairs(node.metadata),
            "attributes": [self._attribute(name, item) for name, item in node.attributes.items()],
            "inputs": [self._argument(node, at, value) for at, value in enumerate(node.inputs)],
            "outputs": [self._result(node, at, value) for at, value in enumerate(node.outputs)],
            "graphs": self._graphs_of(node),
            "seconds": self._seconds(node),
        }
        data |= {key: item for key, item in optional.items() if item not in ("", [], None)}
        self._append(data, box)
        for value in node.outputs:
            self._sources[value] = number
        return number

    def _seconds(self, node: Node) -> float | None:
        profile = self.describer.profile
        if node.name and node.name in profile:
            return float(profile[node.name])
        first = node.outputs[0].name if node.outputs else ""
        return float(profile[first]) if first and first in profile else None

    def _graphs_of(self, node: Node) -> list[list[Any]]:
        found = [
            [name, self.describer.numbers[inner]]
            for name, attribute in node.attributes.items()
            for inner in attribute.graphs
        ]
        function = self.describer.functions.get((node.domain, node.op_type, node.overload))
        if function is not None:
            found.append(["body", self.describer.numbers[function.graph]])
        return found

    def _attribute(self, name: str, attribute: Attribute) -> list[Any]:
        kind = attribute.type
        row: list[Any] = [cut(name, NAME_LIMIT), attribute_text(attribute)]
        row.append(kind.name.lower() if isinstance(kind, AttributeType) else str(kind))
        tensors = attribute.tensors
        if len(tensors) == 1:
            row.append(self.describer.weight(tensors[0], tensors[0].name or name))
        return row

    def _argument(self, node: Node, position: int, value: Value | None) -> list[Any]:
        number = -1 if value is None else self._value(value)
        return [self._formal(node, position), number]

    def _result(self, node: Node, position: int, value: Value) -> list[Any]:
        operator = operator_of(node)
        formal = operator.newest().formal_output(position) if operator is not None else None
        return [formal.name if formal is not None else str(position), self._value(value)]

    def _formal(self, node: Node, position: int) -> str:
        function = self.describer.functions.get((node.domain, node.op_type, node.overload))
        if function is not None and position < len(function.graph.inputs):
            return cut(function.graph.inputs[position].name, 40)
        operator = operator_of(node)
        formal = operator.newest().formal_input(position) if operator is not None else None
        return formal.name if formal is not None else str(position)

    def _constant_text(self, value: Value) -> str:
        tensor = constant_tensor(value)
        if tensor is None and value.producer is not None:
            (attribute,) = value.producer.attributes.values()
            return "= " + attribute_text(attribute)
        if tensor is None:
            return ""
        return small_text(tensor) or _shape_text(tensor)

    def _link_inputs(self, node: Node, number: int) -> None:
        for value in node.inputs:
            if value is not None and not self.describer.is_inline(value):
                self._link(value, number)
        direct = set(node.inputs)
        captured: dict[Value, None] = {}
        for inner in node.subgraphs:
            captured.update(dict.fromkeys(inner.captured()))
        for value in captured:
            if value not in direct and not self.describer.is_inline(value):
                self._link(value, number, CAPTURED)

    def _link(self, value: Value, target: int, flags: int = 0) -> None:
        source = self._sources.get(value)
        if source is None:
            kind = CONSTANT if self.describer.is_inline(value) else OUTER
            text = self._constant_text(value) if kind == CONSTANT else self._type(value)
            source = self._add(kind, value_box(value.name, text), value)
            self._sources[value] = source
        self.links.append(Link(source, target, self._value(value), flags))

    def _add(self, kind: int, box: Box, value: Value) -> int:
        data: Data = {
            "kind": kind,
            "name": cut(value.name, NAME_LIMIT),
            "value": self._value(value),
        }
        if value.doc_string:
            data["doc"] = cut(value.doc_string, DOC_LIMIT)
        if value.metadata:
            data["metadata"] = _pairs(value.metadata)
        return self._append(data, box)

    def _append(self, data: Data, box: Box) -> int:
        data["title"], data["rows"] = box.title, [list(row) for row in box.rows]
        self.nodes.append(data)
        self.boxes.append(box)
        return len(self.nodes) - 1

    def _value(self, value: Value) -> int:
        number = self._value_numbers.get(value)
        if number is None:
            number = self._value_numbers[value] = len(self.values)
            row: list[Any] = [cut(value.name, NAME_LIMIT), self._type(value)]
            tensor = constant_tensor(value)
            if tensor is not None:
                place = self.describer.weight(tensor, value.name, _maker(value))
                row.append(place)
                if value in self._fed:
                    self.describer.weights[place]["fed"] = True
            self.values.append(row)
        return number

    def _type(self, value: Value) -> str:
        found = self.describer.type_of(value)
        tensor = constant_tensor(value) if not found else None
        return type_text(tensor.type) if tensor is not None else found

    def _place(self) -> Data:
        edges: list[Edge] = [(link.source, link.target, link.value) for link in self.links]
        layout = lay_out([(box.width, box.height) for box in self.boxes], edges)
        for data, box, left, top in zip(
            self.nodes, self.boxes, layout.left, layout.top, strict=True
        ):
            data["box"] = [round(left, 1), round(top, 1), box.width, box.height]
        return self._heading() | {
            "width": round(layout.width, 1),
            "height": round(layout.height, 1),
            "nodes": self.nodes,
            "edges": draw_routes(self.boxes, layout, self.links),
            "values": self.values,
        }

    def _heading(self) -> Data:
        graph, owner = self.graph, self.graph.owner
        outer = self.describer.numbers.get(owner.graph) if owner and owner.graph else None
        data: Data = {"title": cut(self.describer.title(graph), NAME_LIMIT), "outer": outer}
        if owner is not None:
            data["owner"] = cut(owner.name or owner.op_type, NAME_LIMIT)
        if graph.doc_string:
            data["doc"] = cut(graph.doc_string, DOC_LIMIT)
        if graph.metadata:
            data["metadata"] = _pairs(graph.metadata)
        return data


def _maker(value: Value) -> str:
    return "" if value.producer is None else value.producer.name or value.producer.op_type


def _shape_text(tensor: Tensor | SparseTensor) -> str:
    return "×".join(map(str, tensor.shape)) or "scalar"


def _pairs(metadata: dict[str, str] | None) -> list[list[str]]:
    return [[cut(key, NAME_LIMIT), cut(text, TEXT_LIMIT)] for key, text in (metadata or {}).items()]
