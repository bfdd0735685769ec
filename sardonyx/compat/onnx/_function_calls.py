"""Local functions of a model: how calls find them, and that no function calls itself."""

from collections.abc import Iterable, Iterator
from typing import Any

from sardonyx.compat.onnx._nesting import subgraphs

MAXIMUM_FUNCTIONS = 10_000
MAXIMUM_CALL_CHAIN = 100


def normal_domain(domain: str) -> str:
    """The domain under its shorter name: `ai.onnx` is the empty one.

    >>> normal_domain("ai.onnx"), normal_domain("ai.onnx.ml")
    ('', 'ai.onnx.ml')
    """
    return "" if domain == "ai.onnx" else domain


def identifier(domain: str, name: str, overload: str) -> str:
    """What a function and the calls of it have in common.

    >>> identifier("local", "f", ""), identifier("ai.onnx", "f", "fast")
    ('local::f', '::f::fast')
    """
    parts = [normal_domain(domain), name, *([overload] if overload else [])]
    return "::".join(parts)


def function_identifier(function: Any) -> str:
    """The identifier of a local function."""
    return identifier(function.domain, function.name, function.overload)


def call_identifier(node: Any) -> str:
    """The identifier of the function `node` would call."""
    return identifier(node.domain, node.op_type, node.overload)


def check_function_calls(model: Any) -> None:
    """Raise checker.ValidationError if functions are too many, not unique, or recursive.

    >>> from sardonyx.compat.onnx import ModelProto
    >>> model = ModelProto()
    >>> _ = model.functions.add(domain="local", name="f")
    >>> check_function_calls(model)
    """
    from sardonyx.compat.onnx.checker import ValidationError

    if len(model.functions) > MAXIMUM_FUNCTIONS:
        raise ValidationError(
            f"the model has {len(model.functions)} local functions; at most"
            f" {MAXIMUM_FUNCTIONS} are accepted"
        )
    functions: dict[str, Any] = {}
    for function in model.functions:
        name = function_identifier(function)
        if name in functions:
            raise ValidationError(f"the model defines function {name} twice; remove one of them")
        functions[name] = function
    callees = {
        name: [callee for callee in _called(function.node) if callee in functions]
        for name, function in functions.items()
    }
    chain_lengths: dict[str, int] = {}
    for name in functions:
        _measure_chain(name, callees, chain_lengths)


def _called(nodes: Iterable[Any]) -> Iterator[str]:
    """The identifiers of all calls in `nodes` and the graphs inside them, each once."""
    found: dict[str, None] = {}
    pending = [nodes]
    while pending:
        for node in pending.pop():
            found[call_identifier(node)] = None
            pending.extend(graph.node for graph in subgraphs(node))
    return iter(found)


def _measure_chain(
    start: str, callees: dict[str, list[str]], chain_lengths: dict[str, int]
) -> None:
    """Enter the longest chain of calls from `start` into `chain_lengths`; refuse a cycle."""
    from sardonyx.compat.onnx.checker import ValidationError

    path: dict[str, Iterator[str]] = {}
    if start not in chain_lengths:
        path[start] = iter(callees[start])
    while path:
        name, rest = next(reversed(path.items()))
        callee = next(rest, None)
        if callee is None:
            del path[name]
            chain_lengths[name] = 1 + max((chain_lengths[it] for it in callees[name]), default=0)
            if chain_lengths[name] > MAXIMUM_CALL_CHAIN:
                raise ValidationError(
                    f"function {name} starts a chain of more than {MAXIMUM_CALL_CHAIN} nested calls"
                )
        elif callee in path:
            names = list(path)
            cycle = [*names[names.index(callee) :], callee]
            raise ValidationError(f"functions call themselves: {' -> '.join(cycle)}")
        elif callee not in chain_lengths:
            path[callee] = iter(callees[callee])
