# mypy: disable-error-code="misc, no-any-return"
"""Sequences: lists of tensors, which may differ in shape."""

from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np

from sardonyx.dims import HIDDEN, Size, remainder
from sardonyx.dtypes import DataType, data_type
from sardonyx.errors import ConversionError, EvaluationError, InferenceError
from sardonyx.graph import Graph, OptionalType, SequenceType, TensorType, Value
from sardonyx.ops.build import Builder
from sardonyx.ops.catalog import canonical_domain, standard
from sardonyx.ops.element_type import element_type
from sardonyx.ops.evaluate import Context
from sardonyx.ops.fact import Fact, axis_of, from_type, join, tensor, to_type, unknown
from sardonyx.ops.infer import InferContext
from sardonyx.ops.operator import Operator, as_outputs
from sardonyx.ops.precision import Array


def sequence_of(*elements: Fact) -> Fact:
    """The fact of a sequence that holds such elements."""
    return Fact(SequenceType(to_type(reduce(join, elements), HIDDEN) if elements else None))


def element_of(sequence: Fact) -> Fact:
    """What is known of each element of a sequence."""
    held = sequence.type
    if isinstance(held, OptionalType):
        held = held.element
    if isinstance(held, SequenceType):
        return from_type(held.element)
    if held is None and sequence.dtype is None and sequence.shape is None:
        return Fact()
    raise InferenceError(f"a sequence is needed, not {sequence}")


def _place(position: Array | None, default: int, lowest: int, highest: int) -> int:
    place = default if position is None else int(position.reshape(-1)[0])
    if not lowest <= place <= highest:
        raise EvaluationError(f"position {place} is not between {lowest} and {highest}")
    return place


class SequenceEmpty(Operator):
    """A sequence without elements."""

    signatures = ("11(dtype?: int) -> output: S; S: seq(all15)",)

    def infer(dtype: int | None) -> Fact:
        return Fact(SequenceType(TensorType(DataType.FLOAT if dtype is None else data_type(dtype))))

    def reference(dtype: int | None) -> list[Array]:
        return []


class SequenceConstruct(Operator):
    """A sequence of the inputs."""

    signatures = ("11(inputs+: T) -> output_sequence: S; T: all15; S: seq(all15)",)

    def infer(*inputs: Fact) -> Fact:
        return sequence_of(*inputs)

    def reference(*inputs: Array) -> list[Array]:
        return list(inputs)


class SequenceAt(Operator):
    """One element of a sequence; negative positions count from the end."""

    signatures = (
        "11(input_sequence: S, position: I) -> tensor: T; S: seq(all15); T: all15; I: int32 int64",
    )

    def infer(sequence: Fact, position: Fact) -> Fact:
        return element_of(sequence)

    def reference(sequence: list[Array], position: Array) -> Array:
        return sequence[_place(position, 0, -len(sequence), len(sequence) - 1)]


class SequenceErase(Operator):
    """A sequence without one of its elements, the last unless a position is given."""

    signatures = (
        "11(input_sequence: S, position?: I) -> output_sequence: S; S: seq(all15); I: int32 int64",
    )

    def infer(sequence: Fact, position: Fact | None = None) -> Fact:
        return sequence_of(element_of(sequence))

    def reference(sequence: list[Array], position: Array | None = None) -> list[Array]:
        place = _place(position, -1, -len(sequence), len(sequence) - 1)
        return [item for index, item in enumerate(sequence) if index != place % len(sequence)]


class SequenceInsert(Operator):
    """A sequence with one more element, before a position or at the end."""

    signatures = (
        "11(input_sequence: S, tensor: T, position?: I) -> output_sequence: S; T: all15; S: "
        "seq(all15); I: int32 int64",
    )

    def infer(sequence: Fact, item: Fact, position: Fact | None = None) -> Fact:
        element = element_of(sequence)
        if element.dtype and item.dtype and element.dtype != item.dtype:
            raise InferenceError(f"{item} does not go into a sequence of {element}")
        return sequence_of(tensor(element.dtype or item.dtype, element.shape), item)

    def reference(sequence: list[Array], item: Array, position: Array | None = None) -> list[Array]:
        result = list(sequence)
        result.insert(_place(position, len(result), -len(result), len(result)), item)
        return result


class SequenceLength(Operator):
    """The number of a sequence's elements."""

    signatures = ("11(input_sequence: S) -> length: I; S: seq(all15); I: int64",)

    def infer(sequence: Fact) -> Fact:
        return tensor(DataType.INT64, ())

    def reference(sequence: list[Array]) -> Array:
        return np.array(len(sequence), np.int64)


class SplitToSequence(Operator):
    """A tensor cut along a dimension into a sequence of equal parts, given parts, or slices."""

    signatures = (
        "11(input: T, split?: I, axis: int = 0, keepdims: int = 1) -> output_sequence: S; T: "
        "all15; I: int32 int64; S: seq(all15)",
        "24(input: T, split?: I, axis: int = 0, keepdims: int = 1) -> output_sequence: S; T: all; "
        "I: int32 int64; S: seq(all)",
    )

    def infer(x: Fact, split: Fact | None = None, *, axis: int, keepdims: int) -> Fact:
        if x.shape is None:
            return sequence_of(tensor(x.dtype, None))
        place = axis_of(axis, len(x.shape))
        before, behind = x.shape[:place], x.shape[place + 1 :]
        if split is None and not keepdims:
            return sequence_of(tensor(x.dtype, before + behind))
        size: Size | None = 1 if split is None else None
        known = None if split is None else split.constant
        if known is not None and known.size and known.min() == known.max():
            part, whole = int(known.reshape(-1)[0]), x.shape[place]
            even = known.ndim == 1 or (whole is not None and remainder(whole, part) == 0)
            size = part if even else None
        return sequence_of(tensor(x.dtype, (*before, size, *behind)))

    def reference(x: Array, split: Array | None = None, *, axis: int, keepdims: int) -> list[Array]:
        size = x.shape[axis]
        if split is None:
            if not keepdims:
                return [np.take(x, index, axis) for index in range(size)]
            bounds = list(range(size + 1))
        elif split.ndim == 0:
            if split <= 0:
                raise EvaluationError(f"parts of {split} elements cannot be made")
            bounds = [*range(0, size, int(split)), size]
        else:
            bounds = [0, *np.cumsum(split).tolist()]
            if bounds[-1] != size or np.any(split < 0):
                raise EvaluationError(f"parts of {split.tolist()} do not make up {size}")
        return [np.take(x, np.arange(start, end), axis) for start, end in pairwise(bounds)]


class ConcatFromSequence(Operator):
    """The elements of a sequence joined along a dimension, or stacked along a new one."""

    signatures = (
        "11(input_sequence: S, axis: int, new_axis: int = 0) -> concat_result: T; S: seq(all15); "
        "T: all15",
    )

    def infer(sequence: Fact, axis: int, new_axis: int) -> Fact:
        element = element_of(sequence)
        if element.shape is None:
            return unknown(None, element.dtype)
        shape: list[Size | None] = list(element.shape)
        place = axis_of(axis, len(shape) + bool(new_axis))
        shape[place : place + (not new_axis)] = [None]
        return tensor(element.dtype, shape)

    def reference(sequence: list[Array], axis: int, new_axis: int) -> Array:
        if not sequence:
            raise EvaluationError("an empty sequence cannot be joined")
        return np.stack(sequence, axis) if new_axis else np.concatenate(sequence, axis)


class SequenceMap(Operator):
    """A graph run for each element of a sequence; every output becomes a sequence.

    Further sequences are walked in step with the first; further tensors are given to every run.
    """

    signatures = (
        "17(input_sequence: S, additional_inputs*: each V, body: graph) -> out_sequence+: each S; "
        "S: seq(all15); V: all15 seq(all15)",
    )

    def infer(sequence: Fact, *more: Fact, body: Graph, context: InferContext) -> tuple[Fact, ...]:
        given = [element_of(sequence)]
        given += [
            element_of(fact) if isinstance(fact.type, SequenceType) else fact for fact in more
        ]
        results = context.infer(body, [tensor(fact.dtype, fact.shape) for fact in given])
        return tuple(sequence_of(result) for result in results)

    def reference(
        sequence: list[Array], *more: Any, body: Graph, context: Context
    ) -> tuple[list[Array], ...]:
        outputs: list[list[Array]] = [[] for _ in body.outputs]
        for index, item in enumerate(sequence):
            given = [other[index] if isinstance(other, list) else other for other in more]
            for items, result in zip(outputs, context.run(body, [item, *given]), strict=True):
                items.append(result)
        return tuple(outputs)

    def function(build: Builder, sequence: Value, *more: Value, body: Graph) -> tuple[Value, ...]:
        """A loop that takes elements out and inserts results at the ends of new sequences."""
        kinds = [element_type(output) for output in body.outputs]
        if None in kinds:
            raise ConversionError("the types of the body's outputs must be declared")
        empty = [build.SequenceEmpty(dtype=int(kind)) for kind in kinds if kind is not None]
        inner = build.inside("each")
        index = inner.input("index", TensorType(DataType.INT64, ()))
        going = inner.input("going", TensorType(DataType.BOOL, ()))
        states = [inner.input("results", SequenceType(TensorType(kind, None))) for kind in kinds]
        given = [inner.SequenceAt(sequence, index)]
        given += [inner.SequenceAt(item, index) if _is_sequence(item) else item for item in more]
        results = inner.inline(body, given)
        longer = [inner.SequenceInsert(*pair) for pair in zip(states, results, strict=True)]
        inner.graph.outputs.extend([inner.Identity(going), *longer])
        count = build.SequenceLength(sequence)
        made = build.Loop(count, np.array(True), *empty, body=inner.graph, outputs=len(empty))
        return as_outputs(made)


def _is_sequence(value: Value) -> bool:
    """Whether a value is a sequence: declared as one, or made by an operator that makes them."""
    if value.type is not None or value.producer is None:
        return isinstance(value.type, SequenceType)
    maker = value.producer
    operator = standard().get((canonical_domain(maker.domain), maker.op_type))
    formal = operator.newest().formal_output(value.index) if operator is not None else None
    if operator is None or formal is None:
        return False
    if maker.op_type == "Identity" and maker.inputs[0] is not None:
        return _is_sequence(maker.inputs[0])
    return all(kind.startswith("seq(") for kind in operator.newest().types(formal))
