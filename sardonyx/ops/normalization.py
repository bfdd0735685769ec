"""Normalization by mean and variance, over layers, groups and instances."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.errors import InferenceError
from sardonyx.graph import Node, Value
from sardonyx.ops.bfloat16 import through_float
from sardonyx.ops.build import Builder
from sardonyx.ops.convolution import along_channels
from sardonyx.ops.early_opsets import forget_consumed_inputs, known_rank
from sardonyx.ops.element_type import constant_like, element_type
from sardonyx.ops.fact import Fact, Sizes, axis_of, broadcast, same_size, sizes_text, tensor
from sardonyx.ops.operator import Operator
from sardonyx.ops.precision import Array, compute_type, narrow, widen


def standardize(x: Array, axes: tuple[int, ...], epsilon: float) -> tuple[Array, Array, Array]:
    """x less its mean, over its deviation; then the mean, and one over the deviation."""
    mean = x.mean(axis=axes, keepdims=True)
    centred = x - mean
    variance = np.square(centred).mean(axis=axes, keepdims=True)
    inverse = 1 / np.sqrt(variance + x.dtype.type(epsilon))
    return centred * inverse, mean, inverse


def mean_over(build: Builder, x: Value, axes: Sequence[int]) -> Any:
    """The mean over axes, which stay with size one, at any opset."""
    if build.opset >= 18:
        return build.ReduceMean(x, axes)
    return build.ReduceMean(x, axes=axes)


def _stash(x: Array, stash_type: int) -> Array:
    """A tensor in the type that `stash_type` asks for, or one wide enough to compute in."""
    return x.astype(compute_type(DataType(stash_type).numpy), copy=False)


def _check_broadcast(x: Fact, *others: Fact | None) -> None:
    for other in others:
        if x.shape is None or other is None or other.shape is None:
            continue
        together = broadcast(x.shape, other.shape)
        if together is None or len(together) > len(x.shape):
            raise InferenceError(f"{other} does not broadcast to {x}")
        for size, found in zip(x.shape, together, strict=True):
            same_size(size, found, f"{other} does not broadcast to {x}")


def check_channels(x: Fact, *others: Fact | None) -> Sizes:
    """The number of channels as a shape, where all parameters have one element a channel."""
    channels = None
    if x.shape is not None:
        if not x.shape:
            raise InferenceError("a scalar has no channels")
        channels = 1 if len(x.shape) == 1 else x.shape[1]
    for other in others:
        if other is not None and other.shape is not None:
            if len(other.shape) != 1:
                raise InferenceError(f"a parameter must have one element a channel, not {other}")
            what = f"{sizes_text(other.shape)} parameters do not fit the channels of {x}"
            channels = same_size(channels, other.shape[0], what)
    return (channels,)


class LayerNormalization(Operator):
    """Elements from one axis on are brought to mean 0 and variance 1, then scaled and moved."""

    signatures = (
        "17(X: T, Scale: T, B?: T, axis: int = -1, epsilon: float = 1e-05, stash_type: int = 1)"
        " -> (Y: T, Mean?: U, InvStdDev?: U); T: floats; U: bfloat16 float",
    )
    open_attributes = True

    def infer(
        x: Fact, scale: Fact, bias: Fact | None = None, *,
        axis: int, epsilon: float, stash_type: int,
    ) -> tuple[Fact, Fact, Fact]:  # fmt: skip
        _check_broadcast(x, scale, bias)
        reduced: Sizes | None = None
        if x.shape is not None:
            first = axis_of(axis, len(x.shape))
            reduced = (*x.shape[:first], *(1,) * (len(x.shape) - first))
        moment = tensor(DataType(stash_type), reduced)
        return tensor(scale.dtype or x.dtype, x.shape), moment, moment

    def reference(
        x: Array, scale: Array, bias: Array | None = None, *,
        axis: int, epsilon: float, stash_type: int,
    ) -> tuple[Array, Array, Array]:  # fmt: skip
        # Since opset 17 both have one type; before, the scale's is the result's.
        axes = tuple(range(axis_of(axis, x.ndim), x.ndim))
        unit, mean, inverse = standardize(_stash(x, stash_type), axes, epsilon)
        result = widen(narrow(unit, scale.dtype)) * widen(scale)
        if bias is not None:
            result = result + widen(bias)
        moments = DataType(stash_type).numpy
        return narrow(result, scale.dtype), narrow(mean, moments), narrow(inverse, moments)

    def function(
        build: Builder, x: Value, scale: Value, bias: Value | None = None, *,
        axis: int, epsilon: float, stash_type: int,
    ) -> tuple[Any, Any, Any]:  # fmt: skip
        flat, axes, reduced = _normalized_axes(build, x, axis)
        wide = build.Cast(flat, to=stash_type)
        mean = mean_over(build, wide, axes)
        centred = build.Sub(wide, mean)
        variance = mean_over(build, build.Mul(centred, centred), axes)
        small = build.constant(np.asarray(epsilon, DataType(stash_type).numpy))
        inverse = build.Reciprocal(build.Sqrt(build.Add(variance, small)))
        unit = build.CastLike(build.Mul(centred, inverse), scale)
        if reduced is not None:
            unit = build.Reshape(unit, build.Shape(x))
            mean, inverse = build.Reshape(mean, reduced), build.Reshape(inverse, reduced)
        result = build.Mul(unit, scale)
        return build.Add(result, bias) if bias is not None else result, mean, inverse


def _normalized_axes(build: Builder, x: Value, axis: int) -> tuple[Any, list[int], Any]:
    """A tensor and the axes of it to normalize over.

    Where only the rank could tell how many these are, it is flattened to a matrix, and the shape
    that means have to take comes with it.
    """
    rank = known_rank(x)
    if axis >= 0 and rank is None:
        shape = build.Shape(x)
        kept = build.Slice(shape, [0], [axis])
        more = build.Sub(build.Shape(shape), [axis])
        ones = build.Expand([1], more)
        return build.Flatten(x, axis=axis), [1], build.Concat(kept, ones, axis=0)
    first = axis if axis < 0 else axis - (rank or 0)
    return x, list(range(first, 0)), None


class RMSNormalization(Operator):
    """Elements from one axis on are divided by their root mean square, then scaled."""

    signatures = (
        "23(X: T, scale: V, axis: int = -1, epsilon: float = 1e-05, stash_type: int = 1)"
        " -> Y: V; T: floats; V: floats",
    )

    def infer(x: Fact, scale: Fact, axis: int, epsilon: float, stash_type: int) -> Fact:
        _check_broadcast(x, scale)
        if x.shape is not None:
            axis_of(axis, len(x.shape))
        return tensor(scale.dtype, x.shape)

    def reference(x: Array, scale: Array, axis: int, epsilon: float, stash_type: int) -> Array:
        axes = tuple(range(axis_of(axis, x.ndim), x.ndim))
        wide = _stash(x, stash_type)
        square = np.square(wide).mean(axis=axes, keepdims=True)
        unit = wide / np.sqrt(square + wide.dtype.type(epsilon))
        return narrow(widen(narrow(unit, x.dtype)) * widen(scale), scale.dtype)

    def function(
        build: Builder, x: Value, scale: Value, axis: int, epsilon: float, stash_type: int
    ) -> Any:
        flat, axes, reduced = _normalized_axes(build, x, axis)
        wide = build.Cast(flat, to=stash_type)
        square = mean_over(build, build.Mul(wide, wide), axes)
        small = build.constant(np.asarray(epsilon, DataType(stash_type).numpy))
        unit = build.Div(wide, build.Sqrt(build.Add(square, small)))
        if reduced is not None:
            unit = build.Reshape(unit, build.Shape(x))
        unit = build.CastLike(unit, x)
        return build.Mul(build.CastLike(unit, scale), scale)


class GroupNormalization(Operator):
    """Groups of channels are brought to mean 0 and variance 1, then scaled and moved."""

    signatures = (
        "18(X: T, scale: T, bias: T, epsilon: float = 1e-05, num_groups: int) -> Y: T;"
        " T: floats deprecated",
        "21(X: T, scale: T, bias: T, epsilon: float = 1e-05, num_groups: int,"
        " stash_type: int = 1) -> Y: T; T: floats",
    )

    def infer(
        x: Fact, scale: Fact, bias: Fact, *, epsilon: float, num_groups: int, stash_type: int
    ) -> Fact:
        (channels,) = check_channels(x, scale, bias)
        if isinstance(channels, int) and channels % num_groups:
            raise InferenceError(f"{channels} channels do not make {num_groups} groups")
        if x.shape is None:
            return tensor(x.dtype, None)
        return tensor(x.dtype, (x.shape[0], channels, *x.shape[2:]))

    def reference(
        x: Array, scale: Array, bias: Array, *, epsilon: float, num_groups: int, stash_type: int
    ) -> Array:
        grouped = (x.shape[0], num_groups, x.shape[1] // num_groups, *x.shape[2:])
        wide = _stash(x, stash_type).reshape(grouped)
        unit, _, _ = standardize(wide, tuple(range(2, wide.ndim)), epsilon)
        unit = widen(narrow(unit.reshape(x.shape), x.dtype))
        factor, offset = (along_channels(widen(item), x.ndim) for item in (scale, bias))
        return narrow(unit * factor + offset, x.dtype)

    def function(
        build: Builder, x: Value, scale: Value, bias: Value, *,
        epsilon: float, num_groups: int, stash_type: int,
    ) -> Any:  # fmt: skip
        grouped = build.Reshape(x, [0, num_groups, -1])
        wide = build.Cast(grouped, to=stash_type)
        mean = mean_over(build, wide, [2])
        centred = build.Sub(wide, mean)
        variance = mean_over(build, build.Mul(centred, centred), [2])
        small = build.constant(np.asarray(epsilon, DataType(stash_type).numpy))
        unit = build.Div(centred, build.Sqrt(build.Add(variance, small)))
        by_channel = build.Concat(build.Shape(x, end=2), [-1], axis=0)
        unit = build.Reshape(build.CastLike(unit, x), by_channel)
        scaled = build.Mul(unit, build.Unsqueeze(scale, [1]))
        moved = build.Add(scaled, build.Unsqueeze(bias, [1]))
        return build.Reshape(moved, build.Shape(x))

    def upgrade_18(node: Node, build: Builder) -> None:
        x, *parameters = node.inputs
        groups = node.attribute("num_groups")
        members = build.Div(build.Shape(x, start=1, end=2), [groups])
        shape = build.Concat([groups], members, axis=0)
        spread = [
            build.Reshape(build.Expand(build.Unsqueeze(item, [1]), shape), [-1])
            for item in parameters
        ]
        node.set_inputs([x, *spread])
        if element_type(x) == DataType.DOUBLE:
            node.set_attribute("stash_type", int(DataType.DOUBLE))


class InstanceNormalization(Operator):
    """Each channel of each image is brought to mean 0 and variance 1, then scaled and moved."""

    signatures = (
        "1(input: T, scale: T, B: T, consumed_inputs?: ints, epsilon: float = 1e-05)"
        " -> output: T; T: floats3",
        "6(input: T, scale: T, B: T, epsilon: float = 1e-05) -> output: T; T: floats3",
        "22(input: T, scale: T, B: T, epsilon: float = 1e-05) -> output: T; T: floats",
    )
    downgrade_22 = through_float
    upgrade_1 = forget_consumed_inputs

    def infer(x: Fact, scale: Fact, bias: Fact, epsilon: float) -> Fact:
        (channels,) = check_channels(x, scale, bias)
        if x.shape is None:
            return tensor(x.dtype, None)
        return tensor(x.dtype, (x.shape[0], channels, *x.shape[2:]))

    def reference(x: Array, scale: Array, bias: Array, epsilon: float) -> Array:
        unit, _, _ = standardize(widen(x), tuple(range(2, x.ndim)), epsilon)
        factor, offset = (along_channels(widen(item), x.ndim) for item in (scale, bias))
        return narrow(unit * factor + offset, x.dtype)


class MeanVarianceNormalization(Operator):
    """Elements along some axes are brought to mean 0 and deviation 1."""

    signatures = (
        "9(X: T, axes: ints = [0, 2, 3]) -> Y: T; T: floats3",
        "13(X: T, axes: ints = [0, 2, 3]) -> Y: T; T: floats",
    )

    def infer(x: Fact, axes: tuple[int, ...]) -> Fact:
        if x.shape is not None:
            for axis in axes:
                axis_of(axis, len(x.shape))
        return x.with_value(None)

    def reference(x: Array, axes: tuple[int, ...]) -> Array:
        wide = widen(x)
        centred = wide - wide.mean(axis=axes, keepdims=True)
        deviation = np.sqrt(np.square(centred).mean(axis=axes, keepdims=True))
        return narrow(centred / (deviation + wide.dtype.type(1e-9)), x.dtype)

    def function(build: Builder, x: Value, axes: tuple[int, ...]) -> Any:
        centred = build.Sub(x, mean_over(build, x, axes))
        deviation = build.Sqrt(mean_over(build, build.Mul(centred, centred), axes))
        if build.opset < 15 and element_type(x) is None:
            tiny = build.HardSigmoid(deviation, alpha=0.0, beta=1e-9)
        else:
            tiny = constant_like(build, 1e-9, x)
        return build.Div(centred, build.Add(deviation, tiny))


def near_channels(size: int, channels: int) -> tuple[int, int]:
    """How many channels before and behind one may be in a window of that size around it.

    >>> near_channels(4, 10), near_channels(1000, 3)
    ((1, 2), (2, 2))
    """
    most, before = max(channels - 1, 0), (size - 1) // 2
    return min(before, most), min(size - 1 - before, most)


class LRN(Operator):
    """Each element is divided by a power of the squares summed over neighbouring channels."""

    signatures = (
        "1(X: T, alpha: float = 0.0001, beta: float = 0.75, bias: float = 1.0, size: int) -> Y: T;"
        " T: floats3",
        "13(X: T, alpha: float = 0.0001, beta: float = 0.75, bias: float = 1.0, size: int) -> Y: T;"
        " T: floats",
    )

    def infer(x: Fact, alpha: float, beta: float, bias: float, size: int) -> Fact:
        if x.shape is not None and len(x.shape) < 2:
            raise InferenceError(f"{x} has no channels")
        if size < 1:
            raise InferenceError(f"a window of {size} channels holds nothing")
        return x.with_value(None)

    def reference(x: Array, alpha: float, beta: float, bias: float, size: int) -> Array:
        wide = widen(x)
        if x.size == 0:
            return x.copy()
        before, after = near_channels(size, x.shape[1])
        widths = [(0, 0), (before, after)] + [(0, 0)] * (x.ndim - 2)
        squares = np.pad(np.square(wide), widths)
        near = np.lib.stride_tricks.sliding_window_view(squares, before + 1 + after, axis=1)
        total = near.sum(axis=-1, dtype=wide.dtype)
        return narrow(wide / (bias + alpha / size * total) ** beta, x.dtype)


class LpNormalization(Operator):
    """Elements along one axis are divided by their Lp norm; zeros stay zeros."""

    signatures = (
        "1(input: T, axis: int = -1, p: int = 2) -> output: T; T: floats3",
        "22(input: T, axis: int = -1, p: int = 2) -> output: T; T: floats",
    )
    downgrade_22 = through_float

    def infer(x: Fact, axis: int, p: int) -> Fact:
        if p not in (1, 2):
            raise InferenceError(f"p is {p}, neither 1 nor 2")
        if x.shape is not None:
            axis_of(axis, len(x.shape))
        return x.with_value(None)

    def reference(x: Array, axis: int, p: int) -> Array:
        wide = widen(x)
        total = (np.abs(wide) ** p).sum(axis=axis, keepdims=True)
        norm = total ** (1 / p)
        return narrow(np.where(norm == 0, 0, wide / np.where(norm == 0, 1, norm)), x.dtype)
