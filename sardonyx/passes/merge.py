"""Join two models: what one returns, the other takes."""

from collections.abc import Mapping

from sardonyx.boundary import public
from sardonyx.errors import GraphError
from sardonyx.graph import Graph, Model, SparseTensor, Value
from sardonyx.graph.clone import clone_model
from sardonyx.graph.names import Names
from sardonyx.ops.catalog import canonical_domain
from sardonyx.ops.convert import convert_opset


@public("merging the models")
def merge_models(first: Model, second: Model, connections: Mapping[str, str]) -> Model:
    """One model that runs `first`, then `second` on its results.

    `connections` maps outputs of `first` to inputs of `second`. Outputs that are not connected stay
    outputs; names that clash are changed in `second`. The lower opset is raised to the higher one.

    >>> import sardonyx as sx
    >>> head = '<ir_version: 10, opset_import: ["": 21]>'
    >>> relu = sx.load_text(head + 'a (float[n] x) => (float[n] y) { y = Relu(x) }')
    >>> negate = sx.load_text(head + 'b (float[n] x) => (float[n] z) { z = Neg(x) }')
    >>> both = merge_models(relu, negate, {"y": "x"})
    >>> [value.name for value in both.graph.inputs], [value.name for value in both.graph.outputs]
    (['x'], ['z'])
    """
    result, other = _at_one_opset(first, second)
    graph, added = result.graph, other.graph
    if graph is None or added is None:
        raise GraphError("one of the models has no graph", hint="a file is empty or damaged")
    pairs = _connected(graph, added, connections)
    _rename(graph, added)
    for source, target in pairs:
        target.replace_all_uses(source)
    joined = {source for source, _ in pairs}
    taken = {target for _, target in pairs}
    graph.inputs += [value for value in added.inputs if value not in taken]
    graph.initializers += [value for value in added.initializers if value not in taken]
    for node in list(added.nodes):
        added.move(node, graph)
    kept = [value for value in graph.outputs if value not in joined]
    returned = list(added.outputs)
    added.outputs.clear()
    graph.outputs[:] = [*kept, *(value for value in returned if value not in kept)]
    graph.declared |= added.declared
    graph.output_declarations |= added.output_declarations
    graph.quantization += added.quantization
    graph.name = f"{graph.name}_{added.name}".strip("_")
    _join_facts(result, other)
    return result


def _at_one_opset(first: Model, second: Model) -> tuple[Model, Model]:
    models = [clone_model(first), clone_model(second)]
    for domain in {canonical_domain(name) for model in models for name in model.opsets}:
        versions = [_version(model, domain) for model in models]
        if 0 not in versions and versions[0] != versions[1]:
            index = versions.index(min(versions))
            models[index] = convert_opset(models[index], max(versions), domain)
    return models[0], models[1]


def _version(model: Model, domain: str) -> int:
    return next(
        (version for name, version in model.opsets.items() if canonical_domain(name) == domain), 0
    )


def _connected(
    graph: Graph, added: Graph, connections: Mapping[str, str]
) -> list[tuple[Value, Value]]:
    outputs = {value.name: value for value in graph.outputs}
    inputs = {value.name: value for value in added.inputs}
    if not connections:
        raise GraphError(
            "nothing connects the two models",
            hint=f"map an output of the first ({', '.join(outputs)}) "
            f"to an input of the second ({', '.join(inputs)})",
        )
    pairs = []
    for source, target in connections.items():
        if source not in outputs:
            have = ", ".join(outputs)
            raise GraphError(f"the first model has no output '{source}'", hint=f"it has: {have}")
        if target not in inputs:
            have = ", ".join(inputs)
            raise GraphError(f"the second model has no input '{target}'", hint=f"it has: {have}")
        pairs.append((outputs[source], inputs[target]))
    return pairs


def _rename(graph: Graph, added: Graph) -> None:
    """Give values and nodes of `added` names that `graph` does not have."""
    names = Names(graph)
    for part in added.walk():
        for value in part.values():
            if value.name:
                value.name = names.fresh(value.name)
            if value.tensor is not None and value.tensor.name and value.name:
                _rename_tensor(value)
    used = {node.name for node in graph.all_nodes()}
    for node in added.all_nodes():
        if node.name in used and node.name:
            count = 1
            while f"{node.name}_{count}" in used:
                count += 1
            node.name = f"{node.name}_{count}"
        used.add(node.name)


def _rename_tensor(value: Value) -> None:
    stored = value.tensor.values if isinstance(value.tensor, SparseTensor) else value.tensor
    if stored is not None:
        stored.name = value.name


def _join_facts(result: Model, other: Model) -> None:
    known = {canonical_domain(name) for name in result.opsets}
    for domain, version in other.opsets.items():
        if canonical_domain(domain) not in known:
            result.opsets[domain] = version
    keys = {function.key: function for function in result.functions}
    for function in other.functions:
        if function.key in keys:
            raise GraphError(
                f"both models define the function '{function.name}' of '{function.domain}'",
                hint="inline the functions of one of them first",
            )
        result.functions.append(function)
    result.ir_version = max(result.ir_version, other.ir_version)
    for key, said in other.metadata.items():
        result.metadata.setdefault(key, said)
