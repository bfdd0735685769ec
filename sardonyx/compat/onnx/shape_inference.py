"""Types and shapes of a model's values.

>>> from sardonyx.compat import onnx
>>> model = onnx.parser.parse_model('''
...     <ir_version: 10, opset_import: ["": 21]>
...     g (float[N, 3] x) => (float[M, 3] y) { twice = Concat <axis = 0> (x, x)  y = Relu(twice) }
... ''')
>>> inferred = onnx.shape_inference.infer_shapes(model)
>>> inferred.graph.value_info[0].type.tensor_type.shape.dim[0].dim_param
'2*N'
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sardonyx.compat.onnx import _inference
from sardonyx.compat.onnx._errors import InferenceError, ValidationError
from sardonyx.compat.onnx._facts import type_proto
from sardonyx.compat.onnx._schema_operators import (
    GraphInferencer,
    InferenceContext,
    catalog,
    operator_of,
)
from sardonyx.compat.onnx.onnx_ml_pb2 import (
    IR_VERSION,
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    SparseTensorProto,
    TensorProto,
    TypeProto,
)
from sardonyx.errors import SardonyxError
from sardonyx.format.files import DataFolder
from sardonyx.format.read import read_model
from sardonyx.format.write import write_attribute
from sardonyx.graph.inline import inline_functions
from sardonyx.ops.infer import infer_all

__all__ = [
    "GraphInferencer",
    "InferenceContext",
    "InferenceError",
    "infer_function_output_types",
    "infer_node_outputs",
    "infer_shapes",
    "infer_shapes_path",
]


@contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except SardonyxError as error:
        raise InferenceError(str(error)) from error


def infer_shapes(
    model: ModelProto | bytes,
    check_type: bool = False,
    strict_mode: bool = False,
    data_prop: bool = False,
) -> ModelProto:
    """A copy of a model with types added: in `value_info`, and in outputs as far as they lack one.

    `strict_mode` raises InferenceError where types or shapes contradict each other; `check_type`
    where operators get types they do not take. The contents of small constants are always
    followed, so `data_prop` changes nothing.

    >>> from sardonyx.compat import onnx
    >>> text = '<ir_version: 10, opset_import: ["": 21]> g (float[2] x) => (y) { y = Neg(x) }'
    >>> inferred = infer_shapes(onnx.parser.parse_model(text))
    >>> inferred.graph.output[0].type.tensor_type.shape.dim[0].dim_value
    2
    """
    for name, flag in (("check_type", check_type), ("strict_mode", strict_mode),
                       ("data_prop", data_prop)):  # fmt: skip
        if not isinstance(flag, bool):
            raise TypeError(f"{name} must be True or False, not {type(flag).__name__}")
    if isinstance(model, str | os.PathLike):
        raise TypeError("infer_shapes takes a ModelProto or bytes; infer_shapes_path takes a path")
    if not isinstance(model, ModelProto | bytes):
        raise TypeError(f"infer_shapes takes a ModelProto or bytes, not {type(model).__name__}")
    proto = ModelProto()
    proto.MergeFromString(model if isinstance(model, bytes) else model.SerializeToString())
    with _errors():
        _inference.infer_model(proto, DataFolder(None), check_type=check_type, strict=strict_mode)
    return proto


def infer_shapes_path(
    model_path: str | os.PathLike[str],
    output_path: str | os.PathLike[str] = "",
    check_type: bool = False,
    strict_mode: bool = False,
    data_prop: bool = False,
) -> None:
    """Infer the model in a file and write it to `output_path`, or over the file itself.

    External data stays where it is: a copy in another folder still names it.

    >>> import tempfile
    >>> from sardonyx.compat import onnx
    >>> text = '<ir_version: 10, opset_import: ["": 21]> g (float[2] x) => (y) { y = Neg(x) }'
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     onnx.save(onnx.parser.parse_model(text), f"{folder}/m.onnx")
    ...     infer_shapes_path(f"{folder}/m.onnx", f"{folder}/n.onnx")
    ...     onnx.load(f"{folder}/n.onnx").graph.output[0].type.tensor_type.elem_type
    1
    """
    if isinstance(model_path, ModelProto):
        raise TypeError("infer_shapes_path takes a path; infer_shapes takes a ModelProto")
    source = _path(model_path)
    target = _path(output_path) or source
    from sardonyx.compat.onnx._files import load_model, save_model

    try:
        proto = load_model(source, load_external_data=False)
    except OSError as error:
        raise ValidationError(f"cannot read {source!r}: {error}") from error
    folder = DataFolder(Path(source).parent)
    with _errors():
        _inference.infer_model(proto, folder, check_type=check_type, strict=strict_mode)
    save_model(proto, target)


def _path(path: Any) -> str:
    try:
        return os.fspath(path)  # type: ignore[no-any-return]
    except TypeError as error:
        raise TypeError(f"a path is needed, not {type(path).__name__}") from error


def infer_node_outputs(
    schema: Any,
    node: NodeProto,
    input_types: dict[str, TypeProto],
    input_data: dict[str, TensorProto] | None = None,
    input_sparse_data: dict[str, SparseTensorProto] | None = None,
    opset_imports: list[Any] | None = None,
    ir_version: int = IR_VERSION,
) -> dict[str, TypeProto]:
    """The types of a node's outputs, for types and known contents of its inputs.

    >>> from sardonyx.compat import onnx
    >>> node = onnx.helper.make_node("Transpose", ["x"], ["y"], perm=[1, 0])
    >>> x = onnx.helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, [2, 3])
    >>> y = infer_node_outputs(onnx.defs.get_schema("Transpose"), node, {"x": x})["y"]
    >>> [dimension.dim_value for dimension in y.tensor_type.shape.dim]
    [3, 2]
    """
    types = {name: input_types[name].SerializeToString() for name in node.input if name}
    types |= {name: item.SerializeToString() for name, item in input_types.items()}

    def given(messages: Mapping[str, Any] | None) -> dict[str, bytes]:
        found = messages or {}
        return {name: found[name].SerializeToString() for name in node.input if name in found}

    imports = {item.domain: item.version for item in opset_imports or ()}
    outputs = schema._infer_node_outputs(
        node.SerializeToString(), types, given(input_data), given(input_sparse_data), imports,
        ir_version,
    )  # fmt: skip
    return {name: TypeProto.FromString(content) for name, content in outputs.items()}


def infer_one_node(
    schema: Any, node: bytes, types: Mapping[str, bytes], data: Mapping[str, bytes],
    sparse_data: Mapping[str, bytes], opset_imports: Mapping[str, int], ir_version: int,
) -> dict[str, bytes]:  # fmt: skip
    """What `OpSchema._infer_node_outputs` does: types of a node's outputs, all as bytes."""
    message = NodeProto.FromString(node)
    operator = operator_of(schema)
    imports = dict(opset_imports) or {schema.domain: schema.since_version}
    graph = GraphProto(name="node", node=[message])
    for name, content in types.items():
        if name in data:
            graph.initializer.append(TensorProto.FromString(data[name]))
            graph.initializer[-1].name = name
        elif name in sparse_data:
            graph.sparse_initializer.append(SparseTensorProto.FromString(sparse_data[name]))
            graph.sparse_initializer[-1].values.name = name
        else:
            graph.input.add(name=name).type.ParseFromString(content)
    proto = ModelProto(ir_version=ir_version, graph=graph)
    for domain, number in imports.items():
        proto.opset_import.add(domain=domain, version=number)
    model = read_model(memoryview(proto.SerializeToString()), "the node", DataFolder(None).open)
    assert model.graph is not None
    call = model.graph.nodes[0]
    version = operator.newest()
    reason = _inference.wrong_type(call, version, {}) or _inference.lacking(call, version)
    if reason:
        raise ValidationError(f"{call.where()}: {reason}")
    operators = dict(catalog(imports))
    if schema._infer is not None:
        operators[schema.domain, schema.name] = operator
    facts, findings = infer_all(model, catalog=operators)
    reason = _inference.wrong_type(call, version, facts)
    if reason:
        raise ValidationError(f"{call.where()}: {reason}")
    if findings:
        raise InferenceError("; ".join(map(str, findings)))
    return {
        name: content
        for name, value in zip(message.output, call.outputs, strict=True)
        if name and (content := type_proto(facts[value]).SerializeToString())
    }


def inference_function(schema: Any) -> Callable[[InferenceContext], None]:
    """The inference of an operator of the catalog, for users' own inference functions to call."""

    def infer(context: InferenceContext) -> None:
        node = NodeProto(op_type=schema.name, domain=schema.domain)
        types: dict[str, bytes] = {}
        data: dict[str, bytes] = {}
        for position in range(context.get_num_inputs()):
            present = context.has_input(position)
            node.input.append(f"input_{position}" if present else "")
            if present:
                types[node.input[-1]] = context.get_input_type(position).SerializeToString()
                known = context.get_input_data(position)
                if known is not None:
                    data[node.input[-1]] = known.SerializeToString()
        node.output.extend(f"output_{index}" for index in range(context.get_num_outputs()))
        for attribute in context.attributes():
            node.attribute.append(AttributeProto.FromString(write_attribute(attribute).joined()))
        results = infer_one_node(schema, node.SerializeToString(), types, data, {}, {}, IR_VERSION)
        for name, content in results.items():
            context.set_output_type(list(node.output).index(name), TypeProto.FromString(content))

    return infer


def infer_function_output_types(
    function: FunctionProto,
    input_types: Sequence[TypeProto],
    attributes: Sequence[AttributeProto],
) -> list[TypeProto]:
    """The types of a function's outputs, for types of its inputs and values of its attributes.

    >>> from sardonyx.compat import onnx
    >>> function = onnx.parser.parse_function(
    ...     '<opset_import: ["": 21], domain: "d"> f (x) => (y) { y = Cast <to = 7> (x) }')
    >>> x = onnx.helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, ["N"])
    >>> infer_function_output_types(function, [x], [])[0].tensor_type.elem_type
    7
    """
    call = NodeProto(op_type=function.name, domain=function.domain or "local")
    graph = GraphProto(name="call", node=[call])
    for position, item in enumerate(input_types):
        present = item.WhichOneof("value") is not None
        graph.node[0].input.append(f"input_{position}" if present else "")
        if present:
            graph.input.add(name=f"input_{position}", type=item)
    graph.node[0].output.extend(f"output_{index}" for index in range(len(function.output)))
    graph.node[0].attribute.extend(attributes)
    for name in graph.node[0].output:
        graph.output.add(name=name)
    proto = ModelProto(ir_version=IR_VERSION, graph=graph, functions=[function])
    proto.functions[0].domain = call.domain
    proto.opset_import.extend(function.opset_import)
    with _errors():
        model = read_model(memoryview(proto.SerializeToString()), "it", DataFolder(None).open)
        inline_functions(model)
        facts = _inference.infer_checked(model, check_type=True, strict=True)
    assert model.graph is not None
    return [type_proto(facts[value]) for value in model.graph.outputs]
