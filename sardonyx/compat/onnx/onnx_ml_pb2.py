"""The messages and enumerations of a model."""

import copyreg
from typing import Any

from sardonyx.format.protos import proto_class, proto_enum

AttributeProto: Any = proto_class("AttributeProto")
DeviceConfigurationProto: Any = proto_class("DeviceConfigurationProto")
FunctionProto: Any = proto_class("FunctionProto")
GraphProto: Any = proto_class("GraphProto")
IntIntListEntryProto: Any = proto_class("IntIntListEntryProto")
ModelProto: Any = proto_class("ModelProto")
NodeDeviceConfigurationProto: Any = proto_class("NodeDeviceConfigurationProto")
NodeProto: Any = proto_class("NodeProto")
OperatorSetIdProto: Any = proto_class("OperatorSetIdProto")
ShardedDimProto: Any = proto_class("ShardedDimProto")
ShardingSpecProto: Any = proto_class("ShardingSpecProto")
SimpleShardedDimProto: Any = proto_class("SimpleShardedDimProto")
SparseTensorProto: Any = proto_class("SparseTensorProto")
StringStringEntryProto: Any = proto_class("StringStringEntryProto")
TensorAnnotation: Any = proto_class("TensorAnnotation")
TensorProto: Any = proto_class("TensorProto")
TensorShapeProto: Any = proto_class("TensorShapeProto")
TrainingInfoProto: Any = proto_class("TrainingInfoProto")
TypeProto: Any = proto_class("TypeProto")
ValueInfoProto: Any = proto_class("ValueInfoProto")

Version: Any = proto_enum("Version")
OperatorStatus: Any = proto_enum("OperatorStatus")
EXPERIMENTAL: int = OperatorStatus.Value("EXPERIMENTAL")
STABLE: int = OperatorStatus.Value("STABLE")

_START_VERSION = 0
IR_VERSION_2017_10_10 = 1
IR_VERSION_2017_10_30 = 2
IR_VERSION_2017_11_3 = 3
IR_VERSION_2019_1_22 = 4
IR_VERSION_2019_3_18 = 5
IR_VERSION_2019_9_19 = 6
IR_VERSION_2020_5_8 = 7
IR_VERSION_2021_7_30 = 8
IR_VERSION_2023_5_5 = 9
IR_VERSION_2024_3_25 = 10
IR_VERSION_2025_05_12 = 11
IR_VERSION_2025_08_26 = 12
IR_VERSION_2025_11_06 = 13
IR_VERSION: int = Version.Value("IR_VERSION")

DESCRIPTOR: Any = ModelProto.DESCRIPTOR.file


def _rebuild(name: str, serialized: bytes) -> Any:
    message: Any = proto_class(name)()
    message.ParseFromString(serialized)
    return message


def _reduce(message: Any) -> tuple[Any, ...]:
    name = message.DESCRIPTOR.full_name.removeprefix(f"{DESCRIPTOR.package}.")
    return _rebuild, (name, message.SerializePartialToString())


def _register_classes(module: str, names: list[str]) -> None:
    """Say where the message classes live, nested ones included, and how to pickle a message."""
    for name in names:
        message: Any = proto_class(name)
        message.__module__ = module
        message.__qualname__ = name
        copyreg.pickle(message, _reduce)
        _register_classes(
            module, [f"{name}.{inner}" for inner in message.DESCRIPTOR.nested_types_by_name]
        )


_register_classes(
    __name__, [name for name in DESCRIPTOR.message_types_by_name if name in globals()]
)
