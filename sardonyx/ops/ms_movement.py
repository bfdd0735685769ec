# mypy: disable-error-code="misc, no-any-return"
"""Operators that move, select or generate elements, as `com.microsoft` had them before ONNX."""

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.errors import InferenceError
from sardonyx.ops.constant import Range as StandardRange
from sardonyx.ops.fact import Fact, axis_of, tensor, unknown
from sardonyx.ops.indexing import GatherND as StandardGatherND
from sardonyx.ops.movement import Trilu as StandardTrilu
from sardonyx.ops.ms_arithmetic import scalar, size_of
from sardonyx.ops.operator import Operator
from sardonyx.ops.padding import Pad as StandardPad
from sardonyx.ops.precision import Array


class Pad(Operator):
    """Elements added around a tensor, or taken off where an amount is negative."""

    domain = "com.microsoft"
    signatures = (
        "1(data: T, pads: tensor(int64), value?: T, mode: string = 'constant') -> output: T;"
        " T: floats3",
    )

    def infer(data: Fact, pads: Fact, value: Fact | None = None, *, mode: str) -> Fact:
        if pads.rank == 2 and pads.shape is not None:
            flat = None if pads.value is None else pads.value.reshape(-1)
            pads = tensor(pads.dtype, pads.shape[1:]).with_value(flat)
        return StandardPad.infer(data, pads, value, mode=mode)

    def reference(data: Array, pads: Array, value: Array | None = None, *, mode: str) -> Array:
        only = None if value is None else value.reshape(())
        return StandardPad.reference(data, pads.reshape(-1), only, mode=mode)


class Unique(Operator):
    """Each element once, in order of appearance; where it stands in the input, and how often."""

    domain = "com.microsoft"
    signatures = ("1(x: T) -> (y: T, idx: tensor(int64), counts: tensor(int64)); T: all15",)

    def infer(x: Fact) -> tuple[Fact, Fact, Fact]:
        if x.rank not in (None, 1):
            raise InferenceError(f"{x} is not a vector")
        place = tensor(DataType.INT64, (size_of(x, 0),))
        return unknown(1, x.dtype), place, unknown(1, DataType.INT64)

    def reference(x: Array) -> tuple[Array, Array, Array]:
        _, first, place, counts = np.unique(
            x, return_index=True, return_inverse=True, return_counts=True, equal_nan=False
        )
        order = np.argsort(first)
        rank = np.argsort(order)
        return x[first[order]], rank[place].astype(np.int64), counts[order].astype(np.int64)


class Range(Operator):
    """Numbers from a start up to, and without, a limit; by ones unless a step is given."""

    domain = "com.microsoft"
    signatures = ("1(start: T, limit: T, delta?: T) -> Y: T; T: double float int16 int32 int64",)

    def infer(start: Fact, limit: Fact, delta: Fact | None = None) -> Fact:
        step = delta or tensor(start.dtype, ()).with_value(np.ones((), np.int64))
        return StandardRange.infer(start, limit, step, stash_type=1)

    def reference(start: Array, limit: Array, delta: Array | None = None) -> Array:
        step = np.ones((), start.dtype) if delta is None else delta
        return StandardRange.reference(start, limit, step, stash_type=1)

    def propagate(start: Array, limit: Array, delta: Array | None = None) -> Array | None:
        step = np.ones((), np.int64) if delta is None else delta
        return StandardRange.propagate(start, limit, step, stash_type=1)


class ExpandDims(Operator):
    """One more axis, of size 1."""

    domain = "com.microsoft"
    signatures = ("1(X: T, axis: tensor(int32)) -> Y: T; T: all15",)

    def infer(x: Fact, axis: Fact) -> Fact:
        if x.shape is None:
            return tensor(x.dtype, None)
        place = axis.constant
        if place is None:
            return unknown(len(x.shape) + 1, x.dtype)
        at = axis_of(int(scalar(place)), len(x.shape) + 1)
        return tensor(x.dtype, (*x.shape[:at], 1, *x.shape[at:]))

    def reference(x: Array, axis: Array) -> Array:
        return np.expand_dims(x, int(scalar(axis)))

    propagate = reference


class Trilu(Operator):
    """The upper or lower triangle of matrices; what lies beyond it becomes zero."""

    domain = "com.microsoft"
    signatures = ("1(X: T, k?: tensor(int64), upper: int = 1) -> Y: T; T: numeric bool",)
    infer = StandardTrilu.infer
    reference = StandardTrilu.reference


class GatherND(Operator):
    """Elements or slices at positions that an index tensor names by several coordinates."""

    domain = "com.microsoft"
    signatures = ("1(data: T, indices: Tind) -> output: T; T: all15; Tind: int32 int64",)

    def infer(data: Fact, indices: Fact) -> Fact:
        return StandardGatherND.infer(data, indices, batch_dims=0)

    def reference(data: Array, indices: Array) -> Array:
        return StandardGatherND.reference(data, indices, batch_dims=0)
