"""Linear quantization, to narrow types and back."""

import ml_dtypes

from sardonyx.compiler.forms import (
    Axis,
    Form,
    NotLowered,
    View,
    binary,
    cast,
    iota,
    reshape,
    select,
    take,
    unary,
)
from sardonyx.compiler.lowerings.request import Lowerings, Request
from sardonyx.compiler.narrow import SMALL, convert, widened
from sardonyx.dims import product
from sardonyx.dtypes import DataType
from sardonyx.loops.nodes import STORED


def _spread(scale: Form, x: Form, axis: int, block_size: int) -> Form:
    """A scale or zero point that broadcasts: for all, for each place on an axis, or for blocks."""
    if product(scale.shape) == 1:
        return reshape(scale, ())
    place = axis % len(x.shape)
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
    """x / scale + zero point, rounded half to even and kept within a narrow type's range."""
    to = request.outputs[0].dtype
    assert to is not None
    kind = DataType(precision) if precision else scale.dtype
    level = cast(_wide(x), DataType.FLOAT) / cast(
        _wide(_spread(scale, x, axis, block_size)), DataType.FLOAT
    )
    if kind in STORED and kind not in SMALL:
        level = cast(cast(level, kind), DataType.FLOAT)
    offset = None if zero is None else _wide(_spread(zero, x, axis, block_size))
    if not to.is_integer:
        total = level if offset is None else level + cast(offset, DataType.FLOAT)
        return convert(total, to, saturate=bool(saturate))
    limits = ml_dtypes.iinfo(to.numpy)  # type: ignore[no-untyped-call]
    whole: Form = unary("rint", level)
    whole = select(binary("ne", whole, whole), 0.0, whole)
    bounded = binary("max", binary("min", whole, 1.0e6), -1.0e6)
    number = cast(bounded, DataType.INT32)
    if offset is not None:
        number = number + cast(offset, DataType.INT32)
    kept = binary("max", binary("min", number, int(limits.max)), int(limits.min))
    return convert(kept, to)


def dequantize(
    request: Request, x: Form, scale: Form, zero: Form | None = None, *, axis: int,
    block_size: int, output_dtype: int,
) -> Form:  # fmt: skip
    """(x - zero point) * scale."""
    to = request.outputs[0].dtype
    assert to is not None
    level = _wide(x)
    if x.dtype.is_integer:
        level = cast(level, DataType.INT32)
    if zero is not None:
        level = level - cast(_wide(_spread(zero, x, axis, block_size)), level.dtype)
    factor = cast(_wide(_spread(scale, x, axis, block_size)), DataType.FLOAT)
    return convert(cast(level, DataType.FLOAT) * factor, to)


LOWERINGS: Lowerings = {
    ("", "QuantizeLinear"): quantize,
    ("", "DequantizeLinear"): dequantize,
}
