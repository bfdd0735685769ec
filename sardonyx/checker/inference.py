"""What inference of types and shapes finds wrong with a model."""

from collections import Counter
from collections.abc import Callable, Iterator

from sardonyx.checker.context import declared_type
from sardonyx.checker.findings import Finding, Place
from sardonyx.checker.rules import RULES
from sardonyx.graph import FunctionKey, Graph, Model, Value
from sardonyx.ops.catalog import Catalog
from sardonyx.ops.infer import infer_all, type_string

MOST_CALLS = 100_000
"""Functions are not followed through more calls than this."""
TypeOf = Callable[[Value], str | None]


def infer_problems(model: Model, catalog: Catalog) -> tuple[list[Finding], TypeOf]:
    """Contradictions that inference meets, each once, and the types it gives to values."""
    if expanded_calls(model) > MOST_CALLS:
        what = f"functions call one another more than {MOST_CALLS} times in all"
        return [_finding("inference-failed", "model", what)], declared_type
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


def expanded_calls(model: Model) -> int:
    """How many calls of functions there are when every call is followed, counted up to a limit."""
    graphs = {function.key: function.graph for function in model.functions}
    calls = {key: _calls(graph, graphs) for key, graph in graphs.items()}
    counts: dict[FunctionKey, int] = {}
    for root in graphs:
        path: dict[FunctionKey, Iterator[FunctionKey]] = {root: iter(calls[root])}
        while root not in counts:
            key, callees = next(reversed(path.items()))
            callee = next(callees, None)
            if callee is None:
                counts[key] = _total(calls[key], counts)
                del path[key]
            elif callee not in counts and callee not in path:
                path[callee] = iter(calls[callee])
    return 0 if model.graph is None else _total(_calls(model.graph, graphs), counts)


def _calls(graph: Graph, functions: dict[FunctionKey, Graph]) -> Counter[FunctionKey]:
    """How often a graph calls each function."""
    keys = ((node.domain, node.op_type, node.overload) for node in graph.all_nodes())
    return Counter(key for key in keys if key in functions)


def _total(calls: Counter[FunctionKey], counts: dict[FunctionKey, int]) -> int:
    total = sum(times * (1 + counts.get(key, 0)) for key, times in calls.items())
    return min(total, MOST_CALLS + 1)


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
