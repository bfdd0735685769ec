"""Linear quantization, to narrow types and back."""

import math

import ml_dtypes
import numpy as np

from sardonyx.compiler.constants import constant_array, converted
from sardonyx.compiler.forms import (
    Axis,
    Contraction,
    Convolution,
    Form,
    Map,
    NotLowered,
    Scaled,
    View,
    binary,
    bits,
    cast,
    constant,
    fold,
    iota,
    reshape,
    select,
    squeeze,
    take,
)
from sardonyx.compiler.lowerings.request import Lowerings, Request
from sardonyx.compiler.narrow import SMALL, convert, widened
from sardonyx.dims import product
from sardonyx.dtypes import DataType
from sardonyx.loops.nodes import STORED
from sardonyx.ops.fact import axis_of

MOST_SEEN = 64
"""Forms that are looked at for a product."""
ROUNDER = 1.5 * 2.0**23
ROUNDER_BITS = 0x4B400000
"""Of the float32."""


def _spread(scale: Form, x: Form, axis: int, block_size: int) -> Form:
    """A scale or zero point that broadcasts: for all, for each place on an axis, or for blocks."""
    if product(scale.shape) == 1:
        return reshape(scale, ())
    place = axis_of(axis, len(x.shape))
    if block_size:
        blocks = binary("div", iota(x.shape, place), block_size)
        indices = [
            blocks if other == place else iota(x.shape, other) for other in range(len(x.shape))
        ]
        return take(scale, indices)
    if len(scale.shape) != 1:
        raise NotLowered("a scale of several axes needs a block_size")
    axes = (Axis(place),)
    shape = tuple(size if other == place else 1 for other, size in enumerate(x.shape))
    return View((*shape[:place], scale.shape[0], *shape[place + 1 :]), scale.dtype, scale, axes)


def _wide(x: Form) -> Form:
    """Elements as float32, or as they are where that is a plain integer."""
    if x.dtype in SMALL:
        return widened(x)
    return cast(x, DataType.FLOAT) if x.dtype in STORED else x


def quantize(
    request: Request, x: Form, scale: Form, zero: Form | None = None, *, axis: int,
    block_size: int, output_dtype: int, precision: int, saturate: int,
) -> Form:  # fmt: skip
    """x / scale + zero point, rounded half to even and kept within a narrow type's range; NaN is
    the smallest."""
    to = request.outputs[0].dtype
    assert to is not None
    kind = DataType(precision) if precision else scale.dtype
    step = converted(_wide(_spread(scale, x, axis, block_size)), DataType.FLOAT)
    offset = None if zero is None else _wide(_spread(zero, x, axis, block_size))
    known = constant_array(step)
    if to.is_integer and kind is DataType.FLOAT and known is not None and _is_rounded(x):
        with np.errstate(divide="ignore"):
            level: Form = x * constant(np.asarray(np.float32(1) / known))
    else:
        level = cast(_wide(x), DataType.FLOAT) / step
    if kind in STORED and kind not in SMALL:
        level = cast(cast(level, kind), DataType.FLOAT)
    if not to.is_integer:
        total = level if offset is None else level + cast(offset, DataType.FLOAT)
        return convert(total, to, saturate=bool(saturate))
    return saturated(select(binary("ne", level, level), -math.inf, level), offset, to)


def _is_rounded(x: Form) -> bool:
    """True for floats whose last bit no rule tells: those behind a product of bytes."""
    waiting, seen = [x], 0
    while waiting and seen < MOST_SEEN:
        form = waiting.pop(0)
        seen += 1
        if isinstance(form, Contraction | Convolution):
            return form.dtype is DataType.INT32
        if isinstance(form, Map) and form.dtype in (DataType.FLOAT, DataType.INT32):
            waiting.extend(form.arguments)
    return False


def saturated(level: Form, zero: Form | None, to: DataType) -> Form:
    """Floats rounded half to even, plus a zero point, kept within an integer type's range.

    A float in [2 ** 23, 2 ** 24) has no fraction: adding 1.5 * 2 ** 23 rounds, and the sum's bits
    are those of the whole number, with a constant added. Limits are whole, so they come first.
    """
    limits = ml_dtypes.iinfo(to.numpy)  # type: ignore[no-untyped-call]
    low, high = float(limits.min), float(limits.max)
    if zero is None:
        bounded = binary("max", binary("min", level, high), low)
        return convert(bits(bounded + ROUNDER, DataType.INT32) - ROUNDER_BITS, to)
    known = constant_array(zero)
    offset: Form = cast(zero, DataType.INT32)
    bounds: list[Form]
    if known is not None:
        offset = constant(known.astype(np.int32))
        bounds = [constant(np.float32(limit) - known.astype(np.float32)) for limit in (low, high)]
    else:
        bounds = [limit - cast(offset, DataType.FLOAT) for limit in (low, high)]
    bounded = binary("max", binary("min", level, bounds[1]), bounds[0])
    return convert(bits(bounded + ROUNDER, DataType.INT32) + (offset - ROUNDER_BITS), to)


def dequantize(
    request: Request, x: Form, scale: Form, zero: Form | None = None, *, axis: int,
    block_size: int, output_dtype: int,
) -> Form:  # fmt: skip
    """(x - zero point) * scale."""
    to = request.outputs[0].dtype
    assert to is not None
    code = level = _wide(x)
    if x.dtype.is_integer:
        level = cast(level, DataType.INT32)
    offset = None
    if zero is not None:
        offset = converted(_wide(_spread(zero, x, axis, block_size)), level.dtype)
        level = level - offset
    factor = converted(_wide(_spread(scale, x, axis, block_size)), DataType.FLOAT)
    made = cast(level, DataType.FLOAT) * factor
    if code.dtype not in (DataType.INT8, DataType.UINT8) or to is not DataType.FLOAT:
        return convert(made, to)
    assert isinstance(made, Map)
    return Scaled(made.shape, to, made.name, made.arguments, code, factor, offset)


def dynamic_quantize(request: Request, x: Form) -> tuple[Form, Form, Form]:
    """uint8 codes that span the range of `x` and 0, their scale and zero point."""
    axes = list(range(len(x.shape)))
    lowest, highest = (fold("min", x, axes, math.inf), fold("max", x, axes, -math.inf))
    low = binary("min", squeeze(lowest, axes), 0.0)
    high = binary("max", squeeze(highest, axes), 0.0)
    scale = select(binary("eq", low, high), 1.0, (high - low) / 255.0)
    zero = saturated(-low / scale, None, DataType.UINT8)
    level = x / scale
    level = select(binary("ne", level, level), -math.inf, level)
    return saturated(level, zero, DataType.UINT8), scale, zero


LOWERINGS: Lowerings = {
    ("", "QuantizeLinear"): quantize,
    ("", "DequantizeLinear"): dequantize,
    ("", "DynamicQuantizeLinear"): dynamic_quantize,
}
