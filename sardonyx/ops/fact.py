"""What is known of a value before anything runs: its type, its shape, and small contents."""

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sardonyx.dims import (
    LARGEST_ELEMENT,
    Expression,
    Size,
    is_nonnegative,
    is_small,
    minimum,
    symbol,
)
from sardonyx.dims import broadcast as broadcast_sizes
from sardonyx.dtypes import DataType
from sardonyx.errors import InferenceError
from sardonyx.graph import (
    Dimension,
    OptionalType,
    SequenceType,
    SparseTensorType,
    TensorType,
    Type,
)
from sardonyx.graph.tensor import HIGHEST_RANK
from sardonyx.graph.types import element_text
from sardonyx.record import entity

Sizes = tuple[Size | None, ...]
"""A shape in inference: numbers, symbolic sizes, and None for what is unknown."""

Assumptions = list[tuple[Size, Size]]
"""Sizes that must be equal."""

LARGEST_VALUE = 1024
"""Constants with more elements than this are not followed through inference."""
LARGEST_SIZE = 2**63 - 1
"""The largest size a type can declare."""
DEEPEST_TYPE = 48
"""How many types may lie inside one another, as in files."""
ASSUMED: ContextVar[Assumptions | None] = ContextVar("ASSUMED", default=None)
"""Where hooks of operators note what they take for granted, while somebody listens."""


@entity
class Fact:
    """What is known of one value.

    For a tensor `dtype` and `shape` are set as far as they are known. `value` holds its elements
    where they are known: a plain array, or an array of objects where some are symbolic sizes or
    None (unknown). For sequences, maps and optionals `type` says all there is.
    """

    type: Type | None = None
    dtype: DataType | None = None
    shape: Sizes | None = None
    value: NDArray[Any] | None = None

    @property
    def rank(self) -> int | None:
        """The number of dimensions, where it is known."""
        return None if self.shape is None else len(self.shape)

    @property
    def is_tensor(self) -> bool:
        """True for dense tensors, also where nothing else is known."""
        return self.type is None or isinstance(self.type, TensorType)

    @property
    def constant(self) -> NDArray[Any] | None:
        """The elements, where every one of them is a known number or string."""
        if self.value is None or (self.value.dtype == object and self.dtype != DataType.STRING):
            return None
        return self.value

    def sizes(self) -> Sizes | None:
        """The elements of an integer vector, where at least their number is known."""
        if self.value is not None:
            return tuple(_size(item) for item in self.value.reshape(-1))
        count = self.shape[0] if self.shape is not None and len(self.shape) == 1 else None
        if isinstance(count, int) and count <= LARGEST_VALUE:
            return (None,) * count
        return None

    def scalar(self) -> Any:
        """The only element, where it is known: a number or a symbolic size."""
        if self.value is None or self.value.size != 1:
            return None
        return self.value.reshape(-1)[0]

    def with_value(self, value: NDArray[Any] | None) -> "Fact":
        """The same fact with known elements; whole numbers among objects become plain ones.

        Arithmetic on elements wraps around, so what could leave 64 bits is not known.
        """
        if value is None or value.dtype != object or self.dtype == DataType.STRING:
            return replace(self, value=value)
        if not all(map(_fits, value.flat)):
            kept = [item if _fits(item) else None for item in value.flat]
            value = np.array([*kept, None], object)[:-1].reshape(value.shape)
        if all(isinstance(item, int | np.integer) for item in value.flat):
            value = value.astype(bool if self.dtype == DataType.BOOL else np.int64)
        return replace(self, value=value)

    def __str__(self) -> str:
        if not self.is_tensor:
            return str(self.type)
        shape = "" if self.shape is None else sizes_text(self.shape)
        return element_text(self.dtype) + shape


def _fits(item: Any) -> bool:
    if isinstance(item, Expression):
        return is_small(item, LARGEST_ELEMENT)
    return not isinstance(item, int) or -LARGEST_SIZE <= item + 1 <= LARGEST_SIZE + 1


def _size(item: Any) -> Size | None:
    if item is None or isinstance(item, Expression):
        return item
    return int(item)


def tensor(dtype: DataType | None, shape: Sequence[Size | None] | None) -> Fact:
    """The fact of a tensor.

    >>> print(tensor(DataType.FLOAT, (symbol("n"), 3)))
    float[n,3]
    """
    return Fact(None, dtype, None if shape is None else tuple(shape))


def unknown(rank: int | None, dtype: DataType | None = None) -> Fact:
    """The fact of a tensor with `rank` unknown dimensions, or of unknown rank."""
    return tensor(dtype, None if rank is None else (None,) * rank)


def from_type(type_: Type | None) -> Fact:
    """What a declared type says; symbols become symbolic sizes."""
    if not isinstance(type_, TensorType):
        return Fact(None if type(type_) is Type else type_)
    element = type_.element if isinstance(type_.element, DataType) and type_.element else None
    shape = None if type_.shape is None else tuple(_from_dimension(size) for size in type_.shape)
    return Fact(None if type(type_) is TensorType else type_, element, shape)


def without_shape(type_: Type | None) -> Type | None:
    """A type with all shapes in it left open.

    >>> print(without_shape(SequenceType(TensorType(DataType.FLOAT, (2, 3)))))
    seq(float)
    """
    match type_:
        case TensorType() | SparseTensorType():
            return type_.with_shape(None)
        case SequenceType() | OptionalType():
            return type(type_)(without_shape(type_.element))
    return type_


def _from_dimension(size: Dimension) -> Size | None:
    if isinstance(size, str):
        return symbol(size) if size else None
    return None if size is None or size < 0 else size


def to_type(fact: Fact, hidden: str = "") -> Type | None:
    """The type to declare for a fact; sizes with symbols that start with `hidden` are left out."""
    if fact.type is not None and type(fact.type) is not TensorType:
        return fact.type
    if fact.dtype is None and fact.shape is None:
        return None
    shape = (
        None if fact.shape is None else tuple(_to_dimension(size, hidden) for size in fact.shape)
    )
    return TensorType(fact.dtype, shape)


def _to_dimension(size: Size | None, hidden: str) -> Dimension:
    if isinstance(size, Expression):
        made_up = hidden and any(name.startswith(hidden) for name in size.symbols)
        return None if made_up else str(size)
    return size


def of_array(array: Any, dtype: DataType | None = None) -> Fact:
    """The fact of a constant; large contents are not kept."""
    from sardonyx.dtypes import from_numpy

    array = np.asarray(array)
    kept = array if array.size <= LARGEST_VALUE else None
    return Fact(None, dtype or from_numpy(array.dtype), array.shape, kept)


def broadcast(*shapes: Sizes | None) -> Sizes | None:
    """The shape of several together under NumPy's broadcasting; None where one is unknown."""
    known = [shape for shape in shapes if shape is not None]
    if len(known) < len(shapes):
        return None
    rank = max(map(len, known), default=0)
    result: list[Size | None] = []
    for axis in range(-rank, 0):
        result.append(
            _broadcast_axis([shape[axis] for shape in known if len(shape) >= -axis], known)
        )
    return tuple(result)


def _broadcast_axis(sizes: list[Size | None], shapes: list[Sizes]) -> Size | None:
    fixed = next((size for size in sizes if isinstance(size, int) and size != 1), None)
    result: Size = 1
    for size in sizes:
        if size is None:
            return fixed
        together = broadcast_sizes(result, size)
        if together is None:
            texts = " and ".join(sizes_text(shape) for shape in shapes)
            raise InferenceError(f"shapes {texts} do not broadcast: {result} against {size}")
        result = together
    return result


def require_sizes(fact: object) -> None:
    """Refuse sizes that no tensor has, and types that no file can say."""
    if not isinstance(fact, Fact):
        return
    shape = fact.shape or ()
    if len(shape) > HIGHEST_RANK:
        raise InferenceError(f"a result would have {len(shape)} dimensions, {HIGHEST_RANK} at most")
    for size in shape:
        if isinstance(size, int) and not 0 <= size <= LARGEST_SIZE:
            raise InferenceError(f"a size would be {size}")
    depth, inner = 0, fact.type
    while isinstance(inner, SequenceType | OptionalType):
        depth, inner = depth + 1, inner.element
        if depth > DEEPEST_TYPE:
            raise InferenceError(f"more than {DEEPEST_TYPE} types lie inside one another")


def sizes_text(shape: Sizes) -> str:
    """A shape in brackets."""
    return "[" + ",".join("?" if size is None else str(size) for size in shape) + "]"


def axis_of(axis: int, rank: int, what: str = "axis") -> int:
    """A possibly negative axis as one from 0; an error where there is no such axis."""
    if not -rank <= axis < rank:
        raise InferenceError(f"{what} {axis} does not fit rank {rank}")
    return axis % rank


def same_size(left: Size | None, right: Size | None, what: str) -> Size | None:
    """The size both have; an error where two numbers differ, a note where only a run tells."""
    if left is None or right is None:
        return right if left is None else left
    if isinstance(left, int) and isinstance(right, int) and left != right:
        raise InferenceError(f"{what}: {left} against {right}")
    noted = ASSUMED.get()
    if noted is not None and left != right:
        noted.append((left, right))
    return right if isinstance(right, int) else left


def require_room(room: Size | None, what: str) -> None:
    """An error where a size is below 0, a note where only a run tells."""
    if isinstance(room, int) and room < 0:
        raise InferenceError(what)
    noted = ASSUMED.get()
    if noted is not None and room is not None and not is_nonnegative(room):
        noted.append((minimum(room, 0), 0))


def merge(left: Fact, right: Fact) -> Fact:
    """What holds where both facts are about the same value: the more precise of each part."""
    if not left.is_tensor or not right.is_tensor:
        return left if left.type is not None else right
    shape = left.shape if right.shape is None else right.shape
    if left.shape is not None and right.shape is not None:
        if len(left.shape) != len(right.shape):
            raise InferenceError(f"ranks differ: {left} against {right}")
        shape = tuple(
            same_size(a, b, f"sizes differ in {left} against {right}")
            for a, b in zip(left.shape, right.shape, strict=True)
        )
    if left.dtype and right.dtype and left.dtype != right.dtype:
        raise InferenceError(f"element types differ: {left} against {right}")
    value = left.value if left.value is not None else right.value
    return Fact(left.type or right.type, left.dtype or right.dtype, shape, value)


def join(left: Fact, right: Fact) -> Fact:
    """What holds where a value is either of two: only what they agree in."""
    if not left.is_tensor or not right.is_tensor:
        return left if left.type == right.type else Fact(_join_containers(left.type, right.type))
    shape: Sizes | None = None
    if left.shape is not None and right.shape is not None and left.rank == right.rank:
        shape = tuple(a if a == b else None for a, b in zip(left.shape, right.shape, strict=True))
    return tensor(left.dtype if left.dtype == right.dtype else None, shape)


def _join_containers(left: Type | None, right: Type | None) -> Type | None:
    for kind in (SequenceType, OptionalType):
        if isinstance(left, kind) and isinstance(right, kind):
            return kind(to_type(join(from_type(left.element), from_type(right.element))))
    return None
