"""What operators on single elements share: types, broadcasting, and how results are rounded."""

from collections.abc import Callable
from functools import wraps
from typing import Any, ClassVar

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.errors import InferenceError
from sardonyx.ops.early_opsets import forget_consumed_inputs
from sardonyx.ops.fact import Fact, broadcast, tensor
from sardonyx.ops.operator import Hook, Operator
from sardonyx.ops.precision import Array, widen


def rounded(compute: Callable[..., Any]) -> Callable[..., Array]:
    """A reference that computes narrow floats in float32 and rounds once, to the first's type.

    >>> rounded(np.exp)(np.float16([0, 1]))
    array([1.   , 2.719], dtype=float16)
    """

    @wraps(compute)
    def reference(*arrays: Array | None, **attributes: Any) -> Array:
        wide = [None if array is None else widen(array) for array in arrays]
        result = np.asarray(compute(*wide, **attributes))
        assert arrays[0] is not None
        return result.astype(arrays[0].dtype, copy=False)

    return reference


def one_type(*facts: Fact | None) -> DataType | None:
    """The element type that inputs of one formal type share."""
    found = list(dict.fromkeys(fact.dtype for fact in facts if fact is not None and fact.dtype))
    if len(found) > 1:
        raise InferenceError(
            f"inputs must have one element type: {found[0].text} and {found[1].text}"
        )
    return found[0] if found else None


def same_fact(x: Fact, **_: Any) -> Fact:
    """The type and shape of the only input."""
    return tensor(x.dtype, x.shape)


def broadcast_fact(*facts: Fact, **_: Any) -> Fact:
    """The type of inputs that share one, and the shape they broadcast to."""
    return tensor(one_type(*facts), broadcast(*(fact.shape for fact in facts)))


class Unary(Operator):
    """One input, and an output of the same type and shape."""

    upgrade_1 = forget_consumed_inputs
    infer: ClassVar[Hook | None] = same_fact


class Broadcasting(Operator):
    """Inputs of one type, which broadcast; the output has that type too."""

    infer: ClassVar[Hook | None] = broadcast_fact
