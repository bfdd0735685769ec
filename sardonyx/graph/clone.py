"""Copies of graphs, functions and models, with everything inside them."""

from collections.abc import Mapping

from sardonyx.boundary import public
from sardonyx.graph.attribute import Attribute, AttributeType
from sardonyx.graph.graph import Graph, QuantizationAnnotation
from sardonyx.graph.model import Function, Model, Opsets, TrainingInfo
from sardonyx.graph.node import Node, Value

Values = dict[Value, Value]
Attributes = Mapping[str, Attribute]


@public("copying the model")
def clone_model(model: Model, values: Values | None = None) -> Model:
    """A model of its own; immutable data (weights, types) is shared.

    `values` is filled with the copy of each value of the main graph.

    >>> from sardonyx.graph import Graph, Opsets
    >>> model = Model(Graph("g"), Opsets({"": 21}))
    >>> twin = clone_model(model)
    >>> twin.graph is model.graph, twin.opsets == model.opsets
    (False, True)
    """
    twin = Model(None, _opsets(model.opsets), model.ir_version)
    for name in ("producer_name", "producer_version", "domain", "model_version", "doc_string"):
        setattr(twin, name, getattr(model, name))
    twin.leftover, twin.source = model.leftover, model.source
    twin.metadata = dict(model.metadata)
    twin.device_configurations = list(model.device_configurations)
    values = {} if values is None else values
    if model.graph is not None:
        twin.graph = clone_graph(model.graph, values)
    twin.functions = [clone_function(function) for function in model.functions]
    twin.training = [_training(training, values) for training in model.training]
    return twin


def clone_function(function: Function) -> Function:
    """A function of its own."""
    twin = Function(
        function.domain, function.name, clone_graph(function.graph), _opsets(function.opsets),
        function.overload,
    )  # fmt: skip
    twin.attributes = list(function.attributes)
    twin.attribute_defaults = [
        copy for item in function.attribute_defaults if (copy := clone_attribute(item, {}))
    ]
    twin.doc_string, twin.leftover = function.doc_string, function.leftover
    twin.metadata = dict(function.metadata) if function.metadata else None
    return twin


def clone_graph(
    graph: Graph, values: Values | None = None, attributes: Attributes | None = None
) -> Graph:
    """A graph of its own. `values` maps originals to copies, given for outer ones and filled in.

    `attributes` replaces references to a function's attributes; a reference to none is dropped.
    """
    values = {} if values is None else values
    twin = Graph(graph.name)
    twin.inputs = [clone_value(value, values) for value in graph.inputs]
    twin.initializers = [clone_value(value, values) for value in graph.initializers]
    for node in graph.nodes:
        for output in node.outputs:
            clone_value(output, values)
    for node in graph.nodes:
        twin.nodes.append(clone_node(node, values, attributes))
    twin.outputs.extend(values.get(value, value) for value in graph.outputs)
    for value in graph.declared:
        if value.producer is None or value.producer.graph is graph:
            twin.declared[clone_value(value, values)] = None
    twin.output_declarations = {
        values.get(value, value): said for value, said in graph.output_declarations.items()
    }
    twin.quantization = [
        QuantizationAnnotation(
            values.get(item.value, item.value),
            {key: values.get(value, value) for key, value in item.parameters.items()},
            item.leftover,
        )
        for item in graph.quantization
    ]
    twin.doc_string, twin.leftover = graph.doc_string, graph.leftover
    twin.metadata = dict(graph.metadata) if graph.metadata else None
    return twin


def clone_value(value: Value, values: Values) -> Value:
    """The copy of a value, made on first request."""
    twin = values.get(value)
    if twin is None:
        twin = values[value] = Value(
            value.name, value.declared, value.tensor and value.tensor.copy()
        )
        twin.doc_string, twin.leftover = value.doc_string, value.leftover
        twin.metadata = dict(value.metadata) if value.metadata else None
    return twin


def clone_node(node: Node, values: Values, attributes: Attributes | None = None) -> Node:
    """A copy of a node that reads and makes the copies of its values."""
    twin = Node(
        node.op_type,
        [value and values.get(value, value) for value in node.inputs],
        [clone_value(value, values) for value in node.outputs],
        domain=node.domain,
        name=node.name,
        overload=node.overload,
    )
    for name, attribute in node.attributes.items():
        copied = clone_attribute(attribute, values, attributes)
        if copied is not None:
            twin.set_attribute(name, copied)
    twin.surplus, twin.doc_string, twin.leftover = node.surplus, node.doc_string, node.leftover
    twin.metadata = dict(node.metadata) if node.metadata else None
    twin.device_configurations = list(node.device_configurations or ()) or None
    return twin


def clone_attribute(
    attribute: Attribute, values: Values, attributes: Attributes | None = None
) -> Attribute | None:
    """A copy of an attribute; None where it refers to an attribute that is not given."""
    if attributes is not None and attribute.reference:
        given = attributes.get(attribute.reference)
        if given is None:
            return None
        source = given.with_value(given.value)
        source.name = attribute.name
        return clone_attribute(source, {})
    match attribute.type:
        case AttributeType.GRAPH if attribute.value is not None:
            return attribute.with_value(clone_graph(attribute.value, values, attributes))
        case AttributeType.GRAPHS:
            copies = tuple(clone_graph(item, values, attributes) for item in attribute.value or ())
            return attribute.with_value(copies)
        case AttributeType.TENSOR | AttributeType.SPARSE_TENSOR if attribute.value is not None:
            return attribute.with_value(attribute.value.copy())
        case AttributeType.TENSORS | AttributeType.SPARSE_TENSORS:
            return attribute.with_value(tuple(item.copy() for item in attribute.value or ()))
    return attribute


def _opsets(opsets: Opsets) -> Opsets:
    return Opsets(opsets, unnamed=opsets.unnamed)


def _training(training: TrainingInfo, values: Values) -> TrainingInfo:
    return TrainingInfo(
        training.initialization and clone_graph(training.initialization),
        training.algorithm and clone_graph(training.algorithm, dict(values)),
        list(training.initialization_binding),
        list(training.update_binding),
        training.leftover,
    )
