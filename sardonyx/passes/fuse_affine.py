# mypy: disable-error-code="misc"
"""Mul(BatchNormalization(x), s), x*2*3, -(-x), relu(relu(x)) ... -> one node, or none."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sardonyx.graph import Node
from sardonyx.passes.fuse_convolution import attributes_of, channel_vector, scale_and_shift
from sardonyx.passes.operand import Operand
from sardonyx.passes.rules import Rule, apply_rules, because
from sardonyx.passes.unit import Unit

Array = NDArray[Any]


class ScaleNormalization(Rule):
    """Mul(BatchNormalization(x, g, b, m, v), s) -> BatchNormalization(x, g*s, b*s, m, v)."""

    def pattern(op: Any, x: Any, g: Any, b: Any, m: Any, v: Any, s: Any) -> Any:
        norm = op.BatchNormalization(x, g, b, m, v).named("norm")
        return op.either("Mul", "Add")(norm, s).named("after")

    def check(x: Operand, g: Operand, b: Operand, s: Operand, norm: Node, unit: Unit) -> Any:
        if scale_and_shift(norm, unit) is None:
            return because("it is not a constant scale and shift")
        if not s.constant or x.rank is None:
            return because("the second operand is not constant")
        fits = channel_vector(s, g.array.size, x.rank) is not None
        return fits or because("the second operand is not per channel")

    def replace(
        op: Any, x: Operand, g: Operand, b: Operand, m: Operand, v: Operand, s: Operand,
        norm: Node, after: Node,
    ) -> Any:  # fmt: skip
        vector = channel_vector(s, g.array.size, x.rank or 0)
        if vector is None:
            return None
        gain: Any = g
        bias = b.array + vector
        if after.op_type == "Mul":
            gain, bias = (g.array * vector).astype(g.array.dtype), b.array * vector
        shift = bias.astype(b.array.dtype)
        return op.BatchNormalization(x, gain, shift, m, v, **attributes_of(norm))


def _both_constant(a: Operand, b: Operand) -> Any:
    if not a.constant or not b.constant:
        return because("a factor is not constant")
    small = a.array.size == 1 or b.array.size == 1 or a.array.shape == b.array.shape
    return small or because("the constants would grow together")


class MergeFactors(Rule):
    """Mul(Mul(x, a), b) -> Mul(x, a*b), for constants; Add likewise."""

    def pattern(op: Any, x: Any, a: Any, b: Any) -> Any:
        return op.Mul(op.Mul(x, a), b)

    def check(x: Operand, a: Operand, b: Operand) -> Any:
        if x.constant:
            return because("all is constant")
        if a.constant and a.array.dtype.kind not in "fiu":
            return because("the type has its own rules of rounding")
        return _both_constant(a, b)

    def replace(op: Any, x: Operand, a: Operand, b: Operand) -> Any:
        product = _safe(a.array, b.array, np.multiply)
        return None if product is None else op.Mul(x, product)


class MergeAddends(Rule):
    """Add(Add(x, a), b) -> Add(x, a+b), for constants."""

    def pattern(op: Any, x: Any, a: Any, b: Any) -> Any:
        return op.Add(op.Add(x, a), b)

    def check(x: Operand, a: Operand, b: Operand) -> Any:
        return because("all is constant") if x.constant else _both_constant(a, b)

    def replace(op: Any, x: Operand, a: Operand, b: Operand) -> Any:
        total = _safe(a.array, b.array, np.add)
        return None if total is None else op.Add(x, total)


def _safe(a: Array, b: Array, step: Any) -> Array | None:
    """Two constants joined; None where that overflows or goes to zero."""
    with np.errstate(all="ignore"):
        joined: Array = np.asarray(step(a, b)).astype(a.dtype)
    if a.dtype.kind != "f":
        return joined
    lost = ~np.isfinite(joined) | ((joined == 0) & (step is np.multiply))
    return None if lost.any() else joined


class DivideByMultiplying(Rule):
    """Div(Mul(x, a), b) and Mul(Div(x, a), b) -> Mul(x, a/b or b/a), for float constants."""

    def pattern(op: Any, x: Any, a: Any, b: Any) -> Any:
        return op.either("Div", "Mul")(op.either("Mul", "Div")(x, a).named("i"), b).named("o")

    def check(x: Operand, a: Operand, b: Operand, i: Node, o: Node) -> Any:
        if i.op_type == o.op_type == "Mul" or x.constant:
            return because("that is for another rule")
        if a.constant and a.array.dtype.kind != "f":
            return because("whole numbers are divided")
        return _both_constant(a, b)

    def replace(op: Any, x: Operand, a: Operand, b: Operand, i: Node, o: Node) -> Any:
        first, second = a.array.astype(np.float64), b.array.astype(np.float64)
        with np.errstate(all="ignore"):
            factor = 1 / first if i.op_type == "Div" else first
            factor = factor / second if o.op_type == "Div" else factor * second
        joined = np.asarray(factor).astype(a.array.dtype)
        if not np.isfinite(joined).all() or (joined == 0).any():
            return None
        return op.Mul(x, joined)


class UndoNegation(Rule):
    """Neg(Neg(x)) -> x; Not(Not(x)) likewise."""

    shared = True

    def pattern(op: Any, x: Any) -> Any:
        return op.either("Neg", "Not")(op.either("Neg", "Not")(x).named("i")).named("o")

    def check(i: Node, o: Node) -> Any:
        return i.op_type == o.op_type or because("the two differ")

    def replace(x: Operand) -> Any:
        return x


class AddNegation(Rule):
    """Add(x, Neg(y)) -> Sub(x, y)."""

    shared = True

    def pattern(op: Any, x: Any, y: Any) -> Any:
        return op.Add(x, op.Neg(y).named("minus"))

    def check(minus: Node) -> Any:
        return len(minus.output.uses) == 1 or because("the negation is used elsewhere")

    def replace(op: Any, x: Operand, y: Operand) -> Any:
        return op.Sub(x, y)


class DropRepeated(Rule):
    """Relu(Relu(x)) -> Relu(x), and the like for what done twice is done once."""

    shared = True

    def pattern(op: Any, x: Any) -> Any:
        names = ("Relu", "Abs", "Ceil", "Floor", "Round", "Sign")
        return op.either(*names)(op.either(*names)(x).named("i")).named("o")

    def check(i: Node, o: Node) -> Any:
        return i.op_type == o.op_type or because("the two differ")

    def replace(i: Node) -> Any:
        return i.output


class DivideBySquareRoot(Rule):
    """Mul(x, Reciprocal(y)) -> Div(x, y)."""

    def pattern(op: Any, x: Any, y: Any) -> Any:
        return op.Mul(x, op.Reciprocal(y))

    def replace(op: Any, x: Operand, y: Operand) -> Any:
        return op.Div(x, y)


class DivideByQuotient(Rule):
    """Mul(x, Div(1, y)) -> Div(x, y)."""

    def pattern(op: Any, x: Any, y: Any) -> Any:
        return op.Mul(x, op.Div(1.0, y))

    def check(x: Operand, y: Operand) -> Any:
        floats = x.dtype is not None and x.dtype.is_float
        return floats or because("whole numbers are divided")

    def replace(op: Any, x: Operand, y: Operand) -> Any:
        return op.Div(x, y)


class CenterNormalization(Rule):
    """x*g + (b - m*g) -> (x-m)*g + b, where x-m is computed anyway."""

    shared = True

    def pattern(op: Any, x: Any, m: Any, g: Any, b: Any) -> Any:
        return op.Add(op.Mul(x, g).named("p"), op.Sub(b, op.Mul(m, g).named("q")).named("r"))

    def check(x: Operand, m: Operand, p: Node, q: Node, r: Node, unit: Unit) -> Any:
        if any(len(node.output.uses) != 1 for node in (p, q, r)):
            return because("a part is used elsewhere")
        return _difference(x, m) is not None or because("the difference is not computed")

    def replace(op: Any, x: Operand, m: Operand, g: Operand, b: Operand) -> Any:
        return op.Add(op.Mul(_difference(x, m), g), b)


def _difference(x: Operand, m: Operand) -> Any:
    for user in x.value.users:
        if user.op_type == "Sub" and user.inputs == (x.value, m.value) and not user.domain:
            return user.output
    return None


def fuse_affine(unit: Unit) -> bool:
    """Join arithmetic with constants, and drop what undoes itself."""
    return bool(
        apply_rules(
            unit, ScaleNormalization, MergeFactors, MergeAddends, DivideByMultiplying,
            UndoNegation, AddNegation, DropRepeated, CenterNormalization,
            DivideBySquareRoot, DivideByQuotient,
        )
    )  # fmt: skip
