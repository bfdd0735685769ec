"""Attributes of nodes and functions: immutable, typed."""

from collections.abc import Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from sardonyx.errors import GraphError
from sardonyx.graph.stored_list import StoredList
from sardonyx.graph.tensor import SparseTensor, Tensor
from sardonyx.graph.types import Type

if TYPE_CHECKING:
    from sardonyx.graph.graph import Graph


class AttributeType(IntEnum):
    """The kind of an attribute's value, with ONNX's number."""

    UNDEFINED = 0
    FLOAT = 1
    INT = 2
    STRING = 3
    TENSOR = 4
    GRAPH = 5
    FLOATS = 6
    INTS = 7
    STRINGS = 8
    TENSORS = 9
    GRAPHS = 10
    SPARSE_TENSOR = 11
    SPARSE_TENSORS = 12
    TYPE_PROTO = 13
    TYPE_PROTOS = 14


LISTS = frozenset(kind for kind in AttributeType if kind.name.endswith("S"))
"""Kinds whose value is a tuple, or a `StoredList` where it is long."""


_STORED: dict[type, AttributeType] = {
    int: AttributeType.INTS,
    float: AttributeType.FLOATS,
    bytes: AttributeType.STRINGS,
}


class Attribute:
    """One attribute: name, type and value; in a function it may refer to the caller's instead.

    Strings are bytes, as in the file; `text` decodes them.

    >>> Attribute("axis", -1)
    Attribute('axis', INT, -1)
    >>> Attribute("mode", "linear").value
    b'linear'
    """

    __slots__ = ("doc_string", "leftover", "name", "omitted", "reference", "type", "value")

    name: str
    type: AttributeType | int
    value: Any
    doc_string: str
    reference: str
    leftover: bytes
    omitted: frozenset[str] | None

    def __init__(
        self, name: str, value: Any, type: AttributeType | None = None, *, doc_string: str = ""
    ) -> None:
        self.name = name
        self.type = guess_type(name, value) if type is None else type
        self.value = _normalize(value, self.type)
        self.doc_string = doc_string
        self.reference = ""
        self.leftover = b""
        self.omitted = None

    @classmethod
    def refer(cls, name: str, type: AttributeType, reference: str) -> "Attribute":
        """An attribute of a node in a function that takes the function's attribute `reference`."""
        attribute = cls(name, None, type)
        attribute.reference = reference
        return attribute

    @property
    def text(self) -> str:
        """The value of a string attribute as text."""
        return str(self.value, "utf-8", "surrogateescape")

    @property
    def graphs(self) -> tuple["Graph", ...]:
        """The subgraphs this attribute holds."""
        if self.type == AttributeType.GRAPH and self.value is not None:
            return (self.value,)
        if self.type == AttributeType.GRAPHS and self.value:
            return tuple(self.value)
        return ()

    @property
    def tensors(self) -> tuple[Tensor | SparseTensor, ...]:
        """The tensors this attribute holds."""
        if self.type in (AttributeType.TENSOR, AttributeType.SPARSE_TENSOR):
            return () if self.value is None else (self.value,)
        if self.type in (AttributeType.TENSORS, AttributeType.SPARSE_TENSORS):
            return tuple(self.value or ())
        return ()

    def with_value(self, value: Any) -> "Attribute":
        """The same attribute with another value of the same type."""
        twin = Attribute(self.name, value, AttributeType(self.type), doc_string=self.doc_string)
        twin.reference, twin.leftover, twin.omitted = self.reference, self.leftover, self.omitted
        return twin

    def __repr__(self) -> str:
        kind = self.type.name if isinstance(self.type, AttributeType) else str(self.type)
        value = f"@{self.reference}" if self.reference else repr(self.value)
        return f"Attribute({self.name!r}, {kind}, {value})"


def guess_type(name: str, value: Any) -> AttributeType:
    """The attribute type that fits a Python value."""
    from sardonyx.graph.graph import Graph

    singles: tuple[tuple[Any, AttributeType], ...] = (
        ((bool, int, np.integer, np.bool_), AttributeType.INT),
        ((float, np.floating), AttributeType.FLOAT),
        ((str, bytes), AttributeType.STRING),
        (Tensor, AttributeType.TENSOR),
        (SparseTensor, AttributeType.SPARSE_TENSOR),
        (Graph, AttributeType.GRAPH),
        (Type, AttributeType.TYPE_PROTO),
    )
    for classes, kind in singles:
        if isinstance(value, classes):
            return kind
    if isinstance(value, Sequence | np.ndarray) and len(value):
        kinds = {guess_type(name, item) for item in value}
        if kinds == {AttributeType.INT, AttributeType.FLOAT}:
            kinds = {AttributeType.FLOAT}
        if len(kinds) == 1:
            return AttributeType[kinds.pop().name + "S"]
    raise GraphError(
        f"attribute '{name}' cannot hold {value!r}",
        hint="give a number, string, tensor, graph or type, a list of one of these, or type=",
    )


def _normalize(value: Any, kind: AttributeType | int) -> Any:
    if value is None:
        return None
    if isinstance(value, StoredList) and kind == _STORED[value.stored.item]:
        return value
    match kind:
        case AttributeType.INT:
            return int(value)
        case AttributeType.FLOAT:
            return float(value)
        case AttributeType.STRING:
            return value if isinstance(value, bytes) else value.encode("utf-8", "surrogateescape")
        case AttributeType.INTS:
            return tuple(map(int, value))
        case AttributeType.FLOATS:
            return tuple(map(float, value))
        case AttributeType.STRINGS:
            return tuple(_normalize(item, AttributeType.STRING) for item in value)
    return tuple(value) if kind in LISTS else value
