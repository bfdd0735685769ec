"""a = Relu(x); b = Relu(x) -> a, read twice; equal constants likewise."""

from collections.abc import Hashable
from math import prod
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from sardonyx.dims import Expression
from sardonyx.dtypes import DataType
from sardonyx.format.pages import let_go_tensor
from sardonyx.graph import (
    ArrayData,
    Attribute,
    AttributeType,
    Graph,
    Node,
    SparseTensor,
    Tensor,
    Value,
)
from sardonyx.graph.stored_list import StoredList
from sardonyx.passes.remove_dead import drop_constants
from sardonyx.passes.repeats import least_core, repeats
from sardonyx.passes.unit import Unit, is_operator

Seen = dict[Hashable, Any]
ENDS = 8
"""Elements at either end of a tensor that are looked at first."""
COPIED = 1 << 10
"""Bytes up to which a tensor in an attribute is copied to be compared."""


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
    twin: Node = seen.setdefault(key, node)
    if twin is node:
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
        if value.element == DataType.STRING:
            return (value.element, value.shape, tuple(value.numpy().reshape(-1).tolist()))
        if value.nbytes > COPIED:
            return _Content(value)
        return (value.element, value.shape, value.numpy().tobytes())
    if isinstance(value, SparseTensor):
        return id(value)
    if attribute.type in (AttributeType.TENSORS, AttributeType.SPARSE_TENSORS):
        return id(attribute)
    if attribute.type == AttributeType.FLOAT:
        return (attribute.reference, repr(value))
    stored = value.stored if isinstance(value, StoredList) else value
    return (attribute.type, attribute.reference, stored)


class _Content:
    """A large tensor by what it holds, without a copy of that."""

    __slots__ = ("_key", "_tensor")

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor
        self._key = (tensor.element, _checksum(tensor, whole=True))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Content)
            and self._key == other._key
            and _equal(self._tensor, other._tensor, whole=True)
        )

    def __hash__(self) -> int:
        return hash(self._key)


def _merge_constants(unit: Unit, graph: Graph) -> bool:
    inputs = set(graph.inputs)
    alike: dict[Hashable, list[Value]] = {}
    for value in graph.initializers:
        tensor = value.tensor
        if value in inputs or not isinstance(tensor, Tensor) or value.is_output:
            continue
        alike.setdefault((tensor.element, tensor.shape), []).append(value)
    changed = False
    for several in alike.values():
        groups: dict[Hashable, list[Value]] = {}
        for value in several if len(several) > 1 else ():
            assert isinstance(value.tensor, Tensor)
            groups.setdefault(_sample(value.tensor), []).append(value)
        for group in groups.values():
            changed |= _merge_group(group)
    if changed:
        drop_constants(graph)
    return changed


def _sample(tensor: Tensor) -> Hashable:
    array = tensor.numpy()
    if array.dtype == object:
        return tuple(array.reshape(-1).tolist()) if array.size < 100 else id(tensor)
    flat = array.reshape(-1) if array.flags.c_contiguous else array.flat
    ends = (flat[:ENDS].tobytes(), flat[-ENDS:].tobytes())
    let_go_tensor(tensor)
    return ends


def _merge_group(group: list[Value]) -> bool:
    """Merge those of some constants, equal in type, shape and sample, that are equal in all."""
    changed = False
    tensors = [value.tensor for value in group if isinstance(value.tensor, Tensor)]
    if len(tensors) < 2:
        return False
    whole = not all(isinstance(tensor.data, ArrayData) and repeats(tensor.data.values)
                    for tensor in tensors)  # fmt: skip
    kept: dict[Hashable, list[tuple[Value, Tensor]]] = {}
    for value, tensor in zip(group, tensors, strict=True):
        known = kept.setdefault(_checksum(tensor, whole), [])
        twin = next((other for other, seen in known if _equal(tensor, seen, whole)), None)
        if twin is None:
            known.append((value, tensor))
        elif value.uses:
            value.replace_all_uses(twin)
            changed = True
    return changed


def _checksum(tensor: Tensor, whole: bool) -> Hashable:
    """The same for equal elements; 0 where the sample was all of them."""
    if _told_by_sample(tensor):
        return 0
    content = _content(tensor, whole)
    found = (content.shape, crc32(content.reshape(-1).view(np.uint8).data))
    let_go_tensor(tensor)
    return found


def _equal(left: Tensor, right: Tensor, whole: bool) -> bool:
    """Whether two tensors with the same sample and checksum are equal."""
    if left.data is right.data or _told_by_sample(left):
        return True
    first, second = (_content(tensor, whole) for tensor in (left, right))
    same = np.array_equal(first.reshape(-1).view(np.uint8), second.reshape(-1).view(np.uint8))
    let_go_tensor(left)
    let_go_tensor(right)
    return same


def _told_by_sample(tensor: Tensor) -> bool:
    return tensor.element == DataType.STRING or prod(tensor.shape) <= 2 * ENDS


def _content(tensor: Tensor, whole: bool) -> NDArray[Any]:
    """A tensor's elements: all, or of one that repeats them each once."""
    array = tensor.numpy()
    return np.ascontiguousarray(array if whole else least_core(array))
