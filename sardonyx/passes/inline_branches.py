"""If(True) {then} {else} -> the nodes of {then}."""

from sardonyx.graph import Graph, Node, Value
from sardonyx.passes.unit import Unit, graph_of, is_operator, record_origin


def inline_branches(unit: Unit) -> bool:
    """Put the chosen branch in the place of every If whose condition is known."""
    changed = False
    for node in list(unit.nodes()):
        if not is_operator(node, "If") or node.graph is None or node.attributes.keys() - _BRANCHES:
            continue
        condition = unit.array(node.inputs[0]) if node.inputs else None
        if condition is None or condition.size != 1:
            continue
        branch = node.attribute("then_branch" if condition.reshape(-1)[0] else "else_branch")
        if isinstance(branch, Graph) and len(branch.outputs) == len(node.outputs):
            splice(unit, node, branch)
            changed = True
    return changed


_BRANCHES = {"then_branch", "else_branch"}


def splice(unit: Unit, node: Node, body: Graph) -> None:
    """Move a graph's nodes before `node`, let its results replace the node's, and drop the node.

    The graph's inputs must be replaced already.
    """
    graph = graph_of(node)
    results: list[Value] = list(body.outputs)
    body.outputs.clear()
    for inner in body.walk():
        for value in inner.values():
            if value.name:
                value.name = unit.names.fresh(value.name)
    graph.initializers += body.initializers
    moved = list(body.nodes)
    for part in moved:
        body.move(part, graph, before=node)
    record_origin(unit, moved, [node, *moved])
    for old, new in zip(node.outputs, results, strict=True):
        finish(unit, node, old, new)
    if not any(value.uses for value in node.outputs):
        graph.nodes.remove(node)


def finish(unit: Unit, node: Node, old: Value, new: Value) -> None:
    """Let `new` stand for an output of a node that goes, by a copy where there is no other way."""
    if not old.uses:
        return
    unit.substitute(old, new)
    if old.is_output and old.producer is node:
        copy = Node("Identity", [new], [Value("")], name=f"{old.name}/Identity")
        graph_of(node).nodes.insert_before(node, copy)
        unit.substitute(old, copy.output)
