"""Values of the kernel language as LLVM instructions, on scalars or vectors."""

import math
from typing import Any

import numpy as np

from sardonyx.compiler import emit_ir as ir
from sardonyx.compiler.emit_math import FloatMath, declare, intrinsic, library, like, splat, suffix
from sardonyx.dtypes import DataType
from sardonyx.errors import UnsupportedError
from sardonyx.loops.nodes import STORED

I1, I8, I32, I64 = (ir.IntType(bits) for bits in (1, 8, 32, 64))
F32, F64 = ir.FloatType(), ir.DoubleType()
TYPES: dict[DataType, Any] = {
    DataType.FLOAT: F32, DataType.DOUBLE: F64, DataType.BOOL: I1,
    DataType.INT8: I8, DataType.UINT8: I8,
    DataType.INT16: ir.IntType(16), DataType.UINT16: ir.IntType(16),
    DataType.INT32: ir.IntType(32), DataType.UINT32: ir.IntType(32),
    DataType.INT64: I64, DataType.UINT64: I64,
    DataType.FLOAT16: ir.HalfType(), DataType.BFLOAT16: ir.IntType(16),
    **dict.fromkeys(STORED - {DataType.FLOAT16, DataType.BFLOAT16}, I8),
}  # fmt: skip
"""Element types as they are computed with; those that are only moved as their bits."""
_UNSIGNED = frozenset({DataType.UINT8, DataType.UINT16, DataType.UINT32, DataType.UINT64})
_ANY_FLOAT = {
    "abs": "llvm.fabs", "sqrt": "llvm.sqrt", "floor": "llvm.floor", "ceil": "llvm.ceil",
    "rint": "llvm.rint",
}  # fmt: skip
_RELATIONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}


def memory_type(dtype: DataType) -> Any:
    """An element's type in memory: a bool takes a byte."""
    return I8 if dtype is DataType.BOOL else TYPES[dtype]


def constant(dtype: DataType, number: float | int | bool) -> Any:
    """A number of an element type; of one that is only moved, its bits."""
    type_ = TYPES[dtype]
    if dtype in STORED and isinstance(type_, ir.IntType):
        array = np.asarray(number, dtype.numpy)
        number = int(array.view(f"u{array.itemsize}"))
    return splat(type_, number)


def is_float(type_: Any) -> bool:
    """True for float types and vectors of them."""
    scalar = type_.element if isinstance(type_, ir.VectorType) else type_
    return isinstance(scalar, ir.HalfType | ir.FloatType | ir.DoubleType)


def emit_unary(b: ir.IRBuilder, name: str, dtype: DataType, x: Any, *, apart: bool = False) -> Any:
    """A function of one value; long ones by a call where they are to stand `apart`."""
    if name == "not":
        return b.xor(x, splat(x.type, 1 if dtype is DataType.BOOL else -1))
    if not is_float(x.type):
        if name == "neg":
            return b.sub(splat(x.type, 0), x)
        if name == "abs" and dtype not in _UNSIGNED:
            negative = b.icmp_signed("<", x, splat(x.type, 0))
            return b.select(negative, b.sub(splat(x.type, 0), x), x)
        if name == "abs":
            return x
        raise UnsupportedError(f"{name} of {dtype.text} has no native form")
    if name == "neg":
        return b.fneg(x)
    if name in _ANY_FLOAT:
        return intrinsic(b, _ANY_FLOAT[name], x)
    if name == "reciprocal":
        return b.fdiv(splat(x.type, 1.0), x)
    if name == "rsqrt":
        return b.fdiv(splat(x.type, 1.0), intrinsic(b, "llvm.sqrt", x))
    if dtype is not DataType.FLOAT or not hasattr(FloatMath, name):
        return library(b, name, x)
    if apart:
        return b.compute(_own_function(b.module, name, x.type), [x])
    return getattr(FloatMath(b), name)(x)


def _own_function(module: ir.Module, name: str, type_: Any) -> Any:
    """A math function that stands once in a module, for places that are repeated many times."""
    key = f"{name}.{suffix(type_)}"
    found = module.globals.get(key)
    if found is None:
        found = declare(module, key, type_, [type_])
        found.linkage = "internal"
        for attribute in ("noinline", "nounwind", "readnone"):
            found.attributes.add(attribute)
        b = ir.IRBuilder(found.append_basic_block("entry"))
        b.ret(getattr(FloatMath(b), name)(found.args[0]))
    return found


def emit_binary(b: ir.IRBuilder, name: str, dtype: DataType, left: Any, right: Any) -> Any:
    """A function of two values of one type."""
    if name in _RELATIONS:
        return _relation(b, name, dtype, left, right)
    match name:
        case "and":
            return b.and_(left, right)
        case "or":
            return b.or_(left, right)
        case "xor":
            return b.xor(left, right)
        case "min" | "max":
            return _extreme(b, name, dtype, left, right)
        case "shl" | "shr":
            return _shift(b, name, dtype, left, right)
        case "mod" | "pow" if is_float(left.type):
            return library(b, "fmod" if name == "mod" else name, left, right)
        case "mod":
            quotient = _divide(b, dtype, left, right)
            zero = splat(right.type, 0)
            rest = b.sub(left, b.mul(quotient, right))
            return b.select(b.icmp_signed("==", right, zero), zero, rest)
    if is_float(left.type):
        method = {"add": b.fadd, "sub": b.fsub, "mul": b.fmul, "div": b.fdiv}[name]
        return method(left, right)
    if name == "div":
        return _divide(b, dtype, left, right)
    return {"add": b.add, "sub": b.sub, "mul": b.mul}[name](left, right)


def _relation(b: ir.IRBuilder, name: str, dtype: DataType, left: Any, right: Any) -> Any:
    sign = _RELATIONS[name]
    if is_float(left.type):
        return (b.fcmp_unordered if name == "ne" else b.fcmp_ordered)(sign, left, right)
    unsigned = dtype in _UNSIGNED or dtype is DataType.BOOL
    return (b.icmp_unsigned if unsigned else b.icmp_signed)(sign, left, right)


def _extreme(b: ir.IRBuilder, name: str, dtype: DataType, left: Any, right: Any) -> Any:
    """The smaller or larger; a NaN on either side is the result."""
    sign = ">" if name == "max" else "<"
    if not is_float(left.type):
        compare = b.icmp_unsigned if dtype in _UNSIGNED else b.icmp_signed
        return b.select(compare(sign, left, right), left, right)
    if isinstance(left, ir.Constant):
        left, right = right, left
    chosen = b.select(b.fcmp_unordered(sign, left, right), left, right)
    if isinstance(right, ir.Constant) and not _holds_nan(right):
        return chosen
    return b.select(b.fcmp_unordered("uno", right, right), right, chosen)


def _holds_nan(value: ir.Constant) -> bool:
    held = value.constant
    items = held if isinstance(held, list) else [held]
    return any(isinstance(item, float) and math.isnan(item) for item in items)


def _divide(b: ir.IRBuilder, dtype: DataType, left: Any, right: Any) -> Any:
    """Truncating division without traps: by 0 it gives 0."""
    zero, one = splat(right.type, 0), splat(right.type, 1)
    by_zero = b.icmp_signed("==", right, zero)
    if dtype in _UNSIGNED:
        return b.select(by_zero, zero, b.udiv(left, b.select(by_zero, one, right)))
    by_minus = b.icmp_signed("==", right, splat(right.type, -1))
    quotient = b.sdiv(left, b.select(b.or_(by_zero, by_minus), one, right))
    quotient = b.select(by_minus, b.sub(zero, left), quotient)
    return b.select(by_zero, zero, quotient)


def _shift(b: ir.IRBuilder, name: str, dtype: DataType, left: Any, right: Any) -> Any:
    """Bits moved; by as many as there are or more, nothing or only the sign is left."""
    most = splat(right.type, dtype.bits - 1)
    far = b.icmp_unsigned(">", right, most)
    count = b.select(far, most, right)
    if name == "shr" and dtype not in _UNSIGNED:
        return b.ashr(left, count)
    moved = (b.shl if name == "shl" else b.lshr)(left, count)
    return b.select(far, splat(left.type, 0), moved)


def emit_bits(b: ir.IRBuilder, source: DataType, target: DataType, x: Any) -> Any:
    """The bits of a value as another type of the same width; a bool is its byte."""
    if source is DataType.BOOL:
        x = b.zext(x, like(x.type, I8))
    if target is DataType.BOOL:
        return b.icmp_unsigned("!=", x, splat(x.type, 0))
    return b.bitcast(x, like(x.type, TYPES[target]))


def emit_cast(b: ir.IRBuilder, source: DataType, target: DataType, x: Any) -> Any:
    """A value as another element type; what an integer cannot hold becomes its nearest."""
    if source is target:
        return x
    if source is DataType.BFLOAT16:
        return emit_cast(b, DataType.FLOAT, target, _from_bfloat(b, x))
    if target is DataType.BFLOAT16:
        return _to_bfloat(b, emit_cast(b, source, DataType.FLOAT, x))
    if source is DataType.FLOAT16 and not converts_half(b.module):
        return emit_cast(b, DataType.FLOAT, target, _from_half(b, x))
    if target is DataType.FLOAT16 and not converts_half(b.module):
        return _to_half(b, emit_cast(b, source, DataType.FLOAT, x))
    if target is DataType.FLOAT16 and source is not DataType.FLOAT:
        x, source = emit_cast(b, source, DataType.FLOAT, x), DataType.FLOAT
    type_ = like(x.type, TYPES[target])
    if target is DataType.BOOL:
        zero = splat(x.type, 0.0 if is_float(x.type) else 0)
        return _relation(b, "ne", source, x, zero)
    unsigned = source in _UNSIGNED or source is DataType.BOOL
    if is_float(x.type):
        if is_float(type_):
            return (b.fpext if source.bits < target.bits else b.fptrunc)(x, type_)
        sign = "u" if target in _UNSIGNED else "s"
        name = f"llvm.fpto{sign}i.sat.{suffix(type_)}.{suffix(x.type)}"
        return b.compute(declare(b.module, name, type_, [x.type]), [x])
    if is_float(type_):
        return (b.uitofp if unsigned else b.sitofp)(x, type_)
    if source.bits == target.bits and source is not DataType.BOOL:
        return x
    if source.bits > target.bits:
        return b.trunc(x, type_)
    return (b.zext if unsigned else b.sext)(x, type_)


def converts_half(module: ir.Module) -> bool:
    """Whether the target has instructions for float16; they begin with vectors of eight."""
    return module.lanes >= 8


def _from_half(b: ir.IRBuilder, x: Any) -> Any:
    """Fraction and exponent moved to their places in a float32, up to a power of two."""
    wide = b.zext(b.bitcast(x, like(x.type, ir.IntType(16))), like(x.type, I32))
    type_ = wide.type
    magnitude = b.shl(b.and_(wide, splat(type_, 0x7FFF)), splat(type_, 13))
    floats = like(x.type, F32)
    scaled = b.fmul(b.bitcast(magnitude, floats), splat(floats, 2.0**112))
    special = b.icmp_unsigned(">=", magnitude, splat(type_, 0x7C00 << 13))
    endless = b.or_(magnitude, splat(type_, 0x7F800000))
    chosen = b.select(special, endless, b.bitcast(scaled, type_))
    sign = b.shl(b.and_(wide, splat(type_, 0x8000)), splat(type_, 16))
    return b.bitcast(b.or_(chosen, sign), floats)


def _to_half(b: ir.IRBuilder, x: Any) -> Any:
    """Rounded to the nearest float16, ties to even."""
    bits = b.bitcast(x, like(x.type, I32))
    type_ = bits.type
    magnitude = b.and_(bits, splat(type_, 0x7FFFFFFF))
    odd = b.and_(b.lshr(magnitude, splat(type_, 13)), splat(type_, 1))
    rounded = b.lshr(b.add(magnitude, b.add(odd, splat(type_, 0xFFF))), splat(type_, 13))
    normal = b.sub(rounded, splat(type_, 112 << 10))
    anchored = b.fadd(b.bitcast(magnitude, x.type), splat(x.type, 0.5))
    tiny = b.sub(b.bitcast(anchored, type_), splat(type_, 126 << 23))
    code = b.select(b.icmp_unsigned("<", magnitude, splat(type_, 113 << 23)), tiny, normal)
    infinite = b.icmp_unsigned(">", code, splat(type_, 0x7C00))
    code = b.select(infinite, splat(type_, 0x7C00), code)
    code = b.select(b.fcmp_unordered("uno", x, x), splat(type_, 0x7E00), code)
    signed = b.or_(code, b.lshr(b.and_(bits, splat(type_, 0x80000000)), splat(type_, 16)))
    half = b.trunc(signed, like(x.type, ir.IntType(16)))
    return b.bitcast(half, like(x.type, ir.HalfType()))


def _from_bfloat(b: ir.IRBuilder, x: Any) -> Any:
    """The float32 whose upper half is given."""
    wide = b.zext(x, like(x.type, I32))
    return b.bitcast(b.shl(wide, splat(wide.type, 16)), like(x.type, F32))


def _to_bfloat(b: ir.IRBuilder, x: Any) -> Any:
    """The upper half of a float32, rounded to the nearest, ties to even; NaN stays NaN."""
    bits = b.bitcast(x, like(x.type, I32))
    odd = b.and_(b.lshr(bits, splat(bits.type, 16)), splat(bits.type, 1))
    rounded = b.add(bits, b.add(odd, splat(bits.type, 0x7FFF)))
    quiet = b.or_(bits, splat(bits.type, 0x400000))
    chosen = b.select(b.fcmp_unordered("uno", x, x), quiet, rounded)
    return b.trunc(b.lshr(chosen, splat(bits.type, 16)), like(x.type, ir.IntType(16)))


def neutral(combine: str, dtype: DataType) -> float | int:
    """What a combiner leaves unchanged."""
    if combine in ("add", "mul"):
        return int(combine == "mul")
    if dtype.is_float:
        return -math.inf if combine == "max" else math.inf
    signed = dtype not in _UNSIGNED
    lowest = -(2 ** (dtype.bits - 1)) if signed else 0
    highest = 2 ** (dtype.bits - 1) - 1 if signed else 2**dtype.bits - 1
    return lowest if combine == "max" else highest


def transposed(b: ir.IRBuilder, rows: list[Any]) -> list[Any]:
    """As many vectors as they have lanes, as a square matrix whose rows become columns."""
    count = len(rows)
    distance = 1
    while distance < count:
        made = list(rows)
        for row in range(count):
            if row & distance:
                continue
            upper, lower = rows[row], rows[row + distance]
            for place, shift in ((row, 0), (row + distance, distance)):
                lanes = [
                    lane + shift if not lane & distance else count + lane - distance + shift
                    for lane in range(count)
                ]
                order = ir.Constant(ir.VectorType(I32, count), lanes)
                made[place] = b.shuffle_vector(upper, lower, order)
        rows = made
        distance *= 2
    return rows
