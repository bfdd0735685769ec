"""ONNX's element types: numbers, NumPy types, storage, and packing of those below one byte."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from sardonyx.errors import TensorError, UnsupportedError


class DataType(IntEnum):
    """An element type, with ONNX's number.

    >>> DataType.BFLOAT16.numpy
    dtype(bfloat16)
    >>> DataType.INT4.bits
    4
    """

    UNDEFINED = 0
    FLOAT = 1
    UINT8 = 2
    INT8 = 3
    UINT16 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    STRING = 8
    BOOL = 9
    FLOAT16 = 10
    DOUBLE = 11
    UINT32 = 12
    UINT64 = 13
    COMPLEX64 = 14
    COMPLEX128 = 15
    BFLOAT16 = 16
    FLOAT8E4M3FN = 17
    FLOAT8E4M3FNUZ = 18
    FLOAT8E5M2 = 19
    FLOAT8E5M2FNUZ = 20
    UINT4 = 21
    INT4 = 22
    FLOAT4E2M1 = 23
    FLOAT8E8M0 = 24
    UINT2 = 25
    INT2 = 26
    FLOAT6E2M3 = 27
    FLOAT6E3M2 = 28

    @property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy type (from ml_dtypes where NumPy has none); strings are objects."""
        return _layout(self).numpy

    @property
    def bits(self) -> int:
        """Bits one element takes in raw storage; 0 for strings."""
        return _layout(self).bits

    @property
    def field(self) -> str:
        """The TensorProto field that holds elements when raw storage is not used."""
        return _layout(self).field

    @property
    def text(self) -> str:
        """The name in ONNX's textual syntax and type strings.

        >>> DataType.FLOAT.text, DataType.DOUBLE.text, DataType.INT64.text
        ('float', 'double', 'int64')
        """
        return self.name.lower()

    @property
    def is_float(self) -> bool:
        """True for every real floating-point type, the narrow ones included."""
        return self in FLOATS

    @property
    def is_integer(self) -> bool:
        """True for signed and unsigned integers of any width; not for bool."""
        return self in INTEGERS

    @property
    def since_ir(self) -> int:
        """The IR version that brought this type.

        >>> DataType.FLOAT.since_ir, DataType.INT4.since_ir
        (1, 10)
        """
        return _SINCE_IR.get(self, 1)

    def raw_size(self, count: int) -> int:
        """Bytes that `count` elements take in raw storage.

        >>> DataType.INT4.raw_size(3), DataType.FLOAT6E2M3.raw_size(3), DataType.DOUBLE.raw_size(3)
        (2, 3, 24)
        """
        return (self.bits * count + 7) // 8


@dataclass(frozen=True, slots=True)
class _Layout:
    numpy: np.dtype[Any]
    bits: int
    field: str


_LAYOUTS = {
    DataType.FLOAT: _Layout(np.dtype(np.float32), 32, "float_data"),
    DataType.UINT8: _Layout(np.dtype(np.uint8), 8, "int32_data"),
    DataType.INT8: _Layout(np.dtype(np.int8), 8, "int32_data"),
    DataType.UINT16: _Layout(np.dtype(np.uint16), 16, "int32_data"),
    DataType.INT16: _Layout(np.dtype(np.int16), 16, "int32_data"),
    DataType.INT32: _Layout(np.dtype(np.int32), 32, "int32_data"),
    DataType.INT64: _Layout(np.dtype(np.int64), 64, "int64_data"),
    DataType.STRING: _Layout(np.dtype(object), 0, "string_data"),
    DataType.BOOL: _Layout(np.dtype(np.bool_), 8, "int32_data"),
    DataType.FLOAT16: _Layout(np.dtype(np.float16), 16, "int32_data"),
    DataType.DOUBLE: _Layout(np.dtype(np.float64), 64, "double_data"),
    DataType.UINT32: _Layout(np.dtype(np.uint32), 32, "uint64_data"),
    DataType.UINT64: _Layout(np.dtype(np.uint64), 64, "uint64_data"),
    DataType.COMPLEX64: _Layout(np.dtype(np.complex64), 64, "float_data"),
    DataType.COMPLEX128: _Layout(np.dtype(np.complex128), 128, "double_data"),
    DataType.BFLOAT16: _Layout(np.dtype(ml_dtypes.bfloat16), 16, "int32_data"),
    DataType.FLOAT8E4M3FN: _Layout(np.dtype(ml_dtypes.float8_e4m3fn), 8, "int32_data"),
    DataType.FLOAT8E4M3FNUZ: _Layout(np.dtype(ml_dtypes.float8_e4m3fnuz), 8, "int32_data"),
    DataType.FLOAT8E5M2: _Layout(np.dtype(ml_dtypes.float8_e5m2), 8, "int32_data"),
    DataType.FLOAT8E5M2FNUZ: _Layout(np.dtype(ml_dtypes.float8_e5m2fnuz), 8, "int32_data"),
    DataType.UINT4: _Layout(np.dtype(ml_dtypes.uint4), 4, "int32_data"),
    DataType.INT4: _Layout(np.dtype(ml_dtypes.int4), 4, "int32_data"),
    DataType.FLOAT4E2M1: _Layout(np.dtype(ml_dtypes.float4_e2m1fn), 4, "int32_data"),
    DataType.FLOAT8E8M0: _Layout(np.dtype(ml_dtypes.float8_e8m0fnu), 8, "int32_data"),
    DataType.UINT2: _Layout(np.dtype(ml_dtypes.uint2), 2, "int32_data"),
    DataType.INT2: _Layout(np.dtype(ml_dtypes.int2), 2, "int32_data"),
    DataType.FLOAT6E2M3: _Layout(np.dtype(ml_dtypes.float6_e2m3fn), 6, "int32_data"),
    DataType.FLOAT6E3M2: _Layout(np.dtype(ml_dtypes.float6_e3m2fn), 6, "int32_data"),
}
_SINCE_IR = {
    DataType.BFLOAT16: 4,
    DataType.FLOAT8E4M3FN: 9,
    DataType.FLOAT8E4M3FNUZ: 9,
    DataType.FLOAT8E5M2: 9,
    DataType.FLOAT8E5M2FNUZ: 9,
    DataType.UINT4: 10,
    DataType.INT4: 10,
    DataType.FLOAT4E2M1: 11,
    DataType.FLOAT8E8M0: 12,
    DataType.UINT2: 13,
    DataType.INT2: 13,
    DataType.FLOAT6E2M3: 14,
    DataType.FLOAT6E3M2: 14,
}
_BY_NUMBER = {int(kind): kind for kind in DataType}
_BY_NUMPY = {layout.numpy: kind for kind, layout in _LAYOUTS.items()}

FLOATS = frozenset(
    kind
    for kind in DataType
    if kind.name.startswith(("FLOAT", "BFLOAT")) or kind == DataType.DOUBLE
)
"""All real floating-point types."""
INTEGERS = frozenset(kind for kind in DataType if kind.name.startswith(("INT", "UINT")))
"""All integer types."""


def _layout(kind: DataType) -> _Layout:
    try:
        return _LAYOUTS[kind]
    except KeyError:
        raise TensorError(
            "the element type is UNDEFINED", hint="set the tensor's data_type"
        ) from None


def data_type(number: int) -> DataType:
    """The element type with ONNX's `number`.

    >>> data_type(10)
    <DataType.FLOAT16: 10>
    """
    found = _BY_NUMBER.get(number)
    if found is None:
        raise UnsupportedError(
            f"element type {number} is unknown",
            hint=f"known are {min(_LAYOUTS):d} to {max(_LAYOUTS):d}; a newer sardonyx may know it",
        )
    return found


def from_numpy(dtype: object) -> DataType:
    """The element type of a NumPy type; text and bytes kinds are strings.

    >>> from_numpy("float64"), from_numpy("<U5")
    (<DataType.DOUBLE: 11>, <DataType.STRING: 8>)
    """
    wanted = np.dtype(dtype)  # type: ignore[call-overload]
    kind = _BY_NUMPY.get(wanted) or _BY_NUMPY.get(wanted.newbyteorder("="))
    if kind is not None:
        return kind
    if wanted.kind in "OUSTa":
        return DataType.STRING
    raise UnsupportedError(
        f"NumPy type {wanted} has no ONNX element type", hint="cast the array first"
    )


def pack(codes: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    """Codes of 2, 4 or 6 bits, one a byte -> a dense stream, first element in the lowest bits.

    Bits of a byte above the code do not count.

    >>> pack(np.array([1, 2, 3], np.uint8), 4).tolist()
    [33, 3]
    """
    codes_each, bytes_each = _GROUPS[bits]
    groups = -(-codes.size // codes_each)
    padded = np.zeros(groups * codes_each, np.uint8)
    padded[: codes.size] = codes.reshape(-1) & np.uint8((1 << bits) - 1)
    stream = np.zeros(groups * bytes_each, np.uint8)
    for position in range(codes_each):
        at, shift = divmod(position * bits, 8)
        part = padded[position::codes_each]
        stream[at::bytes_each] |= part << np.uint8(shift)
        if shift + bits > 8:
            stream[at + 1 :: bytes_each] |= part >> np.uint8(8 - shift)
    return stream[: (bits * codes.size + 7) // 8]


def unpack(stream: NDArray[np.uint8], bits: int, count: int) -> NDArray[np.uint8]:
    """The inverse of `pack`: the first `count` codes, one a byte.

    >>> unpack(np.array([33, 3], np.uint8), 4, 3).tolist()
    [1, 2, 3]
    """
    need = (bits * count + 7) // 8
    if stream.size < need:
        raise TensorError(f"{count} elements of {bits} bits need {need} bytes, not {stream.size}")
    codes_each, bytes_each = _GROUPS[bits]
    groups = -(-count // codes_each)
    whole = stream[: groups * bytes_each]
    if whole.size < groups * bytes_each:
        whole = np.concatenate((whole, np.zeros(groups * bytes_each - whole.size, np.uint8)))
    codes = np.empty(groups * codes_each, np.uint8)
    for position in range(codes_each):
        at, shift = divmod(position * bits, 8)
        part = whole[at::bytes_each] >> np.uint8(shift)
        if shift + bits > 8:
            part |= whole[at + 1 :: bytes_each] << np.uint8(8 - shift)
        codes[position::codes_each] = part & np.uint8((1 << bits) - 1)
    return codes[:count]


_GROUPS = {2: (4, 1), 4: (2, 1), 6: (4, 3)}
"""For each width: how many codes fill how many bytes exactly."""
