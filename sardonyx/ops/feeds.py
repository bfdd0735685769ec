"""What is fed to a model, beside what its inputs are declared to be."""

from typing import Any

import numpy as np

from sardonyx.dtypes import DataType, from_numpy
from sardonyx.errors import InputError, UnsupportedError
from sardonyx.graph import TensorType, Value


def check_input(value: Value, given: Any) -> Any:
    """What was fed for an input, as an array where a tensor is wanted; raises if unfit."""
    wanted = value.type
    if not isinstance(wanted, TensorType):
        return given
    try:
        array = np.asarray(given)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"input '{value.name}' cannot be made an array: {error}", hint=f"feed a {wanted}"
        ) from None
    if array.dtype.kind in "USTa":
        array = array.astype(object)
    try:
        found = from_numpy(array.dtype)
    except UnsupportedError as error:
        raise InputError(f"input '{value.name}': {error.what}", hint=f"feed a {wanted}") from None
    if isinstance(wanted.element, DataType) and wanted.element and found != wanted.element:
        raise InputError(
            f"input '{value.name}' is {found.text} where {wanted.element.text} is expected",
            hint=f"cast it: array.astype({wanted.element.numpy.name!r})",
        )
    if wanted.shape is not None:
        fits = len(wanted.shape) == array.ndim and all(
            not isinstance(size, int) or size < 0 or size == actual
            for size, actual in zip(wanted.shape, array.shape, strict=False)
        )
        if not fits:
            raise InputError(
                f"input '{value.name}' has shape {list(array.shape)}, the model expects {wanted}"
            )
    return array
