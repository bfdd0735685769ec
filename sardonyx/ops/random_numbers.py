"""Operators that draw random numbers."""

from typing import Any

import numpy as np

from sardonyx.dtypes import DataType, data_type, from_numpy
from sardonyx.errors import ConversionError, EvaluationError
from sardonyx.graph import Node, TensorType, Value
from sardonyx.ops.build import Builder
from sardonyx.ops.cast import cast
from sardonyx.ops.early_opsets import forget_consumed_inputs
from sardonyx.ops.element_type import constant_value, element_type
from sardonyx.ops.evaluate import Context
from sardonyx.ops.fact import Fact, tensor, unknown
from sardonyx.ops.operator import Operator
from sardonyx.ops.precision import Array, widen


def _drawn(values: Any, to: DataType) -> Array:
    """Random numbers in the type asked for, which must be one of floats."""
    if not to.is_float:
        raise EvaluationError(
            f"random numbers cannot be {to.text}", hint="set 'dtype' to a floating-point type"
        )
    return cast(np.asarray(values, np.float64), to)


class _Drawing(Operator):
    """Random numbers of a shape given by an attribute."""

    random = True

    def infer(dtype: int, shape: tuple[int, ...], **_: Any) -> Fact:
        return tensor(data_type(dtype), shape)


class _DrawingLike(Operator):
    """Random numbers in the shape of another tensor, and in its type unless one is named."""

    random = True

    def infer(x: Fact, dtype: int | None, **_: Any) -> Fact:
        return tensor(x.dtype if dtype is None else data_type(dtype), x.shape)


class RandomNormal(_Drawing):
    """Normally distributed numbers in a shape given by an attribute."""

    signatures = (
        "1(dtype: int = 1, mean: float = 0.0, scale: float = 1.0, seed?: float, shape: ints)"
        " -> output: T; T: floats3",
        "22(dtype: int = 1, mean: float = 0.0, scale: float = 1.0, seed?: float, shape: ints)"
        " -> output: T; T: floats",
    )

    def reference(
        *, dtype: int, mean: float, scale: float, seed: float | None, shape: tuple[int, ...],
        context: Context,
    ) -> Array:  # fmt: skip
        return _drawn(context.random(seed).normal(mean, scale, shape), data_type(dtype))


class RandomNormalLike(_DrawingLike):
    """Normally distributed numbers in the shape of another tensor."""

    signatures = (
        "1(input: T1, dtype?: int, mean: float = 0.0, scale: float = 1.0, seed?: float)"
        " -> output: T2; T1: all15; T2: floats3",
        "22(input: T1, dtype?: int, mean: float = 0.0, scale: float = 1.0, seed?: float)"
        " -> output: T2; T1: all; T2: floats",
    )

    def reference(
        x: Array, *, dtype: int | None, mean: float, scale: float, seed: float | None,
        context: Context,
    ) -> Array:  # fmt: skip
        to = from_numpy(x.dtype) if dtype is None else data_type(dtype)
        return _drawn(context.random(seed).normal(mean, scale, x.shape), to)


class RandomUniform(_Drawing):
    """Numbers drawn evenly from an interval, in a shape given by an attribute."""

    signatures = (
        "1(dtype: int = 1, high: float = 1.0, low: float = 0.0, seed?: float, shape: ints)"
        " -> output: T; T: floats3",
        "22(dtype: int = 1, high: float = 1.0, low: float = 0.0, seed?: float, shape: ints)"
        " -> output: T; T: floats",
    )

    def reference(
        *, dtype: int, high: float, low: float, seed: float | None, shape: tuple[int, ...],
        context: Context,
    ) -> Array:  # fmt: skip
        return _drawn(context.random(seed).uniform(low, high, shape), data_type(dtype))


class RandomUniformLike(_DrawingLike):
    """Numbers drawn evenly from an interval, in the shape of another tensor."""

    signatures = (
        "1(input: T1, dtype?: int, high: float = 1.0, low: float = 0.0, seed?: float)"
        " -> output: T2; T1: all15; T2: floats3",
        "22(input: T1, dtype?: int, high: float = 1.0, low: float = 0.0, seed?: float)"
        " -> output: T2; T1: all; T2: floats",
    )

    def reference(
        x: Array, *, dtype: int | None, high: float, low: float, seed: float | None,
        context: Context,
    ) -> Array:  # fmt: skip
        to = from_numpy(x.dtype) if dtype is None else data_type(dtype)
        return _drawn(context.random(seed).uniform(low, high, x.shape), to)


class Bernoulli(_DrawingLike):
    """1 with the probability that x says, else 0."""

    signatures = (
        "15(input: T1, dtype?: int, seed?: float) -> output: T2; T1: floats3; T2: numeric bool",
        "22(input: T1, dtype?: int, seed?: float) -> output: T2; T1: floats; T2: numeric bool",
    )

    def reference(x: Array, *, dtype: int | None, seed: float | None, context: Context) -> Array:
        to = from_numpy(x.dtype) if dtype is None else data_type(dtype)
        return cast(np.asarray(context.random(seed).random(x.shape) < widen(x)), to)

    def function(build: Builder, x: Value, dtype: int | None, seed: float | None) -> Any:
        wide = build.Cast(x, to=int(DataType.FLOAT))
        drawn = build.RandomUniformLike(wide, seed=seed)
        to = dtype or element_type(x)
        hit = build.Less(drawn, wide)
        if to is None and build.opset < 15:
            raise ConversionError(f"the element type of '{x.name}' is not known")
        return build.CastLike(hit, x) if to is None else build.Cast(hit, to=int(to))


class Multinomial(Operator):
    """Classes drawn for each row, by probabilities given as logarithms without a common factor."""

    random = True
    signatures = (
        "7(input: T1, dtype: int = 6, sample_size: int = 1, seed?: float) -> output: T2;"
        " T1: floats3; T2: int32 int64",
        "22(input: T1, dtype: int = 6, sample_size: int = 1, seed?: float) -> output: T2;"
        " T1: floats; T2: int32 int64",
    )

    def infer(x: Fact, dtype: int, sample_size: int, seed: float | None) -> Fact:
        rows = unknown(2).shape if x.shape is None else x.shape
        return tensor(data_type(dtype), (rows[0] if rows else None, sample_size))

    def reference(
        x: Array, *, dtype: int, sample_size: int, seed: float | None, context: Context
    ) -> Array:
        weights = np.exp(x.astype(np.float64) - np.max(x.astype(np.float64), 1, keepdims=True))
        sums = np.cumsum(weights, 1)
        drawn = context.random(seed).random((len(x), sample_size)) * sums[:, -1:]
        places = [np.searchsorted(row, at, "right") for row, at in zip(sums, drawn, strict=True)]
        found = np.asarray(places, np.int64).reshape(len(x), sample_size)
        return np.asarray(np.minimum(found, x.shape[1] - 1), data_type(dtype).numpy)


class Dropout(Operator):
    """x; in training, with some elements set to 0 and the others scaled up."""

    random = True
    signatures = (
        "1(data: T, consumed_inputs?: ints, is_test: int = 0, ratio: float = 0.5)"
        " -> (output: T, mask?: T); T: floats3",
        "6(data: T, is_test: int = 0, ratio: float = 0.5) -> (output: T, mask?: T); T: floats3",
        "7(data: T, ratio: float = 0.5) -> (output: T, mask?: T); T: floats3",
        "10(data: T, ratio: float = 0.5) -> (output: T, mask?: T1); T: floats3; T1: bool",
        "12(data: T, ratio?: T1, training_mode?: T2, seed?: int) -> (output: T, mask?: T2);"
        " T: floats3; T1: floats3; T2: bool",
        "13(data: T, ratio?: T1, training_mode?: T2, seed?: int) -> (output: T, mask?: T2);"
        " T: floats; T1: floats3; T2: bool",
        "22(data: T, ratio?: T1, training_mode?: T2, seed?: int) -> (output: T, mask?: T2);"
        " T: floats float8s; T1: floats float8s; T2: bool",
    )
    upgrade_1 = forget_consumed_inputs

    def infer(x: Fact, *_: Fact | None, seed: int | None) -> tuple[Fact, Fact]:
        return tensor(x.dtype, x.shape), tensor(DataType.BOOL, x.shape)

    def reference(
        x: Array, ratio: Array | None = None, training: Array | None = None, *,
        seed: int | None, context: Context,
    ) -> tuple[Array, Array]:  # fmt: skip
        share = 0.5 if ratio is None else float(ratio.astype(np.float64).reshape(()))
        if training is None or not training.reshape(()) or share == 0:
            return x, np.ones(x.shape, bool)
        mask = np.asarray(context.random(seed).random(x.shape) >= share)
        scaled = np.where(mask, widen(x) / (1 - share), 0)
        return cast(np.asarray(scaled), from_numpy(x.dtype)), mask

    def upgrade_6(node: Node, build: Builder) -> None:
        # From here to opset 12 there is inference only, whatever is_test said.
        node.attributes.pop("is_test", None)

    def upgrade_7(node: Node, build: Builder) -> Any:
        kind = element_type(node.inputs[0])
        if len(node.outputs) < 2 or not node.outputs[1].name or kind is None:
            return None
        ratio = node.attribute("ratio", 0.5)
        result, mask = build.Dropout(node.inputs[0], ratio=ratio, outputs=2)
        return result, build.Cast(mask, to=int(kind))

    def upgrade_10(node: Node, build: Builder) -> None:
        ratio = node.attribute("ratio", 0.5)
        node.attributes.pop("ratio", None)
        node.set_inputs([node.inputs[0], build.constant(np.float32(ratio))])

    def downgrade_12(node: Node, build: Builder) -> None:
        x, ratio, training = (*node.inputs, None, None)[:3]
        share, mode = constant_value(ratio), constant_value(training)
        if training is not None and (mode is None or mode.any()):
            raise ConversionError("before opset 12, there is no training")
        if share is not None:
            node.set_attribute("ratio", float(share.reshape(())))
        node.attributes.pop("seed", None)
        node.set_inputs([x])

    def downgrade_10(node: Node, build: Builder) -> Any:
        if len(node.outputs) < 2 or not node.outputs[1].name:
            return None
        ratio = node.attribute("ratio", 0.5)
        result, mask = build.Dropout(node.inputs[0], ratio=ratio, outputs=2)
        mask.type = TensorType(element_type(node.inputs[0]))
        return result, build.Cast(mask, to=int(DataType.BOOL))

    def downgrade_7(node: Node, build: Builder) -> None:
        node.set_attribute("is_test", 1)
