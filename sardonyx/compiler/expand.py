"""Nodes without a native form of their own, as the operators that their function consists of."""

from logging import getLogger

from sardonyx.compiler.derive import NamingInference
from sardonyx.compiler.lower import NATIVE, Lowered, describe_failure, lower_graph
from sardonyx.compiler.lowerings import LOWERINGS, Agreement
from sardonyx.dims import HIDDEN
from sardonyx.errors import SardonyxError
from sardonyx.graph import Node, Value
from sardonyx.graph.names import Names
from sardonyx.loops.nodes import symbols
from sardonyx.ops.build import Builder
from sardonyx.ops.catalog import NEWEST_OPSETS, Catalog, canonical_domain
from sardonyx.ops.convert import function_results
from sardonyx.ops.evaluate import Evaluator
from sardonyx.ops.fact import Fact, to_type
from sardonyx.ops.operator import Operator
from sardonyx.ops.replace import replace_node

_log = getLogger("sardonyx.compiler")
MOST_ROUNDS = 4
"""How deep functions of functions are followed."""


def lower_model(
    evaluator: Evaluator, operators: Catalog, *, believe: bool = True
) -> tuple[Lowered, dict[Value, Fact]]:
    """Lower a model; what has no native form but is a function of others becomes those first.

    With `believe`, declared ranks that nothing else tells are taken, for runs to check.
    """
    agreements: dict[Agreement, None] = {}
    failures: dict[Node, str] = {}
    for rest in reversed(range(MOST_ROUNDS)):
        inference = NamingInference(evaluator.model, operators, NATIVE if believe else ())
        inference.run()
        facts = inference.facts
        fed = _fed_names(evaluator, facts)
        unknown = [
            node
            for node in evaluator.graph.nodes
            if (canonical_domain(node.domain), node.op_type) not in LOWERINGS
            and node not in inference.refused
            and node not in inference.believed
        ]
        if rest and (gone := _expand(evaluator, unknown, facts, operators, failures)):
            agreements |= _assumed(gone, inference, fed)
            continue
        lowered = lower_graph(evaluator, inference, LOWERINGS, list(agreements))
        failures |= lowered.failures
        fixed = inference.refused.keys() | inference.believed.keys()
        rejected = [node for node in lowered.reasons if node not in fixed]
        gone = _expand(evaluator, rejected, facts, operators, failures) if rest else []
        if not gone:
            break
        agreements |= _assumed(gone, inference, fed)
    for failure in failures.values():
        _log.warning(failure)
    return lowered, facts


def _fed_names(evaluator: Evaluator, facts: dict[Value, Fact]) -> set[str]:
    """Names of the inputs' sizes; all others may mean something else in the next round."""
    shapes = (facts[value].shape or () for value in evaluator.graph.inputs if value in facts)
    return {name for shape in shapes for size in shape if size is not None
            for name in symbols(size)}  # fmt: skip


def _assumed(
    nodes: list[Node], inference: NamingInference, names: set[str]
) -> dict[Agreement, None]:
    """What inference took for granted of nodes that are gone, where inputs tell."""
    full = inference.definitions.full
    pairs = [Agreement(full(left), full(right))
             for node in nodes for left, right in inference.assumed.get(node, ())]  # fmt: skip
    return {pair: None for pair in pairs if symbols(pair.left) | symbols(pair.right) <= names}


def _expand(
    evaluator: Evaluator, nodes: list[Node], facts: dict[Value, Fact], operators: Catalog,
    failures: dict[Node, str],
) -> list[Node]:  # fmt: skip
    """Put functions' bodies in the place of nodes; those that are gone then."""
    names: Names | None = None
    gone: list[Node] = []
    for node in nodes:
        operator = operators[canonical_domain(node.domain), node.op_type]
        lowers = getattr(operator, "lower", None) is not None
        fixed = operator.random or not operator.expands or lowers
        if operator.function is None or fixed or _is_constant(node):
            continue
        names = names or Names(evaluator.graph)
        try:
            if _expand_one(evaluator, node, operator, facts, names):
                gone.append(node)
        except Exception as error:  # noqa: BLE001 - the reference is left to say what is wrong
            failures[node] = describe_failure(node, error)
    return gone


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
    plain = False
    try:
        values = function_results(node, operator, operator.newest(), build)
        plain = not any(True for made in build.made for _ in made.subgraphs)
    except SardonyxError:
        return False
    finally:
        if not plain:
            for made in reversed(build.made):
                evaluator.graph.nodes.remove(made)
    if plain:
        replace_node(node, values)
    return plain
