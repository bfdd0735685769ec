"""`@{...}`: fields the textual syntax has no place for, in protobuf's text format.

Three things go beyond that format: `-name` says a field is not there at all, `raw_data` alone keeps
a tensor's listed values in raw bytes, and `wire: "..."` holds encoded fields that no text can say
(unknown ones, NaNs with a payload, names that are not UTF-8).
"""

import math
import re
from functools import cache
from typing import Any

import numpy as np
from google.protobuf.unknown_fields import UnknownFieldSet

from sardonyx.format.fields import Field, enums, messages
from sardonyx.format.text_lexer import MAXIMUM_DEPTH, Reason, refuse
from sardonyx.format.text_numbers import format_floats

_SPECIAL = re.compile(r'[\x00-\x1f\x7f"\\]')
_SPECIAL_BYTES = re.compile(rb'[^\x20-\x7e]|["\\]')
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "\\": "\\\\"}


@cache
def fields_of(full_name: str) -> dict[str, Field]:
    """The fields of the message with this full protobuf name, by field name.

    >>> fields_of("onnx.TensorProto.Segment")["end"].kind
    'int64'
    """
    return {field.name: field for field in messages()[full_name.removeprefix("onnx.")].fields}


def check_print_depth(depth: int) -> None:
    """Refuse to print messages nested too deeply to be saved and loaded."""
    if depth > MAXIMUM_DEPTH:
        raise refuse(
            f"messages lie inside one another more than {MAXIMUM_DEPTH} levels deep",
            "no decoder of the binary format accepts that; flatten the model",
            Reason.DEPTH,
        )


def format_fields(message: Any, depth: int, skip: frozenset[str] | set[str] = frozenset()) -> str:
    """All set fields of `message` but those in `skip`, in text format on one line.

    >>> from sardonyx.format.protos import proto_class
    >>> format_fields(proto_class("NodeProto")(op_type="Relu", input=["x"]), 0)
    'input: ["x"] op_type: "Relu"'
    """
    parts, wire = [], b""
    for descriptor, value in message.ListFields():
        if descriptor.name in skip:
            continue
        field = fields_of(message.DESCRIPTOR.full_name)[descriptor.name]
        if field.kind in messages():
            check_print_depth(depth + 1)
            items = value if field.repeated else [value]
            inner = (format_fields(item, depth + 1) for item in items)
            parts += [f"{field.name} {{{text}}}" for text in inner]
            continue
        words = _format_scalars(message, field, list(value) if field.repeated else [value])
        if words is None:
            wire += field_wire(message, field.name)
        else:
            parts.append(
                f"{field.name}: " + (f"[{', '.join(words)}]" if field.repeated else words[0])
            )
    wire += unknown_wire(UnknownFieldSet(message))
    if wire:
        parts.append(f"wire: {quote_bytes(wire)}")
    return " ".join(parts)


def _format_scalars(message: Any, field: Field, values: list[Any]) -> list[str] | None:
    """Each value as a word of text format; None when one of them cannot be said exactly."""
    match field.kind:
        case "string":
            texts = [value for value in values if isinstance(value, str)]
            return list(map(quote, texts)) if len(texts) == len(values) else None
        case "bytes":
            return list(map(quote_bytes, values))
        case "float" | "double":
            if not nans_are_plain(message, field.name, values):
                return None
            return format_floats(
                np.array(values, np.float32 if field.kind == "float" else np.float64)
            )
        case "int32" | "int64" | "uint64":
            return list(map(str, values))
    names = {number: name for name, number in enums()[field.kind].items()}
    return [names[value] for value in values]


def nans_are_plain(message: Any, name: str, values: Any) -> bool:
    """True when every NaN of float field `name` is one that `nan` or `-nan` stands for."""
    if not any(map(math.isnan, values)):
        return True
    plain = type(message)()
    words = [math.copysign(math.nan, value) if math.isnan(value) else value for value in values]
    if fields_of(message.DESCRIPTOR.full_name)[name].repeated:
        getattr(plain, name).extend(words)
    else:
        setattr(plain, name, words[0])
    return bool(plain.SerializeToString() == field_wire(message, name))


def field_wire(message: Any, name: str) -> bytes:
    """One field of `message` in the binary format."""
    part = type(message)()
    part.CopyFrom(message)
    part.DiscardUnknownFields()
    for descriptor, _ in message.ListFields():
        if descriptor.name != name:
            part.ClearField(descriptor.name)
    return bytes(part.SerializeToString(deterministic=True))


def unknown_wire(fields: Any) -> bytes:
    """Fields this version of the format does not know, in the binary format."""
    return b"".join(
        _encode_unknown(field.field_number, field.wire_type, field.data) for field in fields
    )


def _encode_unknown(number: int, wire_type: int, data: Any) -> bytes:
    tag = _encode_varint(number << 3 | wire_type)
    match wire_type:
        case 0:
            return tag + _encode_varint(data)
        case 1:
            return tag + int(data).to_bytes(8, "little")
        case 2:
            return tag + _encode_varint(len(data)) + bytes(data)
        case 3:
            return tag + unknown_wire(data) + _encode_varint(number << 3 | 4)
    return tag + int(data).to_bytes(4, "little")


def _encode_varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def quote(text: str) -> str:
    """`text` in double quotes with text format's escapes.

    >>> print(quote('say "a"' + chr(10)))
    "say \\"a\\"\\n"
    """
    return f'"{_SPECIAL.sub(_escape, text)}"'


def _escape(found: re.Match[str]) -> str:
    return _escaped(found.group())


def _escaped(letter: str) -> str:
    return _SHORT.get(letter) or f"\\x{ord(letter):02x}"


def quote_bytes(content: bytes) -> str:
    """`content` in double quotes: as text where it is UTF-8, otherwise with escaped bytes.

    >>> print(quote_bytes(b"a\\xff"))
    "a\\xff"
    """
    try:
        return quote(content.decode())
    except UnicodeDecodeError:
        return f'"{_SPECIAL_BYTES.sub(_escape_byte, content).decode("ascii")}"'


def _escape_byte(found: re.Match[bytes]) -> bytes:
    return _escaped(found.group().decode("latin-1")).encode()
