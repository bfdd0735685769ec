"""Messages that no tool of ours looks into (device configurations) as plain records."""

from dataclasses import dataclass, field
from typing import Any

from sardonyx.format.fields import Field, messages
from sardonyx.format.tags import wire_kind
from sardonyx.format.wire import (
    BYTES,
    VARINT,
    Buffer,
    WireError,
    fields,
    integers,
    signed,
    varint,
)


@dataclass(slots=True)
class Record:
    """One message: its name and the fields that are present; repeated fields are lists."""

    kind: str
    values: dict[str, Any] = field(default_factory=dict)
    leftover: bytes = b""


def read_record(buffer: Buffer, start: int, end: int, kind: str) -> Record:
    """Decode the message `kind` from bytes [start, end)."""
    table = {row.number: row for row in messages()[kind].fields}
    record = Record(kind)
    keep = bytearray()
    for tag, a, b, at in fields(buffer, start, end):
        row = table.get(tag >> 3)
        if row is None:
            keep += bytes(buffer[at:b])
        elif row.repeated and wire_kind(row) == VARINT and tag & 7 == BYTES:
            items = record.values.setdefault(row.name, [])
            integers(buffer, a, b, items)
        elif tag & 7 != wire_kind(row):
            raise WireError(at, f"field '{row.name}' has the wire type {tag & 7}")
        else:
            _store(record, row, _element(buffer, a, b, at, row))
    record.leftover = bytes(keep)
    return record


def _element(buffer: Buffer, a: int, b: int, at: int, row: Field) -> Any:
    if row.kind in messages():
        return read_record(buffer, a, b, row.kind)
    if row.kind == "string":
        try:
            return str(buffer[a:b], "utf-8")
        except UnicodeDecodeError:
            raise WireError(at, f"field '{row.name}' is not UTF-8 text") from None
    return signed(a)


def _store(record: Record, row: Field, value: Any) -> None:
    if row.repeated:
        record.values.setdefault(row.name, []).append(value)
        return
    if row.oneof:
        for other in messages()[record.kind].fields:
            if other.oneof == row.oneof:
                record.values.pop(other.name, None)
    record.values[row.name] = value


def write_record(record: Record) -> bytes:
    """Encode a record."""
    pieces = [record.leftover]
    for row in messages()[record.kind].fields:
        if row.name not in record.values:
            continue
        value = record.values[row.name]
        tag = varint(row.number << 3 | wire_kind(row))
        for item in value if row.repeated else [value]:
            match item:
                case Record():
                    content = write_record(item)
                case str():
                    content = item.encode("utf-8", "surrogateescape")
                case _:
                    pieces += [tag, varint(item)]
                    continue
            pieces += [tag, varint(len(content)), content]
    return b"".join(pieces)
