# mypy: disable-error-code="misc"
"""Normalization of groups of channels through a Reshape -> GroupNormalization(x, g, b)."""

from typing import Any

import numpy as np

from sardonyx.graph import Node
from sardonyx.passes.operand import Operand
from sardonyx.passes.rules import Rule, apply_rules, because
from sardonyx.passes.unit import Unit


def _per_channel(part: Operand, x: Operand) -> bool:
    """True for constants of shape [channels, 1, 1 ...]."""
    if not part.constant or x.shape is None:
        return False
    flat = (x.shape[1], *[1] * (len(x.shape) - 2))
    return part.array.shape in (flat, (1, *flat))


class RaiseGroups(Rule):
    """Reshape(InstanceNormalization(Reshape(x), 1, 0)) * g + b -> GroupNormalization(x, g, b)."""

    since = 21

    def pattern(op: Any, x: Any, s: Any, t: Any, one: Any, zero: Any, g: Any, b: Any) -> Any:
        grouped = op.Reshape(x, s).named("grouped")
        norm = op.InstanceNormalization(grouped, one, zero).named("norm")
        return op.Add(op.Mul(op.Reshape(norm, t).named("back"), g), b)

    def check(
        x: Operand, one: Operand, zero: Operand, g: Operand, b: Operand, grouped: Node, back: Node,
        unit: Unit,
    ) -> Any:  # fmt: skip
        shape, inner = x.shape, unit.shape(grouped.output)
        if shape is None or inner is None or len(inner) != 3 or len(shape) < 3:
            return because("a shape is not known, or not one of groups")
        if shape != unit.shape(back.output) or None in shape or shape[0] != inner[0]:
            return because("the shape does not come back")
        channels, groups = shape[1], inner[1]
        if not isinstance(channels, int) or not isinstance(groups, int) or channels % groups:
            return because("the channels do not fall into groups")
        if not one.constant or not zero.constant or (one.array != 1).any() or zero.array.any():
            return because("groups are scaled too")
        fits = _per_channel(g, x) and _per_channel(b, x)
        return fits or because("scale and shift are not one for each channel")

    def replace(
        op: Any, x: Operand, g: Operand, b: Operand, grouped: Node, norm: Node, unit: Unit
    ) -> Any:
        shape = unit.shape(grouped.output)
        assert shape is not None
        scale, shift = (np.ascontiguousarray(item.array.reshape(-1)) for item in (g, b))
        epsilon = norm.attribute("epsilon", 1e-5)
        return op.GroupNormalization(x, scale, shift, num_groups=shape[1], epsilon=epsilon)


def raise_groups(unit: Unit) -> bool:
    """Find normalizations of groups that were written out, where the opset has them whole."""
    return bool(apply_rules(unit, RaiseGroups))
