"""Factors of sums of products in words, an int32: four bytes or two bfloat16, the first lowest."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sardonyx.dims import Size, ceil_divide, floor_divide, minimum, product, remainder, symbol
from sardonyx.dtypes import DataType
from sardonyx.loops.build import constant
from sardonyx.loops.nodes import Binary, Buffer, Cast, Load, Value, substitute
from sardonyx.loops.rewrite import offset, step

BYTES = 4
"""Of a word."""


def words_of(buffer: Buffer) -> Buffer:
    """Dense memory of parts, of which the last axis fills whole words, as words."""
    parts = BYTES // buffer.dtype.numpy.itemsize
    shape = (*buffer.shape[:-1], floor_divide(buffer.shape[-1], parts))
    strides = tuple(floor_divide(stride, parts) for stride in buffer.strides[:-1])
    return Buffer(buffer.memory, DataType.INT32, shape, (*strides, 1))


def word_at(element: Value, name: str) -> Load | None:
    """Four bytes that follow on each other along `name`, which then counts words.

    None where they do not begin at a multiple of four or do not lie side by side.
    """
    if not isinstance(element, Load):
        return None
    place = offset(element.buffer, element.indices)
    first = substitute(place, {name: 0})
    if step(place, name) != 1 or remainder(first, BYTES) != 0:
        return None
    count = ceil_divide(product(element.buffer.shape), BYTES)
    flat = Buffer(element.buffer.memory, DataType.INT32, (count,), (1,))
    return Load(flat, (floor_divide(first, BYTES) + symbol(name),))


def gathered(element: Any, word: Size, extent: Size) -> Value:
    """A word of elements that lie apart; behind the last one it is repeated."""
    total: Value | None = None
    for place in range(BYTES):
        number = Cast(element(minimum(word * BYTES + place, extent - 1)), DataType.INT32)
        low = Binary("and", number, constant(255, DataType.INT32))
        moved = Binary("shl", low, constant(8 * place, DataType.INT32)) if place else low
        total = moved if total is None else Binary("or", total, moved)
    assert total is not None
    return total


def pack_words(matrix: NDArray[Any]) -> NDArray[np.int32]:
    """[..., K, N] -> [..., ceil(K / parts), N], with zeros behind the last row."""
    *batch, depth, columns = matrix.shape
    parts = BYTES // matrix.dtype.itemsize
    words = -(-depth // parts)
    padded = np.zeros((*batch, words * parts, columns), matrix.dtype)
    padded[..., :depth, :] = matrix
    groups = np.moveaxis(padded.reshape(*batch, words, parts, columns), -2, -1)
    return np.ascontiguousarray(groups).view(np.int32)[..., 0]
