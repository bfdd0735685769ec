"""Rules about a model's functions: what they declare, what they call, and their bodies."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from sardonyx.checker.attributes import check_attribute, has_value
from sardonyx.checker.context import Context, Interface, Scope, kept_fields
from sardonyx.checker.findings import Place, Report
from sardonyx.checker.graphs import check_graph, check_nodes
from sardonyx.checker.metadata import check_metadata
from sardonyx.checker.versions import (
    FUNCTION_DEFAULTS,
    FUNCTIONS,
    METADATA,
    OVERLOADS,
    check_imports,
    effective_imports,
    require_type,
)
from sardonyx.format.tags import FUNCTION
from sardonyx.graph import Function, FunctionKey, Graph
from sardonyx.ops.catalog import Catalog, canonical_domain

MOST_FUNCTIONS = 10_000
LONGEST_CHAIN = 100
"""How many functions a model may have, and how many may call one another in a row."""

Calls = dict[FunctionKey, list[FunctionKey]]


def check_functions(context: Context, functions: list[Function], place: Place) -> None:
    """All rules about the functions of a model; `context` is that of its main graph."""
    if not functions:
        return
    context.require_ir(FUNCTIONS, "functions", place)
    if len(functions) > MOST_FUNCTIONS:
        what = f"the model has {len(functions)} functions, more than {MOST_FUNCTIONS}"
        context.report.add("too-many-functions", place, what)
        return
    imports = dict(context.opsets)
    for function in functions:
        for domain, version in effective_imports(function).items():
            imports.setdefault(domain, version)
    seen: set[FunctionKey] = set()
    for function in functions:
        here = function_place(function, place)
        key = _key(function.key)
        if key in seen:
            what = "another function has the same domain, name and overload"
            context.report.add("function-duplicate", here, what)
        seen.add(key)
        check_function(context, function, imports, here)
    _check_calls(context.report, functions, place)


def function_place(function: Function, place: Place) -> Place:
    """Where findings about a function are."""
    name = f"{function.domain}.{function.name}" if function.domain else function.name
    overload = f" ({function.overload})" if function.overload else ""
    return place / f"function '{name}'{overload}"


def check_function(
    context: Context, function: Function, imports: Mapping[str, int], place: Place
) -> None:
    """All rules about one function; `imports` are the versions the model's other parts import."""
    report = context.report
    _check_header(context, function, place)
    _check_attributes(context, function, place)
    inside = replace(context, opsets=effective_imports(function), function=Interface.of(function))
    scope = Scope()
    for position, value in enumerate(function.graph.inputs):
        here = place / f"input {position}"
        if not value.name:
            report.add("function-input-empty", here, "the input has no name")
        elif scope.holds(value.name):
            report.add("function-input-duplicate", here, f"'{value.name}' is an input twice")
        scope.define(value)
    check_nodes(inside, function.graph, place, scope)
    _check_versions(inside, function, imports, place)
    for name, count in Counter(value.name for value in function.graph.outputs).items():
        if count > 1:
            report.add("function-output-duplicate", place, f"'{name}' is an output {count} times")
    for position, value in enumerate(function.graph.outputs):
        here = place / f"output {position}"
        if not value.name:
            report.add("function-output-empty", here, "the output has no name")
        elif not scope.defines(value):
            report.add("function-output-undefined", here, f"nothing defines '{value.name}'")
    for value in function.graph.declared:
        context.require_ir(METADATA, "descriptions of a function's values", place)
        require_type(context, value.declared, place / f"value_info '{value.name}'")


def _check_header(context: Context, function: Function, place: Place) -> None:
    report = context.report
    check_metadata(context, function, FUNCTION, place)
    check_imports(report, function, place)
    if not function.name:
        report.add("function-name-empty", place, "the function has no name")
    kept = [number for number, _ in kept_fields(function.leftover)]
    if not function.domain and FUNCTION.domain >> 3 not in kept and context.ir_version >= FUNCTIONS:
        report.add("function-domain-missing", place, "the function does not say its domain")
    if function.overload:
        context.require_ir(OVERLOADS, "overloads of functions", place)


def _check_attributes(context: Context, function: Function, place: Place) -> None:
    report = context.report
    defaults = Counter(attribute.name for attribute in function.attribute_defaults)
    for name, count in (Counter(function.attributes)).items():
        if not name:
            report.add("function-attribute-empty", place, "an attribute has no name")
        if count > 1:
            what = f"the attribute '{name}' is declared {count} times"
            report.add("function-attribute-duplicate", place, what)
        if name in defaults:
            what = f"the attribute '{name}' is declared with a default and without one"
            report.add("function-attribute-twice", place, what)
    for name, count in defaults.items():
        if count > 1:
            what = f"the attribute '{name}' has {count} defaults"
            report.add("function-attribute-twice", place, what)

    def check_inner(graph: Graph, where: Place) -> None:
        deeper = replace(context, depth=context.depth + 1, opsets=effective_imports(function))
        check_graph(deeper, graph, where / f"graph '{graph.name}'")

    for attribute in function.attribute_defaults:
        context.require_ir(FUNCTION_DEFAULTS, "defaults of functions' attributes", place)
        here = place / f"attribute '{attribute.name}'"
        if attribute.reference or not (has_value(attribute) or attribute.value is not None):
            report.add("function-default-value", here, "the default has no value of its own")
        else:
            check_attribute(context, attribute, here, check_inner)


def _check_versions(
    context: Context, function: Function, imports: Mapping[str, int], place: Place
) -> None:
    """Operators mean the same by the function's imports and by those of the rest of the model."""
    report, own = context.report, context.opsets
    spelled = "" not in own and "ai.onnx" in own
    for node in function.graph.nodes:
        if node.domain == "" and spelled:
            what = "the function imports 'ai.onnx', its nodes leave the default domain's name empty"
            report.add("function-import-spelling", place, what)
            spelled = False
        mine, others = own.get(node.domain), imports.get(node.domain)
        if mine is None or others is None or others < 0 or mine == others:
            continue
        found = [
            _since(context.catalog, node.domain, node.op_type, each) for each in (mine, others)
        ]
        if found[0] != found[1]:
            what = (
                f"{node.op_type} changed between version {mine}, which the function imports, and "
                f"{others}, which the model imports"
            )
            report.add("function-opset-incompatible", place / node, what)


def _since(catalog: Catalog, domain: str, op_type: str, version: int) -> int | None:
    operator = catalog.get((domain, op_type))
    signature = None if operator is None else operator.at(version)
    return None if signature is None else signature.since


def _key(key: FunctionKey) -> FunctionKey:
    return (canonical_domain(key[0]), key[1], key[2])


def _check_calls(report: Report, functions: list[Function], place: Place) -> None:
    """Functions do not call themselves, and not one another in chains without end."""
    by_key = {_key(function.key): function for function in functions}
    calls: Calls = {}
    for key, function in by_key.items():
        called = {_key((n.domain, n.op_type, n.overload)): None for n in function.graph.all_nodes()}
        calls[key] = [other for other in called if other in by_key]
    lengths: dict[FunctionKey, int] = {}
    for root in calls:
        cycle = _follow(root, calls, lengths)
        if cycle:
            names = " -> ".join(f"{key[0]}.{key[1]}" for key in cycle)
            what = f"functions call themselves: {names}"
            report.add("function-recursive", function_place(by_key[cycle[0]], place), what)
    for key, length in lengths.items():
        if length == LONGEST_CHAIN + 1:
            what = f"more than {LONGEST_CHAIN} functions call one another in a row"
            report.add("function-chain-too-long", function_place(by_key[key], place), what)


def _follow(root: FunctionKey, calls: Calls, lengths: dict[FunctionKey, int]) -> list[FunctionKey]:
    """Fill in how long the chain of calls from each function is; returns a cycle if one is met."""
    if root in lengths:
        return []
    found: list[FunctionKey] = []
    path: dict[FunctionKey, int] = {root: 0}
    while path:
        key, position = next(reversed(path.items()))
        if position == len(calls[key]):
            del path[key]
            lengths[key] = 1 + max((lengths.get(other, 0) for other in calls[key]), default=0)
            continue
        path[key] = position + 1
        callee = calls[key][position]
        if callee in path:
            found = found or [*list(path)[list(path).index(callee) :], callee]
        elif callee not in lengths:
            path[callee] = 0
    return found
