"""Operations on the bits of integers."""

from typing import Any, ClassVar

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.errors import ConversionError
from sardonyx.graph import Value
from sardonyx.ops.build import Builder
from sardonyx.ops.element_type import constant_like
from sardonyx.ops.elementwise import Broadcasting, Unary
from sardonyx.ops.precision import Array

_VERSIONS = ("18(A: T, B: T) -> C: T; T: integers",)
_WIDEST = 64


class BitwiseAnd(Broadcasting):
    """The bits that are set in both."""

    signatures = _VERSIONS

    def reference(a: Array, b: Array) -> Array:
        return np.asarray(np.bitwise_and(a, b))

    def function(build: Builder, a: Value, b: Value) -> Any:
        return _from_bits(build, build.And(_bits(build, a), _bits(build, b)), a)


class BitwiseOr(Broadcasting):
    """The bits that are set in one, or in both."""

    signatures = _VERSIONS

    def reference(a: Array, b: Array) -> Array:
        return np.asarray(np.bitwise_or(a, b))

    def function(build: Builder, a: Value, b: Value) -> Any:
        return _from_bits(build, build.Or(_bits(build, a), _bits(build, b)), a)


class BitwiseXor(Broadcasting):
    """The bits that are set in exactly one."""

    signatures = _VERSIONS

    def reference(a: Array, b: Array) -> Array:
        return np.asarray(np.bitwise_xor(a, b))

    def function(build: Builder, a: Value, b: Value) -> Any:
        return _from_bits(build, build.Xor(_bits(build, a), _bits(build, b)), a)


class BitwiseNot(Unary):
    """Every bit the other way."""

    signatures = ("18(X: T) -> Y: T; T: integers",)

    def reference(x: Array) -> Array:
        return np.asarray(np.invert(x))

    def function(build: Builder, x: Value) -> Any:
        return _invert(build, x)


def _invert(build: Builder, x: Value) -> Any:
    """-x - 1, which wraps around for unsigned integers as it should."""
    zero, one = constant_like(build, 0, x), constant_like(build, 1, x)
    return build.Sub(build.Sub(zero, x), one)


def _bits(build: Builder, x: Value) -> Any:
    """The 64 bits of each element as truth values, lowest first, along a new last axis."""
    wide = build.Unsqueeze(build.Cast(x, to=int(DataType.UINT64)), [-1])
    shifted = build.BitShift(wide, np.arange(_WIDEST, dtype=np.uint64), direction="RIGHT")
    return build.Cast(build.Mod(shifted, np.uint64(2)), to=int(DataType.BOOL))


def _from_bits(build: Builder, bits: Value, like: Value) -> Any:
    """The integers that bits along the last axis stand for, in the type of `like`."""
    weights = (np.uint64(1) << np.arange(_WIDEST, dtype=np.uint64)).astype(np.int64)
    number = build.Mul(build.Cast(bits, to=int(DataType.INT64)), weights)
    return build.CastLike(build.ReduceSum(number, [-1], keepdims=0), like)


class BitShift(Broadcasting):
    """x with its bits moved left or right by y places; a right shift keeps the sign."""

    signatures = (
        "11(X: T, Y: T, direction: string) -> Z: T; T: unsigned",
        "28(X: T, Y: T, direction: string) -> Z: T; T: integers",
    )
    choices: ClassVar = {"direction": ("LEFT", "RIGHT")}

    def reference(x: Array, y: Array, direction: str) -> Array:
        bits = x.dtype.itemsize * 8
        inside = (y >= 0) & (y < bits)
        places = np.where(inside, y, 0).astype(x.dtype)
        if direction == "LEFT":
            moved, beyond = np.left_shift(x, places), np.zeros_like(x)
        else:
            moved, beyond = np.right_shift(x, places), np.where(x < 0, -1, 0).astype(x.dtype)
        return np.asarray(np.where(inside, moved, beyond)).astype(x.dtype, copy=False)

    def function(build: Builder, x: Value, y: Value, direction: str) -> Any:
        if build.opset < 11:
            raise ConversionError("bits can be shifted from opset 11 on")
        # A negative count is a huge unsigned one, which moves every bit out.
        places = build.Cast(y, to=int(DataType.UINT64))
        if direction == "LEFT":
            moved = _shift(build, build.Cast(x, to=int(DataType.UINT64)), places, direction)
            return build.CastLike(moved, x)
        below = build.Less(x, constant_like(build, 0, x))
        size = build.Where(below, _invert(build, x), x)
        moved = _shift(build, build.Cast(size, to=int(DataType.UINT64)), places, direction)
        back = build.CastLike(moved, x)
        return build.Where(below, _invert(build, back), back)


def _shift(build: Builder, x: Value, places: Value, direction: str) -> Any:
    """A shift of uint64 that gives 0 for 64 places and more, which a processor may not do."""
    inside = build.Less(places, np.uint64(_WIDEST))
    moved = build.BitShift(x, build.Where(inside, places, np.uint64(0)), direction=direction)
    return build.Where(inside, moved, np.uint64(0))
