# mypy: disable-error-code="misc, no-any-return"
"""Matrix products with something folded in: transposes, scales, activations, quantization."""

from collections.abc import Callable
from typing import Any

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.errors import InferenceError, UnsupportedError
from sardonyx.graph import Value
from sardonyx.ops.build import Builder
from sardonyx.ops.element_type import cast_like
from sardonyx.ops.fact import Fact, Sizes, same_size, tensor
from sardonyx.ops.ms_arithmetic import centred, dequantize, integer_product, saturate, size_of
from sardonyx.ops.operator import Operator
from sardonyx.ops.precision import Array, widen
from sardonyx.ops.product import Gemm, product_shape
from sardonyx.ops.special import sigmoid, softplus

Parameters = tuple[float, ...]

_ACTIVATIONS: dict[str, tuple[Callable[..., Array], Parameters]] = {
    "Relu": (lambda x: np.maximum(x, 0), ()),
    "Tanh": (np.tanh, ()),
    "Sigmoid": (sigmoid, ()),
    "Softplus": (softplus, ()),
    "Softsign": (lambda x: x / (1 + np.abs(x)), ()),
    "LeakyRelu": (lambda x, alpha: np.where(x >= 0, x, alpha * x), (0.01,)),
    "ThresholdedRelu": (lambda x, alpha: np.where(x > alpha, x, 0), (1.0,)),
    "Elu": (lambda x, alpha: np.where(x >= 0, x, alpha * np.expm1(x)), (1.0,)),
    "Celu": (lambda x, alpha: np.where(x >= 0, x, alpha * np.expm1(x / alpha)), (1.0,)),
    "Selu": (
        lambda x, alpha, gamma: gamma * np.where(x > 0, x, alpha * np.expm1(x)),
        (1.67326319217681884765625, 1.05070102214813232421875),
    ),
    "ScaledTanh": (lambda x, alpha, beta: alpha * np.tanh(beta * x), (1.0, 1.0)),
    "ParametricSoftplus": (lambda x, alpha, beta: alpha * softplus(beta * x), (1.0, 1.0)),
    "HardSigmoid": (lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1), (0.2, 0.5)),
    "Clip": (np.clip, (-np.inf, np.inf)),
}
"""By name: a function of x and parameters, and their defaults."""


def activate(x: Array, name: str | None, parameters: Parameters) -> Array:
    """An activation named by an attribute; parameters that are not given have their defaults."""
    if not name:
        return x
    if name not in _ACTIVATIONS:
        raise UnsupportedError(f"the activation '{name}' is not known")
    function, defaults = _ACTIVATIONS[name]
    values = (*parameters, *defaults[len(parameters) :])[: len(defaults)]
    return np.asarray(function(x, *map(x.dtype.type, values)))


def build_activation(build: Builder, x: Value, name: str | None, parameters: Parameters) -> Value:
    """The same as nodes."""
    if not name:
        return x
    if name not in _ACTIVATIONS:
        raise UnsupportedError(f"the activation '{name}' is not known")
    defaults = _ACTIVATIONS[name][1]
    values = (*parameters, *defaults[len(parameters) :])[: len(defaults)]
    if name in ("ScaledTanh", "ParametricSoftplus", "Clip"):
        first, second = (cast_like(build, build.constant(np.float32(value)), x) for value in values)
        if name == "Clip":
            return build.Clip(x, first, second)
        inner = build.Mul(x, second)
        return build.Mul(
            first, build.Tanh(inner) if name == "ScaledTanh" else build.Softplus(inner)
        )
    names = dict(zip(("alpha", "gamma" if name == "Selu" else "beta"), values, strict=False))
    return build.node(name, (x,), 1, "", names)


def _turned(array: Array, transposed: int, batch_transposed: int) -> Array:
    """Rows from the first axis where asked for, then the last two axes swapped."""
    if batch_transposed and array.ndim > 2:
        array = np.moveaxis(array, 0, -2)
    return array.swapaxes(-1, -2) if transposed and array.ndim > 1 else array


def _turned_sizes(shape: Sizes | None, transposed: int, batch_transposed: int) -> Sizes | None:
    if shape is None or len(shape) < 2:
        return shape
    if batch_transposed and len(shape) > 2:
        shape = (*shape[1:-1], shape[0], shape[-1])
    return (*shape[:-2], shape[-1], shape[-2]) if transposed else shape


class FusedMatMul(Operator):
    """alpha * A * B, with the last axes or the leading ones of A and B transposed on demand."""

    domain = "com.microsoft"
    signatures = (
        "1(A: T, B: T, alpha: float = 1.0, transA: int = 0, transB: int = 0,"
        " transBatchA: int = 0, transBatchB: int = 0) -> Y: T; T: floats",
    )

    def infer(
        a: Fact, b: Fact, *, transA: int, transB: int, transBatchA: int, transBatchB: int, **_: Any
    ) -> Fact:
        left = _turned_sizes(a.shape, transA, transBatchA)
        right = _turned_sizes(b.shape, transB, transBatchB)
        return tensor(a.dtype or b.dtype, product_shape(left, right))

    def reference(
        a: Array, b: Array, alpha: float, transA: int, transB: int, transBatchA: int,
        transBatchB: int,
    ) -> Array:  # fmt: skip
        left = _turned(widen(a), transA, transBatchA)
        right = _turned(widen(b), transB, transBatchB)
        return np.asarray(left @ right * left.dtype.type(alpha)).astype(a.dtype)


class TransposeMatMul(Operator):
    """FusedMatMul under an older name."""

    domain = "com.microsoft"
    signatures = (
        "1(A: T, B: T, alpha: float = 1.0, transA: int = 0, transB: int = 0) -> Y: T; T: floats",
    )

    def infer(a: Fact, b: Fact, alpha: float, transA: int, transB: int) -> Fact:
        left, right = _turned_sizes(a.shape, transA, 0), _turned_sizes(b.shape, transB, 0)
        return tensor(a.dtype or b.dtype, product_shape(left, right))

    def reference(a: Array, b: Array, alpha: float, transA: int, transB: int) -> Array:
        left, right = _turned(widen(a), transA, 0), _turned(widen(b), transB, 0)
        return np.asarray(left @ right * left.dtype.type(alpha)).astype(a.dtype)


class FusedGemm(Operator):
    """Gemm and an activation behind it."""

    domain = "com.microsoft"
    signatures = (
        "1(A: T, B: T, C?: T, activation?: string, activation_alpha?: float,"
        " activation_beta?: float, activation_gamma?: float, alpha: float = 1.0,"
        " beta: float = 1.0, transA: int = 0, transB: int = 0) -> Y: T; T: floats3 wide",
    )

    def infer(
        a: Fact, b: Fact, c: Fact | None = None, *, alpha: float, beta: float, transA: int,
        transB: int, **_: Any,
    ) -> Fact:  # fmt: skip
        return Gemm.infer(a, b, c, alpha=alpha, beta=beta, transA=transA, transB=transB)

    def reference(
        a: Array, b: Array, c: Array | None = None, *, activation: str | None,
        activation_alpha: float | None, activation_beta: float | None,
        activation_gamma: float | None, **steps: Any,
    ) -> Array:  # fmt: skip
        given = (activation_alpha, activation_beta, activation_gamma)
        wide = None if c is None else widen(c)
        product = Gemm.reference(widen(a), widen(b), wide, **steps)
        parameters = tuple(item for item in given if item is not None)
        return activate(product, activation, parameters).astype(a.dtype)

    def function(
        build: Builder, a: Value, b: Value, c: Value | None = None, *, activation: str | None,
        activation_alpha: float | None, activation_beta: float | None,
        activation_gamma: float | None, **steps: Any,
    ) -> Value:  # fmt: skip
        given = (activation_alpha, activation_beta, activation_gamma)
        parameters = tuple(item for item in given if item is not None)
        return build_activation(build, build.Gemm(a, b, c, **steps), activation, parameters)


class MatMulInteger16(Operator):
    """The matrix product of 16-bit integers in 32 bits."""

    domain = "com.microsoft"
    signatures = ("1(A: T1, B: T2) -> Y: T3; T1: int16 uint16; T2: int16 uint16; T3: int32 uint32",)

    def infer(a: Fact, b: Fact) -> Fact:
        dtype = None if a.dtype is None or b.dtype is None else DataType.INT32
        if a.dtype == b.dtype == DataType.UINT16:
            dtype = DataType.UINT32
        return tensor(dtype, product_shape(a.shape, b.shape))

    def reference(a: Array, b: Array) -> Array:
        unsigned = a.dtype == b.dtype == np.uint16
        return integer_product(a, b).view(np.uint32 if unsigned else np.int32)


class DynamicQuantizeMatMul(Operator):
    """A * B for a B of 8 bits; A is quantized to uint8 by its own range on the way."""

    domain = "com.microsoft"
    signatures = (
        "1(A: T1, B: T2, b_scale: T1, b_zero_point?: T2, bias?: T1) -> Y: T1;"
        " T1: float; T2: int8 uint8",
    )

    def infer(a: Fact, b: Fact, *rest: Fact | None) -> Fact:
        return tensor(a.dtype, product_shape(a.shape, b.shape))

    def reference(
        a: Array, b: Array, b_scale: Array, b_zero: Array | None = None, bias: Array | None = None
    ) -> Array:
        codes, scale, zero = quantize_by_range(a)
        product = integer_product(centred(codes, zero), centred(b, b_zero))
        result = product.astype(np.float32) * (scale * b_scale)
        return result if bias is None else result + bias


def quantize_by_range(x: Array) -> tuple[Array, Array, Array]:
    """uint8 codes that span the range of `x` and 0, their scale and zero point.

    >>> codes, scale, zero = quantize_by_range(np.float32([-1, 0, 1.55]))
    >>> codes.tolist(), round(float(scale), 3), int(zero)
    ([0, 100, 255], 0.01, 100)
    """
    low = np.float32(x.min(initial=0))
    high = np.float32(x.max(initial=0))
    scale = np.float32(1) if high == low else (high - low) / np.float32(255)
    zero = np.asarray(np.rint(np.clip(-low / scale, 0, 255)).astype(np.uint8))
    codes = saturate(np.rint(x / scale) + zero.astype(np.float32), np.uint8)
    return codes, np.asarray(scale), zero


class MatMulIntegerToFloat(Operator):
    """A * B for 8-bit A and B, scaled back to floats, plus a bias."""

    domain = "com.microsoft"
    signatures = (
        "1(A: T1, B: T2, a_scale: T3, b_scale: T3, a_zero_point?: T1, b_zero_point?: T2, bias?: T3)"
        " -> Y: T3; T1: int8 uint8; T2: int8 uint8; T3: float float16",
    )

    def infer(a: Fact, b: Fact, a_scale: Fact, *rest: Fact | None) -> Fact:
        return tensor(a_scale.dtype, product_shape(a.shape, b.shape))

    def reference(
        a: Array, b: Array, a_scale: Array, b_scale: Array, a_zero: Array | None = None,
        b_zero: Array | None = None, bias: Array | None = None,
    ) -> Array:  # fmt: skip
        if a_scale.size == 1:
            product = integer_product(centred(a, a_zero), centred(b, b_zero)).astype(np.float32)
            product = product * (widen(a_scale).reshape(()) * widen(b_scale))
        else:
            product = dequantize(a, a_scale, a_zero) @ dequantize(b, b_scale, b_zero)
        result = product if bias is None else product + widen(bias)
        return result.astype(a_scale.dtype)


class QGemm(Operator):
    """alpha * A * B + C for 8-bit A and B; quantized again where a scale for it is given."""

    domain = "com.microsoft"
    signatures = (
        "1(A: TA, a_scale: T, a_zero_point: TA, B: TB, b_scale: T, b_zero_point: TB, C?: TC,"
        " y_scale?: T, y_zero_point?: TYZ, alpha: float = 1.0, transA: int = 0, transB: int = 0)"
        " -> Y: TY; T: float; TA: int8 uint8; TB: int8 uint8; TC: int32; TYZ: int8 uint8;"
        " TY: float int8 uint8",
    )

    def infer(
        a: Fact, a_scale: Fact, a_zero: Fact, b: Fact, b_scale: Fact, b_zero: Fact,
        c: Fact | None = None, y_scale: Fact | None = None, y_zero: Fact | None = None, *,
        alpha: float, transA: int, transB: int,
    ) -> Fact:  # fmt: skip
        rows, inner = (size_of(a, 1), size_of(a, 0)) if transA else (size_of(a, 0), size_of(a, 1))
        other, columns = (
            (size_of(b, 1), size_of(b, 0)) if transB else (size_of(b, 0), size_of(b, 1))
        )
        same_size(inner, other, f"{a} x {b}: inner sizes differ")
        dtype = DataType.FLOAT if y_scale is None else a.dtype if y_zero is None else y_zero.dtype
        return tensor(dtype, (rows, columns))

    def reference(
        a: Array, a_scale: Array, a_zero: Array, b: Array, b_scale: Array, b_zero: Array,
        c: Array | None = None, y_scale: Array | None = None, y_zero: Array | None = None, *,
        alpha: float, transA: int, transB: int,
    ) -> Array:  # fmt: skip
        left, right = centred(a, a_zero), centred(b.T if transB else b, b_zero)
        product = integer_product(left.T if transA else left, right)
        if c is not None:
            product = product + c
        step = np.float32(alpha) * a_scale.reshape(()) * b_scale
        if y_scale is None:
            return product.astype(np.float32) * step
        ratio = product.astype(np.float32) * (step / y_scale.reshape(()))
        zero = np.zeros((), a.dtype) if y_zero is None else y_zero.reshape(())
        return saturate(np.rint(ratio) + zero.astype(np.float32), zero.dtype)


class Inverse(Operator):
    """The inverse of each square matrix."""

    domain = "com.microsoft"
    signatures = ("1(X: T) -> Y: T; T: floats3",)

    def infer(x: Fact) -> Fact:
        if x.rank is not None and x.rank < 2:
            raise InferenceError(f"{x} is not a matrix")
        same_size(size_of(x, -2), size_of(x, -1), f"{x} is not square")
        return tensor(x.dtype, x.shape)

    def reference(x: Array) -> Array:
        return np.linalg.inv(widen(x)).astype(x.dtype)


def _cosine(row: Array, others: Array) -> Array:
    return 1 - others @ row / (np.linalg.norm(row) * np.linalg.norm(others, axis=1))


_METRICS: dict[str, Callable[[Array, Array], Array]] = {
    "sqeuclidean": lambda row, others: np.square(row - others).sum(1),
    "euclidean": lambda row, others: np.sqrt(np.square(row - others).sum(1)),
    "cityblock": lambda row, others: np.abs(row - others).sum(1),
    "chebyshev": lambda row, others: np.abs(row - others).max(1),
    "braycurtis": lambda row, others: np.abs(row - others).sum(1) / np.abs(row + others).sum(1),
    "canberra": lambda row, others: np.nan_to_num(
        np.abs(row - others) / (np.abs(row) + np.abs(others))
    ).sum(1),
    "hamming": lambda row, others: (row != others).mean(1),
    "cosine": _cosine,
    "correlation": lambda row, others: _cosine(
        row - row.mean(), others - others.mean(1, keepdims=True)
    ),
}


class CDist(Operator):
    """The distance of each row of A from each row of B."""

    domain = "com.microsoft"
    signatures = ("1(A: T, B: T, metric: string = 'sqeuclidean') -> C: T; T: double float",)

    def infer(a: Fact, b: Fact, metric: str) -> Fact:
        same_size(size_of(a, 1), size_of(b, 1), "rows of A and B differ in length")
        return tensor(a.dtype, (size_of(a, 0), size_of(b, 0)))

    def reference(a: Array, b: Array, metric: str) -> Array:
        if metric not in _METRICS:
            raise UnsupportedError(f"the metric '{metric}' is not known")
        distance = _METRICS[metric]
        result = np.empty((len(a), len(b)), a.dtype)
        for index, row in enumerate(a):
            result[index] = distance(row, b)
        return result
