"""Matrix products and convolutions: in integers where both sides are bytes with a scale.

(x - a) * s and (w - b) * t give s * t * sum((x - a) * (w - b)), whose sum is exact in int32.
"""

from dataclasses import replace
from typing import Any, NamedTuple

from sardonyx.compiler.constants import combined, constant_array
from sardonyx.compiler.forms import (
    Form,
    NotLowered,
    Reshape,
    Scaled,
    Source,
    View,
    cast,
    number,
    reshape,
    squeeze,
    transpose,
    unsqueeze,
)
from sardonyx.compiler.lowerings.contraction import matrix_product
from sardonyx.compiler.lowerings.integer_products import integer_convolution, integer_matmul
from sardonyx.compiler.lowerings.request import Lowerings, Request
from sardonyx.compiler.lowerings.sliding import Ints, biased, convolved
from sardonyx.dims import Size, product
from sardonyx.dtypes import DataType
from sardonyx.ops.fact import axis_of

MOST_PRODUCTS = (1 << 31) // (255 * 255)
"""Of bytes less their zero points, which int32 adds up without overflow."""


class Levels(NamedTuple):
    """Bytes, and the scale and zero point that make floats of them."""

    level: Form
    scale: Form
    zero: Form | None


def levels(form: Form) -> Levels | None:
    """What a form of floats is made of, where that is bytes; also behind views of it."""
    match form:
        case Scaled(level=level, scale=scale, zero=zero):
            return Levels(level, scale, zero)
        case Source(origin=Form() as origin):
            return levels(origin)
        case View(source=source) | Reshape(source=source):
            inner = levels(source)
            if inner is None or not _is_single(inner.scale) or not _is_single(inner.zero):
                return None
            moved = replace(form, source=inner.level, dtype=inner.level.dtype)
            return Levels(moved, inner.scale, inner.zero)
    return None


def _is_single(form: Form | None) -> bool:
    return form is None or product(form.shape) == 1


def _along(form: Form | None, axis: int) -> bool:
    """True where a form has one element, or varies only along an axis."""
    if form is None or _is_single(form):
        return True
    place = axis_of(axis, len(form.shape))
    return all(size == 1 or other == place for other, size in enumerate(form.shape))


def _few(*sizes: Size) -> bool:
    total = product(sizes)
    return isinstance(total, int) and total <= MOST_PRODUCTS


def scaled_matmul(request: Request, left: Form, right: Form) -> Form | None:
    """A product of matrices by their bytes, where both sides are made of such."""
    x, w = levels(left), levels(right)
    if x is None or w is None or not _few(left.shape[-1]):
        return None
    single = _is_single(x.scale) and _is_single(x.zero)
    if not single or not _along(w.scale, -1) or not _along(w.zero, -1):
        return None
    total = integer_matmul(request, x.level, x.zero, w.level, w.zero)
    return cast(total, DataType.FLOAT) * combined("mul", _scalar(x.scale), w.scale)


def _scalar(form: Form) -> Form:
    return reshape(form, ())


def matmul(request: Request, left: Form, right: Form) -> Form:
    """NumPy's matmul: a vector is a matrix for the time of the product."""
    rows, columns = len(left.shape) == 1, len(right.shape) == 1
    a = unsqueeze(left, [0]) if rows else left
    b = unsqueeze(right, [1]) if columns else right
    result = scaled_matmul(request, a, b) or matrix_product(request, a, b)
    gone = [-2] * rows + [-1] * columns
    return squeeze(result, gone) if gone else result


def gemm(
    request: Request, a: Form, b: Form, c: Form | None = None, *,
    alpha: float, beta: float, transA: int, transB: int,
) -> Form:  # fmt: skip
    """alpha * A * B + beta * C."""
    left = transpose(a, (1, 0)) if transA else a
    right = transpose(b, (1, 0)) if transB else b
    result = scaled_matmul(request, left, _turned(b) if transB else b)
    result = _times(result or matrix_product(request, left, right), alpha)
    return result if c is None or beta == 0.0 else result + _times(c, beta)


def _turned(x: Form) -> Form:
    """A transposed matrix; of a constant, its bytes and their scales too."""
    turned, inner = transpose(x, (1, 0)), levels(x)
    if inner is None or not isinstance(x, Source):
        return turned
    level, scale, zero = (
        item if item is None or len(item.shape) != 2 else transpose(item, (1, 0)) for item in inner
    )
    assert level is not None and scale is not None
    origin = Scaled(turned.shape, x.dtype, "mul", (turned, scale), level, scale, zero)
    return replace(x, shape=turned.shape, constant=constant_array(turned), origin=origin)


def _times(x: Form, factor: float) -> Form:
    if factor == 1.0:
        return x
    if x.dtype.is_float:
        return x * factor
    if factor != int(factor):
        raise NotLowered("a factor between integers has no native form")
    return x * number(int(factor), x.dtype)


def convolution(
    request: Request, image: Form, weights: Form, bias: Form | None = None, *,
    kernel_shape: Ints | None, **steps: Any,
) -> Form:  # fmt: skip
    """Sliding products, plus a bias for each channel."""
    result = _scaled_convolution(request, image, weights, **steps)
    return biased(result or convolved(request, image, weights, **steps), bias)


def _scaled_convolution(request: Request, image: Form, weights: Form, **steps: Any) -> Form | None:
    x, w = levels(image), levels(weights)
    if x is None or w is None or not _few(*weights.shape[1:]):
        return None
    single = _is_single(x.scale) and _is_single(x.zero)
    if not single or not _along(w.scale, 0) or not _along(w.zero, 0):
        return None
    zero = None if w.zero is None else reshape(w.zero, (product(w.zero.shape),))
    total = integer_convolution(request, x.level, x.zero, w.level, zero, kernel_shape=None, **steps)
    channels = product(w.scale.shape)
    scale = reshape(w.scale, (channels, *(1,) * (len(image.shape) - 2)) if channels != 1 else ())
    return cast(total, DataType.FLOAT) * combined("mul", _scalar(x.scale), scale)


LOWERINGS: Lowerings = {
    ("", "MatMul"): matmul,
    ("", "Gemm"): gemm,
    ("", "Conv"): convolution,
}
