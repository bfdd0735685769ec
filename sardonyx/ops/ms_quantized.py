# mypy: disable-error-code="misc, no-any-return"
"""Elementwise operators, reductions and moves on quantized tensors, and quantization itself."""

from typing import Any

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.errors import EvaluationError, InferenceError
from sardonyx.ops.fact import Fact, axis_of, broadcast, same_size, tensor
from sardonyx.ops.ms_arithmetic import dequantize, plus, quantize, requantize, same_type, softmax
from sardonyx.ops.operator import Operator
from sardonyx.ops.precision import Array, widen
from sardonyx.ops.special import sigmoid


class _QuantizedBinary(Operator):
    """Two quantized tensors joined element by element."""

    domain = "com.microsoft"
    signatures_of_pair = (
        "1(A: T, A_scale: tensor(float), A_zero_point?: T, B: T, B_scale: tensor(float),"
        " B_zero_point?: T, C_scale: tensor(float), C_zero_point?: T) -> C: T; T: int8 uint8",
    )

    def infer(
        a: Fact, a_scale: Fact, a_zero: Fact | None, b: Fact, b_scale: Fact, b_zero: Fact | None,
        c_scale: Fact, c_zero: Fact | None = None,
    ) -> Fact:  # fmt: skip
        return tensor(a.dtype or b.dtype, broadcast(a.shape, b.shape))


class QLinearAdd(_QuantizedBinary):
    """A + B."""

    signatures = _QuantizedBinary.signatures_of_pair

    def reference(
        a: Array, a_scale: Array, a_zero: Array | None, b: Array, b_scale: Array,
        b_zero: Array | None, c_scale: Array, c_zero: Array | None = None,
    ) -> Array:  # fmt: skip
        total = dequantize(a, a_scale, a_zero) + dequantize(b, b_scale, b_zero)
        return requantize(total, c_scale, c_zero, a.dtype)


class QLinearMul(_QuantizedBinary):
    """A * B."""

    signatures = _QuantizedBinary.signatures_of_pair

    def reference(
        a: Array, a_scale: Array, a_zero: Array | None, b: Array, b_scale: Array,
        b_zero: Array | None, c_scale: Array, c_zero: Array | None = None,
    ) -> Array:  # fmt: skip
        product = dequantize(a, a_scale, a_zero) * dequantize(b, b_scale, b_zero)
        return requantize(product, c_scale, c_zero, a.dtype)


class QLinearSigmoid(Operator):
    """1 / (1 + exp(-X))."""

    domain = "com.microsoft"
    signatures = (
        "1(X: T, X_scale: tensor(float), X_zero_point?: T, Y_scale: tensor(float),"
        " Y_zero_point?: T) -> Y: T; T: int8 uint8",
    )
    infer = same_type

    def reference(
        x: Array, x_scale: Array, x_zero: Array | None, y_scale: Array, y_zero: Array | None = None
    ) -> Array:
        return quantize(sigmoid(dequantize(x, x_scale, x_zero)), y_scale, y_zero, x.dtype)


class QLinearLeakyRelu(Operator):
    """X where it is positive, alpha * X elsewhere."""

    domain = "com.microsoft"
    signatures = (
        "1(X: T, X_scale: tensor(float), X_zero_point?: T, Y_scale: tensor(float),"
        " Y_zero_point?: T, alpha: float = 0.01) -> Y: T; T: int8 uint8",
    )
    infer = same_type

    def reference(
        x: Array, x_scale: Array, x_zero: Array | None, y_scale: Array,
        y_zero: Array | None = None, *, alpha: float,
    ) -> Array:  # fmt: skip
        wide = dequantize(x, x_scale, x_zero)
        bent = np.where(wide >= 0, wide, np.float32(alpha) * wide)
        return quantize(bent, y_scale, y_zero, x.dtype)


class QLinearSoftmax(Operator):
    """Softmax along one axis; before opset 13 over all axes from it on."""

    domain = "com.microsoft"
    signatures = (
        "1(X: T, X_scale: tensor(float), x_zero_point?: T, y_scale: tensor(float),"
        " y_zero_point: T, axis: int = -1, opset: int) -> Y: T; T: int8 uint8",
    )

    def infer(x: Fact, *rest: Fact | None, axis: int, opset: int) -> Fact:
        if x.rank is not None:
            axis_of(axis, x.rank)
        return tensor(x.dtype, x.shape)

    def reference(
        x: Array, x_scale: Array, x_zero: Array | None, y_scale: Array, y_zero: Array, *,
        axis: int, opset: int,
    ) -> Array:  # fmt: skip
        wide = dequantize(x, x_scale, x_zero)
        axis %= x.ndim
        if opset < 13:
            rows = int(np.prod(x.shape[:axis], dtype=np.int64))
            shares = softmax(wide.reshape(rows, -1)).reshape(x.shape) if x.size else wide
        else:
            shares = softmax(wide, axis)
        return quantize(shares, y_scale, y_zero, x.dtype)


class QLinearConcat(Operator):
    """Quantized tensors joined along an axis; each comes with its scale and zero point."""

    domain = "com.microsoft"
    signatures = (
        "1(Y_scale: TF, Y_zero_point: T8, inputs+: each TV, axis: int) -> Y: T8; T8: int8 uint8;"
        " TF: float; TV: float int8 uint8",
    )

    def infer(y_scale: Fact, y_zero: Fact, *inputs: Fact, axis: int) -> Fact:
        if len(inputs) % 3:
            raise InferenceError(f"{len(inputs)} inputs are not tensors with scale and zero point")
        shapes = [fact.shape for fact in inputs[::3]]
        known = next((shape for shape in shapes if shape is not None), None)
        dtype = y_zero.dtype
        if known is None:
            return tensor(dtype, None)
        at = axis_of(axis, len(known))
        if any(shape is not None and len(shape) != len(known) for shape in shapes):
            raise InferenceError("tensors of different rank are joined")
        total = plus(*(None if shape is None else shape[at] for shape in shapes))
        sizes = list(known)
        for shape in shapes:
            for index, size in enumerate(shape or ()):
                if index != at:
                    sizes[index] = same_size(sizes[index], size, f"sizes of axis {index} differ")
        sizes[at] = total
        return tensor(dtype, sizes)

    def reference(y_scale: Array, y_zero: Array, *inputs: Array, axis: int) -> Array:
        if len(inputs) % 3:
            raise EvaluationError(f"{len(inputs)} inputs are not tensors with scale and zero point")
        parts = (inputs[0::3], inputs[1::3], inputs[2::3])
        wide = [dequantize(x, scale, zero) for x, scale, zero in zip(*parts, strict=True)]
        return quantize(np.concatenate(wide, axis), y_scale, y_zero, y_zero.dtype)


class QLinearWhere(Operator):
    """X where the condition holds, Y elsewhere."""

    domain = "com.microsoft"
    signatures = (
        "1(condition: B, X: T, x_scale: TF, x_zero_point: T, Y: T, y_scale: TF, y_zero_point: T,"
        " z_scale: TF, z_zero_point: T) -> Z: T; B: bool; TF: float; T: int8 uint8",
    )

    def infer(condition: Fact, x: Fact, x_scale: Fact, x_zero: Fact, y: Fact, *rest: Fact) -> Fact:
        return tensor(x.dtype or y.dtype, broadcast(condition.shape, x.shape, y.shape))

    def reference(
        condition: Array, x: Array, x_scale: Array, x_zero: Array, y: Array, y_scale: Array,
        y_zero: Array, z_scale: Array, z_zero: Array,
    ) -> Array:  # fmt: skip
        left = quantize(dequantize(x, x_scale, x_zero), z_scale, z_zero, x.dtype)
        right = quantize(dequantize(y, y_scale, y_zero), z_scale, z_zero, x.dtype)
        return np.where(condition, left, right)


class QLinearReduceMean(Operator):
    """The mean over some axes."""

    domain = "com.microsoft"
    signatures = (
        "1(data: T, data_scale: tensor(float), data_zero_point?: T, reduced_scale: tensor(float),"
        " reduced_zero_point?: T, axes: ints, keepdims: int) -> reduced: T; T: int8 uint8",
    )

    def infer(data: Fact, *rest: Fact | None, axes: tuple[int, ...], keepdims: int) -> Fact:
        if data.shape is None:
            return tensor(data.dtype, None)
        chosen = {axis_of(axis, len(data.shape)) for axis in axes} or set(range(len(data.shape)))
        sizes = [
            1 if index in chosen else size
            for index, size in enumerate(data.shape)
            if keepdims or index not in chosen
        ]
        return tensor(data.dtype, sizes)

    def reference(
        data: Array, scale: Array, zero: Array | None, new_scale: Array,
        new_zero: Array | None = None, *, axes: tuple[int, ...], keepdims: int,
    ) -> Array:  # fmt: skip
        wide = dequantize(data, scale, zero)
        mean = np.asarray(wide.mean(tuple(axes) or None, keepdims=bool(keepdims)))
        return requantize(mean, new_scale, new_zero, data.dtype)


def _along(parameter: Array | None, axis: int | None, rank: int) -> Array | None:
    """A scale or zero point shaped so that it broadcasts along the axis it belongs to."""
    if parameter is None or parameter.size == 1:
        return None if parameter is None else parameter.reshape(())
    shape = [1] * rank
    shape[1 if axis is None else axis] = -1
    return parameter.reshape(shape)


class QuantizeLinear(Operator):
    """x / y_scale + y_zero_point, rounded half to even, in 4, 8 or 16 bits."""

    domain = "com.microsoft"
    signatures = (
        "1(x: T1, y_scale: T1, y_zero_point?: T2, axis?: int) -> y: T2; T1: float float16;"
        " T2: int4s int16 int8 uint16 uint8",
    )

    def infer(x: Fact, scale: Fact, zero: Fact | None = None, *, axis: int | None) -> Fact:
        if axis is not None and x.rank is not None:
            axis_of(axis, x.rank)
        return tensor(DataType.UINT8 if zero is None else zero.dtype, x.shape)

    def reference(x: Array, scale: Array, zero: Array | None = None, *, axis: int | None) -> Array:
        step = _along(widen(scale), axis, x.ndim)
        assert step is not None
        dtype: Any = np.uint8 if zero is None else zero.dtype
        return quantize(widen(x), step, _along(zero, axis, x.ndim), dtype)


class DequantizeLinear(Operator):
    """(x - x_zero_point) * x_scale."""

    domain = "com.microsoft"
    signatures = (
        "1(x: T1, x_scale: T2, x_zero_point?: T1, axis?: int) -> y: T2;"
        " T1: int4s int16 int32 int8 uint16 uint8; T2: float float16",
    )

    def infer(x: Fact, scale: Fact, zero: Fact | None = None, *, axis: int | None) -> Fact:
        if axis is not None and x.rank is not None:
            axis_of(axis, x.rank)
        return tensor(scale.dtype, x.shape)

    def reference(x: Array, scale: Array, zero: Array | None = None, *, axis: int | None) -> Array:
        step = _along(scale, axis, x.ndim)
        assert step is not None
        return dequantize(x, step, _along(zero, axis, x.ndim)).astype(scale.dtype)
