"""Adapters: named arrays in onnxruntime's file format, fed to a model while they are active.

The format is a flatbuffer: a table of versions and parameters, each a table of a name, dimensions,
an element type and bytes. A table begins with the distance back to its list of field offsets.
"""

import math
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sardonyx.compat.onnxruntime.errors import InvalidProtobuf, NoSuchFile
from sardonyx.compat.onnxruntime.session import in_their_classes
from sardonyx.dtypes import DataType, data_type, from_numpy
from sardonyx.errors import InputError
from sardonyx.format.files import replacing
from sardonyx.runtime.values import OrtValue, plain

_IDENTIFIER = b"TORT"
_FORMAT = 1


class AdapterFormat:
    """An adapter's versions and arrays.

    >>> adapter = AdapterFormat()
    >>> adapter.set_parameters({"a": OrtValue(np.zeros(2, np.float32))})
    >>> adapter.get_parameters()["a"].shape()
    [2]
    """

    def __init__(self) -> None:
        self._format = _FORMAT
        self._adapter = 0
        self._model = 0
        self._arrays: dict[str, NDArray[Any]] = {}

    @staticmethod
    @in_their_classes
    def read_adapter(file_path: Any) -> "AdapterFormat":
        """The adapter in a file."""
        made = AdapterFormat()
        reader = _Reader(_content(file_path))
        root = reader.table(reader.number("<I", 0))
        made._format, made._adapter, made._model = (reader.whole(root, field) for field in range(3))
        if made._format != _FORMAT:
            raise InvalidProtobuf(
                f"the adapter has format {made._format}", hint=f"only {_FORMAT} is known"
            )
        for place in reader.vector(root, 3, "<I"):
            name, array = reader.parameter(place)
            made._arrays[name] = array
        return made

    @in_their_classes
    def export_adapter(self, file_path: Any) -> None:
        """Write the adapter to a file."""
        with replacing(Path(file_path)) as staged:
            staged.write_bytes(self._content())

    def _content(self) -> bytes:
        content = bytearray(struct.pack("<I", 0) + _IDENTIFIER)
        root = _put_table(content, [self._format, self._adapter, self._model, None])
        struct.pack_into("<I", content, 0, root)
        _refer(content, root + 16)
        first = len(content) + 4
        content += struct.pack("<I", len(self._arrays)) + bytes(4 * len(self._arrays))
        for number, (name, array) in enumerate(self._arrays.items()):
            table = _put_table(content, [None, None, int(from_numpy(array.dtype)), None])
            at = first + 4 * number
            struct.pack_into("<I", content, at, table - at)
            _put_vector(content, table + 4, name.encode() + b"\0", len(name.encode()))
            dims = struct.pack(f"<{array.ndim}q", *array.shape)
            _put_vector(content, table + 8, dims, array.ndim)
            data = np.ascontiguousarray(array).tobytes()
            _put_vector(content, table + 16, data, len(data))
        return bytes(content)

    def get_format_version(self) -> int:
        """The version of the file format."""
        return self._format

    def get_adapter_version(self) -> int:
        """The adapter's own version."""
        return self._adapter

    def set_adapter_version(self, adapter_version: int) -> None:
        """Set the adapter's own version."""
        self._adapter = int(adapter_version)

    def get_model_version(self) -> int:
        """The version of the model that the adapter is for."""
        return self._model

    def set_model_version(self, model_version: int) -> None:
        """Set the version of the model that the adapter is for."""
        self._model = int(model_version)

    def get_parameters(self) -> dict[str, OrtValue]:
        """The arrays by name."""
        return {name: OrtValue(array) for name, array in self._arrays.items()}

    def set_parameters(self, params: Mapping[str, Any]) -> None:
        """Set the arrays by name."""
        arrays = {name: np.asarray(plain(value)) for name, value in params.items()}
        for name, array in arrays.items():
            if from_numpy(array.dtype) == DataType.STRING:
                raise InputError(f"the parameter '{name}' holds strings, which cannot be stored")
        self._arrays = arrays


class LoraAdapter:
    """An adapter to activate with `RunOptions.add_active_adapter`."""

    def __init__(self) -> None:
        self.parameters: dict[str, Any] = {}
        """What is fed while the adapter is active."""

    def Load(self, file_path: Any) -> None:
        """Read a file."""
        adapter = AdapterFormat.read_adapter(file_path)
        self.parameters = {name: value.numpy() for name, value in adapter.get_parameters().items()}


class _Reader:
    """Numbers, tables and vectors in a flatbuffer that may be damaged."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        if content[4:8] != _IDENTIFIER:
            raise _damaged("it does not begin as an adapter does")

    def number(self, kind: str, at: int) -> int:
        """A number at a place."""
        if not 0 <= at <= len(self._content) - struct.calcsize(kind):
            raise _damaged(f"it refers to byte {at}, beyond its end")
        return int(struct.unpack_from(kind, self._content, at)[0])

    def table(self, at: int) -> int:
        """The place of a table, once its list of fields is seen to be there."""
        fields = at - self.number("<i", at)
        if self.number("<H", fields) < 4:
            raise _damaged(f"the table at byte {at} has no fields")
        return at

    def field(self, table: int, number: int) -> int:
        """The place of a field; 0 where it is absent."""
        fields = table - self.number("<i", table)
        if 4 + 2 * number >= self.number("<H", fields):
            return 0
        offset = self.number("<H", fields + 4 + 2 * number)
        return table + offset if offset else 0

    def whole(self, table: int, number: int) -> int:
        """A number in a field, 0 where it is absent."""
        at = self.field(table, number)
        return self.number("<i", at) if at else 0

    def span(self, table: int, number: int, width: int) -> tuple[int, int]:
        """Where a vector's elements begin, and how many there are; it lies inside of the file."""
        at = self.field(table, number)
        if not at:
            return 0, 0
        start = at + self.number("<I", at)
        count = self.number("<I", start)
        if start + 4 + count * width > len(self._content):
            raise _damaged(f"a list at byte {start} goes beyond its end")
        return start + 4, count

    def vector(self, table: int, number: int, kind: str) -> list[int]:
        """Numbers in a field; references as the places they lead to."""
        width = struct.calcsize(kind)
        start, count = self.span(table, number, width)
        places = [start + width * at for at in range(count)]
        found = [self.number(kind, place) for place in places]
        if kind == "<I":
            return [place + offset for place, offset in zip(places, found, strict=True)]
        return found

    def text(self, table: int, number: int, width: int = 1) -> bytes:
        """Bytes in a field."""
        start, count = self.span(table, number, width)
        return self._content[start : start + count]

    def parameter(self, at: int) -> tuple[str, NDArray[Any]]:
        """A name and its array."""
        table = self.table(at)
        name = self.text(table, 0).decode("utf-8", "replace")
        shape = self.vector(table, 1, "<q")
        number, data = self.whole(table, 2), self.text(table, 3)
        if number not in frozenset(DataType) - {DataType.UNDEFINED} or any(
            size < 0 for size in shape
        ):
            raise _damaged(f"the type or shape of '{name}' makes no sense")
        kind = data_type(number).numpy
        if kind.kind == "O" or math.prod(shape) * kind.itemsize != len(data):
            raise _damaged(f"'{name}' has {len(data)} bytes, which is not what its shape needs")
        try:
            return name, np.frombuffer(data, kind).reshape(shape)
        except ValueError as error:
            raise _damaged(f"the shape of '{name}': {error}") from None


def _content(path: Any) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise NoSuchFile(f"cannot open '{path}': {error}", hint="check the path") from None


def _damaged(why: str) -> InvalidProtobuf:
    return InvalidProtobuf(f"the adapter cannot be read: {why}", hint="fetch or export it again")


def _put_table(content: bytearray, fields: list[int | None]) -> int:
    """Append a table of four-byte fields; None for what will refer to something behind it."""
    content += bytes(-len(content) % 4)
    size = 4 + 4 * len(fields)
    offsets = [4 + 4 * number for number in range(len(fields))]
    listed = struct.pack(f"<{2 + len(fields)}H", 4 + 2 * len(fields), size, *offsets)
    listed += bytes(-len(listed) % 4)
    content += listed
    table = len(content)
    content += struct.pack("<i", len(listed))
    content += struct.pack(f"<{len(fields)}i", *(field or 0 for field in fields))
    return table


def _refer(content: bytearray, at: int) -> None:
    """Let the field at a place refer to what is appended next."""
    content += bytes(-len(content) % 4)
    struct.pack_into("<I", content, at, len(content) - at)


def _put_vector(content: bytearray, at: int, data: bytes, count: int) -> None:
    """Append elements, aligned to eight bytes, that the field at a place refers to."""
    content += bytes(-(len(content) + 4) % 8)
    _refer(content, at)
    content += struct.pack("<I", count) + data
