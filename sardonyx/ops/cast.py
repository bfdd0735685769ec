"""Conversions between element types, by value and by bits."""

import math
from typing import Any

import ml_dtypes
import numpy as np

from sardonyx.dims import Expression
from sardonyx.dtypes import DataType, data_type, from_numpy
from sardonyx.errors import ConversionError, EvaluationError, InferenceError, UnlistedTypeError
from sardonyx.graph import Node, Value
from sardonyx.ops.build import Builder
from sardonyx.ops.element_type import element_type
from sardonyx.ops.fact import Fact, tensor
from sardonyx.ops.operator import Operator
from sardonyx.ops.precision import Array
from sardonyx.ops.symbolic import follow, lower_bound

_FLOAT8 = frozenset(
    {
        DataType.FLOAT8E4M3FN,
        DataType.FLOAT8E4M3FNUZ,
        DataType.FLOAT8E5M2,
        DataType.FLOAT8E5M2FNUZ,
    }
)
_LARGEST_EXPONENT = 127
_NOT_A_NUMBER = 255


def cast(x: Array, to: DataType, *, saturate: bool = True, round_mode: str = "up") -> Array:
    """An array in another element type, by ONNX's rules.

    >>> cast(np.int16([200, 3]), DataType.INT8).tolist()
    [-56, 3]
    >>> cast(np.float32([1.5, np.inf]), DataType.STRING).tolist()
    ['1.5', 'INF']
    """
    kind = from_numpy(x.dtype)
    if kind == to:
        return x.astype(to.numpy)
    if kind == DataType.STRING:
        return _from_text(x, to, saturate=saturate, round_mode=round_mode)
    plain = _plain(x, kind)
    if to == DataType.STRING:
        return _to_text(plain)
    if to == DataType.FLOAT8E8M0:
        return _to_power_of_two(plain, saturate=saturate, round_mode=round_mode)
    if to.is_integer and plain.dtype.kind == "f":
        plain = _whole_part(plain, to)
    if to.is_integer and to.bits < 8:
        return _to_narrow_integer(plain, to)
    if to in _FLOAT8 and saturate:
        limit = float(ml_dtypes.finfo(to.numpy).max)  # type: ignore[no-untyped-call]
        plain = np.asarray(np.clip(plain.astype(np.float64), -limit, limit))
    if to == DataType.BFLOAT16 or (to.is_float and to.bits < 16):
        plain = _to_float32_odd(plain)
    return plain.astype(to.numpy)


def _plain(x: Array, kind: DataType) -> Array:
    """The same values in a type of NumPy's own."""
    if kind.is_float and kind.bits < 32:
        return x.astype(np.float32)
    return x.astype(np.int8) if kind.is_integer and kind.bits < 8 else x


def _to_float32_odd(x: Array) -> Array:
    """float32 with its last bit set where something was lost: rounding it again is then right."""
    if x.dtype == np.float32:
        return x
    wide = x.astype(np.float64)
    near = wide.astype(np.float32)
    back = near.astype(np.float64)
    codes = near.view(np.uint32) - (np.abs(back) > np.abs(wide)).astype(np.uint32)
    return np.where((back == wide) | np.isnan(wide), near, (codes | 1).view(np.float32))


def _whole_part(x: Array, to: DataType) -> Array:
    """What the whole part of a float is in int32, or in int64 for 64 bits.

    What that does not hold, NaN too, is its smallest number; unsigned types of as many bits hold
    the upper half as well. Narrower types take the low bits of it.
    """
    middle = np.int64 if to.bits == 64 else np.int32
    smallest = -(1 << (63 if to.bits == 64 else 31))
    limit = -float(smallest)
    unsigned = to in (DataType.UINT32, DataType.UINT64)
    above = x >= limit if unsigned else np.zeros_like(x, bool)
    with np.errstate(invalid="ignore"):
        low = np.where(above, x - x.dtype.type(limit), x)
    whole: Array = np.where(np.abs(low) < limit, low, -limit).astype(middle)
    return np.where(above, np.bitwise_xor(whole, smallest), whole)


def _to_narrow_integer(x: Array, to: DataType) -> Array:
    """The low bits of a whole number."""
    whole = x.astype(np.int32)
    if to in (DataType.INT4, DataType.INT2):
        sign = 1 << (to.bits - 1)
        return (((whole + sign) & ((1 << to.bits) - 1)) - sign).astype(np.int8).astype(to.numpy)
    return (whole & ((1 << to.bits) - 1)).astype(np.uint8).astype(to.numpy)


def _to_power_of_two(x: Array, *, saturate: bool, round_mode: str) -> Array:
    """Magnitudes as powers of two from 2**-127 to 2**127; beyond them the nearest end, or NaN."""
    size = np.abs(x.astype(np.float64))
    fraction, exponent = np.frexp(size)
    match round_mode:
        case "up":
            above = fraction > 0.5
        case "down":
            above = np.zeros_like(fraction, bool)
        case "nearest":
            above = fraction >= 0.75
        case _:
            raise EvaluationError(f"round_mode '{round_mode}' is none of up, down, nearest")
    code = exponent.astype(np.int64) - 1 + above + _LARGEST_EXPONENT
    code = np.where(size == 0, -1, np.where(np.isinf(size), _NOT_A_NUMBER, code))
    outside = (code < 0) | (code > 2 * _LARGEST_EXPONENT)
    if saturate:
        outside = np.zeros_like(outside)
    code = np.clip(code, 0, 2 * _LARGEST_EXPONENT)
    code = np.where(outside | np.isnan(size), _NOT_A_NUMBER, code)
    return np.asarray(code).astype(np.uint8).view(DataType.FLOAT8E8M0.numpy)


def _to_text(x: Array) -> Array:
    texts = np.empty(x.size, object)
    texts[:] = [_text(number) for number in x.reshape(-1)]
    return texts.reshape(x.shape)


def _text(number: Any) -> str:
    """The shortest decimal that reads back as the same number."""
    if isinstance(number, bool | np.bool_ | int | np.integer):
        return str(int(number))
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "INF" if number > 0 else "-INF"
    return str(number).removesuffix(".0")


def _from_text(x: Array, to: DataType, *, saturate: bool, round_mode: str) -> Array:
    texts = [str(item, "utf-8") if isinstance(item, bytes) else str(item) for item in x.flat]
    try:
        if to.is_integer:
            wide = np.array([_whole(text) & (2**64 - 1) for text in texts], np.uint64)
        else:
            wide = np.array([float(text) for text in texts], np.float64)
    except ValueError as error:
        raise EvaluationError(f"a string is not a number: {error}") from None
    return cast(wide.reshape(x.shape), to, saturate=saturate, round_mode=round_mode)


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        number = float(text)
        if not math.isfinite(number):
            raise ValueError(f"'{text}' is not a whole number") from None
        return int(number)


def cast_fact(
    x: Fact, to: DataType | None, *, saturate: bool = True, round_mode: str = "up"
) -> Fact:
    """What is known of a cast; symbolic sizes are followed into types that hold them."""
    result = tensor(to, x.shape)
    if to is None or DataType.STRING in (to, x.dtype) or to.bits < 8:
        return result

    def step(item: Any) -> Any:
        if isinstance(item, Expression):
            if to == DataType.BOOL:
                return True if (lower_bound(item) or 0) > 0 else None
            return item if to.bits >= 32 else None
        return int(item) if to.is_integer else item

    def compute(values: Array) -> Array:
        return cast(values, to, saturate=saturate, round_mode=round_mode)

    return follow(result, compute, step, x)


class Cast(Operator):
    """The elements in the type `to`."""

    width_matters = True
    signatures = (
        "1(input: T1, to: string) -> output: T2; T1: numeric3 bool; T2: numeric3 bool",
        "6(input: T1, to: int) -> output: T2; T1: numeric3 bool; T2: numeric3 bool",
        "9(input: T1, to: int) -> output: T2; T1: numeric3 bool string; T2: numeric3 bool string",
        "13(input: T1, to: int) -> output: T2; T1: numeric bool string; T2: numeric bool string",
        "19(input: T1, saturate: int = 1, to: int) -> output: T2;"
        " T1: numeric float8s bool string; T2: numeric float8s bool string",
        "21(input: T1, saturate: int = 1, to: int) -> output: T2;"
        " T1: numeric float8s int4s bool string; T2: numeric float8s int4s bool string",
        "23(input: T1, saturate: int = 1, to: int) -> output: T2;"
        " T1: numeric float8s int4s bool float4e2m1 string;"
        " T2: numeric float8s int4s bool float4e2m1 string",
        "24(input: T1, round_mode: string = 'up', saturate: int = 1, to: int) -> output: T2;"
        " T1: numeric float8s int4s bool float4e2m1 float8e8m0 string;"
        " T2: numeric float8s int4s bool float4e2m1 float8e8m0 string",
        "25(input: T1, round_mode: string = 'up', saturate: int = 1, to: int) -> output: T2;"
        " T1: numeric float8s int4s int2s bool float4e2m1 float8e8m0 string;"
        " T2: numeric float8s int4s int2s bool float4e2m1 float8e8m0 string",
        "28(input: T1, round_mode: string = 'up', saturate: int = 1, to: int) -> output: T2;"
        " T1: numeric float8s int4s int2s float6s bool float4e2m1 float8e8m0 string;"
        " T2: numeric float8s int4s int2s float6s bool float4e2m1 float8e8m0 string",
    )

    def infer(x: Fact, to: int, saturate: int, round_mode: str) -> Fact:
        return cast_fact(x, data_type(to), saturate=bool(saturate), round_mode=round_mode)

    def reference(x: Array, to: int, saturate: int, round_mode: str) -> Array:
        return cast(x, data_type(to), saturate=bool(saturate), round_mode=round_mode)

    def upgrade_1(node: Node, build: Builder) -> None:
        name = node.attribute("to")
        if isinstance(name, str):
            if name not in DataType.__members__:
                raise ConversionError(f"'{name}' is not an element type")
            node.set_attribute("to", int(DataType[name]))

    def downgrade_24(node: Node, build: Builder) -> None:
        if data_type(node.attribute("to")) != DataType.FLOAT8E8M0:
            node.attributes.pop("round_mode", None)

    def downgrade_19(node: Node, build: Builder) -> Any:
        kind, saturate = data_type(node.attribute("to")), node.attribute("saturate", 1)
        node.attributes.pop("saturate", None)
        if saturate or kind not in _MAY_OVERFLOW:
            return None
        (x,) = node.inputs
        return None if x is None else cast_value(build, x, kind, saturate=0)

    def downgrade_6(node: Node, build: Builder) -> None:
        node.set_attribute("to", data_type(node.attribute("to")).name)


_MAY_OVERFLOW = _FLOAT8 | {DataType.FLOAT8E8M0}
_OVERFLOW_TO_NAN = {
    DataType.FLOAT8E4M3FN: np.nextafter(np.float64(464), np.inf),
    DataType.FLOAT8E4M3FNUZ: np.float64(248),
    DataType.FLOAT8E5M2FNUZ: np.float64(61440),
}
"""Types without infinities, and the least magnitude that does not round to one of their numbers."""


def cast_value(
    build: Builder, x: Value, kind: DataType, *, saturate: int = 1, round_mode: str = "up"
) -> Any:
    """x in another element type, at any opset at which that can be said."""
    for given in (kind, element_type(x)):
        _require(given, build)
    if round_mode != "up" and kind == DataType.FLOAT8E8M0 and build.opset < 24:
        raise ConversionError("the attribute 'round_mode' is not there before opset 24")
    rounding = round_mode if kind == DataType.FLOAT8E8M0 and round_mode != "up" else None
    limit = saturate if kind in _MAY_OVERFLOW else None
    if limit == 0 and build.opset < 19:
        x, limit = _spoil_overflow(build, x, kind), None
    return build.Cast(
        x, to=int(kind), saturate=limit if build.opset >= 19 else None, round_mode=rounding
    )


def _spoil_overflow(build: Builder, x: Value, kind: DataType) -> Any:
    """NaN in the place of what overflows without saturation."""
    if kind not in _OVERFLOW_TO_NAN:
        raise ConversionError(f"saturate=0 with {kind.text} cannot be said before opset 19")
    wide = build.Cast(x, to=int(DataType.DOUBLE))
    fits = build.Less(build.Abs(wide), _OVERFLOW_TO_NAN[kind])
    return build.Where(fits, wide, np.float64(np.nan))


class CastLike(Operator):
    """The elements in the type of another tensor."""

    width_matters = True
    signatures = (
        "15(input: T1, target_type: T2) -> output: T2;"
        " T1: numeric bool string; T2: numeric bool string",
        "19(input: T1, target_type: T2, saturate: int = 1) -> output: T2;"
        " T1: numeric float8s bool string; T2: numeric float8s bool string",
        "21(input: T1, target_type: T2, saturate: int = 1) -> output: T2;"
        " T1: numeric float8s int4s bool string; T2: numeric float8s int4s bool string",
        "23(input: T1, target_type: T2, saturate: int = 1) -> output: T2;"
        " T1: numeric float8s int4s bool float4e2m1 string;"
        " T2: numeric float8s int4s bool float4e2m1 string",
        "24(input: T1, target_type: T2, round_mode: string = 'up', saturate: int = 1)"
        " -> output: T2; T1: numeric float8s int4s bool float4e2m1 float8e8m0 string;"
        " T2: numeric float8s int4s bool float4e2m1 float8e8m0 string",
        "25(input: T1, target_type: T2, round_mode: string = 'up', saturate: int = 1)"
        " -> output: T2; T1: numeric float8s int4s int2s bool float4e2m1 float8e8m0 string;"
        " T2: numeric float8s int4s int2s bool float4e2m1 float8e8m0 string",
    )

    def infer(x: Fact, target: Fact, saturate: int, round_mode: str) -> Fact:
        return cast_fact(x, target.dtype, saturate=bool(saturate), round_mode=round_mode)

    def reference(x: Array, target: Array, saturate: int, round_mode: str) -> Array:
        to = from_numpy(target.dtype)
        return cast(x, to, saturate=bool(saturate), round_mode=round_mode)

    def function(
        build: Builder, x: Value, target: Value, saturate: int = 1, round_mode: str = "up"
    ) -> Any:
        kind = element_type(target)
        if kind is None:
            raise ConversionError(f"the element type of '{target.name}' is not known")
        return cast_value(build, x, kind, saturate=saturate, round_mode=round_mode)


def _require(kind: DataType | None, build: Builder) -> None:
    """A blocker where an element type cannot be cast yet."""
    version = Cast.at(build.opset)
    assert version is not None
    if kind is None or build.keep_types:
        return
    if f"tensor({kind.text})" not in version.types(version.inputs[0]):
        raise UnlistedTypeError(f"{kind.text} is not allowed in opset {build.opset}")


class BitCast(Operator):
    """The same bits, read as another type of the same width."""

    width_matters = True
    signatures = (
        "26(input: T1, to: int) -> output: T2;"
        " T1: numeric float8s int4s int2s complex bool float4e2m1 float8e8m0;"
        " T2: numeric float8s int4s int2s complex bool float4e2m1 float8e8m0",
    )

    def infer(x: Fact, to: int) -> Fact:
        kind = data_type(to)
        if x.dtype is not None and x.dtype.bits != kind.bits:
            raise InferenceError(
                f"{x.dtype.text} has {x.dtype.bits} bits and {kind.text} has {kind.bits}"
            )
        return tensor(kind, x.shape)

    def reference(x: Array, to: int) -> Array:
        source, kind = from_numpy(x.dtype), data_type(to)
        if source.bits != kind.bits or DataType.STRING in (source, kind):
            raise EvaluationError(f"{source.text} and {kind.text} have not the same number of bits")
        if kind.bits < 8:
            codes = x.view(np.uint8) & np.uint8((1 << kind.bits) - 1)
            return _read_codes(codes, kind)
        return x.view(np.uint8) != 0 if kind == DataType.BOOL else x.view(kind.numpy)

    def function(build: Builder, x: Value, to: int) -> Any:
        # Between integers of one width, a cast keeps the bits.
        source, kind = element_type(x), data_type(to)
        if source == kind:
            return build.Identity(x)
        if _holds_whole_numbers(source) and _holds_whole_numbers(kind):
            return build.Cast(x, to=to)
        if source is not None and source.is_integer and kind in _FRACTION_BITS:
            return _read_float(build, x, kind)
        raise ConversionError("the bits of floats cannot be read before opset 26")


_FRACTION_BITS = {
    DataType.FLOAT16: 10,
    DataType.BFLOAT16: 7,
    DataType.FLOAT: 23,
    DataType.DOUBLE: 52,
}
_UNSIGNED = {16: DataType.UINT16, 32: DataType.UINT32, 64: DataType.UINT64}


def _read_float(build: Builder, x: Value, kind: DataType) -> Any:
    """The number whose bits are a whole number, computed; every NaN is the usual one."""
    fraction_bits = _FRACTION_BITS[kind]
    exponent_bits = kind.bits - 1 - fraction_bits
    bias = 2 ** (exponent_bits - 1) - 1
    codes = build.Cast(build.Cast(x, to=int(_UNSIGNED[kind.bits])), to=int(DataType.UINT64))

    def field(low: int, count: int) -> Any:
        top = build.BitShift(codes, np.uint64(64 - low - count), direction="LEFT")
        return build.Cast(
            build.BitShift(top, np.uint64(64 - count), direction="RIGHT"), to=int(DataType.DOUBLE)
        )

    none, one, infinity, not_a_number = (np.float64(item) for item in (0, 1, np.inf, np.nan))
    fraction, exponent = field(0, fraction_bits), field(fraction_bits, exponent_bits)
    whole = build.Min(exponent, one)
    scaled = build.Add(whole, build.Mul(fraction, np.float64(2.0**-fraction_bits)))
    power = build.Pow(np.float64(2), build.Sub(build.Max(exponent, one), np.float64(bias)))
    extreme = build.Where(build.Greater(fraction, none), not_a_number, infinity)
    is_extreme = build.Greater(exponent, np.float64(2 * bias))
    size = build.Where(is_extreme, extreme, build.Mul(scaled, power))
    sign = build.Sub(one, build.Mul(field(kind.bits - 1, 1), np.float64(2)))
    return build.Cast(build.Mul(size, sign), to=int(kind))


def _holds_whole_numbers(kind: DataType | None) -> bool:
    return kind is not None and (kind.is_integer or kind == DataType.BOOL)


def _read_codes(codes: Array, kind: DataType) -> Array:
    """Codes below one byte as elements; negative integers have all higher bits set."""
    return _to_narrow_integer(codes, kind) if kind.is_integer else codes.view(kind.numpy)
