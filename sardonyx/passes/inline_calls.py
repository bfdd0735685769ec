"""Call of a function that is called once, or has one node -> the nodes of its body."""

from collections import Counter

from sardonyx.graph import Function, Model
from sardonyx.graph.inline import inline_functions
from sardonyx.ops.catalog import canonical_domain


def inline_calls(model: Model) -> bool:
    """Inline functions where that does not make the model larger, until none is left."""
    changed = False
    while model.functions:
        calls = Counter(
            (node.domain, node.op_type, node.overload)
            for graph in model.graphs()
            for node in graph.nodes
        )

        def wanted(function: Function, calls: Counter[tuple[str, str, str]] = calls) -> bool:
            small = len(function.graph.nodes) <= 1
            return (calls[function.key] <= 1 or small) and _same_opsets(model, function)

        if not any(map(wanted, model.functions)):
            return changed
        inline_functions(model, wanted)
        changed = True
    return changed


def _same_opsets(model: Model, function: Function) -> bool:
    """True where a function's nodes mean the same in the model."""
    own = {canonical_domain(name): version for name, version in model.opsets.items()}
    return all(
        own.get(canonical_domain(name), version) == version
        for name, version in function.opsets.items()
    )
