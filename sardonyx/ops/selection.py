# mypy: disable-error-code="misc, no-any-return"
"""Elements chosen by conditions, by their order, or by being different."""

import math
from typing import Any

import numpy as np

from sardonyx.dims import Size, product
from sardonyx.dtypes import DataType
from sardonyx.errors import EvaluationError, InferenceError
from sardonyx.graph import Node
from sardonyx.ops.allocate import count_up
from sardonyx.ops.build import Builder
from sardonyx.ops.fact import Fact, axis_of, broadcast, tensor, unknown
from sardonyx.ops.operator import Operator
from sardonyx.ops.parameters import count_from_front, to_attribute, to_input
from sardonyx.ops.precision import Array, widen

_LARGEST_INDEX = 1 << 62
"""What stands for indices that are no numbers, or larger: nothing has so many elements."""


class Where(Operator):
    """Elements of one tensor where a condition holds, of another where not."""

    signatures = (
        "9(condition: B, X: T, Y: T) -> output: T; B: bool; T: all15",
        "16(condition: B, X: T, Y: T) -> output: T; B: bool; T: all",
    )

    def infer(condition: Fact, x: Fact, y: Fact) -> Fact:
        return tensor(x.dtype or y.dtype, broadcast(condition.shape, x.shape, y.shape))

    def reference(condition: Array, x: Array, y: Array) -> Array:
        return np.where(condition, x, y)

    def propagate(condition: Array, x: Array, y: Array) -> Array:
        if object not in (condition.dtype, x.dtype, y.dtype):
            return np.where(condition, x, y)
        return np.asarray(np.frompyfunc(_either, 3, 1)(condition, x, y), object)


def _either(condition: Any, x: Any, y: Any) -> Any:
    if condition is None:
        return x if x is not None and y is not None and x == y else None
    return x if condition else y


class Compress(Operator):
    """Slices along a dimension, or single elements, for which a condition holds."""

    signatures = (
        "9(input: T, condition: T1, axis?: int) -> output: T; T: all15; T1: bool",
        "11(input: T, condition: T1, axis?: int) -> output: T; T: all15; T1: bool",
        "28(input: T, condition: T1, axis?: int) -> output: T; T: all; T1: bool",
    )

    def infer(x: Fact, condition: Fact, axis: int | None) -> Fact:
        known = condition.constant
        count = None if known is None else int(np.count_nonzero(known))
        if axis is None:
            return tensor(x.dtype, (count,))
        if x.shape is None:
            return unknown(None, x.dtype)
        place = axis_of(axis, len(x.shape))
        return tensor(x.dtype, (*x.shape[:place], count, *x.shape[place + 1 :]))

    def reference(x: Array, condition: Array, axis: int | None) -> Array:
        flat = x.reshape(-1) if axis is None else x
        return np.take(flat, np.flatnonzero(condition), 0 if axis is None else axis)

    def downgrade_11(node: Node, build: Builder) -> None:
        count_from_front(node, build)


class NonZero(Operator):
    """The coordinates of elements that are not zero, one row for each dimension."""

    signatures = (
        "9(X: T) -> Y: tensor(int64); T: all15",
        "13(X: T) -> Y: tensor(int64); T: all",
    )

    def infer(x: Fact) -> Fact:
        known = x.constant
        count = None if known is None else int(np.count_nonzero(known))
        return tensor(DataType.INT64, (x.rank, count))

    def reference(x: Array) -> Array:
        if x.ndim == 0:
            return np.zeros((0, int(bool(x))), np.int64)
        return np.array(np.nonzero(x), np.int64).reshape(x.ndim, -1)


class OneHot(Operator):
    """For each index a vector of one value, with another value where the index points."""

    signatures = (
        "9(indices: T1, depth: T2, values: T3, axis: int = -1) -> output: T3; T1: numeric3; T2: "
        "numeric3; T3: all15",
        "11(indices: T1, depth: T2, values: T3, axis: int = -1) -> output: T3; T1: numeric3; T2: "
        "numeric3; T3: all15",
        "28(indices: T1, depth: T2, values: T3, axis: int = -1) -> output: T3; T1: numeric3; T2: "
        "numeric3; T3: all",
    )

    def infer(indices: Fact, depth: Fact, values: Fact, axis: int) -> Fact:
        if indices.shape is None:
            return unknown(None, values.dtype)
        place = axis_of(axis, len(indices.shape) + 1)
        size: Size | None = None
        if depth.value is not None and depth.value.size == 1:
            size = depth.sizes()[0]  # type: ignore[index]
        return tensor(values.dtype, (*indices.shape[:place], size, *indices.shape[place:]))

    def reference(indices: Array, depth: Array, values: Array, axis: int) -> Array:
        size = int(depth.reshape(-1)[0])
        whole = indices.astype(np.int64)
        if indices.dtype.kind not in "iu":
            whole = np.where(np.abs(widen(indices)) < _LARGEST_INDEX, whole, _LARGEST_INDEX)
        place = axis_of(axis, indices.ndim + 1)
        hot = np.expand_dims(np.where(whole < 0, whole + size, whole), place)
        steps = count_up(size).reshape((-1,) + (1,) * (indices.ndim - place))
        return np.where(hot == steps, values[1:2], values[0:1])

    def upgrade_9(node: Node, build: Builder) -> None:
        """Negative indices pointed nowhere; now they count from the end."""
        _map_negative(node, build, lambda index, depth: depth)

    def downgrade_11(node: Node, build: Builder) -> None:
        _map_negative(node, build, build.Add)
        if node.attribute("axis", -1) != -1:
            count_from_front(node, build, more=1)


def _map_negative(node: Node, build: Builder, change: Any) -> None:
    """Give negative indices of a one-hot tensor a meaning by another number."""
    indices, depth, values = node.inputs
    index = build.Cast(indices, to=int(DataType.INT64))
    size = build.Reshape(build.Cast(depth, to=int(DataType.INT64)), [1])
    negative = build.Less(index, 0)
    node.set_inputs([build.Where(negative, change(index, size), index), depth, values])


class TopK(Operator):
    """The largest or smallest elements along a dimension, and where they stand."""

    signatures = (
        "1(X: T, axis: int = -1, k: int) -> (Values: T, Indices: I); T: floats3; I: int64",
        "10(X: T, K: tensor(int64), axis: int = -1) -> (Values: T, Indices: I); T: floats3; I: "
        "int64",
        "11(X: T, K: tensor(int64), axis: int = -1, largest: int = 1, sorted: int = 1) -> "
        "(Values: T, Indices: I); T: numeric3; I: int64",
        "24(X: T, K: tensor(int64), axis: int = -1, largest: int = 1, sorted: int = 1) -> "
        "(Values: T, Indices: I); T: numeric; I: int64",
    )

    def infer(x: Fact, k: Fact, axis: int, largest: int, sorted: int) -> tuple[Fact, Fact]:
        wanted = k.sizes()
        count = wanted[0] if wanted is not None and len(wanted) == 1 else None
        if x.shape is None:
            return unknown(None, x.dtype), unknown(None, DataType.INT64)
        place = axis_of(axis, len(x.shape))
        size = x.shape[place]
        if isinstance(count, int) and (count < 0 or (isinstance(size, int) and count > size)):
            raise InferenceError(f"{count} elements cannot be taken of {size}")
        shape = (*x.shape[:place], count, *x.shape[place + 1 :])
        return tensor(x.dtype, shape), tensor(DataType.INT64, shape)

    def reference(x: Array, k: Array, axis: int, largest: int, sorted: int) -> tuple[Array, Array]:
        count, size = int(k.reshape(-1)[0]), x.shape[axis]
        if not 0 <= count <= size:
            raise EvaluationError(f"{count} elements cannot be taken of {size}")
        keys = widen(x)
        if largest:
            backward = np.argsort(np.flip(keys, axis), axis, kind="stable")
            order = size - 1 - np.flip(backward, axis)
        else:
            order = np.argsort(keys, axis, kind="stable")
        indices = np.take(order, np.arange(count), axis)
        return np.take_along_axis(x, indices, axis), indices.astype(np.int64)

    def upgrade_1(node: Node, build: Builder) -> None:
        node.set_attribute("k", [node.attribute("k")])
        to_input(node, build, "k", 1)

    def downgrade_10(node: Node, build: Builder) -> None:
        to_attribute(node, build, 1, "k")
        node.set_attribute("k", node.attribute("k")[0])


class Unique(Operator):
    """The different elements or slices, where each stands first, and how often."""

    signatures = (
        "11(X: T, axis?: int, sorted: int = 1) -> (Y: T, indices?: tensor(int64), "
        "inverse_indices?: tensor(int64), counts?: tensor(int64)); T: all15",
        "28(X: T, axis?: int, sorted: int = 1) -> (Y: T, indices?: tensor(int64), "
        "inverse_indices?: tensor(int64), counts?: tensor(int64)); T: all",
    )

    def infer(x: Fact, axis: int | None, sorted: int) -> tuple[Fact, ...]:
        some = tensor(DataType.INT64, (None,))
        if x.shape is None:
            return unknown(1 if axis is None else None, x.dtype), some, some, some
        if axis is None:
            known = [size for size in x.shape if size is not None]
            total = product(known) if len(known) == len(x.shape) else None
            return tensor(x.dtype, (None,)), some, tensor(DataType.INT64, (total,)), some
        place = axis_of(axis, len(x.shape))
        shape = (*x.shape[:place], None, *x.shape[place + 1 :])
        return tensor(x.dtype, shape), some, tensor(DataType.INT64, (x.shape[place],)), some

    def reference(x: Array, axis: int | None, sorted: int) -> tuple[Array, Array, Array, Array]:
        items = x.reshape(-1, 1) if axis is None else _rows(x, axis)
        first, inverse, counts = _distinct(_codes(items))
        if not sorted:
            order = np.argsort(first, kind="stable")
            places = np.argsort(order, kind="stable")
            first, inverse, counts = first[order], places[inverse], counts[order]
        values = x.reshape(-1)[first] if axis is None else np.take(x, first, axis)
        return values, first, inverse, counts


def _rows(x: Array, axis: int) -> Array:
    """What stands at each place of an axis, as a row."""
    width = math.prod(size for place, size in enumerate(x.shape) if place != axis % x.ndim)
    return np.moveaxis(x, axis, 0).reshape(x.shape[axis], width)


def _codes(items: Array) -> Array:
    """Numbers in the order of the elements, equal where those are."""
    _, codes = np.unique(widen(items), return_inverse=True)
    return codes.reshape(items.shape)


def _distinct(rows: Array) -> tuple[Array, Array, Array]:
    """Of rows of numbers: where each different one stands first, which each is, and how often."""
    if rows.shape[1] == 1:
        rows = rows[:, 0]
    _, first, inverse, counts = np.unique(rows, True, True, True, axis=0)
    whole = (first, inverse.reshape(-1), counts)
    return tuple(item.astype(np.int64) for item in whole)  # type: ignore[return-value]
