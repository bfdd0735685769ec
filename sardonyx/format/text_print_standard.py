"""Messages to ONNX's textual syntax, character for character as ONNX itself prints them."""

import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.errors import TensorError
from sardonyx.format.text_attributes import FIELDS, item_type
from sardonyx.format.text_fields import check_print_depth
from sardonyx.format.text_numbers import format_floats
from sardonyx.format.text_tensors import TYPE_NAMES, format_numbers, listed_type
from sardonyx.graph.attribute import LISTS, AttributeType

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_EXTERNAL = 1
_STEP = 3
_HIDDEN = frozenset(
    kind
    for kind in map(DataType, TYPE_NAMES)
    if 0 < kind.bits < 8 or kind in (DataType.COMPLEX64, DataType.COMPLEX128)
)
"""Element types whose values are not shown."""


class StandardPrinter:
    """What each kind of message looks like; `depth` counts the messages around it."""

    def __init__(self) -> None:
        self.indent = _STEP

    def text(self, value: str | bytes) -> str:
        """A string field; bytes that are not UTF-8 stay recognisable as lone surrogates."""
        return value if isinstance(value, str) else value.decode("utf-8", "surrogateescape")

    def quoted(self, value: str | bytes) -> str:
        """A string in double quotes."""
        return '"' + self.text(value).replace("\\", "\\\\").replace('"', '\\"') + '"'

    def name(self, value: str | bytes) -> str:
        """A name, in double quotes unless it is an identifier."""
        return self.text(value) if self.is_identifier(value) else self.quoted(value)

    def is_identifier(self, value: str | bytes) -> bool:
        """True for names that need no quotes."""
        return isinstance(value, str) and IDENTIFIER.fullmatch(value) is not None

    def names(self, values: Iterable[str | bytes]) -> str:
        """Names separated by commas."""
        return ", ".join(map(self.name, values))

    def pairs(self, entries: Iterable[Any]) -> str:
        """Keys and values in square brackets."""
        inner = (f"{self.quoted(entry.key)}: {self.quoted(entry.value)}" for entry in entries)
        return f"[{', '.join(inner)}]"

    def dimension(self, dimension: Any, depth: int) -> str:
        """A number, a name or `?`."""
        if dimension.HasField("dim_value"):
            return str(dimension.dim_value)
        return self.name(dimension.dim_param) if dimension.HasField("dim_param") else "?"

    def tensor_type(self, kind: Any, depth: int) -> str:
        """An element type with its dimensions: none for a scalar, `[]` for unknown rank."""
        name = TYPE_NAMES.get(kind.elem_type, "undefined")
        if not kind.HasField("shape"):
            return name + "[]"
        check_print_depth(depth + 1 + bool(kind.shape.dim))
        inner = ",".join(self.dimension(dimension, depth + 2) for dimension in kind.shape.dim)
        return f"{name}[{inner}]" if inner else name

    def type(self, kind: Any, depth: int) -> str:
        """A type; nothing when none is given."""
        which = kind.WhichOneof("value")
        check_print_depth(depth + (which is not None))
        match which:
            case "tensor_type":
                return self.tensor_type(kind.tensor_type, depth + 1)
            case "sequence_type":
                return f"seq({self.type(kind.sequence_type.elem_type, depth + 2)})"
            case "map_type":
                key = TYPE_NAMES.get(kind.map_type.key_type, "undefined")
                return f"map({key}, {self.type(kind.map_type.value_type, depth + 2)})"
            case "optional_type":
                return f"optional({self.type(kind.optional_type.elem_type, depth + 2)})"
            case "sparse_tensor_type":
                return f"sparse_tensor({self.tensor_type(kind.sparse_tensor_type, depth + 1)})"
            case "opaque_type":
                domain, name = self.text(kind.opaque_type.domain), self.text(kind.opaque_type.name)
                return f"opaque({domain + ',' if domain else ''}{name})"
        return ""

    def value_info(self, value: Any, depth: int) -> str:
        """A type and a name."""
        return f"{self.type(value.type, depth + 1)} {self.name(value.name)}"

    def value_infos(self, values: Iterable[Any], depth: int) -> str:
        """Types and names, separated by commas."""
        return ", ".join(self.value_info(value, depth) for value in values)

    def tensor(self, tensor: Any, depth: int, is_initializer: bool = False) -> str:
        """Type, name and values of a tensor."""
        check_print_depth(depth)
        words = TYPE_NAMES.get(tensor.data_type, "undefined")
        if tensor.dims:
            words += f"[{','.join(map(str, tensor.dims))}]"
        if tensor.name:
            words += " " + self.name(tensor.name)
        return words + (" = " if is_initializer else "") + self._values(tensor)

    def _values(self, tensor: Any) -> str:
        known = tensor.data_type in TYPE_NAMES
        kind = DataType(tensor.data_type) if known else DataType.UNDEFINED
        if tensor.data_location == _EXTERNAL:
            return self.pairs(tensor.external_data)
        if not kind or kind in _HIDDEN:
            return "..."
        if tensor.HasField("raw_data"):
            return (
                "..." if kind == DataType.STRING else f" {{{','.join(_raw_numbers(tensor, kind))}}}"
            )
        if kind == DataType.STRING:
            inner = ", ".join(map(self.quoted, tensor.string_data))
            return f"{{{inner}}}" if tensor.string_data else "}"
        held = getattr(tensor, kind.field)
        form = {"float_data": np.float32, "double_data": np.float64}.get(kind.field)
        listed = format_floats(np.array(held, form)) if form else map(str, held)
        return f" {{{','.join(listed)}}}"

    def attribute(self, attribute: Any, depth: int) -> str:
        """Name, type and value, or the function's attribute it stands for."""
        kind = AttributeType(attribute.type)
        start = f"{self.text(attribute.name)}: {kind.name.lower()} = "
        if attribute.HasField("ref_attr_name"):
            return f"{start}@{self.text(attribute.ref_attr_name)}"
        if kind == AttributeType.STRINGS and not attribute.strings:
            return start + "]"
        return start + self.attribute_value(attribute, kind, depth)

    def attribute_value(self, attribute: Any, kind: AttributeType, depth: int) -> str:
        """The value of an attribute; nothing where the syntax has no words for its kind."""
        if not kind or item_type(kind) == AttributeType.SPARSE_TENSOR:
            return ""
        held = getattr(attribute, FIELDS[kind])
        if kind not in LISTS:
            return self.items(kind, [held], depth)[0]
        return f"[{', '.join(self.items(item_type(kind), held, depth))}]"

    def items(self, kind: AttributeType, values: Any, depth: int) -> list[str]:
        """Each value of an attribute of one kind."""
        match kind:
            case AttributeType.INT:
                return list(map(str, values))
            case AttributeType.FLOAT:
                return format_floats(np.array(values, np.float32))
            case AttributeType.STRING:
                return list(map(self.quoted, values))
            case AttributeType.TENSOR:
                return [self.tensor(value, depth + 1) for value in values]
            case AttributeType.TYPE_PROTO:
                return [self.type(value, depth + 1) for value in values]
        self.indent += _STEP
        graphs = [self.graph(value, depth + 1) for value in values]
        self.indent -= _STEP
        return graphs

    def attributes(self, node: Any, depth: int) -> str:
        """The attributes of a node in angle brackets; nothing if it has none."""
        if not node.attribute:
            return ""
        return f" <{', '.join(self.attribute(item, depth + 1) for item in node.attribute)}>"

    def node(self, node: Any, depth: int) -> str:
        """One line (more with graphs inside), without its indentation and newline."""
        attributes = self.attributes(node, depth)
        inputs = f" ({self.names(node.input)})"
        has_graph = any(item.HasField("g") or item.graphs for item in node.attribute)
        order = inputs + attributes if has_graph else attributes + inputs
        name = f"[{self.name(node.name)}] " if node.HasField("name") else ""
        domain = f"{self.text(node.domain)}." if node.domain else ""
        overload = f":{self.text(node.overload)}" if node.overload else ""
        operator = f"{domain}{self.text(node.op_type)}{overload}"
        return f"{name}{self.names(node.output)} = {operator}{order}"

    def nodes(self, nodes: Iterable[Any], depth: int) -> str:
        """Nodes in braces, one a line."""
        margin = " " * self.indent
        lines = [f"{margin}{self.node(node, depth)}\n" for node in nodes]
        return "{\n" + "".join(lines) + margin[_STEP:] + "}"

    def graph(self, graph: Any, depth: int) -> str:
        """Name, inputs, outputs, initializers, types of values, nodes."""
        check_print_depth(depth)
        inputs = self.value_infos(graph.input, depth + 1)
        outputs = self.value_infos(graph.output, depth + 1)
        inner = [self.tensor(tensor, depth + 1, True) for tensor in graph.initializer]
        inner += [self.value_info(value, depth + 1) for value in graph.value_info]
        margin = "\n" + " " * self.indent
        middle = f"{margin}<{self.separator(margin).join(inner)}>\n" if inner else ""
        nodes = self.nodes(graph.node, depth + 1)
        return f"{self.graph_name(graph)} ({inputs}) => ({outputs}) {middle}{nodes}"

    def separator(self, margin: str) -> str:
        """What stands between initializers."""
        return ", "

    def graph_name(self, graph: Any) -> str:
        """The name of a graph."""
        return self.name(graph.name)

    def opsets(self, opsets: Iterable[Any], separator: str) -> str:
        """Domains and versions in square brackets."""
        inner = (f"{self.quoted(opset.domain)} : {opset.version}" for opset in opsets)
        return f"[{separator.join(inner)}]"

    def function(self, function: Any, depth: int) -> str:
        """Header, name, attributes, inputs, outputs, nodes."""
        overload = function.overload and f"  overload: {self.quoted(function.overload)},\n"
        attributes = (
            f"<{','.join(map(self.text, function.attribute))}>" if function.attribute else ""
        )
        return (
            f"<\n  domain: {self.quoted(function.domain)},\n{overload}"
            f"  opset_import: {self.opsets(function.opset_import, ',')}\n>\n"
            f"{self.name(function.name)} {attributes}({self.names(function.input)})"
            f" => ({self.names(function.output)})\n{self.nodes(function.node, depth + 1)}"
        )

    def header(self, model: Any) -> list[str]:
        """The entries of a model's header."""
        entries = [
            f"ir_version: {model.ir_version}",
            f"opset_import: {self.opsets(model.opset_import, ', ')}",
        ]
        for field in ("producer_name", "producer_version", "domain", "model_version", "doc_string"):
            if model.HasField(field):
                value = getattr(model, field)
                shown = str(value) if isinstance(value, int) else self.quoted(value)
                entries.append(f"{field}: {shown}")
        if model.metadata_props:
            entries.append(f"metadata_props: {self.pairs(model.metadata_props)}")
        return entries

    def model(self, model: Any, depth: int) -> str:
        """Header, graph, functions."""
        entries = ",\n   ".join(self.header(model))
        parts = [self.graph(model.graph, depth + 1)]
        parts += [self.function(function, depth + 1) for function in model.functions]
        return f"<\n   {entries}\n>\n" + "\n".join(parts)


def _raw_numbers(tensor: Any, kind: DataType) -> list[str]:
    """The elements of a tensor in raw storage, which must be as many as its dimensions say."""
    count = 1
    for size in tensor.dims:
        count *= size
        if size < 0 or count >= 2**63:
            raise TensorError(
                f"dimensions {list(tensor.dims)} are no shape",
                where=f"tensor {tensor.name!r}",
                hint="dimensions must not be negative and their product must fit into 63 bits",
            )
    form = listed_type(kind)
    assert form is not None
    if len(tensor.raw_data) != count * form.itemsize:
        raise TensorError(
            f"{len(tensor.raw_data)} raw bytes are not {count} elements of {form.itemsize} bytes",
            where=f"tensor {tensor.name!r}",
            hint="correct the dimensions, or print the bytes as they are with exact=True",
        )
    return format_numbers(np.frombuffer(tensor.raw_data, form))
