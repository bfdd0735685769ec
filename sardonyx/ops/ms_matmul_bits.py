# mypy: disable-error-code="misc, no-any-return"
"""Weights of a few bits an element, quantized in blocks: products and look-ups."""

import numpy as np

from sardonyx.dims import ceil_divide
from sardonyx.dtypes import DataType, unpack
from sardonyx.errors import EvaluationError, InferenceError, UnsupportedError
from sardonyx.ops.fact import Fact, axis_of, same_size, tensor
from sardonyx.ops.ms_arithmetic import size_of, times
from sardonyx.ops.operator import Operator
from sardonyx.ops.precision import Array, widen


def _codes(packed: Array, bits: int, rows: int, count: int) -> Array:
    """`count` codes from each of `rows` rows of bytes, as float32."""
    content = packed.reshape(rows, -1)
    if bits == 8:
        return content[:, :count].astype(np.float32)
    width = content.shape[1]
    flat = unpack(np.ascontiguousarray(content).reshape(-1), bits, rows * width * 8 // bits)
    return flat.reshape(rows, -1)[:, :count].astype(np.float32)


class MatMulNBits(Operator):
    """A * B' for weights B of 2, 4 or 8 bits, with a scale and zero point for each block."""

    domain = "com.microsoft"
    signatures = (
        "1(A: T1, B: T2, scales: T1, zero_points?: T3, g_idx?: T4, bias?: T1, K: int, N: int,"
        " accuracy_level: int = 0, bits: int = 4, block_size: int, weight_prepacked: int = 0)"
        " -> Y: T1; T1: bfloat16 float float16; T2: uint8; T3: bfloat16 float float16 uint8;"
        " T4: int32",
    )

    def infer(
        a: Fact, b: Fact, scales: Fact, *rest: Fact | None, K: int, N: int, accuracy_level: int,
        bits: int, block_size: int, weight_prepacked: int,
    ) -> Fact:  # fmt: skip
        same_size(size_of(a, -1), K, "A does not have K columns")
        return tensor(a.dtype, None if a.shape is None else (*a.shape[:-1], N))

    def reference(
        a: Array, b: Array, scales: Array, zeros: Array | None = None, groups: Array | None = None,
        bias: Array | None = None, *, K: int, N: int, accuracy_level: int, bits: int,
        block_size: int, weight_prepacked: int,
    ) -> Array:  # fmt: skip
        if weight_prepacked:
            raise UnsupportedError("weights in a device's own layout cannot be read")
        if bits not in (2, 4, 8):
            raise UnsupportedError(f"weights of {bits} bits are not known")
        blocks = int(ceil_divide(K, block_size))  # type: ignore[arg-type]
        weights = _codes(b, bits, N, K)
        steps = widen(scales).reshape(N, blocks)
        if zeros is None:
            centre = np.full((N, blocks), 1 << (bits - 1), np.float32)
        elif zeros.dtype == np.uint8:
            centre = _codes(zeros, bits, N, blocks)
        else:
            centre = widen(zeros).reshape(N, -1)[:, :blocks]
        block = np.arange(K) // block_size if groups is None else groups[:K]
        weights = (weights - centre[:, block]) * steps[:, block]
        result = widen(a) @ weights.T
        return (result if bias is None else result + widen(bias)).astype(a.dtype)


class GatherBlockQuantized(Operator):
    """Rows looked up in a table that is quantized in blocks; indices outside of it give zeros."""

    domain = "com.microsoft"
    signatures = (
        "1(data: T1, indices: Tind, scales: T2, zero_points?: T1, bits: int = 4,"
        " block_size: int = 128, gather_axis: int = 0, quantize_axis: int = 1) -> output: T2;"
        " T1: float8s int4s float4e2m1 uint8; T2: bfloat16 float float16; Tind: int32 int64",
    )

    def infer(
        data: Fact, indices: Fact, scales: Fact, zeros: Fact | None = None, *, bits: int,
        block_size: int, gather_axis: int, quantize_axis: int,
    ) -> Fact:  # fmt: skip
        if data.shape is None or indices.shape is None:
            return tensor(scales.dtype, None)
        if data.dtype not in (None, DataType.UINT8) and zeros is not None and data.dtype.is_float:
            raise InferenceError("floats of a few bits have no zero points")
        axis = axis_of(gather_axis, len(data.shape), "gather_axis")
        shape = list(data.shape)
        if data.dtype == DataType.UINT8:
            shape[-1] = times(shape[-1], 8 // bits)
        elif data.dtype is None:
            shape[-1] = None
        return tensor(scales.dtype, (*shape[:axis], *indices.shape, *shape[axis + 1 :]))

    def reference(
        data: Array, indices: Array, scales: Array, zeros: Array | None = None, *, bits: int,
        block_size: int, gather_axis: int, quantize_axis: int,
    ) -> Array:  # fmt: skip
        gather, along = axis_of(gather_axis, data.ndim), axis_of(quantize_axis, data.ndim)
        rows = data.shape[gather]
        flat = indices.reshape(-1)
        inside = (flat >= -rows) & (flat < rows)
        chosen = np.where(inside, flat, 0) % max(rows, 1)
        if gather != along:
            scales = scales.take(chosen if scales.shape[gather] > 1 else [0], gather)
            zeros = None if zeros is None else zeros.take(chosen, gather)
            data = data.take(chosen, gather)
        table = _dequantized(data, scales, zeros, bits, block_size, along)
        result = table.take(chosen, gather) if gather == along else table
        visible = np.expand_dims(inside, tuple(range(1, result.ndim - gather)))
        result = np.where(visible, result, 0).astype(scales.dtype)
        return result.reshape(*result.shape[:gather], *indices.shape, *result.shape[gather + 1 :])


def _dequantized(
    data: Array, scales: Array, zeros: Array | None, bits: int, block_size: int, along: int
) -> Array:
    """(codes - zero) * scale in float32, with one scale and zero for a block of an axis."""
    codes = data.astype(np.float32)
    if data.dtype == np.uint8:
        codes = _unpacked(data, bits)
    length = codes.shape[along]
    reach = block_size or max(length, 1)
    block = np.arange(length) // reach
    if length and scales.shape[along] != block[-1] + 1:
        raise EvaluationError(f"{scales.shape[along]} scales do not cover {length} elements")
    if zeros is not None:
        centre = _unpacked(zeros, bits) if zeros.dtype == np.uint8 else zeros.astype(np.float32)
        codes = codes - centre.take(block, along)
    elif data.dtype == np.uint8:
        codes = codes - np.float32(1 << (bits - 1))
    result: Array = codes * widen(scales).take(block, along)
    return result


def _unpacked(packed: Array, bits: int) -> Array:
    """Codes of bytes along the last axis, lowest bits first."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    codes = (packed[..., None] >> shifts) & np.uint8((1 << bits) - 1)
    return codes.reshape(*packed.shape[:-1], -1).astype(np.float32)
