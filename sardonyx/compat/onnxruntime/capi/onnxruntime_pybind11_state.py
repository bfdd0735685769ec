"""The names of onnxruntime's native module."""

from typing import Any

from sardonyx.compat.onnxruntime.adapters import AdapterFormat, LoraAdapter
from sardonyx.compat.onnxruntime.devices import (
    OrtAllocatorType,
    OrtArenaCfg,
    OrtCompileApiFlags,
    OrtDevice,
    OrtDeviceMemoryType,
    OrtEpAssignedNode,
    OrtEpAssignedSubgraph,
    OrtEpDevice,
    OrtExecutionProviderDevicePolicy,
    OrtExternalInitializerInfo,
    OrtHardwareDevice,
    OrtHardwareDeviceType,
    OrtMemoryInfo,
    OrtMemoryInfoDeviceType,
    OrtMemType,
    OrtSyncStream,
    copy_tensors,
    get_ep_devices,
)
from sardonyx.compat.onnxruntime.errors import (
    DeviceReset,
    EngineError,
    EPFail,
    Fail,
    InvalidArgument,
    InvalidGraph,
    InvalidProtobuf,
    ModelLoadCanceled,
    ModelLoaded,
    ModelRequiresCompilation,
    NoModel,
    NoSuchFile,
    NotFound,
    NotImplemented,
    RuntimeException,
)
from sardonyx.compat.onnxruntime.model_compiler import ModelCompiler
from sardonyx.compat.onnxruntime.module import (
    create_and_register_allocator,
    create_and_register_allocator_v2,
    disable_telemetry_events,
    enable_telemetry_events,
    get_all_providers,
    get_available_providers,
    get_build_info,
    get_device,
    get_version_string,
    has_collective_ops,
    register_execution_provider_library,
    set_default_logger_severity,
    set_default_logger_verbosity,
    set_global_thread_pool_sizes,
    set_seed,
    unregister_execution_provider_library,
)
from sardonyx.compat.onnxruntime.session import InferenceSession, OrtValueVector
from sardonyx.runtime import (
    ExecutionMode,
    ExecutionOrder,
    GraphOptimizationLevel,
    IOBinding,
    ModelMetadata,
    NodeArg,
    OrtValue,
    RunOptions,
    SessionOptions,
)
from sardonyx.runtime.sparse import CooView as SparseCooView
from sardonyx.runtime.sparse import CsrView as SparseCsrView
from sardonyx.runtime.sparse import OrtSparseFormat
from sardonyx.runtime.sparse import SparseValue as SparseTensor

SessionIOBinding = IOBinding


def get_default_session_options() -> SessionOptions:
    """Options with nothing changed."""
    return SessionOptions()


def get_all_operator_schema() -> list[Any]:
    """The schemas of all operators, in all versions."""
    from sardonyx.compat.onnx import defs

    return list(defs.get_all_schemas_with_history())


def get_hardware_devices() -> list[OrtHardwareDevice]:
    """The devices that compute: one."""
    return [device.device for device in get_ep_devices()]


def is_dlpack_uint8_tensor(tensor: Any) -> bool:
    """True where a DLPack tensor holds uint8, in which other libraries pass booleans."""
    return OrtValue.from_dlpack(tensor).data_type() == "tensor(uint8)"


__all__ = [
    "AdapterFormat",
    "DeviceReset",
    "EPFail",
    "EngineError",
    "ExecutionMode",
    "ExecutionOrder",
    "Fail",
    "GraphOptimizationLevel",
    "InferenceSession",
    "InvalidArgument",
    "InvalidGraph",
    "InvalidProtobuf",
    "LoraAdapter",
    "ModelCompiler",
    "ModelLoadCanceled",
    "ModelLoaded",
    "ModelMetadata",
    "ModelRequiresCompilation",
    "NoModel",
    "NoSuchFile",
    "NodeArg",
    "NotFound",
    "NotImplemented",
    "OrtAllocatorType",
    "OrtArenaCfg",
    "OrtCompileApiFlags",
    "OrtDevice",
    "OrtDeviceMemoryType",
    "OrtEpAssignedNode",
    "OrtEpAssignedSubgraph",
    "OrtEpDevice",
    "OrtExecutionProviderDevicePolicy",
    "OrtExternalInitializerInfo",
    "OrtHardwareDevice",
    "OrtHardwareDeviceType",
    "OrtMemType",
    "OrtMemoryInfo",
    "OrtMemoryInfoDeviceType",
    "OrtSparseFormat",
    "OrtSyncStream",
    "OrtValue",
    "OrtValueVector",
    "RunOptions",
    "RuntimeException",
    "SessionIOBinding",
    "SessionOptions",
    "SparseCooView",
    "SparseCsrView",
    "SparseTensor",
    "copy_tensors",
    "create_and_register_allocator",
    "create_and_register_allocator_v2",
    "disable_telemetry_events",
    "enable_telemetry_events",
    "get_all_operator_schema",
    "get_all_providers",
    "get_available_providers",
    "get_build_info",
    "get_default_session_options",
    "get_device",
    "get_ep_devices",
    "get_hardware_devices",
    "get_version_string",
    "has_collective_ops",
    "is_dlpack_uint8_tensor",
    "register_execution_provider_library",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
    "set_global_thread_pool_sizes",
    "set_seed",
    "unregister_execution_provider_library",
]
