"""Where tensors' elements are stored in a file: raw bytes, packed fields, strings, other files."""

import hashlib
from collections.abc import Callable
from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sardonyx.dtypes import DataType, unpack
from sardonyx.errors import ExternalDataError, FormatError, TensorError
from sardonyx.format.opened import Stored, content_of
from sardonyx.format.wire import Buffer, WireError, count_varints, decode_varints
from sardonyx.graph import Tensor
from sardonyx.record import record

FLOAT_DATA, INT32_DATA, STRING_DATA, INT64_DATA, RAW_DATA, DOUBLE_DATA, UINT64_DATA = (
    4,
    5,
    6,
    7,
    9,
    10,
    11,
)
_FIELD_NUMBERS = {
    "float_data": FLOAT_DATA,
    "int32_data": INT32_DATA,
    "int64_data": INT64_DATA,
    "double_data": DOUBLE_DATA,
    "uint64_data": UINT64_DATA,
}


@record
class RawData:
    """Elements as little-endian bytes, those below a byte packed; usually in the mapped file."""

    stored: Stored
    __match_args__ = ("buffer",)

    @property
    def buffer(self) -> Buffer:
        """The bytes."""
        return content_of(self.stored)

    def array(self, tensor: Tensor) -> NDArray[Any]:
        """A view of the bytes; elements below a byte are unpacked into an array of their own."""
        return raw_array(self.buffer, tensor)

    def nbytes(self, tensor: Tensor) -> int:
        """The number of bytes."""
        return len(self.stored)


@record
class EmbeddedData(RawData):
    """Elements that lay in another file and are now in this one, which is said in so many words."""


@record
class PackedData:
    """Elements in one of the typed fields, as that field's packed encoding."""

    number: int
    stored: Stored
    __match_args__ = ("number", "buffer")

    @property
    def buffer(self) -> Buffer:
        """The encoding."""
        return content_of(self.stored)

    def array(self, tensor: Tensor) -> NDArray[Any]:
        """The elements, decoded; floats and doubles are views."""
        wanted = _FIELD_NUMBERS.get(tensor.dtype.field)
        if self.number != wanted:
            raise TensorError(
                f"tensor '{tensor.name}' is {tensor.dtype.text}, its data in field {self.number}",
                hint=f"that type is stored in {tensor.dtype.field} or raw_data",
            )
        if self.number in (FLOAT_DATA, DOUBLE_DATA):
            return raw_array(
                self.buffer, tensor, "float_data" if self.number == FLOAT_DATA else "double_data"
            )
        return _decoded(self.buffer, tensor)

    def nbytes(self, tensor: Tensor) -> int:
        """Bytes of the encoding."""
        return len(self.stored)


@record
class StringData:
    """Strings that are still in the tensor's message: `find` reads them out of it."""

    stored: Stored
    find: Callable[[Buffer], list[bytes]] = field(compare=False)

    def load(self) -> list[bytes]:
        """The strings."""
        return self.find(content_of(self.stored))

    def array(self, tensor: Tensor) -> NDArray[Any]:
        """An array of text; bytes that are not UTF-8 are kept by surrogates."""
        if tensor.dtype != DataType.STRING:
            raise TensorError(f"tensor '{tensor.name}' is {tensor.dtype.text} but holds strings")
        items = self.load()
        require_count(tensor, len(items), "string_data")
        array = np.empty(len(items), object)
        array[:] = [str(item, "utf-8", "surrogateescape") for item in items]
        return array.reshape(tensor.shape)

    def nbytes(self, tensor: Tensor) -> int:
        """Bytes of the encoding."""
        return len(self.stored)


@record
class NoData:
    """No data field at all: right for a tensor without elements only."""

    def array(self, tensor: Tensor) -> NDArray[Any]:
        """An empty array."""
        require_count(tensor, 0, "no data")
        return np.empty(tensor.shape, tensor.dtype.numpy)

    def nbytes(self, tensor: Tensor) -> int:
        """None."""
        return 0


@record
class ExternalData:
    """Elements in another file: its `entries` as the model gives them, and `open` to get a slice.

    `open(location, offset, length)` returns the bytes; the length is None for the file's rest.
    """

    entries: tuple[tuple[str, str], ...]
    open: Callable[[str, int, int | None], Buffer] = field(compare=False)

    @property
    def location(self) -> str:
        """The file's name as written in the model."""
        return dict(self.entries).get("location", "")

    @property
    def offset(self) -> int:
        """Where the data starts in that file."""
        return self._number("offset") or 0

    @property
    def length(self) -> int | None:
        """How many bytes there are; None means up to what the tensor needs."""
        return self._number("length")

    def require_inside(self, tensor: Tensor, size: int) -> None:
        """Raise unless the data is as long as the tensor needs, inside a file of `size` bytes."""
        need = self.nbytes(tensor)
        if tensor.dtype.raw_size(tensor.size) != need:
            raise ExternalDataError(
                f"tensor '{tensor.name}' ({tensor.dtype.text}{list(tensor.shape)}) needs "
                f"{tensor.dtype.raw_size(tensor.size)} bytes, its external data has {need}",
                hint="the model is damaged, or its dimensions are wrong",
            )
        if self.offset + need > size:
            raise ExternalDataError(
                f"tensor '{tensor.name}' wants bytes {self.offset} to {self.offset + need} of "
                f"'{self.location}', which has {size}",
                hint="the data file is cut short or belongs to another model; fetch it again",
            )

    def buffer(self, tensor: Tensor) -> Buffer:
        """The tensor's bytes, with the checksum verified where there is one."""
        if tensor.dtype == DataType.STRING:
            raise ExternalDataError(
                f"tensor '{tensor.name}' holds strings, which cannot lie in another file"
            )
        length = tensor.dtype.raw_size(tensor.size) if self.length is None else self.length
        data = self.open(self.location, self.offset, length)
        checksum = dict(self.entries).get("checksum", "")
        if checksum and hashlib.sha1(data).hexdigest() != checksum.lower():
            raise ExternalDataError(
                f"the data of tensor '{tensor.name}' does not match its checksum",
                where=self.location,
                hint="fetch the file again, or save without checksums if it was changed on purpose",
            )
        return data

    def array(self, tensor: Tensor) -> NDArray[Any]:
        """A view into the other file."""
        return raw_array(self.buffer(tensor), tensor)

    def nbytes(self, tensor: Tensor) -> int:
        """The number of bytes."""
        return tensor.dtype.raw_size(tensor.size) if self.length is None else self.length

    def _number(self, key: str) -> int | None:
        text = dict(self.entries).get(key, "")
        if not text:
            return None
        if not text.isascii() or not text.isdigit() or len(text) > 19:
            raise ExternalDataError(
                f"external data of '{self.location}' has the {key} '{text[:40]}'",
                hint="it must be a whole number that is not negative",
            )
        return int(text)


def raw_array(buffer: Buffer, tensor: Tensor, where: str = "raw_data") -> NDArray[Any]:
    """Little-endian raw bytes in the tensor's shape, without a copy where elements fill bytes."""
    kind, size = tensor.dtype, tensor.size
    if kind == DataType.STRING:
        raise TensorError(
            f"tensor '{tensor.name}' holds strings in {where}", hint="use string_data"
        )
    need = kind.raw_size(size)
    if len(buffer) != need:
        raise TensorError(
            f"tensor '{tensor.name}' ({kind.text}{list(tensor.shape)}) needs {need} bytes, "
            f"its {where} has {len(buffer)}",
            hint="the file is damaged, or the dimensions are wrong",
        )
    if kind.bits < 8:
        codes = unpack(np.frombuffer(buffer, np.uint8), kind.bits, size)
        return codes.view(kind.numpy).reshape(tensor.shape)
    return np.frombuffer(buffer, kind.numpy).reshape(tensor.shape)


def _decoded(buffer: Buffer, tensor: Tensor) -> NDArray[Any]:
    kind, size = tensor.dtype, tensor.size
    bytes_each = kind.bits < 8 and kind.bits != 6
    stored = kind.raw_size(size) if bytes_each else size
    require_count(tensor, count_varints(buffer), kind.field, stored)
    try:
        values = decode_varints(buffer)
    except WireError as error:
        raise FormatError(f"{kind.field} of tensor '{tensor.name}': {error.what}") from None
    if kind.bits < 8:
        codes = values.astype(np.uint8)
        codes = unpack(codes, kind.bits, size) if bytes_each else codes & np.uint8(0x3F)
        return codes.view(kind.numpy).reshape(tensor.shape)
    if kind == DataType.BOOL:
        return np.not_equal(values, 0).reshape(tensor.shape)
    unsigned: NDArray[Any] = values.astype(np.dtype(f"u{kind.numpy.itemsize}"))
    return unsigned.view(kind.numpy).reshape(tensor.shape)


def require_count(tensor: Tensor, found: int, where: str, need: int | None = None) -> None:
    """Raise unless a data field holds as many entries as the dimensions say."""
    need = tensor.size if need is None else need
    if found != need:
        raise TensorError(
            f"tensor '{tensor.name}' ({tensor.dtype.text}{list(tensor.shape)}) needs {need} "
            f"entries, {where} has {found}",
            hint="the file is damaged, or the dimensions are wrong",
        )
