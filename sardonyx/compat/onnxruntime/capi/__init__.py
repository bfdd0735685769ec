"""Where users of onnxruntime find its exceptions."""

from sardonyx.compat.onnxruntime.capi import onnxruntime_pybind11_state
from sardonyx.compat.onnxruntime.capi import onnxruntime_pybind11_state as _pybind_state

__all__ = ["_pybind_state", "onnxruntime_pybind11_state"]
