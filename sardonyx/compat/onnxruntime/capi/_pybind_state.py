"""The same names as `onnxruntime_pybind11_state`, where onnxruntime's own modules look for them."""

from sardonyx.compat.onnxruntime.capi.onnxruntime_pybind11_state import *  # noqa: F403
