"""Activation functions."""

from math import pi, sqrt
from typing import Any, ClassVar

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.errors import ConversionError, InferenceError
from sardonyx.graph import Attribute, Node, Value
from sardonyx.ops.build import Builder
from sardonyx.ops.early_opsets import (
    align_at,
    forget_consumed_inputs,
    known_rank,
    known_shape,
    proven_rank,
)
from sardonyx.ops.element_type import constant_like, constant_value, element_type
from sardonyx.ops.elementwise import Unary, one_type, rounded
from sardonyx.ops.fact import Fact, broadcast, merge, sizes_text, tensor
from sardonyx.ops.operator import Operator
from sardonyx.ops.precision import Array
from sardonyx.ops.special import erf, sigmoid, softplus
from sardonyx.ops.unary import Softplus

LARGE_ALPHA = 2.0
"""Factors of `exp(x) - 1` up to which its rounding error does no harm."""
_LOWEST, _HIGHEST = -3.4028234663852886e38, 3.4028234663852886e38


class Relu(Unary):
    """max(x, 0)."""

    signatures = (
        "1(X: T, consumed_inputs?: ints) -> Y: T; T: floats3",
        "6(X: T) -> Y: T; T: floats3",
        "13(X: T) -> Y: T; T: floats",
        "14(X: T) -> Y: T; T: floats signed",
    )
    reference = rounded(lambda x: np.maximum(x, 0))

    def function(build: Builder, x: Value) -> Any:
        return build.Max(x, constant_like(build, 0, x))


class LeakyRelu(Unary):
    """x, or alpha * x below zero."""

    signatures = (
        "1(X: T, alpha: float = 0.01, consumed_inputs?: ints) -> Y: T; T: floats3",
        "6(X: T, alpha: float = 0.01) -> Y: T; T: floats3",
        "16(X: T, alpha: float = 0.01) -> Y: T; T: floats",
    )

    @rounded
    def reference(x: Array, alpha: float) -> Array:
        return np.where(x < 0, alpha * x, x)

    def function(build: Builder, x: Value, alpha: float) -> Any:
        return _two_slopes(build, x, constant_like(build, alpha, x))


class PRelu(Operator):
    """x, or slope * x below zero; the slope broadcasts to x."""

    signatures = (
        "1(X: T, slope: T, consumed_inputs?: ints) -> Y: T; T: floats3",
        "6(X: T, slope: T) -> Y: T; T: floats3",
        "7(X: T, slope: T) -> Y: T; T: floats3",
        "9(X: T, slope: T) -> Y: T; T: floats3 wide",
        "16(X: T, slope: T) -> Y: T; T: floats wide",
    )
    upgrade_1 = forget_consumed_inputs

    def infer(x: Fact, slope: Fact) -> Fact:
        dtype = one_type(x, slope)
        if x.shape is None or slope.shape is None:
            return tensor(dtype, x.shape)
        shape = broadcast(x.shape, slope.shape)
        if shape is not None and len(shape) > len(x.shape):
            texts = f"{sizes_text(slope.shape)} does not broadcast to {sizes_text(x.shape)}"
            raise InferenceError(f"the slope's shape {texts}")
        return tensor(dtype, shape)

    @rounded
    def reference(x: Array, slope: Array) -> Array:
        return np.where(x < 0, slope * x, x)

    def function(build: Builder, x: Value, slope: Value) -> Any:
        return _two_slopes(build, x, slope)

    def upgrade_6(node: Node, build: Builder) -> Any:
        # One slope for all, or one for each channel, which is axis 1.
        x, slope = node.inputs
        one = slope is not None and slope.producer is None and known_shape(slope) in ((), (1,))
        if one or proven_rank(x) == 2:
            return None
        return align_at(node, 1, build)

    def downgrade_7(node: Node, build: Builder) -> None:
        x, slope = node.inputs
        shape, rank = known_shape(slope), known_rank(x)
        if shape in ((), (1,)):
            return
        if shape is None or rank is None or shape[1:] != (1,) * (rank - 2):
            raise ConversionError("before opset 7, slopes are one for all or one for each channel")
        if rank > 2:
            node.set_inputs([x, build.Squeeze(slope, axes=list(range(1, rank - 1)))])


def _two_slopes(build: Builder, x: Value, slope: Value) -> Any:
    """x above zero, slope * x below."""
    zero = constant_like(build, 0, x)
    if build.opset >= 16:
        return build.Where(build.Less(x, zero), build.Mul(slope, x), x)
    return build.Add(build.Max(x, zero), build.Mul(slope, build.Min(x, zero)))


class ThresholdedRelu(Unary):
    """x where it is above alpha, else 0."""

    signatures = (
        "10(X: T, alpha: float = 1.0) -> Y: T; T: floats3",
        "22(X: T, alpha: float = 1.0) -> Y: T; T: floats",
    )

    @rounded
    def reference(x: Array, alpha: float) -> Array:
        return np.where(x > alpha, x, 0)

    def function(build: Builder, x: Value, alpha: float) -> Any:
        above = build.Greater(x, constant_like(build, alpha, x))
        return build.Where(above, x, constant_like(build, 0, x))


class Elu(Unary):
    """x, or alpha * (exp(x) - 1) below zero."""

    signatures = (
        "1(X: T, alpha: float = 1.0, consumed_inputs?: ints) -> Y: T; T: floats3",
        "6(X: T, alpha: float = 1.0) -> Y: T; T: floats3",
        "22(X: T, alpha: float = 1.0) -> Y: T; T: floats",
    )

    @rounded
    def reference(x: Array, alpha: float) -> Array:
        return np.where(x < 0, alpha * np.expm1(x), x)

    def function(build: Builder, x: Value, alpha: float) -> Any:
        return _exponential_unit(build, x, alpha)


class Selu(Unary):
    """gamma * x, or gamma * alpha * (exp(x) - 1) up to zero."""

    signatures = (
        "1(X: T, alpha: float = 1.6732, consumed_inputs?: ints, gamma: float = 1.0507)"
        " -> Y: T; T: floats3",
        "6(X: T, alpha: float = 1.6732632, gamma: float = 1.050701) -> Y: T; T: floats3",
        "22(X: T, alpha: float = 1.6732632, gamma: float = 1.050701) -> Y: T; T: floats",
    )

    @rounded
    def reference(x: Array, alpha: float, gamma: float) -> Array:
        return gamma * np.where(x > 0, x, alpha * np.expm1(x))

    def function(build: Builder, x: Value, alpha: float, gamma: float) -> Any:
        return build.Mul(_exponential_unit(build, x, alpha), constant_like(build, gamma, x))

    def upgrade_1(node: Node, build: Builder) -> None:
        node.attributes.pop("consumed_inputs", None)
        for name, default in (("alpha", 1.6732), ("gamma", 1.0507)):
            if name not in node.attributes:
                node.set_attribute(name, default)


def _exponential(build: Builder, x: Value, alpha: float) -> Any:
    """exp(x) - 1; with all digits where a large alpha makes an error large."""
    one = constant_like(build, 1, x)
    if isinstance(alpha, Attribute) or abs(alpha) <= LARGE_ALPHA:
        return build.Sub(build.Exp(x), one)
    half = build.Tanh(build.Mul(x, constant_like(build, 0.5, x)))
    return build.Mul(half, build.Add(build.Exp(x), one))


def _exponential_unit(build: Builder, x: Value, alpha: float) -> Any:
    bend = _exponential(build, x, alpha)
    if isinstance(alpha, Attribute) or alpha != 1:
        bend = build.Mul(bend, constant_like(build, alpha, x))
    return build.Where(build.Less(x, constant_like(build, 0, x)), bend, x)


class Celu(Unary):
    """max(x, 0) + min(0, alpha * (exp(x / alpha) - 1))."""

    signatures = (
        "12(X: T, alpha: float = 1.0) -> Y: T; T: float",
        "28(X: T, alpha: float = 1.0) -> Y: T; T: floats",
    )

    @rounded
    def reference(x: Array, alpha: float) -> Array:
        return np.maximum(x, 0) + np.minimum(0, alpha * np.expm1(x / alpha))

    def function(build: Builder, x: Value, alpha: float) -> Any:
        zero, scale = constant_like(build, 0, x), constant_like(build, alpha, x)
        bend = _exponential(build, build.Div(x, scale), alpha)
        return build.Add(build.Max(x, zero), build.Min(zero, build.Mul(scale, bend)))


class HardSigmoid(Unary):
    """alpha * x + beta, kept between 0 and 1."""

    signatures = (
        "1(X: T, alpha: float = 0.2, beta: float = 0.5, consumed_inputs?: ints) -> Y: T;"
        " T: floats3",
        "6(X: T, alpha: float = 0.2, beta: float = 0.5) -> Y: T; T: floats3",
        "22(X: T, alpha: float = 0.2, beta: float = 0.5) -> Y: T; T: floats",
    )

    @rounded
    def reference(x: Array, alpha: float, beta: float) -> Array:
        return np.clip(alpha * x + beta, 0, 1)

    def function(build: Builder, x: Value, alpha: float, beta: float) -> Any:
        line = build.Mul(x, constant_like(build, alpha, x))
        line = build.Add(line, constant_like(build, beta, x))
        one, zero = constant_like(build, 1, x), constant_like(build, 0, x)
        return build.Max(build.Min(line, one), zero)


class HardSwish(Unary):
    """x * (x / 6 + 1/2, kept between 0 and 1)."""

    signatures = (
        "14(X: T) -> Y: T; T: floats3",
        "22(X: T) -> Y: T; T: floats",
    )

    @rounded
    def reference(x: Array) -> Array:
        return x * np.clip(x / 6 + 0.5, 0, 1)

    def function(build: Builder, x: Value) -> Any:
        if build.opset < 15:
            return build.Mul(x, build.HardSigmoid(x, alpha=1 / 6, beta=0.5))
        assert HardSigmoid.function is not None
        return build.Mul(x, HardSigmoid.function(build, x, 1 / 6, 0.5))


class Swish(Unary):
    """x * sigmoid(alpha * x)."""

    signatures = ("24(X: T, alpha: float = 1.0) -> Y: T; T: floats",)

    @rounded
    def reference(x: Array, alpha: float) -> Array:
        return x * sigmoid(alpha * x)

    def function(build: Builder, x: Value, alpha: float) -> Any:
        plain = not isinstance(alpha, Attribute) and alpha == 1
        inner = x if plain else build.Mul(x, constant_like(build, alpha, x))
        return build.Mul(x, build.Sigmoid(inner))


class SwiGLU(Operator):
    """a * sigmoid(alpha * a) * b, for two tensors of one shape."""

    signatures = ("28(A: T, B: T, alpha: float = 1.0) -> Y: T; T: floats",)

    def infer(a: Fact, b: Fact, alpha: float) -> Fact:
        return merge(tensor(a.dtype, a.shape), tensor(b.dtype, b.shape))

    @rounded
    def reference(a: Array, b: Array, alpha: float) -> Array:
        return a * sigmoid(alpha * a) * b

    def function(build: Builder, a: Value, b: Value, alpha: float) -> Any:
        if build.opset >= 24:
            return build.Mul(build.Swish(a, alpha=alpha), b)
        assert Swish.function is not None
        return build.Mul(Swish.function(build, a, alpha), b)


class Mish(Unary):
    """x * tanh(log(1 + exp(x)))."""

    signatures = ("18(X: T) -> Y: T; T: floats3", "22(X: T) -> Y: T; T: floats")

    @rounded
    def reference(x: Array) -> Array:
        return x * np.tanh(softplus(x))

    def function(build: Builder, x: Value) -> Any:
        assert Softplus.function is not None
        # Softplus itself takes bfloat16 only from opset 22 on.
        between = 18 <= build.opset < 22
        soft = Softplus.function(build, x) if between else build.Softplus(x)
        return build.Mul(x, build.Tanh(soft))


class Gelu(Unary):
    """x * P(X <= x) for a standard normal X, exactly or by a formula with tanh."""

    signatures = ("20(X: T, approximate: string = 'none') -> Y: T; T: floats",)
    choices: ClassVar = {"approximate": ("none", "tanh")}

    def reference(x: Array, approximate: str) -> Array:
        wide = x.astype(np.float64)
        if approximate == "none":
            share = 1 + erf(wide / sqrt(2))
        else:
            share = 1 + np.tanh(sqrt(2 / pi) * (wide + 0.044715 * wide**3))
        return np.asarray(np.where(wide == -np.inf, 0, 0.5 * wide * share)).astype(x.dtype)

    def function(build: Builder, x: Value, approximate: str) -> Any:
        half, one = constant_like(build, 0.5, x), constant_like(build, 1, x)
        if approximate == "tanh":
            cube = build.Mul(x, build.Mul(x, x))
            inner = build.Add(x, build.Mul(cube, constant_like(build, 0.044715, x)))
            share = build.Tanh(build.Mul(inner, constant_like(build, sqrt(2 / pi), x)))
        else:
            share = build.Erf(build.Mul(x, constant_like(build, sqrt(0.5), x)))
        return build.Mul(build.Mul(x, half), build.Add(share, one))


class Shrink(Unary):
    """0 between -lambd and lambd; outside of it, x moved toward zero by `bias`."""

    signatures = ("9(input: T, bias: float = 0.0, lambd: float = 0.5) -> output: T; T: numeric3",)

    def reference(x: Array, bias: float, lambd: float) -> Array:
        wide = x.astype(np.float64)
        moved = np.where(wide < -lambd, wide + bias, np.where(wide > lambd, wide - bias, 0))
        return np.asarray(np.where(np.isnan(wide), 0, moved)).astype(x.dtype)

    def function(build: Builder, x: Value, bias: float, lambd: float) -> Any:
        if build.opset < 15:
            raise ConversionError("this is said with CastLike, which begins with opset 15")
        wide = build.Cast(x, to=int(DataType.DOUBLE))
        edge, step = (constant_like(build, number, wide) for number in (lambd, bias))
        upper = build.Where(build.Greater(wide, edge), build.Sub(wide, step), np.float64(0))
        moved = build.Where(build.Less(wide, build.Neg(edge)), build.Add(wide, step), upper)
        return build.CastLike(moved, x)


class Clip(Operator):
    """x, not below `min` and then not above `max`, where those are given."""

    signatures = (
        "1(input: T, consumed_inputs?: ints, max?: float, min?: float) -> output: T; T: floats3",
        "6(input: T, max: float = 3.4028235e+38, min: float = -3.4028235e+38)"
        " -> output: T; T: floats3",
        "11(input: T, min?: T, max?: T) -> output: T; T: floats3",
        "12(input: T, min?: T, max?: T) -> output: T; T: numeric3",
        "13(input: T, min?: T, max?: T) -> output: T; T: numeric",
    )
    upgrade_1 = forget_consumed_inputs

    def infer(x: Fact, low: Fact | None = None, high: Fact | None = None) -> Fact:
        for name, fact in (("min", low), ("max", high)):
            if fact is not None and fact.shape not in (None, (), (1,)):
                raise InferenceError(
                    f"'{name}' must be a scalar, not {sizes_text(fact.shape or ())}"
                )
        return tensor(one_type(x, low, high), x.shape)

    def reference(x: Array, low: Array | None = None, high: Array | None = None) -> Array:
        result = x
        if low is not None:
            result = np.maximum(result, low.astype(x.dtype).reshape(()))
        if high is not None:
            result = np.minimum(result, high.astype(x.dtype).reshape(()))
        return np.asarray(result)

    def function(
        build: Builder, x: Value, low: Value | None = None, high: Value | None = None
    ) -> Any:
        if build.opset < 12:
            raise ConversionError("integers begin with opset 12")
        result = x if low is None else build.Max(x, low)
        result = result if high is None else build.Min(result, high)
        return build.Identity(x) if result is x else result

    def upgrade_6(node: Node, build: Builder) -> None:
        low = node.attribute("min", _LOWEST)
        high = node.attribute("max", _HIGHEST)
        x = node.inputs[0]
        kind = element_type(x)
        dtype = np.dtype(np.float32) if kind is None else kind.numpy
        bounds = [
            build.constant(np.asarray(bound).astype(dtype)) if abs(bound) < _HIGHEST else None
            for bound in (low, high)
        ]
        node.attributes.pop("min", None)
        node.attributes.pop("max", None)
        node.set_inputs([x, *bounds])

    def downgrade_11(node: Node, build: Builder) -> None:
        x, *bounds = node.inputs
        for name, value in zip(("min", "max"), bounds, strict=False):
            if value is not None:
                constant = constant_value(value)
                if constant is None:
                    raise ConversionError(f"before opset 11, '{name}' must be a constant")
                node.set_attribute(name, float(constant.reshape(-1)[0]))
        node.set_inputs([x])
