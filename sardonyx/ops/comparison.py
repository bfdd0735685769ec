"""Comparisons, and logic on their results."""

from typing import Any

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.graph import Node, Value
from sardonyx.ops.build import Builder
from sardonyx.ops.early_opsets import align_second_input, state_broadcast
from sardonyx.ops.element_type import element_type
from sardonyx.ops.elementwise import one_type
from sardonyx.ops.fact import Fact, broadcast, tensor
from sardonyx.ops.operator import Operator
from sardonyx.ops.precision import Array, widen
from sardonyx.ops.symbolic import Step, equal, follow, less

_LOGIC = (
    "1(A: T, B: T, axis?: int, broadcast: int = 0) -> C: T1; T: bool; T1: bool",
    "7(A: T, B: T) -> C: T1; T: bool; T1: bool",
)
_ORDER = (
    "1(A: T, B: T, axis?: int, broadcast: int = 0) -> C: T1; T: floats3; T1: bool",
    "7(A: T, B: T) -> C: T1; T: floats3; T1: bool",
    "9(A: T, B: T) -> C: T1; T: numeric3; T1: bool",
    "13(A: T, B: T) -> C: T1; T: numeric; T1: bool",
)
_ORDER_OR_EQUAL = (
    "12(A: T, B: T) -> C: T1; T: numeric3; T1: bool",
    "16(A: T, B: T) -> C: T1; T: numeric; T1: bool",
)


class _Relation(Operator):
    """Two inputs of one type that broadcast to truth values."""

    upgrade_1 = align_second_input
    downgrade_7 = state_broadcast


def _truth(a: Fact, b: Fact, compute: Step, step: Step | None) -> Fact:
    one_type(a, b)
    result = tensor(DataType.BOOL, broadcast(a.shape, b.shape))
    if DataType.STRING in (a.dtype, b.dtype):
        return result
    return follow(result, compute, step, a, b)


class And(_Relation):
    """True where both are."""

    signatures = _LOGIC

    def infer(a: Fact, b: Fact) -> Fact:
        return _truth(a, b, np.logical_and, lambda x, y: x and y)

    def reference(a: Array, b: Array) -> Array:
        return np.asarray(np.logical_and(a, b))


class Or(_Relation):
    """True where one is, or both are."""

    signatures = _LOGIC

    def infer(a: Fact, b: Fact) -> Fact:
        return _truth(a, b, np.logical_or, lambda x, y: x or y)

    def reference(a: Array, b: Array) -> Array:
        return np.asarray(np.logical_or(a, b))


class Xor(_Relation):
    """True where exactly one is."""

    signatures = _LOGIC

    def infer(a: Fact, b: Fact) -> Fact:
        return _truth(a, b, np.logical_xor, lambda x, y: x != y)

    def reference(a: Array, b: Array) -> Array:
        return np.asarray(np.logical_xor(a, b))


class Equal(_Relation):
    """True where both are the same; NaN is not even itself."""

    signatures = (
        "1(A: T, B: T, axis?: int, broadcast: int = 0) -> C: T1; T: bool int32 int64; T1: bool",
        "7(A: T, B: T) -> C: T1; T: bool int32 int64; T1: bool",
        "11(A: T, B: T) -> C: T1; T: numeric3 bool; T1: bool",
        "13(A: T, B: T) -> C: T1; T: numeric bool; T1: bool",
        "19(A: T, B: T) -> C: T1; T: numeric bool string; T1: bool",
    )

    def infer(a: Fact, b: Fact) -> Fact:
        return _truth(a, b, np.equal, equal)

    def reference(a: Array, b: Array) -> Array:
        return np.asarray(a == b).astype(np.bool_, copy=False)

    def downgrade_19(node: Node, build: Builder) -> None:
        if element_type(node.inputs[0]) == DataType.STRING:
            node.set_inputs(_number_texts(build, *node.inputs))


def _number_texts(build: Builder, a: Any, b: Any) -> list[Value]:
    """Whole numbers in the place of texts, equal where those are."""
    flat = build.Concat(build.Reshape(a, [-1]), build.Reshape(b, [-1]), axis=0)
    _, _, numbers, _ = build.Unique(flat, outputs=4)
    size, rest = build.Reshape(build.Size(a), [1]), [np.iinfo(np.int64).max]
    first, second = build.Slice(numbers, [0], size), build.Slice(numbers, size, rest)
    return [build.Reshape(first, build.Shape(a)), build.Reshape(second, build.Shape(b))]


class Greater(_Relation):
    """True where a > b."""

    signatures = _ORDER

    def infer(a: Fact, b: Fact) -> Fact:
        return _truth(a, b, np.greater, lambda x, y: less(y, x))

    def reference(a: Array, b: Array) -> Array:
        return np.asarray(np.greater(widen(a), widen(b)))


class Less(_Relation):
    """True where a < b."""

    signatures = _ORDER

    def infer(a: Fact, b: Fact) -> Fact:
        return _truth(a, b, np.less, less)

    def reference(a: Array, b: Array) -> Array:
        return np.asarray(np.less(widen(a), widen(b)))


class GreaterOrEqual(_Relation):
    """True where a >= b."""

    signatures = _ORDER_OR_EQUAL

    def infer(a: Fact, b: Fact) -> Fact:
        return _truth(a, b, np.greater_equal, lambda x, y: _not(less(x, y)))

    def reference(a: Array, b: Array) -> Array:
        return np.asarray(np.greater_equal(widen(a), widen(b)))

    def function(build: Builder, a: Value, b: Value) -> Any:
        return build.Or(build.Greater(a, b), build.Equal(a, b))


class LessOrEqual(_Relation):
    """True where a <= b."""

    signatures = _ORDER_OR_EQUAL

    def infer(a: Fact, b: Fact) -> Fact:
        return _truth(a, b, np.less_equal, lambda x, y: _not(less(y, x)))

    def reference(a: Array, b: Array) -> Array:
        return np.asarray(np.less_equal(widen(a), widen(b)))

    def function(build: Builder, a: Value, b: Value) -> Any:
        return build.Or(build.Less(a, b), build.Equal(a, b))


def _not(truth: bool | None) -> bool | None:
    return None if truth is None else not truth
