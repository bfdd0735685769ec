"""Nodes without a native form of their own, as the operators that their function consists of."""

from sardonyx.compiler.derive import NamingInference
from sardonyx.compiler.lower import Lowered, lower_graph
from sardonyx.compiler.lowerings import LOWERINGS
from sardonyx.dims import HIDDEN
from sardonyx.graph import Node, Value
from sardonyx.graph.names import Names
from sardonyx.ops.build import Builder
from sardonyx.ops.catalog import NEWEST_OPSETS, Catalog, canonical_domain
from sardonyx.ops.convert import function_results
from sardonyx.ops.evaluate import Evaluator
from sardonyx.ops.fact import Fact, to_type
from sardonyx.ops.operator import Operator
from sardonyx.ops.replace import replace_node

MOST_ROUNDS = 4
"""How deep functions of functions are followed."""


def lower_model(evaluator: Evaluator, operators: Catalog) -> tuple[Lowered, dict[Value, Fact]]:
    """Lower a model; what has no native form but is a function of others becomes those first."""
    for rest in reversed(range(MOST_ROUNDS)):
        inference = NamingInference(evaluator.model, operators)
        inference.run()
        facts = inference.facts
        unknown = [
            node
            for node in evaluator.graph.nodes
            if (canonical_domain(node.domain), node.op_type) not in LOWERINGS
            and node not in inference.refused
        ]
        if rest and _expand(evaluator, unknown, facts, operators):
            continue
        lowered = lower_graph(evaluator, inference, LOWERINGS)
        rejected = [node for node in lowered.reasons if node not in inference.refused]
        if not rest or not _expand(evaluator, rejected, facts, operators):
            break
    return lowered, facts


def _expand(
    evaluator: Evaluator, nodes: list[Node], facts: dict[Value, Fact], operators: Catalog
) -> bool:
    """Put functions' bodies in the place of nodes; True where that changed anything."""
    names: Names | None = None
    changed = False
    for node in nodes:
        operator = operators[canonical_domain(node.domain), node.op_type]
        lowers = getattr(operator, "lower", None) is not None
        fixed = operator.random or not operator.expands or lowers
        if operator.function is None or fixed or _is_constant(node):
            continue
        names = names or Names(evaluator.graph)
        changed = _expand_one(evaluator, node, operator, facts, names) or changed
    return changed


def _is_constant(node: Node) -> bool:
    return not node.inputs or all(
        value is None or value.tensor is not None for value in node.inputs
    )


def _expand_one(
    evaluator: Evaluator,
    node: Node,
    operator: type[Operator],
    facts: dict[Value, Fact],
    names: Names,
) -> bool:
    for value in node.inputs:
        if value is not None and value in facts:
            value.declared = to_type(facts[value], HIDDEN) or value.declared
    build = Builder(evaluator.graph, NEWEST_OPSETS[""], node, names)
    try:
        values = function_results(node, operator, operator.newest(), build)
        plain = not any(True for made in build.made for _ in made.subgraphs)
    except Exception:  # noqa: BLE001 - the reference is left to say what is wrong
        plain = False
    if not plain:
        for made in reversed(build.made):
            evaluator.graph.nodes.remove(made)
        return False
    replace_node(node, values)
    return True
