"""Reading `@{...}`: fields in protobuf's text format, set on the message they follow."""

import re
from typing import Any

from google.protobuf.message import DecodeError

from sardonyx.format.fields import Field, enums, messages
from sardonyx.format.text_fields import fields_of
from sardonyx.format.text_lexer import Kind, Scanner
from sardonyx.record import record

_QUOTED = re.compile(r""""((?:[^"\\]++|\\.)*+)"|'((?:[^'\\]++|\\.)*+)'""", re.DOTALL)
_ESCAPED = re.compile(rb"\\(?:x([0-9a-fA-F]{1,2})|([0-7]{1,3})|(.))", re.DOTALL)
_LETTERS = {
    b"n": b"\n",
    b"r": b"\r",
    b"t": b"\t",
    b"a": b"\a",
    b"b": b"\b",
    b"f": b"\f",
    b"v": b"\v",
    b"\\": b"\\",
    b'"': b'"',
    b"'": b"'",
    b"?": b"?",
}
_INTEGERS = {
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint64": (0, 2**64 - 1),
}


@record
class Annotation:
    """What `@{...}` says beyond the fields it sets."""

    at: int
    removed: tuple[str, ...]
    raw: bool

    def remove_from(self, message: Any) -> None:
        """Clear the fields written as `-name`."""
        for name in self.removed:
            message.ClearField(name)


class FieldParser(Scanner):
    """A scanner that also reads annotations, and counts them."""

    annotations = 0

    def annotate(self, message: Any, depth: int) -> None:
        """Apply the annotation of `message`, if one comes next."""
        annotation = self.annotation(message, depth)
        if annotation is None:
            return
        if annotation.raw:
            self.fail("a value for raw_data", "raw_data alone belongs after values", annotation.at)
        annotation.remove_from(message)

    def annotation(self, message: Any, depth: int) -> Annotation | None:
        """Set on `message` the fields an annotation gives, if one comes next; say what is left."""
        if self.standard or self.peek() != "@" or not self.text.startswith("@{", self.position):
            return None
        start = self.position
        self.annotations += 1
        self.position += 2
        removed: list[str] = []
        raw = False
        while not self.take("}"):
            if self.take("-"):
                removed.append(self._field(message).name)
                continue
            raw = self._set_field(message, depth, bare=True) or raw
        return Annotation(start, tuple(removed), raw)

    def _field(self, message: Any) -> Field:
        self.peek()
        at = self.position
        name = self.expect_identifier("a field name, or '}' after the last field")
        fields = fields_of(message.DESCRIPTOR.full_name)
        if name not in fields:
            known = ", ".join(fields)
            self.fail(f"a field of {message.DESCRIPTOR.name}", f"its fields are {known}", at)
        return fields[name]

    def _set_field(self, message: Any, depth: int, bare: bool = False) -> bool:
        """Read one field; True when it is raw_data with no value (allowed if `bare`)."""
        if self.peek_identifier() == "wire":
            self._merge_wire(message)
            return False
        field = self._field(message)
        if field.kind in messages():
            self._set_messages(message, field, depth + 1)
        elif bare and field.name == "raw_data" and self.peek() != ":":
            self._separate()
            return True
        else:
            self.expect(":", "a field is written name: value, or name {...} if it is a message")
            self._set_scalars(message, field)
        self._separate()
        return False

    def _separate(self) -> None:
        if self.peek() and self.peek() in ",;":
            self.position += 1

    def _merge_wire(self, message: Any) -> None:
        self.identifier()
        self.expect(":", 'encoded fields are written wire: "..."')
        self.peek()
        at = self.position
        try:
            message.MergeFromString(self._content())
        except DecodeError:
            self.fail("encoded fields", "these bytes are not in protobuf's binary format", at)
        self._separate()

    def _set_messages(self, message: Any, field: Field, depth: int) -> None:
        self.check_depth(depth)
        self.take(":")
        if field.repeated and self.take("["):
            while not self.take("]"):
                self._set_message(getattr(message, field.name).add(), depth)
                self._separate()
        elif field.repeated:
            self._set_message(getattr(message, field.name).add(), depth)
        else:
            target = getattr(message, field.name)
            target.SetInParent()
            self._set_message(target, depth)

    def _set_message(self, target: Any, depth: int) -> None:
        self.expect("{", "a message's fields stand in braces")
        while not self.take("}"):
            self._set_field(target, depth)

    def _set_scalars(self, message: Any, field: Field) -> None:
        if not field.repeated:
            setattr(message, field.name, self._scalar(field))
            return
        values = []
        if self.take("["):
            while not self.take("]"):
                values.append(self._scalar(field))
                self._separate()
        else:
            values.append(self._scalar(field))
        getattr(message, field.name).extend(values)

    def _scalar(self, field: Field) -> Any:
        match field.kind:
            case "string":
                return self._text()
            case "bytes":
                return self._content()
            case "float" | "double":
                return self.floating("a number", field.kind == "float")
            case "int32" | "int64" | "uint64":
                return self.integer("an integer", *_INTEGERS[field.kind])
        return self._enumerated(enums()[field.kind])

    def _enumerated(self, values: dict[str, int]) -> int:
        self.peek()
        at = self.position
        name = self.identifier()
        if name:
            number = values.get(name)
        else:
            literal = self.literal()
            number = self.to_integer(literal) if literal.kind == Kind.INTEGER else None
        if number is None or number not in values.values():
            self.fail("a value of this enumeration", f"its values are {', '.join(values)}", at)
        return number

    def _text(self) -> str:
        self.peek()
        at = self.position
        try:
            return self._content().decode()
        except UnicodeDecodeError:
            self.fail("text in UTF-8", "bytes that are not UTF-8 can only be given by wire", at)

    def _content(self) -> bytes:
        """The bytes of one or more quoted strings, escapes resolved."""
        parts = []
        while self.peek() and self.peek() in "\"'":
            found = _QUOTED.match(self.text, self.position)
            if found is None:
                self.fail("a closing quote", "this string has no end")
            quoted = found.group(1) if found.group(1) is not None else found.group(2)
            if "\\" in quoted:
                parts.append(_ESCAPED.sub(self._unescape, quoted.encode()))
            else:
                parts.append(quoted.encode())
            self.position = found.end()
        if not parts:
            self.fail("a quoted string", 'write it as "...", with \\n, \\" and \\x00 as escapes')
        return b"".join(parts)

    def _unescape(self, found: re.Match[bytes]) -> bytes:
        hexadecimal, octal, letter = found.groups()
        if hexadecimal is not None:
            return bytes([int(hexadecimal, 16)])
        if octal is not None and int(octal, 8) < 256:
            return bytes([int(octal, 8)])
        if letter in _LETTERS:
            return _LETTERS[letter]
        self.fail(
            "an escape", "known ones are \\n \\r \\t \\a \\b \\f \\v \\\\ \\\" \\' \\x00 \\000"
        )
