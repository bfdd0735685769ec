"""Identity(x), Cast(x) to its own type, Add(x, 0), Transpose(x) that moves nothing ... -> x."""

from collections.abc import Callable
from typing import Any

import numpy as np

from sardonyx.graph import Node, Value
from sardonyx.passes.fold_shapes import list_is_told
from sardonyx.passes.unit import UNKNOWN, Unit, drop_unused, refers

Test = Callable[[Unit, Node], Value | None]
"""Gives the input that a node hands on unchanged, if it does."""


def drop_identities(unit: Unit) -> bool:
    """Take out nodes that hand on one of their inputs unchanged."""
    changed = False
    for node in list(unit.nodes()):
        test = _TESTS.get(node.op_type)
        if test is None or node.graph is None or node.domain not in ("", "ai.onnx"):
            continue
        if refers(node) or any(value.uses for value in node.outputs[1:]):
            continue
        same = test(unit, node)
        if same is None:
            continue
        if unit.substitute(node.output, same):
            changed = True
        changed |= bool(drop_unused([node])) or node.graph is None
    return changed


def _first(unit: Unit, node: Node) -> Value | None:
    return node.inputs[0]


def _same_shape(unit: Unit, node: Node) -> Value | None:
    """For operators that only lay out their input anew: equal shapes are equal values."""
    before, after = unit.shape(node.inputs[0]), unit.shape(node.output)
    if before is None or after is None or None in before or before != after:
        return None
    return node.inputs[0] if list_is_told(unit, node) else None


def _dropout(unit: Unit, node: Node) -> Value | None:
    if unit.opset < 7:
        return node.inputs[0] if node.attribute("is_test", 0) else None
    if unit.opset < 12 or len(node.inputs) < 3 or node.inputs[2] is None:
        return node.inputs[0]
    training = unit.array(node.inputs[2])
    return node.inputs[0] if training is not None and not training.any() else None


def _cast(unit: Unit, node: Node) -> Value | None:
    before, after = unit.dtype(node.inputs[0]), unit.dtype(node.output)
    return node.inputs[0] if before is not None and before == after else None


def _slice(unit: Unit, node: Node) -> Value | None:
    steps = unit.parameter(node, "steps", (1,))
    if steps is UNKNOWN or any(int(step) < 0 for step in np.asarray(steps).reshape(-1)):
        return None
    return _same_shape(unit, node)


def _pad(unit: Unit, node: Node) -> Value | None:
    pads = unit.parameter(node, "paddings" if unit.opset < 2 else "pads")
    if pads is None or pads is UNKNOWN or any(np.asarray(pads).reshape(-1)):
        return None
    return node.inputs[0]


def _transpose(unit: Unit, node: Node) -> Value | None:
    shape = unit.shape(node.inputs[0])
    perm = node.attribute("perm")
    if perm is None:
        return node.inputs[0] if shape is not None and len(shape) <= 1 else None
    return node.inputs[0] if tuple(perm) == tuple(range(len(perm))) else None


def _only(unit: Unit, node: Node) -> Value | None:
    return node.inputs[0] if len(node.inputs) == 1 else None


def _split(unit: Unit, node: Node) -> Value | None:
    return _same_shape(unit, node) if len(node.outputs) == 1 else None


def _clip(unit: Unit, node: Node) -> Value | None:
    bounded = any(value is not None for value in node.inputs[1:]) or node.attributes
    return None if bounded else node.inputs[0]


def _reduce(unit: Unit, node: Node) -> Value | None:
    return _same_shape(unit, node) if unit.parameter(node, "keepdims") == 1 else None


def _neutral(number: Any, *, both: bool) -> Test:
    """For operators with a neutral element, on the right or on both sides."""

    def test(unit: Unit, node: Node) -> Value | None:
        if unit.opset < 7 or len(node.inputs) != 2:
            return None
        for other, position in ((1, 0), (0, 1))[: 2 if both else 1]:
            array = unit.array(node.inputs[other])
            if array is None or array.dtype == object or array.size == 0:
                continue
            value = node.inputs[position]
            if (array == number).all() and _keeps_shape(unit, node, value, array):
                return value
        return None

    return test


def _keeps_shape(unit: Unit, node: Node, value: Value | None, array: Any) -> bool:
    """True where broadcasting with `array` leaves a value's shape and type as they are."""
    shape = unit.shape(value)
    own = unit.dtype(value)
    if own is None and not unit.is_function:
        return False
    if unit.dtype(node.output) not in (None, own):
        return False
    if array.size == 1:
        return array.ndim == 0 or (shape is not None and array.ndim <= len(shape))
    return shape is not None and None not in shape and shape == unit.shape(node.output)


def _where(unit: Unit, node: Node) -> Value | None:
    condition = unit.array(node.inputs[0])
    if condition is None or condition.size == 0 or condition.any() != condition.all():
        return None
    chosen = node.inputs[1] if condition.all() else node.inputs[2]
    shape = unit.shape(chosen)
    known = shape is not None and None not in shape and shape == unit.shape(node.output)
    return chosen if known else None


def _resize(unit: Unit, node: Node) -> Value | None:
    """Resize by scales of 1 with every pixel where it was."""
    scales = unit.parameter(node, "scales")
    if scales is None or scales is UNKNOWN or not np.size(scales):
        return None
    mode = node.attribute("coordinate_transformation_mode", "half_pixel")
    if mode == "tf_crop_and_resize" or node.attribute("antialias", 0):
        return None
    return node.inputs[0] if (np.asarray(scales) == 1).all() else None


def _cast_like(unit: Unit, node: Node) -> Value | None:
    kinds = {unit.dtype(value) for value in node.inputs}
    return node.inputs[0] if len(kinds) == 1 and kinds != {None} else None


_TESTS: dict[str, Test] = {
    "Identity": _first,
    "Dropout": _dropout,
    "Cast": _cast,
    "CastLike": _cast_like,
    "Reshape": _same_shape,
    "Flatten": _same_shape,
    "Squeeze": _same_shape,
    "Unsqueeze": _same_shape,
    "Expand": _same_shape,
    "Tile": _same_shape,
    "Slice": _slice,
    "Pad": _pad,
    "Transpose": _transpose,
    "Concat": _only,
    "Sum": _only,
    "Max": _only,
    "Min": _only,
    "Mean": _only,
    "Split": _split,
    "Clip": _clip,
    "Resize": _resize,
    "Upsample": _resize,
    "ReduceSum": _reduce,
    "ReduceMean": _reduce,
    "ReduceMax": _reduce,
    "ReduceMin": _reduce,
    "ReduceProd": _reduce,
    "Add": _neutral(0, both=True),
    "Sub": _neutral(0, both=False),
    "Mul": _neutral(1, both=True),
    "Div": _neutral(1, both=False),
    "Pow": _neutral(1, both=False),
    "And": _neutral(True, both=True),
    "Or": _neutral(False, both=True),
    "Xor": _neutral(False, both=True),
    "BitwiseOr": _neutral(0, both=True),
    "BitwiseXor": _neutral(0, both=True),
    "BitShift": _neutral(0, both=False),
    "Where": _where,
}
"""By operator: whether a node hands on an input."""
