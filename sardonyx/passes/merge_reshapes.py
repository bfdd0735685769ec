"""Reshape(Squeeze(x)) -> Reshape(x), and the like for all that only change the shape."""

import numpy as np

from sardonyx.graph import Node
from sardonyx.passes.fold_shapes import list_is_told, reshape_target, shape_told
from sardonyx.passes.unit import Unit, drop_unused, is_operator, record_origin, refers

_SHAPED = ("Reshape", "Flatten", "Squeeze", "Unsqueeze")


def merge_reshapes(unit: Unit) -> bool:
    """Make one Reshape of a chain of nodes that only change the shape."""
    changed = False
    for node in list(unit.nodes()):
        if node.graph is None or not is_operator(node, *_SHAPED) or refers(node):
            continue
        inner = node.inputs[0].producer if node.inputs and node.inputs[0] else None
        if inner is None or inner.graph is not node.graph or not is_operator(inner, *_SHAPED):
            continue
        if unit.opset >= 5 and not refers(inner):
            changed |= _merge(unit, node, inner)
    return changed


def _merge(unit: Unit, node: Node, inner: Node) -> bool:
    source = inner.inputs[0]
    before, after = unit.shape(source), shape_told(unit, node)
    if source is None or not list_is_told(unit, inner):
        return False
    target = reshape_target(before, after)
    if target is None:
        target = _constant_target(unit, node)
    if target is None or node.graph is None:
        return False
    record_origin(unit, [node], [inner, node])
    name = f"{node.output.name}/shape"
    shape = unit.add_constant(node.graph, np.array(target, np.int64), name, node)
    node.op_type, node.attributes = "Reshape", {}
    node.set_inputs([source, shape])
    drop_unused([inner])
    return True


def _constant_target(unit: Unit, node: Node) -> list[int] | None:
    """A Reshape's own constant, where it does not speak of its input's sizes."""
    if node.op_type != "Reshape" or node.attribute("allowzero"):
        return None
    array = unit.array(node.inputs[1]) if len(node.inputs) > 1 else None
    if array is None or (array == 0).any():
        return None
    return [int(size) for size in array]
