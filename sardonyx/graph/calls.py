"""Which functions call which, and what a model becomes when their calls are followed."""

from collections import Counter
from collections.abc import Iterator, Mapping

from sardonyx.errors import GraphError
from sardonyx.graph.attribute import Attribute
from sardonyx.graph.graph import Graph
from sardonyx.graph.model import Function, FunctionKey
from sardonyx.graph.node import Node

Functions = Mapping[FunctionKey, Function]


def call_key(node: Node) -> FunctionKey:
    """What a node would refer to a function by."""
    return (node.domain, node.op_type, node.overload)


def called(graph: Graph, functions: Functions) -> Counter[FunctionKey]:
    """How often a graph, with all inside it, calls each function."""
    keys = map(call_key, graph.all_nodes())
    return Counter(key for key in keys if key in functions)


def function_graphs(function: Function) -> Iterator[Graph]:
    """The body of a function, and the graphs that are defaults of its attributes."""
    yield function.graph
    for attribute in function.attribute_defaults:
        yield from attribute.graphs


def bound_attributes(node: Node, function: Function) -> dict[str, Attribute]:
    """The attributes of a call, with defaults for those it does not give."""
    return {item.name: item for item in function.attribute_defaults} | node.attributes


def callees_first(functions: Functions) -> list[FunctionKey]:
    """Functions in an order in which each comes after those it calls; an error for recursion.

    >>> body = Graph()
    >>> _ = body.add("F", [body.add_input("x")], domain="local")
    >>> outer, inner = Function("local", "G", body), Function("local", "F")
    >>> [key[1] for key in callees_first({outer.key: outer, inner.key: inner})]
    ['F', 'G']
    """
    done: dict[FunctionKey, None] = {}
    for root in functions:
        path: dict[FunctionKey, Iterator[FunctionKey]] = {}
        following: FunctionKey | None = None if root in done else root
        while following is not None or path:
            if following is not None:
                graphs = function_graphs(functions[following])
                path[following] = iter({key: None for item in graphs
                                        for key in called(item, functions)})  # fmt: skip
            key, callees = next(reversed(path.items()))
            following = next((item for item in callees if item not in done), None)
            if following is None:
                done[key] = None
                del path[key]
            elif following in path:
                raise _recursion([*path][[*path].index(following) :])
    return list(done)


def _recursion(cycle: list[FunctionKey]) -> GraphError:
    names = " -> ".join(_name(key) for key in [*cycle, cycle[0]][:9])
    return GraphError(f"functions call themselves: {names}", hint="ONNX functions cannot recurse")


def _name(key: FunctionKey) -> str:
    return f"{key[0]}.{key[1]}" + (f" ({key[2]})" if key[2] else "")


class Growth:
    """How many nodes, and graphs inside one another, come out where all calls are followed.

    A call counts too, so that functions without nodes are not free. Numbers are exact, however
    large; each function is looked at once.
    """

    def __init__(self, functions: Functions) -> None:
        self._functions = functions
        self.nodes: dict[FunctionKey, int] = {}
        self.depths: dict[FunctionKey, int] = {}
        for key in callees_first(functions):
            self.nodes[key], self.depths[key] = self.measure(functions[key].graph)

    def measure(self, graph: Graph) -> tuple[int, int]:
        """What comes of a graph: the number of nodes, and of graphs inside one another."""
        total, deepest = 0, 1
        waiting = [(graph, 1)]
        while waiting:
            part, depth = waiting.pop()
            deepest = max(deepest, depth)
            for node in part.nodes:
                key = call_key(node)
                total += 1
                if key in self.nodes:
                    total += self.nodes[key]
                    deepest = max(deepest, depth - 1 + self.depths[key])
                waiting.extend((inner, depth + 1) for inner in node.subgraphs)
        return total, deepest

    def largest(self, graph: Graph) -> str:
        """The name of the function whose calls in a graph add most."""
        counts = called(graph, self._functions)
        key = max(counts, key=lambda item: counts[item] * (1 + self.nodes[item]))
        return _name(key)
