"""Put a prefix before the names in a graph or a model."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sardonyx.compat.onnx._nesting import check_model_nesting, check_nesting, subgraphs
from sardonyx.compat.onnx.onnx_ml_pb2 import GraphProto, ModelProto


def add_prefix_graph(
    graph: Any,
    prefix: str,
    rename_nodes: bool | None = True,
    rename_edges: bool | None = True,
    rename_inputs: bool | None = True,
    rename_outputs: bool | None = True,
    rename_initializers: bool | None = True,
    rename_value_infos: bool | None = True,
    inplace: bool | None = False,
    name_map: dict[str, str] | None = None,
) -> Any:
    """Put `prefix` before the chosen kinds of names in `graph`; empty names stay empty.

    Returns a changed copy, or `graph` itself when `inplace`. Graphs inside nodes are renamed
    completely, as part of `rename_nodes`. `name_map` holds further names to replace and
    receives every replacement.

    >>> from sardonyx.compat.onnx import GraphProto, compose
    >>> graph = GraphProto(name="small")
    >>> _ = graph.node.add(op_type="Relu", input=["x"], output=["t"])
    >>> _ = graph.node.add(op_type="Abs", input=["t"], output=["y"])
    >>> renamed = compose.add_prefix_graph(graph, "a/")
    >>> [list(node.output) for node in renamed.node]
    [['a/t'], ['a/y']]
    """
    if not isinstance(graph, GraphProto):
        raise TypeError(f"graph must be a GraphProto, not {type(graph).__name__}")
    check_nesting(graph.node, f"graph {graph.name!r}")
    if not inplace:
        original, graph = graph, GraphProto()
        graph.CopyFrom(original)
    kinds = _Kinds(
        nodes=bool(rename_nodes),
        edges=bool(rename_edges),
        inputs=bool(rename_inputs),
        outputs=bool(rename_outputs),
        initializers=bool(rename_initializers),
        value_infos=bool(rename_value_infos),
    )
    _prefix_graph(graph, prefix, kinds, {} if name_map is None else name_map)
    return graph


def add_prefix(
    model: Any,
    prefix: str,
    rename_nodes: bool | None = True,
    rename_edges: bool | None = True,
    rename_inputs: bool | None = True,
    rename_outputs: bool | None = True,
    rename_initializers: bool | None = True,
    rename_value_infos: bool | None = True,
    rename_functions: bool | None = True,
    inplace: bool | None = False,
) -> Any:
    """Put `prefix` before the chosen kinds of names in a model's graph, and its functions' names.

    Returns a changed copy, or `model` itself when `inplace`.

    >>> from sardonyx.compat.onnx import ModelProto, compose
    >>> model = ModelProto()
    >>> _ = model.graph.input.add(name="x")
    >>> _ = model.graph.node.add(op_type="Relu", input=["x"], output=["y"])
    >>> compose.add_prefix(model, "left_").graph.node[0].input[0]
    'left_x'
    """
    if not isinstance(model, ModelProto):
        raise TypeError(f"model must be a ModelProto, not {type(model).__name__}")
    check_model_nesting(model)
    if not inplace:
        original, model = model, ModelProto()
        model.CopyFrom(original)
    add_prefix_graph(
        model.graph,
        prefix,
        rename_nodes=rename_nodes,
        rename_edges=rename_edges,
        rename_inputs=rename_inputs,
        rename_outputs=rename_outputs,
        rename_initializers=rename_initializers,
        rename_value_infos=rename_value_infos,
        inplace=True,
    )
    if rename_functions:
        _rename_functions(model, prefix)
    return model


@dataclass(frozen=True)
class _Kinds:
    """Which kinds of names get the prefix."""

    nodes: bool = True
    edges: bool = True
    inputs: bool = True
    outputs: bool = True
    initializers: bool = True
    value_infos: bool = True


def _prefix_graph(graph: Any, prefix: str, kinds: _Kinds, name_map: dict[str, str]) -> None:
    """Rename `graph` in place; inner graphs see the names mapped before their node is reached."""
    if kinds.edges:
        outputs = {output.name for output in graph.output}
        edges = (name for node in graph.node for name in node.output if name not in outputs)
        _extend_map(name_map, prefix, edges)
    if kinds.inputs:
        _extend_map(name_map, prefix, (value.name for value in graph.input))
    if kinds.outputs:
        _extend_map(name_map, prefix, (value.name for value in graph.output))
    if kinds.nodes:
        for node in graph.node:
            node.name = _prefixed(prefix, node.name)
            for inner in subgraphs(node):
                _prefix_graph(inner, prefix, _Kinds(), name_map)
    if kinds.initializers:
        _extend_map(name_map, prefix, (tensor.name for tensor in graph.initializer))
        for sparse in graph.sparse_initializer:
            _extend_map(name_map, prefix, (sparse.values.name, sparse.indices.name))
    if kinds.value_infos:
        _extend_map(name_map, prefix, (value.name for value in graph.value_info))
    _rename_graph(graph, name_map)


def _prefixed(prefix: str, name: str) -> str:
    return prefix + name if name else name


def _extend_map(name_map: dict[str, str], prefix: str, names: Iterable[str]) -> None:
    name_map.update((name, _prefixed(prefix, name)) for name in names)


def _rename_graph(graph: Any, name_map: dict[str, str]) -> None:
    """Replace every name of `graph` that `name_map` knows, outside the graphs of its nodes."""
    for node in graph.node:
        for names in (node.output, node.input):
            for index, name in enumerate(names):
                if name in name_map:
                    names[index] = name_map[name]
    named = [*graph.input, *graph.output, *graph.initializer, *graph.value_info]
    for sparse in graph.sparse_initializer:
        named += (sparse.values, sparse.indices)
    for item in named:
        if item.name in name_map:
            item.name = name_map[item.name]


def _rename_functions(model: Any, prefix: str) -> None:
    """Prefix the local functions and the calls in the graph and in the functions' bodies."""
    renamed = {}
    for function in model.functions:
        renamed[function.name] = prefix + function.name
        function.name = prefix + function.name
    bodies = [function.node for function in model.functions]
    for nodes in (*bodies, model.graph.node):
        for node in nodes:
            if node.op_type in renamed:
                node.op_type = renamed[node.op_type]
