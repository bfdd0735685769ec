"""Bytes -> types, entries and tensors."""

from typing import Any

from sardonyx.format.storage import (
    DOUBLE_DATA,
    FLOAT_DATA,
    INT32_DATA,
    INT64_DATA,
    UINT64_DATA,
    ExternalData,
    NoData,
    PackedData,
    RawData,
    StringData,
)
from sardonyx.format.tags import (
    DIMENSION,
    ENTRY,
    EXTERNAL,
    MAP,
    OPAQUE,
    SEGMENT,
    SEQUENCE,
    SHAPE,
    SPARSE,
    TENSOR,
    TENSOR_TYPE,
    TYPE,
    encoded,
    packed,
)
from sardonyx.format.wire import DEEPEST, Buffer, WireError, fields, integers, signed, varint
from sardonyx.graph import (
    Data,
    MapType,
    OpaqueType,
    OptionalType,
    SequenceType,
    SparseTensor,
    SparseTensorType,
    Tensor,
    TensorType,
    Type,
)
from sardonyx.graph.types import known_element


def text(buffer: Buffer, start: int, end: int, base: int = 0) -> str:
    """A string field's content; `base` is where the buffer lies in the file."""
    try:
        return str(buffer[start:end], "utf-8")
    except UnicodeDecodeError as error:
        raise WireError(base + start + error.start, "a string is not UTF-8 text") from None


class UnfitError(Exception):
    """A type says more than our objects hold; its bytes are kept."""


def read_type(buffer: Buffer, start: int, end: int, depth: int = 0) -> Type:
    """A TypeProto; what its fields do not hold is kept in `verbatim`."""
    content = bytes(buffer[start:end])
    try:
        return _type(content, start, depth, None)
    except UnfitError:
        return _type(content, start, depth, content)


def _type(content: bytes, base: int, depth: int, verbatim: bytes | None) -> Type:
    if depth > DEEPEST // 2:
        raise WireError(base, f"more than {DEEPEST // 2} types lie inside one another")
    denotation: str | None = None
    kind = 0
    parts: list[tuple[int, int]] = []
    for tag, a, b, at in _walk(content, base):
        if tag == TYPE.denotation:
            denotation = text(content, a, b, base)
        elif tag in _TYPE_KINDS:
            if tag != kind:
                kind, parts = tag, []
            parts.append((a, b))
        else:
            _unfit(tag, TYPE.numbers, base + at, verbatim)
    if not kind:
        return Type(denotation=denotation, verbatim=verbatim)
    if len(parts) > 1:
        verbatim = verbatim or content
    inner = b"".join(content[a:b] for a, b in parts)
    made: Type = _TYPE_KINDS[kind](inner, base + parts[0][0], depth + 1, denotation, verbatim)
    return made


def _walk(content: bytes, base: int, start: int = 0, end: int | None = None) -> Any:
    try:
        yield from fields(content, start, len(content) if end is None else end)
    except WireError as error:
        raise WireError(base + error.offset, error.what) from None


def _unfit(tag: int, known: frozenset[int], at: int, verbatim: bytes | None) -> None:
    if tag >> 3 in known:
        raise WireError(at, f"a known field has the wire type {tag & 7}")
    if verbatim is None:
        raise UnfitError


def _tensor_type(
    content: bytes, base: int, depth: int, denotation: str | None, verbatim: bytes | None,
    cls: type[TensorType] = TensorType,
) -> Type:  # fmt: skip
    element: Any = None
    shapes: list[bytes] = []
    shape_base = base
    for tag, a, b, at in _walk(content, base):
        if tag == TENSOR_TYPE.elem_type:
            element = known_element(signed(a))
        elif tag == TENSOR_TYPE.shape:
            shapes.append(content[a:b])
            shape_base = base + a
        else:
            _unfit(tag, TENSOR_TYPE.numbers, base + at, verbatim)
    if not shapes:
        return cls(element, None, denotation=denotation, verbatim=verbatim)
    shape, denotations = _shape(b"".join(shapes), shape_base, verbatim)
    return cls(
        element, shape, dim_denotations=denotations, denotation=denotation, verbatim=verbatim
    )


def _sparse_type(content: bytes, base: int, depth: int, denotation: Any, verbatim: Any) -> Type:
    return _tensor_type(content, base, depth, denotation, verbatim, SparseTensorType)


def _shape(content: bytes, base: int, verbatim: bytes | None) -> tuple[Any, Any]:
    sizes: list[int | str | None] = []
    denotations: list[str | None] = []
    for tag, a, b, at in _walk(content, base):
        if tag != SHAPE.dim:
            _unfit(tag, SHAPE.numbers, base + at, verbatim)
            continue
        size: int | str | None = None
        denotation: str | None = None
        for inner, c, d, where in _walk(content, base, a, b):
            if inner == DIMENSION.dim_value:
                size = signed(c)
            elif inner == DIMENSION.dim_param:
                size = text(content, c, d, base)
            elif inner == DIMENSION.denotation:
                denotation = text(content, c, d, base)
            else:
                _unfit(inner, DIMENSION.numbers, base + where, verbatim)
        sizes.append(size)
        denotations.append(denotation)
    named = any(item is not None for item in denotations)
    return tuple(sizes), tuple(denotations) if named else None


def _element_type(
    content: bytes, base: int, depth: int, denotation: str | None, verbatim: bytes | None, cls: Any
) -> Type:
    inner: list[bytes] = []
    inner_base = base
    for tag, a, b, at in _walk(content, base):
        if tag == SEQUENCE.elem_type:
            inner.append(content[a:b])
            inner_base = base + a
        else:
            _unfit(tag, frozenset((1,)), base + at, verbatim)
    element = _inner_type(inner, inner_base, depth, verbatim)
    made: Type = cls(element, denotation=denotation, verbatim=verbatim)
    return made


def _inner_type(parts: list[bytes], base: int, depth: int, verbatim: bytes | None) -> Type | None:
    if not parts:
        return None
    content = b"".join(parts)
    return _type(content, base, depth, None if verbatim is None else content)


def _sequence_type(content: bytes, base: int, depth: int, denotation: Any, verbatim: Any) -> Type:
    return _element_type(content, base, depth, denotation, verbatim, SequenceType)


def _optional_type(content: bytes, base: int, depth: int, denotation: Any, verbatim: Any) -> Type:
    return _element_type(content, base, depth, denotation, verbatim, OptionalType)


def _map_type(
    content: bytes, base: int, depth: int, denotation: str | None, verbatim: bytes | None
) -> Type:
    key: Any = None
    inner: list[bytes] = []
    inner_base = base
    for tag, a, b, at in _walk(content, base):
        if tag == MAP.key_type:
            key = known_element(signed(a))
        elif tag == MAP.value_type:
            inner.append(content[a:b])
            inner_base = base + a
        else:
            _unfit(tag, MAP.numbers, base + at, verbatim)
    value = _inner_type(inner, inner_base, depth, verbatim)
    return MapType(key, value, denotation=denotation, verbatim=verbatim)


def _opaque_type(
    content: bytes, base: int, depth: int, denotation: str | None, verbatim: bytes | None
) -> Type:
    found: dict[int, str] = {}
    for tag, a, b, at in _walk(content, base):
        if tag in (OPAQUE.domain, OPAQUE.name):
            found[tag] = text(content, a, b, base)
        else:
            _unfit(tag, OPAQUE.numbers, base + at, verbatim)
    return OpaqueType(
        found.get(OPAQUE.domain), found.get(OPAQUE.name), denotation=denotation, verbatim=verbatim
    )


_TYPE_KINDS: dict[int, Any] = {
    TYPE.tensor_type: _tensor_type,
    TYPE.sequence_type: _sequence_type,
    TYPE.map_type: _map_type,
    TYPE.optional_type: _optional_type,
    TYPE.sparse_tensor_type: _sparse_type,
    TYPE.opaque_type: _opaque_type,
}


def read_entry(buffer: Buffer, start: int, end: int) -> tuple[str, str, bytes]:
    """A StringStringEntryProto: key, value, and what else it holds."""
    key = value = ""
    rest = bytearray()
    for tag, a, b, at in fields(buffer, start, end):
        if tag == ENTRY.key:
            key = text(buffer, a, b)
        elif tag == ENTRY.value:
            value = text(buffer, a, b)
        else:
            rest += unknown_field(buffer, tag, at, b, ENTRY)
    return key, value, bytes(rest)


def add_entry(target: dict[str, str], buffer: Buffer, a: int, b: int, at: int) -> bytes:
    """Put an entry into a dictionary; one that does not fit there is returned as it is."""
    key, value, rest = read_entry(buffer, a, b)
    if rest or key in target:
        return bytes(buffer[at:b])
    target[key] = value
    return b""


def unknown_field(buffer: Buffer, tag: int, at: int, end: int, known: Any) -> bytes:
    """The bytes of a field to keep; an error where the number is known and the wire type wrong."""
    if tag >> 3 in known.numbers:
        raise WireError(at, f"field {tag >> 3} has the wire type {tag & 7}")
    return bytes(buffer[at:end])


_PACKED = {
    packed(TENSOR.float_data): FLOAT_DATA,
    packed(TENSOR.int32_data): INT32_DATA,
    packed(TENSOR.int64_data): INT64_DATA,
    packed(TENSOR.double_data): DOUBLE_DATA,
    packed(TENSOR.uint64_data): UINT64_DATA,
}
_UNPACKED = {
    TENSOR.float_data: FLOAT_DATA,
    TENSOR.int32_data: INT32_DATA,
    TENSOR.int64_data: INT64_DATA,
    TENSOR.double_data: DOUBLE_DATA,
    TENSOR.uint64_data: UINT64_DATA,
}


class _Parts:
    """What has been seen of a tensor's data while its message is read."""

    def __init__(self) -> None:
        self.raw: tuple[int, int] | None = None
        self.packed: dict[int, list[Buffer]] = {}
        self.strings = 0
        self.entries: list[tuple[str, str]] = []
        self.location: int | None = None


def read_tensor(buffer: memoryview, start: int, end: int, open_external: Any) -> Tensor:
    """A TensorProto whose elements stay where they are."""
    dims: list[int] = []
    tensor = Tensor.stored("", (), 0, NoData())
    parts = _Parts()
    keep = bytearray()
    for tag, a, b, at in fields(buffer, start, end):
        if tag == TENSOR.dims:
            dims.append(signed(a))
        elif tag == packed(TENSOR.dims):
            integers(buffer, a, b, dims)
        elif tag == TENSOR.data_type:
            tensor.element = signed(a)
            keep += b"" if a else bytes(buffer[at:b])
        elif tag == TENSOR.raw_data:
            parts.raw = (a, b)
        elif tag == TENSOR.name:
            tensor.name = text(buffer, a, b)
            keep += b"" if b > a else bytes(buffer[at:b])
        elif tag in _PACKED:
            parts.packed.setdefault(_PACKED[tag], []).append(buffer[a:b])
        elif tag in _UNPACKED:
            content = varint(a) if tag & 7 == 0 else bytes(buffer[a:b])
            _append_unpacked(parts.packed.setdefault(_UNPACKED[tag], []), content)
        elif tag == TENSOR.string_data:
            parts.strings += 1
        else:
            keep += _rare_field(buffer, tag, a, b, at, tensor, parts)
    tensor.shape = tuple(dims)
    tensor.data, rest = _choose_data(buffer, start, end, parts, open_external)
    tensor.leftover = bytes(keep + rest)
    return tensor


def _append_unpacked(into: list[Buffer], content: bytes) -> None:
    if into and isinstance(into[-1], bytearray):
        into[-1] += content
    else:
        into.append(bytearray(content))  # type: ignore[arg-type]


def _rare_field(
    buffer: memoryview, tag: int, a: int, b: int, at: int, tensor: Tensor, parts: _Parts
) -> bytes:
    match tag:
        case TENSOR.doc_string:
            tensor.doc_string = text(buffer, a, b)
            return b"" if b > a else bytes(buffer[at:b])
        case TENSOR.external_data:
            key, value, rest = read_entry(buffer, a, b)
            if rest:
                raise WireError(at, "an entry of external_data has unknown fields")
            parts.entries.append((key, value))
        case TENSOR.data_location:
            parts.location = a
        case TENSOR.metadata_props:
            tensor.metadata = {} if tensor.metadata is None else tensor.metadata
            return add_entry(tensor.metadata, buffer, a, b, at)
        case TENSOR.segment:
            bounds = {tag: signed(c) for tag, c, _, _ in fields(buffer, a, b)}
            tensor.segment = (bounds.get(SEGMENT.begin, 0), bounds.get(SEGMENT.end, 0))
        case _:
            return unknown_field(buffer, tag, at, b, TENSOR)
    return b""


def _choose_data(
    buffer: memoryview, start: int, end: int, parts: _Parts, open_external: Any
) -> tuple[Data, bytes]:
    """The data a tensor means, and the bytes of data fields beside it."""
    keep = bytearray()
    data: Data | None = None
    if parts.location == EXTERNAL:
        data = ExternalData(tuple(parts.entries), open_external)
    else:
        if parts.location is not None:
            keep += encoded(TENSOR.data_location) + varint(parts.location)
        for key, value in parts.entries:
            keep += field_bytes(TENSOR.external_data, encode_entry(key, value))
    if parts.raw is not None:
        a, b = parts.raw
        if data is None:
            data = RawData(buffer[a:b])
        else:
            keep += field_bytes(TENSOR.raw_data, bytes(buffer[a:b]))
    for number, pieces in parts.packed.items():
        joined = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        joined = bytes(joined) if isinstance(joined, bytearray) else joined
        if data is None:
            data = PackedData(number, joined)
        elif len(joined):
            keep += field_bytes(number << 3 | 2, bytes(joined))
    if parts.strings:
        if data is None:
            data = StringData(buffer[start:end], _strings_of)
        else:
            for item in read_strings(buffer, start, end):
                keep += field_bytes(TENSOR.string_data, item)
    return data or NoData(), bytes(keep)


def _strings_of(message: Buffer) -> list[bytes]:
    return read_strings(message, 0, len(message))


def read_strings(buffer: Buffer, start: int, end: int) -> list[bytes]:
    """The strings of a TensorProto."""
    return [
        bytes(buffer[a:b])
        for tag, a, b, _ in fields(buffer, start, end)
        if tag == TENSOR.string_data
    ]


def encode_entry(key: str, value: str) -> bytes:
    """A StringStringEntryProto's bytes."""
    return field_bytes(ENTRY.key, key.encode("utf-8", "surrogateescape")) + field_bytes(
        ENTRY.value, value.encode("utf-8", "surrogateescape")
    )


def field_bytes(tag: int, content: bytes) -> bytes:
    """A length-delimited field."""
    return encoded(tag) + varint(len(content)) + content


def read_sparse(buffer: memoryview, start: int, end: int, open_external: Any) -> SparseTensor:
    """A SparseTensorProto."""
    dims: list[int] = []
    sparse = SparseTensor(None, None, ())
    keep = bytearray()
    for tag, a, b, at in fields(buffer, start, end):
        if tag == SPARSE.values:
            sparse.values = read_tensor(buffer, a, b, open_external)
        elif tag == SPARSE.indices:
            sparse.indices = read_tensor(buffer, a, b, open_external)
        elif tag == SPARSE.dims:
            dims.append(signed(a))
        elif tag == packed(SPARSE.dims):
            integers(buffer, a, b, dims)
        else:
            keep += unknown_field(buffer, tag, at, b, SPARSE)
    sparse.shape, sparse.leftover = tuple(dims), bytes(keep)
    return sparse
