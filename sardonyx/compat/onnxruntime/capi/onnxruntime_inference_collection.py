"""onnxruntime's classes in the module where it defines them."""

from sardonyx.compat.onnxruntime.adapters import AdapterFormat
from sardonyx.compat.onnxruntime.devices import OrtDevice, OrtDeviceVendorId, copy_tensors
from sardonyx.compat.onnxruntime.model_compiler import ModelCompiler
from sardonyx.compat.onnxruntime.session import InferenceSession
from sardonyx.runtime import IOBinding, OrtValue
from sardonyx.runtime import SparseValue as SparseTensor

Session = InferenceSession

__all__ = [
    "AdapterFormat",
    "IOBinding",
    "InferenceSession",
    "ModelCompiler",
    "OrtDevice",
    "OrtDeviceVendorId",
    "OrtValue",
    "Session",
    "SparseTensor",
    "copy_tensors",
]
