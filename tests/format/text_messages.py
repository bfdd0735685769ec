"""Random messages with every kind of oddity, for round trips through text."""

import random
import struct
from typing import Any

from sardonyx.dtypes import DataType
from sardonyx.format.fields import Field, enums, messages
from sardonyx.format.protos import proto_class
from sardonyx.format.text_attributes import FIELDS
from sardonyx.graph.attribute import AttributeType

NAMES = ["x", "y1", "_z", "a b", "", "é", "a.b", "float", "seq", "nan", "a\nb", 'q"u\\o', "a\rb"]
NAMES += ["\0", "1x", "?", "@{", "x y\t", "infinity", "domain", "}", "undefined", "wire", "map"]
STRINGS = [*NAMES, "line\r\n", "\x7f", "☃", "#c", "com.x", "ai.onnx.ml", "a..b", "aten::x"]
BYTES = [*(text.encode() for text in STRINGS), b"\xff\xfe", b"\x00", b"abc\xc3", b""]
FLOATS = [0.0, -0.0, 1.0, 0.1, 1e-45, 3.4e38, 16777217.0, 1 / 3]
FLOATS += [float("nan"), -float("nan"), float("inf"), -float("inf")]
INTEGERS = {
    "int64": [0, 1, -1, 5, 2**63 - 1, -(2**63), 1000],
    "uint64": [0, 1, 2**64 - 1, 2**63],
    "int32": [0, 1, -1, 2**31 - 1, -(2**31), 300],
}
UNKNOWN = [b"\xf8\x3e\x05", b"\xfa\x3e\x02ab", b"\xf9\x3e12345678", b"\xfd\x3e1234"]
UNKNOWN += [b"\xfb\x3e\xf8\x3e\x07\xfc\x3e"]
PAYLOADS = [0x7F800001, 0x7FC00001, 0xFFC12345]
LIKELY = frozenset(("name", "type", "op_type", "input", "output", "graph", "node", "data_type"))
LIKELY |= {
    "dims",
    "elem_type",
    "attribute",
    "tensor_type",
    "shape",
    "dim",
    "key",
    "value",
    "domain",
}


class Generator:
    """Fills messages at random; with `wild`, also with what only the wire format can hold."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.wild = self.random.random() < 0.5
        self.density = self.random.choice([1, 1.3, 1.7])

    def message(self, name: str) -> Any:
        """A random message of the class called `name`."""
        message = proto_class(name)()
        self.fill(name, message, self.random.choice([0, 2, 4]))
        return message

    def fill(self, name: str, message: Any, depth: int) -> None:
        """Set some of the fields of `message`."""
        for field in messages()[name].fields:
            likely = 0.3 if field.oneof else 0.5 if field.name in LIKELY else 0.12
            if self.random.random() < likely * self.density:
                self.set_field(message, field, self.random.choice([0, 1, 1, 2, 3]), depth)
        if name == "TensorProto" and self.random.random() < 0.75:
            self.fill_tensor(message)
        if name == "AttributeProto" and self.random.random() < 0.7:
            self.fill_attribute(message, depth)
        if self.wild:
            self.make_wild(name, message)

    def set_field(self, message: Any, field: Field, count: int, depth: int) -> None:
        """Set one field, to `count` values if it is repeated."""
        if field.kind in messages():
            if depth > 6:
                return
            for _ in range(count if field.repeated else 1):
                held = getattr(message, field.name)
                target = held.add() if field.repeated else held
                target.SetInParent()
                self.fill(field.kind, target, depth + 1)
        elif field.repeated:
            getattr(message, field.name).extend(self.scalar(field) for _ in range(count))
        else:
            setattr(message, field.name, self.scalar(field))

    def fill_attribute(self, message: Any, depth: int) -> None:
        """A name, a type and a value that go together."""
        message.Clear()
        message.name = self.random.choice([*NAMES, *("alpha", "axis") * 20])
        kind = AttributeType(self.random.randrange(1, 15))
        message.type = kind
        fields = messages()["AttributeProto"]
        self.set_field(message, fields.field(FIELDS[kind]), self.random.randrange(4), depth)

    def fill_tensor(self, message: Any) -> None:
        """A type, dimensions and values that go together, mostly."""
        message.Clear()
        message.name = self.random.choice(NAMES)
        kind = DataType(self.random.randrange(1, 29))
        count = self.random.choice([0, 1, 2, 3, 5, 20])
        message.data_type = kind
        message.dims.extend(self.random.choice([[count], [count, 1], [1, count]]))
        choice = self.random.random()
        if choice < 0.5 and kind == DataType.FLOAT:
            message.raw_data = struct.pack(f"<{count}f", *self.random.choices(FLOATS, k=count))
        elif choice < 0.5 and kind != DataType.STRING:
            size = max(kind.raw_size(count) + self.random.choice([0] * 9 + [1, -1]), 0)
            message.raw_data = bytes(self.random.choices([0, 1, 0x7F, 0x80, 0xFF, 0x2A], k=size))
        elif choice < 0.9:
            field = messages()["TensorProto"].field(kind.field)
            self.set_field(message, field, count, 0)
        else:
            message.data_location = 1
            for key in self.random.choices(["location", "offset"], k=self.random.randrange(3)):
                message.external_data.add(key=key, value=self.random.choice(STRINGS))

    def make_wild(self, name: str, message: Any) -> None:
        """Unknown fields, names that are not UTF-8, and NaNs with a payload."""
        if self.random.random() < 0.03:
            message.MergeFromString(self.random.choice(UNKNOWN))
        strings = [field for field in messages()[name].fields if field.kind == "string"]
        if strings and self.random.random() < 0.03:
            key = self.random.choice(strings).number << 3 | 2
            tag = bytes([key]) if key < 128 else bytes([key & 127 | 128, key >> 7])
            message.MergeFromString(tag + b"\x02\xff\xfe")
        if self.random.random() < 0.05:
            single = struct.pack("<I", self.random.choice(PAYLOADS))
            if name == "AttributeProto":
                message.MergeFromString(b"\x15" + single)
            if name == "TensorProto":
                message.MergeFromString(b"\x22\x08" + single * 2)
                message.MergeFromString(b"\x52\x08" + struct.pack("<Q", 0x7FF0000000000001))

    def scalar(self, field: Field) -> Any:
        """A value for a scalar field."""
        if field.name in ("elem_type", "data_type", "key_type"):
            return self.random.randrange(30)
        match field.kind:
            case "string":
                plain = self.random.random() < 0.6
                return self.random.choice(["x", "y", "t1", "foo"] if plain else STRINGS)
            case "bytes":
                return self.random.choice(BYTES)
            case "float":
                return struct.unpack("<f", struct.pack("<f", self.random.choice(FLOATS)))[0]
            case "double":
                return self.random.choice(FLOATS) * self.random.choice([1, 1e100, 1e-200])
            case "int32" | "int64" | "uint64":
                return self.random.choice(INTEGERS[field.kind])
        return self.random.choice(list(enums()[field.kind].values()))
