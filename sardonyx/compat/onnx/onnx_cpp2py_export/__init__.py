"""onnx's native module, as far as other packages reach into it."""

from sardonyx.compat.onnx.onnx_cpp2py_export import defs

__all__ = ["defs"]
