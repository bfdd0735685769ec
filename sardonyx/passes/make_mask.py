"""Masks of attention that was written out -> the one that Attention takes."""

from dataclasses import replace
from typing import Any

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.graph import Value
from sardonyx.passes.read_scores import Addend, constant_number, lowest_number
from sardonyx.passes.rules import RuleBuilder
from sardonyx.passes.unit import Unit, producer

Mask = Addend


def read_mask(unit: Unit, addend: Addend) -> Mask:
    """Where(c, 0, -infinity) that is added -> the condition c; anything else stays as it is."""
    node = producer(addend.value, "Where") if addend.fill is None else None
    if node is None or node.inputs[0] is None:
        return addend
    for place in (1, 2):
        fill = lowest_number(unit, node.inputs[3 - place])
        if fill == -np.inf and constant_number(unit, node.inputs[place]) == 0:
            return replace(addend, value=node.inputs[0], fill=fill, keeps=place == 1)
    return addend


def make_mask(
    op: RuleBuilder, unit: Unit, masks: tuple[Mask, ...], query: Value, keys: Value
) -> Value | None:
    """The sum of masks, or the condition that is the only one, as wide as the scores."""
    if not masks:
        return None
    element = unit.dtype(query)
    assert element is not None
    flat = [_without_windows(op, unit, mask, query) for mask in masks]
    if len(flat) == 1 and flat[0].fill == -np.inf:
        made = flat[0].value if flat[0].keeps else op.Not(flat[0].value)
    else:
        made, *rest = (_added(op, mask, element) for mask in flat)
        for item in rest:
            made = op.Add(made, item)
    return _widened(op, unit, made, masks, query, keys)


def _without_windows(op: RuleBuilder, unit: Unit, mask: Mask, query: Value) -> Mask:
    """A mask for each window -> the same for each batch of windows, [b*w, h, n, m]."""
    windows, shape = mask.windows, unit.shape(mask.value)
    if windows is None or shape is None:
        return mask
    value, inner = mask.value, [1, 1, 1, *shape][-3:]
    whole = (1, 1, *shape)[-5:-3]
    if whole != windows[:2]:
        if isinstance(windows[0], int) and isinstance(windows[1], int):
            value = op.Expand(value, np.array([*windows[:2], 1, 1, 1]))
        else:
            count = np.array([windows[1], 1, 1, 1])
            source = _with_batches(unit, query)
            batches = op.Div(op.Shape(source, start=0, end=1), count[:1])
            value = op.Expand(value, op.Concat(batches, count, axis=0))
    return replace(mask, value=op.Reshape(value, np.array([-1, *inner])), windows=None)


def _with_batches(unit: Unit, query: Value) -> Value:
    """The value farthest before queries that has as many batches."""
    batches = (unit.shape(query) or (None,))[:1]
    while batches != (None,) and (node := query.producer):
        same = [
            value for value in node.inputs if value and (unit.shape(value) or ())[:1] == batches
        ]
        if not same:
            break
        query = same[0]
    return query


def _added(op: RuleBuilder, mask: Mask, element: DataType) -> Any:
    if mask.fill is None:
        return mask.value
    zero, fill = (np.array(number, element.numpy) for number in (0.0, mask.fill))
    return op.Where(mask.value, *((zero, fill) if mask.keeps else (fill, zero)))


def _widened(
    op: RuleBuilder, unit: Unit, made: Value, masks: tuple[Mask, ...], query: Value, keys: Value
) -> Value:
    """Spread a mask over queries and keys, where it is the same for all: runtimes want it whole."""
    shapes = [unit.shape(mask.value) or () for mask in masks]
    rows, columns = unit.shape(query), unit.shape(keys)
    assert rows is not None and columns is not None
    full = rows[2], columns[3]
    whole = [
        any(len(shape) >= place and shape[-place] == size for shape in shapes)
        for place, size in ((2, full[0]), (1, full[1]))
    ]
    if all(whole):
        return made
    if all(isinstance(size, int) for size in full):
        return op.Expand(made, np.array(full, np.int64))  # type: ignore[no-any-return]
    sizes = op.Shape(query, start=2, end=3), op.Shape(keys, start=3, end=4)
    return op.Expand(made, op.Concat(*sizes, axis=0))  # type: ignore[no-any-return]
