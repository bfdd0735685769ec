"""LSTM(x, w, r, b, l, zeros, zeros) -> LSTM(x, w, r, b, l): states begin with zeros anyway."""

from sardonyx.graph import Value
from sardonyx.passes.unit import Unit, is_operator, producer

_STATES = {"RNN": (5,), "GRU": (5,), "LSTM": (5, 6)}
"""Where the first states stand among the inputs of recurrent operators."""

_MOVES = ("Expand", "Slice", "Reshape", "Squeeze", "Unsqueeze", "Transpose")
"""Operators that only take elements of their first input to other places."""


def drop_states(unit: Unit) -> bool:
    """Leave out the first states of recurrent operators that are all zero."""
    changed = False
    for node in unit.nodes():
        if not is_operator(node, *_STATES):
            continue
        inputs = list(node.inputs)
        for place in _STATES[node.op_type]:
            if place < len(inputs) and _is_zero(unit, inputs[place]):
                inputs[place] = None
        while inputs and inputs[-1] is None:
            inputs.pop()
        if tuple(inputs) != tuple(node.inputs):
            node.set_inputs(inputs)
            changed = True
    return changed


def _is_zero(unit: Unit, value: Value | None) -> bool:
    """True where every element is known to be zero, whatever the size."""
    if value is None:
        return False
    maker = producer(value, "ConstantOfShape", *_MOVES)
    if maker is None:
        array = unit.array(value)
        return array is not None and not array.any()
    if maker.op_type in _MOVES:
        return _is_zero(unit, maker.inputs[0])
    fill = maker.attributes.get("value")
    if fill is None:
        return True
    return not fill.reference and not fill.value.numpy().any()
