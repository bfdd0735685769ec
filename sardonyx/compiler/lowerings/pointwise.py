"""Operators on single elements, as maps."""

import math
from collections.abc import Callable
from functools import reduce

import numpy as np

from sardonyx.compiler.forms import (
    Form,
    NotLowered,
    binary,
    bits,
    cast,
    iota,
    number,
    reshape,
    select,
    unary,
)
from sardonyx.compiler.lowerings.request import Lowering, Lowerings, Request
from sardonyx.compiler.narrow import convert
from sardonyx.dtypes import DataType

LOWEST_SHARE = -1e4
"""Numbers below it have no share that a float could hold."""

SERIES_UNTIL = 0.25
SERIES_TERMS = {DataType.FLOAT: 7, DataType.DOUBLE: 13}
"""How many terms of exp(x) - 1 a float of a type shows where |x| is below SERIES_UNTIL."""


def _unary(name: str) -> Lowering:
    def lower(request: Request, x: Form) -> Form:
        if not x.dtype.is_float and name not in ("neg", "abs"):
            raise NotLowered(f"{name} of {x.dtype.text} has no native form")
        return unary(name, x)

    return lower


def _binary(name: str) -> Lowering:
    return lambda request, left, right: binary(name, left, right)


def _variadic(name: str) -> Lowering:
    return lambda request, *items: reduce(lambda left, right: binary(name, left, right), items)


def _activation(compute: Callable[..., Form]) -> Lowering:
    def lower(request: Request, x: Form, **attributes: float) -> Form:
        if not x.dtype.is_float:
            raise NotLowered(f"of {x.dtype.text} it has no native form")
        return compute(x, **attributes)

    return lower


def relu(request: Request, x: Form) -> Form:
    """max(x, 0)."""
    return binary("max", x, 0)


def gelu(x: Form, approximate: str) -> Form:
    """x times the probability that a normal variable is below x; 0 for minus infinity."""
    half = 0.5 * binary("max", x, LOWEST_SHARE)
    if approximate == "tanh":
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)
        return half * (1.0 + unary("tanh", inner))
    return half * (1.0 + unary("erf", x * math.sqrt(0.5)))


def exponential_minus_one(x: Form) -> Form:
    """exp(x) - 1 with all digits: a power series where the difference would cancel them."""
    terms = SERIES_TERMS.get(x.dtype, SERIES_TERMS[DataType.FLOAT])
    series = x * (1.0 / math.factorial(terms))
    for term in range(terms - 1, 1, -1):
        series = x * (series + 1.0 / math.factorial(term))
    near = binary("lt", unary("abs", x), SERIES_UNTIL)
    return select(near, x + x * series, unary("exp", x) - 1.0)


def exponential_unit(x: Form, alpha: float) -> Form:
    """x, or alpha * (exp(x) - 1) below zero."""
    return select(binary("lt", x, 0.0), exponential_minus_one(x) * alpha, x)


def scaled_unit(x: Form, alpha: float, gamma: float) -> Form:
    """gamma * x, or gamma * alpha * (exp(x) - 1) up to zero."""
    bend = exponential_minus_one(x) * alpha
    return select(binary("gt", x, 0.0), x, bend) * gamma


def continuous_unit(x: Form, alpha: float) -> Form:
    """max(x, 0) + min(0, alpha * (exp(x / alpha) - 1))."""
    if alpha == 0:
        raise NotLowered("an alpha of 0 has no native form")
    bend = exponential_minus_one(x / alpha) * alpha
    return binary("max", x, 0.0) + binary("min", bend, 0.0)


def softplus(x: Form) -> Form:
    """log(1 + exp(x)), without overflow."""
    return binary("max", x, 0.0) + unary("log", 1.0 + unary("exp", -unary("abs", x)))


def clip(request: Request, x: Form, low: Form | None = None, high: Form | None = None) -> Form:
    """Elements brought between two bounds."""
    result = x
    if low is not None:
        result = binary("max", result, low)
    return result if high is None else binary("min", result, high)


def power(request: Request, x: Form, y: Form) -> Form:
    """x ** y; the usual exponents without a logarithm."""
    exponent = request.known(1)
    if x.dtype.is_integer and y.dtype.is_integer:
        if exponent is None or exponent.size != 1:
            return whole_power(x, y, None)
        return whole_power(x, y, int(exponent.reshape(-1)[0]))
    if not x.dtype.is_float:
        return convert(power_of(cast(x, DataType.DOUBLE), y), x.dtype)
    if exponent is None or exponent.size != 1:
        return power_of(x, y)
    match float(exponent.reshape(-1)[0]):
        case 0.5:
            return unary("sqrt", x)
        case 1.0:
            return x
        case 2.0:
            return x * x
        case 3.0:
            return x * x * x
        case -0.5:
            return unary("rsqrt", x)
        case -1.0:
            return unary("reciprocal", x)
        case small if abs(small) < 1 << 24:
            return binary("pow", x, number(small, x.dtype))
        case _:
            return power_of(x, y)


def cast_to(request: Request, x: Form, to: int, saturate: int, round_mode: str) -> Form:
    """Elements as another type."""
    return convert(x, DataType(to), saturate=bool(saturate), round_mode=round_mode)


def cast_like(request: Request, x: Form, other: Form, saturate: int, round_mode: str) -> Form:
    """Elements as the type of another tensor."""
    return convert(x, other.dtype, saturate=bool(saturate), round_mode=round_mode)


def bit_cast(request: Request, x: Form, to: int) -> Form:
    """The bits of elements as another type of the same width."""
    if x.dtype.numpy.itemsize != DataType(to).numpy.itemsize or x.dtype.bits < 8:
        raise NotLowered(f"bits of {x.dtype.text} as {DataType(to).text} have no native form")
    return bits(x, DataType(to))


def power_of(x: Form, y: Form) -> Form:
    """x ** y of floats, in the type of x.

    Whole exponents that floats do not hold exactly are taken in float64, and say the sign.
    """
    if y.dtype.is_float or y.dtype.bits < 32:
        return binary("pow", x, cast(y, x.dtype))
    wide = cast(x, DataType.DOUBLE)
    size = binary("pow", unary("abs", wide), cast(y, DataType.DOUBLE))
    odd = binary("ne", binary("and", y, 1), 0)
    # 1 / x tells -0.0 from 0.0.
    below = binary("or", binary("lt", wide, 0.0), binary("lt", 1.0 / wide, 0.0))
    return cast(select(binary("and", odd, below), -size, size), x.dtype)


def whole_power(x: Form, y: Form, known: int | None) -> Form:
    """x ** y of integers, exact in the bits that their type has: one square for each bit of y."""
    power: Form = number(1, x.dtype)
    square = x
    if known is not None and known >= 0:
        # The shape that both broadcast to stays: the exponent may have more axes.
        powers = [x]
        while len(powers) < known.bit_length():
            powers.append(powers[-1] * powers[-1])
        chosen = [item for bit, item in enumerate(powers) if known >> bit & 1]
        one = cast(binary("eq", y, y), x.dtype)
        return reduce(lambda left, right: left * right, chosen, one)
    for bit in range(y.dtype.bits):
        has = binary("ne", binary("and", binary("shr", y, bit), 1), 0)
        power = select(has, power * square, power)
        square = square * square
    if y.dtype.text.startswith("u"):
        return power
    odd = select(binary("ne", binary("and", y, 1), 0), x, number(1, x.dtype))
    inverse = select(binary("eq", unary("abs", x), 1), odd, number(0, x.dtype))
    return select(binary("lt", y, 0), inverse, power)


def where(request: Request, condition: Form, then: Form, other: Form) -> Form:
    """A choice between two tensors."""
    return select(condition, then, other)


def negate(request: Request, x: Form) -> Form:
    """not x."""
    return unary("not", x)


def parametric_relu(request: Request, x: Form, slope: Form) -> Form:
    """x where it is positive, else x times a slope."""
    return select(binary("lt", x, 0), x * slope, x)


def mean(request: Request, *items: Form) -> Form:
    """The mean of several tensors."""
    return reduce(lambda left, right: left + right, items) / float(len(items))


def is_nan(request: Request, x: Form) -> Form:
    """True for NaN."""
    return binary("ne", x, x)


def is_infinite(request: Request, x: Form, detect_negative: int, detect_positive: int) -> Form:
    """True for infinities of the signs that count."""
    if not x.dtype.is_float:
        raise NotLowered(f"{x.dtype.text} has no infinities")
    positive, negative = binary("eq", x, math.inf), binary("eq", x, -math.inf)
    if detect_negative and detect_positive:
        return binary("or", positive, negative)
    if detect_negative or detect_positive:
        return negative if detect_negative else positive
    return binary("and", positive, negative)


def sign(request: Request, x: Form) -> Form:
    """-1, 0 or 1; NaN stays NaN."""
    one = number(1, x.dtype)
    positive = select(binary("gt", x, 0), one, x)
    if x.dtype.is_integer and x.dtype.text.startswith("u"):
        return positive
    return select(binary("lt", x, 0), number(-1, x.dtype), positive)


def modulo(request: Request, x: Form, y: Form, fmod: int) -> Form:
    """The remainder with the sign of y, or of x where `fmod`."""
    rest = binary("mod", x, y)
    if fmod:
        return rest
    crosses = binary(
        "ne", cast(binary("lt", rest, 0), DataType.INT8), cast(binary("lt", y, 0), DataType.INT8)
    )
    return select(binary("and", binary("ne", rest, 0), crosses), rest + y, rest)


def numbers(request: Request, start: Form, limit: Form, delta: Form, **_: int) -> Form:
    """start, start + delta, ... up to a limit."""
    steps = iota(request.told(0, 1, 2), 0)
    first, step = (reshape(item, ()) for item in (start, delta))
    return first + cast(steps, first.dtype) * step


def bit_shift(request: Request, x: Form, y: Form, direction: str) -> Form:
    """Bits moved to the left or right."""
    return binary("shl" if direction == "LEFT" else "shr", x, y)


LOWERINGS: Lowerings = {
    ("", name): lower
    for name, lower in {
        "Neg": _unary("neg"), "Abs": _unary("abs"), "Sqrt": _unary("sqrt"),
        "Reciprocal": _unary("reciprocal"), "Exp": _unary("exp"), "Log": _unary("log"),
        "Tanh": _unary("tanh"), "Erf": _unary("erf"), "Sigmoid": _unary("sigmoid"),
        **{name: _unary(name.lower()) for name in (
            "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh",
        )},
        "BitwiseAnd": _binary("and"), "BitwiseOr": _binary("or"), "BitwiseXor": _binary("xor"),
        "BitwiseNot": negate, "BitShift": bit_shift, "Mod": modulo, "Sign": sign,
        "IsInf": is_infinite, "Range": numbers, "CastLike": cast_like, "BitCast": bit_cast,
        "Floor": _unary("floor"), "Ceil": _unary("ceil"), "Round": _unary("rint"),
        "Add": _binary("add"), "Sub": _binary("sub"), "Mul": _binary("mul"), "Div": _binary("div"),
        "Less": _binary("lt"), "LessOrEqual": _binary("le"), "Greater": _binary("gt"),
        "GreaterOrEqual": _binary("ge"), "Equal": _binary("eq"), "And": _binary("and"),
        "Or": _binary("or"), "Xor": _binary("xor"),
        "Max": _variadic("max"), "Min": _variadic("min"), "Sum": _variadic("add"), "Mean": mean,
        "Not": negate, "Where": where, "Cast": cast_to, "Clip": clip, "Pow": power, "Relu": relu,
        "PRelu": parametric_relu, "IsNaN": is_nan,
        "Gelu": _activation(gelu), "Softplus": _activation(softplus),
        "Softsign": _activation(lambda x: x / (1.0 + unary("abs", x))),
        "LeakyRelu": _activation(lambda x, alpha: select(binary("lt", x, 0.0), x * alpha, x)),
        "Elu": _activation(exponential_unit), "Selu": _activation(scaled_unit),
        "Celu": _activation(continuous_unit),
        "HardSigmoid": _activation(
            lambda x, alpha, beta: binary("min", binary("max", x * alpha + beta, 0.0), 1.0)
        ),
        "HardSwish": _activation(
            lambda x: x * binary("min", binary("max", x * float(np.float32(1 / 6)) + 0.5, 0.0), 1.0)
        ),
        "Swish": _activation(lambda x, alpha: x * unary("sigmoid", x * alpha)),
        "Mish": _activation(lambda x: x * unary("tanh", softplus(x))),
        "ThresholdedRelu": _activation(
            lambda x, alpha: select(binary("gt", x, alpha), x, number(0.0, x.dtype))
        ),
    }.items()
}  # fmt: skip
