"""Matrix products and convolutions of quantized tensors."""

from typing import Any

import ml_dtypes
import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.errors import EvaluationError
from sardonyx.graph import Value
from sardonyx.ops.build import Builder
from sardonyx.ops.convolution import along_channels, convolution_shape, convolve
from sardonyx.ops.fact import Fact, tensor
from sardonyx.ops.operator import Operator
from sardonyx.ops.precision import Array
from sardonyx.ops.product import product_shape
from sardonyx.ops.sliding import Ints, slide


def saturate(values: Array, zero_point: Array) -> Array:
    """Round to nearest even, move by the zero point, and clip into the zero point's type."""
    dtype = zero_point.dtype
    limits: Any = _LIMITS[dtype.kind in "iu"](dtype)
    rounded = values
    if dtype.kind in "iu":
        # No integer stands for NaN: it becomes the zero point, as in native code.
        rounded = np.rint(np.where(np.isnan(values), values.dtype.type(0), values))
    moved: Array = np.asarray(rounded + zero_point.astype(values.dtype))
    return moved.clip(float(limits.min), float(limits.max)).astype(dtype)


_LIMITS: tuple[Any, Any] = (ml_dtypes.finfo, np.iinfo)


def _minus(array: Array, zero_point: Array | None) -> Array:
    """What a zero point stands for taken off, in float64: products and sums of it are exact."""
    wide = array.astype(np.float64)
    return wide if zero_point is None else wide - zero_point.astype(np.float64)


def _by_row(parameter: Array | None) -> Array | None:
    """A vector with one element a row, so that it broadcasts along columns."""
    if parameter is None or parameter.ndim != 1 or parameter.size == 1:
        return parameter
    return parameter[:, None]


def _to_int32(array: Array) -> Array:
    return np.asarray(array).astype(np.int64).astype(np.int32)


class MatMulInteger(Operator):
    """The matrix product of 8-bit integers less their zero points, in 32 bits."""

    signatures = (
        "10(A: T1, B: T2, a_zero_point?: T1, b_zero_point?: T2) -> Y: T3;"
        " T1: int8 uint8; T2: int8 uint8; T3: int32",
    )

    def infer(
        a: Fact, b: Fact, a_zero_point: Fact | None = None, b_zero_point: Fact | None = None
    ) -> Fact:
        return tensor(DataType.INT32, product_shape(a.shape, b.shape))

    def reference(
        a: Array, b: Array, a_zero_point: Array | None = None, b_zero_point: Array | None = None
    ) -> Array:
        return _to_int32(np.matmul(_minus(a, _by_row(a_zero_point)), _minus(b, b_zero_point)))


class QLinearMatMul(Operator):
    """The matrix product of two quantized matrices, quantized again."""

    signatures = (
        "10(a: T1, a_scale: tensor(float), a_zero_point: T1, b: T2, b_scale: tensor(float),"
        " b_zero_point: T2, y_scale: tensor(float), y_zero_point: T3) -> y: T3;"
        " T1: int8 uint8; T2: int8 uint8; T3: int8 uint8",
        "21(a: T1, a_scale: TS, a_zero_point: T1, b: T2, b_scale: TS, b_zero_point: T2,"
        " y_scale: TS, y_zero_point: T3) -> y: T3; TS: bfloat16 float float16;"
        " T1: float8s int8 uint8; T2: float8s int8 uint8; T3: float8s int8 uint8",
    )

    def infer(*inputs: Fact) -> Fact:
        a, _, _, b, _, _, _, y_zero_point = inputs
        return tensor(y_zero_point.dtype, product_shape(a.shape, b.shape))

    def reference(*inputs: Array) -> Array:
        a, a_scale, a_zero_point, b, b_scale, b_zero_point, y_scale, y_zero_point = inputs
        total = np.matmul(_minus(a, _by_row(a_zero_point)), _minus(b, b_zero_point))
        scale = _float32(_by_row(a_scale)) * _float32(b_scale) / _float32(y_scale)
        if a.ndim == 1:
            scale = scale.reshape(scale.shape[-1:])
        return saturate(np.asarray(total, np.float32) * scale, y_zero_point)

    def function(build: Builder, *inputs: Value) -> Any:
        a, a_scale, a_zero_point, b, b_scale, b_zero_point, y_scale, y_zero_point = inputs

        def plain(scale: Value) -> Any:
            return build.Cast(scale, to=DataType.FLOAT)

        left = build.DequantizeLinear(a, plain(a_scale), a_zero_point, axis=-2)
        right = build.DequantizeLinear(b, plain(b_scale), b_zero_point, axis=-1)
        product = build.MatMul(left, right)
        return build.QuantizeLinear(product, plain(y_scale), y_zero_point)


def _float32(array: Array | None) -> Array:
    return np.asarray(array).astype(np.float32)


class ConvInteger(Operator):
    """Convolution of 8-bit integers less their zero points, in 32 bits."""

    signatures = (
        "10(x: T1, w: T2, x_zero_point?: T1, w_zero_point?: T2, auto_pad: string = 'NOTSET',"
        " dilations?: ints, group: int = 1, kernel_shape?: ints, pads?: ints, strides?: ints)"
        " -> y: T3; T1: int8 uint8; T2: int8 uint8; T3: int32",
    )

    def infer(
        x: Fact, w: Fact, x_zero_point: Fact | None = None, w_zero_point: Fact | None = None,
        **attributes: Any,
    ) -> Fact:  # fmt: skip
        return tensor(DataType.INT32, convolution_shape(x, w, **attributes))

    def reference(
        x: Array, w: Array, x_zero_point: Array | None = None, w_zero_point: Array | None = None,
        **attributes: Any,
    ) -> Array:  # fmt: skip
        return _to_int32(_convolve_exactly(x, w, x_zero_point, w_zero_point, **attributes))


class QLinearConv(Operator):
    """Convolution of a quantized image with quantized filters, quantized again."""

    signatures = (
        "10(x: T1, x_scale: tensor(float), x_zero_point: T1, w: T2, w_scale: tensor(float),"
        " w_zero_point: T2, y_scale: tensor(float), y_zero_point: T3, B?: T4,"
        " auto_pad: string = 'NOTSET', dilations?: ints, group: int = 1, kernel_shape?: ints,"
        " pads?: ints, strides?: ints) -> y: T3;"
        " T1: int8 uint8; T2: int8 uint8; T3: int8 uint8; T4: int32",
    )

    def infer(*inputs: Fact, **attributes: Any) -> Fact:
        x, _, _, w, _, _, _, y_zero_point, *_ = inputs
        return tensor(y_zero_point.dtype, convolution_shape(x, w, **attributes))

    def reference(*inputs: Array, **attributes: Any) -> Array:
        x, x_scale, x_zero_point, w, w_scale, w_zero_point, y_scale, y_zero_point, *rest = inputs
        _require_one_each(w_scale, w, "scales")
        total = _convolve_exactly(x, w, x_zero_point, w_zero_point, **attributes)
        if rest and rest[0] is not None:
            total = total + along_channels(rest[0].astype(np.float64), x.ndim)
        scale = x_scale.reshape(()) * along_channels(w_scale, x.ndim) / y_scale.reshape(())
        return saturate(total.astype(np.float32) * scale, y_zero_point.reshape(()))


def _require_one_each(found: Array | None, w: Array, what: str) -> None:
    """An error unless there is one number for all filters, or one for each."""
    if found is not None and found.size not in (1, w.shape[0]):
        raise EvaluationError(f"{found.size} {what} of weights do not fit {w.shape[0]} filters")


def _convolve_exactly(
    x: Array, w: Array, x_zero_point: Array | None, w_zero_point: Array | None, *,
    group: int, kernel_shape: Ints | None, **steps: Any,
) -> Array:  # fmt: skip
    _require_one_each(w_zero_point, w, "zero points")
    by_filter = None if w_zero_point is None else w_zero_point.reshape(-1, *(1,) * (w.ndim - 1))
    by_image = None if x_zero_point is None else x_zero_point.reshape(())
    sliding = slide(x.shape[2:], w.shape[2:], **steps)
    return convolve(_minus(x, by_image), _minus(w, by_filter), sliding, group)
