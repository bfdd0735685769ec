# mypy: disable-error-code="misc"
"""x * sigmoid(x), x * (1 + erf(x / sqrt 2)) / 2 ... -> Swish, Gelu, HardSwish, Mish."""

from typing import Any

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.graph import Node
from sardonyx.passes.operand import Operand
from sardonyx.passes.rules import Rule, apply_rules, because
from sardonyx.passes.unit import UNKNOWN, Unit

_ROOT, _RATIO, _CUBE = 2**0.5, (2 / np.pi) ** 0.5, 0.044715
_FLOATS = (DataType.FLOAT, DataType.FLOAT16, DataType.DOUBLE)


def _float(x: Operand) -> Any:
    return x.dtype in _FLOATS or because("the type is no float that every runtime takes")


def _erf(op: Any, x: Any, *, divide: bool) -> Any:
    return op.Add(op.Erf(op.Div(x, _ROOT) if divide else op.Mul(x, 1 / _ROOT)), 1.0)


def _tanh(op: Any, x: Any) -> Any:
    inner = op.Add(x, op.Mul(op.Pow(x, 3.0), _CUBE))
    return op.Add(op.Tanh(op.Mul(inner, _RATIO)), 1.0)


def _tanh_product(op: Any, x: Any) -> Any:
    inner = op.Add(x, op.Mul(op.Mul(op.Mul(x, x), x), _CUBE))
    return op.Add(op.Tanh(op.Mul(inner, _RATIO)), 1.0)


def _outside(op: Any, x: Any, part: Any) -> Any:
    return op.Mul(op.Mul(x, part), 0.5)


def _inside(op: Any, x: Any, part: Any) -> Any:
    return op.Mul(x, op.Mul(part, 0.5))


def _before(op: Any, x: Any, part: Any) -> Any:
    return op.Mul(op.Mul(x, 0.5), part)


def _gelu_rules() -> list[type[Rule]]:
    """A rule for each of the ways in which Gelu is written out."""
    parts = {
        "Divided": (lambda op, x: _erf(op, x, divide=True), None),
        "Multiplied": (lambda op, x: _erf(op, x, divide=False), None),
        "Tanh": (_tanh, "tanh"),
        "TanhProduct": (_tanh_product, "tanh"),
    }
    orders = {"Outside": _outside, "Inside": _inside, "Before": _before}
    return [
        _gelu(f"RaiseGelu{part}{order}", make, join, approximate)
        for part, (make, approximate) in parts.items()
        for order, join in orders.items()
    ]


def _gelu(name: str, make: Any, join: Any, approximate: str | None) -> type[Rule]:
    def pattern(op: Any, x: Any) -> Any:
        return join(op, x, make(op, x))

    def replace(op: Any, x: Operand) -> Any:
        return op.Gelu(x, approximate=approximate)

    body = {"since": 20, "pattern": pattern, "check": _float, "replace": replace}
    return type(name, (Rule,), body)


class RaiseSwish(Rule):
    """Mul(x, Sigmoid(x)) -> Swish(x)."""

    since = 24

    def pattern(op: Any, x: Any) -> Any:
        return op.Mul(x, op.Sigmoid(x))

    check = _float

    def replace(op: Any, x: Operand) -> Any:
        return op.Swish(x)


class RaiseScaledSwish(Rule):
    """Mul(x, Sigmoid(Mul(x, a))) -> Swish(x, alpha=a)."""

    since = 24

    def pattern(op: Any, x: Any, a: Any) -> Any:
        return op.Mul(x, op.Sigmoid(op.Mul(x, a)))

    def check(x: Operand, a: Operand) -> Any:
        return _float(x) if a.scalar is not None else because("the factor is not a constant number")

    def replace(op: Any, x: Operand, a: Operand) -> Any:
        return op.Swish(x, alpha=float(a.scalar))


class RaiseMishWritten(Rule):
    """Mul(x, Tanh(Log(Add(Exp(x), 1)))) -> Mish(x)."""

    since = 18

    def pattern(op: Any, x: Any) -> Any:
        return op.Mul(x, op.Tanh(op.Log(op.Add(op.Exp(x), 1.0))))

    check = _float

    def replace(op: Any, x: Operand) -> Any:
        return op.Mish(x)


class RaiseMish(Rule):
    """Mul(x, Tanh(Softplus(x))) -> Mish(x)."""

    since = 18

    def pattern(op: Any, x: Any) -> Any:
        return op.Mul(x, op.Tanh(op.Softplus(x)))

    check = _float

    def replace(op: Any, x: Operand) -> Any:
        return op.Mish(x)


class RaiseHardSwish(Rule):
    """Mul(x, HardSigmoid(x, 1/6, 1/2)) -> HardSwish(x)."""

    since = 14

    def pattern(op: Any, x: Any) -> Any:
        return op.Mul(x, op.HardSigmoid(x, alpha=1 / 6, beta=0.5))

    check = _float

    def replace(op: Any, x: Operand) -> Any:
        return op.HardSwish(x)


class RaiseHardSigmoid(Rule):
    """Div(Clip(Add(x, 3), 0, 6), 6) -> HardSigmoid(x, 1/6, 1/2)."""

    def pattern(op: Any, x: Any, low: Any = None, high: Any = None) -> Any:
        return op.Div(op.Clip(op.Add(x, 3.0), low, high).named("clip"), 6.0)

    def check(x: Operand, clip: Node, unit: Unit) -> Any:
        low, high = unit.parameter(clip, "min"), unit.parameter(clip, "max")
        if low is None or high is None or low is UNKNOWN or high is UNKNOWN:
            return because("the bounds are not known")
        exact = float(np.asarray(low)) == 0 and float(np.asarray(high)) == 6
        return _float(x) if exact else because("the bounds are not 0 and 6")

    def replace(op: Any, x: Operand) -> Any:
        return op.HardSigmoid(x, alpha=1 / 6, beta=0.5)


class RaiseHardSigmoidScaled(Rule):
    """Mul(Clip(Add(x, 3), 0, 6), 1/6) -> HardSigmoid(x, 1/6, 1/2)."""

    def pattern(op: Any, x: Any, low: Any = None, high: Any = None) -> Any:
        return op.Mul(op.Clip(op.Add(x, 3.0), low, high).named("clip"), 1 / 6)

    check = RaiseHardSigmoid.check
    replace = RaiseHardSigmoid.replace


class RaiseHardSwishClipped(Rule):
    """Div(Mul(x, Clip(Add(x, 3), 0, 6)), 6) -> HardSwish(x)."""

    since = 14

    def pattern(op: Any, x: Any, low: Any = None, high: Any = None) -> Any:
        return op.Div(op.Mul(x, op.Clip(op.Add(x, 3.0), low, high).named("clip")), 6.0)

    check = RaiseHardSigmoid.check

    def replace(op: Any, x: Operand) -> Any:
        return op.HardSwish(x)


class RaiseHardSwishScaled(Rule):
    """Mul(Mul(x, Clip(Add(x, 3), 0, 6)), 1/6) -> HardSwish(x)."""

    since = 14

    def pattern(op: Any, x: Any, low: Any = None, high: Any = None) -> Any:
        return op.Mul(op.Mul(x, op.Clip(op.Add(x, 3.0), low, high).named("clip")), 1 / 6)

    check = RaiseHardSigmoid.check
    replace = RaiseHardSwishClipped.replace


_RULES = (
    *_gelu_rules(),
    RaiseSwish,
    RaiseScaledSwish,
    RaiseMish,
    RaiseMishWritten,
    RaiseHardSigmoid,
    RaiseHardSigmoidScaled,
    RaiseHardSwish,
    RaiseHardSwishClipped,
    RaiseHardSwishScaled,
)


def raise_activations(unit: Unit) -> bool:
    """Find activations that were written out, where the opset has them whole."""
    return bool(apply_rules(unit, *_RULES))
