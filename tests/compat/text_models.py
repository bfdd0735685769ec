"""Messages of either module from ONNX's textual syntax."""

from typing import Any

import onnx as real
import pytest


def _parse(message: Any, parse: Any, text: str) -> Any:
    try:
        return message.FromString(parse(text).SerializeToString())
    except real.parser.ParseError as error:
        pytest.fail(f"the text of this case is wrong: {error}")


def model(o: Any, text: str) -> Any:
    """The model in ONNX's textual syntax as a message of module `o`."""
    return _parse(o.ModelProto, real.parser.parse_model, text)


def graph(o: Any, text: str) -> Any:
    """The graph in ONNX's textual syntax as a message of module `o`."""
    return _parse(o.GraphProto, real.parser.parse_graph, text)


def function(o: Any, text: str) -> Any:
    """The function in ONNX's textual syntax as a message of module `o`."""
    return _parse(o.FunctionProto, real.parser.parse_function, text)
