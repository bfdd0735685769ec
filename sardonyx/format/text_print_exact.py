"""Messages to text that reads back to equal messages.

Standard syntax wherever it can say the thing; `@{...}` with the other fields where it cannot.
"""

import re
from collections.abc import Iterable
from typing import Any

import numpy as np
from google.protobuf.unknown_fields import UnknownFieldSet

from sardonyx.dtypes import DataType
from sardonyx.format.text_attributes import FIELDS, item_type
from sardonyx.format.text_fields import check_print_depth, fields_of, format_fields, nans_are_plain
from sardonyx.format.text_numbers import format_floats
from sardonyx.format.text_parse_values import RESERVED
from sardonyx.format.text_print_standard import IDENTIFIER, StandardPrinter
from sardonyx.format.text_tensors import (
    TYPE_NAMES,
    format_numbers,
    listed_type,
    numbers_of_raw,
)
from sardonyx.graph.attribute import LISTS, AttributeType

_UNSAYABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_DOTTED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*")
_EXTERNAL = 1
_HEADER = (
    "ir_version",
    "opset_import",
    "producer_name",
    "producer_version",
    "domain",
    "model_version",
    "doc_string",
    "metadata_props",
)


def sayable(value: str | bytes) -> bool:
    """True for strings a quoted literal holds unchanged, wherever the text is stored."""
    if isinstance(value, bytes):
        try:
            value = value.decode()
        except UnicodeDecodeError:
            return False
    return _UNSAYABLE.search(value) is None


def _fits(pattern: re.Pattern[str], value: str | bytes) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None


class ExactPrinter(StandardPrinter):
    """As the standard printer, but nothing is left out and nothing is ambiguous.

    Methods collect in `said` the fields that the syntax itself expresses; `rest` adds the others.
    """

    def rest(self, message: Any, said: set[str], depth: int, extra: str = "") -> str:
        """The annotation with all fields but those in `said`; nothing when none is left."""
        known = all(field.name in said for field, _ in message.ListFields())
        if known and not extra and not len(UnknownFieldSet(message)):
            return ""
        fields = format_fields(message, depth, said)
        return f" @{{{extra}{' ' if extra and fields else ''}{fields}}}"

    def says(self, message: Any, field: str, said: set[str]) -> bool:
        """True, and noted in `said`, when a string field (or each of a list) is set and sayable."""
        value = getattr(message, field)
        if fields_of(message.DESCRIPTOR.full_name)[field].repeated:
            sayable_now = all(isinstance(item, str) and sayable(item) for item in value)
        else:
            sayable_now = message.HasField(field) and isinstance(value, str) and sayable(value)
        if sayable_now:
            said.add(field)
        return sayable_now

    def entries_are_plain(self, entries: Iterable[Any]) -> bool:
        """True when every entry has a sayable key and value and nothing else."""
        return all(map(self._entry_is_plain, entries))

    def _entry_is_plain(self, entry: Any) -> bool:
        said: set[str] = set()
        says_both = self.says(entry, "key", said) and self.says(entry, "value", said)
        return says_both and not self.rest(entry, said, 0)

    def required_name(self, message: Any, said: set[str], field: str = "name") -> tuple[str, str]:
        """A name the syntax insists on, and what the annotation must add when there is none."""
        if self.says(message, field, said):
            return self.name(getattr(message, field)), ""
        return '""', "" if message.HasField(field) else f"-{field}"

    def dimension(self, dimension: Any, depth: int) -> str:
        said = {"dim_value"}
        if dimension.HasField("dim_param") and not self.says(dimension, "dim_param", said):
            return "?" + self.rest(dimension, said, depth)
        return super().dimension(dimension, depth) + self.rest(dimension, said, depth)

    def type(self, kind: Any, depth: int) -> str:
        if not self._is_plain_type(kind):
            return "?" + self.rest(kind, set(), depth)
        said = {kind.WhichOneof("value") or ""}
        return (super().type(kind, depth) or "?") + self.rest(kind, said, depth)

    def _is_plain_type(self, kind: Any) -> bool:
        """True when the syntax has words for the type itself; what it contains is asked later."""
        which = kind.WhichOneof("value")
        if which is None:
            return True
        inner = getattr(kind, which)
        fields = {field.name for field, _ in inner.ListFields()}
        if len(UnknownFieldSet(inner)):
            return False
        match which:
            case "tensor_type" | "sparse_tensor_type":
                shape = UnknownFieldSet(inner.shape) if "shape" in fields else ()
                return inner.elem_type in TYPE_NAMES and not len(shape)
            case "map_type":
                return inner.key_type in TYPE_NAMES and "value_type" in fields
            case "opaque_type":
                if "domain" in fields:
                    return _fits(_DOTTED, inner.domain) and _fits(IDENTIFIER, inner.name)
                return not fields or _fits(_DOTTED, inner.name)
        return "elem_type" in fields

    def value_info(self, value: Any, depth: int) -> str:
        said = {"type"}
        name, extra = self.required_name(value, said)
        if value.HasField("type"):
            name = f"{self.type(value.type, depth + 1)} {name}"
        elif name in RESERVED:
            name = f'"{name}"'
        return name + self.rest(value, said, depth, extra)

    def tensor(self, tensor: Any, depth: int, is_initializer: bool = False) -> str:
        said = {"dims"}
        words = TYPE_NAMES.get(tensor.data_type, "?")
        if words != "?":
            said.add("data_type")
        if tensor.dims:
            words += f"[{','.join(map(str, tensor.dims))}]"
        extra = ""
        if is_initializer:
            name, extra = self.required_name(tensor, said)
            words += f" {name} ="
        elif self.says(tensor, "name", said):
            words += " " + self.name(tensor.name)
        values, held = self._exact_values(tensor)
        said |= held
        if "raw_data" in held:
            extra = f"{extra} raw_data".lstrip()
        elif "external_data" in held and not is_initializer:
            words += " ="
        return f"{words} {values}" + self.rest(tensor, said, depth, extra)

    def _exact_values(self, tensor: Any) -> tuple[str, set[str]]:
        """The values as the syntax lists them, and the fields that are said thereby."""
        if tensor.data_location == _EXTERNAL and tensor.external_data:
            if self.entries_are_plain(tensor.external_data):
                return self.pairs(tensor.external_data), {"data_location", "external_data"}
            return "{}", set()
        if tensor.data_type not in TYPE_NAMES:
            return "{}", set()
        kind = DataType(tensor.data_type)
        held = getattr(tensor, kind.field)
        if tensor.HasField("raw_data"):
            numbers = None if held else numbers_of_raw(tensor.raw_data, kind, tensor.dims)
            if numbers is None:
                return "{}", set()
            return f"{{{','.join(format_numbers(numbers))}}}", {"raw_data"}
        if kind == DataType.STRING:
            if not all(map(sayable, held)):
                return "{}", set()
            return f"{{{', '.join(map(self.quoted, held))}}}", {"string_data"}
        form = listed_type(kind)
        if form is None or form.kind != "f":
            return f"{{{','.join(map(str, held))}}}", {kind.field}
        if not nans_are_plain(tensor, kind.field, held):
            return "{}", set()
        return f"{{{','.join(format_floats(np.array(held, form)))}}}", {kind.field}

    def attribute(self, attribute: Any, depth: int) -> str:
        check_print_depth(depth)
        said: set[str] = set()
        start, extra = self.required_name(attribute, said)
        kind = AttributeType(attribute.type)
        if kind:
            start += f": {kind.name.lower()}"
            said.add("type")
        value = self._exact_value(attribute, kind, said, depth)
        annotation = self.rest(attribute, said, depth, extra)
        if value:
            return f"{start}{annotation} = {value}"
        return start + (annotation or " @{}")

    def _exact_value(self, attribute: Any, kind: AttributeType, said: set[str], depth: int) -> str:
        """The value as the syntax writes it; nothing when the annotation must hold it."""
        if self.says(attribute, "ref_attr_name", said):
            return "@" + self.name(attribute.ref_attr_name)
        if attribute.HasField("ref_attr_name") or not self._is_plain_value(attribute, kind):
            return ""
        said.add(FIELDS[kind])
        return self.attribute_value(attribute, kind, depth)

    def _is_plain_value(self, attribute: Any, kind: AttributeType) -> bool:
        if not kind or item_type(kind) == AttributeType.SPARSE_TENSOR:
            return False
        held = getattr(attribute, FIELDS[kind])
        if kind not in LISTS and not attribute.HasField(FIELDS[kind]):
            return False
        values = held if kind in LISTS else [held]
        match item_type(kind):
            case AttributeType.FLOAT:
                return nans_are_plain(attribute, FIELDS[kind], values)
            case AttributeType.STRING:
                return all(map(sayable, values))
        return True

    def node(self, node: Any, depth: int) -> str:
        said = {"attribute"}
        name = f"[{self.name(node.name)}] " if self.says(node, "name", said) else ""
        outputs = self.names(node.output) if self.says(node, "output", said) else ""
        domain = ""
        if self.says(node, "domain", said):
            plain = not node.domain or _fits(_DOTTED, node.domain)
            domain = f"{node.domain if plain else self.quoted(node.domain)}."
        operator, extra = self.required_name(node, said, "op_type")
        overload = f":{self.name(node.overload)}" if self.says(node, "overload", said) else ""
        inputs = f" ({self.names(node.input) if self.says(node, 'input', said) else ''})"
        attributes = self.attributes(node, depth)
        has_graph = any(item.HasField("g") or item.graphs for item in node.attribute)
        order = inputs + attributes if has_graph else attributes + inputs
        start = f"{name}{outputs}".rstrip(" ")
        start += " = " if start else "= "
        return f"{start}{domain}{operator}{overload}{order}" + self.rest(node, said, depth, extra)

    def separator(self, margin: str) -> str:
        return f",{margin} "

    def graph_name(self, graph: Any) -> str:
        return self.required_name(graph, set())[0]

    def graph(self, graph: Any, depth: int) -> str:
        said = {"input", "output", "initializer", "value_info", "node"}
        _, extra = self.required_name(graph, said)
        return super().graph(graph, depth) + self.rest(graph, said, depth, extra)

    def opsets(self, opsets: Iterable[Any], separator: str) -> str:
        return f"[{', '.join(map(self._opset, opsets))}]"

    def _opset(self, opset: Any) -> str:
        said = {"version"}
        says_domain = self.says(opset, "domain", said)
        missing = [f"-{field}" for field in ("domain", "version") if not opset.HasField(field)]
        domain = self.quoted(opset.domain) if says_domain else '""'
        return f"{domain} : {opset.version}" + self.rest(opset, said, 2, " ".join(missing))

    def entries(self, message: Any, keywords: Iterable[str], said: set[str]) -> list[str]:
        """The entries of a header for those fields that are set and can be said there."""
        entries = []
        for keyword in keywords:
            value = getattr(message, keyword)
            if keyword == "opset_import":
                said.add(keyword)
                shown = self.opsets(value, ", ") if value else ""
            elif keyword == "metadata_props":
                plain = bool(value) and self.entries_are_plain(value)
                said |= {keyword} if plain else set()
                shown = self.pairs(value) if plain else ""
            elif isinstance(value, int):
                said.add(keyword)
                shown = str(value) if message.HasField(keyword) else ""
            else:
                shown = self.quoted(value) if self.says(message, keyword, said) else ""
            if shown:
                entries.append(f"{keyword}: {shown}")
        return entries

    def function(self, function: Any, depth: int) -> str:
        said = {"attribute_proto", "value_info", "node"}
        keywords = ("domain", "overload", "opset_import", "doc_string")
        entries = self.entries(function, keywords, said)
        header = "<\n  " + ",\n  ".join(entries) + "\n>\n" if entries else ""
        name, extra = self.required_name(function, said)
        formals = [self.name(item) for item in function.attribute]
        if not self.says(function, "attribute", said):
            formals = []
        formals += [self.attribute(item, depth + 1) for item in function.attribute_proto]
        attributes = f"<{', '.join(formals)}>" if formals else ""
        inputs = self._formals(function, "input", said)
        outputs = self._formals(function, "output", said)
        types = self.value_infos(function.value_info, depth + 1)
        middle = f"   <{types}>\n" if types else ""
        return (
            f"{header}{name} {attributes}({inputs}) => ({outputs})\n{middle}"
            f"{self.nodes(function.node, depth + 1)}{self.rest(function, said, depth, extra)}"
        )

    def _formals(self, function: Any, field: str, said: set[str]) -> str:
        if not self.says(function, field, said):
            return ""
        values = getattr(function, field)
        return ", ".join(f'"{item}"' if item in RESERVED else self.name(item) for item in values)

    def model(self, model: Any, depth: int) -> str:
        said = {"graph", "functions"}
        entries = self.entries(model, _HEADER, said)
        header = "<\n   " + ",\n   ".join(entries) + "\n>\n" if entries else ""
        annotation = self.rest(model, said, depth, "" if model.HasField("graph") else "-graph")
        parts = [self.graph(model.graph, depth + 1)]
        parts += [self.function(function, depth + 1) for function in model.functions]
        return header + (f"{annotation.lstrip()}\n" if annotation else "") + "\n".join(parts)
