"""Col2Im: every pixel is the sum of the taps of all windows that cover it."""

import math
from collections.abc import Sequence
from functools import reduce
from itertools import product
from typing import Any

from sardonyx.compiler.forms import (
    Form,
    NotLowered,
    binary,
    fold,
    iota,
    reshape,
    select,
    squeeze,
    take,
)
from sardonyx.compiler.lowerings.request import Lowerings, Request
from sardonyx.compiler.lowerings.sliding import MOST_OVERLAPS
from sardonyx.dims import Size, floor_divide
from sardonyx.dtypes import DataType
from sardonyx.ops.sliding import Ints, pad_pairs, per_axis


def col2im(
    request: Request, x: Form, image_shape: Form, block_shape: Form, *,
    dilations: Ints | None, pads: Ints | None, strides: Ints | None,
) -> Form:  # fmt: skip
    """Columns, each the flattened window of an image, summed back into the image."""
    if x.dtype is DataType.BOOL:
        raise NotLowered("truth values have no sum")
    block = request.integers(2, "the window's shape")
    shape = request.told(1)
    rank = len(block)
    if len(shape) != rank + 2:
        raise NotLowered(f"windows of {rank} axes do not make an image of {len(shape) - 2}")
    strides, dilations = per_axis(strides, rank, "strides"), per_axis(dilations, rank, "dilations")
    pairs = pad_pairs(pads, rank)
    counts = [
        floor_divide(size + begin + end - dilation * (width - 1) - 1, stride) + 1
        for size, (begin, end), dilation, width, stride in zip(
            shape[2:], pairs, dilations, block, strides, strict=True
        )
    ]
    windows = reshape(x, (*shape[:2], *block, *counts))
    steps = list(zip((begin for begin, _ in pairs), strides, dilations, strict=True))
    if math.prod(block) <= MOST_OVERLAPS:
        terms = [_covered(windows, shape, tap, steps) for tap in product(*map(range, block))]
        return reduce(lambda left, right: left + right, terms)
    wide = (*shape, *block)
    taps = [iota(wide, len(shape) + axis) for axis in range(rank)]
    axes = list(range(len(shape), len(wide)))
    return squeeze(fold("add", _covered(windows, wide, taps, steps), axes, 0), axes)


def _covered(
    windows: Form, space: Sequence[Size], tap: Sequence[Any], steps: Sequence[tuple[int, ...]]
) -> Form:
    """What a tap adds to each pixel; 0 where no window has it there."""
    places = []
    for axis, (begin, stride, dilation) in enumerate(steps):
        start = iota(space, axis + 2) + begin - tap[axis] * dilation
        place = start if stride == 1 else binary("div", start, stride)
        exact = binary("eq", place * stride, start)
        places.append(place if stride == 1 else select(exact, place, -1))
    return take(windows, [iota(space, 0), iota(space, 1), *tap, *places])


LOWERINGS: Lowerings = {("", "Col2Im"): col2im}
