"""a = Relu(x); b = Relu(x) -> a, read twice; equal constants likewise."""

from collections.abc import Hashable
from typing import Any

import numpy as np

from sardonyx.dims import Expression
from sardonyx.dtypes import DataType
from sardonyx.graph import Attribute, AttributeType, Graph, Node, SparseTensor, Tensor, Value
from sardonyx.passes.remove_dead import drop_constants
from sardonyx.passes.unit import Unit, is_operator

Seen = dict[Hashable, Any]


def merge_duplicates(unit: Unit) -> bool:
    """Compute equal things once: nodes, constants, and sizes that inference proves equal."""
    changed = False
    waiting: list[tuple[Graph, Seen]] = [(unit.graph, {})]
    while waiting:
        graph, outer = waiting.pop()
        changed |= _merge_constants(unit, graph)
        seen = dict(outer)
        for node in list(graph.nodes):
            for inner in node.subgraphs:
                before = dict(seen) if is_operator(node, "If", "Loop", "Scan") else {}
                waiting.append((inner, before))
            if node.graph is None:
                continue
            merged = _merge_node(unit, node, seen) or _merge_sizes(unit, node, seen)
            if merged and not any(value.uses for value in node.outputs):
                graph.nodes.remove(node)
            changed |= merged
    return changed


def _merge_node(unit: Unit, node: Node, seen: Seen) -> bool:
    operator = unit.operator(node)
    if operator is None or operator.random or any(node.subgraphs) or not node.outputs:
        return False
    attributes = frozenset((name, _key(item)) for name, item in node.attributes.items())
    present = tuple(bool(value.name or value.uses) for value in node.outputs)
    key = ("node", node.domain, node.op_type, node.inputs, attributes, present)
    twin: Node | None = seen.setdefault(key, node)
    if twin is node or twin is None:
        return False
    if twin.graph is None:
        seen[key] = node
        return False
    changed = False
    for old, new in zip(node.outputs, twin.outputs, strict=True):
        if old.uses:
            changed |= unit.substitute(old, new)
    return changed


def _merge_sizes(unit: Unit, node: Node, seen: Seen) -> bool:
    """Integers computed in two ways from the same sizes: the first is read for both."""
    changed = False
    for value in node.outputs:
        fact = unit.facts.get(value)
        if fact is None or fact.value is None or not value.uses or fact.value.dtype != object:
            continue
        items = tuple(fact.value.reshape(-1))
        if fact.dtype not in (DataType.INT64, DataType.INT32) or not all(map(_is_size, items)):
            continue
        key = ("sizes", fact.dtype, fact.value.shape, items)
        twin: Value = seen.setdefault(key, value)
        if twin is value:
            continue
        if twin.producer is None or twin.producer.graph is None:
            seen[key] = value
            continue
        changed |= unit.substitute(value, twin)
        if twin.producer is None:
            seen[key] = value
    return changed


def _is_size(item: Any) -> bool:
    return isinstance(item, int | np.integer | Expression)


def _key(attribute: Attribute) -> Hashable:
    value = attribute.value
    if isinstance(value, Tensor):
        return (value.element, value.shape, value.numpy().tobytes())
    if isinstance(value, SparseTensor):
        return id(value)
    if attribute.type in (AttributeType.TENSORS, AttributeType.SPARSE_TENSORS):
        return id(attribute)
    if attribute.type == AttributeType.FLOAT:
        return (attribute.reference, repr(value))
    return (attribute.type, attribute.reference, value)


def _merge_constants(unit: Unit, graph: Graph) -> bool:
    inputs = set(graph.inputs)
    groups: dict[Hashable, list[Value]] = {}
    for value in graph.initializers:
        tensor = value.tensor
        if value in inputs or not isinstance(tensor, Tensor) or value.is_output:
            continue
        groups.setdefault((tensor.element, tensor.shape, _sample(tensor)), []).append(value)
    changed = False
    for group in groups.values():
        changed |= _merge_group(group)
    if changed:
        drop_constants(graph)
    return changed


def _sample(tensor: Tensor) -> Hashable:
    array = tensor.numpy().reshape(-1)
    if array.dtype == object:
        return tuple(array.tolist()) if array.size < 100 else id(tensor)
    return array[:: max(1, array.size // 16)].tobytes()


def _merge_group(group: list[Value]) -> bool:
    changed = False
    kept: list[Value] = []
    for value in group:
        twin = next((item for item in kept if _same(item, value)), None)
        if twin is None:
            kept.append(value)
        elif value.uses:
            value.replace_all_uses(twin)
            changed = True
    return changed


def _same(left: Value, right: Value) -> bool:
    assert isinstance(left.tensor, Tensor) and isinstance(right.tensor, Tensor)
    if left.tensor.data is right.tensor.data:
        return True
    a, b = left.tensor.numpy(), right.tensor.numpy()
    if a.dtype == object:
        return bool((a == b).all())
    return np.array_equal(_bits(a), _bits(b))


def _bits(array: Any) -> Any:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
