"""A drop-in for the `onnxruntime` package: the same names over sardonyx's runtime.

>>> from sardonyx.compat import onnxruntime as ort
>>> session = ort.InferenceSession("examples/digits.onnx", providers=["CPUExecutionProvider"])
>>> [argument.name for argument in session.get_outputs()]
['probabilities']
"""

from sardonyx.compat.onnxruntime import capi
from sardonyx.compat.onnxruntime.adapters import AdapterFormat, LoraAdapter
from sardonyx.compat.onnxruntime.capi import onnxruntime_validation
from sardonyx.compat.onnxruntime.devices import (
    OrtAllocatorType,
    OrtArenaCfg,
    OrtCompileApiFlags,
    OrtDevice,
    OrtDeviceMemoryType,
    OrtDeviceVendorId,
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
    preload_dlls,
    print_debug_info,
    register_execution_provider_library,
    set_default_logger_severity,
    set_default_logger_verbosity,
    set_global_thread_pool_sizes,
    set_seed,
    unregister_execution_provider_library,
)
from sardonyx.compat.onnxruntime.session import InferenceSession
from sardonyx.compat.onnxruntime.version import VERSION
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
from sardonyx.runtime import SparseValue as SparseTensor
from sardonyx.runtime.sparse import OrtSparseFormat

__version__ = VERSION
"""The version whose API this is."""
version = VERSION
package_name = "onnxruntime"
cuda_version = ""
SessionIOBinding = IOBinding

__all__ = [
    "AdapterFormat",
    "ExecutionMode",
    "ExecutionOrder",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "LoraAdapter",
    "ModelCompiler",
    "ModelMetadata",
    "NodeArg",
    "OrtAllocatorType",
    "OrtArenaCfg",
    "OrtCompileApiFlags",
    "OrtDevice",
    "OrtDeviceMemoryType",
    "OrtDeviceVendorId",
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
    "RunOptions",
    "SessionIOBinding",
    "SessionOptions",
    "SparseTensor",
    "capi",
    "copy_tensors",
    "create_and_register_allocator",
    "create_and_register_allocator_v2",
    "cuda_version",
    "disable_telemetry_events",
    "enable_telemetry_events",
    "get_all_providers",
    "get_available_providers",
    "get_build_info",
    "get_device",
    "get_ep_devices",
    "get_version_string",
    "has_collective_ops",
    "onnxruntime_validation",
    "package_name",
    "preload_dlls",
    "print_debug_info",
    "register_execution_provider_library",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
    "set_global_thread_pool_sizes",
    "set_seed",
    "unregister_execution_provider_library",
    "version",
]
