# mypy: disable-error-code="misc"
"""(x - mean) / sqrt(variance + e) * g + b -> LayerNormalization(x, g, b); RMSNormalization too."""

import math
from typing import Any

import numpy as np

from sardonyx.graph import Node
from sardonyx.passes.operand import Operand
from sardonyx.passes.rules import Rule, apply_rules, because
from sardonyx.passes.unit import Unit, refers


def _last_axes(x: Operand, unit: Unit, *nodes: Node) -> int | None:
    """The first of the axes that means are taken over, counted from behind, if they are the last.

    None where nodes differ in their axes, or do not keep them.
    """
    found: set[int] = set()
    for node in nodes:
        axes = unit.integers(node, "axes")
        if axes is None or x.rank is None or not node.attribute("keepdims", 1) or refers(node):
            return None
        places = sorted(axis % x.rank for axis in axes)
        if places != list(range(x.rank - len(places), x.rank)):
            return None
        found.add(-len(places))
    return found.pop() if len(found) == 1 else None


def _fits(part: Operand, x: Operand, axis: int) -> bool:
    """True for one element for each normalized place."""
    shape = part.shape
    return shape is not None and x.shape is not None and shape == x.shape[axis:]


def _check_layer(
    x: Operand, g: Operand, b: Operand, e: Operand, mean: Node, variance: Node, unit: Unit
) -> Any:
    axis = _last_axes(x, unit, mean, variance)
    if axis is None:
        return because("means are not taken over the same last axes")
    if e.scalar is None:
        return because("the small number is not constant")
    fits = _fits(g, x, axis) and _fits(b, x, axis)
    return fits or because("scale and shift are not one for each normalized place")


def _layer(op: Any, x: Operand, g: Operand, b: Operand, e: Operand, mean: Node, unit: Unit) -> Any:
    axis = _last_axes(x, unit, mean)
    return op.LayerNormalization(x, g, b, axis=axis, epsilon=float(e.scalar))


class RaiseLayer(Rule):
    """Add(Mul(Div(d, Sqrt(Add(ReduceMean(d^2), e))), g), b), d = x - mean -> LayerNormalization."""

    since = 17

    def pattern(op: Any, x: Any, g: Any, b: Any, e: Any, r: Any = None, s: Any = None) -> Any:
        d = op.Sub(x, op.ReduceMean(x, r).named("mean"))
        variance = op.ReduceMean(op.Pow(d, 2.0), s).named("variance")
        return op.Add(op.Mul(op.Div(d, op.Sqrt(op.Add(variance, e))), g), b)

    check = _check_layer
    replace = _layer


class RaiseLayerProduct(Rule):
    """The same with d*d for the square."""

    since = 17

    def pattern(op: Any, x: Any, g: Any, b: Any, e: Any, r: Any = None, s: Any = None) -> Any:
        d = op.Sub(x, op.ReduceMean(x, r).named("mean"))
        variance = op.ReduceMean(op.Mul(d, d), s).named("variance")
        return op.Add(op.Mul(op.Div(d, op.Sqrt(op.Add(variance, e))), g), b)

    check = _check_layer
    replace = _layer


class RaiseLayerScaled(Rule):
    """The same with d * (g / sqrt(...))."""

    since = 17

    def pattern(op: Any, x: Any, g: Any, b: Any, e: Any, r: Any = None, s: Any = None) -> Any:
        d = op.Sub(x, op.ReduceMean(x, r).named("mean"))
        variance = op.ReduceMean(op.Mul(d, d), s).named("variance")
        return op.Add(op.Mul(d, op.Div(g, op.Sqrt(op.Add(variance, e)))), b)

    check = _check_layer
    replace = _layer


def _is_square(node: Node, unit: Unit) -> bool:
    """True for Mul(x, x) and Pow(x, 2)."""
    if node.op_type == "Mul":
        return node.inputs[0] is node.inputs[1]
    power = unit.array(node.inputs[1])
    return power is not None and power.size == 1 and power.reshape(-1)[0] == 2


def _has_room(x: Operand, axis: int, unit: Unit) -> Any:
    """Whether a scale for the last axes can be made: their sizes are known, and not too large."""
    assert x.dtype is not None and x.shape is not None
    sizes = [size for size in x.shape[axis:] if isinstance(size, int)]
    if len(sizes) < -axis:
        return because("a size is not known")
    small = math.prod(sizes) * x.dtype.numpy.itemsize <= unit.options.fold_limit
    return small or because("its scale would be too large a constant")


def _ones(x: Operand, axis: int | None) -> Any:
    """A scale that changes nothing."""
    assert x.dtype is not None and x.shape is not None
    sizes = [size for size in x.shape[axis:] if isinstance(size, int)]
    return np.ones(sizes, x.dtype.numpy)


class RaisePlainLayer(Rule):
    """Div(d, Sqrt(Add(ReduceMean(d^2), e))), d = x - mean -> LayerNormalization of scale 1."""

    since = 17

    def pattern(op: Any, x: Any, e: Any, two: Any, r: Any = None, s: Any = None) -> Any:
        d = op.Sub(x, op.ReduceMean(x, r).named("mean"))
        variance = op.ReduceMean(op.either("Mul", "Pow")(d, two).named("square"), s)
        return op.Div(d, op.Sqrt(op.Add(variance.named("variance"), e)))

    def check(x: Operand, e: Operand, mean: Node, variance: Node, square: Node, unit: Unit) -> Any:
        axis = _last_axes(x, unit, mean, variance)
        if axis is None or x.shape is None:
            return because("means are not taken over the same last axes")
        if e.scalar is None or x.dtype is None:
            return because("the small number is not constant")
        if not _is_square(square, unit):
            return because("it is not the square that is averaged")
        return _has_room(x, axis, unit)

    def replace(op: Any, x: Operand, e: Operand, mean: Node, unit: Unit) -> Any:
        axis = _last_axes(x, unit, mean)
        return op.LayerNormalization(x, _ones(x, axis), axis=axis, epsilon=float(e.scalar))


def _check_square(x: Operand, g: Operand, e: Operand, mean: Node, square: Node, unit: Unit) -> Any:
    axis = _last_axes(x, unit, mean)
    if not _is_square(square, unit):
        return because("it is not the square that is averaged")
    if axis is None:
        return because("the mean is not taken over the last axes")
    if e.scalar is None:
        return because("the small number is not constant")
    return _fits(g, x, axis) or because("the scale is not one for each normalized place")


def _square(op: Any, x: Operand, g: Operand, e: Operand, mean: Node, unit: Unit) -> Any:
    axis = _last_axes(x, unit, mean)
    return op.RMSNormalization(x, g, axis=axis, epsilon=float(e.scalar))


class RaiseSquare(Rule):
    """Mul(Div(x, Sqrt(Add(ReduceMean(Pow(x, 2)), e))), g) -> RMSNormalization(x, g)."""

    since = 23

    def pattern(op: Any, x: Any, g: Any, e: Any, two: Any, r: Any = None) -> Any:
        square = op.either("Mul", "Pow")(x, two).named("square")
        mean = op.ReduceMean(square, r).named("mean")
        return op.Mul(op.Div(x, op.Sqrt(op.Add(mean, e))), g)

    check = _check_square
    replace = _square


class RaiseSquareReciprocal(Rule):
    """Mul(Mul(x, Reciprocal(Sqrt(...))), g) -> RMSNormalization(x, g)."""

    since = 23

    def pattern(op: Any, x: Any, g: Any, e: Any, two: Any, r: Any = None) -> Any:
        square = op.either("Mul", "Pow")(x, two).named("square")
        mean = op.ReduceMean(square, r).named("mean")
        return op.Mul(op.Mul(x, op.Reciprocal(op.Sqrt(op.Add(mean, e)))), g)

    check = _check_square
    replace = _square


class RaisePlainSquare(Rule):
    """Div(x, Sqrt(Add(ReduceMean(Pow(x, 2)), e))) -> RMSNormalization of scale 1."""

    since = 23

    def pattern(op: Any, x: Any, e: Any, two: Any, r: Any = None) -> Any:
        square = op.either("Mul", "Pow")(x, two).named("square")
        return op.Div(x, op.Sqrt(op.Add(op.ReduceMean(square, r).named("mean"), e)))

    def check(x: Operand, e: Operand, mean: Node, square: Node, unit: Unit) -> Any:
        axis = _last_axes(x, unit, mean)
        if axis is None or x.shape is None:
            return because("the mean is not taken over the last axes")
        if e.scalar is None or x.dtype is None:
            return because("the small number is not constant")
        if not _is_square(square, unit):
            return because("it is not the square that is averaged")
        return _has_room(x, axis, unit)

    def replace(op: Any, x: Operand, e: Operand, mean: Node, unit: Unit) -> Any:
        axis = _last_axes(x, unit, mean)
        return op.RMSNormalization(x, _ones(x, axis), axis=axis, epsilon=float(e.scalar))


def raise_normalization(unit: Unit) -> bool:
    """Find normalizations that were written out, where the opset has them whole."""
    layers = apply_rules(unit, RaiseLayer, RaiseLayerProduct, RaiseLayerScaled)
    layers += apply_rules(unit, RaisePlainLayer)
    layers += apply_rules(unit, RaiseSquare, RaiseSquareReciprocal)
    return bool(layers + apply_rules(unit, RaisePlainSquare))
