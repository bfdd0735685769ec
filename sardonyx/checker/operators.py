"""Rules about nodes: operators, numbers and types of inputs and outputs, and attributes."""

from collections.abc import Iterator, Sequence

from sardonyx.checker.attributes import CheckGraph, check_attribute
from sardonyx.checker.context import Context, Interface
from sardonyx.checker.devices import check_node_devices
from sardonyx.checker.findings import Place
from sardonyx.checker.metadata import check_metadata
from sardonyx.checker.versions import OVERLOADS
from sardonyx.format.tags import NODE
from sardonyx.graph import Attribute, AttributeType, Node, Value
from sardonyx.graph.attribute import LISTS
from sardonyx.ops.catalog import NEWEST_OPSETS, canonical_domain
from sardonyx.ops.operator import Operator
from sardonyx.ops.signature import Arity, Formal, Signature

STANDARD_DOMAINS = frozenset({"", "ai.onnx.ml", "ai.onnx.training"})
"""Domains in which every operator is known."""
EXPERIMENTAL = frozenset(
    {
        "ATen",
        "Affine",
        "ConstantFill",
        "Crop",
        "DynamicSlice",
        "GRUUnit",
        "GivenTensorFill",
        "ImageScaler",
        "ParametricSoftplus",
        "Scale",
        "ScaledTanh",
    }
)
"""Operators of early models that no version of the standard defines."""
_MESSAGES = frozenset(
    {
        AttributeType.TENSOR,
        AttributeType.GRAPH,
        AttributeType.SPARSE_TENSOR,
        AttributeType.TYPE_PROTO,
    }
)


def check_node(context: Context, node: Node, place: Place, check_graph: CheckGraph) -> None:
    """All rules about one node that do not depend on where its inputs come from."""
    report = context.report
    if not node.op_type:
        report.add("operator-empty", place, "the node does not name its operator")
    if not node.inputs and not node.outputs:
        report.add("node-empty", place, "the node has neither inputs nor outputs")
    if node.overload:
        context.require_ir(OVERLOADS, "overloads of functions", place)
    if node.metadata or node.leftover:
        check_metadata(context, node, NODE, place)
    if node.device_configurations:
        check_node_devices(context, node, place)
    for name, attribute in node.attributes.items():
        check_attribute(context, attribute, place / f"attribute '{name}'", check_graph)
    for attribute in node.surplus:
        what = f"the attribute '{attribute.name}' is given more than once"
        report.add("attribute-duplicate", place / f"attribute '{attribute.name}'", what)
    if node.op_type:
        _check_operator(context, node, place)


def _check_operator(context: Context, node: Node, place: Place) -> None:
    report = context.report
    version = context.version(node.domain)
    if version is None:
        what = f"the domain '{node.domain or 'ai.onnx'}' is not imported"
        report.add("domain-not-imported", place, what)
        return
    domain = canonical_domain(node.domain)
    if node.domain != domain:
        what = f"the default domain is spelled '{node.domain}'"
        report.add("domain-spelling", place, what)
    if domain == "" and node.op_type in EXPERIMENTAL:
        report.add("operator-experimental", place, f"{node.op_type} was only ever an experiment")
        return
    function = context.functions.get((node.domain, node.op_type, node.overload))
    if function is not None:
        _check_call(context, node, function, place)
    operator = context.catalog.get((domain, node.op_type))
    signature = None if operator is None else operator.at(version)
    if operator is None or signature is None:
        _note_unknown(context, node, operator, version, function is not None, place)
        _check_empty_attributes(context, node, place)
    elif signature.deprecated:
        what = f"{node.op_type} is deprecated since version {signature.since} of its operator set"
        report.add("operator-deprecated", place, what)
    else:
        check_signature(context, node, operator, signature, place)


def _note_unknown(
    context: Context,
    node: Node,
    operator: type[Operator] | None,
    version: int,
    is_function: bool,
    place: Place,
) -> None:
    domain = canonical_domain(node.domain)
    if domain not in STANDARD_DOMAINS:
        if not context.custom_domains and not is_function:
            what = f"the operator {node.domain}.{node.op_type} is not known"
            context.report.add("operator-custom-unknown", place, what)
    elif is_function:
        what = f"the function {node.op_type} lies in a domain of the standard"
        context.report.add("function-standard-domain", place, what)
    elif operator is not None:
        since = operator.versions()[0].since
        what = f"{node.op_type} begins with version {since}, the version imported is {version}"
        context.report.add("operator-not-yet", place, what)
    else:
        known = f" up to version {NEWEST_OPSETS[domain]}" if domain in NEWEST_OPSETS else ""
        what = f"'{domain or 'ai.onnx'}' has no operator {node.op_type}{known}"
        context.report.add("operator-unknown", place, what)


def _check_call(context: Context, node: Node, function: Interface, place: Place) -> None:
    report = context.report
    if len(node.inputs) > function.inputs:
        what = f"the call passes {len(node.inputs)} inputs, the function takes {function.inputs}"
        report.add("call-too-many-inputs", place, what)
    if len(node.outputs) > function.outputs:
        what = f"the call takes {len(node.outputs)} outputs, the function has {function.outputs}"
        report.add("call-too-many-outputs", place, what)
    for name in node.attributes:
        if name not in function.attributes:
            what = f"the function {function.name} has no attribute '{name}'"
            report.add("call-attribute-unknown", place / f"attribute '{name}'", what)
    missing = next((name for name in function.required if name not in node.attributes), None)
    if missing is not None:
        what = f"the function's attribute '{missing}' is not given"
        report.add("call-attribute-missing", place, what)


def check_signature(
    context: Context, node: Node, operator: type[Operator], signature: Signature, place: Place
) -> None:
    """Rules that the operator's signature makes."""
    _check_count(context, "input", len(node.inputs), signature.input_range, place)
    _check_count(context, "output", len(node.outputs), signature.output_range, place)
    counts = operator.output_counts.get(signature.since)
    if counts and len(node.outputs) not in counts:
        what = f"there are {len(node.outputs)} outputs, the operator takes {counts}"
        context.report.add("output-count", place, what)
    for position, (formal, value) in enumerate(zip(signature.inputs, node.inputs, strict=False)):
        if value is None and formal.arity is Arity.ONE:
            what = f"the input '{formal.name}' is required but empty"
            context.report.add("input-required-empty", place / f"input {position}", what)
    outputs = zip(signature.outputs, node.outputs, strict=False)
    for position, (formal, output) in enumerate(outputs):
        if formal.arity is Arity.ONE and not output.name and not output.uses:
            what = f"the output '{formal.name}' is required but empty"
            context.report.add("output-required-empty", place / f"output {position}", what)
    for name, attribute in node.attributes.items():
        if name in signature.attributes or not operator.open_attributes:
            _check_formal_attribute(context, signature, attribute, place / f"attribute '{name}'")
    for name, attribute_formal in signature.attributes.items():
        if attribute_formal.required and name not in node.attributes:
            what = f"the attribute '{name}' is missing"
            context.report.add("attribute-missing", place, what)
    _check_types(context, node, signature, place)


def _check_count(
    context: Context, side: str, count: int, limits: tuple[int, int | None], place: Place
) -> None:
    least, most = limits
    if count < least:
        what = f"there are {count} {side}s, the operator takes at least {least}"
        context.report.add(f"too-few-{side}s", place, what)
    elif most is not None and count > most:
        what = f"there are {count} {side}s, the operator takes at most {most}"
        context.report.add(f"too-many-{side}s", place, what)


def _check_formal_attribute(
    context: Context, signature: Signature, attribute: Attribute, place: Place
) -> None:
    report = context.report
    formal = signature.attributes.get(attribute.name)
    if formal is None:
        if attribute.name and not attribute.name.startswith("__"):
            what = f"version {signature.since} of the operator has no attribute '{attribute.name}'"
            report.add("attribute-unknown", place, what)
        return
    untyped = "type" in (attribute.omitted or ())
    if attribute.type != formal.kind or untyped:
        found = "not set" if untyped else f"{getattr(attribute.type, 'name', attribute.type)}"
        what = f"the attribute's type is {found}, the operator takes {formal.kind.name}"
        report.add("attribute-type", place, what)
    elif attribute.value is None and not attribute.reference and formal.kind in _MESSAGES:
        report.add("attribute-without-value", place, "the attribute has no value")


def _check_empty_attributes(context: Context, node: Node, place: Place) -> None:
    """Note attributes that say nothing, for operators whose signature is not known."""
    for name, attribute in node.attributes.items():
        missing = attribute.value is None and attribute.type not in LISTS
        if missing and not attribute.reference and not attribute.leftover:
            what = "the attribute has no value"
            context.report.add("attribute-empty", place / f"attribute '{name}'", what)


def _check_types(context: Context, node: Node, signature: Signature, place: Place) -> None:
    """Types of inputs and outputs are among those allowed, and one variable means one type."""
    bound: dict[str, tuple[str, str]] = {}
    for side, position, formal, value in _actuals(node, signature):
        found = context.type_of(value)
        if found is None:
            continue
        label = f"{side} {position}"
        if found not in signature.types(formal):
            what = f"'{value.name}' is {found}, which '{formal.name}' does not take"
            context.report.add("type-not-allowed", place / label, what)
        elif formal.type in signature.constraints and not formal.each:
            other, where = bound.setdefault(formal.type, (found, label))
            if other != found:
                what = f"'{value.name}' is {found}, but {where}, of the same type, is {other}"
                context.report.add("type-inconsistent", place / label, what)


def _actuals(node: Node, signature: Signature) -> Iterator[tuple[str, int, Formal, Value]]:
    sides: tuple[tuple[str, tuple[Formal, ...], Sequence[Value | None]], ...] = (
        ("input", signature.inputs, node.inputs),
        ("output", signature.outputs, node.outputs),
    )
    for side, formals, values in sides:
        last = len(formals) - 1
        for position, value in enumerate(values):
            if position > last and (last < 0 or not formals[last].arity.variadic):
                break
            if value is not None:
                yield side, position, formals[min(position, last)], value
