"""Linear quantization: to narrow types and back."""

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from sardonyx.dims import ceil_divide
from sardonyx.dtypes import DataType, data_type, from_numpy
from sardonyx.errors import ConversionError, EvaluationError, InferenceError
from sardonyx.graph import Node, Value
from sardonyx.ops.allocate import repeat
from sardonyx.ops.build import Builder
from sardonyx.ops.cast import cast, cast_value
from sardonyx.ops.early_opsets import known_rank, known_shape
from sardonyx.ops.element_type import element_type, refuse
from sardonyx.ops.fact import Fact, axis_of, merge, tensor
from sardonyx.ops.operator import Operator
from sardonyx.ops.precision import Array, widen

_WIDE_INTEGERS = (DataType.INT16, DataType.UINT16)
_HALVES = (DataType.FLOAT16, DataType.BFLOAT16)
_FLOAT8 = frozenset(kind for kind in DataType if kind.name.startswith("FLOAT8"))


def spread(scale: Array, shape: tuple[int, ...], axis: int, block_size: int) -> Array:
    """A scale or zero point that broadcasts: one for all, for each place on an axis, or for blocks.

    >>> spread(np.float32([1, 2]), (3, 2, 4), 1, 0).shape
    (1, 2, 1)
    """
    if block_size:
        axis = axis_of(axis, len(shape))
        blocks = repeat(scale, block_size, axis)
        return np.take(blocks, range(shape[axis]), axis)
    if scale.size == 1:
        return scale.reshape(())
    if scale.ndim != 1:
        raise EvaluationError(f"a scale of shape {list(scale.shape)} needs a block_size")
    axis = axis_of(axis, len(shape))
    return scale.reshape([-1 if place == axis else 1 for place in range(len(shape))])


def _require_blocks(x: Fact, parameters: Sequence[Fact | None], axis: int, block_size: int) -> None:
    """An error where scales or zero points are not one for each block."""
    if not block_size or x.shape is None:
        return
    if block_size < 0:
        raise InferenceError(f"block_size is {block_size}, below 0")
    place, sizes = axis_of(axis, len(x.shape)), list(x.shape)
    size = sizes[place]
    sizes[place] = None if size is None else ceil_divide(size, block_size)
    for fact in parameters:
        if fact is not None:
            merge(tensor(None, fact.shape), tensor(None, tuple(sizes)))


def _saturated(x: Array, to: DataType) -> Array:
    """Whole numbers held in floats as an integer type, kept within its range; NaN is the
    smallest."""
    limits = ml_dtypes.iinfo(to.numpy)  # type: ignore[no-untyped-call]
    kept = np.clip(np.where(np.isnan(x), -np.inf, x), int(limits.min), int(limits.max))
    return cast(kept.astype(np.int32), to)


def _quantized_type(zero: Any, output_dtype: int, problem: type[Exception]) -> DataType:
    """The type of a quantized tensor, by its zero point's type or by the attribute."""
    named = data_type(output_dtype) if output_dtype else None
    if zero is not None and named is not None and named != zero:
        raise problem(f"output_dtype is {named.text} and the zero point is {zero.text}")
    return zero or named or DataType.UINT8


class QuantizeLinear(Operator):
    """x / scale + zero point, rounded half to even and kept within a narrow type's range."""

    width_matters = True
    signatures = (
        "10(x: T1, y_scale: tensor(float), y_zero_point?: T2) -> y: T2;"
        " T1: float int32; T2: int8 uint8",
        "13(x: T1, y_scale: tensor(float), y_zero_point?: T2, axis: int = 1) -> y: T2;"
        " T1: float int32; T2: int8 uint8",
        "19(x: T1, y_scale: T1, y_zero_point?: T2, axis: int = 1, saturate: int = 1) -> y: T2;"
        " T1: bfloat16 float float16 int32; T2: float8s int8 uint8",
        "21(x: T1, y_scale: T1, y_zero_point?: T2, axis: int = 1, block_size: int = 0,"
        " output_dtype: int = 0, saturate: int = 1) -> y: T2;"
        " T1: bfloat16 float float16 int32; T2: float8s int4s int16 int8 uint16 uint8",
        "23(x: T1, y_scale: T2, y_zero_point?: T3, axis: int = 1, block_size: int = 0,"
        " output_dtype: int = 0, precision: int = 0, saturate: int = 1) -> y: T3;"
        " T1: bfloat16 float float16 int32; T2: bfloat16 float float16 int32;"
        " T3: float8s int4s float4e2m1 int16 int8 uint16 uint8",
        "24(x: T1, y_scale: T2, y_zero_point?: T3, axis: int = 1, block_size: int = 0,"
        " output_dtype: int = 0, precision: int = 0, saturate: int = 1) -> y: T3;"
        " T1: bfloat16 float float16 int32; T2: bfloat16 float float16 float8e8m0 int32;"
        " T3: float8s int4s float4e2m1 int16 int8 uint16 uint8",
        "25(x: T1, y_scale: T2, y_zero_point?: T3, axis: int = 1, block_size: int = 0,"
        " output_dtype: int = 0, precision: int = 0, saturate: int = 1) -> y: T3;"
        " T1: bfloat16 float float16 int32; T2: bfloat16 float float16 float8e8m0 int32;"
        " T3: float8s int4s int2s float4e2m1 int16 int8 uint16 uint8",
        "28(x: T1, y_scale: T2, y_zero_point?: T3, axis: int = 1, block_size: int = 0,"
        " output_dtype: int = 0, precision: int = 0, saturate: int = 1) -> y: T3;"
        " T1: bfloat16 float float16 int32; T2: bfloat16 float float16 float8e8m0 int32;"
        " T3: float8s int4s int2s float6s float4e2m1 int16 int8 uint16 uint8",
    )

    def infer(
        x: Fact, scale: Fact, zero: Fact | None = None, *, axis: int, block_size: int,
        output_dtype: int, **_: Any,
    ) -> Fact:  # fmt: skip
        _require_blocks(x, (scale, zero), axis, block_size)
        if zero is not None and zero.dtype is None:
            return tensor(data_type(output_dtype) if output_dtype else None, x.shape)
        narrow = None if zero is None else zero.dtype
        return tensor(_quantized_type(narrow, output_dtype, InferenceError), x.shape)

    def reference(
        x: Array, scale: Array, zero: Array | None = None, *, axis: int, block_size: int,
        output_dtype: int, precision: int, saturate: int,
    ) -> Array:  # fmt: skip
        narrow = None if zero is None else from_numpy(zero.dtype)
        to = _quantized_type(narrow, output_dtype, EvaluationError)
        divisor = spread(scale, x.shape, axis, block_size)
        level = widen(_divide(x, divisor, precision))
        offset = 0 if zero is None else spread(zero, x.shape, axis, block_size).astype(np.float32)
        if to.is_integer:
            return _saturated(np.asarray(np.rint(level).astype(np.float64) + offset), to)
        moved = np.where(offset == 0, level, level + offset)  # -0.0 + 0 would be 0
        return cast(moved, to, saturate=bool(saturate))

    def upgrade_13(node: Node, build: Builder) -> None:
        # From opset 19 on, x has the scale's type.
        if element_type(node.inputs[0]) == DataType.INT32:
            node.replace_input(0, build.Cast(node.inputs[0], to=int(DataType.FLOAT)))

    def downgrade_23(node: Node, build: Builder) -> None:
        refuse(node, build, DataType.FLOAT4E2M1)
        precision = node.attribute("precision", 0)
        node.attributes.pop("precision", None)
        if precision:
            node.replace_input(1, build.Cast(node.inputs[1], to=precision))
        wanted = precision or element_type(node.inputs[1])
        if wanted and element_type(node.inputs[0]) != wanted:
            node.replace_input(0, build.Cast(node.inputs[0], to=int(wanted)))

    def downgrade_21(node: Node, build: Builder) -> Any:
        refuse(node, build, DataType.INT4, DataType.UINT4)
        x, scale, zero = (*node.inputs, None)[:3]
        block_size, output = node.attribute("block_size", 0), node.attribute("output_dtype", 0)
        to = output or (element_type(zero) if zero is not None else DataType.UINT8)
        node.attributes.pop("output_dtype", None)
        node.attributes.pop("block_size", None)
        if block_size or to in _WIDE_INTEGERS:
            axis = node.attribute("axis", 1)
            saturate = node.attribute("saturate", 1)
            return _spelled_out_quantize(build, x, scale, zero, axis, block_size, to, saturate)
        if output and zero is None and output != DataType.UINT8:
            zeros = build.Expand(np.float32(0), build.Shape(scale))
            node.set_inputs([x, scale, build.Cast(zeros, to=output)])
        return None

    def downgrade_19(node: Node, build: Builder) -> Any:
        refuse(node, build, *_FLOAT8)
        saturate = node.attribute("saturate", 1)
        node.attributes.pop("saturate", None)
        x, scale, zero = (*node.inputs, None)[:3]
        to = element_type(zero)
        if not saturate and to in _FLOAT8:
            axis = node.attribute("axis", 1)
            return _spelled_out_quantize(build, x, scale, zero, axis, 0, to, saturate)
        for place in (0, 1):
            if element_type(node.inputs[place]) in (*_HALVES, DataType.INT32):
                node.replace_input(place, build.Cast(node.inputs[place], to=int(DataType.FLOAT)))
        return None

    def downgrade_13(node: Node, build: Builder) -> None:
        _refuse_axis(node)


def _divide(x: Array, scale: Array, precision: int) -> Array:
    """x / scale in the type asked for, or in the scale's own where one can divide in that."""
    kind = from_numpy(scale.dtype)
    if precision:
        kind = data_type(precision)
    elif kind == DataType.FLOAT8E8M0:
        kind = from_numpy(x.dtype)
    wide = kind.numpy if kind.is_float else np.dtype(np.float64)
    quotient = widen(x.astype(wide)) / widen(scale.astype(wide))
    return np.asarray(quotient).astype(wide)


class DequantizeLinear(Operator):
    """(x - zero point) * scale."""

    signatures = (
        "10(x: T, x_scale: tensor(float), x_zero_point?: T) -> y: tensor(float);"
        " T: int32 int8 uint8",
        "13(x: T, x_scale: tensor(float), x_zero_point?: T, axis: int = 1) -> y: tensor(float);"
        " T: int32 int8 uint8",
        "19(x: T1, x_scale: T2, x_zero_point?: T1, axis: int = 1) -> y: T2;"
        " T1: float8s int32 int8 uint8; T2: bfloat16 float float16",
        "21(x: T1, x_scale: T2, x_zero_point?: T1, axis: int = 1, block_size: int = 0) -> y: T2;"
        " T1: float8s int4s int16 int32 int8 uint16 uint8; T2: bfloat16 float float16",
        "23(x: T1, x_scale: T2, x_zero_point?: T1, axis: int = 1, block_size: int = 0,"
        " output_dtype: int = 0) -> y: T3;"
        " T1: float8s int4s float4e2m1 int16 int32 int8 uint16 uint8;"
        " T2: bfloat16 float float16; T3: bfloat16 float float16",
        "24(x: T1, x_scale: T2, x_zero_point?: T1, axis: int = 1, block_size: int = 0,"
        " output_dtype: int = 0) -> y: T3;"
        " T1: float8s int4s float4e2m1 int16 int32 int8 uint16 uint8;"
        " T2: bfloat16 float float16 float8e8m0; T3: bfloat16 float float16",
        "25(x: T1, x_scale: T2, x_zero_point?: T1, axis: int = 1, block_size: int = 0,"
        " output_dtype: int = 0) -> y: T3;"
        " T1: float8s int4s int2s float4e2m1 int16 int32 int8 uint16 uint8;"
        " T2: bfloat16 float float16 float8e8m0; T3: bfloat16 float float16",
        "28(x: T1, x_scale: T2, x_zero_point?: T1, axis: int = 1, block_size: int = 0,"
        " output_dtype: int = 0) -> y: T3;"
        " T1: float8s int4s int2s float6s float4e2m1 int16 int32 int8 uint16 uint8;"
        " T2: bfloat16 float float16 float8e8m0; T3: bfloat16 float float16",
    )

    def infer(
        x: Fact, scale: Fact, zero: Fact | None = None, *, axis: int, block_size: int,
        output_dtype: int,
    ) -> Fact:  # fmt: skip
        _require_blocks(x, (scale, zero), axis, block_size)
        if zero is not None and x.dtype and zero.dtype and x.dtype != zero.dtype:
            raise InferenceError(f"x is {x.dtype.text} and its zero point is {zero.dtype.text}")
        return tensor(data_type(output_dtype) if output_dtype else scale.dtype, x.shape)

    def reference(
        x: Array, scale: Array, zero: Array | None = None, *, axis: int, block_size: int,
        output_dtype: int,
    ) -> Array:  # fmt: skip
        to = data_type(output_dtype).numpy if output_dtype else scale.dtype
        wide = np.int64 if from_numpy(x.dtype).is_integer else np.float32
        level = x.astype(np.int8).astype(wide) if _is_tiny(x) else x.astype(wide)
        if zero is not None:
            offset = zero.astype(np.int8) if _is_tiny(zero) else zero
            level = level - spread(offset, x.shape, axis, block_size).astype(wide)
        factor = spread(scale, x.shape, axis, block_size).astype(np.float32)
        return np.asarray(level.astype(np.float32) * factor).astype(to)

    def downgrade_23(node: Node, build: Builder) -> Any:
        refuse(node, build, DataType.FLOAT4E2M1)
        output, scale = node.attribute("output_dtype", 0), node.inputs[1]
        node.attributes.pop("output_dtype", None)
        kind = element_type(scale)
        if not output or output == kind:
            return None
        given = {name: item.value for name, item in node.attributes.items()}
        wide = build.Cast(scale, to=int(DataType.FLOAT))
        result = build.DequantizeLinear(node.inputs[0], wide, *node.inputs[2:], **given)
        return build.Cast(result, to=output)

    def downgrade_21(node: Node, build: Builder) -> Any:
        refuse(node, build, DataType.INT4, DataType.UINT4)
        x, scale, zero = (*node.inputs, None)[:3]
        block_size = node.attribute("block_size", 0)
        node.attributes.pop("block_size", None)
        if not block_size and element_type(x) not in _WIDE_INTEGERS:
            return None
        axis = node.attribute("axis", 1)
        level = build.Cast(x, to=int(DataType.FLOAT))
        if zero is not None:
            offset = build.Cast(zero, to=int(DataType.FLOAT))
            level = build.Sub(level, _spread_values(build, x, offset, axis, block_size))
        factor = build.Cast(scale, to=int(DataType.FLOAT))
        wide = build.Mul(level, _spread_values(build, x, factor, axis, block_size))
        return build.CastLike(wide, scale)

    def downgrade_19(node: Node, build: Builder) -> Any:
        refuse(node, build, *_FLOAT8)
        kind = element_type(node.inputs[1])
        if kind not in _HALVES:
            return None
        given = {name: item.value for name, item in node.attributes.items()}
        wide = build.Cast(node.inputs[1], to=int(DataType.FLOAT))
        result = build.DequantizeLinear(node.inputs[0], wide, *node.inputs[2:], **given)
        return build.Cast(result, to=int(kind))

    def downgrade_13(node: Node, build: Builder) -> None:
        _refuse_axis(node)


def _is_tiny(x: Array) -> bool:
    kind = from_numpy(x.dtype)
    return kind.is_integer and kind.bits < 8


def _refuse_axis(node: Node) -> None:
    """Before opset 13 there was one scale for the whole tensor."""
    if known_shape(node.inputs[1]) not in ((), (1,)):
        raise ConversionError("before opset 13, the scale must be a scalar")
    node.attributes.pop("axis", None)


def _spelled_out_quantize(
    build: Builder,
    x: Any,
    scale: Any,
    zero: Value | None,
    axis: int,
    block_size: int,
    to: int | None,
    saturate: int,
) -> Any:
    if to is None:
        raise ConversionError("the zero point's element type is not known")
    kind = data_type(to)
    level = build.Div(x, _spread_values(build, x, scale, axis, block_size))
    level = build.Cast(level, to=int(DataType.FLOAT))
    level = build.Round(level) if kind.is_integer else level
    if zero is not None:
        offset = build.Cast(zero, to=int(DataType.FLOAT))
        level = build.Add(level, _spread_values(build, x, offset, axis, block_size))
    if not kind.is_integer:
        return cast_value(build, level, kind, saturate=saturate)
    limits = ml_dtypes.iinfo(kind.numpy)  # type: ignore[no-untyped-call]
    low, high = np.float32(limits.min), np.float32(limits.max)
    return build.Cast(build.Clip(level, low, high), to=int(to))


def _spread_values(build: Builder, x: Any, scale: Any, axis: int, block_size: int) -> Any:
    """A scale in a shape that broadcasts to x, whatever its rank."""
    shape = build.Shape(x)
    if block_size:
        size = build.Gather(shape, axis, axis=0)
        places = build.Div(build.Range(np.int64(0), size, np.int64(1)), block_size)
        return build.Gather(scale, places, axis=axis)
    if known_rank(scale) == 0:
        return scale
    ones = build.Expand(np.int64(1), build.Shape(shape))
    return build.Reshape(scale, build.ScatterElements(ones, [axis], [-1], axis=0))


class DynamicQuantizeLinear(Operator):
    """Quantization to uint8 by a scale and zero point found from the tensor's own range."""

    signatures = (
        "11(x: T1) -> (y: T2, y_scale: tensor(float), y_zero_point: T2); T1: float; T2: uint8",
    )

    def infer(x: Fact) -> tuple[Fact, Fact, Fact]:
        zero = tensor(DataType.UINT8, ())
        return tensor(DataType.UINT8, x.shape), tensor(DataType.FLOAT, ()), zero

    def reference(x: Array) -> tuple[Array, Array, Array]:
        low = np.min(x, initial=0).astype(np.float32)
        high = np.max(x, initial=0).astype(np.float32)
        scale = np.float32(1) if low == high else (high - low) / np.float32(255)
        zero = np.asarray(np.rint(np.clip(-low / scale, 0, 255)), np.uint8)
        y = _saturated(np.asarray(np.rint(x / scale) + np.float32(zero)), DataType.UINT8)
        return y, np.asarray(scale, np.float32), zero

    def function(build: Builder, x: Value) -> Any:
        if build.opset < 11:
            raise ConversionError("numbers can be rounded from opset 11 on")
        none, steps = np.float32(0), np.float32(255)
        low = build.Min(_reduce_all(build, "ReduceMin", x), none)
        high = build.Max(_reduce_all(build, "ReduceMax", x), none)
        flat = build.Equal(low, high)
        scale = build.Where(flat, np.float32(1), build.Div(build.Sub(high, low), steps))
        level = build.Round(build.Div(build.Neg(low), scale))
        zero = build.Cast(build.Min(build.Max(level, none), steps), to=int(DataType.UINT8))
        return build.QuantizeLinear(x, scale, zero), build.Identity(scale), build.Identity(zero)


def _reduce_all(build: Builder, name: str, x: Value) -> Any:
    """A reduction over all axes to a scalar."""
    return build.node(name, (x,), 1, "", {"keepdims": 0})
