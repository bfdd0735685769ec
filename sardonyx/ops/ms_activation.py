# mypy: disable-error-code="misc, no-any-return"
"""Activations with a bias folded in, as graph optimizers leave them behind."""

from typing import Any

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.errors import EvaluationError, InferenceError
from sardonyx.ops.allocate import repeat, tile
from sardonyx.ops.evaluate import Context
from sardonyx.ops.fact import Fact, tensor
from sardonyx.ops.infer import InferContext
from sardonyx.ops.ms_arithmetic import (
    gelu,
    over,
    retyped,
    same_type,
    scalar,
    size_of,
    softmax,
)
from sardonyx.ops.operator import Operator
from sardonyx.ops.precision import Array, narrow, widen
from sardonyx.ops.special import sigmoid


class Gelu(Operator):
    """x * P(X <= x) for a standard normal X."""

    domain = "com.microsoft"
    signatures = ("1(X: T) -> Y: T; T: floats",)
    infer = same_type

    def reference(x: Array) -> Array:
        return narrow(gelu(widen(x)), x.dtype)


class BiasGelu(Operator):
    """Gelu of A + B, where B runs along the last axis."""

    domain = "com.microsoft"
    signatures = ("1(A: T, B: T) -> C: T; T: floats",)
    infer = same_type

    def reference(a: Array, b: Array) -> Array:
        return narrow(gelu(np.asarray(widen(a) + widen(b))), a.dtype)


class FastGelu(Operator):
    """Gelu of X + bias by the formula with tanh."""

    domain = "com.microsoft"
    signatures = ("1(X: T, bias?: T) -> Y: T; T: floats",)
    infer = same_type

    def reference(x: Array, bias: Array | None = None) -> Array:
        wide = widen(x) if bias is None else widen(x) + widen(bias)
        inner = wide * (0.7978845608028654 + 0.035677408136300125 * wide * wide)
        return narrow(0.5 * wide * (1 + np.tanh(inner)), x.dtype)


class QuickGelu(Operator):
    """x * sigmoid(alpha * x)."""

    domain = "com.microsoft"
    signatures = ("1(X: T, alpha: float = 1.702) -> Y: T; T: floats",)
    infer = same_type

    def reference(x: Array, alpha: float) -> Array:
        wide = widen(x)
        return narrow(wide * sigmoid(np.asarray(wide * wide.dtype.type(alpha))), x.dtype)


class BiasAdd(Operator):
    """X + bias + skip, where bias runs along the last axis."""

    domain = "com.microsoft"
    signatures = ("1(X: T, bias: T, skip: T) -> Y: T; T: float float16",)
    infer = same_type

    def reference(x: Array, bias: Array, skip: Array) -> Array:
        return narrow(widen(x) + widen(bias) + widen(skip), x.dtype)


class BiasSplitGelu(Operator):
    """X + bias cut in halves along the last axis: the left one times Gelu of the right one."""

    domain = "com.microsoft"
    signatures = ("1(X: T, bias: T) -> Y: T; T: float float16",)

    def infer(x: Fact, bias: Fact) -> Fact:
        if x.shape is None:
            return tensor(x.dtype, None)
        return tensor(x.dtype, (*x.shape[:-1], over(size_of(x, -1), 2)))

    def reference(x: Array, bias: Array) -> Array:
        left, right = np.split(widen(x) + widen(bias), 2, axis=-1)
        return (left * gelu(right)).astype(x.dtype)


class BiasSoftmax(Operator):
    """Softmax of data + bias over all axes from `axis` on; bias covers some of the rows only."""

    domain = "com.microsoft"
    signatures = (
        "1(data: T, bias: T, axis: int = 1, is_inner_broadcast: int) -> output: T; T: floats3",
    )

    def infer(data: Fact, bias: Fact, axis: int, is_inner_broadcast: int) -> Fact:
        if data.rank is not None and not -data.rank <= axis <= data.rank:
            raise InferenceError(f"axis {axis} does not fit rank {data.rank}")
        return tensor(data.dtype, data.shape)

    def reference(data: Array, bias: Array, axis: int, is_inner_broadcast: int) -> Array:
        axis += data.ndim if axis < 0 else 0
        columns = int(np.prod(data.shape[axis:], dtype=np.int64))
        if data.size == 0:
            return data
        rows = data.size // columns
        spread = widen(bias).reshape(-1, columns)
        if rows % len(spread):
            raise EvaluationError(f"a bias of {len(spread)} rows does not cover {rows} rows")
        times = rows // len(spread)
        spread = repeat(spread, times, 0) if is_inner_broadcast else tile(spread, (times, 1))
        result = softmax(widen(data).reshape(rows, columns) + spread)
        return result.reshape(data.shape).astype(data.dtype)


class BiasDropout(Operator):
    """Dropout of data + bias, plus a residual; in inference just the sum."""

    domain = "com.microsoft"
    random = True
    signatures = (
        "1(data: T, bias: T, residual?: T, ratio?: T1, training_mode?: T2, seed?: int)"
        " -> (output: T, mask?: T2); T: floats; T1: floats; T2: bool",
    )

    def infer(data: Fact, *rest: Fact | None, context: InferContext, **_: Any) -> tuple[Fact, ...]:
        return (tensor(data.dtype, data.shape), retyped(data, DataType.BOOL))[: context.outputs]

    def reference(
        data: Array, bias: Array, residual: Array | None = None, ratio: Array | None = None,
        training_mode: Array | None = None, *, seed: int | None, context: Context,
    ) -> tuple[Array, Array]:  # fmt: skip
        total = widen(data) + widen(bias)
        mask = np.ones(data.shape, np.bool_)
        share = float(scalar(ratio, 0.5))
        if bool(scalar(training_mode, False)) and share > 0:
            mask = context.random(seed).random(data.shape) >= share
            total = np.where(mask, total / total.dtype.type(1 - share), 0)
        if residual is not None:
            total = total + widen(residual)
        return narrow(total, data.dtype), mask
