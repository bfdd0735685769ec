"""Products of quantized numbers: sums of bytes' products, less what their zero points add.

With zero points a and b, and K products to a sum:
sum((x - a) * (w - b)) = sum(x * w) - a * (sum(w) - K * b) - b * sum(x).
"""

from typing import Any

import numpy as np

from sardonyx.compiler.constants import combined, constant_array, converted
from sardonyx.compiler.forms import (
    Form,
    NotLowered,
    binary,
    bits,
    cast,
    constant,
    fold,
    number,
    reshape,
    squeeze,
    transpose,
    unsqueeze,
)
from sardonyx.compiler.lowerings.contraction import matrix_product
from sardonyx.compiler.lowerings.quantization import dynamic_quantize, saturated
from sardonyx.compiler.lowerings.request import Lowerings, Request
from sardonyx.compiler.lowerings.sliding import Ints, biased, convolved
from sardonyx.dims import Size, product
from sardonyx.dtypes import DataType

NARROW = (DataType.INT8, DataType.UINT8)
SIGN = 128
"""What lies between the same bits as a byte with and without sign."""


def whole(x: Form | None) -> Form:
    """A zero point as int32; none is 0."""
    return number(0, DataType.INT32) if x is None else converted(x, DataType.INT32)


def scalar(x: Form) -> Form:
    """A tensor of one element as a scalar."""
    if product(x.shape) != 1:
        raise NotLowered("a scale or zero point for each row or block has no native form here")
    return reshape(x, ())


def unsigned(x: Form, zero: Form) -> tuple[Form, Form]:
    """Bytes without sign, and the zero point that goes with them."""
    if x.dtype is DataType.UINT8:
        return x, zero
    moved = binary("xor", bits(x, DataType.UINT8), SIGN)
    return moved, combined("add", zero, number(SIGN, DataType.INT32))


def signed(w: Form, zero: Form) -> tuple[Form, Form]:
    """Bytes with sign, and the zero point that goes with them; of constants 0 where that fits."""
    array, offset = constant_array(w), constant_array(zero)
    if array is not None and offset is not None:
        exact = array.astype(np.int32) - offset
        if exact.size and exact.min() >= -SIGN and exact.max() < SIGN:
            return constant(exact.astype(np.int8)), number(0, DataType.INT32)
    if w.dtype is DataType.INT8:
        return w, zero
    offset_form = combined("sub", zero, number(SIGN, DataType.INT32))
    if array is not None:
        return constant((array ^ SIGN).view(np.int8)), offset_form
    return bits(binary("xor", w, SIGN), DataType.INT8), offset_form


def column_sums(w: Form) -> Form:
    """What the columns of a matrix add up to, in int32."""
    array = constant_array(w)
    if array is not None:
        return constant(array.sum(-2, np.int32, keepdims=True))
    return fold("add", cast(w, DataType.INT32), [-2], 0)


def is_zero(x: Form) -> bool:
    """True for a constant that is 0 everywhere."""
    array = constant_array(x)
    return array is not None and not array.any()


def times(total: Size) -> Form:
    """A number of products as int32."""
    if isinstance(total, int):
        return number(total, DataType.INT32)
    return cast(number(total, DataType.INT64), DataType.INT32)


def integer_matmul(
    request: Request, x: Form, x_zero: Form | None, w: Form, w_zero: Form | None
) -> Form:
    """(x - zero) * (w - zero) in int32, for matrices or vectors and zero points that broadcast."""
    if x.dtype not in NARROW or w.dtype not in NARROW:
        raise NotLowered(f"products of {x.dtype.text} and {w.dtype.text} have no native form here")
    row, column = len(x.shape) == 1, len(w.shape) == 1
    left, a = unsigned(unsqueeze(x, [0]) if row else x, whole(x_zero))
    right, b = signed(unsqueeze(w, [1]) if column else w, whole(w_zero))
    total = matrix_product(request, left, right)
    if not is_zero(a):
        sums = column_sums(right)
        if not is_zero(b):
            sums = combined("sub", sums, combined("mul", times(left.shape[-1]), b))
        total = total - combined("mul", a, sums)
    if not is_zero(b):
        total = total - b * fold("add", cast(left, DataType.INT32), [-1], 0)
    gone = [-2] * row + [-1] * column
    return squeeze(total, gone) if gone else total


def by_row(parameter: Form | None) -> Form | None:
    """A vector with one element a row, so that it broadcasts along columns."""
    if parameter is None or len(parameter.shape) != 1 or parameter.shape[0] == 1:
        return parameter
    return unsqueeze(parameter, [1])


def matmul_integer(
    request: Request, a: Form, b: Form, a_zero: Form | None = None, b_zero: Form | None = None
) -> Form:
    """The matrix product of 8-bit integers less their zero points, in 32 bits."""
    return plain(request, integer_matmul(request, a, by_row(a_zero), b, b_zero))


def plain(request: Request, x: Form) -> Form:
    """A result in the shape that is expected: parameters of one element may add axes of size 1."""
    return reshape(x, request.shape())


def scaled_again(total: Form, scale: Form, zero: Form, to: DataType) -> Form:
    """int32 sums times a scale, rounded, moved by a zero point and kept within a type."""
    return saturated(cast(total, DataType.FLOAT) * scale, zero, to)


def qlinear_matmul(
    request: Request, a: Form, a_scale: Form, a_zero: Form, b: Form, b_scale: Form, b_zero: Form,
    y_scale: Form, y_zero: Form,
) -> Form:  # fmt: skip
    """The matrix product of two quantized matrices, quantized again."""
    total = integer_matmul(request, a, by_row(a_zero), b, b_zero)
    scales = [converted(item, DataType.FLOAT) for item in (a_scale, b_scale, y_scale)]
    rows = by_row(scales[0])
    assert rows is not None
    if len(a.shape) == 1 and product(rows.shape) == 1:
        rows = reshape(rows, ())
    scale = combined("div", combined("mul", rows, scales[1]), scales[2])
    return plain(request, scaled_again(total, scale, y_zero, y_zero.dtype))


def dynamic_matmul(
    request: Request, a: Form, b: Form, b_scale: Form, b_zero: Form | None = None,
    bias: Form | None = None,
) -> Form:  # fmt: skip
    """A * B for a B of 8 bits; A is quantized to uint8 by its own range on the way."""
    codes, scale, zero = dynamic_quantize(request, a)
    total = integer_matmul(request, codes, zero, b, b_zero)
    result = cast(total, DataType.FLOAT) * (scale * b_scale)
    return plain(request, result if bias is None else result + bias)


def matmul_to_float(
    request: Request, a: Form, b: Form, a_scale: Form, b_scale: Form, a_zero: Form | None = None,
    b_zero: Form | None = None, bias: Form | None = None,
) -> Form:  # fmt: skip
    """A * B for 8-bit A and B, scaled back to floats, plus a bias."""
    scale = combined("mul", scalar(a_scale), b_scale)
    zero = None if a_zero is None else scalar(a_zero)
    result = cast(integer_matmul(request, a, zero, b, b_zero), DataType.FLOAT) * scale
    return plain(request, result if bias is None else result + bias)


def qgemm(
    request: Request, a: Form, a_scale: Form, a_zero: Form, b: Form, b_scale: Form, b_zero: Form,
    c: Form | None = None, y_scale: Form | None = None, y_zero: Form | None = None, *,
    alpha: float, transA: int, transB: int,
) -> Form:  # fmt: skip
    """alpha * A * B + C for 8-bit A and B; quantized again where a scale for it is given."""
    left = transpose(a, (1, 0)) if transA else a
    right = transpose(b, (1, 0)) if transB else b
    total = integer_matmul(request, left, scalar(a_zero), right, b_zero)
    if c is not None:
        total = total + c
    scale = combined("mul", number(alpha, DataType.FLOAT), scalar(a_scale))
    scale = combined("mul", scale, b_scale)
    if y_scale is None:
        return plain(request, cast(total, DataType.FLOAT) * scale)
    scale = combined("div", scale, scalar(y_scale))
    zero = number(0, a.dtype) if y_zero is None else scalar(y_zero)
    return plain(request, scaled_again(total, scale, zero, zero.dtype))


def integer_convolution(
    request: Request, x: Form, x_zero: Form | None, w: Form, w_zero: Form | None, *,
    kernel_shape: Ints | None, **steps: Any,
) -> Form:  # fmt: skip
    """(x - zero) slid over by (w - zero), in int32."""
    if x.dtype not in NARROW or w.dtype not in NARROW:
        raise NotLowered(f"products of {x.dtype.text} and {w.dtype.text} have no native form here")
    image, a = unsigned(x, scalar(whole(x_zero)))
    offset = whole(w_zero)
    if product(offset.shape) != 1:
        offset = reshape(offset, (offset.shape[0], *(1,) * (len(w.shape) - 1)))
    right, b = signed(w, offset)
    if not is_zero(b):
        moved = combined("sub", converted(right, DataType.INT32), b)
        right = converted(moved, DataType.INT16)
    return convolved(request, image, right, None if is_zero(a) else a, **steps)


def conv_integer(
    request: Request, x: Form, w: Form, x_zero: Form | None = None, w_zero: Form | None = None,
    **steps: Any,
) -> Form:  # fmt: skip
    """Convolution of 8-bit integers less their zero points, in 32 bits."""
    return integer_convolution(request, x, x_zero, w, w_zero, **steps)


def qlinear_conv(
    request: Request, x: Form, x_scale: Form, x_zero: Form, w: Form, w_scale: Form, w_zero: Form,
    y_scale: Form, y_zero: Form, bias: Form | None = None, *, channels_last: int = 0, **steps: Any,
) -> Form:  # fmt: skip
    """Convolution of a quantized image with quantized filters, quantized again."""
    if channels_last:
        raise NotLowered("an image with its channels last has no native form here")
    total = biased(integer_convolution(request, x, x_zero, w, w_zero, **steps), bias)
    factor = w_scale
    if product(w_scale.shape) != 1:
        factor = reshape(w_scale, (w_scale.shape[0], *(1,) * (len(x.shape) - 2)))
    scale = combined("div", combined("mul", scalar(x_scale), factor), scalar(y_scale))
    return plain(request, scaled_again(total, scale, scalar(y_zero), y_zero.dtype))


LOWERINGS: Lowerings = {
    ("", "ConvInteger"): conv_integer,
    ("", "QLinearConv"): qlinear_conv,
    ("com.microsoft", "QLinearConv"): qlinear_conv,
    ("", "MatMulInteger"): matmul_integer,
    ("", "QLinearMatMul"): qlinear_matmul,
    ("com.microsoft", "DynamicQuantizeMatMul"): dynamic_matmul,
    ("com.microsoft", "MatMulIntegerToFloat"): matmul_to_float,
    ("com.microsoft", "QGemm"): qgemm,
}
