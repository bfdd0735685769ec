"""Shrink models: large constants become nodes that make a dummy of the same type and shape."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sardonyx.compat.onnx import helper
from sardonyx.compat.onnx._nesting import check_nesting
from sardonyx.compat.onnx.numpy_helper import from_array
from sardonyx.compat.onnx.onnx_ml_pb2 import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    TensorProto,
)

__all__ = ["replace_initializer_by_constant_of_shape"]


@dataclass(frozen=True)
class _Request:
    """What the caller asked for."""

    threshold: int
    ir_version: int | None
    use_range: bool
    value: float


def replace_initializer_by_constant_of_shape(
    onx: Any,
    threshold: int = 128,
    ir_version: int | None = None,
    use_range: bool = False,
    value_constant_of_shape: float = 0.5,
) -> Any:
    """`onx` with dummies for all initializers and constants of more than `threshold` elements.

    `onx` is a model, graph or function; it stays as it is. ConstantOfShape nodes, those already
    there included, get the value `value_constant_of_shape` (1 leaves them alone), or with
    `use_range` make way for nodes that compute values from 0 to 1. A graph or function alone
    needs its `ir_version` told: up to 3, initializers are inputs too.

    >>> import numpy as np
    >>> from sardonyx.compat.onnx import helper, numpy_helper
    >>> from sardonyx.compat.onnx.tools import replace_constants
    >>> x, y = (helper.make_tensor_value_info(name, 1, ["n"]) for name in "xy")
    >>> weight = numpy_helper.from_array(np.zeros(1000, np.float32), "w")
    >>> node = helper.make_node("Add", ["x", "w"], ["y"])
    >>> model = helper.make_model(helper.make_graph([node], "g", [x], [y], [weight]))
    >>> small = replace_constants.replace_initializer_by_constant_of_shape(model)
    >>> [node.op_type for node in small.graph.node], small.graph.initializer[0].name
    (['ConstantOfShape', 'Add'], 'w__SHAPE')
    """
    request = _Request(threshold, ir_version, use_range, value_constant_of_shape)
    match onx:
        case FunctionProto():
            check_nesting(onx.node, f"function {onx.name!r}")
            return _replace_in_function(onx, request)
        case ModelProto():
            return _replace_in_model(onx, request)
        case GraphProto():
            check_nesting(onx.node, f"graph {onx.name!r}")
            return _replace_in_graph(onx, request)
    raise TypeError(
        f"onx must be a ModelProto, GraphProto or FunctionProto, not {type(onx).__name__}"
    )


def _replace_in_model(model: Any, request: _Request) -> Any:
    version = request.ir_version or model.ir_version
    options = (request.threshold, version, request.use_range, request.value)
    small = helper.make_model(
        replace_initializer_by_constant_of_shape(model.graph, *options),
        functions=[
            replace_initializer_by_constant_of_shape(function, *options)
            for function in model.functions
        ],
        producer_name=model.producer_name,
        producer_version=model.producer_version,
        ir_version=version,
        doc_string=model.doc_string,
        domain=model.domain,
        model_version=model.model_version,
    )
    if model.metadata_props:
        helper.set_model_props(small, {entry.key: entry.value for entry in model.metadata_props})
    del small.opset_import[:]
    for entry in model.opset_import:
        if entry.domain == "" and entry.version < (11 if request.use_range else 9):
            needed = "Range, new in 11" if request.use_range else "ConstantOfShape, new in 9"
            raise RuntimeError(
                f"the model uses operator set {entry.version} and would need {needed};"
                " convert it with version_converter first"
            )
        small.opset_import.add(domain=entry.domain, version=entry.version)
    return small


def _replace_in_function(function: Any, request: _Request) -> Any:
    nodes, changed = [], False
    for node in function.node:
        replacement = _replace_node(node, request) if node.op_type == "Constant" else [node]
        changed = changed or len(replacement) == 2
        nodes.extend(replacement)
    return _finish(_rebuild(function, nodes) if changed else function, request)


def _replace_in_graph(graph: Any, request: _Request) -> Any:
    initializers, nodes, inputs, removed = [], [], [], set()
    for tensor in graph.initializer:
        if _size(tensor.dims) <= request.threshold:
            initializers.append(tensor)
            continue
        shape_name = f"{tensor.name}__SHAPE"
        initializers.append(_shape_tensor(tensor.dims, shape_name))
        nodes.append(_dummy_node(shape_name, [tensor.name], tensor.data_type, 0.5))
        removed.add(tensor.name)
        if request.ir_version is not None and request.ir_version <= 3:
            rank = [len(tensor.dims)]
            inputs.append(helper.make_tensor_value_info(shape_name, TensorProto.INT64, rank))
    for sparse in graph.sparse_initializer:
        if _size(sparse.dims) > request.threshold:
            raise NotImplementedError(
                f"sparse initializer {sparse.values.name!r} is large, and there is no dummy"
                " for sparse tensors; make it dense first"
            )
    changed = bool(removed)
    for node in graph.node:
        if node.op_type == "Constant":
            replacement = _replace_node(node, request)
            changed = changed or len(replacement) == 2
            nodes.extend(replacement)
        else:
            new_node = _replace_in_attributes(node, request)
            changed = changed or new_node is not node
            nodes.append(new_node)
    if changed:
        graph = helper.make_graph(
            nodes,
            graph.name,
            [value for value in graph.input if value.name not in removed] + inputs,
            graph.output,
            initializer=initializers,
            sparse_initializer=graph.sparse_initializer,
        )
    return _finish(graph, request)


def _replace_in_attributes(node: Any, request: _Request) -> Any:
    """`node` itself, or if a graph inside it changed, a new one with the same wiring."""
    attributes, changed = [], False
    for attribute in node.attribute:
        new_attribute = attribute
        if attribute.type == AttributeProto.GRAPH and attribute.HasField("g"):
            original = attribute.g
            graph = _replace_in_graph(original, request)
            if graph is not original:
                changed = True
                new_attribute = helper.make_attribute(attribute.name, graph)
        elif attribute.type == AttributeProto.GRAPHS:
            originals = list(attribute.graphs)
            graphs = [_replace_in_graph(graph, request) for graph in originals]
            if any(new is not old for new, old in zip(graphs, originals, strict=True)):
                changed = True
            if changed:
                new_attribute = helper.make_attribute(attribute.name, graphs)
        attributes.append(new_attribute)
    if not changed:
        return node
    new_node = helper.make_node(node.op_type, node.input, node.output)
    new_node.attribute.extend(attributes)
    return new_node


def _replace_node(node: Any, request: _Request) -> list[Any]:
    """A Constant node as it is, or if it is large, the two nodes that make a dummy for it."""
    for attribute in node.attribute:
        if attribute.name != "value":
            raise NotImplementedError(
                f"Constant node {node.name!r} has the attribute {attribute.name!r};"
                " only dense tensors in 'value' are supported"
            )
        tensor = attribute.t
        if _size(tensor.dims) <= request.threshold:
            return [node]
        shape_name = f"{tensor.name}__SHAPE"
        shape = _shape_tensor(tensor.dims, shape_name)
        return [
            helper.make_node("Constant", [], [shape_name], value=shape),
            _dummy_node(shape_name, node.output, tensor.data_type, request.value),
        ]
    return [node]


def _size(dims: Iterable[int]) -> np.int64:
    return np.prod(list(dims), dtype=np.int64)


def _shape_tensor(dims: Iterable[int], name: str) -> Any:
    return from_array(np.array(list(dims), dtype=np.int64), name=name)


def _dummy_node(shape_name: str, outputs: Any, data_type: int, value: float) -> Any:
    fill = np.array([value], dtype=helper.tensor_dtype_to_np_dtype(data_type))
    return helper.make_node("ConstantOfShape", [shape_name], outputs, value=from_array(fill))


def _finish(part: Any, request: _Request) -> Any:
    """Treat the ConstantOfShape nodes, new and old ones, as the caller wants."""
    if request.use_range:
        return _replace_constant_of_shape_with_range(part)
    if request.value != 1:
        return _replace_constant_of_shape_value(part, request.value)
    return part


def _rebuild(part: Any, nodes: list[Any]) -> Any:
    """A graph or function like `part`, with other nodes."""
    if isinstance(part, GraphProto):
        return helper.make_graph(
            nodes,
            part.name,
            part.input,
            part.output,
            initializer=part.initializer,
            sparse_initializer=part.sparse_initializer,
        )
    return helper.make_function(
        part.domain, part.name, part.input, part.output, nodes, opset_imports=part.opset_import
    )


def _replace_constant_of_shape_value(onx: Any, value_constant_of_shape: float) -> Any:
    """A graph or function like `onx` in which every ConstantOfShape makes the given value."""
    _require_graph_or_function(onx)
    nodes = []
    for node in onx.node:
        if node.op_type == "ConstantOfShape":
            attribute = node.attribute[0]
            value = helper.make_tensor(
                attribute.t.name, attribute.t.data_type, [1], [value_constant_of_shape]
            )
            new_node = helper.make_node("ConstantOfShape", node.input, node.output)
            new_node.attribute.append(helper.make_attribute(attribute.name, value=value))
            nodes.append(new_node)
        else:
            nodes.append(node)
    return _rebuild(onx, nodes)


def _replace_constant_of_shape_with_range(onx: Any) -> Any:
    """A graph or function like `onx` that computes 0, 1/n, 2/n ... for every ConstantOfShape."""
    _require_graph_or_function(onx)
    names = _FreshNames(onx.node)
    zero, one = names.make("zero"), names.make("one")
    nodes = [
        helper.make_node("Constant", [], [zero], value_int=0),
        helper.make_node("Constant", [], [one], value_int=1),
    ]
    for node in onx.node:
        if node.op_type == "ConstantOfShape":
            nodes.extend(_range_nodes(node, zero, one, names))
        else:
            nodes.append(node)
    return _rebuild(onx, nodes)


def _range_nodes(node: Any, zero: str, one: str, names: "_FreshNames") -> list[Any]:
    shape = node.input[0]
    count, numbers, numerators, denominator, flat = (
        names.make(f"{shape}_{part}") for part in ("N", "RANGE", "RANGEf", "Nf", "FLAT")
    )
    has_value = len(node.attribute) == 1
    data_type = node.attribute[0].t.data_type if has_value else TensorProto.FLOAT
    return [
        helper.make_node("ReduceProd", [shape], [count]),
        helper.make_node("Range", [zero, count, one], [numbers]),
        helper.make_node("Cast", [numbers], [numerators], to=data_type),
        helper.make_node("Cast", [count], [denominator], to=data_type),
        helper.make_node("Div", [numerators, denominator], [flat]),
        helper.make_node("Reshape", [flat, shape], node.output),
    ]


class _FreshNames:
    """Hands out value names that no node uses yet."""

    def __init__(self, nodes: Iterable[Any]) -> None:
        self._taken = {name for node in nodes for name in (*node.input, *node.output)}
        self._next_number: dict[str, int] = {}

    def make(self, name: str) -> str:
        """`name`, with a number from 2 on behind it if it is taken."""
        fresh, number = name, self._next_number.get(name, 2)
        while fresh in self._taken:
            fresh = f"{name}_{number}"
            number += 1
        self._next_number[name] = number
        self._taken.add(fresh)
        return fresh


def _require_graph_or_function(onx: Any) -> None:
    if not isinstance(onx, GraphProto | FunctionProto):
        raise TypeError(f"onx must be a GraphProto or FunctionProto, not {type(onx).__name__}")
