"""What users feed, as runs take it: arrays in one piece, aligned, in this machine's byte order."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sardonyx.dtypes import DataType
from sardonyx.errors import InputError
from sardonyx.graph import (
    MapType,
    Model,
    OptionalType,
    SequenceType,
    TensorType,
    Type,
)
from sardonyx.graph.tensor import ArrayData
from sardonyx.runtime.dlpack import take_shared
from sardonyx.runtime.values import plain


def make_ready(name: str, wanted: Type | None, given: Any) -> Any:
    """A value for an input: what is an array stays one, what can become one does.

    >>> make_ready("x", TensorType(DataType.FLOAT, (2,)), [1, 2]).dtype
    dtype('float32')
    """
    if type(given) is np.ndarray:
        return in_one_piece(given)
    item = plain(given)
    match wanted:
        case OptionalType():
            return None if item is None else make_ready(name, wanted.element, item)
        case SequenceType():
            return _sequence(name, wanted, item)
        case MapType():
            if not isinstance(item, dict):
                raise InputError(
                    f"input '{name}' is a {type(item).__name__} where a {wanted} is expected",
                    hint="feed a dict",
                )
            return _map(name, wanted, item)
    return _tensor(name, wanted, item)


def _map(name: str, wanted: MapType, item: dict[Any, Any]) -> dict[Any, Any]:
    """A map whose keys are of the type that is declared."""
    text = wanted.key == DataType.STRING
    fitting = (str,) if text else (int, np.integer)
    for key in item:
        if not isinstance(key, fitting) or isinstance(key, bool):
            raise InputError(
                f"input '{name}' has the key {key!r} where a {wanted} is expected",
                hint=f"keys must be {'strings' if text else 'whole numbers'}",
            )
    return item


def _sequence(name: str, wanted: SequenceType, item: Any) -> list[Any]:
    if not isinstance(item, list | tuple):
        raise InputError(
            f"input '{name}' is a {type(item).__name__} where a {wanted} is expected",
            hint="feed a list",
        )
    return [make_ready(f"{name}[{at}]", wanted.element, part) for at, part in enumerate(item)]


def _tensor(name: str, wanted: Type | None, item: Any) -> Any:
    if isinstance(item, np.ndarray):
        return in_one_piece(np.asarray(item))
    if item is None or isinstance(item, dict):
        raise InputError(
            f"input '{name}' is {type(item).__name__} where a {wanted} is expected",
            hint="feed an array",
        )
    if hasattr(item, "__dlpack__"):
        return in_one_piece(take_shared(item))
    try:
        array = np.asarray(item)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"input '{name}' cannot be made an array: {error}",
            hint="feed an array, or lists of equal lengths",
        ) from None
    return in_one_piece(_said_plainly(array, wanted, item))


def _said_plainly(array: NDArray[Any], wanted: Type | None, item: Any) -> NDArray[Any]:
    """Python's own numbers have no width: they get the one the model expects."""
    element = wanted.element if isinstance(wanted, TensorType) else None
    own = isinstance(item, bool | int | float | list | tuple)
    if not own or not isinstance(element, DataType) or element == DataType.STRING:
        return array
    whole = array.dtype.kind in "iu" and element.is_integer
    if array.size == 0 or whole or (array.dtype.kind in "iuf" and element.is_float):
        return array.astype(element.numpy)
    return array


_DENSE = 0x101
"""NumPy's flags of arrays that are in one piece, in C's order, and aligned."""
_OWNED = 0x404
"""NumPy's flags of arrays that own their memory and can be written to."""


def in_one_piece(array: NDArray[Any]) -> NDArray[Any]:
    """An array as kernels read it: dense, aligned, in this machine's byte order."""
    dtype = array.dtype
    if array.flags.num & _DENSE == _DENSE and dtype.isnative and dtype.kind not in "USTaO":
        return array
    if dtype.kind == "O":
        return _texts(array)
    if dtype.kind == "S":
        return np.char.decode(array, "utf-8").astype(object)
    if dtype.kind in "UTa":
        return array.astype(object)
    if not dtype.isnative:
        array = array.astype(dtype.newbyteorder("="))
    return np.require(array, requirements=["C", "A"])


def _texts(array: NDArray[Any]) -> NDArray[Any]:
    """Objects as strings: what is none, such as NaN, None or a number, as Python writes it."""
    if {*map(type, array.flat)} <= {str}:
        return np.require(array, requirements=["C"])
    texts = np.empty(array.shape, object)
    texts.reshape(-1)[:] = [str(item) for item in array.flat]
    return texts


def identities(items: Iterable[Any]) -> set[int]:
    """Which arrays belong to the user, those in lists too."""
    found: set[int] = set()
    for item in items:
        if isinstance(item, list):
            found |= identities(item)
        else:
            found.add(id(item))
    return found


def constants_of(model: Model) -> frozenset[int]:
    """Which arrays that could be written to belong to a model."""
    return frozenset(
        id(tensor.data.values) for tensor in model.tensors() if isinstance(tensor.data, ArrayData)
    )


def own(item: Any, taken: set[int], constants: frozenset[int] = frozenset()) -> Any:
    """An output in memory of its own: not the model's, an input's or another output's.

    `taken` holds the identities of arrays that belong to somebody, and is added to.
    """
    if isinstance(item, np.ndarray):
        owned = item.flags.num & _OWNED == _OWNED
        if not owned or id(item) in taken or id(item) in constants:
            item = item.copy()
        taken.add(id(item))
        return item
    return [own(part, taken, constants) for part in item] if isinstance(item, list) else item
