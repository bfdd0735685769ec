"""Constants in which elements repeat: arrays with steps of 0 bytes, kept until they are written."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sardonyx.format.pages import mapping


def repeats(array: NDArray[Any]) -> bool:
    """True where an array has elements that lie in memory once and are many.

    >>> repeats(np.broadcast_to(np.float32(1), (2, 3))), repeats(np.ones((2, 3)))
    (True, False)
    """
    return any(not step and size > 1 for step, size in zip(array.strides, array.shape, strict=True))


def core(array: NDArray[Any]) -> NDArray[Any]:
    """What an array repeats: a view with the size 1 along axes whose elements are the same one.

    >>> core(np.broadcast_to(np.arange(2)[:, None], (2, 3))).tolist()
    [[0], [1]]
    """
    parts = (slice(0, 1 if not step and size > 1 else None)
             for step, size in zip(array.strides, array.shape, strict=True))  # fmt: skip
    return array[*parts, ...]


def least_core(array: NDArray[Any]) -> NDArray[Any]:
    """The smallest core of an array that repeats: the same for all such that are equal.

    >>> least_core(np.broadcast_to(np.zeros((2, 1)), (2, 3))).shape
    (1, 1)
    """
    found = core(array)
    for axis in range(found.ndim):
        if found.shape[axis] > 1:
            first = found.take([0], axis)
            same = np.broadcast_to(first, found.shape).tobytes() == found.tobytes()
            found = first if same else found
    return found


def compact(array: NDArray[Any]) -> NDArray[Any]:
    """The same elements, in a mapped file or in memory that holds nothing else.

    >>> compact(np.arange(9)[:2]).base is None
    True
    """
    whole: Any = array
    while isinstance(whole.base, np.ndarray):
        whole = whole.base
    once = core(array)
    if whole.nbytes <= once.nbytes or mapping(array) is not None:
        return array
    return np.broadcast_to(once.copy(), array.shape) if repeats(array) else once.copy()
