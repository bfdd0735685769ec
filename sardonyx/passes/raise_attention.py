# mypy: disable-error-code="misc"
"""softmax(q k^T * scale + mask) v -> Attention(q, k, v, mask), where the opset has it."""

from collections.abc import Callable
from typing import Any

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.graph import Node
from sardonyx.ops.fact import Sizes
from sardonyx.passes.operand import Operand
from sardonyx.passes.rules import Rule, apply_rules, because
from sardonyx.passes.unit import Unit

_FLOATS = (DataType.FLOAT, DataType.FLOAT16)
_TURNED = (0, 1, 3, 2)

Join = Callable[[Any, Any, Any], Any]


def _plain(op: Any, scores: Any, s: Any) -> Any:
    return scores


def _multiplied(op: Any, scores: Any, s: Any) -> Any:
    return op.Mul(scores, s)


def _divided(op: Any, scores: Any, s: Any) -> Any:
    return op.Div(scores, s)


_SCALES: dict[str, Join] = {"": _plain, "Multiplied": _multiplied, "Divided": _divided}


def _key_order(turn: Node) -> list[int] | None:
    """How keys must be laid out, given how they are turned for the product."""
    perm = turn.attribute("perm")
    return None if perm is None or len(perm) != 4 else [perm[place] for place in _TURNED]


def _key_shape(k: Operand, turn: Node) -> Sizes | None:
    order = _key_order(turn)
    if order is None or k.shape is None or len(k.shape) != 4:
        return None
    return tuple(k.shape[place] for place in order)


def _keys(op: Any, k: Operand, turn: Node) -> Any:
    order = _key_order(turn)
    return k if order == sorted(order or ()) else op.Transpose(k, perm=order)


def _fits(q: Operand, k: Operand, v: Operand, turn: Node) -> Any:
    keys = _key_shape(k, turn)
    if q.shape is None or keys is None or v.shape is None:
        return because("a shape is not known, or not of four dimensions")
    if not len(q.shape) == len(v.shape) == 4:
        return because("the operands do not have four dimensions")
    if q.dtype not in _FLOATS:
        return because("the type is no float that every runtime takes")
    same = q.shape[:2] == keys[:2] == v.shape[:2] and keys[2] == v.shape[2]
    return (same and None not in q.shape) or because("batches, heads or lengths differ")


def _check(q: Operand, k: Operand, v: Operand, turn: Node, s: Operand | None = None) -> Any:
    if s is not None and s.scalar is None:
        return because("the scale is not a constant number")
    return _fits(q, k, v, turn)


def _check_masked(
    q: Operand, k: Operand, v: Operand, mask: Operand, turn: Node, s: Operand | None = None
) -> Any:
    shape, keys = mask.shape, _key_shape(k, turn)
    if shape is None or len(shape) not in (2, 4) or mask.dtype != q.dtype:
        return because("the mask has another rank or type")
    verdict = _check(q, k, v, turn, s)
    if not verdict or q.shape is None or keys is None:
        return verdict
    full = (*q.shape[:3], keys[2])[-len(shape) :]
    fits = all(size in (1, whole) for size, whole in zip(shape, full, strict=True))
    return (fits and shape[-2:] == full[-2:]) or because(
        "the mask does not broadcast to the scores"
    )


def _number(s: Operand | None, kind: str) -> float:
    if s is None:
        return 1.0
    number = float(np.asarray(s.scalar, np.float64))
    return 1 / number if kind == "Divided" else number


def _rule(kind: str, join: Join, *, masked: bool) -> type[Rule]:
    """The rule for one way in which the scale is applied."""

    def scores(op: Any, q: Any, k: Any, s: Any) -> Any:
        return join(op, op.MatMul(q, op.Transpose(k).named("turn")), s)

    def pattern(op: Any, q: Any, k: Any, v: Any, s: Any) -> Any:
        return op.MatMul(op.Softmax(scores(op, q, k, s), axis=-1), v)

    def pattern_masked(op: Any, q: Any, k: Any, v: Any, mask: Any, s: Any) -> Any:
        return op.MatMul(op.Softmax(op.Add(scores(op, q, k, s), mask), axis=-1), v)

    def pattern_bare(op: Any, q: Any, k: Any, v: Any) -> Any:
        return pattern(op, q, k, v, None)

    def pattern_bare_masked(op: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
        return pattern_masked(op, q, k, v, mask, None)

    def replace(op: Any, q: Operand, k: Operand, v: Operand, s: Operand, turn: Node) -> Any:
        return op.Attention(q, _keys(op, k, turn), v, scale=_number(s, kind))

    def replace_masked(
        op: Any, q: Operand, k: Operand, v: Operand, mask: Operand, s: Operand, turn: Node
    ) -> Any:
        return op.Attention(q, _keys(op, k, turn), v, mask, scale=_number(s, kind))

    def check_bare(q: Operand, k: Operand, v: Operand, turn: Node) -> Any:
        return _check(q, k, v, turn)

    def check_bare_masked(q: Operand, k: Operand, v: Operand, mask: Operand, turn: Node) -> Any:
        return _check_masked(q, k, v, mask, turn)

    def replace_bare(op: Any, q: Operand, k: Operand, v: Operand, turn: Node) -> Any:
        return op.Attention(q, _keys(op, k, turn), v, scale=1.0)

    def replace_bare_masked(
        op: Any, q: Operand, k: Operand, v: Operand, mask: Operand, turn: Node
    ) -> Any:
        return op.Attention(q, _keys(op, k, turn), v, mask, scale=1.0)

    hooks = {
        (True, True): (pattern_masked, _check_masked, replace_masked),
        (True, False): (pattern, _check, replace),
        (False, True): (pattern_bare_masked, check_bare_masked, replace_bare_masked),
        (False, False): (pattern_bare, check_bare, replace_bare),
    }[bool(kind), masked]
    body = dict(zip(("pattern", "check", "replace"), hooks, strict=True))
    return type(f"RaiseAttention{kind}{'Masked' * masked}", (Rule,), body | {"since": 23})


_RULES = tuple(
    _rule(kind, join, masked=masked) for kind, join in _SCALES.items() for masked in (True, False)
)


def raise_attention(unit: Unit) -> bool:
    """Find attention that was written out, where the opset has it whole."""
    return bool(apply_rules(unit, *_RULES))
