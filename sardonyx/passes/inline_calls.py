"""Call of a function that is called once, or has one node -> the nodes of its body."""

from sardonyx.graph import Function, FunctionKey, Model
from sardonyx.graph.calls import Functions, Growth, called, callees_first, function_graphs
from sardonyx.graph.inline import inline_functions
from sardonyx.ops.catalog import canonical_domain


def inline_calls(model: Model) -> bool:
    """Inline functions where that does not make the model larger."""
    functions = {function.key: function for function in model.functions}
    wanted = _wanted(model, functions)
    if wanted:
        inline_functions(model, lambda function: function.key in wanted)
    return bool(wanted)


def _wanted(model: Model, functions: Functions) -> set[FunctionKey]:
    """Functions that are called at most once in what comes out, or are one node at most."""
    growth = Growth(functions)
    bodies = {function.graph for function in functions.values()}
    roots = [graph for graph in model.graphs() if graph.owner is None and graph not in bodies]
    calls: dict[FunctionKey, int] = dict.fromkeys(functions, 0)
    for root in roots:
        for key, times in called(root, functions).items():
            calls[key] += times
    wanted: set[FunctionKey] = set()
    for key in reversed(callees_first(functions)):
        small = growth.nodes[key] <= 1
        copies = 1
        if (calls[key] <= 1 or small) and _same_opsets(model, functions[key]):
            wanted.add(key)
            copies = calls[key]
        for graph in function_graphs(functions[key]):
            for callee, times in called(graph, functions).items():
                calls[callee] += copies * times
    return wanted


def _same_opsets(model: Model, function: Function) -> bool:
    """True where a function's nodes mean the same in the model."""
    own = {canonical_domain(name): version for name, version in model.opsets.items()}
    return all(
        own.get(canonical_domain(name), version) == version
        for name, version in function.opsets.items()
    )
