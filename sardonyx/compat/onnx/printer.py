"""Messages as text in ONNX's textual syntax, character for character as onnx prints them."""

from typing import Any

from sardonyx import errors
from sardonyx.compat.onnx.onnx_ml_pb2 import FunctionProto, GraphProto, ModelProto, NodeProto
from sardonyx.format import text_print
from sardonyx.format.text_lexer import Reason, refusal


class InferenceError(Exception):
    """A tensor's dimensions and raw bytes do not fit together.

    >>> issubclass(InferenceError, ValueError)
    False
    """


def to_text(proto: Any) -> str:
    """The text of a model, function, graph or node.

    >>> print(to_text(NodeProto(op_type="Relu", input=["x"], output=["y"])), end="")
       y = Relu (x)
    """
    if not isinstance(proto, ModelProto | FunctionProto | GraphProto | NodeProto):
        raise TypeError(f"{type(proto).__name__} is no model, function, graph or node")
    try:
        return text_print.to_text(proto, exact=False)
    except errors.TensorError as error:
        raise InferenceError(str(error)) from error
    except errors.TextError as error:
        if refusal(error) == Reason.DEPTH:
            raise ValueError(str(error)) from error
        raise UnicodeDecodeError("utf-8", b"", 0, 0, str(error)) from error
