"""Nodes, graphs, functions and models, put together from their parts."""

from collections.abc import Sequence
from typing import Any

from google.protobuf.message import Message

from sardonyx.compat.onnx._attributes import make_attribute
from sardonyx.compat.onnx._versions import NEWEST_OPSET, find_min_ir_version_for
from sardonyx.compat.onnx.onnx_ml_pb2 import (
    IR_VERSION,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    OperatorSetIdProto,
    StringStringEntryProto,
    TrainingInfoProto,
)

AssignmentBindingType = list[tuple[str, str]]


def make_node(
    op_type: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    name: str | None = None,
    doc_string: str | None = None,
    domain: str | None = None,
    overload: str | None = None,
    **kwargs: Any,
) -> Any:
    """A NodeProto; every other keyword is an attribute, and None leaves it out.

    >>> from sardonyx.compat.onnx import helper
    >>> helper.printable_node(helper.make_node("Softmax", ["x"], ["y"], axis=-1))
    '%y = Softmax[axis = -1](%x)'
    """
    node = NodeProto()
    node.op_type = op_type
    node.input.extend(inputs)
    node.output.extend(outputs)
    if name:
        node.name = name
    if doc_string:
        node.doc_string = doc_string
    if domain is not None:
        node.domain = domain
    if overload is not None:
        node.overload = overload
    node.attribute.extend(
        make_attribute(key, value) for key, value in sorted(kwargs.items()) if value is not None
    )
    return node


def make_operatorsetid(domain: str, version: int) -> Any:
    """An OperatorSetIdProto: one version of one domain's operators.

    >>> from sardonyx.compat.onnx import helper
    >>> helper.make_operatorsetid("ai.onnx.ml", 3).version
    3
    """
    opset = OperatorSetIdProto()
    opset.domain = domain
    opset.version = version
    return opset


def make_opsetid(domain: str, version: int) -> Any:
    """The same as `make_operatorsetid`, under its shorter name.

    >>> from sardonyx.compat.onnx import helper
    >>> helper.make_opsetid("", 17) == helper.make_operatorsetid("", 17)
    True
    """
    return make_operatorsetid(domain, version)


def make_graph(
    nodes: Sequence[Any],
    name: str,
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    initializer: Sequence[Any] | None = None,
    doc_string: str | None = None,
    value_info: Sequence[Any] | None = None,
    sparse_initializer: Sequence[Any] | None = None,
) -> Any:
    """A GraphProto made of nodes, in the order they run, and the values they use.

    >>> from sardonyx.compat.onnx import TensorProto, helper
    >>> x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    >>> y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])
    >>> helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
    GraphProto('g', input=<1 inputs>, output=<1 outputs>, node=<1 nodes>)
    """
    graph = GraphProto()
    graph.node.extend(nodes)
    graph.name = name
    graph.input.extend(inputs)
    graph.output.extend(outputs)
    graph.initializer.extend(() if initializer is None else initializer)
    graph.sparse_initializer.extend(() if sparse_initializer is None else sparse_initializer)
    graph.value_info.extend(() if value_info is None else value_info)
    if doc_string:
        graph.doc_string = doc_string
    return graph


def make_function(
    domain: str,
    fname: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    nodes: Sequence[Any],
    opset_imports: Sequence[Any],
    attributes: Sequence[str] | None = None,
    attribute_protos: Sequence[Any] | None = None,
    doc_string: str | None = None,
    overload: str | None = None,
    value_info: Sequence[Any] | None = None,
) -> Any:
    """A FunctionProto: an operator defined by nodes.

    `attributes` names those without a default, `attribute_protos` holds those with one.

    >>> from sardonyx.compat.onnx import helper
    >>> body, opsets = [helper.make_node("Add", ["x", "x"], ["y"])], [helper.make_opsetid("", 17)]
    >>> helper.make_function("mine", "Twice", ["x"], ["y"], body, opsets).name
    'Twice'
    """
    function = FunctionProto()
    function.domain = domain
    function.name = fname
    function.input.extend(inputs)
    function.output.extend(outputs)
    function.node.extend(nodes)
    function.opset_import.extend(opset_imports)
    function.attribute.extend(() if attributes is None else attributes)
    function.attribute_proto.extend(() if attribute_protos is None else attribute_protos)
    if doc_string:
        function.doc_string = doc_string
    if overload is not None:
        function.overload = overload
    function.value_info.extend(() if value_info is None else value_info)
    return function


def make_model(graph: Any, **kwargs: Any) -> Any:
    """A ModelProto around `graph`, at the newest IR version and operator set unless told otherwise.

    `opset_imports` and `functions` are lists; any other keyword sets the field of that name.

    >>> from sardonyx.compat.onnx import helper
    >>> graph = helper.make_graph([], "g", [], [])
    >>> helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    ModelProto(ir_version=8, opset_import={'': 17}, graph=GraphProto('g'))
    """
    opset_imports = kwargs.pop("opset_imports", None)
    functions = kwargs.pop("functions", None)
    model = ModelProto()
    model.ir_version = IR_VERSION
    model.graph.CopyFrom(graph)
    if opset_imports is None:
        model.opset_import.add().version = NEWEST_OPSET
    else:
        model.opset_import.extend(opset_imports)
    if functions is not None:
        model.functions.extend(functions)
    for field, value in kwargs.items():
        setattr(model, field, value)
    return model


def make_model_gen_version(graph: Any, **kwargs: Any) -> Any:
    """As `make_model`, at the lowest IR version that may import the given operator sets.

    >>> from sardonyx.compat.onnx import helper
    >>> graph = helper.make_graph([], "g", [], [])
    >>> helper.make_model_gen_version(graph, opset_imports=[helper.make_opsetid("", 17)]).ir_version
    8
    """
    if "ir_version" not in kwargs:
        kwargs["ir_version"] = find_min_ir_version_for(kwargs.get("opset_imports", []))
    return make_model(graph, **kwargs)


def make_metadata_prop(key: str, value: str) -> Any:
    """One entry of metadata. No release of onnx has this name, but tutorials call it.

    >>> from sardonyx.compat.onnx import helper
    >>> helper.make_metadata_prop("licence", "MIT").value
    'MIT'
    """
    return StringStringEntryProto(key=key, value=value)


def set_metadata_props(proto: Any, dict_value: dict[str, str]) -> None:
    """Replace all metadata of a model, graph, function, node, tensor or value.

    >>> from sardonyx.compat.onnx import ModelProto, helper
    >>> model = ModelProto()
    >>> helper.set_metadata_props(model, {"licence": "MIT"})
    >>> model.metadata_props[0].value
    'MIT'
    """
    del proto.metadata_props[:]
    for key, value in dict_value.items():
        entry = proto.metadata_props.add()
        entry.key = key
        entry.value = value


def set_model_props(model: Any, dict_value: dict[str, str]) -> None:
    """Replace all metadata of a model.

    >>> from sardonyx.compat.onnx import ModelProto, helper
    >>> model = ModelProto()
    >>> helper.set_model_props(model, {"author": "Ada"})
    >>> len(model.metadata_props)
    1
    """
    set_metadata_props(model, dict_value)


def make_training_info(
    algorithm: Any,
    algorithm_bindings: AssignmentBindingType,
    initialization: Any | None,
    initialization_bindings: AssignmentBindingType | None,
) -> Any:
    """A TrainingInfoProto: a step graph, a start graph, and which result updates which weight.

    >>> from sardonyx.compat.onnx import helper
    >>> step = helper.make_graph([], "step", [], [])
    >>> helper.make_training_info(step, [("w", "w_next")], None, None).update_binding[0].key
    'w'
    """
    training = TrainingInfoProto()
    training.algorithm.CopyFrom(algorithm)
    for key, value in algorithm_bindings:
        training.update_binding.add(key=key, value=value)
    if initialization:
        training.initialization.CopyFrom(initialization)
    for key, value in initialization_bindings or ():
        training.initialization_binding.add(key=key, value=value)
    return training


def strip_doc_string(proto: Any) -> None:
    """Clear the documentation of a message and of everything inside it.

    >>> from sardonyx.compat.onnx import helper
    >>> node = helper.make_node("Relu", ["x"], ["y"], doc_string="cut below zero")
    >>> helper.strip_doc_string(node)
    >>> node.HasField("doc_string")
    False
    """
    if not isinstance(proto, Message):
        raise TypeError(f"a protobuf message is needed, not a {type(proto).__name__}")
    for field, value in proto.ListFields():
        if field.name == "doc_string":
            proto.ClearField(field.name)
        elif isinstance(value, Message):
            strip_doc_string(value)
        elif field.message_type is not None:
            for item in value:
                strip_doc_string(item)
