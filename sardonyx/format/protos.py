"""Protobuf message classes built from the field table, in a private pool.

The pool is our own, so the real `onnx` package can be imported in the same process.
"""

from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
from google.protobuf.message import Message as ProtoMessage

from sardonyx.format.fields import Field, Message, enums, messages

_FILE = "sardonyx/onnx.proto"
_PACKAGE = "onnx"
_Descriptor = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "double": _Descriptor.TYPE_DOUBLE,
    "float": _Descriptor.TYPE_FLOAT,
    "int64": _Descriptor.TYPE_INT64,
    "uint64": _Descriptor.TYPE_UINT64,
    "int32": _Descriptor.TYPE_INT32,
    "string": _Descriptor.TYPE_STRING,
    "bytes": _Descriptor.TYPE_BYTES,
}


def _describe_field(field: Field, target: Any) -> None:
    target.name, target.number = field.name, field.number
    target.label = _Descriptor.LABEL_REPEATED if field.repeated else _Descriptor.LABEL_OPTIONAL
    if field.kind in _SCALARS:
        target.type = _SCALARS[field.kind]
    else:
        target.type = _Descriptor.TYPE_ENUM if field.kind in enums() else _Descriptor.TYPE_MESSAGE
        target.type_name = f".{_PACKAGE}.{field.kind}"
    if field.packed:
        target.options.packed = True


def _describe_message(message: Message, target: Any) -> None:
    target.name = message.name.rpartition(".")[2]
    for field in message.fields:
        described = target.field.add()
        _describe_field(field, described)
        if field.oneof:
            if not target.oneof_decl:
                target.oneof_decl.add().name = field.oneof
            described.oneof_index = 0


def _describe_file() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(name=_FILE, package=_PACKAGE, syntax="proto2")
    described: dict[str, Any] = {}
    for name, message in messages().items():
        outer = name.rpartition(".")[0]
        target = described[outer].nested_type.add() if outer else file.message_type.add()
        described[name] = target
        _describe_message(message, target)
    for name, values in enums().items():
        outer, _, inner = name.rpartition(".")
        enum = described[outer].enum_type.add() if outer else file.enum_type.add()
        enum.name = inner
        for key, number in values.items():
            enum.value.add(name=key, number=number)
    return file


@cache
def _pool() -> descriptor_pool.DescriptorPool:
    pool = descriptor_pool.DescriptorPool()
    pool.Add(_describe_file())
    return pool


@cache
def proto_class(name: str) -> type[ProtoMessage]:
    """The message class called `name`, for example `"ModelProto"`.

    >>> proto_class("NodeProto")(op_type="Relu").op_type
    'Relu'
    """
    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"{_PACKAGE}.{name}"))


@cache
def proto_enum(name: str) -> Any:
    """The enumeration called `name` as protobuf's wrapper (`Name`, `Value`, `items`).

    >>> proto_enum("TensorProto.DataType").Value("FLOAT16")
    10
    """
    return EnumTypeWrapper(_pool().FindEnumTypeByName(f"{_PACKAGE}.{name}"))
