"""Order nodes so that each comes after what it reads."""

from sardonyx.errors import GraphError
from sardonyx.graph.graph import Graph
from sardonyx.graph.node import Node, Value


def sort_graph(graph: Graph) -> bool:
    """Sort a graph and all inside it, keeping the present order where it can; True if it changed.

    >>> graph = Graph("g")
    >>> x = graph.add_input("x")
    >>> late = Node("Neg", [x], ["y"])
    >>> early = graph.add("Abs", [late.output], ["z"])
    >>> _ = graph.nodes.append(late)
    >>> sort_graph(graph), [node.op_type for node in graph.nodes]
    (True, ['Neg', 'Abs'])
    """
    changed = False
    for part in graph.walk():
        order = _order(part)
        if order is not None:
            part.nodes.reorder(order)
            changed = True
    return changed


def require_made(graph: Graph) -> None:
    """Raise where a node or a graph's result reads what nothing makes, or two inputs share a name.

    >>> graph = Graph("g")
    >>> graph.outputs.append(graph.add("Neg", [Value("x")], ["y"]).output)
    >>> require_made(graph)
    Traceback (most recent call last):
    sardonyx.errors.GraphError: 'x' is used but nothing makes it (at node of 'y' (Neg)); correct \
the name, or make it an input
    """
    names: set[str] = set()
    for value in graph.inputs:
        if value.name in names:
            raise GraphError(
                f"two inputs are called '{value.name}'", hint="give each a name of its own"
            )
        names.add(value.name)
    parts = list(graph.walk())
    given = {value for part in parts for value in (*part.inputs, *part.initializers)}
    inside = {node for part in parts for node in part.nodes}

    def require(value: Value | None, where: str) -> None:
        if value is not None and value not in given and value.producer not in inside:
            raise GraphError(
                f"'{value.name}' is used but nothing makes it",
                where=where,
                hint="correct the name, or make it an input",
            )

    for part in parts:
        for node in part.nodes:
            for read in node.inputs:
                require(read, node.where())
        for value in part.outputs:
            require(value, f"the outputs of graph '{part.name}'")


def dependencies(node: Node) -> list[Node]:
    """Nodes of the same graph that `node` needs, through its inputs or its subgraphs."""
    found: dict[Node, None] = {}
    values = list(node.inputs)
    for graph in node.subgraphs:
        values += graph.captured()
    for value in values:
        producer = value.producer if value is not None else None
        if producer is not None and producer.graph is node.graph:
            found[producer] = None
    return list(found)


def _order(graph: Graph) -> list[Node] | None:
    """The sorted nodes, or None where they already are."""
    seen: set[Node] = set()
    needs = {node: dependencies(node) for node in graph.nodes}
    for node, wanted in needs.items():
        if not all(item in seen for item in wanted):
            break
        seen.add(node)
    else:
        return None
    return _depth_first(graph, needs)


def _depth_first(graph: Graph, needs: dict[Node, list[Node]]) -> list[Node]:
    done: dict[Node, None] = {}
    for root in needs:
        if root in done:
            continue
        path: dict[Node, int] = {root: 0}
        while path:
            node, position = next(reversed(path.items()))
            if position == len(needs[node]):
                del path[node]
                done[node] = None
                continue
            path[node] = position + 1
            wanted = needs[node][position]
            if wanted in path:
                names = [item.where() for item in list(path)[list(path).index(wanted) :]]
                raise GraphError(
                    f"graph '{graph.name}' has a cycle: " + " -> ".join(names[:8]),
                    hint="one of these nodes must not read what comes after it",
                )
            if wanted not in done:
                path[wanted] = 0
    return list(done)
