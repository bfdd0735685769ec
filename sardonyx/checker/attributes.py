"""Rules about attributes by themselves, whatever operator they belong to."""

from collections.abc import Callable

from sardonyx.checker.context import Context, kept_fields
from sardonyx.checker.declarations import check_type
from sardonyx.checker.findings import Place
from sardonyx.checker.sparse import check_sparse_tensor
from sardonyx.checker.tensors import check_tensor
from sardonyx.checker.versions import require_type
from sardonyx.format.read_node import VALUE_TAGS
from sardonyx.format.tags import ATTRIBUTE
from sardonyx.graph import Attribute, AttributeType, Graph, SparseTensor
from sardonyx.graph.attribute import LISTS

_VALUE_NUMBERS = {tag >> 3: kind for kind, tag in VALUE_TAGS.items()}
_REFERENCE = ATTRIBUTE.ref_attr_name >> 3
_TYPES_SINCE = 2
"""The IR version that gave attributes a type field."""

CheckGraph = Callable[[Graph, Place], None]


def check_attribute(
    context: Context, attribute: Attribute, place: Place, check_graph: CheckGraph
) -> None:
    """Rules about one attribute; `check_graph` is called for the graphs it holds."""
    report = context.report
    if not attribute.name:
        report.add("attribute-name-empty", place, "the attribute has no name")
    if context.ir_version >= _TYPES_SINCE:
        if attribute.omitted and "type" in attribute.omitted:
            report.add("attribute-type-missing", place, "the attribute's type is not set")
        elif not isinstance(attribute.type, AttributeType):
            what = f"the attribute type {attribute.type} does not exist"
            report.add("attribute-type-unknown", place, what)
    _check_fields(context, attribute, place)
    if attribute.reference:
        _check_reference(context, attribute, place)
    for tensor in attribute.tensors:
        if isinstance(tensor, SparseTensor):
            check_sparse_tensor(context, tensor, place)
        else:
            check_tensor(context, tensor, place)
    for graph in attribute.graphs:
        check_graph(graph, place)
    if attribute.type in (AttributeType.TYPE_PROTO, AttributeType.TYPE_PROTOS):
        types = attribute.value if attribute.type in LISTS else (attribute.value,)
        for type_ in types or ():
            check_type(context, type_, place)
            require_type(context, type_, place)


def has_value(attribute: Attribute) -> bool:
    """True where an attribute holds a value, not merely a default for an absent one."""
    if attribute.omitted and "value" in attribute.omitted:
        return False
    return bool(attribute.value) if attribute.type in LISTS else attribute.value is not None


def _check_fields(context: Context, attribute: Attribute, place: Place) -> None:
    """An attribute has one value, in the field its type says."""
    report = context.report
    others: dict[AttributeType, None] = {}
    names_nothing = False
    for number, content in kept_fields(attribute.leftover) if attribute.leftover else ():
        kind = _VALUE_NUMBERS.get(number)
        if kind is not None and not (kind in _PACKED and content == b""):
            others[kind] = None
        names_nothing |= number == _REFERENCE
        if number not in ATTRIBUTE.numbers:
            report.add("unknown-field", place, f"the field {number} is not known")
    used = has_value(attribute)
    if len(others) + used > 1:
        kinds = [kind.name for kind in others]
        kinds += [AttributeType(attribute.type).name] if used else []
        what = f"the attribute has several values: {', '.join(kinds)}"
        report.add("attribute-several-values", place, what)
    elif others and isinstance(attribute.type, AttributeType):
        kind = next(iter(others))
        what = (
            f"the attribute has the type {attribute.type.name} but a value of the type {kind.name}"
        )
        report.add("attribute-field-mismatch", place, what)
    if (used or others) and (attribute.reference or names_nothing):
        what = f"the attribute refers to '{attribute.reference}' and has a value too"
        nested = context.nested
        if nested or attribute.reference:
            rule = "nested-reference-with-value" if nested else "reference-with-value"
            report.add(rule, place, what)


_PACKED = (AttributeType.FLOATS, AttributeType.INTS)


def _check_reference(context: Context, attribute: Attribute, place: Place) -> None:
    report, function = context.report, context.function
    if function is None:
        what = f"the attribute refers to '{attribute.reference}' outside of any function"
        report.add("reference-outside-function", place, what)
        return
    if attribute.reference not in function.attributes:
        what = f"the attribute refers to '{attribute.reference}', which the function does not have"
        report.add("reference-undeclared", place, what)
    elif function.attributes[attribute.reference] not in (None, attribute.type):
        what = f"the function's attribute '{attribute.reference}' has another type"
        report.add("reference-type", place, what)
