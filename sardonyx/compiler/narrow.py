"""Element types below 16 bits, and rounding to any narrow float once, as maps of bits."""

import math

from sardonyx.compiler.forms import Form, NotLowered, binary, bits, cast, number, select, unary
from sardonyx.dtypes import DataType
from sardonyx.loops.nodes import STORED
from sardonyx.record import record

MANTISSA, BIAS = 23, 127
"""Of float32."""


@record
class Layout:
    """A float of a few bits: its fraction's bits, its exponent's bias, its largest code without
    the sign, and the codes of infinity and NaN (without one, NaN becomes -0); `signed_zero` where
    -0 has a code of its own."""

    mantissa: int
    bias: int
    largest: int
    infinity: int | None
    nan: int | None
    sign: int = 0x80
    signed_zero: bool = True


LAYOUTS = {
    DataType.FLOAT8E4M3FN: Layout(3, 7, 0x7E, None, 0x7F),
    DataType.FLOAT8E4M3FNUZ: Layout(3, 8, 0x7F, None, 0x80, signed_zero=False),
    DataType.FLOAT8E5M2: Layout(2, 15, 0x7B, 0x7C, 0x7F),
    DataType.FLOAT8E5M2FNUZ: Layout(2, 16, 0x7F, None, 0x80, signed_zero=False),
    DataType.FLOAT4E2M1: Layout(1, 1, 0x7, None, None, sign=0x8),
}
SMALL = STORED - {DataType.FLOAT16, DataType.BFLOAT16}
"""Types whose elements kernels know only as bytes."""


def convert(x: Form, to: DataType, *, saturate: bool = True, round_mode: str = "up") -> Form:
    """Elements as another type, by ONNX's rules."""
    if x.dtype is to:
        return x
    if x.dtype in SMALL:
        x = widened(x)
    elif x.dtype in STORED:
        x = cast(x, DataType.FLOAT)
    if to in LAYOUTS:
        return _to_float(_rounded_once(x), to, saturate)
    if to is DataType.FLOAT8E8M0:
        return _to_power(x, saturate, round_mode)
    if to in SMALL:
        return _to_integer(x, to)
    if to.is_integer and x.dtype.is_float:
        return _whole(x, to)
    if to in (DataType.FLOAT16, DataType.BFLOAT16):
        return cast(_rounded_once(x), to)
    return cast(x, to)


def widened(x: Form) -> Form:
    """Elements of a small type as float32, or as an integer of one byte."""
    if x.dtype in LAYOUTS:
        return _from_float(bits(x, DataType.UINT8), LAYOUTS[x.dtype])
    if x.dtype is DataType.FLOAT8E8M0:
        return _from_power(bits(x, DataType.UINT8))
    plain = DataType.UINT8 if x.dtype in (DataType.UINT4, DataType.UINT2) else DataType.INT8
    moved = 8 - x.dtype.bits
    return binary("shr", binary("shl", bits(x, plain), moved), moved)


def _from_float(codes: Form, layout: Layout) -> Form:
    """The fraction and exponent of a code lie in a float32 as they are, up to a power of two."""
    wide = cast(codes, DataType.INT32)
    magnitude = binary("and", wide, layout.sign - 1)
    shifted = bits(binary("shl", magnitude, MANTISSA - layout.mantissa), DataType.FLOAT)
    value = shifted * math.ldexp(1.0, BIAS - layout.bias)
    if layout.infinity is not None:
        value = select(binary("ge", magnitude, layout.infinity), math.inf, value)
    if layout.nan is not None and layout.nan != layout.sign:
        above = layout.infinity if layout.infinity is not None else layout.nan - 1
        value = select(binary("gt", magnitude, above), math.nan, value)
    negative = binary("ne", binary("and", wide, layout.sign), 0)
    value = select(negative, -value, value)
    if layout.nan == layout.sign:
        value = select(binary("eq", wide, layout.nan), math.nan, value)
    return value


def _to_float(x: Form, to: DataType, saturate: bool) -> Form:
    """Rounded to the nearest code, ties to even; beyond the largest it, or what stands for it."""
    layout = LAYOUTS[to]
    pattern = bits(x, DataType.INT32)
    magnitude = binary("and", pattern, 0x7FFFFFFF)
    moved = MANTISSA - layout.mantissa
    odd = binary("and", binary("shr", magnitude, moved), 1)
    rounded = binary("shr", magnitude + odd + ((1 << (moved - 1)) - 1), moved)
    normal = rounded - ((BIAS - layout.bias) << layout.mantissa)
    anchor = math.ldexp(1.0, 1 - layout.bias - layout.mantissa + MANTISSA)
    size = bits(magnitude, DataType.FLOAT)
    tiny = bits(size + anchor, DataType.INT32) - _pattern(anchor)
    smallest = _pattern(math.ldexp(1.0, 1 - layout.bias))
    code = select(binary("lt", magnitude, smallest), tiny, normal)
    beyond = layout.largest
    if not saturate and layout.nan is not None:
        beyond = layout.infinity if layout.infinity is not None else layout.nan
    code = select(binary("gt", code, layout.largest), beyond, code)
    negative = binary("lt", pattern, 0)
    if not layout.signed_zero:
        negative = binary("and", negative, binary("ne", code, 0))
    signed = select(negative, binary("or", code, layout.sign), code)
    not_a_number = layout.sign if layout.nan is None else layout.nan
    kept = select(negative, number(layout.sign | not_a_number, DataType.INT32), not_a_number)
    signed = select(binary("ne", x, x), kept, signed)
    return bits(cast(signed, DataType.UINT8), to)


def _pattern(value: float) -> int:
    mantissa, exponent = math.frexp(value)
    assert mantissa == 0.5
    return (exponent - 1 + BIAS) << MANTISSA


def _from_power(codes: Form) -> Form:
    """2 ** (code - 127); 255 is NaN, and 0 a denormal."""
    wide = cast(codes, DataType.INT32)
    value = bits(binary("shl", wide, MANTISSA), DataType.FLOAT)
    value = select(binary("eq", wide, 0), math.ldexp(1.0, -BIAS), value)
    return select(binary("eq", wide, 255), math.nan, value)


def _to_power(x: Form, saturate: bool, round_mode: str) -> Form:
    """The exponent of a magnitude, moved up by what its fraction says."""
    wide = bits(unary("abs", cast(x, DataType.DOUBLE)), DataType.INT64)
    exponent = binary("shr", wide, 52) - 1023
    fraction = binary("and", wide, (1 << 52) - 1)
    match round_mode:
        case "up":
            above = binary("gt", fraction, 0)
        case "nearest":
            above = binary("ge", fraction, 1 << 51)
        case "down":
            above = binary("lt", fraction, 0)
        case _:
            raise NotLowered(f"round_mode '{round_mode}' is none of up, down, nearest")
    code: Form = exponent + cast(above, DataType.INT64) + BIAS
    infinite = binary("eq", wide, 0x7FF << 52)
    code = select(infinite, 2 * BIAS + 1, code)
    outside = binary("or", binary("lt", code, 0), binary("gt", code, 2 * BIAS))
    code = binary("min", binary("max", code, 0), 2 * BIAS)
    if not saturate:
        code = select(outside, 255, code)
    code = select(binary("gt", wide, 0x7FF << 52), 255, code)
    return bits(cast(code, DataType.UINT8), DataType.FLOAT8E8M0)


def _to_integer(x: Form, to: DataType) -> Form:
    """The low bits of what the whole part of a number is in int32."""
    wide = _whole(x, DataType.INT32) if x.dtype.is_float else cast(x, DataType.INT32)
    low: Form = binary("and", wide, (1 << to.bits) - 1)
    if to in (DataType.INT4, DataType.INT2):
        sign = 1 << (to.bits - 1)
        low = binary("xor", low, sign) - sign
    return bits(cast(cast(low, DataType.INT8), DataType.UINT8), to)


def _whole(x: Form, to: DataType) -> Form:
    """The low bits of what the whole part of a float is in int32, or in int64 for 64 bits.

    What that does not hold, NaN too, is its smallest number; unsigned types of as many bits hold
    the upper half as well.
    """
    middle = DataType.INT64 if to.bits == 64 else DataType.INT32
    limit = 2.0 ** (middle.bits - 1)
    if to not in (DataType.UINT32, DataType.UINT64):
        inside = binary("lt", unary("abs", x), limit)
        return cast(cast(select(inside, x, -limit), middle), to)
    above = binary("ge", x, limit)
    low = _whole(select(above, x - limit, x), middle)
    moved = binary("xor", low, select(above, number(-(1 << (middle.bits - 1)), middle), 0))
    return cast(moved, to)


def _rounded_once(x: Form) -> Form:
    """float32 whose last bit is set where something was lost, so that a further rounding is right.

    Types that float32 holds exactly are only cast.
    """
    if x.dtype in (DataType.FLOAT, DataType.BOOL) or x.dtype.bits <= 16:
        return cast(x, DataType.FLOAT)
    wide = cast(x, DataType.DOUBLE)
    near = cast(wide, DataType.FLOAT)
    back = cast(near, DataType.DOUBLE)
    pattern = bits(near, DataType.INT32)
    larger = binary("gt", unary("abs", back), unary("abs", wide))
    lower = select(larger, pattern - 1, pattern)
    odd = bits(binary("or", lower, 1), DataType.FLOAT)
    exact = binary("or", binary("eq", back, wide), binary("ne", wide, wide))
    return select(exact, near, odd)
