# mypy: disable-error-code="misc, no-any-return"
"""Shapes as values, and the same elements in another shape."""

import math

import numpy as np

from sardonyx import dims
from sardonyx.dtypes import DataType
from sardonyx.errors import ConversionError, EvaluationError, InferenceError
from sardonyx.graph import Node, Value
from sardonyx.ops.build import Builder
from sardonyx.ops.fact import Fact, Sizes, axis_of, sizes_text, tensor, unknown
from sardonyx.ops.operator import Operator
from sardonyx.ops.parameters import count_from_front, to_attribute, to_input
from sardonyx.ops.precision import Array
from sardonyx.ops.symbolic import settled


class Identity(Operator):
    """The input itself: a tensor, a sequence or an optional."""

    signatures = (
        "1(input: T) -> output: T; T: all15",
        "13(input: T) -> output: T; T: all",
        "14(input: V) -> output: V; V: all seq(all15)",
        "16(input: V) -> output: V; V: all seq(all15) optional(all15) optional(seq(all15))",
        "19(input: V) -> output: V; V: all float8s seq(all15) optional(all15) optional(seq(all15))",
        "21(input: V) -> output: V; V: all float8s int4s seq(all15) optional(all15) "
        "optional(seq(all15))",
        "23(input: V) -> output: V; V: all float8s int4s float4e2m1 seq(all15) optional(all15) "
        "optional(seq(all15))",
        "24(input: V) -> output: V; V: all float8s int4s float4e2m1 float8e8m0 seq(all15) "
        "optional(all15) optional(seq(all15))",
        "25(input: V) -> output: V; V: all float8s int4s int2s float4e2m1 float8e8m0 seq(all15) "
        "optional(all15) optional(seq(all15))",
    )

    def infer(x: Fact) -> Fact:
        return x

    def reference(x: Array) -> Array:
        return x


class Shape(Operator):
    """The sizes of a tensor's dimensions, or of a slice of them."""

    signatures = (
        "1(data: T) -> shape: T1; T: all15; T1: int64",
        "13(data: T) -> shape: T1; T: all; T1: int64",
        "15(data: T, end?: int, start: int = 0) -> shape: T1; T: all; T1: int64",
        "19(data: T, end?: int, start: int = 0) -> shape: T1; T: all float8s; T1: int64",
        "21(data: T, end?: int, start: int = 0) -> shape: T1; T: all float8s int4s; T1: int64",
        "23(data: T, end?: int, start: int = 0) -> shape: T1; T: all float8s int4s float4e2m1; "
        "T1: int64",
        "24(data: T, end?: int, start: int = 0) -> shape: T1; T: all float8s int4s float4e2m1 "
        "float8e8m0; T1: int64",
        "25(data: T, end?: int, start: int = 0) -> shape: T1; T: all float8s int4s int2s "
        "float4e2m1 float8e8m0; T1: int64",
    )

    def infer(x: Fact, start: int, end: int | None) -> Fact:
        if x.shape is None:
            return tensor(DataType.INT64, (None,))
        sizes = x.shape[start:end]
        known = settled(sizes, DataType.INT64)
        return tensor(DataType.INT64, (len(sizes),)).with_value(known)

    def reference(x: Array, start: int, end: int | None) -> Array:
        return np.array(x.shape[start:end], np.int64)

    def downgrade_15(node: Node, build: Builder) -> Value | None:
        start, end = node.attribute("start", 0), node.attribute("end")
        node.attributes.clear()
        if start == 0 and end is None:
            return None
        stop = np.iinfo(np.int64).max if end is None else end
        return build.Slice(build.Shape(node.inputs[0]), [start], [stop])


class Size(Operator):
    """The number of a tensor's elements."""

    signatures = (
        "1(data: T) -> size: T1; T: all15; T1: int64",
        "13(data: T) -> size: T1; T: all; T1: int64",
        "19(data: T) -> size: T1; T: all float8s; T1: int64",
        "21(data: T) -> size: T1; T: all float8s int4s; T1: int64",
        "23(data: T) -> size: T1; T: all float8s int4s float4e2m1; T1: int64",
        "24(data: T) -> size: T1; T: all float8s int4s float4e2m1 float8e8m0; T1: int64",
        "25(data: T) -> size: T1; T: all float8s int4s int2s float4e2m1 float8e8m0; T1: int64",
    )

    def infer(x: Fact) -> Fact:
        result = tensor(DataType.INT64, ())
        if x.shape is None or None in x.shape:
            return result
        return result.with_value(settled(_count(x.shape), DataType.INT64))

    def reference(x: Array) -> Array:
        return np.array(x.size, np.int64)


def _count(sizes: Sizes) -> dims.Size | None:
    """How many elements a shape has; None where a size is not known."""
    known = [size for size in sizes if size is not None]
    return dims.product(known) if len(known) == len(sizes) else None


class Reshape(Operator):
    """The same elements in another shape; 0 keeps a dimension, -1 takes what is left."""

    signatures = (
        "1(data: T, consumed_inputs?: ints, shape?: ints) -> reshaped: T; T: floats3",
        "5(data: T, shape: tensor(int64)) -> reshaped: T; T: all15",
        "13(data: T, shape: tensor(int64)) -> reshaped: T; T: all",
        "14(data: T, shape: tensor(int64), allowzero: int = 0) -> reshaped: T; T: all",
        "19(data: T, shape: tensor(int64), allowzero: int = 0) -> reshaped: T; T: all float8s",
        "21(data: T, shape: tensor(int64), allowzero: int = 0) -> reshaped: T; T: all float8s "
        "int4s",
        "23(data: T, shape: tensor(int64), allowzero: int = 0) -> reshaped: T; T: all float8s "
        "int4s float4e2m1",
        "24(data: T, shape: tensor(int64), allowzero: int = 0) -> reshaped: T; T: all float8s "
        "int4s float4e2m1 float8e8m0",
        "25(data: T, shape: tensor(int64), allowzero: int = 0) -> reshaped: T; T: all float8s "
        "int4s int2s float4e2m1 float8e8m0",
    )

    def infer(x: Fact, shape: Fact, allowzero: int) -> Fact:
        wanted = shape.sizes()
        if wanted is None:
            return unknown(None, x.dtype)
        return tensor(x.dtype, _resolve(x.shape, wanted, bool(allowzero)))

    def reference(x: Array, shape: Array, allowzero: int) -> Array:
        return _reshape(x, shape, allowzero)

    def propagate(x: Array, shape: Array, allowzero: int) -> Array | None:
        return None if shape.dtype == object else _reshape(x, shape, allowzero)

    def upgrade_1(node: Node, build: Builder) -> None:
        node.attributes.pop("consumed_inputs", None)
        shape = node.attribute("shape", ())
        node.attributes.pop("shape", None)
        node.set_inputs([node.inputs[0], build.constant(np.array(shape, np.int64))])

    def downgrade_14(node: Node, build: Builder) -> None:
        if node.attribute("allowzero", 0):
            shape = build.known(node.inputs[1])
            if shape is None or 0 in shape:
                raise ConversionError(
                    "its shape may hold a size of zero, which meant to keep a size"
                )
        node.attributes.pop("allowzero", None)

    def downgrade_5(node: Node, build: Builder) -> None:
        to_attribute(node, build, 1, "shape")


def _reshape(x: Array, shape: Array, allowzero: int) -> Array:
    sizes = shape.tolist()
    if not allowzero:
        sizes = [x.shape[axis] if size == 0 else size for axis, size in enumerate(sizes)]
    elif 0 in sizes and -1 in sizes:
        raise EvaluationError(f"in the shape {sizes} -1 can be anything, beside a size of zero")
    return x.reshape(sizes)


def _resolve(data: Sizes | None, wanted: Sizes, allowzero: bool) -> Sizes:
    """The shape that a reshape of `data` to `wanted` has.

    Of a list of which nothing is known a lone size stays open, though only one would fit: it is
    fed, and a run must look at it before anything is said of its result.
    """
    if wanted.count(-1) > 1 or any(isinstance(size, int) and size < -1 for size in wanted):
        raise InferenceError(f"{sizes_text(wanted)} is not a shape to give a tensor")
    if allowzero and 0 in wanted and -1 in wanted:
        raise InferenceError(f"in {sizes_text(wanted)} -1 can be anything, beside a size of zero")
    result: list[dims.Size | None] = [None if size == -1 else size for size in wanted]
    for axis in [] if allowzero else [axis for axis, size in enumerate(wanted) if size == 0]:
        if data is not None and axis >= len(data):
            raise InferenceError(f"{sizes_text(data)} has no dimension {axis} for a 0 to keep")
        result[axis] = None if data is None else data[axis]
    missing = [axis for axis, size in enumerate(result) if size is None]
    if data is None or None in data or len(missing) > 1 or wanted == (None,):
        return tuple(result)
    others = [size for size in result if size is not None]
    if missing:
        result[missing[0]] = _remaining(data, others, wanted)
        return tuple(result)
    total, made = _count(data), dims.product(others)
    excess = None if total is None else total - made
    if isinstance(excess, int) and excess:
        raise InferenceError(f"{sizes_text(data)} has not as many elements as {sizes_text(wanted)}")
    return tuple(result)


def _remaining(data: Sizes, others: list[dims.Size], wanted: Sizes) -> dims.Size | None:
    """The size left for one dimension: all elements divided by those of the other dimensions."""
    above, below = [size for size in data if size is not None], []
    for size in others:
        if size in above and size != 0:
            above.remove(size)
        else:
            below.append(size)
    total, divisor = dims.product(above), dims.product(below)
    if divisor == 0:
        return None
    if isinstance(total, int) and isinstance(divisor, int) and total % divisor:
        raise InferenceError(f"{sizes_text(data)} cannot be given the shape {sizes_text(wanted)}")
    return dims.floor_divide(total, divisor)


class Flatten(Operator):
    """The same elements as a matrix: dimensions before an axis, and those from it on."""

    signatures = (
        "1(input: T, axis: int = 1) -> output: T; T: floats3",
        "9(input: T, axis: int = 1) -> output: T; T: all15",
        "11(input: T, axis: int = 1) -> output: T; T: all15",
        "13(input: T, axis: int = 1) -> output: T; T: all",
        "21(input: T, axis: int = 1) -> output: T; T: all float8s int4s",
        "23(input: T, axis: int = 1) -> output: T; T: all float8s int4s float4e2m1",
        "24(input: T, axis: int = 1) -> output: T; T: all float8s int4s float4e2m1 float8e8m0",
        "25(input: T, axis: int = 1) -> output: T; T: all float8s int4s int2s float4e2m1 "
        "float8e8m0",
    )

    def infer(x: Fact, axis: int) -> Fact:
        if x.shape is None:
            return unknown(2, x.dtype)
        split = _split_at(axis, len(x.shape))
        return tensor(x.dtype, (_count(x.shape[:split]), _count(x.shape[split:])))

    def reference(x: Array, axis: int) -> Array:
        split = _split_at(axis, x.ndim)
        return x.reshape(math.prod(x.shape[:split]), math.prod(x.shape[split:]))

    def downgrade_11(node: Node, build: Builder) -> None:
        count_from_front(node, build)


def _split_at(axis: int, rank: int) -> int:
    if not -rank <= axis <= rank:
        raise InferenceError(f"axis {axis} does not fit rank {rank}")
    return axis + rank if axis < 0 else axis


def known_axes(axes: Fact | None, rank: int) -> list[int] | None:
    """Constant axes counted from 0, without repetition; None where they are not known."""
    constant = None if axes is None else axes.constant
    if constant is None:
        return None
    counted = [axis_of(int(axis), rank) for axis in constant.reshape(-1)]
    if len(set(counted)) < len(counted):
        raise InferenceError(f"axes {constant.tolist()} name a dimension twice")
    return counted


class Squeeze(Operator):
    """The same elements without some dimensions of size 1, or without any such dimension."""

    signatures = (
        "1(data: T, axes?: ints) -> squeezed: T; T: all15",
        "11(data: T, axes?: ints) -> squeezed: T; T: all15",
        "13(data: T, axes?: tensor(int64)) -> squeezed: T; T: all",
        "21(data: T, axes?: tensor(int64)) -> squeezed: T; T: all float8s int4s",
        "23(data: T, axes?: tensor(int64)) -> squeezed: T; T: all float8s int4s float4e2m1",
        "24(data: T, axes?: tensor(int64)) -> squeezed: T; T: all float8s int4s float4e2m1 "
        "float8e8m0",
        "25(data: T, axes?: tensor(int64)) -> squeezed: T; T: all float8s int4s int2s float4e2m1 "
        "float8e8m0",
    )

    def infer(x: Fact, axes: Fact | None = None) -> Fact:
        if x.shape is None:
            return unknown(None, x.dtype)
        if axes is None:
            if not all(isinstance(size, int) for size in x.shape):
                return unknown(None, x.dtype)
            return tensor(x.dtype, [size for size in x.shape if size != 1])
        gone = known_axes(axes, len(x.shape))
        if gone is None:
            count = axes.shape[0] if axes.shape else None
            return unknown(len(x.shape) - count if isinstance(count, int) else None, x.dtype)
        if any(isinstance(x.shape[axis], int) and x.shape[axis] != 1 for axis in gone):
            raise InferenceError(f"dimensions {gone} of {x} are not all of size 1")
        return tensor(x.dtype, [size for axis, size in enumerate(x.shape) if axis not in gone])

    def reference(x: Array, axes: Array | None = None) -> Array:
        return np.squeeze(x, None if axes is None else tuple(axes.reshape(-1).tolist()))

    propagate = reference

    def upgrade_11(node: Node, build: Builder) -> None:
        to_input(node, build, "axes", 1)

    def downgrade_13(node: Node, build: Builder) -> None:
        to_attribute(node, build, 1, "axes")

    def downgrade_11(node: Node, build: Builder) -> None:
        count_from_front(node, build, "axes")


class Unsqueeze(Operator):
    """The same elements with dimensions of size 1 put in."""

    signatures = (
        "1(data: T, axes: ints) -> expanded: T; T: all15",
        "11(data: T, axes: ints) -> expanded: T; T: all15",
        "13(data: T, axes: tensor(int64)) -> expanded: T; T: all",
        "21(data: T, axes: tensor(int64)) -> expanded: T; T: all float8s int4s",
        "23(data: T, axes: tensor(int64)) -> expanded: T; T: all float8s int4s float4e2m1",
        "24(data: T, axes: tensor(int64)) -> expanded: T; T: all float8s int4s float4e2m1 "
        "float8e8m0",
        "25(data: T, axes: tensor(int64)) -> expanded: T; T: all float8s int4s int2s float4e2m1 "
        "float8e8m0",
    )

    def infer(x: Fact, axes: Fact) -> Fact:
        count = axes.constant.size if axes.constant is not None else axes.shape and axes.shape[0]
        if x.shape is None or not isinstance(count, int):
            return unknown(None, x.dtype)
        added = known_axes(axes, len(x.shape) + count)
        if added is None:
            return unknown(len(x.shape) + count, x.dtype)
        sizes = iter(x.shape)
        rank = len(x.shape) + count
        return tensor(x.dtype, [1 if axis in added else next(sizes) for axis in range(rank)])

    def reference(x: Array, axes: Array) -> Array:
        return np.expand_dims(x, tuple(axes.reshape(-1).tolist()))

    propagate = reference

    def upgrade_11(node: Node, build: Builder) -> None:
        to_input(node, build, "axes", 1)

    def downgrade_13(node: Node, build: Builder) -> None:
        to_attribute(node, build, 1, "axes")

    def downgrade_11(node: Node, build: Builder) -> None:
        count_from_front(node, build, "axes", more=len(node.attribute("axes", ())))
