"""Forms whose elements are known when a program is made, and arithmetic on them then."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sardonyx.compiler.forms import (
    Axis,
    Form,
    Number,
    Reshape,
    Source,
    View,
    binary,
    cast,
    constant,
)
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
            if inner is None or not _only_turns(inner, axes, form):
                return None
            order = np.argsort([-1 if axis.axis is None else axis.axis for axis in axes])
            return inner.transpose(order).reshape(form.shape)  # type: ignore[arg-type]
    return None


def _only_turns(array: NDArray[Any], axes: tuple[Axis, ...], form: Form) -> bool:
    """True where a view brings axes into another order, and adds or leaves out those of size 1."""
    kept = {axis.axis: size for axis, size in zip(axes, array.shape, strict=True)}
    gone = [size for axis, size in zip(axes, array.shape, strict=True) if axis.axis is None]
    plain = all(axis.start == 0 and axis.step == 1 for axis in axes) and {*gone} <= {1}
    distinct = len(kept) - (None in kept) + len(gone) == len(axes)
    return plain and distinct and all(kept.get(n, 1) == size for n, size in enumerate(form.shape))


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
