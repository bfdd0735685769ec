"""Replace calls of a model's functions by their bodies."""

from collections.abc import Callable

from sardonyx.boundary import public
from sardonyx.errors import GraphError
from sardonyx.graph.clone import Values, clone_graph, clone_value
from sardonyx.graph.graph import Graph
from sardonyx.graph.model import Function, FunctionKey, Model
from sardonyx.graph.names import Names
from sardonyx.graph.node import Node, Value


@public("inlining functions")
def inline_functions(model: Model, wanted: Callable[[Function], bool] = lambda _: True) -> int:
    """Inline every call of the functions that `wanted` accepts; returns how many calls there were.

    The functions themselves are dropped.

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
    count = 0
    for key in _callees_first(functions):
        _inline_into(functions[key].graph, functions)
    roots = [graph for graph in model.graphs() if graph.owner is None]
    for root in roots:
        if not any(
            root is function.graph and function.key in functions for function in model.functions
        ):
            count += _inline_into(root, functions)
    for function in functions.values():
        for domain, version in function.opsets.items():
            model.opsets.setdefault(domain, version)
    model.functions = [function for function in model.functions if function.key not in functions]
    return count


def _inline_into(root: Graph, functions: dict[FunctionKey, Function]) -> int:
    names = Names(root)
    count = 0
    waiting = [root]
    while waiting:
        graph = waiting.pop()
        for node in graph.nodes:
            function = functions.get((node.domain, node.op_type, node.overload))
            if function is None:
                waiting.extend(node.subgraphs)
            else:
                inline_call(node, function, names)
                count += 1
    return count


def inline_call(node: Node, function: Function, names: Names) -> None:
    """Put a copy of a function's body in the place of the node that calls it."""
    graph, body = node.graph, function.graph
    if graph is None:
        raise GraphError(f"{node.where()} is in no graph")
    if len(node.inputs) > len(body.inputs) or len(node.outputs) > len(body.outputs):
        raise GraphError(
            f"{node.where()} passes {len(node.inputs)} inputs and {len(node.outputs)} outputs to a "
            f"function with {len(body.inputs)} and {len(body.outputs)}"
        )
    attributes = {item.name: item for item in function.attribute_defaults} | node.attributes
    values: Values = {}
    given = list(node.inputs) + [None] * (len(body.inputs) - len(node.inputs))
    absent: set[Value] = set()
    for formal, actual in zip(body.inputs, given, strict=True):
        if actual is None:
            absent.add(clone_value(formal, values))
        else:
            values[formal] = actual
    copy = clone_graph(body, values, attributes)
    drop_absent(copy, absent)
    results = list(copy.outputs)[: len(node.outputs)]
    _name_apart(copy, node, names)
    copy.outputs.clear()
    for part in list(copy.nodes):
        copy.nodes.remove(part, safe=False)
        graph.nodes.insert_before(node, part)
    graph.initializers += copy.initializers
    graph.declared.update(dict.fromkeys(value for value in copy.declared if value.producer))
    for old, new in zip(node.outputs, results, strict=True):
        if new.producer is not None and new.producer.graph is graph and new not in given:
            names.release(new.name)
            new.name, old.name = old.name, ""
        if new.declared is None:
            new.declared = old.declared
        old.replace_all_uses(new)
    graph.nodes.remove(node)


def drop_absent(graph: Graph, absent: set[Value]) -> None:
    """Let no node read inputs of a function that its caller does not give."""
    if not absent:
        return
    for part in graph.walk():
        for node in part.nodes:
            if any(value in absent for value in node.inputs):
                node.set_inputs([None if value in absent else value for value in node.inputs])


def _name_apart(copy: Graph, node: Node, names: Names) -> None:
    prefix = node.name or node.op_type
    for graph in copy.walk():
        for part in graph.nodes:
            if part.name:
                part.name = f"{prefix}/{part.name}"
            for value in part.outputs:
                if value.name:
                    value.name = names.fresh(f"{prefix}/{value.name}")
        if graph is not copy:
            for value in (*graph.inputs, *graph.initializers):
                value.name = names.fresh(f"{prefix}/{value.name}")


def _callees_first(functions: dict[FunctionKey, Function]) -> list[FunctionKey]:
    calls = {
        key: {
            (node.domain, node.op_type, node.overload)
            for node in function.graph.all_nodes()
            if (node.domain, node.op_type, node.overload) in functions
        }
        for key, function in functions.items()
    }
    finished: dict[FunctionKey, None] = {}
    while ready := [key for key in calls if key not in finished and calls[key] <= finished.keys()]:
        finished.update(dict.fromkeys(ready))
    if len(finished) < len(calls):
        names = ", ".join(f"{key[0]}.{key[1]}" for key in calls if key not in finished)
        raise GraphError(
            f"functions call themselves: {names}", hint="ONNX functions cannot recurse"
        )
    return list(finished)
