"""Types of values: immutable, comparable, hashable."""

from dataclasses import dataclass, field, replace

from sardonyx.dtypes import DataType, data_type

Dimension = int | str | None
"""A size: a number, the name of a symbol, or unknown."""
Shape = tuple[Dimension, ...]


@dataclass(frozen=True, slots=True)
class Type:
    """Root of all types; by itself, a type of which nothing is known.

    `verbatim` holds the bytes it was read from where those say more than its fields do.
    """

    denotation: str | None = field(default=None, kw_only=True)
    verbatim: bytes | None = field(default=None, kw_only=True, compare=False, repr=False)

    def __str__(self) -> str:
        return "?"


@dataclass(frozen=True, slots=True)
class TensorType(Type):
    """A dense tensor; `shape` is None where even the rank is unknown.

    >>> print(TensorType(DataType.FLOAT, ("batch", 3, None)))
    float[batch,3,?]
    """

    element: DataType | int | None
    shape: Shape | None = None
    dim_denotations: tuple[str | None, ...] | None = field(default=None, kw_only=True)

    def __str__(self) -> str:
        return element_text(self.element) + shape_text(self.shape)

    def with_shape(self, shape: Shape | None) -> "TensorType":
        """The same type with another shape."""
        return replace(self, shape=shape, dim_denotations=None, verbatim=None)


@dataclass(frozen=True, slots=True)
class SparseTensorType(TensorType):
    """A sparse tensor."""

    def __str__(self) -> str:
        return f"sparse_tensor({TensorType.__str__(self)})"


@dataclass(frozen=True, slots=True)
class SequenceType(Type):
    """A list of values of one type."""

    element: Type | None

    def __str__(self) -> str:
        return f"seq({self.element or '?'})"


@dataclass(frozen=True, slots=True)
class OptionalType(Type):
    """A value or nothing."""

    element: Type | None

    def __str__(self) -> str:
        return f"optional({self.element or '?'})"


@dataclass(frozen=True, slots=True)
class MapType(Type):
    """A dictionary from integers or strings to values of one type."""

    key: DataType | int | None
    value: Type | None

    def __str__(self) -> str:
        return f"map({element_text(self.key)}, {self.value or '?'})"


@dataclass(frozen=True, slots=True)
class OpaqueType(Type):
    """A type that only the operators of some domain understand."""

    domain: str | None = None
    name: str | None = None

    def __str__(self) -> str:
        return f"opaque({self.domain or ''}, {self.name or ''})"


def element_text(element: DataType | int | None) -> str:
    """An element type's name in text, also where the number is unknown."""
    if element is None:
        return "?"
    return element.text if isinstance(element, DataType) else f"type{element}"


def shape_text(shape: Shape | None) -> str:
    """A shape in brackets; nothing where the rank is unknown."""
    if shape is None:
        return ""
    return "[" + ",".join("?" if size is None else str(size) for size in shape) + "]"


def known_element(number: int) -> DataType | int:
    """The element type with `number`, or the bare number where it is unknown."""
    return data_type(number) if number in _NUMBERS else number


_NUMBERS = frozenset(DataType)
