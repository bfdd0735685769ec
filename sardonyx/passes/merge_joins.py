# mypy: disable-error-code="misc"
"""Concat(Concat(a, b), c) -> Concat(a, b, c); Slice(Slice(x)) -> Slice(x)."""

from typing import Any

import numpy as np

from sardonyx.graph import Node, Value
from sardonyx.passes.operand import Operand
from sardonyx.passes.rules import Rule, apply_rules, because
from sardonyx.passes.unit import UNKNOWN, Unit, drop_unused, is_operator, producer, record_origin

_END = 2**62
"""Slice bounds beyond this reach to the end, whatever the size."""


class MergeSlices(Rule):
    """Slice(Slice(x, axis a), axis b) -> Slice(x, axes a and b), for different axes and step 1."""

    since = 10

    def pattern(op: Any, x: Any, s: Any, e: Any, t: Any, f: Any, a: Any, b: Any,
                g: Any = None, h: Any = None) -> Any:  # fmt: skip
        return op.Slice(op.Slice(x, s, e, a, g), t, f, b, h)

    def check(
        s: Operand, e: Operand, a: Operand, t: Operand, f: Operand, b: Operand,
        g: Operand | None, h: Operand | None,
    ) -> Any:  # fmt: skip
        given = [item for item in (s, e, a, t, f, b, g, h) if item is not None]
        if not all(item.constant for item in given):
            return because("a bound is not constant")
        if min(*a.array, *b.array, 0) < 0 or set(a.array) & set(b.array):
            return because("an axis is cut twice")
        return True

    def replace(
        op: Any, x: Operand, s: Operand, e: Operand, a: Operand, t: Operand, f: Operand,
        b: Operand, g: Operand | None, h: Operand | None,
    ) -> Any:  # fmt: skip
        def joined(first: Operand, second: Operand) -> Any:
            return np.concatenate([first.array, second.array]).astype(np.int64)

        steps = np.concatenate([
            np.ones_like(s.array) if g is None else g.array,
            np.ones_like(t.array) if h is None else h.array,
        ]).astype(np.int64)  # fmt: skip
        plain = None if (steps == 1).all() else steps
        return op.Slice(x, joined(s, t), joined(e, f), joined(a, b), plain)


def merge_joins(unit: Unit) -> bool:
    """Join Concats and Slices that follow one another, and parts that a Split has cut."""
    changed = bool(apply_rules(unit, MergeSlices))
    for node in list(unit.nodes()):
        if node.graph is not None and is_operator(node, "Concat"):
            changed |= _flatten(unit, node) | _rejoin(unit, node)
    return changed


def _flatten(unit: Unit, node: Node) -> bool:
    axis, rank = node.attribute("axis"), unit.fact(node.output).rank
    inputs: list[Value | None] = []
    inner: list[Node] = []
    for value in node.inputs:
        maker = producer(value, "Concat")
        alone = maker is not None and maker.graph is node.graph and len(maker.output.uses) == 1
        if maker is not None and alone and _same_axis(maker.attribute("axis"), axis, rank):
            inputs += maker.inputs
            inner.append(maker)
            continue
        inputs.append(value)
    if not inner:
        return False
    record_origin(unit, [node], [node, *inner])
    node.set_inputs(inputs)
    drop_unused(inner)
    return True


def _same_axis(left: Any, right: Any, rank: int | None) -> bool:
    if left == right or rank is None:
        return bool(left == right and left is not None)
    return left is not None and right is not None and left % rank == right % rank


def _rejoin(unit: Unit, node: Node) -> bool:
    """Concat of all parts of a Split in order is what was split."""
    first = producer(node.inputs[0], "Split")
    if first is None or first.outputs != node.inputs:
        return False
    rank = unit.fact(node.output).rank
    if unit.parameter(first, "split") is UNKNOWN:
        return False
    source = first.inputs[0]
    if source is None or not _same_axis(first.attribute("axis", 0), node.attribute("axis"), rank):
        return False
    return unit.substitute(node.output, source)
