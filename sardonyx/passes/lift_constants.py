"""c = Constant<value>() -> an initializer c."""

from sardonyx.graph import Tensor
from sardonyx.passes.unit import Unit, graph_of, is_operator


def lift_constants(unit: Unit) -> bool:
    """Make initializers of Constant nodes; functions have none, and a returned one stays a node."""
    if unit.is_function:
        return False
    changed = False
    for node in list(unit.nodes()):
        if not is_operator(node, "Constant") or node.output.is_output:
            continue
        array = unit.array(node.output)
        if array is None or "sparse_value" in node.attributes:
            continue
        old, graph = node.output, graph_of(node)
        given = node.attributes.get("value")
        tensor = given.value.copy() if given is not None else Tensor(array)
        value = graph.add_initializer(tensor, old.name)
        tensor.name, old.name = old.name, ""
        value.doc_string, value.metadata = old.doc_string, old.metadata
        old.replace_all_uses(value)
        graph.nodes.remove(node)
        if old in unit.facts:
            unit.facts[value] = unit.facts[old]
        changed = True
    return changed
