"""Room for results, asked for where the answer may be no.

NumPy multiplies sizes in 64 bits in some places: repeating an array too often ends the process, and
a range too long is empty. What a model or a feed can steer goes through here.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sardonyx.errors import EvaluationError

Array = NDArray[Any]
LARGEST = 2**62
"""More bytes than any machine holds."""


def require_bytes(shape: Sequence[int], dtype: np.dtype[Any]) -> None:
    """An error where an array of this shape cannot be.

    >>> require_bytes((2, 3), np.dtype(np.float32))
    """
    if any(size < 0 for size in shape):
        raise EvaluationError(f"a result cannot have the shape {list(shape)}")
    # NumPy has no such array either where another size is 0.
    if math.prod(max(size, 1) for size in shape) * dtype.itemsize > LARGEST:
        raise EvaluationError(
            f"a result of the shape {list(shape)} is larger than any memory",
            hint="check what says its sizes",
        )


def repeat(array: Array, count: int, axis: int) -> Array:
    """Each element along an axis `count` times in a row.

    >>> repeat(np.array([1, 2]), 2, 0).tolist()
    [1, 1, 2, 2]
    """
    shape = list(array.shape)
    shape[axis] *= int(count)
    require_bytes(shape, array.dtype)
    return np.repeat(array, count, axis)


def tile(array: Array, counts: Sequence[int]) -> Array:
    """An array whole, a number of times along each of its axes.

    >>> tile(np.array([1, 2]), [2]).tolist()
    [1, 2, 1, 2]
    """
    sizes = [1] * (len(counts) - array.ndim) + list(array.shape)
    times = [1] * (array.ndim - len(counts)) + list(counts)
    shape = [size * int(count) for size, count in zip(sizes, times, strict=True)]
    require_bytes(shape, array.dtype)
    if 0 in shape:
        return np.empty(shape, array.dtype)
    return np.tile(array, tuple(counts))


def count_up(count: int) -> NDArray[np.int64]:
    """0, 1, ..., count - 1.

    >>> count_up(3).tolist()
    [0, 1, 2]
    """
    require_bytes((count,), np.dtype(np.int64))
    return np.arange(count)
