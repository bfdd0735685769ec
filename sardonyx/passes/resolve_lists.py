"""SequenceAt(SequenceConstruct(a, b), 1) -> b: lists whose elements are known become tensors."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from sardonyx.graph import Node, OptionalType, Value
from sardonyx.passes.inline_branches import finish
from sardonyx.passes.rules import RuleBuilder
from sardonyx.passes.unit import Unit, graph_of, is_operator, producer, record_origin

MOST_PARTS = 256
"""Parts of a tensor that are cut one by one."""
_CHANGES = ("SequenceInsert", "SequenceErase", "Identity")
_READERS = ("SequenceAt", "SequenceLength", "ConcatFromSequence")


def resolve_lists(unit: Unit) -> bool:
    """Let what reads a list whose elements are known read those, and optionals what they hold."""
    changed = False
    for node in list(unit.nodes()):
        if node.graph is None:
            continue
        if is_operator(node, "SplitToSequence"):
            changed |= _cut(unit, node)
        elif is_operator(node, "OptionalGetElement"):
            changed |= _open(unit, node)
        elif is_operator(node, *_READERS):
            items = _items(unit, node.inputs[0])
            changed |= items is not None and _read(unit, node, items)
    return changed


def _items(unit: Unit, value: Value | None) -> list[Value] | None:
    """The elements of a list, where every one is known."""
    steps: list[Node] = []
    while (step := producer(value, *_CHANGES)) is not None:
        steps.append(step)
        value = step.inputs[0]
    maker = producer(value, "SequenceConstruct", "SequenceEmpty")
    if maker is None:
        return None
    items = [item for item in maker.inputs if item is not None]
    for step in reversed(steps):
        if step.op_type == "Identity":
            continue
        inserts = step.op_type == "SequenceInsert"
        place = _place(unit, step, 2 if inserts else 1, len(items), len(items) + inserts)
        if place is None:
            return None
        item = step.inputs[1] if inserts else None
        items[place : place + (not inserts)] = [item] if item is not None else []
    return items


def _place(unit: Unit, node: Node, position: int, count: int, room: int) -> int | None:
    """The place that an input names among `room`, by default the last; None where none is sure."""
    given = node.inputs[position] if position < len(node.inputs) else None
    if given is None:
        return room - 1 if room else None
    array = unit.array(given)
    if array is None or array.size != 1:
        return None
    place = int(array.reshape(-1)[0])
    return place % count if -count <= place < 0 else place if 0 <= place < room else None


def _read(unit: Unit, node: Node, items: list[Value]) -> bool:
    """Put what a node reads of a list in its place."""
    build = RuleBuilder(unit, node)
    if is_operator(node, "SequenceLength"):
        return _replace(unit, node, build, build.constant(np.array(len(items), np.int64)))
    if is_operator(node, "SequenceAt"):
        place = _place(unit, node, 1, len(items), len(items))
        return place is not None and _replace(unit, node, build, items[place])
    axis = node.attribute("axis")
    if not items or not isinstance(axis, int):
        return False
    if node.attribute("new_axis", 0):
        items = [build.Unsqueeze(item, axes=[axis]) for item in items]
    return _replace(unit, node, build, build.Concat(*items, axis=axis))


def _open(unit: Unit, node: Node) -> bool:
    """OptionalGetElement(Optional(x)) -> x, and of what is no optional, that."""
    value = node.inputs[0]
    maker = producer(value, "Optional")
    if maker is not None:
        value = maker.inputs[0] if maker.inputs else None
    fact = unit.fact(value)
    known = fact.dtype is not None or fact.type is not None
    if value is None or isinstance(fact.type, OptionalType) or not (known or maker is not None):
        return False
    return _replace(unit, node, RuleBuilder(unit, node), value)


def _cut(unit: Unit, node: Node) -> bool:
    """SplitToSequence -> SequenceConstruct(Split), where only what reads a list reads it."""
    users = [user for user, _ in node.output.uses]
    alone = all(
        isinstance(user, Node) and is_operator(user, *_CHANGES, *_READERS) for user in users
    )
    sizes = _part_sizes(unit, node)
    x, axis = node.inputs[0], node.attribute("axis", 0)
    if not users or not alone or not sizes or x is None or not isinstance(axis, int):
        return False
    build = RuleBuilder(unit, node)
    parts: Sequence[Value] = [x]
    if len(sizes) > 1:
        parts = build.Split(x, split=sizes, axis=axis, outputs=len(sizes))
    if len(node.inputs) < 2 and not node.attribute("keepdims", 1):
        parts = [build.Squeeze(part, axes=[axis]) for part in parts]
    return _replace(unit, node, build, build.SequenceConstruct(*parts))


def _part_sizes(unit: Unit, node: Node) -> list[int]:
    """The sizes of the parts a tensor is cut into; empty where they are not known, or too many."""
    shape, axis = unit.shape(node.inputs[0]), node.attribute("axis", 0)
    if shape is None or not isinstance(axis, int) or not -len(shape) <= axis < len(shape):
        return []
    size = shape[axis]
    given = node.inputs[1] if len(node.inputs) > 1 else None
    split = np.array(1) if given is None else unit.array(given)
    if split is None or not isinstance(size, int):
        return []
    if split.ndim:
        sizes = [int(part) for part in split]
        fits = sum(sizes) == size and min(sizes, default=-1) >= 0
        return sizes if fits and len(sizes) <= MOST_PARTS else []
    part = int(split)
    if part < 1 or size > part * MOST_PARTS:
        return []
    return [end - start for start, end in pairwise([*range(0, size, part), size])]


def _replace(unit: Unit, node: Node, build: RuleBuilder, value: Value) -> bool:
    """Let a value stand for a node's only output."""
    record_origin(unit, build.made, [node])
    finish(unit, node, node.output, value)
    if not node.output.uses:
        graph_of(node).nodes.remove(node)
    return True
