"""A drop-in for the `onnx` package: `from sardonyx.compat import onnx`.

>>> from sardonyx.compat import onnx
>>> onnx.TensorProto.DataType.Name(onnx.TensorProto.FLOAT16)
'FLOAT16'
"""

from importlib import import_module
from typing import Any

from sardonyx.compat.onnx import _representation
from sardonyx.compat.onnx._files import (
    load_model,
    load_model_from_string,
    load_tensor,
    load_tensor_from_string,
    save_model,
    save_tensor,
)
from sardonyx.compat.onnx.external_data_helper import (
    convert_model_to_external_data,
    load_external_data_for_model,
    write_external_data_tensors,
)
from sardonyx.compat.onnx.onnx_data_pb2 import MapProto, OptionalProto, SequenceProto
from sardonyx.compat.onnx.onnx_ml_pb2 import (
    EXPERIMENTAL,
    IR_VERSION,
    IR_VERSION_2017_10_10,
    IR_VERSION_2017_10_30,
    IR_VERSION_2017_11_3,
    IR_VERSION_2019_1_22,
    IR_VERSION_2019_3_18,
    IR_VERSION_2019_9_19,
    IR_VERSION_2020_5_8,
    IR_VERSION_2021_7_30,
    IR_VERSION_2023_5_5,
    IR_VERSION_2024_3_25,
    STABLE,
    AttributeProto,
    DeviceConfigurationProto,
    FunctionProto,
    GraphProto,
    IntIntListEntryProto,
    ModelProto,
    NodeDeviceConfigurationProto,
    NodeProto,
    OperatorSetIdProto,
    OperatorStatus,
    ShardedDimProto,
    ShardingSpecProto,
    SimpleShardedDimProto,
    SparseTensorProto,
    StringStringEntryProto,
    TensorAnnotation,
    TensorProto,
    TensorShapeProto,
    TrainingInfoProto,
    TypeProto,
    ValueInfoProto,
    Version,
)
from sardonyx.compat.onnx.onnx_operators_ml_pb2 import OperatorProto, OperatorSetProto

__all__ = [
    "EXPERIMENTAL",
    "IR_VERSION",
    "IR_VERSION_2017_10_10",
    "IR_VERSION_2017_10_30",
    "IR_VERSION_2017_11_3",
    "IR_VERSION_2019_1_22",
    "IR_VERSION_2019_3_18",
    "IR_VERSION_2019_9_19",
    "IR_VERSION_2020_5_8",
    "IR_VERSION_2021_7_30",
    "IR_VERSION_2023_5_5",
    "IR_VERSION_2024_3_25",
    "ONNX_ML",
    "STABLE",
    "AttributeProto",
    "DeviceConfigurationProto",
    "FunctionProto",
    "GraphProto",
    "IntIntListEntryProto",
    "MapProto",
    "ModelProto",
    "NodeDeviceConfigurationProto",
    "NodeProto",
    "OperatorProto",
    "OperatorSetIdProto",
    "OperatorSetProto",
    "OperatorStatus",
    "OptionalProto",
    "SequenceProto",
    "ShardedDimProto",
    "ShardingSpecProto",
    "SimpleShardedDimProto",
    "SparseTensorProto",
    "StringStringEntryProto",
    "TensorAnnotation",
    "TensorProto",
    "TensorShapeProto",
    "TrainingInfoProto",
    "TypeProto",
    "ValueInfoProto",
    "Version",
    "checker",
    "compose",
    "convert_model_to_external_data",
    "defs",
    "helper",
    "load",
    "load_external_data_for_model",
    "load_from_string",
    "load_model",
    "load_model_from_string",
    "load_tensor",
    "load_tensor_from_string",
    "numpy_helper",
    "parser",
    "printer",
    "save",
    "save_model",
    "save_tensor",
    "shape_inference",
    "utils",
    "version_converter",
    "write_external_data_tensors",
]

__version__ = "1.23.2"
"""The release of onnx whose interface this is."""

ONNX_ML = True

load = load_model
load_from_string = load_model_from_string
save = save_model

_representation.install()

_SUBMODULES = frozenset(
    {
        "backend",
        "checker",
        "compose",
        "defs",
        "external_data_helper",
        "helper",
        "hub",
        "inliner",
        "mapping",
        "model_container",
        "numpy_helper",
        "onnx_data_pb",
        "onnx_operators_pb",
        "onnx_pb",
        "parser",
        "printer",
        "reference",
        "serialization",
        "shape_inference",
        "subbyte",
        "tools",
        "utils",
        "version",
        "version_converter",
    }
)


def __getattr__(name: str) -> Any:
    """Import a submodule at its first use."""
    full_name = f"{__name__}.{name}"
    if name in _SUBMODULES:
        try:
            return import_module(full_name)
        except ModuleNotFoundError as error:
            if error.name != full_name:
                raise
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_SUBMODULES})
