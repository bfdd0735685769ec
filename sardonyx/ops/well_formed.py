"""Nodes that are not what their operator's signature says, so that nobody can work with them."""

from typing import Any

from sardonyx.errors import GraphError
from sardonyx.graph import Graph, Model, Node
from sardonyx.ops.catalog import Catalog, canonical_domain
from sardonyx.ops.signature import Signature, attribute_fits


def node_fault(node: Node, signature: Signature) -> str:
    """Why a node does not fit its operator: inputs, outputs, kinds of attributes; else nothing."""
    least, most = signature.input_range
    if len(node.inputs) < least:
        return f"it has {len(node.inputs)} inputs, its operator takes at least {least}"
    if most is not None and len(node.inputs) > most:
        return f"it has {len(node.inputs)} inputs, its operator takes at most {most}"
    least, _ = signature.output_range
    if len(node.outputs) < max(least, 1):
        return f"it has {len(node.outputs)} outputs, its operator gives at least {max(least, 1)}"
    for name, formal in signature.attributes.items():
        given = node.attributes.get(name)
        if given is None and formal.required:
            return f"it lacks the attribute '{name}'"
        if given is not None and not given.reference and not attribute_fits(given, formal):
            return f"its attribute '{name}' is no {formal.kind.name}"
    return ""


def require_well_formed(model: Model, operators: Catalog) -> None:
    """Raise for the first node that does not fit its operator at the model's versions."""
    parts: list[tuple[Graph, Any]] = [(function.graph, function.opsets)
                                      for function in model.functions]  # fmt: skip
    if model.graph is not None:
        parts.append((model.graph, model.opsets))
    for graph, opsets in parts:
        versions = {canonical_domain(domain): version for domain, version in opsets.items()}
        for node in graph.all_nodes():
            domain = canonical_domain(node.domain)
            operator = operators.get((domain, node.op_type))
            signature = None if operator is None else operator.at(versions.get(domain, 1))
            fault = "" if signature is None else node_fault(node, signature)
            if fault:
                raise GraphError(
                    f"a node is malformed: {fault}", where=node.where(), hint="check the model"
                )
