"""The messages that describe a set of operators."""

from typing import Any

from sardonyx.compat.onnx.onnx_ml_pb2 import _register_classes
from sardonyx.format.protos import proto_class

OperatorProto: Any = proto_class("OperatorProto")
OperatorSetProto: Any = proto_class("OperatorSetProto")

DESCRIPTOR: Any = OperatorSetProto.DESCRIPTOR.file

_register_classes(__name__, ["OperatorProto", "OperatorSetProto"])
