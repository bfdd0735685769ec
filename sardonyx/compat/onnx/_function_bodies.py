"""Functions that operators stand for, as messages."""

from collections.abc import Callable

from sardonyx.errors import ConversionError
from sardonyx.format.files import DataFolder
from sardonyx.format.read import Reader, Scope
from sardonyx.format.read_node import read_node
from sardonyx.format.read_types import read_type
from sardonyx.format.tags import FUNCTION, encoded
from sardonyx.format.write import write_function
from sardonyx.graph import Function, Node, Type
from sardonyx.ops.functions import is_function, node_function


def function_body(
    domain: str,
    op_type: str,
    node: bytes,
    opset_imports: dict[str, int],
    *,
    input_types: Callable[[], list[bytes]],
) -> bytes | None:
    """The FunctionProto that a NodeProto's operator stands for, or None where it is no function.

    The body belongs to the operator sets imported and to the node's attributes; `input_types` is
    asked for the TypeProtos of its inputs where the body depends on them.

    >>> from sardonyx.compat.onnx import FunctionProto, helper
    >>> node = helper.make_node("GreaterOrEqual", ["a", "b"], ["c"]).SerializeToString()
    >>> body = function_body("", "GreaterOrEqual", node, {"": 16}, input_types=list)
    >>> [node.op_type for node in FunctionProto.FromString(body).node]
    ['Greater', 'Equal', 'Or']
    """
    if domain not in opset_imports or not is_function(domain, op_type, opset_imports):
        return None

    def types() -> list[Type | None]:
        try:
            contents = input_types()
        except RuntimeError:
            return []
        return [read_type(content, 0, len(content)) for content in contents]

    try:
        return function_bytes(node_function(_read_node(node), opset_imports, types))
    except ConversionError as error:
        raise RuntimeError(f"{op_type} cannot be replaced by its function: {error}") from error


def function_bytes(function: Function) -> bytes:
    """A function as the bytes of a FunctionProto, in which the default domain is named too."""
    content = write_function(function).joined()
    return content if function.domain else content + encoded(FUNCTION.domain) + b"\0"


def _read_node(content: bytes) -> Node:
    reader = Reader(memoryview(content), DataFolder(None).open)
    return read_node(reader, 0, len(content), Scope())
