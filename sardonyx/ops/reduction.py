"""Reductions over axes."""

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from sardonyx.dtypes import DataType, from_numpy
from sardonyx.errors import ConversionError
from sardonyx.graph import Attribute, AttributeType, Graph, Node, Value
from sardonyx.ops.arithmetic import divide
from sardonyx.ops.build import Builder
from sardonyx.ops.early_opsets import known_rank
from sardonyx.ops.element_type import constant_value, element_type
from sardonyx.ops.fact import Fact, Sizes, axis_of, tensor, unknown
from sardonyx.ops.operator import Operator
from sardonyx.ops.precision import Array, widen
from sardonyx.ops.symbolic import (
    Step,
    constant_of,
    larger,
    plus,
    reduce_known,
    settled,
    smaller,
    times,
)

_OLD = "(data: T, axes?: ints, keepdims: int = 1) -> reduced: T; T: "
_NEW = (
    "(data: T, axes?: tensor(int64), keepdims: int = 1, noop_with_empty_axes: int = 0)"
    " -> reduced: T; T: "
)
_BEFORE_18 = (f"1{_OLD}floats3 wide", f"11{_OLD}floats3 wide", f"13{_OLD}floats wide")
_VERSIONS = (*_BEFORE_18, f"18{_NEW}floats wide")
_FLOATS_ONLY = (*_VERSIONS, f"28{_NEW}floats")
_EXTREMES = (
    *_BEFORE_18[:2],
    f"12{_OLD}floats3 wide int8 uint8",
    f"13{_OLD}floats wide int8 uint8",
    f"18{_NEW}floats wide int8 uint8",
    f"20{_NEW}floats wide bool int8 uint8",
)
Axes = tuple[int, ...]


def reduce_over(build: Builder, name: str, x: Value, axes: Sequence[int], keepdims: int = 1) -> Any:
    """A reduction over known axes, as `build.opset` wants it said."""
    if build.opset >= (13 if name == "ReduceSum" else 18):
        return build.node(name, (x, list(axes)), 1, "", {"keepdims": keepdims})
    return build.node(name, (x,), 1, "", {"axes": list(axes), "keepdims": keepdims})


def reduced_axes(rank: int, axes: Sequence[int] | None, noop: int) -> Axes:
    """The axes to reduce, from 0; where none are named, all of them, or none with `noop`."""
    if axes is None or len(axes) == 0:
        return () if noop else tuple(range(rank))
    return tuple(sorted({axis_of(int(axis), rank) for axis in axes}))


def reduced_shape(shape: Sizes, axes: Axes, keepdims: int) -> Sizes:
    """A shape after its `axes` are reduced."""
    if keepdims:
        return tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    return tuple(size for axis, size in enumerate(shape) if axis not in axes)


def reduction_fact(data: Fact, axes: Fact | None, keepdims: int, noop: int) -> Fact:
    """What is known of a reduction, also where the axes are only known at run time."""
    known = None if axes is None else axes.constant
    if data.shape is None:
        scalar = axes is None and not noop and not keepdims
        return tensor(data.dtype, () if scalar else None)
    if axes is None or known is not None or axes.shape == (0,):
        over = reduced_axes(len(data.shape), _listed(known), noop)
        return tensor(data.dtype, reduced_shape(data.shape, over, keepdims))
    if keepdims:
        return unknown(len(data.shape), data.dtype)
    count = axes.shape[0] if axes.shape else None
    left = len(data.shape) - count if isinstance(count, int) else None
    return unknown(left, data.dtype)


def _listed(axes: Array | None) -> list[int] | None:
    return None if axes is None else [int(axis) for axis in axes.reshape(-1)]


def _infer(step: Step | None) -> Callable[..., Fact]:
    """The inference of a reduction; `step` joins two elements where they are sizes."""

    def infer(
        data: Fact, axes: Fact | None = None, *, keepdims: int, noop_with_empty_axes: int
    ) -> Fact:
        result = reduction_fact(data, axes, keepdims, noop_with_empty_axes)
        named = None if axes is None else axes.constant
        if step is None or data.value is None or (axes is not None and named is None):
            return result
        over = reduced_axes(data.value.ndim, _listed(named), noop_with_empty_axes)
        if data.value.size == 0 or data.dtype is None or not data.dtype.is_integer:
            return result
        known = constant_of(data)
        values = data.value if known is None else known.astype(object)
        joined = reduce_known(values, over, step, keepdims=bool(keepdims))
        return result.with_value(settled(joined, data.dtype))

    return infer


def _reducing(compute: Callable[[Array, Axes, bool], Any]) -> Callable[..., Array]:
    """A reference from a computation over axes; narrow floats are computed in float32."""

    def reference(
        data: Array, axes: Array | None = None, *, keepdims: int, noop_with_empty_axes: int
    ) -> Array:
        over = reduced_axes(data.ndim, _listed(axes), noop_with_empty_axes)
        result = np.asarray(compute(widen(data), over, bool(keepdims)))
        return result.astype(data.dtype, copy=False)

    return reference


def _axes_to_input(node: Node, build: Builder) -> None:
    axes = node.attribute("axes")
    node.attributes.pop("axes", None)
    if axes is not None:
        node.set_inputs([node.inputs[0], build.constant(np.asarray(axes, np.int64))])


def _axes_to_attribute(node: Node, build: Builder) -> Any:
    """The axes as an attribute; other operators where they are computed or nothing is reduced."""
    data, axes = node.inputs[0], (*node.inputs, None)[1]
    keepdims, noop = node.attribute("keepdims", 1), node.attribute("noop_with_empty_axes", 0)
    constant = None if axes is None else constant_value(axes)
    dynamic = axes is not None and constant is None
    empty = constant is None or constant.size == 0
    if dynamic or (empty and noop):
        return _spelled_out(build, node.op_type, data, axes, keepdims, noop)
    node.attributes.pop("noop_with_empty_axes", None)
    node.set_inputs([data])
    if constant is not None and not empty:
        named = tuple(constant.reshape(-1).tolist())
        node.set_attribute("axes", Attribute("axes", named, AttributeType.INTS))
    return None


def _spelled_out(
    build: Builder, name: str, data: Any, axes: Value | None, keepdims: int, noop: int
) -> Any:
    function = _FUNCTIONS.get(name)
    if function is not None:
        return function(build, data, axes, keepdims=keepdims, noop_with_empty_axes=noop)
    if axes is None or constant_value(axes) is not None:
        return build.Identity(data)
    rank = known_rank(data)
    if rank is None or build.opset < 13:
        raise ConversionError(f"before opset {build.opset + 1}, the axes must be constants")
    return _axis_by_axis(build, name, data, axes, rank, keepdims, noop)


def _axis_by_axis(
    build: Builder, name: str, data: Any, axes: Value, rank: int, keepdims: int, noop: int
) -> Any:
    """A reduction over axes only known at run time: each axis is reduced if it is named."""
    named = build.Where(build.Less(axes, 0), build.Add(axes, rank), axes)
    none = build.Equal(build.Size(axes), 0)
    result, chosen = data, []
    for axis in range(rank):
        hits = build.ReduceSum(build.Cast(build.Equal(named, axis), to=7), keepdims=0)
        hit = build.Cast(hits, to=int(DataType.BOOL))
        hit = hit if noop else build.Or(hit, none)
        chosen.append(build.Unsqueeze(hit, [0]))
        reduced, kept = Graph("reduced"), Graph("kept")
        inside = Builder(reduced, build.opset)
        reduced.outputs.append(reduce_over(inside, name, result, [axis]))
        kept.outputs.append(Builder(kept, build.opset).Identity(result))
        result = build.If(hit, then_branch=reduced, else_branch=kept)
    if keepdims or not rank:
        return result
    places = build.Compress(list(range(rank)), build.Concat(*chosen, axis=0), axis=0)
    return build.Squeeze(result, places)


class _Reduction(Operator):
    """A reduction whose axes were an attribute before opset 18."""

    infer = _infer(None)
    upgrade_13 = _axes_to_input
    downgrade_18 = _axes_to_attribute


class _FloatReduction(_Reduction):
    """A reduction that took integers before opset 28."""

    def upgrade_18(node: Node, build: Builder) -> Any:
        kind = element_type(node.inputs[0])
        if kind is None or not kind.is_integer:
            return None
        inputs = (build.Cast(node.inputs[0], to=int(DataType.DOUBLE)), *node.inputs[1:])
        given = {name: item.value for name, item in node.attributes.items()}
        return build.Cast(build.node(node.op_type, inputs, 1, "", given), to=int(kind))


class ReduceSum(Operator):
    """The sum."""

    signatures = (*_BEFORE_18[:2], f"13{_NEW}floats wide")
    infer = _infer(plus)
    upgrade_11 = _axes_to_input
    downgrade_13 = _axes_to_attribute
    reference = _reducing(lambda x, axes, keep: np.sum(x, axes, x.dtype, keepdims=keep))


class ReduceProd(_Reduction):
    """The product."""

    signatures = _VERSIONS
    infer = _infer(times)
    reference = _reducing(lambda x, axes, keep: np.prod(x, axes, x.dtype, keepdims=keep))


def lowest(dtype: np.dtype[Any]) -> Any:
    """What the maximum of nothing is: minus infinity, or the least number of a type."""
    if from_numpy(dtype).is_float:
        return -np.inf
    return False if dtype == np.bool_ else ml_dtypes.iinfo(dtype).min  # type: ignore[no-untyped-call]


def highest(dtype: np.dtype[Any]) -> Any:
    """What the minimum of nothing is: infinity, or the greatest number of a type."""
    if from_numpy(dtype).is_float:
        return np.inf
    return True if dtype == np.bool_ else ml_dtypes.iinfo(dtype).max  # type: ignore[no-untyped-call]


def _reduce_bool_as_bytes(node: Node, build: Builder) -> Any:
    """Before opset 20 truth values have no largest; bytes do."""
    if element_type(node.inputs[0]) != DataType.BOOL:
        return None
    inputs = (build.Cast(node.inputs[0], to=int(DataType.UINT8)), *node.inputs[1:])
    given = {name: item.value for name, item in node.attributes.items()}
    return build.Cast(build.node(node.op_type, inputs, 1, "", given), to=int(DataType.BOOL))


class ReduceMax(_Reduction):
    """The largest element; of nothing, minus infinity or the type's least number."""

    signatures = _EXTREMES
    infer = _infer(larger)
    downgrade_20 = _reduce_bool_as_bytes
    reference = _reducing(
        lambda x, axes, keep: np.max(x, axes, keepdims=keep, initial=lowest(x.dtype))
    )


class ReduceMin(_Reduction):
    """The smallest element; of nothing, infinity or the type's greatest number."""

    signatures = _EXTREMES
    infer = _infer(smaller)
    downgrade_20 = _reduce_bool_as_bytes
    reference = _reducing(
        lambda x, axes, keep: np.min(x, axes, keepdims=keep, initial=highest(x.dtype))
    )


def _mean(x: Array, axes: Axes, keep: bool) -> Any:
    count = int(np.prod([x.shape[axis] for axis in axes], dtype=np.int64))
    if x.dtype.kind not in "iu":
        return np.sum(x, axes, keepdims=keep) / x.dtype.type(count)
    wide = np.dtype(np.int64 if x.dtype.kind == "i" else np.uint64)
    return divide(np.asarray(np.sum(x, axes, wide, keepdims=keep)), np.asarray(count, wide))


class ReduceMean(_Reduction):
    """The mean; between integers, rounded toward zero."""

    signatures = _VERSIONS
    reference = _reducing(_mean)


def _sum(build: Builder, x: Value, axes: Value | None, **attributes: Any) -> Any:
    """A sum over axes that are an input."""
    if build.opset < 13:
        raise ConversionError("before opset 13, the axes of a sum are no input")
    return build.ReduceSum(x, axes, **attributes)


class ReduceL1(_Reduction):
    """The sum of absolute values."""

    signatures = _VERSIONS
    reference = _reducing(lambda x, axes, keep: np.sum(np.abs(x), axes, x.dtype, keepdims=keep))

    def function(build: Builder, data: Value, axes: Value | None = None, **attributes: Any) -> Any:
        return _sum(build, build.Abs(data), axes, **attributes)


class ReduceSumSquare(_Reduction):
    """The sum of squares."""

    signatures = _VERSIONS
    reference = _reducing(lambda x, axes, keep: np.sum(x * x, axes, x.dtype, keepdims=keep))

    def function(build: Builder, data: Value, axes: Value | None = None, **attributes: Any) -> Any:
        return _sum(build, build.Mul(data, data), axes, **attributes)


def _length(x: Array, axes: Axes, keep: bool) -> Any:
    wide = x.astype(np.float64) if x.dtype.kind in "iu" else x
    return np.sqrt(np.sum(wide * wide, axes, keepdims=keep))


class ReduceL2(_Reduction):
    """The square root of the sum of squares."""

    signatures = _VERSIONS
    reference = _reducing(_length)

    def function(build: Builder, data: Value, axes: Value | None = None, **attributes: Any) -> Any:
        kind = element_type(data)
        if kind is not None and kind.is_float:
            return build.Sqrt(_sum(build, build.Mul(data, data), axes, **attributes))
        wide = build.Cast(data, to=int(DataType.DOUBLE))
        length = build.Sqrt(_sum(build, build.Mul(wide, wide), axes, **attributes))
        return build.CastLike(length, data)


class ReduceLogSum(_FloatReduction):
    """The logarithm of the sum."""

    signatures = _FLOATS_ONLY
    reference = _reducing(lambda x, axes, keep: np.log(np.sum(x, axes, keepdims=keep)))

    def function(build: Builder, data: Value, axes: Value | None = None, **attributes: Any) -> Any:
        return build.Log(_sum(build, data, axes, **attributes))


def _log_sum_exp(x: Array, axes: Axes, keep: bool) -> Any:
    top = np.max(x, axes, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, 0).astype(x.dtype)
    total = np.log(np.sum(np.exp(x - top), axes, keepdims=True)) + top
    return total if keep else np.reshape(total, reduced_shape(x.shape, axes, 0))


class ReduceLogSumExp(_FloatReduction):
    """The logarithm of the sum of exponentials, without overflow."""

    signatures = _FLOATS_ONLY
    reference = _reducing(_log_sum_exp)

    def function(
        build: Builder, data: Value, axes: Value | None = None, *, keepdims: int,
        noop_with_empty_axes: int,
    ) -> Any:  # fmt: skip
        given = {"keepdims": keepdims, "noop_with_empty_axes": noop_with_empty_axes}
        if axes is None and noop_with_empty_axes:
            return build.Identity(data)
        if build.opset < 18:
            wide = build.Exp(build.Cast(data, to=int(DataType.DOUBLE)))
            return build.CastLike(build.Log(_sum(build, wide, axes, **given)), data)
        kept = _finite(build, build.ReduceMax(data, axes, **(given | {"keepdims": 1})))
        total = build.ReduceSum(build.Exp(build.Sub(data, kept)), axes, **given)
        same = not isinstance(keepdims, Attribute) and keepdims
        top = kept if same else _finite(build, build.ReduceMax(data, axes, **given))
        return build.Add(build.Log(total), top)


def _finite(build: Builder, x: Value) -> Any:
    """x, or 0 where it is infinite: only there is x - x not 0."""
    zero = build.Sub(x, x)
    usual = build.Equal(zero, zero)
    return build.Where(usual, x, build.CastLike(np.float32(0), x))


def _dynamic_mean(build: Builder, data: Value, axes: Value | None = None, **attributes: Any) -> Any:
    """A mean over axes that are only known at run time: a sum divided by a sum of ones."""
    ones = build.CastLike(build.Expand(np.float32(1), build.Shape(data)), data)
    return build.Div(
        build.ReduceSum(data, axes, **attributes), build.ReduceSum(ones, axes, **attributes)
    )


_FUNCTIONS: dict[str, Any] = {
    "ReduceMean": _dynamic_mean,
    **{
        operator.name: operator.function
        for operator in (ReduceL1, ReduceL2, ReduceLogSum, ReduceLogSumExp, ReduceSumSquare)
    },
}
"""Reductions that sums can say, where the axes may be an input already."""


class _Arg(Operator):
    """The place of an extreme along one axis."""

    def infer(data: Fact, axis: int, keepdims: int, select_last_index: int) -> Fact:
        if data.shape is None:
            return tensor(DataType.INT64, None)
        over = axis_of(axis, len(data.shape))
        return tensor(DataType.INT64, reduced_shape(data.shape, (over,), keepdims))


_ARG_VERSIONS = (
    "1(data: T, axis: int = 0, keepdims: int = 1) -> reduced: tensor(int64); T: numeric3",
    "11(data: T, axis: int = 0, keepdims: int = 1) -> reduced: tensor(int64); T: numeric3",
    "12(data: T, axis: int = 0, keepdims: int = 1, select_last_index: int = 0)"
    " -> reduced: tensor(int64); T: numeric3",
    "13(data: T, axis: int = 0, keepdims: int = 1, select_last_index: int = 0)"
    " -> reduced: tensor(int64); T: numeric",
)


def _place(find: Callable[..., Any], data: Array, axis: int, keep: int, last: int) -> Array:
    wide = widen(data)
    found = find(np.flip(wide, axis) if last else wide, axis, keepdims=bool(keep))
    return np.asarray(data.shape[axis] - 1 - found if last else found).astype(np.int64)


class ArgMax(_Arg):
    """The place of the first largest element along an axis, or of the last one."""

    signatures = _ARG_VERSIONS

    def reference(data: Array, axis: int, keepdims: int, select_last_index: int) -> Array:
        return _place(np.argmax, data, axis, keepdims, select_last_index)


class ArgMin(_Arg):
    """The place of the first smallest element along an axis, or of the last one."""

    signatures = _ARG_VERSIONS

    def reference(data: Array, axis: int, keepdims: int, select_last_index: int) -> Array:
        return _place(np.argmin, data, axis, keepdims, select_last_index)
