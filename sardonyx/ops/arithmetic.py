"""Arithmetic on two or more tensors that broadcast."""

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.errors import ConversionError
from sardonyx.graph import Node
from sardonyx.ops.build import Builder
from sardonyx.ops.early_opsets import (
    align_second_input,
    forget_consumed_inputs,
    known_shape,
    state_broadcast,
)
from sardonyx.ops.element_type import element_type
from sardonyx.ops.elementwise import Broadcasting, broadcast_fact, rounded
from sardonyx.ops.fact import Fact, broadcast, tensor
from sardonyx.ops.operator import Operator
from sardonyx.ops.precision import Array
from sardonyx.ops.symbolic import (
    exact_quotient,
    follow,
    larger,
    minus,
    plus,
    power,
    quotient,
    rest,
    smaller,
    times,
)

_VERSIONS = (
    "1(A: T, B: T, axis?: int, broadcast: int = 0, consumed_inputs?: ints) -> C: T; T: floats3",
    "6(A: T, B: T, axis?: int, broadcast: int = 0) -> C: T; T: floats3 wide",
    "7(A: T, B: T) -> C: T; T: floats3 wide",
    "13(A: T, B: T) -> C: T; T: floats wide",
    "14(A: T, B: T) -> C: T; T: numeric",
)


class _Arithmetic(Operator):
    """An operator on two numbers, as opset 1 to 6 and later ones know it."""

    upgrade_1 = forget_consumed_inputs
    upgrade_6 = align_second_input
    downgrade_7 = state_broadcast


class Add(_Arithmetic):
    """a + b."""

    signatures = _VERSIONS
    reference = rounded(np.add)

    def infer(a: Fact, b: Fact) -> Fact:
        return follow(broadcast_fact(a, b), rounded(np.add), plus, a, b)


class Sub(_Arithmetic):
    """a - b."""

    signatures = _VERSIONS
    reference = rounded(np.subtract)

    def infer(a: Fact, b: Fact) -> Fact:
        return follow(broadcast_fact(a, b), rounded(np.subtract), minus, a, b)


class Mul(_Arithmetic):
    """a * b."""

    signatures = _VERSIONS
    reference = rounded(np.multiply)

    def infer(a: Fact, b: Fact) -> Fact:
        return follow(broadcast_fact(a, b), rounded(np.multiply), times, a, b)


@rounded
def divide(a: Array, b: Array) -> Array:
    """The quotient; of integers it is rounded toward zero, and 0 where the divisor is.

    >>> divide(np.int32([-7, 7]), np.int32([2, -2])).tolist()
    [-3, -3]
    """
    if a.dtype.kind not in "iu":
        return np.asarray(np.divide(a, b))
    return np.asarray((a - np.fmod(a, b)) // b)


class Div(_Arithmetic):
    """a / b; between integers, rounded toward zero."""

    signatures = _VERSIONS
    reference = divide

    def infer(a: Fact, b: Fact) -> Fact:
        result = broadcast_fact(a, b)
        whole = result.dtype is not None and result.dtype.is_integer
        return follow(result, divide, quotient if whole else exact_quotient, a, b)


class Mod(Operator):
    """The remainder, with the sign of the divisor, or of the dividend with `fmod`."""

    signatures = (
        "10(A: T, B: T, fmod: int = 0) -> C: T; T: numeric3",
        "13(A: T, B: T, fmod: int = 0) -> C: T; T: numeric",
        "28(A: T, B: T, fmod: int = 0) -> C: T; T: numeric",
    )

    def infer(a: Fact, b: Fact, fmod: int) -> Fact:
        compute = rounded(np.fmod if fmod else np.remainder)
        return follow(broadcast_fact(a, b), compute, rest, a, b)

    def reference(a: Array, b: Array, fmod: int) -> Array:
        return rounded(np.fmod if fmod else np.remainder)(a, b)

    def downgrade_28(node: Node, build: Builder) -> Any:
        a, b = node.inputs
        kind = element_type(a) or element_type(b)
        if node.attribute("fmod", 0) or (kind is not None and kind.is_integer):
            return None
        if kind is None:
            raise ConversionError("before opset 28, floats need 'fmod', and the type is not known")
        rest = build.Mod(a, b, fmod=1)
        against = build.Less(build.Mul(build.Sign(rest), build.Sign(b)), np.zeros((), kind.numpy))
        return build.Where(against, build.Add(rest, b), rest)


class Pow(Operator):
    """x to the power y, in the type of x."""

    signatures = (
        "1(X: T, Y: T, axis?: int, broadcast: int = 0) -> Z: T; T: floats3",
        "7(X: T, Y: T) -> Z: T; T: floats3",
        "12(X: T, Y: T1) -> Z: T; T: floats3 int32 int64; T1: numeric3",
        "13(X: T, Y: T1) -> Z: T; T: floats int32 int64; T1: numeric3",
        "15(X: T, Y: T1) -> Z: T; T: floats int32 int64; T1: numeric",
    )
    upgrade_1 = align_second_input
    downgrade_7 = state_broadcast

    def infer(x: Fact, y: Fact) -> Fact:
        return follow(tensor(x.dtype, broadcast(x.shape, y.shape)), _power, power, x, y)

    def reference(x: Array, y: Array) -> Array:
        return _power(x, y)

    def downgrade_12(node: Node, build: Builder) -> Any:
        x, y = node.inputs
        base, exponent = element_type(x), element_type(y)
        if base is not None and base.is_integer:
            wide = [build.Cast(item, to=int(DataType.DOUBLE)) for item in (x, y)]
            return build.Cast(build.Pow(*wide), to=int(base))
        if base is not None and base != exponent:
            node.set_inputs([x, build.Cast(y, to=int(base))])
        return None


def _power(x: Array, y: Array) -> Array:
    if x.dtype.kind in "iu" and y.dtype.kind in "iu":
        return _integer_power(x, y)
    same = x.dtype == y.dtype and x.dtype.kind not in "iu"
    if same:
        return rounded(np.power)(x, y)
    if y.dtype.kind in "iu":
        # Above 2**53 a whole number as a float is even, whatever it was.
        size = np.power(np.abs(x.astype(np.float64)), y.astype(np.float64))
        turned = np.signbit(x.astype(np.float64)) & (y % 2 == 1)
        return np.asarray(np.where(turned, -size, size)).astype(x.dtype)
    return np.asarray(np.power(x.astype(np.float64), y.astype(np.float64))).astype(x.dtype)


def _integer_power(x: Array, y: Array) -> Array:
    """Exact modulo 2**64; a negative power is 0 except for bases of 1 and -1."""
    result = np.power(x.astype(np.uint64), y.astype(np.uint64)).astype(x.dtype)
    odd = np.where(y % 2 == 1, x, 1)
    inverse = np.where(np.abs(x) == 1, odd, 0)
    return np.asarray(np.where(y < 0, inverse, result)).astype(x.dtype, copy=False)


_VARIADIC = (
    "1(data_0+: T, consumed_inputs?: ints) -> {0}: T; T: floats3",
    "6(data_0+: T) -> {0}: T; T: floats3",
    "8(data_0+: T) -> {0}: T; T: floats3",
    "12(data_0+: T) -> {0}: T; T: numeric3",
    "13(data_0+: T) -> {0}: T; T: numeric",
)
_VARIADIC_FLOATS = (*_VARIADIC[:3], "13(data_0+: T) -> {0}: T; T: floats")


def _joined(join: Callable[[Array, Array], Array]) -> Callable[..., Array]:
    """A reference for any number of inputs from one for two."""

    @rounded
    def joined(*arrays: Array) -> Array:
        return reduce(join, arrays)

    return joined


def _chain(step: Callable[..., Any]) -> Callable[..., Any]:
    def chain(*items: Any) -> Any:
        return reduce(lambda left, right: None if left is None else step(left, right), items)

    return chain


def _require_one_shape(node: Node, build: Builder) -> None:
    """Before opset 8, inputs did not broadcast."""
    shapes = {known_shape(value) for value in node.inputs}
    if len(node.inputs) > 1 and (
        len(shapes) > 1 or any(shape is None or None in shape for shape in shapes)
    ):
        raise ConversionError("before opset 8, the inputs must be known to have one shape")


class _Variadic(Broadcasting):
    """Any number of inputs."""

    upgrade_1 = forget_consumed_inputs
    downgrade_8 = _require_one_shape


class Max(_Variadic):
    """The largest of the inputs, element by element; NaN where one is NaN."""

    signatures = tuple(line.format("max") for line in _VARIADIC)
    reference = _joined(np.maximum)

    def infer(*facts: Fact) -> Fact:
        return follow(broadcast_fact(*facts), _joined(np.maximum), _chain(larger), *facts)


class Min(_Variadic):
    """The smallest of the inputs, element by element; NaN where one is NaN."""

    signatures = tuple(line.format("min") for line in _VARIADIC)
    reference = _joined(np.minimum)

    def infer(*facts: Fact) -> Fact:
        return follow(broadcast_fact(*facts), _joined(np.minimum), _chain(smaller), *facts)


class Sum(_Variadic):
    """The sum of the inputs, element by element."""

    signatures = tuple(line.format("sum") for line in _VARIADIC_FLOATS)
    reference = _joined(np.add)


class Mean(_Variadic):
    """The mean of the inputs, element by element."""

    signatures = tuple(line.format("mean") for line in _VARIADIC_FLOATS)

    @rounded
    def reference(*arrays: Array) -> Array:
        return np.asarray(reduce(np.add, arrays) / len(arrays))
