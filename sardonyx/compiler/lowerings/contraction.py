"""Products: matrix products, convolutions, and pooling windows."""

import math

from sardonyx.compiler.forms import (
    Contraction,
    Convolution,
    Form,
    NotLowered,
    Source,
    Window,
    broadcast_shapes,
    reshape,
    squeeze,
    transpose,
    unsqueeze,
)
from sardonyx.compiler.lowerings.request import Lowerings, Request
from sardonyx.dims import Size
from sardonyx.dtypes import DataType

Ints = tuple[int, ...]


def matrix_product(request: Request, left: Form, right: Form) -> Form:
    """[..., M, K] by [..., K, N]; bytes are added up in int32."""
    types = (left.dtype, right.dtype)
    narrow = set(types) <= {DataType.INT8, DataType.UINT8}
    if not narrow and types[0] is not types[1]:
        raise NotLowered(f"products of {types[0].text} and {types[1].text} have no native form")
    depth = request.agree(left.shape[-1], right.shape[-2])
    batch = (
        broadcast_shapes(left.shape[:-2], right.shape[:-2])
        if left.shape[:-2] + right.shape[:-2]
        else ()
    )
    dtype = DataType.INT32 if narrow else left.dtype
    return Contraction((*batch, left.shape[-2], right.shape[-1]), dtype, left, right, depth)


def matmul(request: Request, left: Form, right: Form) -> Form:
    """NumPy's matmul: a vector is a matrix for the time of the product."""
    rows, columns = len(left.shape) == 1, len(right.shape) == 1
    result = matrix_product(
        request, unsqueeze(left, [0]) if rows else left, unsqueeze(right, [1]) if columns else right
    )
    gone = [-2] * rows + [-1] * columns
    return squeeze(result, gone) if gone else result


def gemm(
    request: Request, a: Form, b: Form, c: Form | None = None, *,
    alpha: float, beta: float, transA: int, transB: int,
) -> Form:  # fmt: skip
    """alpha * A * B + beta * C."""
    result = matrix_product(
        request, transpose(a, (1, 0)) if transA else a, transpose(b, (1, 0)) if transB else b
    )
    if alpha != 1.0:
        result = result * alpha
    if c is None or beta == 0.0:
        return result
    return result + (c if beta == 1.0 else c * beta)


def convolution(
    request: Request, image: Form, weights: Form, bias: Form | None = None, *,
    auto_pad: str, dilations: Ints | None, group: int, kernel_shape: Ints | None, pads: Ints | None,
    strides: Ints | None,
) -> Form:  # fmt: skip
    """Sliding products over two spatial axes, plus a bias for each channel."""
    if len(image.shape) != 4 or image.dtype is not DataType.FLOAT:
        raise NotLowered("only two spatial axes of floats have a native form")
    if not isinstance(weights, Source) or weights.constant is None:
        raise NotLowered("weights that are not constant have no native form")
    kernel = (weights.shape[2], weights.shape[3])
    steps, spread = _pair(strides), _pair(dilations)
    begins, ends = _pads(
        auto_pad, pads, image.shape[2:], request.shape()[2:], kernel, steps, spread
    )
    result: Form = Convolution(
        request.shape(), image.dtype, image, weights, steps, spread, (*begins, *ends), group
    )
    if bias is None:
        return result
    return result + reshape(bias, (bias.shape[0], 1, 1))


def max_pool(
    request: Request, image: Form, *, auto_pad: str, ceil_mode: int, dilations: Ints | None,
    kernel_shape: Ints, pads: Ints | None, storage_order: int, strides: Ints | None,
) -> Form:  # fmt: skip
    """The largest element in a window."""
    if len(request.outputs) > 1 or len(image.shape) != 4 or not image.dtype.is_float:
        raise NotLowered("only the values of two spatial axes of floats have a native form")
    kernel, steps, spread = (_pair(item) for item in (kernel_shape, strides, dilations))
    begins, _ = _pads(auto_pad, pads, image.shape[2:], request.shape()[2:], kernel, steps, spread)
    return Window(
        request.shape(), image.dtype, "max", -math.inf, image, kernel, steps, spread, begins
    )


def average_pool(
    request: Request, image: Form, *, auto_pad: str, ceil_mode: int, count_include_pad: int,
    dilations: Ints | None, kernel_shape: Ints, pads: Ints | None, strides: Ints | None,
) -> Form:  # fmt: skip
    """The mean of a window, where every window counts the same number of elements."""
    if len(image.shape) != 4 or not image.dtype.is_float or ceil_mode:
        raise NotLowered("only two spatial axes of floats, rounded down, have a native form")
    kernel, steps, spread = (_pair(item) for item in (kernel_shape, strides, dilations))
    begins, ends = _pads(
        auto_pad, pads, image.shape[2:], request.shape()[2:], kernel, steps, spread
    )
    if any((*begins, *ends)) and not count_include_pad:
        raise NotLowered("windows that reach over the edge count different numbers of elements")
    total = Window(request.shape(), image.dtype, "add", 0.0, image, kernel, steps, spread, begins)
    return total / float(kernel[0] * kernel[1])


def _pair(given: Ints | None) -> tuple[int, int]:
    return (1, 1) if given is None else (given[0], given[1])


def _pads(
    auto_pad: str, pads: Ints | None, sizes: tuple[Size, ...], results: tuple[Size, ...],
    kernel: tuple[Size, ...], strides: Ints, dilations: Ints,
) -> tuple[tuple[int, int], tuple[int, int]]:  # fmt: skip
    if auto_pad in ("NOTSET", "VALID"):
        given = (0, 0, 0, 0) if pads is None or auto_pad == "VALID" else pads
        return (given[0], given[1]), (given[2], given[3])
    totals = []
    for axis in range(2):
        reach = (results[axis] - 1) * strides[axis] + (kernel[axis] - 1) * dilations[axis] + 1
        total = reach - sizes[axis]
        if not isinstance(total, int):
            raise NotLowered("how much padding there is is only known later")
        totals.append(max(total, 0))
    small, large = tuple(total // 2 for total in totals), tuple(-(-total // 2) for total in totals)
    first, second = (small, large) if auto_pad == "SAME_UPPER" else (large, small)
    return (first[0], first[1]), (second[0], second[1])


LOWERINGS: Lowerings = {
    ("", "MatMul"): matmul,
    ("", "Gemm"): gemm,
    ("", "Conv"): convolution,
    ("", "MaxPool"): max_pool,
    ("", "AveragePool"): average_pool,
}
