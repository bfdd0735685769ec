"""The field table against the messages of the installed `onnx`."""

import onnx
import pytest
from google.protobuf import descriptor_pb2
from onnx import onnx_data_pb2, onnx_ml_pb2, onnx_operators_ml_pb2

from sardonyx.format.fields import IR_VERSION, enums, messages
from sardonyx.format.protos import proto_class, proto_enum


def described() -> dict[str, descriptor_pb2.DescriptorProto]:
    found = {}
    for module in (onnx_ml_pb2, onnx_data_pb2, onnx_operators_ml_pb2):
        file = descriptor_pb2.FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(file)
        waiting = [(message.name, message) for message in file.message_type]
        while waiting:
            name, message = waiting.pop()
            found[name] = message
            waiting += [(f"{name}.{inner.name}", inner) for inner in message.nested_type]
    return found


def test_every_message_is_in_the_table() -> None:
    assert set(messages()) == set(described()) and IR_VERSION == onnx.IR_VERSION


@pytest.mark.parametrize("name", sorted(described()))
def test_fields_are_the_same(name: str) -> None:
    ours = descriptor_pb2.DescriptorProto()
    proto_class(name).DESCRIPTOR.CopyToProto(ours)
    theirs = described()[name]

    def facts(message: descriptor_pb2.DescriptorProto) -> set[tuple[object, ...]]:
        return {
            (row.name, row.number, row.type, row.label, row.type_name, row.options.packed,
             row.HasField("oneof_index"))
            for row in message.field
        }  # fmt: skip

    assert facts(ours) == facts(theirs)
    assert [item.name for item in ours.oneof_decl] == [item.name for item in theirs.oneof_decl]


@pytest.mark.parametrize("name", sorted(enums()))
def test_enumerations_are_the_same(name: str) -> None:
    module: object = onnx_ml_pb2
    for part in name.split("."):
        module = getattr(module if hasattr(module, part) else onnx, part)
    assert dict(proto_enum(name).items()) == dict(module.items())
