"""Elements known before anything runs, some of them symbolic sizes: arithmetic on single ones.

Every function here takes and gives numbers, symbolic sizes, and None for what is not known.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from sardonyx.dims import (
    Expression,
    Size,
    floor_divide,
    is_nonnegative_atom,
    maximum,
    minimum,
    remainder,
)
from sardonyx.dtypes import DataType
from sardonyx.ops.fact import LARGEST_VALUE, Fact
from sardonyx.ops.precision import Array

Step = Callable[..., Any]
"""An operation on single elements."""


def follow(result: Fact, exact: Step, step: Step | None, *facts: Fact) -> Fact:
    """`result` with its elements, where those of all `facts` are known.

    `exact` computes them from arrays of numbers, `step` a single one where sizes are symbolic.
    """
    values = [fact.value for fact in facts if fact.value is not None]
    if len(values) < len(facts) or result.dtype is None:
        return result
    shape = np.broadcast_shapes(*(value.shape for value in values))
    if math.prod(shape) > LARGEST_VALUE:
        return result
    numbers = [constant_of(fact) for fact in facts]
    if all(item is not None for item in numbers):
        with np.errstate(all="ignore"):
            return result.with_value(np.asarray(exact(*numbers)))
    if step is None:
        return result
    elements = np.frompyfunc(_where_known(step), len(values), 1)(*values)
    return result.with_value(settled(elements, result.dtype))


def constant_of(fact: Fact) -> Array | None:
    """A fact's elements in its own element type, where all of them are numbers."""
    constant = fact.constant
    if constant is None or fact.dtype is None:
        return constant
    return constant.astype(fact.dtype.numpy, copy=False)


def settled(elements: Any, dtype: DataType) -> Array:
    """Elements as an array of `dtype`, or of objects where some are not plain numbers."""
    array = np.asarray(elements, object)
    if any(item is None or isinstance(item, Expression) for item in array.flat):
        return array
    try:
        return array.astype(dtype.numpy)
    except OverflowError:
        return array


def _where_known(step: Step) -> Step:
    def known(*items: Any) -> Any:
        return None if any(item is None for item in items) else step(*items)

    return known


def reduce_known(values: Array, axes: tuple[int, ...], step: Step, *, keepdims: bool) -> Array:
    """Elements joined by a step of two along axes that are not empty."""
    ufunc = np.frompyfunc(_where_known(step), 2, 1)
    for axis in sorted(axes, reverse=True):
        values = ufunc.reduce(values, axis=axis, keepdims=keepdims)
    return np.asarray(values, object)


def whole(number: Any) -> Size | None:
    """A number or size as a whole one, where it is whole."""
    if isinstance(number, Expression):
        return number
    return int(number) if math.isfinite(number) and number == int(number) else None


def _on_whole(step: Callable[[Size, Size], Any]) -> Step:
    def on_whole(left: Any, right: Any) -> Any:
        a, b = whole(left), whole(right)
        return None if a is None or b is None else step(a, b)

    return on_whole


plus = _on_whole(lambda a, b: a + b)
minus = _on_whole(lambda a, b: a - b)
times = _on_whole(lambda a, b: a * b)
larger = _on_whole(maximum)
smaller = _on_whole(minimum)


@_on_whole
def quotient(a: Size, b: Size) -> Size | None:
    """The quotient of sizes, rounded down."""
    return floor_divide(a, b) if positive(b) else None


@_on_whole
def exact_quotient(a: Size, b: Size) -> Size | None:
    """The quotient of sizes where nothing remains."""
    return floor_divide(a, b) if positive(b) and remainder(a, b) == 0 else None


@_on_whole
def rest(a: Size, b: Size) -> Size | None:
    """The remainder of sizes."""
    return remainder(a, b) if positive(b) else None


def power(base: Any, exponent: Any) -> Any:
    """A size to a small whole power."""
    count, size = whole(exponent), whole(base)
    if size is None or not isinstance(count, int) or not 0 <= count <= 8:
        return None
    return math.prod([size] * count)


def positive(size: Size) -> bool:
    """True for numbers above 0, and for symbolic sizes that are only 0 where a symbol is."""
    if isinstance(size, int):
        return size > 0
    bound = lower_bound(size)
    return bound is not None and bound >= 0


@_on_whole
def equal(a: Size, b: Size) -> bool | None:
    """Whether two sizes are equal, where that holds for all sizes or for none."""
    difference = a - b
    if isinstance(difference, int):
        return difference == 0
    apart = any((lower_bound(item) or 0) > 0 for item in (difference, b - a))
    return False if apart else None


@_on_whole
def less(a: Size, b: Size) -> bool | None:
    """Whether one size is below another, where that holds for all sizes or for none."""
    above, below = lower_bound(b - a), lower_bound(a - b)
    if above is not None and above > 0:
        return True
    return False if below is not None and below >= 0 else None


def lower_bound(size: Size) -> int | None:
    """The least a size can be, with every symbol at least zero; None where there is no bound.

    >>> from sardonyx.dims import symbol
    >>> lower_bound(symbol("n") * 2 + 3), lower_bound(3 - symbol("n"))
    (3, None)
    """
    if isinstance(size, int):
        return size
    least = 0
    for atoms, factor in size.terms.items():
        if not atoms:
            least = factor
        elif factor < 0 or not all(map(is_nonnegative_atom, atoms)):
            return None
    return least
