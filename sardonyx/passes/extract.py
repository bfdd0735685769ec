"""Cut a part out of a model: from some values to others."""

from collections.abc import Iterable, Sequence

from sardonyx.boundary import public
from sardonyx.errors import GraphError
from sardonyx.graph import Graph, Model, Node, Value
from sardonyx.ops.infer import infer_shapes
from sardonyx.ops.tolerate import unite_constants


@public("extracting a model")
def extract_model(model: Model, inputs: Sequence[str], outputs: Sequence[str]) -> Model:
    """A model of only what leads from `inputs` to `outputs`, values of the main graph by name.

    Cut values get the types that inference finds. Functions that are still called are kept.

    >>> import sardonyx as sx
    >>> model = sx.load_text('<ir_version: 10, opset_import: ["": 21]>'
    ...     'g (float[n] x) => (float[n] z) { y = Relu(x)  a = Abs(y)  z = Neg(a) }')
    >>> part = extract_model(model, ["y"], ["a"])
    >>> [node.op_type for node in part.graph.nodes], str(part.graph.inputs[0].type)
    (['Abs'], 'float[n]')
    """
    if not outputs:
        raise GraphError("a part of a model needs outputs", hint="name at least one")
    twin = infer_shapes(model)
    graph = twin.graph
    if graph is None:
        raise GraphError("the model has no graph", hint="the file is empty or damaged")
    unite_constants(graph)
    known = {value.name: value for value in graph.values() if value.name}
    starts = [_find(known, name, graph) for name in inputs]
    ends = [_find(known, name, graph) for name in outputs]
    kept = _needed(ends, set(starts), graph, set(known.values()))
    _cut(graph, starts, ends, kept)
    _drop_functions(twin, graph)
    return twin


def _find(known: dict[str, Value], name: str, graph: Graph) -> Value:
    if name not in known:
        have = ", ".join(value.name for value in (*graph.inputs, *graph.outputs))
        raise GraphError(
            f"the model has no value '{name}'", hint=f"its inputs and outputs are: {have}"
        )
    return known[name]


def _needed(
    ends: Iterable[Value], starts: set[Value], graph: Graph, known: set[Value]
) -> set[Node]:
    """The nodes between `starts` and `ends`; an input that is needed but not named is an error."""
    constants = set(graph.initializers)
    kept: set[Node] = set()
    waiting = [value for value in ends if value not in starts]
    while waiting:
        value = waiting.pop()
        node = value.producer
        if node is None:
            if value in known and value not in constants:
                raise GraphError(
                    f"the outputs depend on the input '{value.name}', which is not among the "
                    "part's inputs",
                    hint=f"add {value.name} to the inputs",
                )
            continue
        if node in kept:
            continue
        kept.add(node)
        reads = [*node.inputs, *(item for part in node.subgraphs for item in part.captured())]
        waiting += [item for item in reads if item is not None and item not in starts]
    return kept


def _cut(graph: Graph, starts: list[Value], ends: list[Value], kept: set[Node]) -> None:
    graph.outputs[:] = []
    graph.outputs.extend(ends)
    for node in reversed(list(graph.nodes)):
        _release(node, starts)
        if node not in kept:
            graph.nodes.remove(node, safe=False)
            node.detach()
    read = {
        value
        for node in graph.nodes
        for value in (*node.inputs, *(item for part in node.subgraphs for item in part.captured()))
    } | set(ends)
    constants = set(graph.initializers)
    formals = set(graph.inputs)
    kept_inputs = [value for value in graph.inputs if value in constants and value in read]
    graph.inputs = starts + [value for value in kept_inputs if value not in starts]
    graph.initializers = [
        value
        for value in graph.initializers
        if value in read and (value not in starts or value in formals)
    ]
    for value in set(starts) - formals:
        value.type, value.tensor = value.type, None
    present = set(graph.values())
    graph.declared = {value: None for value in graph.declared if value in present}
    graph.output_declarations = {
        value: said for value, said in graph.output_declarations.items() if value in present
    }
    graph.quantization = [item for item in graph.quantization if item.value in present]


def _release(node: Node, starts: list[Value]) -> None:
    """Let values that a node makes become inputs; what it makes in their place has no name."""
    for value in node.outputs:
        if value in starts:
            value.producer = None
    node.outputs = tuple(Value() if value in starts else value for value in node.outputs)
    for value in node.outputs:
        value.producer = node


def _drop_functions(model: Model, graph: Graph) -> None:
    """Drop functions that the main graph does not call any more."""
    called = {(node.domain, node.op_type, node.overload) for node in graph.all_nodes()}
    bodies = {function.key: function for function in model.functions}
    waiting = [key for key in called if key in bodies]
    while waiting:
        for node in bodies[waiting.pop()].graph.all_nodes():
            key = (node.domain, node.op_type, node.overload)
            if key in bodies and key not in called:
                called.add(key)
                waiting.append(key)
    model.functions = [function for function in model.functions if function.key in called]
