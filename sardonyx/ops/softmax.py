"""Softmax and its relatives, along one axis."""

from typing import Any

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.errors import ConversionError
from sardonyx.graph import Node, Value
from sardonyx.ops.build import Builder
from sardonyx.ops.early_opsets import known_rank, proven_rank
from sardonyx.ops.element_type import refuse
from sardonyx.ops.elementwise import rounded
from sardonyx.ops.fact import Fact, axis_of, tensor
from sardonyx.ops.operator import Operator
from sardonyx.ops.precision import Array
from sardonyx.ops.reduction import reduce_over

_VERSIONS = (
    "1(input: T, axis: int = 1) -> output: T; T: floats3",
    "11(input: T, axis: int = 1) -> output: T; T: floats3",
    "13(input: T, axis: int = -1) -> output: T; T: floats",
)


def softmax(x: Array, axis: int = -1) -> Array:
    """exp(x - max) / sum along an axis.

    >>> softmax(np.array([0.0, 0.0])).tolist()
    [0.5, 0.5]
    """
    powers = np.exp(x - np.max(x, axis, keepdims=True, initial=-np.inf))
    return np.asarray(powers / np.sum(powers, axis, keepdims=True))


def log_softmax(x: Array, axis: int = -1) -> Array:
    """The logarithm of softmax, without the loss of digits that taking it afterwards has."""
    shifted = x - np.max(x, axis, keepdims=True, initial=-np.inf)
    return np.asarray(shifted - np.log(np.sum(np.exp(shifted), axis, keepdims=True)))


class _AlongAxis(Operator):
    """Before opset 13, all axes from `axis` on were one."""

    def infer(x: Fact, axis: int) -> Fact:
        if x.shape is not None:
            axis_of(axis, len(x.shape))
        return tensor(x.dtype, x.shape)

    def upgrade_11(node: Node, build: Builder) -> Any:
        (x,) = node.inputs
        axis = node.attribute("axis", 1)
        if axis == -1 or ((rank := proven_rank(x)) is not None and axis == rank - 1):
            node.set_attribute("axis", -1)
            return None
        flat = build.node(node.op_type, (build.Flatten(x, axis=axis),), 1, "", {"axis": -1})
        return build.Reshape(flat, build.Shape(x))


def _is_last(x: Value | None, axis: int) -> bool:
    rank = known_rank(x)
    return axis == -1 or (rank is not None and axis in (rank - 1, -1))


def _say_last(node: Node, build: Builder) -> bool:
    """Name the last axis as opsets before 13 do, if it is that one."""
    refuse(node, build, DataType.BFLOAT16)
    last = _is_last(node.inputs[0], node.attribute("axis", -1))
    if last:
        node.set_attribute("axis", -1)
    return last


def _downgrade(node: Node, build: Builder, function: Any) -> Any:
    last = _say_last(node, build)
    return None if last else function(build, node.inputs[0], node.attribute("axis", -1))


class Softmax(_AlongAxis):
    """exp(x - max) / sum, along one axis."""

    signatures = _VERSIONS

    def reference(x: Array, axis: int) -> Array:
        """Rounded to the type after every step, as the function below says it."""
        largest = np.max(x, axis, keepdims=True, initial=-np.inf)
        powers = rounded(np.exp)(rounded(np.subtract)(x, largest))
        total = rounded(lambda wide: np.sum(wide, axis, keepdims=True))(powers)
        return rounded(np.divide)(powers, total)

    def function(build: Builder, x: Value, axis: int) -> Any:
        powers = build.Exp(build.Sub(x, reduce_over(build, "ReduceMax", x, [axis])))
        return build.Div(powers, reduce_over(build, "ReduceSum", powers, [axis]))

    def downgrade_13(node: Node, build: Builder) -> Any:
        return _downgrade(node, build, Softmax.function)


class LogSoftmax(_AlongAxis):
    """x - max - log(sum(exp(x - max))), along one axis."""

    signatures = _VERSIONS
    reference = rounded(log_softmax)

    def function(build: Builder, x: Value, axis: int) -> Any:
        shifted = build.Sub(x, reduce_over(build, "ReduceMax", x, [axis]))
        total = reduce_over(build, "ReduceSum", build.Exp(shifted), [axis])
        return build.Sub(shifted, build.Log(total))

    def downgrade_13(node: Node, build: Builder) -> Any:
        return _downgrade(node, build, LogSoftmax.function)


class Hardmax(_AlongAxis):
    """1 at the first largest element along one axis, 0 elsewhere."""

    signatures = _VERSIONS

    def reference(x: Array, axis: int) -> Array:
        result = np.zeros_like(x)
        if x.size:
            largest = np.expand_dims(np.argmax(x.astype(np.float64), axis), axis)
            np.put_along_axis(result, largest, np.ones((), x.dtype), axis)
        return result

    def downgrade_13(node: Node, build: Builder) -> Any:
        if _say_last(node, build):
            return None
        x, axis = node.inputs[0], node.attribute("axis", -1)
        rank = known_rank(x)
        if rank is None:
            raise ConversionError("before opset 13, the rank must be known to say this axis")
        order = list(range(rank))
        order[axis], order[-1] = order[-1], order[axis]
        turned = build.Hardmax(build.Transpose(x, perm=order), axis=-1)
        return build.Transpose(turned, perm=order)
