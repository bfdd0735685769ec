"""The standard operators as classes: `load_op("", "Celu").eval(x, alpha=0.5)`."""

from sardonyx.compat.onnx.reference.ops._op_list import load_op

__all__ = ["load_op"]
