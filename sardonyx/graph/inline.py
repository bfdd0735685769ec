"""Replace calls of a model's functions by their bodies."""

from collections import Counter
from collections.abc import Callable, Iterator

from sardonyx.boundary import public
from sardonyx.errors import GraphError
from sardonyx.graph.calls import Functions, Growth, bound_attributes, call_key, called
from sardonyx.graph.clone import Values, clone_graph, clone_value
from sardonyx.graph.graph import Graph
from sardonyx.graph.model import Function, FunctionKey, Model
from sardonyx.graph.names import Names
from sardonyx.graph.node import Node, Value

LEAST_LIMIT = 100_000
GROWTH_LIMIT = 100
"""What inlining may make where nothing else is asked for: this many nodes, or this many for each
node of the model, whichever is more."""
DEEPEST = 100
"""How many graphs may lie inside one another after inlining."""
LONGEST_NAME = 400
"""Names of calls inside calls are put together up to this length."""

Contents = tuple[int, Counter[str]]
"""How many nodes a function has, and how often these refer to each of its attributes."""


@public("inlining functions")
def inline_functions(
    model: Model,
    wanted: Callable[[Function], bool] = lambda _: True,
    *,
    inline_limit: int | None = None,
) -> int:
    """Inline every call of the functions that `wanted` accepts; returns how many calls there were.

    The functions themselves are dropped. It raises where that would make more than `inline_limit`
    nodes, by default 100,000 or 100 times the model's nodes, whichever is more. Then the model is
    as it was, unless it is graphs passed on as attributes that grow.

    >>> body = Graph("Twice")
    >>> x = body.add_input("x")
    >>> body.outputs.append(body.add("Add", [x, x], ["y"]).output)
    >>> model = Model(Graph("main"))
    >>> model.functions = [Function("local", "Twice", body)]
    >>> call = model.graph.add("Twice", [model.graph.add_input("a")], ["b"], domain="local")
    >>> inline_functions(model), [node.op_type for node in model.graph.nodes]
    (1, ['Add'])
    """
    functions = {function.key: function for function in model.functions if wanted(function)}
    if not functions:
        return 0
    bodies = {function.graph for function in functions.values()}
    roots = [graph for graph in model.graphs() if graph.owner is None and graph not in bodies]
    limit = _default_limit(model) if inline_limit is None else inline_limit
    _require_room(roots, functions, limit)
    contents = {key: _contents(function) for key, function in functions.items()}
    count = sum(_Inliner(root, functions, contents, limit).run() for root in roots)
    for function in functions.values():
        for domain, version in function.opsets.items():
            model.opsets.setdefault(domain, version)
    model.functions = [function for function in model.functions if function.key not in functions]
    return count


def _default_limit(model: Model) -> int:
    nodes = sum(len(graph.nodes) for graph in model.graphs())
    return max(LEAST_LIMIT, GROWTH_LIMIT * nodes)


def _require_room(roots: list[Graph], functions: Functions, limit: int) -> None:
    """An error where more than is allowed would come of graphs; nothing is copied for that."""
    growth = Growth(functions)
    total = 0
    for root in roots:
        nodes, depth = growth.measure(root)
        total += nodes
        if not called(root, functions):
            continue
        if total > limit:
            raise _too_large(growth.largest(root), total, limit)
        if depth > DEEPEST:
            raise _too_deep(growth.largest(root), depth)


def _too_large(name: str, nodes: int, limit: int) -> GraphError:
    count = str(nodes) if nodes < 10**18 else f"about 2**{nodes.bit_length() - 1}"
    return GraphError(
        f"inlining the calls of {name} makes {count} nodes, more than the limit of {limit}",
        hint="inline_functions(model, inline_limit=...) or a session's configuration entry "
        "'sardonyx.inline_limit' allows more",
    )


def _too_deep(name: str, depth: int) -> GraphError:
    return GraphError(
        f"inlining puts {depth} graphs inside one another at {name}, more than {DEEPEST}",
        hint="functions must not call one another from inside of If, Loop and Scan that often",
    )


class _Inliner:
    """Replaces the calls in a graph, and those in the bodies that come in their place."""

    def __init__(
        self, root: Graph, functions: Functions, contents: dict[FunctionKey, Contents], limit: int
    ) -> None:
        self._root, self._functions, self._limit = root, functions, limit
        self._contents = contents
        self._names = Names(root)
        self._prefixes: dict[Node, str] = {}
        self._made = sum(1 for _ in root.all_nodes())

    def run(self) -> int:
        """Inline everything; the number of calls that the graph itself had."""
        count = 0
        waiting = [(self._root, 1)]
        while waiting:
            graph, depth = waiting.pop()
            if depth > DEEPEST:
                raise _too_deep(f"'{graph.name}'", depth)
            for node in list(graph.nodes):
                count += call_key(node) in self._functions
                for staying in self._expand(node):
                    waiting.extend((inner, depth + 1) for inner in staying.subgraphs)
        return count

    def _expand(self, outermost: Node) -> Iterator[Node]:
        """Replace a node by what comes of it, and yield that."""
        calls = [outermost]
        while calls:
            node = calls.pop()
            function = self._functions.get(call_key(node))
            if function is None:
                yield node
                continue
            self._charge(node, function)
            prefix = self._prefixes.pop(node, node.name or node.op_type)
            made = inline_call(node, function, self._names, prefix)
            for part in made:
                self._note_prefixes(part, prefix)
            calls.extend(reversed(made))

    def _note_prefixes(self, made: Node, prefix: str) -> None:
        """Remember from which call the calls in a body came."""
        inside = (node for graph in made.subgraphs for node in graph.all_nodes())
        for node in (made, *inside):
            if call_key(node) in self._functions:
                self._prefixes[node] = node.name or _joined(prefix, node.op_type)

    def _charge(self, node: Node, function: Function) -> None:
        """Count what a call brings, with the graphs that it passes on; refuse too much of it."""
        static, references = self._contents[function.key]
        self._made += static
        if references:
            attributes = bound_attributes(node, function)
            for name, times in references.items():
                graphs = attributes[name].graphs if name in attributes else ()
                self._made += times * sum(1 for graph in graphs for _ in graph.all_nodes())
        if self._made > self._limit:
            raise _too_large(f"{node.domain}.{node.op_type}", self._made, self._limit)


def _contents(function: Function) -> Contents:
    """What is in a function."""
    nodes = list(function.graph.all_nodes())
    found = Counter(item.reference for node in nodes for item in node.attributes.values())
    del found[""]
    return len(nodes), found


def inline_call(node: Node, function: Function, names: Names, prefix: str) -> list[Node]:
    """Put a copy of a function's body in the place of the node that calls it.

    Names in it get `prefix`; returns the nodes that it consists of.
    """
    graph, body = node.graph, function.graph
    if graph is None:
        raise GraphError(f"{node.where()} is in no graph")
    if len(node.inputs) > len(body.inputs) or len(node.outputs) > len(body.outputs):
        raise GraphError(
            f"{node.where()} passes {len(node.inputs)} inputs and {len(node.outputs)} outputs to a "
            f"function with {len(body.inputs)} and {len(body.outputs)}"
        )
    values: Values = {}
    given = list(node.inputs) + [None] * (len(body.inputs) - len(node.inputs))
    absent: set[Value] = set()
    for formal, actual in zip(body.inputs, given, strict=True):
        if actual is None:
            absent.add(clone_value(formal, values))
        else:
            values[formal] = actual
    copy = clone_graph(body, values, bound_attributes(node, function))
    drop_absent(copy, absent)
    results = list(copy.outputs)[: len(node.outputs)]
    _name_apart(copy, prefix, names)
    copy.outputs.clear()
    made = list(copy.nodes)
    for part in made:
        copy.nodes.remove(part, safe=False)
        graph.nodes.insert_before(node, part)
    graph.initializers += copy.initializers
    graph.declared.update(dict.fromkeys(value for value in copy.declared if value.producer))
    passed = set(given)
    for old, new in zip(node.outputs, results, strict=True):
        if new.producer is not None and new.producer.graph is graph and new not in passed:
            names.release(new.name)
            new.name, old.name = old.name, ""
        if new.declared is None:
            new.declared = old.declared
        old.replace_all_uses(new)
    graph.nodes.remove(node)
    return made


def drop_absent(graph: Graph, absent: set[Value]) -> None:
    """Let no node read inputs of a function that its caller does not give."""
    if not absent:
        return
    for part in graph.walk():
        for node in part.nodes:
            if any(value in absent for value in node.inputs):
                node.set_inputs([None if value in absent else value for value in node.inputs])


def _name_apart(copy: Graph, prefix: str, names: Names) -> None:
    for graph in copy.walk():
        for part in graph.nodes:
            if part.name:
                part.name = _joined(prefix, part.name)
            for value in part.outputs:
                if value.name:
                    value.name = names.fresh(_joined(prefix, value.name))
        if graph is not copy:
            for value in (*graph.inputs, *graph.initializers):
                value.name = names.fresh(_joined(prefix, value.name))


def _joined(prefix: str, name: str) -> str:
    """A name behind a prefix; of long ones only the end, so that calls inside calls stay short."""
    return f"{prefix[-LONGEST_NAME:]}/{name[-LONGEST_NAME:]}"[-LONGEST_NAME:]
