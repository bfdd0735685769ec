"""Messages to ONNX's textual syntax: as ONNX prints them, or so that nothing is lost."""

from typing import Any

from sardonyx.format.text_lexer import Reason, refuse
from sardonyx.format.text_print_exact import ExactPrinter
from sardonyx.format.text_print_standard import StandardPrinter


def to_text(message: Any, *, exact: bool) -> str:
    """A model, graph, function, node or attribute as text.

    With `exact`, parsing the text gives an equal message; without, the text is what ONNX prints,
    which leaves out what its syntax has no place for.

    >>> from sardonyx.format.text_parse import parse_node
    >>> node = parse_node('y = Concat <axis = 1> (a, "b.1")')
    >>> print(to_text(node, exact=True))
    y = Concat <axis: int = 1> (a, "b.1")
    """
    printer = ExactPrinter() if exact else StandardPrinter()
    try:
        text = _dispatch(printer, message, exact)
        text.encode()
    except RecursionError:
        hint = "call the printer with a shallower stack, or flatten the message"
        raise refuse("too much nesting", hint, Reason.DEPTH) from None
    except UnicodeEncodeError:
        raise refuse(
            "a string of the message is not UTF-8, so the standard syntax cannot show it",
            "print it with exact=True",
            Reason.ENCODING,
        ) from None
    return text


def _dispatch(printer: StandardPrinter, message: Any, exact: bool) -> str:
    match getattr(getattr(message, "DESCRIPTOR", None), "name", None):
        case "ModelProto":
            return printer.model(message, 0)
        case "GraphProto":
            return printer.graph(message, 0)
        case "FunctionProto":
            return printer.function(message, 0)
        case "NodeProto":
            return printer.node(message, 0) if exact else f"   {printer.node(message, 0)}\n"
        case "AttributeProto":
            return printer.attribute(message, 0)
    given = type(message).__name__
    raise TypeError(f"{given} has no text; give a model, graph, function, node or attribute")
