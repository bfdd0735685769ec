"""Text in a drawing: how wide it is about, and how it is cut."""

from unicodedata import east_asian_width

from sardonyx.graph import Attribute, AttributeType
from sardonyx.graph.types import Type, element_text, known_element

NAME_LIMIT = 400
TEXT_LIMIT = 1_500
DOC_LIMIT = 20_000
_ELEMENT_TYPES = frozenset(("to", "dtype", "output_dtype"))
"""Attributes whose number stands for an element type."""
_NARROW = frozenset("fijlrtI.,:;'|!()[]{}/ -\"")
_WIDE = frozenset("mwMW@%<>=+~#&")


def text_width(text: str, size: float) -> float:
    """About how wide a text is in a usual sans-serif font of `size` pixels."""
    return sum(map(_character_width, text)) * size


def _character_width(character: str) -> float:
    if character in _NARROW:
        return 0.36
    if character in _WIDE:
        return 0.9
    if character > "ÿ":
        return 1.1 if east_asian_width(character) in "WF" else 0.75
    if character.isdigit():
        return 0.64
    return 0.7 if character.isupper() else 0.6


def fit(text: str, size: float, width: float) -> str:
    """The text, cut with an ellipsis where it is wider than `width`.

    >>> fit("a rather long text", 10, 50)
    'a rather …'
    """
    used = 0.0
    for index, character in enumerate(text):
        used += _character_width(character) * size
        if used > width:
            return text[: max(1, index - 1)] + "…"
    return text


def cut(text: str, limit: int) -> str:
    """The text, or its beginning and how long it really is.

    >>> cut("abcdef", 3)
    'abc… (6 characters)'
    """
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"


def one_line(text: str) -> str:
    """The text with anything that would break a line as a space."""
    return " ".join(text.split()) if not text.isprintable() else text


def attribute_text(attribute: Attribute) -> str:
    """An attribute's value as a reader wants it; tensors and graphs only by their types."""
    if attribute.reference:
        return f"@{attribute.reference}"
    value = attribute.value
    if value is None:
        return "absent"
    match attribute.type:
        case AttributeType.INT if attribute.name in _ELEMENT_TYPES:
            return element_text(known_element(value))
        case AttributeType.FLOAT:
            return _number(value)
        case AttributeType.STRING:
            return cut(_string(value), TEXT_LIMIT)
        case AttributeType.FLOATS:
            return _listed([_number(item) for item in value[:200]], len(value))
        case AttributeType.INTS:
            return _listed([str(item) for item in value[:200]], len(value))
        case AttributeType.STRINGS:
            return _listed([_string(item) for item in value[:200]], len(value))
        case AttributeType.TENSOR | AttributeType.SPARSE_TENSOR:
            return str(value.type)
        case AttributeType.TENSORS | AttributeType.SPARSE_TENSORS:
            return _listed([str(item.type) for item in value[:20]], len(value))
        case AttributeType.GRAPH:
            return f"{len(value.nodes)} nodes"
        case AttributeType.GRAPHS:
            return f"{len(value)} graphs"
    return cut(str(value), TEXT_LIMIT)


def type_text(type_: Type | None) -> str:
    """A type as text, nothing where it is unknown."""
    return "" if type_ is None or type(type_) is Type else cut(str(type_), NAME_LIMIT)


def _number(value: float) -> str:
    return f"{value:.6g}"


def _string(value: bytes) -> str:
    return str(value, "utf-8", "replace")


def _listed(items: list[str], count: int) -> str:
    more = f", … {count} in all" if count > len(items) else ""
    return cut("[" + ", ".join(items) + more + "]", TEXT_LIMIT)
