"""Forms whose elements are known when a program is made, and arithmetic on them then."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sardonyx.compiler.forms import Form, Number, Reshape, Source, View, binary, cast, constant
from sardonyx.dims import product
from sardonyx.dtypes import DataType
from sardonyx.loops.interpret import BINARY


def constant_array(form: Form) -> NDArray[Any] | None:
    """The elements of a constant, also behind views of it."""
    match form:
        case Source(constant=array):
            return array
        case Number(number=int() | float() | bool() as number):
            return np.asarray(number, form.dtype.numpy)
        case Reshape(source=source):
            inner = constant_array(source)
            if inner is None or not isinstance(product(form.shape), int):
                return None
            return inner.reshape(form.shape)  # type: ignore[arg-type]
        case View(source=source, axes=axes):
            inner = constant_array(source)
            plain = all(
                axis.start == 0 and axis.step == 1 and axis.axis is not None for axis in axes
            )
            if inner is None or not plain or len(axes) != len(form.shape):
                return None
            places = [axis.axis for axis in axes]
            turned = inner.transpose([places.index(axis) for axis in range(len(places))])
            return turned if turned.shape == form.shape else None
    return None


def combined(name: str, left: Form, right: Form) -> Form:
    """A function of pairs of elements, computed now where both sides are constants."""
    arrays = constant_array(left), constant_array(right)
    if arrays[0] is None or arrays[1] is None:
        return binary(name, left, right)
    with np.errstate(all="ignore"):
        return constant(np.asarray(BINARY[name](*arrays), left.dtype.numpy))


def converted(x: Form, dtype: DataType) -> Form:
    """Elements as another plain type, cast now where they are constants."""
    array = constant_array(x)
    return cast(x, dtype) if array is None else constant(array.astype(dtype.numpy))
