"""Conversions to and from bit patterns of narrow types, which onnx offered until 1.19."""

import math
import struct
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from sardonyx.compat.onnx._elements import saturate_cast, unpack_elements
from sardonyx.dtypes import pack

Dims = int | Sequence[int]


def float32_to_bfloat16(fval: float, truncate: bool = False) -> int:
    """The bfloat16 pattern of a number, rounded to nearest even, or cut if `truncate`.

    >>> from sardonyx.compat.onnx import helper
    >>> hex(helper.float32_to_bfloat16(1.0))
    '0x3f80'
    """
    if truncate:
        return int.from_bytes(struct.pack("<f", fval), "little") >> 16
    if math.isnan(fval):
        return 0x7FC0
    return int(np.float32(fval).astype(ml_dtypes.bfloat16).view(np.uint16))


def _float8_code(value: float, dtype: Any, nan: int, saturate: bool) -> int:
    """The pattern of a number in an 8-bit type; `nan` is the pattern of NaN without its sign."""
    single = np.array(value, np.float32)
    sign = 0x80 if np.signbit(single) else 0
    narrow = saturate_cast(single, np.dtype(dtype)) if saturate else single.astype(dtype)
    if np.isnan(narrow):
        return nan | sign
    return int(narrow.view(np.uint8))


def float32_to_float8e4m3(
    fval: float, scale: float = 1.0, fn: bool = True, uz: bool = False, saturate: bool = True
) -> int:
    """The pattern of `fval / scale` in float8e4m3fn, or in float8e4m3fnuz if `uz`.

    Out of range becomes the largest number if `saturate`, and NaN otherwise.

    >>> from sardonyx.compat.onnx import helper
    >>> hex(helper.float32_to_float8e4m3(1000.0))
    '0x7e'
    """
    if not fn:
        raise NotImplementedError("float8e4m3 with infinities is no ONNX type: use fn=True")
    if uz:
        return _float8_code(fval / scale, ml_dtypes.float8_e4m3fnuz, 0x80, saturate)
    return _float8_code(fval / scale, ml_dtypes.float8_e4m3fn, 0x7F, saturate)


def float32_to_float8e5m2(
    fval: float, scale: float = 1.0, fn: bool = False, uz: bool = False, saturate: bool = True
) -> int:
    """The pattern of `fval / scale` in float8e5m2, or in float8e5m2fnuz if both `fn` and `uz`.

    >>> from sardonyx.compat.onnx import helper
    >>> hex(helper.float32_to_float8e5m2(1.0))
    '0x3c'
    """
    if fn != uz:
        raise NotImplementedError("fn and uz go together: float8e5m2 has neither or both")
    if uz:
        return _float8_code(fval / scale, ml_dtypes.float8_e5m2fnuz, 0x80, saturate)
    return _float8_code(fval / scale, ml_dtypes.float8_e5m2, 0x7F, saturate)


def bfloat16_to_float32(data: Any, dims: Dims | None = None) -> Any:
    """Numbers from bfloat16 patterns, in the shape `dims` if given.

    >>> import numpy as np
    >>> from sardonyx.compat.onnx import numpy_helper
    >>> numpy_helper.bfloat16_to_float32(np.array([0x3F80, 0x4000]))
    array([1., 2.], dtype=float32)
    """
    wide = (np.asarray(data).astype(np.uint32) << np.uint32(16)).view(np.float32)
    return wide if dims is None else wide.reshape(dims)


def _float8_values(data: Any, dtype: Any, dims: Dims | None) -> Any:
    codes = np.asarray(data)
    if np.any((codes < 0) | (codes > 255)):
        raise ValueError("a float8 pattern lies between 0 and 255")
    wide = codes.astype(np.uint8).view(dtype).astype(np.float32)
    return wide if dims is None else wide.reshape(dims)


def float8e4m3_to_float32(
    data: Any, dims: Dims | None = None, fn: bool = True, uz: bool = False
) -> Any:
    """Numbers from patterns of float8e4m3fn, or of float8e4m3fnuz if `uz`.

    >>> import numpy as np
    >>> from sardonyx.compat.onnx import numpy_helper
    >>> numpy_helper.float8e4m3_to_float32(np.array([0x38, 0x7E]))
    array([  1., 448.], dtype=float32)
    """
    if not fn:
        raise NotImplementedError("float8e4m3 with infinities is no ONNX type: use fn=True")
    dtype = ml_dtypes.float8_e4m3fnuz if uz else ml_dtypes.float8_e4m3fn
    return _float8_values(data, dtype, dims)


def float8e5m2_to_float32(
    data: Any, dims: Dims | None = None, fn: bool = False, uz: bool = False
) -> Any:
    """Numbers from patterns of float8e5m2, or of float8e5m2fnuz if both `fn` and `uz`.

    >>> import numpy as np
    >>> from sardonyx.compat.onnx import numpy_helper
    >>> numpy_helper.float8e5m2_to_float32(np.array([0x3C, 0x7C]))
    array([ 1., inf], dtype=float32)
    """
    if fn != uz:
        raise NotImplementedError("fn and uz go together: float8e5m2 has neither or both")
    dtype = ml_dtypes.float8_e5m2fnuz if uz else ml_dtypes.float8_e5m2
    return _float8_values(data, dtype, dims)


def float32_to_4bit_unpacked(x: Any, signed: bool) -> NDArray[Any]:
    """Numbers rounded and clamped to 4-bit integers, one a byte.

    >>> from sardonyx.compat.onnx import subbyte
    >>> subbyte.float32_to_4bit_unpacked([-9.0, 2.5], signed=True)
    array([-8,  2], dtype=int8)
    """
    lowest, highest, dtype = (-8, 7, np.int8) if signed else (0, 15, np.uint8)
    return np.asarray(np.rint(np.clip(np.asarray(x), lowest, highest))).astype(dtype)


def float32x2_to_4bitx2(val_low: Any, val_high: Any, signed: bool) -> NDArray[Any]:
    """Pairs of numbers as 4-bit integers, two a byte.

    >>> from sardonyx.compat.onnx import subbyte
    >>> int(subbyte.float32x2_to_4bitx2(1.0, 2.0, signed=False))
    33
    """
    low = float32_to_4bit_unpacked(val_low, signed)
    high = float32_to_4bit_unpacked(val_high, signed)
    return np.asarray(high << 4 | low & 0x0F)


def _flat(array: Any) -> NDArray[Any]:
    return (array if isinstance(array, np.ndarray) else np.asarray(array, np.float32)).reshape(-1)


def pack_float32_to_4bit(array: Any, signed: bool) -> NDArray[np.uint8]:
    """Numbers rounded and clamped to 4-bit integers, two a byte, the last byte padded.

    >>> from sardonyx.compat.onnx import helper
    >>> helper.pack_float32_to_4bit([1.0, 2.0, 3.0], signed=False)
    array([33,  3], dtype=uint8)
    """
    return pack(float32_to_4bit_unpacked(_flat(array), signed).view(np.uint8), 4)


def float32_to_float4e2m1_unpacked(values: Any) -> NDArray[np.uint8]:
    """Patterns of float4e2m1, one a byte; out of range and NaN become the largest number.

    >>> from sardonyx.compat.onnx import subbyte
    >>> subbyte.float32_to_float4e2m1_unpacked([1.0, -6.0])
    array([ 2, 15], dtype=uint8)
    """
    given = np.asarray(values, np.float32)
    codes = np.clip(given, -6, 6).astype(ml_dtypes.float4_e2m1fn).view(np.uint8)
    return np.asarray(np.where(np.isnan(given), np.uint8(7), codes))


def float32x2_to_float4e2m1x2(val_low: Any, val_high: Any) -> NDArray[np.uint8]:
    """Pairs of numbers as float4e2m1, two a byte.

    >>> from sardonyx.compat.onnx import subbyte
    >>> int(subbyte.float32x2_to_float4e2m1x2(1.0, 2.0))
    66
    """
    low = float32_to_float4e2m1_unpacked(val_low)
    high = float32_to_float4e2m1_unpacked(val_high)
    return np.asarray(high << np.uint8(4) | low)


def pack_float32_to_float4e2m1(array: Any) -> NDArray[np.uint8]:
    """Numbers as float4e2m1, two a byte, the last byte padded.

    >>> from sardonyx.compat.onnx import helper
    >>> helper.pack_float32_to_float4e2m1([1.0, 2.0, 0.5])
    array([66,  1], dtype=uint8)
    """
    return pack(float32_to_float4e2m1_unpacked(_flat(array)), 4)


def _nibbles(data: Any, dims: Dims) -> NDArray[np.uint8]:
    """Both halves of each byte, the lower first, in the shape `dims`; a padded half is dropped."""
    shape = (dims,) if isinstance(dims, int | np.integer) else tuple(dims)
    stream = np.asarray(data).astype(np.uint8).reshape(-1)
    if stream.size != (math.prod(shape) + 1) // 2:
        raise ValueError(f"{stream.size} bytes do not hold 4-bit elements of shape {shape}")
    return unpack_elements(stream, 4, shape)


def _extend_sign(codes: NDArray[np.uint8]) -> NDArray[np.int8]:
    return (codes << np.uint8(4)).view(np.int8) >> np.int8(4)


def unpack_int4(data: Any, dims: Dims, signed: bool) -> NDArray[np.float32]:
    """4-bit integers, two a byte, as float32 in the shape `dims`.

    >>> import numpy as np
    >>> from sardonyx.compat.onnx import numpy_helper
    >>> numpy_helper.unpack_int4(np.array([0xF1], np.uint8), [2], signed=True)
    array([ 1., -1.], dtype=float32)
    """
    codes = _nibbles(data, dims)
    return (_extend_sign(codes) if signed else codes).astype(np.float32)


def unpack_4bitx2(x: Any, dims: Dims) -> NDArray[np.uint8]:
    """Both halves of each byte, the lower first, one a byte in the shape `dims`.

    >>> import numpy as np
    >>> from sardonyx.compat.onnx import subbyte
    >>> subbyte.unpack_4bitx2(np.array([33, 3], np.uint8), [3])
    array([1, 2, 3], dtype=uint8)
    """
    return _nibbles(x, dims)


def unpack_single_4bitx2(x: Any, signed: bool) -> tuple[NDArray[Any], NDArray[Any]]:
    """The lower and the upper half of each byte, as 8-bit integers.

    >>> from sardonyx.compat.onnx import subbyte
    >>> low, high = subbyte.unpack_single_4bitx2(0xF1, signed=True)
    >>> int(low), int(high)
    (1, -1)
    """
    stream = np.asarray(x).astype(np.uint8)
    low, high = np.asarray(stream & np.uint8(0x0F)), np.asarray(stream >> np.uint8(4))
    return (_extend_sign(low), _extend_sign(high)) if signed else (low, high)


def unpacked_float4e2m1_to_float32(x: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Numbers from float4e2m1 patterns in the lower half of each byte.

    >>> import numpy as np
    >>> from sardonyx.compat.onnx import numpy_helper
    >>> numpy_helper.unpacked_float4e2m1_to_float32(np.array([2, 15], np.uint8))
    array([ 1., -6.], dtype=float32)
    """
    codes = np.asarray(np.asarray(x).astype(np.uint8) & np.uint8(0x0F))
    wide: NDArray[np.float32] = codes.view(ml_dtypes.float4_e2m1fn).astype(np.float32)
    return wide


def unpack_float4e2m1(data: NDArray[np.uint8], dims: Dims) -> NDArray[np.float32]:
    """Numbers from float4e2m1 patterns, two a byte, in the shape `dims`.

    >>> import numpy as np
    >>> from sardonyx.compat.onnx import numpy_helper
    >>> numpy_helper.unpack_float4e2m1(np.array([66, 1], np.uint8), [3])
    array([1. , 2. , 0.5], dtype=float32)
    """
    return unpacked_float4e2m1_to_float32(_nibbles(data, dims))


def split_complex_to_pairs(ca: Sequence[complex]) -> list[float]:
    """The real and imaginary part of each number in turn.

    >>> from sardonyx.compat.onnx import helper
    >>> helper.split_complex_to_pairs([1 + 2j, 3j])
    [1.0, 2.0, 0.0, 3.0]
    """
    return [part for number in ca for part in (number.real, number.imag)]


def combine_pairs_to_complex(fa: Sequence[float]) -> list[complex]:
    """Complex numbers from real and imaginary parts in turn.

    >>> from sardonyx.compat.onnx import numpy_helper
    >>> numpy_helper.combine_pairs_to_complex([1.0, 2.0, 0.0, 3.0])
    [(1+2j), 3j]
    """
    return [complex(real, imag) for real, imag in zip(fa[::2], fa[1::2], strict=True)]
