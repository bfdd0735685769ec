"""Reverse-mode differentiation: gradients as more nodes, which can be differentiated again."""

from collections.abc import Mapping, Sequence

from sardonyx.dtypes import DataType
from sardonyx.errors import EvaluationError, GraphError, UnsupportedError
from sardonyx.graph import Graph, Model, Node, Opsets, Value
from sardonyx.graph.clone import Values, clone_node, clone_value
from sardonyx.ops.build import Builder
from sardonyx.ops.catalog import NEWEST_OPSETS, canonical_domain, standard
from sardonyx.ops.convert import function_results
from sardonyx.ops.fact import Fact
from sardonyx.ops.gradient_elementwise import ELEMENTWISE
from sardonyx.ops.gradient_movement import MOVEMENT
from sardonyx.ops.gradient_network import NETWORK
from sardonyx.ops.gradient_step import Rule, Step
from sardonyx.ops.infer import Inference, constant_fact
from sardonyx.ops.operator import attribute_values

RULES: Mapping[str, Rule] = {**ELEMENTWISE, **MOVEMENT, **NETWORK}
"""For each operator that is differentiated itself, how gradients pass from outputs to inputs."""
TRAINING = "ai.onnx.preview.training"
_DEEPEST = 8
"""Gradients of gradients are built so many levels deep at most."""


def gradient_graph(
    source: Graph, xs: Sequence[str], zs: Sequence[str], y: str, given: Sequence[Value]
) -> Graph:
    """A graph from values for `xs` and `zs` to the gradients of `y` with respect to each of `xs`.

    `source` holds these names and the nodes between them; `given` are like the values that will
    be fed, which need not be those of that name. Values that lead to `y` otherwise are captured.
    """
    build = Builder(Graph("gradient"), NEWEST_OPSETS[""])
    inputs = [build.input(item.name, item.type) for item in given]
    build.graph.outputs.extend(_gradients(build, source, (xs, zs, y), inputs, _DEEPEST))
    _drop_unused(build.graph)
    return build.graph


def _gradients(
    build: Builder, source: Graph, names: tuple[Sequence[str], Sequence[str], str],
    given: Sequence[Value], depth: int,
) -> list[Value]:  # fmt: skip
    xs, zs, y = names
    if len(given) != len(xs) + len(zs):
        raise EvaluationError(f"{len(given)} inputs for {len(xs)} names in xs and {len(zs)} in zs")
    if depth == 0:
        raise UnsupportedError(f"gradients of gradients more than {_DEEPEST} levels deep")
    values: Values = {}
    for name, value in zip((*xs, *zs), given, strict=True):
        values[_find(source, name)] = value
    target = _find(source, y)
    _copy_between(build, source, target, values, depth)
    facts = _facts(build.graph)
    return differentiate(build, values.get(target, target), given[: len(xs)], facts)


def _find(graph: Graph, name: str) -> Value:
    try:
        return graph.value(name)
    except GraphError as error:
        raise EvaluationError(f"Gradient names '{name}', which the graph does not have") from error


def _copy_between(build: Builder, source: Graph, target: Value, values: Values, depth: int) -> None:
    """Copy the nodes that make `target` out of the keys of `values`, which get their copies.

    A node without a rule of its own is replaced by the operators its function is made of.
    """
    needed: set[Node] = set()
    waiting = [target]
    while waiting:
        value = waiting.pop()
        maker = value.producer
        if value in values or maker is None or maker in needed:
            continue
        needed.add(maker)
        waiting += [item for item in maker.inputs if item is not None]
        waiting += [item for graph in maker.subgraphs for item in graph.captured()]
    scopes = [source]
    while scopes[0].parent is not None:
        scopes.insert(0, scopes[0].parent)
    for node in [node for graph in scopes for node in graph.nodes if node in needed]:
        _copy_node(build, node, values, depth)


def _copy_node(build: Builder, node: Node, values: Values, depth: int) -> None:
    if node.domain == TRAINING and node.op_type == "Gradient":
        assert node.graph is not None
        names = attribute_values(node, standard()[TRAINING, "Gradient"].newest())
        given = [values.get(item, item) for item in node.inputs if item is not None]
        parts = (names["xs"], names["zs"] or (), names["y"])
        results = _gradients(build, node.graph, parts, given, depth - 1)
        values.update(zip(node.outputs, results, strict=False))
        return
    operator = standard().get((canonical_domain(node.domain), node.op_type))
    kept = [clone_value(output, values) for output in node.outputs]
    twin = clone_node(node, values)
    if _has_rule(node) or operator is None or operator.function is None:
        build.graph.nodes.append(twin)
        return
    made = function_results(twin, operator, operator.newest(), build)
    twin.detach()
    for output, copy, result in zip(node.outputs, kept, made, strict=False):
        copy.producer = None
        values[output] = result


def _has_rule(node: Node) -> bool:
    return node.op_type in RULES and canonical_domain(node.domain) == ""


def _facts(graph: Graph) -> dict[Value, Fact]:
    """What is known of the values of a graph, for rules that depend on ranks."""
    model = Model(graph, Opsets(NEWEST_OPSETS))
    inference = Inference(model, standard())
    for value in graph.captured():
        if value.tensor is not None and value.producer is None:
            inference.facts[value] = constant_fact(value.tensor)
    inference.run()
    return inference.facts


def differentiate(
    build: Builder, y: Value, xs: Sequence[Value], facts: Mapping[Value, Fact]
) -> list[Value]:
    """Gradients of the sum of `y` with respect to each of `xs`, built behind the graph's nodes."""
    nodes = list(build.graph.nodes)
    active = set(xs)
    for node in nodes:
        if any(item in active for item in node.inputs):
            active.update(node.outputs)
    gradients: dict[Value, Value] = {}
    if y in active:
        gradients[y] = _filled(build, 1, y)
    for node in reversed(nodes):
        arrived = [gradients.get(output) for output in node.outputs]
        if not any(output in active for output in node.outputs) or not any(arrived):
            continue
        for value, gradient in zip(
            node.inputs, _pass_back(build, node, arrived, facts), strict=False
        ):
            if value in active and gradient is not None:
                assert value is not None
                before = gradients.get(value)
                gradients[value] = gradient if before is None else build.Add(before, gradient)
    return [gradients[x] if x in gradients else _filled(build, 0, x) for x in xs]


def _pass_back(
    build: Builder, node: Node, arrived: Sequence[Value | None], facts: Mapping[Value, Fact]
) -> Sequence[Value | None]:
    if not _has_rule(node):
        raise UnsupportedError(
            f"operator {node.op_type} has no gradient yet", where=node.where(),
            hint="name its output in xs or zs instead, or leave it out of the differentiated part",
        )  # fmt: skip
    version = standard()["", node.op_type].newest()
    step = Step(build, node, attribute_values(node, version), facts)
    return RULES[node.op_type](step, arrived)


def _filled(build: Builder, number: int, like: Value) -> Value:
    scalar = build.CastLike(build.Cast(number, to=int(DataType.FLOAT)), like)
    return build.Expand(scalar, build.Shape(like))  # type: ignore[no-any-return]


def _drop_unused(graph: Graph) -> None:
    """Remove nodes and constants that nothing reads."""
    for node in reversed(list(graph.nodes)):
        if not any(output.uses for output in node.outputs):
            graph.nodes.remove(node)
    graph.initializers = [value for value in graph.initializers if value.uses]
