"""What stands before a softmax of attention: scaled products of queries and keys, and masks."""

from dataclasses import replace

import numpy as np

from sardonyx.graph import Node, Value
from sardonyx.ops.fact import Sizes
from sardonyx.passes.unit import Unit, is_operator, refers
from sardonyx.record import record


@record
class Scores:
    """query @ keys * scale, and then the masks."""

    query: Value
    keys: Value
    """Turned: their lengths are the last axis."""
    scale: float
    masks: tuple["Addend", ...] = ()
    nodes: tuple[Node, ...] = ()
    """What computes the scores, outermost first."""


@record
class Addend:
    """A value added to scores, or a condition where they stay, or go for `fill`.

    `windows` is the shape that scores have meanwhile: their batches are split into two axes.
    """

    value: Value
    fill: float | None = None
    keeps: bool = True
    windows: Sizes | None = None


def maker_of(value: Value | None, near: Node, *names: str) -> Node | None:
    """The node that makes a value in the same graph as `near`, if it is one of these operators."""
    maker = None if value is None else value.producer
    if maker is None or maker.graph is not near.graph or refers(maker) or maker.domain:
        return None
    return maker if not names or is_operator(maker, *names) else None


def constant_number(unit: Unit, value: Value | None) -> float | None:
    """The only element of a constant of numbers; None for anything else."""
    array = unit.array(value)
    if array is None or array.size != 1 or array.dtype.kind not in "fiu":
        return None
    return float(np.asarray(array, np.float64).reshape(-1)[0])


def read_scores(unit: Unit, value: Value | None, near: Node) -> Scores | None:
    """Take scores apart, from the outside; None where they are no product, or are used elsewhere.

    Mul(MatMul(q, k), s) + mask -> Scores(q, k, s, (mask,))
    """
    node = maker_of(value, near, "MatMul", "Mul", "Div", "Add", "Where", "Reshape")
    if node is None or value is None or len(value.uses) != 1:
        return None
    found: Scores | None = None
    match node.op_type:
        case "MatMul":
            found = _product(unit, node)
        case "Mul" | "Div":
            inner, factor = read_factor(unit, node)
            found = None if inner is None else read_scores(unit, inner, near)
            if found is None or found.masks:
                return None
            found = replace(found, scale=found.scale * factor)
        case "Add":
            for place in (0, 1):
                inner, other = node.inputs[place], node.inputs[1 - place]
                found = read_scores(unit, inner, near)
                if found is not None and other is not None:
                    found = replace(found, masks=(*found.masks, Addend(other)))
                    break
        case "Where":
            found = _masked(unit, node, near)
        case "Reshape":
            found = _windowed(unit, node, near)
    return None if found is None else replace(found, nodes=(node, *found.nodes))


def _product(unit: Unit, node: Node) -> Scores | None:
    left, right = node.inputs
    if left is None or right is None:
        return None
    query, first = _unscaled(unit, left, node)
    keys, second = _unscaled(unit, right, node)
    return Scores(query, keys, first * second)


def _unscaled(unit: Unit, value: Value, near: Node) -> tuple[Value, float]:
    """A value before it is multiplied by numbers, and their product."""
    scale = 1.0
    while node := maker_of(value, near, "Mul", "Div"):
        inner, factor = read_factor(unit, node)
        if inner is None or unit.shape(inner) != unit.shape(value):
            break
        value, scale = inner, scale * factor
    return value, scale


def read_factor(unit: Unit, node: Node) -> tuple[Value | None, float]:
    """What a Mul or Div scales, and by which number; (None, 1) where it is not a constant."""
    for place in (1, 0)[: 1 if node.op_type == "Div" else 2]:
        number = constant_number(unit, node.inputs[place])
        if number is not None and np.isfinite(number) and number > 0:
            factor = 1 / number if node.op_type == "Div" else number
            return node.inputs[1 - place], factor
    return None, 1.0


def _masked(unit: Unit, node: Node, near: Node) -> Scores | None:
    """Where(c, scores, -infinity), or with the two exchanged."""
    for place in (1, 2):
        fill = lowest_number(unit, node.inputs[3 - place])
        found = None if fill is None else read_scores(unit, node.inputs[place], near)
        condition = node.inputs[0]
        if found is not None and condition is not None:
            addend = Addend(condition, fill, keeps=place == 1)
            return replace(found, masks=(*found.masks, addend))
    return None


def _windowed(unit: Unit, node: Node, near: Node) -> Scores | None:
    """Reshape(Reshape(scores, [b, w, h, n, m]) + mask, [b*w, h, n, m]): a mask for each window."""
    add, shape = maker_of(node.inputs[0], near, "Add"), unit.shape(node.output)
    if add is None or shape is None or len(shape) != 4 or len(add.output.uses) != 1:
        return None
    for place in (0, 1):
        split, mask = maker_of(add.inputs[place], near, "Reshape"), add.inputs[1 - place]
        parts = None if split is None else unit.shape(split.output)
        if split is None or mask is None or parts is None or len(parts) != 5:
            continue
        if unit.shape(split.inputs[0]) != shape or parts[2:] != shape[1:]:
            continue
        if parts[0] is None or parts[1] is None or parts[0] * parts[1] != shape[0]:
            continue
        if None in parts or len(split.output.uses) != 1:
            continue
        found = read_scores(unit, split.inputs[0], near)
        if found is not None:
            masks = (*found.masks, Addend(mask, windows=parts))
            return replace(found, masks=masks, nodes=(add, split, *found.nodes))
    return None


def lowest_number(unit: Unit, value: Value | None) -> float | None:
    """A constant number so low that no score survives beside it; None for anything else."""
    number = constant_number(unit, value)
    if number is None or value is None:
        return None
    dtype = unit.dtype(value)
    lowest = -1e30 if dtype is None or dtype.numpy.itemsize > 2 else -6e4
    return number if number <= lowest else None


def turned(unit: Unit, keys: Value, near: Node) -> tuple[tuple[Node, ...], Value]:
    """Keys as they are before their last two axes are exchanged, and the nodes that do so."""
    node = maker_of(keys, near, "Transpose")
    if node is None or node.attribute("perm") != (0, 1, 3, 2) or node.inputs[0] is None:
        return (), keys
    return (node,), node.inputs[0]
