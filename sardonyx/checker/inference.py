"""What inference of types and shapes finds wrong with a model."""

from collections.abc import Callable

from sardonyx.checker.context import declared_type
from sardonyx.checker.findings import Finding, Place
from sardonyx.checker.rules import RULES
from sardonyx.graph import Graph, Model, Value
from sardonyx.ops.catalog import Catalog
from sardonyx.ops.infer import infer_all, type_string

TypeOf = Callable[[Value], str | None]


def infer_problems(model: Model, catalog: Catalog) -> tuple[list[Finding], TypeOf]:
    """Contradictions that inference meets, each once, and the types it gives to values."""
    try:
        facts, problems = infer_all(model, catalog=catalog)
    except Exception as error:  # noqa: BLE001 - hooks meet models their authors did not foresee
        return [_finding("inference-failed", "model", f"inference gave up: {error}")], declared_type
    places = _places(model) if problems else {}
    found: dict[Finding, None] = {}
    for problem in problems:
        where = places.get(problem.where, problem.where or "model")
        found[_finding("inference", where, problem.what, problem.hint)] = None

    def type_of(value: Value) -> str | None:
        known = declared_type(value)
        if known is not None:
            return known
        fact = facts.get(value)
        return None if fact is None else type_string(fact)

    return list(found), type_of


def _finding(rule: str, where: str, what: str, hint: str = "") -> Finding:
    return Finding(rule, where, what, hint or RULES[rule].remedy)


def _places(model: Model) -> dict[str, str]:
    """The full path of each node, by how messages name it alone."""
    places: dict[str, str] = {}
    roots = [] if model.graph is None else [(model.graph, Place(f"graph '{model.graph.name}'"))]
    for function in model.functions:
        roots.append((function.graph, Place(f"function '{function.domain}.{function.name}'")))
    waiting: list[tuple[Graph, Place]] = list(reversed(roots))
    while waiting:
        graph, place = waiting.pop()
        for node in graph.nodes:
            here = place / node
            places.setdefault(node.where(), str(here))
            for name, attribute in node.attributes.items():
                for inner in attribute.graphs:
                    deeper = here / f"attribute '{name}'" / f"graph '{inner.name}'"
                    waiting.append((inner, deeper))
    return places
