"""Filters of Winograd's F(2x2, 3x3): which convolutions it suits, and how weights are packed."""

import numpy as np
from numpy.typing import NDArray

from sardonyx.compiler.forms import Convolution
from sardonyx.compiler.image import aligned_room
from sardonyx.compiler.kernels.tile import fill_panels
from sardonyx.dims import ceil_divide, product
from sardonyx.dtypes import DataType

EDGE, MADE = 4, 2
"""Pixels of a patch along an axis, and of the result that come from it."""
PLACES = EDGE * EDGE
FILTER = ((1, 0, 0), (0.5, 0.5, 0.5), (0.5, -0.5, 0.5), (0, 0, 1))
FILTERS_AT_ONCE = 1 << 12
"""Filters that are transformed together, so that they stay in the cache."""
SMALLEST = 16
"""Channels on either side below which transforming costs more than it saves."""
FEWEST_PIXELS = 16
"""Pixels of a result below which it does so, too."""
LARGEST_SHARE = 0.6
"""What part of the plain way's products may be left: patches reach beyond the edges of images."""
UNEVEN = 32
"""How much smaller the sum of all weights at one tap may be than that of the largest of filters."""
LARGEST_FILTER, SMALLEST_FILTER = 1e15, 1e-25
"""The sum of the largest weights of an output channel: transformed ones must not overflow, nor lose
bits because they are tiny; those of channels below are next to nothing."""


def suits(form: Convolution) -> bool:
    """Whether a convolution of constant weights can be computed this way and gains by it."""
    columns, depth = form.weights.shape[:2]
    plain = form.even and form.groups == 1 and {*form.strides, *form.dilations} == {1}
    if not plain or not isinstance(columns, int) or not isinstance(depth, int):
        return False
    plain = form.dtype is DataType.FLOAT and min(columns, depth) >= SMALLEST
    pixels = product(form.shape[2:])
    products = PLACES * product([ceil_divide(size, MADE) for size in form.shape[2:]])
    if not isinstance(pixels, int) or not isinstance(products, int):
        return plain
    return plain and pixels >= FEWEST_PIXELS and products <= LARGEST_SHARE * 9 * pixels


def is_even(weights: NDArray[np.float32]) -> bool:
    """Whether filters, [M, C, 3, 3], have weights of about one size at each tap, on the whole."""
    if weights.shape[2:] != (3, 3) or min(weights.shape[:2]) < SMALLEST:
        return False
    sizes = np.abs(weights).reshape(*weights.shape[:2], -1)
    taps = sizes.sum(axis=1, dtype=np.float64).min(axis=1)
    largest = sizes.max(axis=2).sum(axis=1, dtype=np.float64)
    even = (largest <= UNEVEN * taps) | (largest < SMALLEST_FILTER)
    return bool(np.all(even & (largest <= LARGEST_FILTER)))


def transformed_filters(weights: NDArray[np.float32], nr: int) -> NDArray[np.float32]:
    """Filters transformed: [M, C, 3, 3] -> [16, panels, C, nr]."""
    columns, depth = weights.shape[:2]
    matrix = np.kron(FILTER, FILTER)
    packed = aligned_room((PLACES, -(-columns // nr), depth, nr), weights.dtype)
    each = max(1, FILTERS_AT_ONCE // max(columns, 1))
    for first in range(0, depth, each):
        part = weights[:, first : first + each].transpose(2, 3, 1, 0).astype(np.float64, order="C")
        made = matrix @ part.reshape(matrix.shape[1], -1)
        fill_panels(packed[:, :, first : first + each], made.reshape(PLACES, -1, columns))
    return packed


def plain_filters(weights: NDArray[np.float32], nr: int) -> NDArray[np.float32]:
    """Filters as they are: [M, C, 3, 3] -> [panels, 9, C, nr]."""
    columns, depth = weights.shape[:2]
    packed = aligned_room((-(-columns // nr), 9, depth, nr), weights.dtype)
    taps = weights.reshape(columns, depth, 9).transpose(2, 1, 0)
    fill_panels(packed.transpose(1, 0, 2, 3), taps)
    return packed
