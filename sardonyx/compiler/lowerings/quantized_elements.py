"""Elementwise operators, reductions and moves on quantized tensors, by way of floats."""

from typing import Any

from sardonyx.compiler.constants import converted
from sardonyx.compiler.forms import (
    Form,
    Join,
    NotLowered,
    binary,
    cast,
    count,
    fold,
    reshape,
    select,
    unary,
)
from sardonyx.compiler.lowerings.integer_products import scalar, whole
from sardonyx.compiler.lowerings.quantization import dequantize, quantize, saturated
from sardonyx.compiler.lowerings.reduction import softmax
from sardonyx.compiler.lowerings.request import Lowering, Lowerings, Request
from sardonyx.compiler.lowerings.sliding import average_pool
from sardonyx.dtypes import DataType
from sardonyx.ops.fact import axis_of


def floats(x: Form, scale: Form, zero: Form | None) -> Form:
    """(x - zero) * scale."""
    level = cast(x, DataType.INT32)
    if zero is not None:
        level = level - whole(scalar(zero))
    return cast(level, DataType.FLOAT) * scalar(scale)


def bytes_of(x: Form, scale: Form, zero: Form | None, to: DataType) -> Form:
    """x / scale, rounded half to even, plus zero, kept within a type."""
    level = x / scalar(scale)
    known = select(binary("ne", level, level), 0.0, level)
    return saturated(known, None if zero is None else scalar(zero), to)


def rounded_with_zero(x: Form, scale: Form, zero: Form | None, to: DataType) -> Form:
    """x / scale + zero as one number, rounded half to even and kept within a type."""
    level = x / scalar(scale)
    if zero is not None:
        level = level + converted(scalar(zero), DataType.FLOAT)
    return saturated(select(binary("ne", level, level), 0.0, level), None, to)


def _pair(name: str) -> Lowering:
    def lower(
        request: Request, a: Form, a_scale: Form, a_zero: Form | None, b: Form, b_scale: Form,
        b_zero: Form | None, c_scale: Form, c_zero: Form | None = None,
    ) -> Form:  # fmt: skip
        made = binary(name, floats(a, a_scale, a_zero), floats(b, b_scale, b_zero))
        return rounded_with_zero(made, c_scale, c_zero, a.dtype)

    return lower


def sigmoid(
    request: Request, x: Form, x_scale: Form, x_zero: Form | None, y_scale: Form,
    y_zero: Form | None = None,
) -> Form:  # fmt: skip
    """1 / (1 + exp(-x))."""
    return bytes_of(unary("sigmoid", floats(x, x_scale, x_zero)), y_scale, y_zero, x.dtype)


def leaky_relu(
    request: Request, x: Form, x_scale: Form, x_zero: Form | None, y_scale: Form,
    y_zero: Form | None = None, *, alpha: float,
) -> Form:  # fmt: skip
    """x where it is positive, alpha * x elsewhere."""
    wide = floats(x, x_scale, x_zero)
    bent = select(binary("ge", wide, 0.0), wide, wide * alpha)
    return bytes_of(bent, y_scale, y_zero, x.dtype)


def quantized_softmax(
    request: Request, x: Form, x_scale: Form, x_zero: Form | None, y_scale: Form, y_zero: Form, *,
    axis: int, opset: int,
) -> Form:  # fmt: skip
    """Softmax along one axis."""
    if opset < 13 and axis_of(axis, len(x.shape)) != len(x.shape) - 1:
        raise NotLowered("a softmax over several axes has no native form here")
    shares = softmax(request, floats(x, x_scale, x_zero), axis)
    return bytes_of(shares, y_scale, y_zero, x.dtype)


def concat(request: Request, y_scale: Form, y_zero: Form, *inputs: Form, axis: int) -> Form:
    """Quantized tensors one after another; each comes with its scale and zero point."""
    parts = [
        bytes_of(floats(x, scale, zero), y_scale, y_zero, y_zero.dtype)
        for x, scale, zero in zip(inputs[::3], inputs[1::3], inputs[2::3], strict=True)
    ]
    return Join(request.shape(), y_zero.dtype, tuple(parts), axis_of(axis, len(parts[0].shape)))


def where(
    request: Request, condition: Form, x: Form, x_scale: Form, x_zero: Form, y: Form,
    y_scale: Form, y_zero: Form, z_scale: Form, z_zero: Form,
) -> Form:  # fmt: skip
    """x where the condition holds, y elsewhere."""
    chosen = select(condition, floats(x, x_scale, x_zero), floats(y, y_scale, y_zero))
    return bytes_of(chosen, z_scale, z_zero, x.dtype)


def reduce_mean(
    request: Request, x: Form, scale: Form, zero: Form | None, y_scale: Form,
    y_zero: Form | None = None, *, axes: tuple[int, ...], keepdims: int,
) -> Form:  # fmt: skip
    """The mean over some axes."""
    chosen = [axis_of(axis, len(x.shape)) for axis in axes] or list(range(len(x.shape)))
    made = rounded_with_zero(_mean(floats(x, scale, zero), chosen), y_scale, y_zero, x.dtype)
    return reshape(made, request.shape())


def _mean(x: Form, axes: list[int]) -> Form:
    return fold("add", x, axes, 0) / count(x, axes)


def global_average_pool(
    request: Request, x: Form, x_scale: Form, x_zero: Form, y_scale: Form, y_zero: Form, *,
    channels_last: int,
) -> Form:  # fmt: skip
    """The mean of each channel."""
    rank = len(x.shape)
    axes = list(range(1, rank - 1) if channels_last else range(2, rank))
    return rounded_with_zero(_mean(floats(x, x_scale, x_zero), axes), y_scale, y_zero, x.dtype)


def pooled(
    request: Request, x: Form, x_scale: Form, x_zero: Form | None, y_scale: Form,
    y_zero: Form | None = None, *, channels_last: int, **steps: Any,
) -> Form:  # fmt: skip
    """The mean of each window."""
    if channels_last:
        raise NotLowered("an image with its channels last has no native form here")
    mean = average_pool(request, floats(x, x_scale, x_zero), dilations=None, **steps)
    return rounded_with_zero(mean, y_scale, y_zero, x.dtype)


def quantize_linear(
    request: Request, x: Form, scale: Form, zero: Form | None = None, *, axis: int | None
) -> Form:
    """x / scale + zero point, rounded half to even."""
    return quantize(
        request, x, scale, zero, axis=1 if axis is None else axis, block_size=0, output_dtype=0,
        precision=0, saturate=1,
    )  # fmt: skip


def dequantize_linear(
    request: Request, x: Form, scale: Form, zero: Form | None = None, *, axis: int | None
) -> Form:
    """(x - zero point) * scale."""
    place = 1 if axis is None else axis
    return dequantize(request, x, scale, zero, axis=place, block_size=0, output_dtype=0)


LOWERINGS: Lowerings = {
    ("com.microsoft", "QLinearAdd"): _pair("add"),
    ("com.microsoft", "QLinearMul"): _pair("mul"),
    ("com.microsoft", "QLinearSigmoid"): sigmoid,
    ("com.microsoft", "QLinearLeakyRelu"): leaky_relu,
    ("com.microsoft", "QLinearSoftmax"): quantized_softmax,
    ("com.microsoft", "QLinearConcat"): concat,
    ("com.microsoft", "QLinearWhere"): where,
    ("com.microsoft", "QLinearReduceMean"): reduce_mean,
    ("com.microsoft", "QLinearGlobalAveragePool"): global_average_pool,
    ("com.microsoft", "QLinearAveragePool"): pooled,
    ("com.microsoft", "QuantizeLinear"): quantize_linear,
    ("com.microsoft", "DequantizeLinear"): dequantize_linear,
}
