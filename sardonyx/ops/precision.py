"""The type to compute in, where an operator's own type is too narrow to accumulate in."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sardonyx.dtypes import from_numpy

Array = NDArray[Any]


def compute_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """float32 for every float narrower than it; all other types are their own.

    >>> compute_type(np.dtype(np.float16)), compute_type(np.dtype(np.int8))
    (dtype('float32'), dtype('int8'))
    """
    kind = from_numpy(dtype)
    return np.dtype(np.float32) if kind.is_float and kind.bits < 32 else dtype


def widen(array: Array) -> Array:
    """The array in the type to compute in; itself where that is its own."""
    return array.astype(compute_type(array.dtype), copy=False)


def narrow(result: Any, dtype: np.dtype[Any]) -> Array:
    """A result, an array or a single number, as an array of its final type."""
    return np.asarray(result).astype(dtype, copy=False)
