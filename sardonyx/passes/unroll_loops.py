"""Loop(2, x) {body} -> body(body(x)), where the number of rounds is constant and small."""

from typing import Any

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.graph import Graph, Node, Value
from sardonyx.graph.clone import clone_graph
from sardonyx.passes.inline_branches import finish
from sardonyx.passes.rules import RuleBuilder
from sardonyx.passes.unit import Unit, graph_of, is_operator, record_origin


def unroll_loops(unit: Unit) -> bool:
    """Write out loops of few rounds that nothing can end early."""
    changed = False
    for node in list(unit.nodes()):
        if node.graph is None or not is_operator(node, "Loop"):
            continue
        rounds = _rounds(unit, node)
        body = node.attribute("body")
        if rounds is None or not isinstance(body, Graph):
            continue
        size = sum(1 for _ in body.all_nodes())
        if rounds <= unit.options.unroll_limit and size * rounds <= unit.options.unroll_nodes:
            _unroll(unit, node, body, rounds)
            changed = True
    return changed


def _rounds(unit: Unit, node: Node) -> int | None:
    """How many rounds a loop has; None where that is only known at run time, or is 0."""
    inputs = (*node.inputs, None, None)
    body = node.attribute("body")
    limit = unit.array(inputs[0])
    if limit is None or not isinstance(body, Graph) or not body.outputs:
        return None
    if inputs[1] is not None:
        start = unit.array(inputs[1])
        stays = body.outputs[0]
        known = unit.array(stays)
        goes_on = stays is body.inputs[1] or (known is not None and bool(known.all()))
        maker = stays.producer
        if is_operator(maker, "Identity") and maker is not None:
            goes_on = goes_on or maker.inputs[0] is body.inputs[1]
        if start is None or not start.all() or not goes_on:
            return None
    count = int(limit.reshape(-1)[0])
    return count if count > 0 else None


def _unroll(unit: Unit, node: Node, body: Graph, rounds: int) -> None:
    build = RuleBuilder(unit, node)
    states: list[Any] = list(node.inputs[2:])
    collected: list[list[Value]] = [[] for _ in body.outputs[1 + len(states) :]]
    made: list[Node] = []
    for number in range(rounds):
        number_type = unit.dtype(body.inputs[0]) or DataType.INT64
        rank = unit.fact(body.inputs[0]).rank or 0
        iteration = build.constant(np.full((1,) * rank, number, number_type.numpy))
        going = build.constant(np.full((1,) * (unit.fact(body.inputs[1]).rank or 0), True))
        values = dict(zip(body.inputs, [iteration, going, *states], strict=True))
        copy = clone_graph(body, values)
        results = list(copy.outputs)
        copy.outputs.clear()
        for part in copy.walk():
            for value in part.values():
                if value.name and value not in copy.inputs:
                    value.name = unit.names.fresh(value.name)
        graph_of(node).initializers += copy.initializers
        for inner in list(copy.nodes):
            copy.move(inner, graph_of(node), before=node)
            made.append(inner)
        states = results[1 : 1 + len(states)]
        for items, item in zip(collected, results[1 + len(states) :], strict=True):
            items.append(build.Unsqueeze(item, axes=[0]))
    scanned = [items[0] if len(items) == 1 else build.Concat(*items, axis=0) for items in collected]
    record_origin(unit, [*made, *build.made], [node, *made])
    for old, new in zip(node.outputs, [*states, *scanned], strict=True):
        finish(unit, node, old, new)
    graph_of(node).nodes.remove(node)
