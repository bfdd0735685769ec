"""Where the elements of an array begin."""

import ctypes
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

_word = ctypes.c_size_t.from_address


def described_address(array: NDArray[Any]) -> int:
    """The address as the array tells it, which takes longer than many a kernel.

    >>> described_address(np.zeros(3)) % 8
    0
    """
    return int(array.__array_interface__["data"][0])


def noted_address(array: NDArray[Any]) -> int:
    """The address that CPython's array objects have right behind what all objects have."""
    return _word(id(array) + object.__basicsize__).value


def _is_noted() -> bool:
    """Whether array objects of this interpreter are as `noted_address` takes them."""
    if sys.implementation.name != "cpython":
        return False
    samples = [np.zeros(shape, np.uint8) for shape in ((), (3,), (2, 5))]
    samples.append(samples[-1][1:])
    return all(noted_address(array) == described_address(array) for array in samples)


address_of = noted_address if _is_noted() else described_address
"""The address of an array's first element, by the quickest way there is."""
