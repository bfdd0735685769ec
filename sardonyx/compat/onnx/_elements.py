"""Array elements to and from the bytes and codes a tensor message stores."""

import math
import sys
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from sardonyx.compat.onnx._mapping import FIELD_OF_STORAGE, TENSOR_TYPE_MAP, TYPE_OF_NUMPY
from sardonyx.dtypes import DataType, pack, unpack


def tensor_dtype_to_np_dtype(tensor_dtype: int) -> np.dtype[Any]:
    """The NumPy type of an element type; ml_dtypes supplies those NumPy lacks.

    >>> from sardonyx.compat.onnx import TensorProto, helper
    >>> helper.tensor_dtype_to_np_dtype(TensorProto.FLOAT16)
    dtype('float16')
    """
    return TENSOR_TYPE_MAP[tensor_dtype].np_dtype


def tensor_dtype_to_storage_tensor_dtype(tensor_dtype: int) -> int:
    """The element type whose field stores an element type outside raw data.

    >>> from sardonyx.compat.onnx import TensorProto, helper
    >>> helper.tensor_dtype_to_storage_tensor_dtype(TensorProto.FLOAT16) == TensorProto.INT32
    True
    """
    return TENSOR_TYPE_MAP[tensor_dtype].storage_dtype


def tensor_dtype_to_string(tensor_dtype: int) -> str:
    """The name of an element type, with the message it belongs to.

    >>> from sardonyx.compat.onnx import TensorProto, helper
    >>> helper.tensor_dtype_to_string(TensorProto.FLOAT16)
    'TensorProto.FLOAT16'
    """
    return TENSOR_TYPE_MAP[tensor_dtype].name


def tensor_dtype_to_field(tensor_dtype: int) -> str:
    """The field of a tensor message that stores an element type outside raw data.

    >>> from sardonyx.compat.onnx import TensorProto, helper
    >>> helper.tensor_dtype_to_field(TensorProto.FLOAT16)
    'int32_data'
    """
    return FIELD_OF_STORAGE[TENSOR_TYPE_MAP[tensor_dtype].storage_dtype]


def np_dtype_to_tensor_dtype(np_dtype: np.dtype[Any]) -> int:
    """The element type of a NumPy type; fixed-width text is STRING, others raise ValueError.

    >>> import numpy as np
    >>> from sardonyx.compat.onnx import TensorProto, helper
    >>> helper.np_dtype_to_tensor_dtype(np.dtype("int8")) == TensorProto.INT8
    True
    """
    if np_dtype in TYPE_OF_NUMPY:
        return TYPE_OF_NUMPY[np_dtype]
    if np.issubdtype(np_dtype, np.str_):
        return int(DataType.STRING)
    raise ValueError(f"NumPy type {np_dtype!r} has no ONNX element type: cast the array first")


def get_all_tensor_dtypes() -> Any:
    """The numbers of all element types, without UNDEFINED.

    >>> from sardonyx.compat.onnx import helper
    >>> len(helper.get_all_tensor_dtypes())
    28
    """
    return TENSOR_TYPE_MAP.keys()


def pack_elements(array: NDArray[Any], bits: int) -> NDArray[np.uint8]:
    """An array of one-byte elements, of which `bits` are stored, as a dense stream."""
    if array.dtype.itemsize != 1:
        raise ValueError(
            f"elements of {bits} bits must come one a byte, not as {array.dtype}: cast the array"
        )
    return pack(np.ascontiguousarray(array).reshape(-1).view(np.uint8), bits)


def unpack_elements(stream: NDArray[np.uint8], bits: int, dims: Sequence[int]) -> NDArray[np.uint8]:
    """Codes of `bits` bits, one a byte, in the shape `dims`; bytes after the last are ignored."""
    count = math.prod(dims)
    needed = (bits * count + 7) // 8
    if min(dims, default=0) < 0 or stream.size < needed:
        raise ValueError(
            f"{stream.size} bytes do not hold a tensor of shape {list(dims)}: "
            f"{count} elements of {bits} bits take {needed}"
        )
    return unpack(stream, bits, count).reshape(dims)


def array_from_bytes(raw: bytes, kind: DataType, dims: Sequence[int]) -> NDArray[Any]:
    """The array that raw little-endian storage holds; it shares memory where it can."""
    if kind.bits < 8:
        codes = unpack_elements(np.frombuffer(raw, np.uint8), kind.bits, dims)
        return codes.view(kind.numpy)
    array = np.frombuffer(raw, kind.numpy)
    if sys.byteorder == "big":
        array = array.byteswap()
    return array.reshape(dims)


def array_from_field(values: Any, kind: DataType, dims: Sequence[int]) -> NDArray[Any]:
    """The array that a typed field of a tensor message holds."""
    storage = TENSOR_TYPE_MAP[_storage(kind)].np_dtype
    stored = np.array(values, storage)
    if kind in (DataType.COMPLEX64, DataType.COMPLEX128):
        return stored.view(kind.numpy).reshape(dims)
    if kind.field != "int32_data" or kind.bits == 32:
        return stored.astype(kind.numpy, copy=False).reshape(dims)
    if kind.bits == 16:
        return stored.astype(np.uint16).reshape(dims).view(kind.numpy)
    codes = stored.astype(np.uint8)
    if kind.bits == 6:
        return (codes & np.uint8(0x3F)).reshape(dims).view(kind.numpy)
    if kind.bits < 8:
        return unpack_elements(codes, kind.bits, dims).view(kind.numpy)
    return codes.reshape(dims).view(kind.numpy)


def _storage(kind: DataType) -> int:
    return TENSOR_TYPE_MAP[int(kind)].storage_dtype


def tobytes_little_endian(array: NDArray[Any]) -> bytes:
    """The bytes of an array in C order, each element little-endian.

    >>> import numpy as np
    >>> from sardonyx.compat.onnx import numpy_helper
    >>> numpy_helper.tobytes_little_endian(np.array([1], ">i2"))
    b'\\x01\\x00'
    """
    order = array.dtype.byteorder
    if order == ">" or (sys.byteorder == "big" and order == "="):
        array = array.astype(array.dtype.newbyteorder("<"))
    return array.tobytes()


def saturate_cast(x: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Cast, with values out of range clamped to the nearest end; integer types round first.

    >>> import numpy as np
    >>> from sardonyx.compat.onnx import numpy_helper
    >>> numpy_helper.saturate_cast(np.array([-1.0, 2.5, 300.0]), np.dtype(np.uint8))
    array([  0,   2, 255], dtype=uint8)
    """
    kind = TYPE_OF_NUMPY.get(np.dtype(dtype))
    if np.issubdtype(dtype, np.integer) or (kind is not None and DataType(kind).is_integer):
        x = np.round(x)
        limits: Any = ml_dtypes.iinfo(dtype)  # type: ignore[no-untyped-call]
    else:
        limits = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    clamped: NDArray[Any] = np.clip(x, limits.min, limits.max).astype(dtype)
    return clamped


def to_float8e8m0(x: NDArray[Any], saturate: bool = True, round_mode: str = "up") -> NDArray[Any]:
    """The nearest powers of two as float8e8m0; the sign is dropped, infinities become NaN.

    `round_mode` is up, down or nearest; without `saturate` rounding past the largest gives NaN.

    >>> import numpy as np
    >>> from sardonyx.compat.onnx import numpy_helper
    >>> numpy_helper.to_float8e8m0(np.array([1.0, 3.0])).astype(np.float32)
    array([1., 4.], dtype=float32)
    """
    pattern = np.array(x, np.float32).view(np.uint32)
    exponent = ((pattern >> 23) & 0xFF).astype(np.uint8)
    fraction = pattern & 0x7FFFFF
    match round_mode:
        case "up":
            rounds_up = fraction > 0
        case "down":
            rounds_up = np.zeros_like(fraction, np.bool_)
        case "nearest":
            half = np.uint32(0x400000)
            rounds_up = (fraction > half) | ((fraction == half) & (exponent > 0))
        case _:
            raise ValueError(f"round_mode {round_mode!r} is not one of up, down, nearest")
    highest = 0xFE if saturate else 0xFF
    exponent = exponent + (rounds_up & (exponent < highest)).astype(np.uint8)
    return np.asarray(exponent).view(ml_dtypes.float8_e8m0fnu)
