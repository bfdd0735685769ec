"""Whether a mask lets every query see the keys up to its own place, and no other.

Trilu(ones), Range(keys) <= Range(queries), a constant triangle or its first rows and columns
"""

import numpy as np

from sardonyx.graph import Node, Value
from sardonyx.passes.read_scores import Addend, constant_number, lowest_number
from sardonyx.passes.unit import Unit, producer

_SHAPED = ("Unsqueeze", "Reshape", "Squeeze", "Expand")
_DEEPEST = 12
"""Steps that are followed back at most."""


def is_causal(unit: Unit, mask: Addend) -> bool:
    """True for a condition, or numbers that are added, which make attention causal."""
    if mask.fill is not None:
        return mask.keeps and _is_triangle(unit, mask.value, _DEEPEST)
    array = unit.array(mask.value)
    if array is not None:
        return array.ndim >= 2 and array.dtype.kind == "f" and _equals_bias(array)
    node = producer(mask.value, "Where")
    if node is None:
        return False
    zero, low = constant_number(unit, node.inputs[1]), lowest_number(unit, node.inputs[2])
    return zero == 0 and low is not None and _is_triangle(unit, node.inputs[0], _DEEPEST)


def _equals_bias(array: np.ndarray) -> bool:
    """True for zeros up to the diagonal, and very low numbers behind it."""
    seen = np.tril(np.ones(array.shape[-2:], bool))
    lowest = -1e30 if array.dtype.itemsize > 2 else -6e4
    return bool((array[..., seen] == 0).all() and (array[..., ~seen] <= lowest).all())


def _is_triangle(unit: Unit, value: Value | None, depth: int) -> bool:
    """True for a value that holds in its last two axes where the column is not behind the row."""
    if value is None or not depth:
        return False
    array = unit.array(value)
    if array is not None:
        same = array.ndim >= 2 and (array != 0) == np.tril(np.ones(array.shape[-2:], bool))
        return bool(np.all(same))
    node = producer(value, "Trilu", "Slice", "Cast", "LessOrEqual", "GreaterOrEqual", *_SHAPED)
    if node is None:
        return False
    match node.op_type:
        case "Trilu":
            plain = node.attribute("upper", 1) == 0 and _is_first(unit, node, 1)
            return plain and _is_ones(unit, node.inputs[0], depth - 1)
        case "Slice":
            starts, steps = unit.integers(node, "starts"), unit.integers(node, "steps") or (1,)
            first = starts is not None and not any(starts) and set(steps) == {1}
            return first and _is_triangle(unit, node.inputs[0], depth - 1)
        case "LessOrEqual":
            return _compares(unit, node.inputs[0], node.inputs[1])
        case "GreaterOrEqual":
            return _compares(unit, node.inputs[1], node.inputs[0])
        case "Cast":
            return _is_triangle(unit, node.inputs[0], depth - 1)
    return _keeps_matrix(unit, node) and _is_triangle(unit, node.inputs[0], depth - 1)


def _is_first(unit: Unit, node: Node, place: int) -> bool:
    """True where an input that moves the diagonal is absent, or 0."""
    absent = len(node.inputs) <= place or node.inputs[place] is None
    return absent or constant_number(unit, node.inputs[place]) == 0


def _keeps_matrix(unit: Unit, node: Node) -> bool:
    before, after = unit.shape(node.inputs[0]), unit.shape(node.output)
    if before is None or after is None or len(before) < 2 or None in before[-2:]:
        return False
    return before[-2:] == after[-2:]


def _is_ones(unit: Unit, value: Value | None, depth: int) -> bool:
    array = unit.array(value)
    if array is not None:
        return bool((array == 1).all())
    node = producer(value, "ConstantOfShape", "Expand", "Cast") if depth else None
    if node is None:
        return False
    if node.op_type != "ConstantOfShape":
        return _is_ones(unit, node.inputs[0], depth - 1)
    fill = node.attributes.get("value")
    return fill is not None and not fill.reference and bool((fill.value.numpy() == 1).all())


def _compares(unit: Unit, columns: Value | None, rows: Value | None) -> bool:
    """True for 0, 1, 2 ... along the last axis, and along the one before it."""
    return _counts(unit, columns, 1) and _counts(unit, rows, 2)


def _counts(unit: Unit, value: Value | None, place: int) -> bool:
    """True for 0, 1, 2 ... along an axis counted from behind, while all others have the size 1."""
    shape = unit.shape(value)
    if value is None or shape is None or len(shape) < place:
        return False
    if any(size != 1 for axis, size in enumerate(shape) if axis != len(shape) - place):
        return False
    array = unit.array(value)
    if array is not None:
        return bool((array.reshape(-1) == np.arange(array.size)).all())
    node = producer(value, "Range", *_SHAPED)
    while node is not None and node.op_type != "Range":
        node = producer(node.inputs[0], "Range", "Unsqueeze", "Reshape", "Squeeze")
    if node is None:
        return False
    first, step = (constant_number(unit, node.inputs[index]) for index in (0, 2))
    return first == 0 and step == 1
