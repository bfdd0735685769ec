"""Join graphs and models, prefix their names, and give their outputs one more dimension."""

from collections.abc import Iterable, Sequence
from typing import Any

from sardonyx.compat.onnx import helper, utils
from sardonyx.compat.onnx._nesting import check_model_nesting, check_nesting
from sardonyx.compat.onnx._prefix import add_prefix, add_prefix_graph
from sardonyx.compat.onnx.onnx_ml_pb2 import AttributeProto, GraphProto, ModelProto, TensorProto

__all__ = [
    "add_prefix",
    "add_prefix_graph",
    "check_overlapping_names",
    "expand_out_dim",
    "expand_out_dim_graph",
    "merge_graphs",
    "merge_models",
]

_Pairs = Sequence[tuple[str, str]]


def check_overlapping_names(
    g1: Any, g2: Any, io_map: list[tuple[str, str]] | None = None
) -> list[tuple[str, list[str]]]:
    """The names two graphs share, by kind: edge, value_info, initializer, sparse_initializer.

    Kinds without a shared name are left out. Inputs of `g2` that `io_map` connects do not count
    as edges; names come in the order in which `g1` has them.

    >>> from sardonyx.compat.onnx import GraphProto, compose
    >>> first, second = GraphProto(), GraphProto()
    >>> _ = first.node.add(op_type="Relu", input=["x"], output=["y"])
    >>> _ = second.node.add(op_type="Abs", input=["y"], output=["z"])
    >>> compose.check_overlapping_names(first, second)
    [('edge', ['y'])]
    >>> compose.check_overlapping_names(first, second, io_map=[("y", "y")])
    []
    """
    _require(g1, GraphProto, "g1")
    _require(g2, GraphProto, "g2")
    connected = {pair[1] for pair in io_map or ()}
    edges = _shared(_edges(g1), (name for name in _edges(g2) if name not in connected))
    value_infos = _shared(_names(g1.value_info), _names(g2.value_info))
    initializers = _shared(_names(g1.initializer), _names(g2.initializer))
    sparse = _shared(
        (tensor.values.name for tensor in g1.sparse_initializer),
        (tensor.values.name for tensor in g2.sparse_initializer),
    ) + _shared(
        (tensor.indices.name for tensor in g1.sparse_initializer),
        (tensor.indices.name for tensor in g2.sparse_initializer),
    )
    kinds = (
        ("edge", edges),
        ("value_info", value_infos),
        ("initializer", initializers),
        ("sparse_initializer", sparse),
    )
    return [(kind, names) for kind, names in kinds if names]


def merge_graphs(
    g1: Any,
    g2: Any,
    io_map: list[tuple[str, str]],
    inputs: list[str] | None = None,
    outputs: list[str] | None = None,
    prefix1: str | None = None,
    prefix2: str | None = None,
    name: str | None = None,
    doc_string: str | None = None,
) -> Any:
    """One graph that runs `g1`, feeds its outputs to `g2` as `io_map` pairs them, and runs `g2`.

    What `io_map` leaves over stays an input or output, unless `inputs` or `outputs` name the ones
    to keep (then unneeded nodes go). The prefixes are put before all names of the graph they
    belong to; `io_map` speaks of names without prefix, `inputs` and `outputs` of names with it.

    >>> from sardonyx.compat.onnx import GraphProto, compose
    >>> first, second = GraphProto(name="first"), GraphProto(name="second")
    >>> for graph, operator in ((first, "Relu"), (second, "Abs")):
    ...     _ = graph.input.add(name="x")
    ...     _ = graph.output.add(name="y")
    ...     _ = graph.node.add(op_type=operator, input=["x"], output=["y"])
    >>> merged = compose.merge_graphs(first, second, [("y", "x")], prefix2="then/")
    >>> [(node.op_type, *node.input, *node.output) for node in merged.node]
    [('Relu', 'x', 'y'), ('Abs', 'y', 'then/y')]
    """
    _require(g1, GraphProto, "g1")
    _require(g2, GraphProto, "g2")
    check_nesting(g1.node, f"graph {g1.name!r}")
    check_nesting(g2.node, f"graph {g2.name!r}")
    if prefix1:
        g1 = add_prefix_graph(g1, prefix=prefix1)
    if prefix2:
        g2 = add_prefix_graph(g2, prefix=prefix2)
    if prefix1 or prefix2:
        io_map = _prefix_pairs(io_map, prefix1, prefix2)
    joined_outputs = {pair[0] for pair in io_map}
    joined_inputs = {pair[1] for pair in io_map}
    sources = {target: source for source, target in io_map}
    available = _names(g1.output), _names(g2.input)
    if inputs or outputs:
        g1 = _keep_interface(g1, inputs, outputs, set(), joined_outputs)
        g2 = _keep_interface(g2, inputs, outputs, joined_inputs, set())
    _check_pairs(io_map, *available)
    _check_no_overlap(g1, g2, io_map)
    merged = GraphProto()
    merged.node.extend(g1.node)
    merged.node.extend(g2.node)
    _connect(merged.node[len(g1.node) :], sources)
    merged.input.extend(_merge_inputs(g1.input, g2.input, inputs, joined_inputs))
    merged.output.extend(_merge_outputs(g1.output, g2.output, outputs, joined_outputs))
    _merge_values(merged, g1, g2, joined_outputs, joined_inputs)
    merged.name = f"{g1.name}_{g2.name}" if name is None else name
    if doc_string is None:
        parts = (g1.name, "\n\n", g1.doc_string, "\n\n", g2.name, "\n\n", g2.doc_string)
        doc_string = f"Graph combining {g1.name} and {g2.name}\n" + "".join(parts)
    merged.doc_string = doc_string
    return merged


def merge_models(
    m1: Any,
    m2: Any,
    io_map: list[tuple[str, str]],
    inputs: list[str] | None = None,
    outputs: list[str] | None = None,
    prefix1: str | None = None,
    prefix2: str | None = None,
    name: str | None = None,
    doc_string: str | None = None,
    producer_name: str | None = "onnx.compose.merge_models",
    producer_version: str | None = "1.0",
    domain: str | None = "",
    model_version: int | None = 1,
) -> Any:
    """One checked model that runs `m1` and then `m2`, joined as in `merge_graphs`.

    Both need the same IR version and, for domains they share, the same operator set version.
    Metadata and local functions of both are kept and may not contradict each other.

    >>> from sardonyx.compat.onnx import compose, helper
    >>> def one_node(operator):
    ...     x, y = (helper.make_tensor_value_info(name, 1, ["n"]) for name in "xy")
    ...     graph = helper.make_graph([helper.make_node(operator, ["x"], ["y"])], "g", [x], [y])
    ...     return helper.make_model(graph)
    >>> merged = compose.merge_models(
    ...     one_node("Relu"), one_node("Abs"), io_map=[("y", "x")], prefix1="a/", prefix2="b/"
    ... )
    >>> [value.name for value in (*merged.graph.input, *merged.graph.output)]
    ['a/x', 'b/y']
    """
    from sardonyx.compat.onnx import checker

    _require(m1, ModelProto, "m1")
    _require(m2, ModelProto, "m2")
    if m1.ir_version != m2.ir_version:
        raise ValueError(
            f"m1 has IR version {m1.ir_version} and m2 has {m2.ir_version};"
            " give both the same one before merging"
        )
    _check_operator_sets(m1, m2)
    check_model_nesting(m1)
    check_model_nesting(m2)
    if prefix1:
        m1 = add_prefix(m1, prefix=prefix1)
    if prefix2:
        m2 = add_prefix(m2, prefix=prefix2)
    if prefix1 or prefix2:
        io_map = _prefix_pairs(io_map, prefix1, prefix2)
    graph = merge_graphs(
        m1.graph, m2.graph, io_map, inputs, outputs, name=name, doc_string=doc_string
    )
    model = helper.make_model(
        graph,
        producer_name=producer_name,
        producer_version=producer_version,
        domain=domain,
        model_version=model_version,
        opset_imports=[*m1.opset_import, *m2.opset_import],
        ir_version=m1.ir_version,
    )
    helper.set_model_props(model, _merge_metadata(m1, m2))
    repeated = _shared(_names(m1.functions), _names(m2.functions))
    if repeated:
        raise ValueError(
            f"both models have local functions named {', '.join(repeated)};"
            " rename those of one model, for example with prefix1 or prefix2"
        )
    model.functions.extend(m1.functions)
    model.functions.extend(m2.functions)
    checker.check_model(model)
    return model


def expand_out_dim_graph(graph: Any, dim_idx: int, inplace: bool | None = False) -> Any:
    """Insert a dimension of size 1 at position `dim_idx` into every output of `graph`.

    Each output keeps its name and comes from a new Unsqueeze node; a negative position counts
    from the back. Returns a changed copy, or `graph` itself when `inplace`.

    >>> from sardonyx.compat.onnx import compose, helper
    >>> x, y = (helper.make_tensor_value_info(name, 1, [4]) for name in "xy")
    >>> graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
    >>> expanded = compose.expand_out_dim_graph(graph, 0)
    >>> [dim.dim_value for dim in expanded.output[0].type.tensor_type.shape.dim]
    [1, 4]
    """
    _require(graph, GraphProto, "graph")
    if not inplace:
        check_nesting(graph.node, f"graph {graph.name!r}")
        original, graph = graph, GraphProto()
        graph.CopyFrom(original)
    suffix = f"_collapsed_dim_{dim_idx}"
    output_names = set(_names(graph.output))
    for node in graph.node:
        for names in (node.output, node.input):
            for index, edge in enumerate(names):
                if edge in output_names:
                    names[index] = edge + suffix
    axis_name = f"{graph.name}_expand_out_dim_idx"
    axis = helper.make_tensor(f"{axis_name}-value", TensorProto.INT64, [1], [dim_idx])
    graph.node.append(
        helper.make_node("Constant", [], [axis_name], name=f"{axis_name}-constant", value=axis)
    )
    expanded = []
    for output in graph.output:
        graph.node.append(
            helper.make_node(
                "Unsqueeze",
                [output.name + suffix, axis_name],
                [output.name],
                name=f"unsqueeze-{output.name}",
            )
        )
        tensor_type = output.type.tensor_type
        shape = [dim.dim_value for dim in tensor_type.shape.dim]
        shape.insert(dim_idx, 1)
        expanded.append(helper.make_tensor_value_info(output.name, tensor_type.elem_type, shape))
    del graph.output[:]
    graph.output.extend(expanded)
    return graph


def expand_out_dim(model: Any, dim_idx: int, inplace: bool | None = False) -> Any:
    """Insert a dimension of size 1 at position `dim_idx` into every output of a model's graph.

    Returns a changed copy, or `model` itself when `inplace`.

    >>> from sardonyx.compat.onnx import compose, helper
    >>> x, y = (helper.make_tensor_value_info(name, 1, [4]) for name in "xy")
    >>> graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
    >>> expanded = compose.expand_out_dim(helper.make_model(graph), 1)
    >>> [node.op_type for node in expanded.graph.node]
    ['Relu', 'Constant', 'Unsqueeze']
    """
    _require(model, ModelProto, "model")
    if not inplace:
        check_model_nesting(model)
        original, model = model, ModelProto()
        model.CopyFrom(original)
    expand_out_dim_graph(model.graph, dim_idx, inplace=True)
    return model


def _require(value: Any, kind: Any, argument: str) -> None:
    if not isinstance(value, kind):
        raise TypeError(f"{argument} must be a {kind.__name__}, not {type(value).__name__}")


def _names(items: Iterable[Any]) -> list[str]:
    return [item.name for item in items]


def _edges(graph: Any) -> Iterable[str]:
    return (
        name for node in graph.node for names in (node.input, node.output) for name in names if name
    )


def _shared(first: Iterable[str], second: Iterable[str]) -> list[str]:
    """The names in both, each once, in the order of `first`."""
    others = set(second)
    return [name for name in dict.fromkeys(first) if name in others]


def _prefix_pairs(io_map: _Pairs, prefix1: str | None, prefix2: str | None) -> Any:
    return [((prefix1 or "") + pair[0], (prefix2 or "") + pair[1]) for pair in io_map]


def _keep_interface(
    graph: Any,
    inputs: list[str] | None,
    outputs: list[str] | None,
    joined_inputs: set[str],
    joined_outputs: set[str],
) -> Any:
    """`graph` cut down to the chosen inputs and outputs and those that will be connected."""
    kept_inputs, kept_outputs = _names(graph.input), _names(graph.output)
    if inputs:
        wanted = set(inputs) | joined_inputs
        kept_inputs = [name for name in kept_inputs if name in wanted]
    if outputs:
        wanted = set(outputs) | joined_outputs
        kept_outputs = [name for name in kept_outputs if name in wanted]
    if len(kept_inputs) == len(graph.input) and len(kept_outputs) == len(graph.output):
        return graph
    return utils.Extractor(helper.make_model(graph)).extract_model(kept_inputs, kept_outputs).graph


def _check_pairs(io_map: _Pairs, g1_outputs: list[str], g2_inputs: list[str]) -> None:
    sources, targets = set(g1_outputs), set(g2_inputs)
    for source, target in io_map:
        if source not in sources:
            raise ValueError(
                f"io_map names {source!r}, which is no output of g1;"
                f" its outputs are {', '.join(g1_outputs)}"
            )
        if target not in targets:
            raise ValueError(
                f"io_map names {target!r}, which is no input of g2;"
                f" its inputs are {', '.join(g2_inputs)}"
            )


def _check_no_overlap(g1: Any, g2: Any, io_map: Any) -> None:
    for kind, names in check_overlapping_names(g1, g2, io_map):
        raise ValueError(
            f"both graphs use the {kind} names {', '.join(names)};"
            " rename those of one graph, for example with onnx.compose.add_prefix"
        )


def _connect(nodes: Iterable[Any], sources: dict[str, str]) -> None:
    """Let `nodes`, and those of graphs inside them, read what `sources` maps their inputs to."""
    pending = [nodes]
    while pending:
        for node in pending.pop():
            for index, name in enumerate(node.input):
                if name in sources:
                    node.input[index] = sources[name]
            for attribute in node.attribute:
                if attribute.type == AttributeProto.GRAPH:
                    pending.append(attribute.g.node)
                elif attribute.type == AttributeProto.GRAPHS:
                    pending.extend(graph.node for graph in attribute.graphs)


def _merge_inputs(first: Any, second: Any, kept: list[str] | None, joined: set[str]) -> list[Any]:
    """The inputs in `kept`; without it, those of both graphs that are not joined."""
    if kept:
        return _chosen((*first, *second), set(kept))
    return [*first, *(value for value in second if value.name not in joined)]


def _merge_outputs(first: Any, second: Any, kept: list[str] | None, joined: set[str]) -> list[Any]:
    """The outputs in `kept`; without it, those of both graphs that are not joined."""
    if kept:
        return _chosen((*first, *second), set(kept))
    return [*(value for value in first if value.name not in joined), *second]


def _chosen(values: Iterable[Any], names: set[str]) -> list[Any]:
    return [value for value in values if value.name in names]


def _merge_values(
    merged: Any, g1: Any, g2: Any, joined_outputs: set[str], joined_inputs: set[str]
) -> None:
    """Initializers and value types of both graphs, without what describes a joined input."""
    merged.initializer.extend(g1.initializer)
    merged.initializer.extend(
        tensor for tensor in g2.initializer if tensor.name not in joined_inputs
    )
    merged.sparse_initializer.extend(g1.sparse_initializer)
    merged.sparse_initializer.extend(
        tensor for tensor in g2.sparse_initializer if tensor.values.name not in joined_inputs
    )
    merged.value_info.extend(g1.value_info)
    merged.value_info.extend(value for value in g2.value_info if value.name not in joined_inputs)
    described = {*_names(merged.value_info), *_names(merged.output)}
    merged.value_info.extend(
        value for value in g1.output if value.name in joined_outputs and value.name not in described
    )


def _check_operator_sets(m1: Any, m2: Any) -> None:
    versions: dict[str, int] = {}
    for entry in (*m1.opset_import, *m2.opset_import):
        version = versions.setdefault(entry.domain, entry.version)
        if version != entry.version:
            raise ValueError(
                f"operator set {entry.domain!r} is imported in versions {version} and"
                f" {entry.version}; convert one model with version_converter first"
            )


def _merge_metadata(m1: Any, m2: Any) -> dict[str, str]:
    metadata = {entry.key: entry.value for entry in m1.metadata_props}
    for entry in m2.metadata_props:
        value = metadata.setdefault(entry.key, entry.value)
        if value != entry.value:
            raise ValueError(
                f"metadata property {entry.key!r} is {value!r} in one model and"
                f" {entry.value!r} in the other; remove or change one of them"
            )
    return metadata
