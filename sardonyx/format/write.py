"""Model -> bytes, as a list of pieces: large weights are passed on without being copied."""

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from sardonyx.dtypes import DataType, from_numpy, pack
from sardonyx.errors import SaveError
from sardonyx.format.read_node import VALUE_TAGS
from sardonyx.format.records import Record, write_record
from sardonyx.format.runs import Run
from sardonyx.format.storage import (
    EmbeddedData,
    ExternalData,
    NoData,
    PackedData,
    RawData,
    StringData,
)
from sardonyx.format.tags import (
    ATTRIBUTE,
    DIMENSION,
    ENTRY,
    EXTERNAL,
    FUNCTION,
    GRAPH,
    MAP,
    MODEL,
    NODE,
    OPAQUE,
    OPSET,
    QUANTIZATION,
    SEGMENT,
    SEQUENCE,
    SHAPE,
    SPARSE,
    TENSOR,
    TENSOR_TYPE,
    TRAINING,
    TYPE,
    VALUE,
    encoded,
    packed,
)
from sardonyx.format.wire import Buffer, varint
from sardonyx.graph import (
    ArrayData,
    Attribute,
    AttributeType,
    Declaration,
    Function,
    Graph,
    MapType,
    Model,
    Node,
    OpaqueType,
    Opsets,
    OptionalType,
    SequenceType,
    SparseTensor,
    SparseTensorType,
    Tensor,
    TensorType,
    TrainingInfo,
    Type,
    Value,
)
from sardonyx.graph.stored_list import StoredList
from sardonyx.graph.tensor import encode_string

_JOIN_BELOW = 1 << 12
"""Pieces up to this size are copied together; larger ones are passed on as they are."""


class Pieces:
    """The bytes of a message under construction, and their number.

    A large array whose elements do not lie in order is a part as it is, until its turn comes.
    """

    __slots__ = ("_small", "parts", "size")

    def __init__(self, start: bytes = b"") -> None:
        self.parts: list[Buffer | np.ndarray[Any, Any]] = []
        self._small = bytearray(start)
        self.size = len(start)

    def string(self, tag: int, content: str) -> None:
        """A string field, left out where it is empty."""
        if content:
            self.content(tag, content.encode("utf-8", "surrogateescape"))

    def content(self, tag: int, content: Buffer) -> None:
        """A length-delimited field."""
        self.raw(encoded(tag) + varint(len(content)))
        self.raw(content)

    def array(self, tag: int, values: np.ndarray[Any, Any]) -> None:
        """A length-delimited field that holds an array's raw bytes."""
        whole_bytes = from_numpy(values.dtype).bits >= 8
        if values.flags.c_contiguous or values.nbytes < _JOIN_BELOW or not whole_bytes:
            self.content(tag, array_bytes(values))
            return
        self.raw(encoded(tag) + varint(values.nbytes))
        self._flush()
        self.parts.append(values)
        self.size += values.nbytes

    def integer(self, tag: int, value: int) -> None:
        """A varint field."""
        self.raw(encoded(tag) + varint(value))

    def message(self, tag: int, inner: "Pieces") -> None:
        """A field that is a message."""
        self.raw(encoded(tag) + varint(inner.size))
        if inner.parts:
            self._flush()
            inner._flush()
            self.parts += inner.parts
            self.size += inner.size
        else:
            self.raw(inner._small)

    def entries(self, tag: int, items: Iterable[tuple[str, str]]) -> None:
        """Key and value pairs, a message each."""
        for key, value in items:
            inner = Pieces()
            inner.content(ENTRY.key, key.encode("utf-8", "surrogateescape"))
            inner.content(ENTRY.value, value.encode("utf-8", "surrogateescape"))
            self.message(tag, inner)

    def raw(self, content: Buffer | bytearray) -> None:
        """Bytes as they are."""
        if len(content) < _JOIN_BELOW:
            self._small += content
        else:
            self._flush()
            self.parts.append(content)  # type: ignore[arg-type]
        self.size += len(content)

    def finish(self) -> Iterator[Buffer]:
        """The pieces in order."""
        self._flush()
        for part in self.parts:
            yield array_bytes(part) if isinstance(part, np.ndarray) else part

    def _flush(self) -> None:
        if self._small:
            self.parts.append(bytes(self._small))
            self._small = bytearray()

    def joined(self) -> bytes:
        """All of it in one piece."""
        return b"".join(self.finish())


def write_model(model: Model) -> Pieces:
    """A ModelProto."""
    out = Pieces(model.leftover)
    if model.ir_version:
        out.integer(MODEL.ir_version, model.ir_version)
    out.string(MODEL.producer_name, model.producer_name)
    out.string(MODEL.producer_version, model.producer_version)
    out.string(MODEL.domain, model.domain)
    if model.model_version:
        out.integer(MODEL.model_version, model.model_version)
    out.string(MODEL.doc_string, model.doc_string)
    if model.graph is not None:
        out.message(MODEL.graph, write_graph(model.graph))
    _opsets(out, MODEL.opset_import, model.opsets)
    out.entries(MODEL.metadata_props, model.metadata.items())
    for training in model.training:
        out.message(MODEL.training_info, _training(training))
    for function in model.functions:
        out.message(MODEL.functions, write_function(function))
    _records(out, MODEL.configuration, model.device_configurations)
    return out


def _opsets(out: Pieces, tag: int, opsets: Opsets) -> None:
    for domain, version in opsets.items():
        inner = Pieces()
        if domain or not opsets.unnamed:
            inner.content(OPSET.domain, domain.encode("utf-8", "surrogateescape"))
        inner.integer(OPSET.version, version)
        out.message(tag, inner)


def _records(out: Pieces, tag: int, records: Iterable[Record] | None) -> None:
    for record in records or ():
        out.content(tag, write_record(record))


def _training(training: TrainingInfo) -> Pieces:
    out = Pieces(training.leftover)
    if training.initialization is not None:
        out.message(TRAINING.initialization, write_graph(training.initialization))
    if training.algorithm is not None:
        out.message(TRAINING.algorithm, write_graph(training.algorithm))
    out.entries(TRAINING.initialization_binding, training.initialization_binding)
    out.entries(TRAINING.update_binding, training.update_binding)
    return out


def write_graph(graph: Graph) -> Pieces:
    """A GraphProto."""
    out = Pieces(graph.leftover)
    for node in graph.nodes:
        out.message(GRAPH.node, write_node(node))
    out.string(GRAPH.name, graph.name)
    for value in graph.initializers:
        if isinstance(value.tensor, SparseTensor):
            out.message(GRAPH.sparse_initializer, _sparse(value.tensor, value.name))
        elif value.tensor is not None:
            out.message(GRAPH.initializer, write_tensor(value.tensor, value.name))
    out.string(GRAPH.doc_string, graph.doc_string)
    for value in graph.inputs:
        out.message(GRAPH.input, _value(value))
    for value in graph.outputs:
        out.message(GRAPH.output, _value(value, graph.output_declarations.get(value)))
    for value in described(graph):
        out.message(GRAPH.value_info, _value(value))
    for annotation in graph.quantization:
        inner = Pieces(annotation.leftover)
        inner.string(QUANTIZATION.tensor_name, annotation.value.name)
        names = [(key, value.name) for key, value in annotation.parameters.items()]
        inner.entries(QUANTIZATION.quant_parameter_tensor_names, names)
        out.message(GRAPH.quantization_annotation, inner)
    out.entries(GRAPH.metadata_props, (graph.metadata or {}).items())
    return out


def described(graph: Graph, *, outputs: bool = False) -> list[Value]:
    """The values whose types are written apart: as in the file read, then those that are new."""
    found = {
        value: None
        for value in graph.declared
        if value.producer is None or value.producer.graph is graph
    }
    returned = set() if outputs else set(graph.outputs)
    for node in graph.nodes:
        for value in node.outputs:
            if value.declared is not None and value.name and value not in returned:
                found[value] = None
    return list(found)


def write_function(function: Function) -> Pieces:
    """A FunctionProto."""
    out = Pieces(function.leftover)
    graph = function.graph
    out.string(FUNCTION.name, function.name)
    for value in graph.inputs:
        out.content(FUNCTION.input, value.name.encode("utf-8", "surrogateescape"))
    for value in graph.outputs:
        out.content(FUNCTION.output, value.name.encode("utf-8", "surrogateescape"))
    for name in function.attributes:
        out.content(FUNCTION.attribute, name.encode("utf-8", "surrogateescape"))
    for attribute in function.attribute_defaults:
        out.message(FUNCTION.attribute_proto, write_attribute(attribute))
    for node in graph.nodes:
        out.message(FUNCTION.node, write_node(node))
    out.string(FUNCTION.doc_string, function.doc_string)
    _opsets(out, FUNCTION.opset_import, function.opsets)
    out.string(FUNCTION.domain, function.domain)
    for value in described(graph, outputs=True):
        out.message(FUNCTION.value_info, _value(value))
    out.string(FUNCTION.overload, function.overload)
    out.entries(FUNCTION.metadata_props, (function.metadata or {}).items())
    return out


def _value(value: Value, declaration: Declaration | None = None) -> Pieces:
    said = declaration or Declaration(
        value.declared, value.doc_string, value.metadata or {}, value.leftover
    )
    out = Pieces(said.leftover)
    out.string(VALUE.name, value.name)
    kind = said.type
    if kind is None and declaration is None and value.tensor is not None:
        kind = value.type
    if kind is not None:
        out.message(VALUE.type, write_type(kind))
    out.string(VALUE.doc_string, said.doc_string)
    out.entries(VALUE.metadata_props, said.metadata.items())
    return out


def write_type(type_: Type) -> Pieces:
    """A TypeProto."""
    if type_.verbatim is not None:
        return Pieces(type_.verbatim)
    out = Pieces()
    inner = Pieces()
    match type_:
        case TensorType():
            if type_.element is not None:
                inner.integer(TENSOR_TYPE.elem_type, type_.element)
            if type_.shape is not None:
                inner.message(TENSOR_TYPE.shape, _shape(type_))
            sparse = isinstance(type_, SparseTensorType)
            out.message(TYPE.sparse_tensor_type if sparse else TYPE.tensor_type, inner)
        case SequenceType() | OptionalType():
            if type_.element is not None:
                inner.message(SEQUENCE.elem_type, write_type(type_.element))
            sequence = isinstance(type_, SequenceType)
            out.message(TYPE.sequence_type if sequence else TYPE.optional_type, inner)
        case MapType():
            if type_.key is not None:
                inner.integer(MAP.key_type, type_.key)
            if type_.value is not None:
                inner.message(MAP.value_type, write_type(type_.value))
            out.message(TYPE.map_type, inner)
        case OpaqueType():
            if type_.domain is not None:
                inner.content(OPAQUE.domain, type_.domain.encode())
            if type_.name is not None:
                inner.content(OPAQUE.name, type_.name.encode())
            out.message(TYPE.opaque_type, inner)
    if type_.denotation is not None:
        out.content(TYPE.denotation, type_.denotation.encode())
    return out


def _shape(type_: TensorType) -> Pieces:
    out = Pieces()
    denotations = type_.dim_denotations or (None,) * len(type_.shape or ())
    for size, denotation in zip(type_.shape or (), denotations, strict=True):
        inner = Pieces()
        if isinstance(size, str):
            inner.content(DIMENSION.dim_param, size.encode("utf-8", "surrogateescape"))
        elif size is not None:
            inner.integer(DIMENSION.dim_value, size)
        if denotation is not None:
            inner.content(DIMENSION.denotation, denotation.encode())
        out.message(SHAPE.dim, inner)
    return out


def write_node(node: Node) -> Pieces:
    """A NodeProto."""
    out = Pieces(node.leftover)
    for value in node.inputs:
        name = "" if value is None else value.name
        out.content(NODE.input, name.encode("utf-8", "surrogateescape"))
    for value in node.outputs:
        out.content(NODE.output, value.name.encode("utf-8", "surrogateescape"))
    out.string(NODE.name, node.name)
    out.string(NODE.op_type, node.op_type)
    for attribute in (*node.attributes.values(), *node.surplus):
        out.message(NODE.attribute, write_attribute(attribute))
    out.string(NODE.doc_string, node.doc_string)
    out.string(NODE.domain, node.domain)
    out.string(NODE.overload, node.overload)
    if node.metadata:
        out.entries(NODE.metadata_props, node.metadata.items())
    _records(out, NODE.device_configurations, node.device_configurations)
    return out


def write_attribute(attribute: Attribute) -> Pieces:
    """An AttributeProto."""
    out = Pieces(attribute.leftover)
    omitted = attribute.omitted or ()
    out.string(ATTRIBUTE.name, attribute.name)
    kind, value = attribute.type, attribute.value
    if isinstance(kind, AttributeType) and value is not None and "value" not in omitted:
        if kind.name.endswith("S"):
            _write_values(out, kind, value)
        elif kind in VALUE_TAGS:
            _write_value(out, VALUE_TAGS[kind], value)
    out.string(ATTRIBUTE.doc_string, attribute.doc_string)
    if "type" not in omitted:
        out.integer(ATTRIBUTE.type, int(kind))
    out.string(ATTRIBUTE.ref_attr_name, attribute.reference)
    return out


def _write_values(out: Pieces, kind: AttributeType, values: Sequence[Any]) -> None:
    if isinstance(values, StoredList) and isinstance(values.stored, Run):
        out.raw(values.stored.buffer)
    elif kind == AttributeType.FLOATS:
        for item in values:
            out.raw(encoded(ATTRIBUTE.floats) + _float_bytes(item))
    else:
        for item in values:
            _write_value(out, VALUE_TAGS[kind], item)


def _write_value(out: Pieces, tag: int, value: Any) -> None:
    match value:
        case float():
            out.raw(encoded(tag) + _float_bytes(value))
        case int():
            out.integer(tag, value)
        case bytes():
            out.content(tag, value)
        case Tensor():
            out.message(tag, write_tensor(value, value.name))
        case SparseTensor():
            out.message(tag, _sparse(value, value.name))
        case Graph():
            out.message(tag, write_graph(value))
        case Type():
            out.message(tag, write_type(value))
        case _:
            raise SaveError(f"an attribute holds a {type(value).__name__}, which cannot be written")


def _float_bytes(value: float) -> bytes:
    """A float's four bytes; one beyond float32's range becomes infinite, as in C."""
    try:
        return struct.pack("<f", value)
    except OverflowError:
        return struct.pack("<f", float("inf") if value > 0 else float("-inf"))


def write_tensor(tensor: Tensor, name: str) -> Pieces:
    """A TensorProto."""
    out = Pieces(tensor.leftover)
    for size in tensor.shape:
        out.integer(TENSOR.dims, size)
    if tensor.element:
        out.integer(TENSOR.data_type, tensor.element)
    if tensor.segment is not None:
        inner = Pieces()
        inner.integer(SEGMENT.begin, tensor.segment[0])
        inner.integer(SEGMENT.end, tensor.segment[1])
        out.message(TENSOR.segment, inner)
    out.string(TENSOR.name, name)
    out.string(TENSOR.doc_string, tensor.doc_string)
    _write_data(out, tensor)
    if tensor.metadata:
        out.entries(TENSOR.metadata_props, tensor.metadata.items())
    return out


def _write_data(out: Pieces, tensor: Tensor) -> None:
    match tensor.data:
        case RawData(buffer):
            out.content(TENSOR.raw_data, buffer)
            if isinstance(tensor.data, EmbeddedData):
                out.integer(TENSOR.data_location, 0)
        case PackedData(number, buffer):
            out.content(packed(number << 3), buffer)
        case StringData():
            for item in tensor.data.load():
                out.content(TENSOR.string_data, item)
        case ExternalData():
            out.entries(TENSOR.external_data, tensor.data.entries)
            out.integer(TENSOR.data_location, EXTERNAL)
        case ArrayData(values):
            if tensor.element == DataType.STRING:
                for item in values.flat:
                    out.content(TENSOR.string_data, encode_string(item))
            else:
                out.array(TENSOR.raw_data, values)
        case NoData():
            return
        case other:
            raise SaveError(
                f"tensor '{tensor.name}' holds {type(other).__name__}, which cannot be written"
            )


def array_bytes(values: np.ndarray[Any, Any]) -> Buffer:
    """An array's raw bytes: little-endian, elements below a byte packed."""
    kind = from_numpy(values.dtype)
    values = np.ascontiguousarray(values)
    if kind.bits < 8:
        return pack(values.view(np.uint8), kind.bits).tobytes()
    return values.reshape(-1).view(np.uint8).data


def _sparse(sparse: SparseTensor, name: str) -> Pieces:
    out = Pieces(sparse.leftover)
    if sparse.values is not None:
        out.message(SPARSE.values, write_tensor(sparse.values, name))
    if sparse.indices is not None:
        out.message(SPARSE.indices, write_tensor(sparse.indices, sparse.indices.name))
    for size in sparse.shape:
        out.integer(SPARSE.dims, size)
    return out
