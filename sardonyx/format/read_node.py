"""Bytes -> nodes and attributes: the part of reading that large graphs spend their time in."""

import struct
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from sardonyx.format.read_types import (
    add_entry,
    read_sparse,
    read_tensor,
    read_type,
    text,
)
from sardonyx.format.records import read_record
from sardonyx.format.runs import LONG, Position, fields_and_runs, only_run
from sardonyx.format.tags import ATTRIBUTE, NODE, packed
from sardonyx.format.wire import Buffer, WireError, fields, integers, read_varint, signed
from sardonyx.graph import Attribute, AttributeType, Node, Value

if TYPE_CHECKING:
    from sardonyx.format.read import Reader, Scope

_COPY_BELOW = 1 << 14
"""Messages smaller than this are copied once: indexing bytes is faster than indexing a view."""


def read_node(reader: "Reader", start: int, end: int, scope: "Scope") -> Node:
    """A NodeProto; names are looked up and defined in `scope`."""
    if end - start < _COPY_BELOW:
        buffer: Buffer = bytes(reader.buffer[start:end])
        base, stop = start, end - start
    else:
        buffer, base, stop = reader.buffer, 0, end
    try:
        return _node(reader, buffer, base, start - base, stop, scope)
    except IndexError:
        raise WireError(end, "the data ends inside a node") from None
    except UnicodeDecodeError:
        raise WireError(start, "a name in a node is not UTF-8 text") from None
    except WireError as error:
        if not base or error.offset >= start:
            raise
        raise WireError(base + error.offset, error.what) from None


def _node(reader: "Reader", buffer: Buffer, base: int, pos: int, end: int, scope: "Scope") -> Node:
    inputs: list[Value | None] = []
    outputs: list[Value] = []
    attributes: dict[str, Attribute] = {}
    op_type = domain = name = ""
    rare: list[tuple[int, int, int, int]] | None = None
    surplus: list[Attribute] = []
    lookup, values = scope.use, scope.values
    while pos < end:
        at = pos
        tag = buffer[pos]
        pos += 1
        if tag & 0x87 != 2:
            pos = _one_rare(buffer, at, end, rare := [] if rare is None else rare)
            continue
        size = buffer[pos]
        pos += 1
        if size >= 0x80:
            size, pos = read_varint(buffer, pos - 1, end)
        stop = pos + size
        if stop > end:
            raise WireError(base + at, f"a field claims {size} bytes where {end - pos} are left")
        if tag == 0x0A:
            key = str(buffer[pos:stop], "utf-8")
            inputs.append((values.get(key) or lookup(key)) if size else None)
        elif tag == 0x12:
            outputs.append(scope.define(str(buffer[pos:stop], "utf-8")))
        elif tag == 0x22 and size:
            op_type = str(buffer[pos:stop], "utf-8")
        elif tag == 0x2A:
            attribute = read_attribute(reader, buffer, base, pos, stop, scope)
            if attribute.name in attributes:
                surplus.append(attribute)
            else:
                attributes[attribute.name] = attribute
        elif tag == 0x1A and size:
            name = str(buffer[pos:stop], "utf-8")
        elif tag == 0x3A and size:
            domain = str(buffer[pos:stop], "utf-8")
        else:
            rare = [] if rare is None else rare
            rare.append((tag, pos, stop, at))
        pos = stop
    node = Node.read(op_type, domain, name, tuple(inputs), tuple(outputs), attributes)
    if surplus:
        node.surplus = tuple(surplus)
    if rare:
        _apply_rare(node, buffer, rare)
    for attribute in attributes.values():
        for graph in attribute.graphs:
            graph.owner = node
    return node


def _one_rare(buffer: Buffer, at: int, end: int, rare: list[tuple[int, int, int, int]]) -> int:
    found = next(fields(buffer, at, end))
    rare.append(found)
    return found[2]


def _apply_rare(node: Node, buffer: Buffer, rare: list[tuple[int, int, int, int]]) -> None:
    """Fields that most nodes do not have, and fields that are present but empty."""
    keep = bytearray()
    for tag, a, b, at in rare:
        match tag:
            case NODE.doc_string if b > a:
                node.doc_string = text(buffer, a, b)
            case NODE.overload if b > a:
                node.overload = text(buffer, a, b)
            case NODE.metadata_props:
                node.metadata = {} if node.metadata is None else node.metadata
                keep += add_entry(node.metadata, buffer, a, b, at)
            case NODE.device_configurations:
                record = read_record(buffer, a, b, "NodeDeviceConfigurationProto")
                node.device_configurations = node.device_configurations or []
                node.device_configurations.append(record)
            case _:
                if tag >> 3 in NODE.numbers and tag & 7 != 2:
                    raise WireError(at, f"field {tag >> 3} of a node has the wire type {tag & 7}")
                keep += bytes(buffer[at:b])
    node.leftover = bytes(keep)


_VALUE_FIELDS = {
    AttributeType.FLOAT: "f",
    AttributeType.INT: "i",
    AttributeType.STRING: "s",
    AttributeType.TENSOR: "t",
    AttributeType.GRAPH: "g",
    AttributeType.SPARSE_TENSOR: "sparse_tensor",
    AttributeType.TYPE_PROTO: "tp",
    AttributeType.FLOATS: "floats",
    AttributeType.INTS: "ints",
    AttributeType.STRINGS: "strings",
    AttributeType.TENSORS: "tensors",
    AttributeType.GRAPHS: "graphs",
    AttributeType.SPARSE_TENSORS: "sparse_tensors",
    AttributeType.TYPE_PROTOS: "type_protos",
}
VALUE_TAGS: dict[AttributeType, int] = {
    kind: getattr(ATTRIBUTE, name) for kind, name in _VALUE_FIELDS.items()
}
_KIND_OF_TAG = {tag: kind for kind, tag in VALUE_TAGS.items()} | {
    packed(ATTRIBUTE.floats): AttributeType.FLOATS,
    packed(ATTRIBUTE.ints): AttributeType.INTS,
    -ATTRIBUTE.floats: AttributeType.FLOATS,
    -ATTRIBUTE.ints: AttributeType.INTS,
    -ATTRIBUTE.strings: AttributeType.STRINGS,
}
_KINDS = {int(kind): kind for kind in AttributeType}
_DEFAULTS: dict[AttributeType, Any] = {
    AttributeType.FLOAT: 0.0,
    AttributeType.INT: 0,
    AttributeType.STRING: b"",
}
_FLOAT = struct.Struct("<f")


def read_attribute(
    reader: "Reader", buffer: Buffer, base: int, start: int, end: int, scope: "Scope"
) -> Attribute:
    """An AttributeProto inside `buffer`, which starts at `base` of the file."""
    name = doc_string = reference = ""
    declared: int | None = None
    spans: dict[AttributeType, list[Position]] = {}
    keep = bytearray()
    walk: Callable[..., Iterator[Position]] = fields if end - start < LONG else fields_and_runs
    for field in walk(buffer, start, end):
        tag, a, b, at = field
        if tag == 0x0A:
            name = str(buffer[a:b], "utf-8")
            if a == b:
                keep += buffer[at:b]
        elif tag == 0xA0:
            declared = a
        elif tag in _KIND_OF_TAG:
            spans.setdefault(_KIND_OF_TAG[tag], []).append(field)
        elif tag in (ATTRIBUTE.doc_string, ATTRIBUTE.ref_attr_name):
            content = text(buffer, a, b)
            if tag == ATTRIBUTE.doc_string:
                doc_string = content
            else:
                reference = content
            if not content:
                keep += buffer[at:b]
        elif tag >> 3 in ATTRIBUTE.numbers:
            raise WireError(at, f"field {tag >> 3} of an attribute has the wire type {tag & 7}")
        else:
            keep += buffer[at:b]
    attribute = Attribute.__new__(Attribute)
    attribute.name, attribute.doc_string, attribute.reference = name, doc_string, reference
    attribute.omitted = None
    kind = _attribute_kind(declared, spans)
    attribute.type = kind
    for other in [item for item in spans if item is not kind]:
        for _, _, b, at in spans.pop(other):
            keep += buffer[at:b]
    attribute.leftover = bytes(keep)
    mine = spans.get(kind) if isinstance(kind, AttributeType) else None
    if mine:
        attribute.value = _VALUE_READERS[kind](reader, buffer, base, mine, scope)  # type: ignore[index]
    else:
        attribute.value = _missing_value(attribute)
    if declared is None:
        attribute.omitted = (attribute.omitted or frozenset()) | {"type"}
    return attribute


def _attribute_kind(declared: int | None, spans: dict[AttributeType, Any]) -> AttributeType | int:
    if declared is not None:
        return _KINDS.get(declared, declared)
    return next(iter(spans), AttributeType.UNDEFINED)


def _missing_value(attribute: Attribute) -> Any:
    kind = attribute.type
    if attribute.reference or not isinstance(kind, AttributeType):
        return None
    if kind in _DEFAULTS:
        attribute.omitted = frozenset({"value"})
        return _DEFAULTS[kind]
    return () if kind.name.endswith("S") else None


def _float(reader: Any, buffer: Buffer, base: int, spans: list[Position], scope: Any) -> float:
    value: float = _FLOAT.unpack(buffer[spans[-1][1] : spans[-1][2]])[0]
    return value


def _integer(reader: Any, buffer: Buffer, base: int, spans: list[Position], scope: Any) -> int:
    return signed(spans[-1][1])


def _string(reader: Any, buffer: Buffer, base: int, spans: list[Position], scope: Any) -> bytes:
    _, a, b, _ = spans[-1]
    return bytes(buffer[a:b])


def _floats(reader: Any, buffer: Buffer, base: int, spans: list[Position], scope: Any) -> Any:
    if (run := only_run(spans, ATTRIBUTE.floats, buffer)) is not None:
        return run
    found: list[float] = []
    for tag, a, b, at in spans:
        if tag < 0:
            found += a
            continue
        if (b - a) % 4:
            raise WireError(at, "a list of floats ends inside a number")
        found += struct.unpack(f"<{(b - a) // 4}f", buffer[a:b])
    return tuple(found)


def _integers(reader: Any, buffer: Buffer, base: int, spans: list[Position], scope: Any) -> Any:
    if (run := only_run(spans, ATTRIBUTE.ints, buffer)) is not None:
        return run
    found: list[int] = []
    for tag, a, b, _ in spans:
        if tag < 0:
            found += a
        elif tag == ATTRIBUTE.ints:
            found.append(signed(a))
        else:
            integers(buffer, a, b, found)
    return tuple(found)


def _strings(reader: Any, buffer: Buffer, base: int, spans: list[Position], scope: Any) -> Any:
    if (run := only_run(spans, ATTRIBUTE.strings, buffer)) is not None:
        return run
    found: list[bytes] = []
    for tag, a, b, _ in spans:
        found += a if tag < 0 else (bytes(buffer[a:b]),)
    return tuple(found)


def _tensors(reader: "Reader", buffer: Buffer, base: int, spans: list[Position], scope: Any) -> Any:
    return tuple(
        read_tensor(reader.buffer, base + a, base + b, reader.open_external) for _, a, b, _ in spans
    )


def _sparse(reader: "Reader", buffer: Buffer, base: int, spans: list[Position], scope: Any) -> Any:
    return tuple(
        read_sparse(reader.buffer, base + a, base + b, reader.open_external) for _, a, b, _ in spans
    )


def _graphs(
    reader: "Reader", buffer: Buffer, base: int, spans: list[Position], scope: "Scope"
) -> Any:
    return tuple(reader.graph(base + a, base + b, scope) for _, a, b, _ in spans)


def _types(reader: "Reader", buffer: Buffer, base: int, spans: list[Position], scope: Any) -> Any:
    return tuple(read_type(reader.buffer, base + a, base + b) for _, a, b, _ in spans)


def _last(read: Callable[..., Any]) -> Callable[..., Any]:
    def last(reader: Any, buffer: Any, base: int, spans: list[Position], scope: Any) -> Any:
        return read(reader, buffer, base, spans[-1:], scope)[0]

    return last


_VALUE_READERS: dict[AttributeType, Callable[..., Any]] = {
    AttributeType.FLOAT: _float,
    AttributeType.INT: _integer,
    AttributeType.STRING: _string,
    AttributeType.TENSOR: _last(_tensors),
    AttributeType.GRAPH: _last(_graphs),
    AttributeType.SPARSE_TENSOR: _last(_sparse),
    AttributeType.TYPE_PROTO: _last(_types),
    AttributeType.FLOATS: _floats,
    AttributeType.INTS: _integers,
    AttributeType.STRINGS: _strings,
    AttributeType.TENSORS: _tensors,
    AttributeType.GRAPHS: _graphs,
    AttributeType.SPARSE_TENSORS: _sparse,
    AttributeType.TYPE_PROTOS: _types,
}
