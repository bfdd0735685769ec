# mypy: disable-error-code="misc, no-any-return"
"""Tensors put together along a dimension, and taken apart."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from sardonyx.dims import Size, ceil_divide, floor_divide, maximum, minimum, remainder
from sardonyx.dtypes import INTEGERS, DataType
from sardonyx.errors import EvaluationError, InferenceError
from sardonyx.graph import Node
from sardonyx.ops.build import Builder
from sardonyx.ops.evaluate import Context
from sardonyx.ops.fact import LARGEST_VALUE, Fact, Sizes, axis_of, same_size, tensor, unknown
from sardonyx.ops.infer import InferContext
from sardonyx.ops.operator import Operator
from sardonyx.ops.parameters import count_from_front, to_attribute, to_input
from sardonyx.ops.precision import Array
from sardonyx.ops.symbolic import settled


class Concat(Operator):
    """Tensors one after another along a dimension they may differ in."""

    signatures = (
        "1(inputs+: T, axis?: int) -> concat_result: T; T: floats3",
        "4(inputs+: T, axis: int) -> concat_result: T; T: all15",
        "11(inputs+: T, axis: int) -> concat_result: T; T: all15",
        "13(inputs+: T, axis: int) -> concat_result: T; T: all",
    )

    def infer(*inputs: Fact, axis: int) -> Fact:
        dtype = next((fact.dtype for fact in inputs if fact.dtype), None)
        shape = joined_shape([fact.shape for fact in inputs], axis)
        return tensor(dtype, shape).with_value(_joined_value(inputs, axis, dtype, shape))

    def reference(*inputs: Array, axis: int) -> Array:
        return np.concatenate(inputs, axis)

    def upgrade_1(node: Node, build: Builder) -> None:
        node.set_attribute("axis", node.attribute("axis", 1))

    def downgrade_11(node: Node, build: Builder) -> None:
        count_from_front(node, build)


def joined_shape(shapes: Sequence[Sizes | None], axis: int) -> Sizes | None:
    """The shape of tensors put together along an axis; None where no rank is known."""
    known = [shape for shape in shapes if shape is not None]
    if not known:
        return None
    rank = len(known[0])
    if any(len(shape) != rank for shape in known):
        raise InferenceError(f"tensors of ranks {[len(shape) for shape in known]} do not join")
    axis = axis_of(axis, rank)
    result: list[Size | None] = list(known[0])
    for shape in known[1:]:
        for other in range(rank):
            what = f"dimension {other} of tensors that join along {axis} differs"
            result[other] = same_size(result[other], shape[other], what) if other != axis else None
    result[axis] = 0
    for given in shapes:
        size, total = None if given is None else given[axis], result[axis]
        result[axis] = None if size is None or total is None else total + size
    return tuple(result)


def _joined_value(
    inputs: Sequence[Fact], axis: int, dtype: DataType | None, shape: Sizes | None
) -> Array | None:
    """The elements of joined tensors; vectors of sizes may be known in part."""
    values = [fact.value for fact in inputs if fact.value is not None]
    if not values or sum(value.size for value in values) > LARGEST_VALUE:
        return None
    if len(values) == len(inputs):
        return np.concatenate(values, axis)
    if dtype not in INTEGERS or shape is None or len(shape) != 1:
        return None
    pieces = [fact.sizes() for fact in inputs]
    if any(piece is None or len(piece) > LARGEST_VALUE for piece in pieces):
        return None
    return settled([size for piece in pieces for size in piece or ()], DataType.INT64)


class Split(Operator):
    """A tensor cut along a dimension, into equal parts or parts of given sizes."""

    signatures = (
        "1(input: T, split?: T, axis?: int, split?: ints) -> outputs...+: T; T: floats3",
        "2(input: T, axis: int = 0, split?: ints) -> outputs+: T; T: all15",
        "11(input: T, axis: int = 0, split?: ints) -> outputs+: T; T: all15",
        "13(input: T, split?: tensor(int64), axis: int = 0) -> outputs+: T; T: all",
        "18(input: T, split?: tensor(int64), axis: int = 0, num_outputs?: int) -> outputs+: T; T: "
        "all",
    )

    def infer(
        x: Fact, split: Fact | None = None, *, axis: int, num_outputs: int | None,
        context: InferContext,
    ) -> tuple[Fact, ...]:  # fmt: skip
        count = context.outputs
        if x.shape is None:
            return (unknown(None, x.dtype),) * count
        axis = axis_of(axis, len(x.shape))
        sizes = (
            split.sizes()
            if split is not None
            else _equal_parts(x.shape[axis], _part_count(num_outputs, count))
        )
        if sizes is None:
            sizes = (None,) * count
        if len(sizes) != count:
            raise InferenceError(f"{len(sizes)} parts do not fit {count} outputs")
        _check_parts(sizes, x.shape[axis])
        shapes = [(*x.shape[:axis], size, *x.shape[axis + 1 :]) for size in sizes]
        return tuple(tensor(x.dtype, shape) for shape in shapes)

    def reference(
        x: Array,
        split: Array | None = None,
        *,
        axis: int,
        num_outputs: int | None,
        context: Context,
    ) -> tuple[Array, ...]:
        parts = context.outputs if split is not None else _part_count(num_outputs, context.outputs)
        return _split(x, split, axis, parts)

    def propagate(
        x: Array, split: Array | None = None, *, axis: int, num_outputs: int | None,
        context: InferContext,
    ) -> tuple[Array, ...]:  # fmt: skip
        parts = context.outputs if split is not None else _part_count(num_outputs, context.outputs)
        return _split(x, split, axis, parts)

    def upgrade_1(node: Node, build: Builder) -> None:
        if len(node.inputs) > 1:
            to_attribute(node, build, 1, "split")

    def upgrade_11(node: Node, build: Builder) -> None:
        to_input(node, build, "split", 1)

    def upgrade_13(node: Node, build: Builder) -> None:
        if len(node.inputs) < 2 or node.inputs[1] is None:
            node.set_attribute("num_outputs", len(node.outputs))

    def downgrade_18(node: Node, build: Builder) -> None:
        count = node.attribute("num_outputs")
        node.attributes.pop("num_outputs", None)
        if count is None:
            return
        count = _part_count(count, len(node.outputs))
        axis = build.constant(np.array([node.attribute("axis", 0)], np.int64))
        total = build.Gather(build.Shape(node.inputs[0]), axis)
        part = build.Div(build.Add(total, [count - 1]), [count])
        starts = build.Mul(part, list(range(count)))
        sizes = build.Max(build.Min(build.Sub(total, starts), part), [0])
        node.set_inputs([node.inputs[0], sizes])

    def downgrade_13(node: Node, build: Builder) -> None:
        to_attribute(node, build, 1, "split")

    def downgrade_11(node: Node, build: Builder) -> None:
        count_from_front(node, build)


def _part_count(wanted: int | None, outputs: int) -> int:
    """Into how many parts a node with this many outputs cuts; 0 means as many."""
    if wanted and wanted != outputs:
        raise InferenceError(f"{wanted} parts do not fit {outputs} outputs")
    return outputs


def _equal_parts(size: Size | None, count: int) -> Sizes | None:
    """The sizes of equal parts; where they cannot be equal, the last ones are smaller."""
    if size is None:
        return None
    if remainder(size, count) == 0:
        return (floor_divide(size, count),) * count
    part = ceil_divide(size, count)
    if count == 2:
        return (part, size - part)
    return (part, *(maximum(minimum(size - part * i, part), 0) for i in range(1, count)))


def _check_parts(sizes: Sizes, whole: Size | None) -> None:
    known = [size for size in sizes if isinstance(size, int)]
    total = sum(known) if len(known) == len(sizes) else None
    if min(known, default=0) < 0:
        raise InferenceError(f"parts cannot have negative sizes: {list(sizes)}")
    if isinstance(whole, int) and total is not None and total != whole:
        raise InferenceError(f"parts of {list(sizes)} do not make up {whole}")


def _split(x: Array, split: Array | None, axis: int, count: int) -> tuple[Array, ...]:
    parts: Any = split.tolist() if split is not None else _equal_parts(x.shape[axis], count)
    sizes: list[int] = list(parts)
    if sum(sizes) != x.shape[axis] or min(sizes, default=0) < 0:
        raise EvaluationError(f"parts of {sizes} do not make up {x.shape[axis]}")
    return tuple(np.split(x, list(accumulate(sizes))[:-1], axis))
