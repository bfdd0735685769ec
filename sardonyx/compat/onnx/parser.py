"""Messages from ONNX's textual syntax, exactly as onnx reads it."""

from typing import Any

from google.protobuf.message import DecodeError

from sardonyx.errors import TextError
from sardonyx.format.text_lexer import Reason, refusal
from sardonyx.format.text_parse import parse_standard


class ParseError(Exception):
    """The text is not in ONNX's textual syntax.

    >>> issubclass(ParseError, ValueError)
    False
    """


_RAISED = {
    Reason.SYNTAX: ParseError,
    Reason.DIGITS: ValueError,
    Reason.RANGE: IndexError,
    Reason.DECIMAL: RuntimeError,
    Reason.DEPTH: DecodeError,
    Reason.ENCODING: TypeError,
}
"""What onnx raises, or lets through from below, for each way a text can be wrong."""


def _parse(kind: str, text: str) -> Any:
    try:
        return parse_standard(kind, text)
    except TextError as error:
        raise _RAISED[refusal(error)](str(error)) from error


def parse_model(model_text: str) -> Any:
    """The ModelProto a text describes.

    >>> parse_model('<ir_version: 10, opset_import: ["" : 21]> g (x) => (y) {}').ir_version
    10
    """
    return _parse("ModelProto", model_text)


def parse_graph(graph_text: str) -> Any:
    """The GraphProto a text describes.

    >>> parse_graph("g (float[N] x) => (y) { y = Relu (x) }").node[0].op_type
    'Relu'
    """
    return _parse("GraphProto", graph_text)


def parse_function(function_text: str) -> Any:
    """The FunctionProto a text describes.

    >>> parse_function('<domain: "d", opset_import: ["" : 21]> f (x) => (y) {}').name
    'f'
    """
    return _parse("FunctionProto", function_text)


def parse_node(node_text: str) -> Any:
    """The NodeProto a text describes.

    >>> parse_node("y = LeakyRelu <alpha = 0.5> (x)").attribute[0].f
    0.5
    """
    return _parse("NodeProto", node_text)
