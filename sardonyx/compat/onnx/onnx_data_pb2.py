"""The messages of values that are not single tensors: sequences, maps and optionals."""

from typing import Any

from sardonyx.compat.onnx.onnx_ml_pb2 import _register_classes
from sardonyx.format.protos import proto_class

MapProto: Any = proto_class("MapProto")
OptionalProto: Any = proto_class("OptionalProto")
SequenceProto: Any = proto_class("SequenceProto")

DESCRIPTOR: Any = SequenceProto.DESCRIPTOR.file

_register_classes(__name__, ["MapProto", "OptionalProto", "SequenceProto"])
