# mypy: disable-error-code="misc"
"""QuantizeLinear(DequantizeLinear(q)) with the same scale -> q; the like around Reshape."""

from typing import Any

import numpy as np

from sardonyx.graph import Node, Value
from sardonyx.passes.operand import Operand
from sardonyx.passes.rules import Rule, apply_rules, because
from sardonyx.passes.unit import Unit


class CancelRequantization(Rule):
    """QuantizeLinear(DequantizeLinear(q, s, z), s, z) -> q."""

    shared = True
    since = 10

    def pattern(op: Any, q: Any, s: Any, t: Any, z: Any = None, y: Any = None) -> Any:
        inner = op.DequantizeLinear(q, s, z).named("inner")
        return op.QuantizeLinear(inner, t, y).named("outer")

    def check(q: Operand, inner: Node, outer: Node, unit: Unit) -> Any:
        if len(inner.inputs) != len(outer.inputs):
            return because("only one has a zero point")
        pairs = zip(inner.inputs[1:], outer.inputs[1:], strict=True)
        if not all(_same(unit, left, right) for left, right in pairs):
            return because("scales or zero points differ")
        left = {name: item.value for name, item in inner.attributes.items()}
        right = {name: item.value for name, item in outer.attributes.items()}
        right.pop("saturate", None)
        right.pop("output_dtype", None)
        if left != right:
            return because("the axes differ")
        kind = q.dtype
        return (kind is not None and kind == unit.dtype(outer.output)) or because("types differ")

    def replace(q: Operand) -> Any:
        return q


def _same(unit: Unit, left: Value | None, right: Value | None) -> bool:
    if left is right:
        return True
    a, b = unit.array(left), unit.array(right)
    return a is not None and b is not None and a.dtype == b.dtype and np.array_equal(a, b)


class DropRectifier(Rule):
    """QuantizeLinear(Relu(x), s, z) -> QuantizeLinear(x, s, z), when z is the lowest number."""

    since = 10

    def pattern(op: Any, x: Any, s: Any, z: Any) -> Any:
        return op.QuantizeLinear(op.Relu(x), s, z).named("node")

    def check(s: Operand, z: Operand) -> Any:
        if not z.constant or not s.constant or z.array.dtype.kind not in "iu":
            return because("the zero point is not constant")
        lowest = np.iinfo(z.array.dtype).min
        positive = (s.array.astype(np.float64) > 0).all()
        return (positive and (z.array == lowest).all()) or because("numbers below zero are kept")

    def replace(op: Any, x: Operand, s: Operand, z: Operand, node: Node) -> Any:
        return op.QuantizeLinear(x, s, z, **dict(node.attributes))


def clean_quantization(unit: Unit) -> bool:
    """Drop pairs of quantization that undo each other, and what quantization does itself."""
    return bool(apply_rules(unit, CancelRequantization, DropRectifier))
