"""Arithmetic and shape rules that several families of `com.microsoft` share."""

from typing import Any

import ml_dtypes
import numpy as np

from sardonyx.dims import Size, floor_divide, product
from sardonyx.dtypes import DataType
from sardonyx.ops.fact import Fact, tensor
from sardonyx.ops.precision import Array
from sardonyx.ops.special import erf

_integer_limits: Any = ml_dtypes.iinfo


def gelu(x: Array) -> Array:
    """x * P(X <= x) for a standard normal X."""
    return np.asarray(x * 0.5 * (1 + erf(np.asarray(x * x.dtype.type(np.sqrt(0.5))))))


def softmax(x: Array, axis: int = -1) -> Array:
    """exp(x - max) / sum along an axis."""
    if x.shape[axis] == 0:
        return x
    powers = np.exp(x - x.max(axis, keepdims=True))
    total: Array = powers / powers.sum(axis, keepdims=True)
    return total


def centred(x: Array, zero: Array | None) -> Array:
    """Quantized numbers minus their zero point, as int32."""
    return np.asarray(x.astype(np.int32) - (0 if zero is None else zero.astype(np.int32)))


def integer_product(left: Array, right: Array) -> Array:
    """The matrix product of whole numbers, in int32; it is exact in float64 on the way."""
    wide = np.asarray(left.astype(np.float64) @ right.astype(np.float64))
    return wide.astype(np.int64).astype(np.int32)


def dequantize(x: Array, scale: Array, zero: Array | None) -> Array:
    """(x - zero) * scale in float32."""
    return np.asarray(centred(x, zero).astype(np.float32) * scale.astype(np.float32))


def quantize(x: Array, scale: Array, zero: Array | None, dtype: Any) -> Array:
    """x / scale, rounded half to even, plus zero, kept within `dtype`.

    >>> quantize(np.float32([0.5, 1.5, 900]), np.float32(1), None, np.uint8).tolist()
    [0, 2, 255]
    """
    return saturate(np.rint(x / scale) + (0 if zero is None else zero.astype(np.float32)), dtype)


def requantize(x: Array, scale: Array, zero: Array | None, dtype: Any) -> Array:
    """x / scale + zero as one number, rounded half to even and kept within `dtype`."""
    return saturate(np.rint(x / scale + (0 if zero is None else zero.astype(np.float32))), dtype)


def saturate(x: Array, dtype: Any) -> Array:
    """Whole numbers held in floats as an integer type, kept within its range; NaN becomes 0."""
    limits = _integer_limits(dtype)
    kept = np.clip(np.nan_to_num(x, nan=0, posinf=np.inf, neginf=-np.inf), limits.min, limits.max)
    return np.asarray(kept).astype(np.int32).astype(dtype)


def scalar(array: Array | None, otherwise: Any = 0) -> Any:
    """The only element of an array, or a default where there is no array."""
    return otherwise if array is None else array.reshape(-1)[0]


def size_of(fact: Fact | None, axis: int) -> Size | None:
    """The size of one axis, where it is known."""
    if fact is None or fact.shape is None or not -len(fact.shape) <= axis < len(fact.shape):
        return None
    return fact.shape[axis]


def times(*sizes: Size | None) -> Size | None:
    """The product of sizes; unknown where one is."""
    known = [size for size in sizes if size is not None]
    return product(known) if len(known) == len(sizes) else None


def plus(*sizes: Size | None) -> Size | None:
    """The sum of sizes; unknown where one is."""
    total: Size = 0
    for size in sizes:
        if size is None:
            return None
        total = total + size
    return total


def over(size: Size | None, by: Size | None) -> Size | None:
    """A size divided by another, rounded down; unknown where one is."""
    return None if size is None or by is None else floor_divide(size, by)


def retyped(fact: Fact, dtype: DataType | None) -> Fact:
    """A tensor of the same shape and another element type."""
    return tensor(dtype, fact.shape)


def same_type(x: Fact, *_: Any, **__: Any) -> Fact:
    """The first input's type and shape, whatever else there is."""
    return tensor(x.dtype, x.shape)
