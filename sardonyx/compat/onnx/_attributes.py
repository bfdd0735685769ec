"""Node attributes: making them and reading them."""

import numbers
from collections.abc import Iterable
from typing import Any

from google.protobuf.message import Message

from sardonyx.compat.onnx.onnx_ml_pb2 import (
    AttributeProto,
    GraphProto,
    SparseTensorProto,
    TensorProto,
    TypeProto,
)

_TYPE_NAMES: dict[int, str] = {
    number: name for name, number in AttributeProto.AttributeType.items()
}

_MESSAGE_FIELDS = (
    (TensorProto, "t", "tensors"),
    (SparseTensorProto, "sparse_tensor", "sparse_tensors"),
    (GraphProto, "g", "graphs"),
    (TypeProto, "tp", "type_protos"),
)

_FIELD_OF_TYPE = {
    AttributeProto.FLOAT: "f",
    AttributeProto.INT: "i",
    AttributeProto.STRING: "s",
    AttributeProto.TENSOR: "t",
    AttributeProto.SPARSE_TENSOR: "sparse_tensor",
    AttributeProto.GRAPH: "g",
    AttributeProto.TYPE_PROTO: "tp",
}

_FIELD_OF_LIST_TYPE = {
    AttributeProto.FLOATS: "floats",
    AttributeProto.INTS: "ints",
    AttributeProto.STRINGS: "strings",
    AttributeProto.TENSORS: "tensors",
    AttributeProto.SPARSE_TENSORS: "sparse_tensors",
    AttributeProto.GRAPHS: "graphs",
    AttributeProto.TYPE_PROTOS: "type_protos",
}

_TYPE_OF_FIELD: dict[str, int] = {
    field: kind for kind, field in [*_FIELD_OF_TYPE.items(), *_FIELD_OF_LIST_TYPE.items()]
}

_ITEM_TYPES: list[tuple[Any, int]] = [
    (numbers.Integral, AttributeProto.INTS),
    (numbers.Real, AttributeProto.FLOATS),
    ((str, bytes), AttributeProto.STRINGS),
    *((message, _TYPE_OF_FIELD[field]) for message, _, field in _MESSAGE_FIELDS),
]


def _attr_type_to_str(attr_type: int) -> str:
    """The name of an attribute type; an unknown number is UNDEFINED."""
    return _TYPE_NAMES.get(attr_type, "UNDEFINED")


def _to_bytes(value: str | bytes) -> bytes:
    """Text as UTF-8; anything else as it is."""
    return value.encode("utf-8") if isinstance(value, str) else value


def make_attribute(
    key: str, value: Any, doc_string: str | None = None, attr_type: int | None = None
) -> Any:
    """An AttributeProto called `key`; its type follows from `value`.

    Numbers, text, messages and iterables of one of these are accepted. An empty iterable needs
    `attr_type`; where both are known they must agree.

    >>> from sardonyx.compat.onnx import helper
    >>> helper.make_attribute("axes", [0, 2]).ints
    [0, 2]
    """
    attribute = AttributeProto()
    attribute.name = key
    if doc_string:
        attribute.doc_string = doc_string
    if not _set_single(attribute, value):
        if not isinstance(value, Iterable):
            raise TypeError(f"attribute {key!r} cannot hold a {type(value).__name__}: {value!r}")
        _set_list(attribute, list(value), attr_type)
    if attr_type is not None and attribute.type != attr_type:
        raise TypeError(
            f"the value of attribute {key!r} is of type {_attr_type_to_str(attribute.type)}, "
            f"but attr_type says {_attr_type_to_str(attr_type)} ({attr_type})"
        )
    return attribute


def _set_single(attribute: Any, value: Any) -> bool:
    """Store a value that is not a list; False if it is none."""
    if isinstance(value, numbers.Integral):
        attribute.i, attribute.type = int(value), AttributeProto.INT
    elif isinstance(value, numbers.Real):
        attribute.f, attribute.type = float(value), AttributeProto.FLOAT
    elif isinstance(value, (str, bytes)):
        attribute.s, attribute.type = _to_bytes(value), AttributeProto.STRING
    elif isinstance(value, Message):
        for message, field, _ in _MESSAGE_FIELDS:
            if isinstance(value, message):
                getattr(attribute, field).CopyFrom(value)
                attribute.type = _TYPE_OF_FIELD[field]
                return True
        return False
    else:
        return False
    return True


def _set_list(attribute: Any, values: list[Any], attr_type: int | None) -> None:
    kind = _list_type(attribute.name, values) if attr_type is None else attr_type
    field = _FIELD_OF_LIST_TYPE.get(kind)
    if field is None:
        raise AssertionError(
            f"attribute {attribute.name!r} got a list, but attr_type is {_attr_type_to_str(kind)}"
        )
    if kind == AttributeProto.STRINGS:
        values = [_to_bytes(value) for value in values]
    getattr(attribute, field).extend(values)
    attribute.type = kind


def _list_type(name: str, values: list[Any]) -> int:
    """The attribute type that holds every one of `values`."""
    if not values:
        raise ValueError(f"attribute {name!r} is an empty list: give attr_type as well")
    kinds = {type(value) for value in values}
    for accepted, attribute_type in _ITEM_TYPES:
        if all(issubclass(kind, accepted) for kind in kinds):
            return attribute_type
    found = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise ValueError(f"attribute {name!r} holds {found}: no attribute type fits all of them")


def make_attribute_ref(
    name: str, attr_type: int, doc_string: str | None = None, *, ref_attr_name: str | None = None
) -> Any:
    """An AttributeProto inside a function whose value is the function's attribute `ref_attr_name`.

    >>> from sardonyx.compat.onnx import AttributeProto, helper
    >>> helper.make_attribute_ref("axis", AttributeProto.INT).ref_attr_name
    'axis'
    """
    referred = name if ref_attr_name is None else ref_attr_name
    if not referred:
        raise ValueError(f"attribute {name!r} must refer to a named attribute of its function")
    attribute = AttributeProto(name=name, ref_attr_name=referred)
    attribute.type = attr_type
    if doc_string:
        attribute.doc_string = doc_string
    return attribute


def get_attribute_value(attr: Any) -> Any:
    """The value an AttributeProto holds; lists come as Python lists, UNDEFINED as None.

    >>> from sardonyx.compat.onnx import helper
    >>> helper.get_attribute_value(helper.make_attribute("axes", [0, 2]))
    [0, 2]
    """
    if attr.ref_attr_name:
        raise ValueError(
            f"attribute {attr.name!r} has no value of its own: it refers to "
            f"{attr.ref_attr_name!r} of the enclosing function"
        )
    if attr.type in _FIELD_OF_TYPE:
        return getattr(attr, _FIELD_OF_TYPE[attr.type])
    if attr.type in _FIELD_OF_LIST_TYPE:
        return list(getattr(attr, _FIELD_OF_LIST_TYPE[attr.type]))
    if attr.type == AttributeProto.UNDEFINED:
        return None
    raise ValueError(f"attribute {attr.name!r} has the unknown type {attr.type}")


def get_node_attr_value(node: Any, attr_name: str) -> Any:
    """The value of the one attribute of `node` with that name; ValueError if not exactly one.

    >>> from sardonyx.compat.onnx import helper
    >>> helper.get_node_attr_value(helper.make_node("Concat", ["a", "b"], ["c"], axis=1), "axis")
    1
    """
    found = [attribute for attribute in node.attribute if attribute.name == attr_name]
    if len(found) != 1:
        raise ValueError(f"node {node.name!r} has {len(found)} attributes called {attr_name!r}")
    return get_attribute_value(found[0])
