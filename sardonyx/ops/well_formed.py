"""Nodes that are not what their operator's signature says, so that nobody can work with them.

Whoever calls hooks or passes on a model asks here first, and again once functions are inlined,
since it takes a call to say what their nodes get.
"""

from collections.abc import Mapping, Sequence

from sardonyx.errors import GraphError
from sardonyx.graph import Attribute, AttributeType, Graph, Model, Node, Value
from sardonyx.graph.calls import call_key
from sardonyx.ops.catalog import Catalog, canonical_domain
from sardonyx.ops.operator import Operator
from sardonyx.ops.signature import Arity, AttributeFormal, Formal, Signature, attribute_fits


def require_well_formed(model: Model, operators: Catalog) -> None:
    """Raise for the first node that does not fit its operator at the model's versions."""
    functions = {function.key for function in model.functions}
    parts: list[tuple[Graph, Mapping[str, int], bool]] = [
        (function.graph, function.opsets, True) for function in model.functions
    ]
    if model.graph is not None:
        parts.append((model.graph, model.opsets, False))
    for graph, opsets, in_function in parts:
        versions = {canonical_domain(domain): version for domain, version in opsets.items()}
        found: dict[tuple[str, str], tuple[type[Operator], Signature] | None] = {}
        for node in graph.all_nodes():
            key = (node.domain, node.op_type)
            if key not in found:
                found[key] = _operator_at(key, versions, operators)
            known = None if call_key(node) in functions else found[key]
            fault = "" if known is None else node_fault(node, *known)
            fault = fault or _reference_fault(node, in_function)
            if fault:
                raise GraphError(
                    f"a node is malformed: {fault}", where=node.where(), hint="check the model"
                )


def _operator_at(
    key: tuple[str, str], versions: Mapping[str, int], operators: Catalog
) -> tuple[type[Operator], Signature] | None:
    """An operator and what it takes at these versions; what is not there yet is as the newest."""
    domain = canonical_domain(key[0])
    operator = operators.get((domain, key[1]))
    if operator is None or not operator.signatures:
        return None
    signature = operator.at(versions.get(domain, 1))
    if signature is None or not (signature.inputs or signature.outputs):
        signature = operator.newest()
    return operator, signature


def node_fault(node: Node, operator: type[Operator], signature: Signature) -> str:
    """Why a node does not fit its operator: inputs, outputs, kinds of attributes; else nothing."""
    fault = _operand_fault(node.inputs, signature.inputs, signature.input_range)
    if fault:
        return fault
    least, most = signature.output_range
    count = len(node.outputs)
    if count < max(least, 1):
        return f"it has {count} outputs, its operator gives at least {max(least, 1)}"
    if most is not None and count > most:
        return f"it has {count} outputs, its operator gives at most {most}"
    for name, formal in signature.attributes.items():
        fault = _attribute_fault(name, node.attributes.get(name), formal)
        if fault:
            return fault
    if len(node.attributes) and not signature.open:
        for name, given in node.attributes.items():
            if name not in signature.attributes and not _is_known(name, given, operator):
                return f"its operator does not know the attribute '{name}'"
    return ""


def _operand_fault(
    inputs: Sequence[Value | None], formals: Sequence[Formal], limits: tuple[int, int | None]
) -> str:
    least, most = limits
    if len(inputs) < least:
        return f"it has {len(inputs)} inputs, its operator takes at least {least}"
    if most is not None and len(inputs) > most:
        return f"it has {len(inputs)} inputs, its operator takes at most {most}"
    for position, value in enumerate(inputs):
        formal = formals[min(position, len(formals) - 1)]
        if value is None and formal.arity is not Arity.OPTIONAL:
            return f"its input '{formal.name}' is absent, which its operator needs"
    return ""


def _attribute_fault(name: str, given: Attribute | None, formal: AttributeFormal) -> str:
    if given is None or (given.value is None and formal.required and not given.reference):
        return f"it lacks the attribute '{name}'" if formal.required else ""
    # Without a value it is absent in all but name, if it does not say another kind.
    said = given.value is not None or given.type != AttributeType.UNDEFINED
    if given.reference or (given.type == formal.kind) or not said:
        return ""
    fits = given.value is not None and attribute_fits(given, formal)
    return "" if fits else f"its attribute '{name}' is no {formal.kind.name}"


def _is_known(name: str, given: Attribute, operator: type[Operator]) -> bool:
    """Whether any version has an attribute; only there may it be left over, and without graphs."""
    versions = operator.versions()
    return not given.graphs and any(name in version.attributes for version in versions)


def _reference_fault(node: Node, in_function: bool) -> str:
    if in_function:
        return ""
    for name, given in node.attributes.items():
        if given.reference:
            return f"its attribute '{name}' refers to '{given.reference}', and it is in no function"
    return ""
