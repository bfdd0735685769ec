"""What inference knows, to and from messages."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sardonyx.compat.onnx.onnx_ml_pb2 import AttributeProto, TensorProto, TypeProto
from sardonyx.dims import HIDDEN, Expression
from sardonyx.format.read_types import read_type
from sardonyx.format.write import write_attribute, write_tensor, write_type
from sardonyx.graph import (
    Attribute,
    Dimension,
    MapType,
    OptionalType,
    SequenceType,
    SparseTensor,
    Tensor,
    TensorType,
    Type,
    Value,
)
from sardonyx.ops.fact import Fact, from_type

Name = Callable[[str], Dimension]
"""How a size that only inference named is written down."""


def read_fact(proto: Any) -> Fact:
    """What a TypeProto says."""
    content = proto.SerializeToString()
    return from_type(read_type(content, 0, len(content))) if content else Fact()


def type_proto(fact: Fact, name: Name = lambda _: None) -> Any:
    """The TypeProto that says what is known of a value's type."""
    proto = TypeProto()
    kind = fact_type(fact, name)
    if kind is not None:
        proto.ParseFromString(write_type(kind).joined())
    return proto


def fact_type(fact: Fact, name: Name) -> Type | None:
    """The type of a fact, with sizes that only inference named as `name` says."""
    if not fact.is_tensor and not isinstance(fact.type, TensorType):
        return fact.type and _renamed(fact.type, name)
    if fact.dtype is None and fact.shape is None:
        return None
    sizes = fact.shape
    shape = None if sizes is None else tuple(_dimension(size, name) for size in sizes)
    if isinstance(fact.type, TensorType):
        return replace(fact.type, element=fact.dtype, shape=shape, verbatim=None)
    return TensorType(fact.dtype, shape)


def _dimension(size: Any, name: Name) -> Dimension:
    if isinstance(size, Expression):
        hidden = any(symbol.startswith(HIDDEN) for symbol in size.symbols)
        return name(str(size)) if hidden else str(size)
    if isinstance(size, str):
        return name(size) if HIDDEN in size else size
    return name("") if size is None else size


def _renamed(type_: Type, name: Name) -> Type:
    match type_:
        case TensorType() if type_.shape is not None:
            return type_.with_shape(tuple(_dimension(size, name) for size in type_.shape))
        case SequenceType() | OptionalType() if type_.element is not None:
            return replace(type_, element=_renamed(type_.element, name), verbatim=None)
        case MapType() if type_.value is not None:
            return replace(type_, value=_renamed(type_.value, name), verbatim=None)
    return type_


def value_proto(fact: Fact) -> Any:
    """The TensorProto of a constant's known elements, or None."""
    known = fact.constant
    if known is None or fact.dtype is None:
        return None
    content = write_tensor(Tensor(known, dtype=fact.dtype), "").joined()
    return TensorProto.FromString(content)


def sparse_proto(value: Value) -> Any:
    """The SparseTensorProto of a sparse constant, or None."""
    if not isinstance(value.tensor, SparseTensor):
        return None
    content = write_attribute(Attribute(value.name, value.tensor)).joined()
    return AttributeProto.FromString(content).sparse_tensor
