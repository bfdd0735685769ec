"""The kinds of attribute: their names in the text, their fields, and which is a list of which."""

from sardonyx.graph.attribute import LISTS, AttributeType

ATTRIBUTE_TYPES = {kind.name.lower(): kind for kind in AttributeType if kind}
"""Attribute types by their name in the textual syntax."""

_SHORT = {
    AttributeType.FLOAT: "f",
    AttributeType.INT: "i",
    AttributeType.STRING: "s",
    AttributeType.TENSOR: "t",
    AttributeType.GRAPH: "g",
    AttributeType.TYPE_PROTO: "tp",
}
FIELDS = {kind: _SHORT.get(kind, name) for name, kind in ATTRIBUTE_TYPES.items()}
"""The AttributeProto field that holds a value of each type."""

_ITEMS = {kind: AttributeType[kind.name[:-1]] for kind in LISTS}
_LISTS = {item: kind for kind, item in _ITEMS.items()}


def item_type(kind: AttributeType) -> AttributeType:
    """The type of one value of a list; the type itself when it is no list.

    >>> item_type(AttributeType.TENSORS).name, item_type(AttributeType.INT).name
    ('TENSOR', 'INT')
    """
    return _ITEMS.get(kind, kind)


def list_type(kind: AttributeType) -> AttributeType:
    """The type of a list of values of type `kind`.

    >>> list_type(AttributeType.INT).name
    'INTS'
    """
    return _LISTS[kind]
