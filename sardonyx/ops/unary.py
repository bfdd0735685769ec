"""Functions of one tensor, element by element."""

import math
from typing import Any

import numpy as np

from sardonyx.dims import Expression
from sardonyx.dtypes import DataType
from sardonyx.graph import Node, Value
from sardonyx.ops.build import Builder
from sardonyx.ops.element_type import constant_like, element_type
from sardonyx.ops.elementwise import Unary, rounded
from sardonyx.ops.fact import Fact, tensor
from sardonyx.ops.operator import Operator
from sardonyx.ops.precision import Array, widen
from sardonyx.ops.special import erf, sigmoid, softplus
from sardonyx.ops.symbolic import follow, lower_bound

_X_SINCE_1 = (
    "1(X: T, consumed_inputs?: ints) -> Y: T; T: floats3",
    "6(X: T) -> Y: T; T: floats3",
    "13(X: T) -> Y: T; T: floats",
)
_INPUT_SINCE_1 = (
    "1(input: T, consumed_inputs?: ints) -> output: T; T: floats3",
    "6(input: T) -> output: T; T: floats3",
    "13(input: T) -> output: T; T: floats",
)
_SINCE_7 = ("7(input: T) -> output: T; T: floats3", "22(input: T) -> output: T; T: floats")
_SINCE_9 = ("9(input: T) -> output: T; T: floats3", "22(input: T) -> output: T; T: floats")


class Acos(Unary):
    """The angle whose cosine is x."""

    signatures = _SINCE_7
    reference = rounded(np.arccos)


class Acosh(Unary):
    """The inverse of the hyperbolic cosine."""

    signatures = _SINCE_9
    reference = rounded(np.arccosh)


class Asin(Unary):
    """The angle whose sine is x."""

    signatures = _SINCE_7
    reference = rounded(np.arcsin)


class Asinh(Unary):
    """The inverse of the hyperbolic sine."""

    signatures = _SINCE_9
    reference = rounded(np.arcsinh)


class Atan(Unary):
    """The angle whose tangent is x."""

    signatures = _SINCE_7
    reference = rounded(np.arctan)


class Atanh(Unary):
    """The inverse of the hyperbolic tangent."""

    signatures = _SINCE_9
    reference = rounded(np.arctanh)


class Cos(Unary):
    """The cosine of an angle in radians."""

    signatures = _SINCE_7
    reference = rounded(np.cos)


class Cosh(Unary):
    """The hyperbolic cosine."""

    signatures = _SINCE_9
    reference = rounded(np.cosh)


class Sin(Unary):
    """The sine of an angle in radians."""

    signatures = _SINCE_7
    reference = rounded(np.sin)


class Sinh(Unary):
    """The hyperbolic sine."""

    signatures = _SINCE_9
    reference = rounded(np.sinh)


class Tan(Unary):
    """The tangent of an angle in radians."""

    signatures = _SINCE_7
    reference = rounded(np.tan)


class Tanh(Unary):
    """The hyperbolic tangent."""

    signatures = _INPUT_SINCE_1
    reference = rounded(np.tanh)


class Exp(Unary):
    """e to the power x."""

    signatures = _INPUT_SINCE_1
    reference = rounded(np.exp)


class Log(Unary):
    """The natural logarithm."""

    signatures = _INPUT_SINCE_1
    reference = rounded(np.log)


class Sqrt(Unary):
    """The square root; NaN below zero."""

    signatures = _X_SINCE_1
    reference = rounded(np.sqrt)

    def infer(x: Fact) -> Fact:
        return follow(tensor(x.dtype, x.shape), rounded(np.sqrt), None, x)


class Reciprocal(Unary):
    """1 / x."""

    signatures = _X_SINCE_1
    reference = rounded(lambda x: np.divide(1, x, dtype=x.dtype))


class Sigmoid(Unary):
    """1 / (1 + exp(-x))."""

    signatures = _X_SINCE_1
    reference = rounded(sigmoid)


class Erf(Unary):
    """The error function."""

    signatures = (
        "9(input: T) -> output: T; T: numeric3",
        "13(input: T) -> output: T; T: floats",
    )
    reference = rounded(erf)

    def upgrade_9(node: Node, build: Builder) -> Any:
        x = node.inputs[0]
        kind = element_type(x)
        if kind is None or not kind.is_integer:
            return None
        wide = build.Erf(build.Cast(x, to=int(DataType.DOUBLE)))
        return build.Cast(wide, to=int(kind))


class Softplus(Unary):
    """log(1 + exp(x))."""

    signatures = ("1(X: T) -> Y: T; T: floats3", "22(X: T) -> Y: T; T: floats")
    reference = rounded(softplus)

    def function(build: Builder, x: Value) -> Any:
        tail = build.Exp(build.Neg(build.Abs(x)))
        return build.Add(build.Relu(x), build.Log(build.Add(tail, constant_like(build, 1, x))))


class Softsign(Unary):
    """x / (1 + |x|)."""

    signatures = ("1(input: T) -> output: T; T: floats3", "22(input: T) -> output: T; T: floats")
    reference = rounded(lambda x: x / (1 + np.abs(x)))

    def function(build: Builder, x: Value) -> Any:
        return build.Div(x, build.Add(build.Abs(x), constant_like(build, 1, x)))


class Abs(Unary):
    """The absolute value."""

    signatures = (
        "1(X: T, consumed_inputs?: ints) -> Y: T; T: floats3",
        "6(X: T) -> Y: T; T: numeric3",
        "13(X: T) -> Y: T; T: numeric",
    )
    reference = rounded(np.abs)

    def infer(x: Fact) -> Fact:
        return follow(tensor(x.dtype, x.shape), rounded(np.abs), _absolute, x)


class Neg(Unary):
    """-x."""

    signatures = (
        "1(X: T, consumed_inputs?: ints) -> Y: T; T: floats3",
        "6(X: T) -> Y: T; T: floats3 signed",
        "13(X: T) -> Y: T; T: floats signed",
    )
    reference = rounded(np.negative)

    def infer(x: Fact) -> Fact:
        return follow(tensor(x.dtype, x.shape), rounded(np.negative), lambda item: -item, x)


class Sign(Unary):
    """-1, 0 or 1; NaN for NaN."""

    signatures = (
        "9(input: T) -> output: T; T: numeric3",
        "13(input: T) -> output: T; T: numeric",
    )
    reference = rounded(np.sign)


class Ceil(Unary):
    """The least whole number that is not below x."""

    signatures = _X_SINCE_1
    reference = rounded(np.ceil)

    def infer(x: Fact) -> Fact:
        return follow(tensor(x.dtype, x.shape), rounded(np.ceil), _to_whole(math.ceil), x)


class Floor(Unary):
    """The greatest whole number that is not above x."""

    signatures = _X_SINCE_1
    reference = rounded(np.floor)

    def infer(x: Fact) -> Fact:
        return follow(tensor(x.dtype, x.shape), rounded(np.floor), _to_whole(math.floor), x)


class Round(Unary):
    """The nearest whole number, the even one of two equally near."""

    signatures = ("11(X: T) -> Y: T; T: floats3", "22(X: T) -> Y: T; T: floats")
    reference = rounded(np.rint)

    def infer(x: Fact) -> Fact:
        return follow(tensor(x.dtype, x.shape), rounded(np.rint), _to_whole(round), x)


def _absolute(item: Any) -> Any:
    if not isinstance(item, Expression):
        return abs(item)
    bound = lower_bound(item)
    return item if bound is not None and bound >= 0 else None


def _to_whole(step: Any) -> Any:
    """A rounding that leaves symbolic sizes as they are: those are whole."""
    return lambda item: item if isinstance(item, Expression) else step(item)


class Not(Operator):
    """True where x is False."""

    signatures = ("1(X: T) -> Y: T; T: bool",)

    def infer(x: Fact) -> Fact:
        return follow(tensor(DataType.BOOL, x.shape), np.logical_not, lambda item: not item, x)

    def reference(x: Array) -> Array:
        return np.asarray(np.logical_not(x))


class IsInf(Operator):
    """True where x is infinite, of either sign or of the one asked for."""

    signatures = (
        "10(X: T1, detect_negative: int = 1, detect_positive: int = 1) -> Y: T2;"
        " T1: double float; T2: bool",
        "20(X: T1, detect_negative: int = 1, detect_positive: int = 1) -> Y: T2;"
        " T1: floats float8s; T2: bool",
    )

    def infer(x: Fact, detect_negative: int, detect_positive: int) -> Fact:
        return tensor(DataType.BOOL, x.shape)

    def reference(x: Array, detect_negative: int, detect_positive: int) -> Array:
        wide = widen(x)
        below = np.isneginf(wide) & bool(detect_negative)
        return np.asarray(below | (np.isposinf(wide) & bool(detect_positive)))

    def downgrade_20(node: Node, build: Builder) -> None:
        _test_in_float32(node, build, (DataType.FLOAT, DataType.DOUBLE))


class IsNaN(Operator):
    """True where x is not a number."""

    signatures = (
        "9(X: T1) -> Y: T2; T1: floats3; T2: bool",
        "13(X: T1) -> Y: T2; T1: floats; T2: bool",
        "20(X: T1) -> Y: T2; T1: floats float8s; T2: bool",
    )

    def infer(x: Fact) -> Fact:
        return tensor(DataType.BOOL, x.shape)

    def reference(x: Array) -> Array:
        return np.asarray(np.isnan(widen(x)))

    def downgrade_20(node: Node, build: Builder) -> None:
        halves = (DataType.FLOAT16, DataType.BFLOAT16)
        _test_in_float32(node, build, (DataType.FLOAT, DataType.DOUBLE, *halves))


def _test_in_float32(node: Node, build: Builder, allowed: tuple[DataType, ...]) -> None:
    """Let a test of floats look at float32 where the type itself is not allowed yet."""
    kind = element_type(node.inputs[0])
    if kind is not None and kind not in allowed:
        node.set_inputs([build.Cast(node.inputs[0], to=int(DataType.FLOAT))])
