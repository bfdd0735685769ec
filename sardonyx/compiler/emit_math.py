"""Functions of floats as LLVM instructions, on scalars or on vectors.

float32 functions are polynomials after a reduction of the argument; no library is called, so all of
them work on whole vectors. Errors against float64, in units in the last place: exp 1.5, log 1.5,
tanh 2.5, erf 2, sigmoid 3. Denormal results of exp are exact to a bit of theirs.
"""

import math
import struct
from typing import Any

import numpy as np

from sardonyx.compiler import emit_ir as ir

I32 = ir.IntType(32)
_EXP = (0.5, 0.1666666716337204, 0.041666269302368164, 0.008333263918757439,
        0.0013946177205070853, 0.00019918501493521035)  # fmt: skip
_LOG = (0.3333331048488617, -0.24999986588954926, 0.20002242922782898, -0.16669267416000366,
        0.14218319952487946, -0.12383847683668137, 0.1187516376376152, -0.11793844401836395,
        0.06915108859539032)  # fmt: skip
_ERF_NEAR = (0.12837916612625122, -0.37612631916999817, 0.11283686012029648, -0.026858851313591003,
             0.005199600011110306, -0.0008125806925818324, 8.296610758407041e-05)  # fmt: skip
_ERF_FAR = (-0.00017733393178787082, 1.1295276880264282, 0.6333212852478027, 0.10830826312303543,
            -0.025137614458799362, 0.004177959635853767, -0.000435884139733389,
            2.1217869289102964e-05)  # fmt: skip
_LN2_HIGH, _LN2_LOW = 0.693359375, -2.12194440e-4
_ROUNDER = 12582912.0
SCALING_LANES = 16
"""Floats of a vector on targets that multiply by powers of two in one instruction."""
_SQRT_HALF_BITS = struct.unpack("<i", struct.pack("<f", math.sqrt(0.5)))[0]


def splat(type_: Any, value: float) -> Any:
    """A constant of a scalar or vector type."""
    scalar = type_.element if isinstance(type_, ir.VectorType) else type_
    if isinstance(scalar, ir.FloatType):
        value = float(np.float32(value))
    if isinstance(type_, ir.VectorType):
        return ir.Constant(type_, [value] * type_.count)
    return ir.Constant(type_, value)


def like(type_: Any, scalar: Any) -> Any:
    """The type of as many lanes as `type_` has, of `scalar`."""
    return ir.VectorType(scalar, type_.count) if isinstance(type_, ir.VectorType) else scalar


def intrinsic(builder: ir.IRBuilder, name: str, *arguments: Any) -> Any:
    """Call an LLVM intrinsic whose operands and result have one type."""
    type_ = arguments[0].type
    function = declare(builder.module, f"{name}.{suffix(type_)}", type_, [type_] * len(arguments))
    return builder.compute(function, arguments)


def library(b: ir.IRBuilder, name: str, *arguments: Any) -> Any:
    """A function of C's mathematical library in float64, lane by lane."""
    type_ = arguments[0].type
    if isinstance(type_, ir.VectorType):
        result: Any = ir.Constant(type_, ir.Undefined)
        for number in range(type_.count):
            at = ir.Constant(I32, number)
            one = library(b, name, *(b.extract_element(item, at) for item in arguments))
            result = b.insert_element(result, one, at)
        return result
    double = ir.DoubleType()
    if name == "sigmoid":
        power = library(b, "exp", b.fneg(arguments[0]))
        one = splat(type_, 1.0)
        return b.fdiv(one, b.fadd(one, power))
    wide = [b.fpext(item, double) if type_ != double else item for item in arguments]
    function = declare(b.module, name, double, [double] * len(wide))
    made = b.call(function, wide)
    return b.fptrunc(made, type_) if type_ != double else made


def declare(module: ir.Module, name: str, result: Any, arguments: list[Any]) -> Any:
    """A function declared in a module, once."""
    found = module.globals.get(name)
    return found or ir.Function(module, ir.FunctionType(result, arguments), name)


def suffix(type_: Any) -> str:
    """A type in the name of an intrinsic."""
    if isinstance(type_, ir.VectorType):
        return f"v{type_.count}{suffix(type_.element)}"
    if isinstance(type_, ir.HalfType):
        return "f16"
    if isinstance(type_, ir.FloatType):
        return "f32"
    return "f64" if isinstance(type_, ir.DoubleType) else f"i{type_.width}"


class FloatMath:
    """Emits float32 functions at a builder's place."""

    def __init__(self, builder: ir.IRBuilder) -> None:
        self.builder = builder

    def multiply_add(self, left: Any, right: Any, addend: Any) -> Any:
        """left * right + addend, with one rounding where the target has that."""
        return intrinsic(self.builder, "llvm.fmuladd", left, right, addend)

    def polynomial(self, x: Any, coefficients: tuple[float, ...]) -> Any:
        """sum(coefficient[i] * x**i)."""
        result = splat(x.type, coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            result = self.multiply_add(result, x, splat(x.type, coefficient))
        return result

    def choose(self, relation: str, left: Any, right: Any, then: Any, other: Any) -> Any:
        """`then` where an ordered comparison holds."""
        return self.builder.select(self.builder.fcmp_ordered(relation, left, right), then, other)

    def exp(self, x: Any) -> Any:
        """2**n times a polynomial, for -104 <= x <= 89, beyond which nothing changes."""
        return self.power(self.clamped(x, -104.0, 89.0), 1.0)

    def clamped(self, x: Any, low: float, high: float) -> Any:
        """x, brought between two numbers; NaN stays."""
        least, most = splat(x.type, low), splat(x.type, high)
        x = self.choose(">", x, most, most, x)
        return self.choose("<", x, least, least, x)

    def power(self, x: Any, sign: float) -> Any:
        """exp(sign * x)."""
        b, t = self.builder, x.type
        shifted, n, tail = self.reduced(x, sign)
        result = b.fadd(tail, splat(t, 1.0))
        if isinstance(t, ir.VectorType) and t.count == SCALING_LANES:
            return self.scaled(result, n)
        return self.scaled_in_halves(result, shifted)

    def reduced(self, x: Any, sign: float = 1.0) -> tuple[Any, Any, Any]:
        """sign * x = n * ln 2 + r: a number with n in its last bits, n, and exp(r) - 1."""
        b, t = self.builder, x.type
        shifted = self.multiply_add(x, splat(t, sign / math.log(2)), splat(t, _ROUNDER))
        n = b.fsub(shifted, splat(t, _ROUNDER))
        r = self.multiply_add(n, splat(t, -_LN2_HIGH), x if sign > 0 else b.fneg(x))
        r = self.multiply_add(n, splat(t, -_LN2_LOW), r)
        tail = self.multiply_add(b.fmul(r, r), self.polynomial(r, _EXP), r)
        return shifted, n, tail

    def scaled(self, x: Any, n: Any) -> Any:
        """x * 2**n by one instruction."""
        b, t = self.builder, x.type
        mask = ir.IntType(SCALING_LANES)
        name = "llvm.x86.avx512.mask.scalef.ps.512"
        function = declare(b.module, name, t, [t, t, t, mask, I32])
        everywhere, usual_rounding = ir.Constant(mask, -1), ir.Constant(I32, 4)
        return b.call(function, [x, n, x, everywhere, usual_rounding])

    def scaled_in_halves(self, result: Any, shifted: Any) -> Any:
        """Times 2**n in two steps, so that none overflows; n is in the last bits of `shifted`."""
        b, t = self.builder, result.type
        integers = like(t, I32)
        rounder = struct.unpack("<i", struct.pack("<f", _ROUNDER))[0]
        exponent = b.sub(b.bitcast(shifted, integers), splat(integers, rounder))
        half = b.ashr(exponent, splat(integers, 1))
        for part in (half, b.sub(exponent, half)):
            bits = b.shl(b.add(part, splat(integers, 127)), splat(integers, 23))
            result = b.fmul(result, b.bitcast(bits, t))
        return result

    def log(self, x: Any) -> Any:
        """x = m * 2**e with m around 1; a polynomial in m - 1, plus e * ln 2."""
        b, t = self.builder, x.type
        integers = like(t, I32)
        tiny = b.fcmp_ordered("<", x, splat(t, 1.1754944e-38))
        scaled = b.select(tiny, b.fmul(x, splat(t, 8388608.0)), x)
        bits = b.bitcast(scaled, integers)
        above = b.sub(bits, splat(integers, _SQRT_HALF_BITS))
        exponent = b.ashr(above, splat(integers, 23))
        mantissa = b.bitcast(b.sub(bits, b.shl(exponent, splat(integers, 23))), t)
        shift = b.select(tiny, splat(t, -23.0), splat(t, 0.0))
        e = b.fadd(b.sitofp(exponent, t), shift)
        f = b.fsub(mantissa, splat(t, 1.0))
        square = b.fmul(f, f)
        tail = b.fmul(b.fmul(square, f), self.polynomial(f, _LOG))
        tail = self.multiply_add(e, splat(t, _LN2_LOW), tail)
        tail = self.multiply_add(square, splat(t, -0.5), tail)
        result = self.multiply_add(e, splat(t, _LN2_HIGH), b.fadd(f, tail))
        result = self.choose("==", x, splat(t, math.inf), x, result)
        result = self.choose("==", x, splat(t, 0.0), splat(t, -math.inf), result)
        negative = b.fcmp_unordered("<", x, splat(t, 0.0))
        return b.select(negative, splat(t, math.nan), result)

    def tanh(self, x: Any) -> Any:
        """p / (p + 2) with p = exp(2|x|) - 1, which keeps its bits near 0, and x's sign."""
        b, t = self.builder, x.type
        integers, twice = like(t, I32), self.builder.fadd(x, x)
        most = splat(t, 20.0)
        magnitude = intrinsic(b, "llvm.fabs", twice)
        magnitude = self.choose(">", magnitude, most, most, magnitude)
        shifted, _, tail = self.reduced(magnitude)
        bits = b.add(b.bitcast(shifted, integers), splat(integers, 127))
        scale = b.bitcast(b.shl(bits, splat(integers, 23)), t)
        p = self.multiply_add(scale, tail, b.fsub(scale, splat(t, 1.0)))
        made = b.fdiv(p, b.fadd(p, splat(t, 2.0)))
        return intrinsic(b, "llvm.copysign", made, x)

    def erf(self, x: Any) -> Any:
        """Near 0 an odd polynomial, elsewhere 1 - exp(-polynomial(|x|)) with x's sign."""
        b, t = self.builder, x.type
        magnitude = intrinsic(b, "llvm.fabs", x)
        far_most = splat(t, 4.0)
        clamped = self.choose(">", magnitude, far_most, far_most, magnitude)
        far = self.exp(b.fneg(self.polynomial(clamped, _ERF_FAR)))
        far = intrinsic(b, "llvm.copysign", b.fsub(splat(t, 1.0), far), x)
        near = self.multiply_add(x, self.polynomial(b.fmul(x, x), _ERF_NEAR), x)
        return self.choose("<", magnitude, splat(t, 0.9375), near, far)

    def sigmoid(self, x: Any) -> Any:
        """1 / (1 + exp(-x))."""
        b, one = self.builder, splat(x.type, 1.0)
        return b.fdiv(one, b.fadd(one, self.power(self.clamped(x, -89.0, 104.0), -1.0)))
