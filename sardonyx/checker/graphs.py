"""Rules about graphs: names defined once and before they are used, complete inputs and outputs."""

from collections import Counter
from dataclasses import replace

from sardonyx.checker.context import DEEPEST, Context, Scope, kept_fields
from sardonyx.checker.declarations import check_interface_type
from sardonyx.checker.findings import Place
from sardonyx.checker.metadata import check_metadata
from sardonyx.checker.operators import check_node
from sardonyx.checker.sparse import check_sparse_tensor
from sardonyx.checker.tensors import check_tensor
from sardonyx.checker.versions import FREE_INITIALIZERS, QUANTIZATION, require_type
from sardonyx.format.tags import GRAPH, VALUE
from sardonyx.format.tags import QUANTIZATION as ANNOTATION
from sardonyx.graph import Graph, Node, SparseTensor, TensorType, Value
from sardonyx.graph.sort import dependencies


def check_graph(context: Context, graph: Graph, place: Place, outer: Scope | None = None) -> Scope:
    """All rules about a graph and what is inside it; returns the names it defines."""
    scope = Scope(outer)
    if context.depth > DEEPEST:
        what = f"more than {DEEPEST} graphs lie inside one another"
        context.report.add("nesting-too-deep", place, what)
        return scope
    if not graph.name:
        context.report.add("graph-name-empty", place, "the graph has no name")
    if graph.metadata or graph.leftover:
        check_metadata(context, graph, GRAPH, place)
    _check_inputs(context, graph, place, scope)
    _check_initializers(context, graph, place, scope)
    check_nodes(context, graph, place, scope)
    _check_outputs(context, graph, place, scope)
    _check_value_infos(context, graph, place)
    _check_quantization(context, graph, place, scope)
    return scope


def check_nodes(context: Context, graph: Graph, place: Place, scope: Scope) -> None:
    """Rules about the nodes of a graph or a function, in their order."""
    names: Counter[str] = Counter()

    def check_inner(inner: Graph, where: Place) -> None:
        deeper = replace(context, depth=context.depth + 1)
        check_graph(deeper, inner, where / f"graph '{inner.name}'", scope)

    for node in graph.nodes:
        here = place / node
        names[node.name] += 1
        _check_uses(context, node, here, scope)
        check_node(context, node, here, check_inner)
        for position, value in enumerate(node.outputs):
            _define_output(context, value, position, here, scope)
    if scope.unsorted:
        _note_cycle(context, graph, place)
    for name, count in names.items():
        if name and count > 1:
            what = f"{count} nodes are called '{name}'"
            context.report.add("node-name-duplicate", place, what)


def _check_uses(context: Context, node: Node, place: Place, scope: Scope) -> None:
    """Note inputs that are not defined yet, or not at all."""
    for position, value in enumerate(node.inputs):
        if value is None or scope.sees(value):
            continue
        producer = value.producer
        if producer is not None and producer.graph is not None:
            scope.note_unsorted()
            what = f"'{value.name}' is used here and only defined later, by {producer.where()}"
            context.report.add("unsorted", place / f"input {position}", what)
        else:
            what = f"'{value.name}' is not defined"
            context.report.add("undefined-value", place / f"input {position}", what)


def _define_output(
    context: Context, value: Value, position: int, place: Place, scope: Scope
) -> None:
    report, name = context.report, value.name
    if not name:
        if value.uses:
            what = "the output has no name but is used"
            report.add("value-name-missing", place / f"output {position}", what)
    elif scope.holds(name):
        what = f"'{name}' is defined a second time"
        report.add("duplicate-definition", place / f"output {position}", what)
    elif scope.hides(name):
        what = f"'{name}' is already the name of a value outside this graph"
        report.add("shadowing", place / f"output {position}", what)
    if value.declared is not None:
        require_type(context, value.declared, place / f"output {position}")
    if value.metadata or value.leftover:
        check_metadata(context, value, VALUE, place / f"output {position}")
    scope.define(value)


def _note_cycle(context: Context, graph: Graph, place: Place) -> None:
    """Nodes that wait for one another: what is left when all that can run have run."""
    needs = {node: dependencies(node) for node in graph.nodes}
    missing = {node: len(wanted) for node, wanted in needs.items()}
    users: dict[Node, list[Node]] = {}
    for node, wanted in needs.items():
        for item in wanted:
            users.setdefault(item, []).append(node)
    ready = [node for node, count in missing.items() if count == 0]
    while ready:
        node = ready.pop()
        del missing[node]
        for user in users.get(node, ()):
            missing[user] -= 1
            if missing[user] == 0:
                ready.append(user)
    if not missing:
        return
    path: dict[Node, None] = {}
    node = next(iter(missing))
    while node not in path:
        path[node] = None
        node = next(item for item in needs[node] if item in missing)
    around = list(path)[list(path).index(node) :]
    names = " -> ".join(item.where() for item in reversed(around[:8]))
    context.report.add("cycle", place, f"nodes wait for one another: {names}")


def _check_inputs(context: Context, graph: Graph, place: Place, scope: Scope) -> None:
    report = context.report
    for position, value in enumerate(graph.inputs):
        here = place / (f"input '{value.name}'" if value.name else f"input {position}")
        if not value.name:
            report.add("input-name-empty", here, "the input has no name")
        elif scope.holds(value.name):
            what = f"another input is called '{value.name}' too"
            report.add("input-duplicate", here, what)
        elif scope.hides(value.name):
            what = f"'{value.name}' is already the name of a value outside this graph"
            report.add("shadowing-input", here, what)
        if not context.nested:
            check_interface_type(context, value.declared, here)
        require_type(context, value.declared, here)
        if value.metadata or value.leftover:
            check_metadata(context, value, VALUE, here)
        scope.define(value)


def _check_initializers(context: Context, graph: Graph, place: Place, scope: Scope) -> None:
    report = context.report
    inputs = {value.name for value in graph.inputs}
    seen: set[str] = set()
    for position, value in enumerate(graph.initializers):
        name = value.name
        here = place / (f"initializer '{name}'" if name else f"initializer {position}")
        is_sparse = isinstance(value.tensor, SparseTensor)
        if not name:
            rule = "sparse-name-empty" if is_sparse else "initializer-name-empty"
            report.add(rule, here, "the initializer has no name")
        elif name in seen:
            what = f"another initializer is called '{name}' too"
            report.add("initializer-duplicate", here, what)
        elif name not in inputs:
            if context.ir_version < FREE_INITIALIZERS and not is_sparse:
                what = f"IR version {context.ir_version} wants initializers to be inputs too"
                report.add("initializer-not-input", here, what)
            if scope.hides(name):
                what = f"'{name}' is already the name of a value outside this graph"
                report.add("shadowing-input", here, what)
        seen.add(name)
        _check_constant(context, value, here)
        scope.define(value)


def _check_constant(context: Context, value: Value, place: Place) -> None:
    tensor = value.tensor
    if tensor is None:
        context.report.add("tensor-no-data", place, "the initializer has no tensor")
        return
    if isinstance(tensor, SparseTensor):
        check_sparse_tensor(context, tensor, place)
    else:
        check_tensor(context, tensor, place)
    declared = value.declared
    if isinstance(declared, TensorType) and not _fits(tensor.type, declared):
        what = f"the initializer is {tensor.type}, but it is declared as {declared}"
        context.report.add("initializer-type-mismatch", place, what)


def _fits(actual: TensorType, declared: TensorType) -> bool:
    if declared.element and declared.element != actual.element:
        return False
    shape, wanted = actual.shape or (), declared.shape
    if wanted is None:
        return True
    return len(shape) == len(wanted) and all(
        size == want or not isinstance(want, int) or want < 0
        for size, want in zip(shape, wanted, strict=True)
    )


def _check_outputs(context: Context, graph: Graph, place: Place, scope: Scope) -> None:
    report = context.report
    seen: set[Value] = set()
    if not graph.outputs and not context.nested:
        report.add("graph-without-outputs", place, "the graph returns nothing")
    for position, value in enumerate(graph.outputs):
        here = place / (f"output '{value.name}'" if value.name else f"output {position}")
        if not value.name:
            report.add("output-name-empty", here, "the output has no name")
        elif not scope.defines(value):
            if scope.sees(value):
                what = f"'{value.name}' is a value outside this graph"
                report.add("output-from-outer", here, what)
            else:
                what = f"nothing in the graph defines '{value.name}'"
                report.add("output-undefined", here, what)
        if value in seen:
            report.add("output-duplicate", here, f"'{value.name}' is returned more than once")
        seen.add(value)
        if not context.nested:
            said = graph.output_declarations.get(value)
            check_interface_type(context, value.declared, here)
            if said is not None:
                check_interface_type(context, said.type, here)
        require_type(context, value.declared, here)


def _check_value_infos(context: Context, graph: Graph, place: Place) -> None:
    if not graph.declared:
        return
    defined = {value.name for value in graph.values()}
    seen = {value.name for value in graph.declared if value.producer is not None}
    for value in graph.declared:
        if value.producer is not None:
            continue
        here = place / f"value_info '{value.name}'"
        if value.name in seen:
            what = f"'{value.name}' is described more than once"
            context.report.add("value-info-duplicate", here, what)
        elif value.name not in defined:
            what = f"there is no value '{value.name}' in the graph"
            context.report.add("value-info-unknown", here, what)
        seen.add(value.name)


def _check_quantization(context: Context, graph: Graph, place: Place, scope: Scope) -> None:
    if graph.quantization:
        context.require_ir(QUANTIZATION, "quantization annotations", place)
    for annotation in graph.quantization:
        here = place / f"quantization of '{annotation.value.name}'"
        for value in (annotation.value, *annotation.parameters.values()):
            if not value.name or not scope.sees(value):
                what = f"there is no value '{value.name}'"
                context.report.add("quantization-unknown-tensor", here, what)
        kept = [number for number, _ in kept_fields(annotation.leftover)]
        if ANNOTATION.quant_parameter_tensor_names >> 3 in kept:
            context.report.add("quantization-duplicate", here, "a key is given more than once")
