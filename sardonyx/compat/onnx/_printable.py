"""Short text for messages, for people to read; `printer.to_text` writes text that parses."""

import warnings
from typing import Any

from sardonyx.compat.onnx._mapping import FIELD_OF_STORAGE, TENSOR_TYPE_MAP
from sardonyx.compat.onnx.onnx_ml_pb2 import TensorProto

_LONGEST_TEXT = 64


def _shorten(value: str | bytes) -> str:
    """Text of at most 64 characters and the count of those left out; broken UTF-8 is skipped."""
    text = value.decode("utf-8", errors="ignore") if isinstance(value, bytes) else str(value)
    if len(text) < _LONGEST_TEXT:
        return text
    return f"{text[:_LONGEST_TEXT]}...<+len={len(text) - _LONGEST_TEXT}>"


def _float_text(value: float) -> str:
    return f"{value:.15g}"


def _single_text(attr: Any) -> str | None:
    """The text of the first single-valued field that is set."""
    if attr.HasField("f"):
        return _float_text(attr.f)
    if attr.HasField("i"):
        return str(attr.i)
    if attr.HasField("s"):
        return repr(_shorten(attr.s))
    if attr.HasField("t"):
        if attr.t.dims:
            return "<Tensor>"
        field = FIELD_OF_STORAGE[TENSOR_TYPE_MAP[attr.t.data_type].storage_dtype]
        return f"<Scalar Tensor {getattr(attr.t, field)}>"
    if attr.HasField("g"):
        return f"<graph {attr.g.name}>"
    if attr.HasField("tp"):
        return f"<Type Proto {attr.tp}>"
    if attr.HasField("sparse_tensor"):
        return "<Sparse Tensor>"
    return None


def _list_text(attr: Any) -> str:
    """The text of the first list that is not empty."""
    if attr.floats:
        return f"[{', '.join(map(_float_text, attr.floats))}]"
    if attr.ints:
        return f"[{', '.join(map(str, attr.ints))}]"
    if attr.strings:
        return str([_shorten(text) for text in attr.strings])
    if attr.tensors:
        return "[<Tensor>, ...]"
    if attr.sparse_tensors:
        return "[<Sparse Tensor>, ...]"
    if attr.type_protos:
        return f"[ {', '.join(f'<Type Proto {kind}>' for kind in attr.type_protos)} ]"
    if attr.graphs:
        return f"[ {', '.join(f'<graph {graph.name}>' for graph in attr.graphs)} ]"
    return "<Unknown>"


def _attribute_text(attr: Any) -> str:
    single = _single_text(attr)
    return f"{attr.name} = {_list_text(attr) if single is None else single}"


def _graphs_in(attr: Any) -> list[Any]:
    return [attr.g] if attr.HasField("g") else list(attr.graphs)


def printable_attribute(attr: Any, subgraphs: bool = False) -> str | tuple[str, list[Any]]:
    """One line for an attribute; with `subgraphs`, also the list of graphs it holds.

    >>> from sardonyx.compat.onnx import helper
    >>> helper.printable_attribute(helper.make_attribute("axes", [0, 2]))
    'axes = [0, 2]'
    """
    text = _attribute_text(attr)
    return (text, _graphs_in(attr)) if subgraphs else text


def printable_dim(dim: Any) -> str:
    """A dimension's size or name; `?` if neither is known.

    >>> from sardonyx.compat.onnx import TensorShapeProto, helper
    >>> helper.printable_dim(TensorShapeProto.Dimension(dim_param="batch"))
    'batch'
    """
    field = dim.WhichOneof("value")
    return "?" if field is None else str(getattr(dim, field))


def _shape_text(sizes: list[str]) -> str:
    return f", {'x'.join(sizes)}" if sizes else ", scalar"


def printable_type(t: Any) -> str:
    """A tensor type's element type and shape; other kinds are only named.

    >>> from sardonyx.compat.onnx import TensorProto, helper
    >>> helper.printable_type(helper.make_tensor_type_proto(TensorProto.FLOAT, ["n", 3]))
    'FLOAT, nx3'
    """
    kind = t.WhichOneof("value")
    if kind is None:
        return ""
    if kind != "tensor_type":
        return f"Unknown type {kind}"
    text: str = TensorProto.DataType.Name(t.tensor_type.elem_type)
    if t.tensor_type.HasField("shape"):
        text += _shape_text([printable_dim(dim) for dim in t.tensor_type.shape.dim])
    return text


def printable_value_info(v: Any) -> str:
    """A value's name and type.

    >>> from sardonyx.compat.onnx import TensorProto, helper
    >>> helper.printable_value_info(helper.make_tensor_value_info("x", TensorProto.INT64, []))
    '%x[INT64, scalar]'
    """
    return f"%{v.name}[{printable_type(v.type)}]"


def printable_tensor_proto(t: Any) -> str:
    """A tensor's name, element type and shape, without its values.

    >>> from sardonyx.compat.onnx import TensorProto, helper
    >>> helper.printable_tensor_proto(helper.make_tensor("w", TensorProto.FLOAT, [2], [1, 2]))
    '%w[FLOAT, 2]'
    """
    name = TensorProto.DataType.Name(t.data_type)
    return f"%{t.name}[{name}{_shape_text([str(size) for size in t.dims])}]"


def _node_text(node: Any, prefix: str) -> tuple[str, list[Any]]:
    attributes: list[str] = []
    graphs: list[Any] = []
    for attribute in node.attribute:
        attributes.append(_attribute_text(attribute))
        graphs.extend(_graphs_in(attribute))
    results = ", ".join(f"%{name}" for name in node.output)
    inputs = ", ".join(f"%{name}" for name in node.input)
    options = f"[{', '.join(sorted(attributes))}]" if attributes else ""
    equals = f"{results} = " if node.output else ""
    return f"{prefix}{equals}{node.op_type}{options}({inputs})", graphs


def printable_node(
    node: Any, prefix: str = "", subgraphs: bool = False
) -> str | tuple[str, list[Any]]:
    """One line for a node; with `subgraphs`, also the list of graphs in its attributes.

    >>> from sardonyx.compat.onnx import helper
    >>> helper.printable_node(helper.make_node("Add", ["a", "b"], ["c"]), prefix="  ")
    '  %c = Add(%a, %b)'
    """
    text, graphs = _node_text(node, prefix)
    return (text, graphs) if subgraphs else text


def printable_graph(graph: Any, prefix: str = "") -> str:
    """A whole graph, a line a node, graphs inside nodes after it. Prefer `printer.to_text`.

    >>> import warnings
    >>> from sardonyx.compat.onnx import helper
    >>> warnings.simplefilter("ignore", DeprecationWarning)
    >>> node = helper.make_node("Relu", ["x"], ["y"])
    >>> y = helper.make_empty_tensor_value_info("y")
    >>> print(helper.printable_graph(helper.make_graph([node], "g", [], [y])))
    graph g {
      %y = Relu(%x)
      return %y
    }
    """
    warnings.warn(
        "printable_graph is deprecated since onnx 1.19; printer.to_text gives text that parses",
        DeprecationWarning,
        stacklevel=2,
    )
    return _graph_text(graph, prefix)


def _graph_text(graph: Any, prefix: str) -> str:
    lines = _header_lines(graph, prefix)
    inner_graphs: list[Any] = []
    for node in graph.node:
        text, inner = _node_text(node, f"{prefix}  ")
        lines.append(text)
        inner_graphs.extend(inner)
    results = ", ".join(f"%{output.name}" for output in graph.output)
    lines.append(f"{prefix}  return {results}" if results else f"{prefix}  return")
    lines.append(f"{prefix}}}")
    lines.extend(f"\n{_graph_text(inner, '')}" for inner in inner_graphs)
    return "\n".join(lines)


def _header_lines(graph: Any, prefix: str) -> list[str]:
    """The lines up to the opening brace: plain inputs, inputs with a default, initializers."""
    pending = ["graph", graph.name]
    if not graph.input:
        return [f"{prefix}{' '.join([*pending, '{'])}"]
    lines: list[str] = []

    def list_values(values: list[str]) -> None:
        lines.append(prefix + " ".join(pending))
        lines.extend(f"{prefix}  {value}" for value in values)
        pending.clear()

    stored = {tensor.name for tensor in graph.initializer}
    fed = [printable_value_info(value) for value in graph.input if value.name not in stored]
    defaulted = [printable_value_info(value) for value in graph.input if value.name in stored]
    pending.append("(")
    if fed:
        list_values(fed)
    pending.append(")")
    if defaulted:
        pending.append("optional inputs with matching initializers (")
        list_values(defaulted)
        pending.append(")")
    if len(defaulted) < len(stored):
        inputs = {value.name for value in graph.input}
        pending.append("initializers (")
        list_values(
            [printable_tensor_proto(item) for item in graph.initializer if item.name not in inputs]
        )
        pending.append(")")
    lines.append(prefix + " ".join([*pending, "{"]))
    return lines
