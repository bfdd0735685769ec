# mypy: disable-error-code="misc"
"""Reshape(MatMul(Reshape(x), w)) -> MatMul(x, w); equal left factors -> one product and a Split."""

from typing import Any

import numpy as np

from sardonyx.graph import Node, Value
from sardonyx.passes.fold_shapes import reshape_target
from sardonyx.passes.operand import Operand
from sardonyx.passes.rules import Rule, RuleBuilder, apply_rules, because, release_constants
from sardonyx.passes.unit import Unit, drop_unused, graph_of, is_operator, record_origin


def _same_rows(x: Operand, node: Node, w: Operand, unit: Unit) -> Any:
    """True where the product of x and w has the shape that the last Reshape gives."""
    before, after = x.shape, unit.shape(node.output)
    if before is None or after is None or w.shape is None:
        return because("a shape is not known")
    if len(w.shape) != 2 or len(before) < 2 or before[-1] != w.shape[0]:
        return because("the factors are not matrices")
    same = (*before[:-1], w.shape[1]) == after and None not in after
    return same or because("the product has another shape")


class UnflattenProduct(Rule):
    """Reshape(MatMul(Reshape(x), w)) -> MatMul(x, w), or MatMul(Reshape(x), w)."""

    shared = True

    def pattern(op: Any, x: Any, s: Any, t: Any, w: Any) -> Any:
        return op.Reshape(op.MatMul(op.Reshape(x, s), w).named("product"), t).named("node")

    def check(x: Operand, w: Operand, node: Node, product: Node, unit: Unit) -> Any:
        if len(product.output.uses) != 1:
            return because("the product is used elsewhere")
        return _same_rows(x, node, w, unit) or _target(x, node, w, unit) is not None

    def replace(op: Any, x: Operand, w: Operand, node: Node, unit: Unit) -> Any:
        if _same_rows(x, node, w, unit):
            return op.MatMul(x, w)
        return op.MatMul(op.Reshape(x, np.array(_target(x, node, w, unit), np.int64)), w)


def _target(x: Operand, node: Node, w: Operand, unit: Unit) -> list[int] | None:
    """What to reshape x to, so that its product with w has the shape of `node`."""
    after = unit.shape(node.output)
    if after is None or len(after) < 2 or w.shape is None or len(w.shape) != 2:
        return None
    if after[-1] != w.shape[1] or None in after:
        return None
    return reshape_target(x.shape, (*after[:-1], w.shape[0]))


class UnflattenGemm(Rule):
    """Reshape(Gemm(Reshape(x), w, b)) -> Add(MatMul(x, w), b)."""

    shared = True

    def pattern(op: Any, x: Any, s: Any, t: Any, w: Any, b: Any) -> Any:
        return op.Reshape(op.Gemm(op.Reshape(x, s), w, b).named("gemm"), t).named("node")

    def check(x: Operand, w: Operand, b: Operand, node: Node, gemm: Node, unit: Unit) -> Any:
        if any(gemm.attribute(name, 1.0) != 1 for name in ("alpha", "beta")):
            return because("the product is scaled")
        if any(gemm.attribute(name, 0) for name in ("transA", "transB")):
            return because("a factor is transposed")
        if b.rank is None or b.rank > 1:
            return because("the addend is no vector")
        if len(gemm.output.uses) != 1:
            return because("the product is used elsewhere")
        return _same_rows(x, node, w, unit)

    def replace(op: Any, x: Operand, w: Operand, b: Operand) -> Any:
        return op.Add(op.MatMul(x, w), b)


class UnflattenSum(Rule):
    """Reshape(Add(MatMul(Reshape(x), w), b)) -> Add(MatMul(x, w), b)."""

    shared = True

    def pattern(op: Any, x: Any, s: Any, t: Any, w: Any, b: Any) -> Any:
        product = op.MatMul(op.Reshape(x, s), w).named("product")
        return op.Reshape(op.Add(product, b).named("sum"), t).named("node")

    def check(x: Operand, w: Operand, b: Operand, node: Node, product: Node, unit: Unit) -> Any:
        if b.rank is None or b.rank > 1:
            return because("the addend is no vector")
        (add,) = product.output.users or (None,)
        if add is None or len(product.output.uses) != 1 or len(add.output.uses) != 1:
            return because("the product is used elsewhere")
        return _same_rows(x, node, w, unit)

    def replace(op: Any, x: Operand, w: Operand, b: Operand) -> Any:
        return op.Add(op.MatMul(x, w), b)


class ScaleLeft(Rule):
    """MatMul(Mul(x, s), w) -> MatMul(x, w*s), for a constant number s and constant w."""

    def pattern(op: Any, x: Any, s: Any, w: Any) -> Any:
        return op.MatMul(op.Mul(x, s), w)

    def check(s: Operand, w: Operand) -> Any:
        if not _is_number(s) or not w.constant:
            return because("the factors are not constant")
        return w.alone or because("the weights are used elsewhere")

    def replace(op: Any, x: Operand, s: Operand, w: Operand) -> Any:
        return op.MatMul(x, _times(w, s))


class ScaleLeftInside(Rule):
    """MatMul(Mul(x, Mul(y, s)), w) -> MatMul(Mul(x, y), w*s), for a constant number s."""

    def pattern(op: Any, x: Any, y: Any, s: Any, w: Any) -> Any:
        return op.MatMul(op.Mul(x, op.Mul(y, s)), w)

    def check(s: Operand, w: Operand) -> Any:
        if not _is_number(s) or not w.constant:
            return because("the factors are not constant")
        return w.alone or because("the weights are used elsewhere")

    def replace(op: Any, x: Operand, y: Operand, s: Operand, w: Operand) -> Any:
        return op.MatMul(op.Mul(x, y), _times(w, s))


def _is_number(s: Operand) -> bool:
    number = s.scalar
    if number is None or s.array.ndim or s.array.dtype.kind != "f":
        return False
    return bool(np.isfinite(number) and number != 0)


def _times(w: Operand, s: Operand) -> Any:
    return (w.array * s.array.astype(np.float64)).astype(w.array.dtype)


def flatten_products(unit: Unit) -> bool:
    """Let products work on tensors of more dimensions, and join those that share a factor."""
    count = apply_rules(
        unit, UnflattenProduct, UnflattenGemm, UnflattenSum, ScaleLeft, ScaleLeftInside
    )
    return bool(count) | push_scales(unit) | join_products(unit)


def push_scales(unit: Unit) -> bool:
    """MatMul(Transpose(x @ w), k) * s -> MatMul(Transpose(x @ (w*s)), k)."""
    changed = False
    for node in list(unit.nodes()):
        if node.graph is None or not is_operator(node, "Mul", "Div") or unit.opset < 7:
            continue
        for position in (1, 0)[: 1 if node.op_type == "Div" else 2]:
            factor = unit.array(node.inputs[position])
            if factor is None or factor.size != 1 or factor.dtype.kind != "f" or factor.ndim > 1:
                continue
            source = node.inputs[1 - position]
            number = float(factor.reshape(-1)[0])
            number = 1 / number if node.op_type == "Div" and number else number
            places = _weights(unit, node, source)
            if places and number and np.isfinite(number) and source is not None:
                _scale(unit, places, number)
                unit.substitute(node.output, source)
                changed = True
                break
    return changed


def _weights(unit: Unit, node: Node, value: Value | None) -> list[tuple[Node, int]]:
    """Inputs of nodes to scale so that `value` is scaled, through nodes with no other reader."""
    while value is not None and len(value.uses) == 1 and not value.is_output:
        maker = value.producer
        if maker is None or maker.graph is not node.graph or maker.domain:
            return []
        match maker.op_type:
            case "Transpose" | "Reshape" | "Squeeze" | "Unsqueeze":
                value = maker.inputs[0]
            case "Add":
                biases = [place for place in (0, 1) if _is_float(unit, maker.inputs[place])]
                if len(biases) != 1:
                    return []
                rest = _weights(unit, node, maker.inputs[1 - biases[0]])
                return [(maker, biases[0]), *rest] if rest else []
            case "MatMul":
                if _is_float(unit, maker.inputs[1]):
                    return [(maker, 1)]
                value = maker.inputs[0]
            case "Gemm" | "Conv":
                biased = len(maker.inputs) > 2 and maker.inputs[2] is not None
                wanted = [1, 2] if biased else [1]
                fits = all(_is_float(unit, maker.inputs[place]) for place in wanted)
                return [(maker, place) for place in wanted] if fits else []
            case _:
                return []
    return []


def _is_float(unit: Unit, value: Value | None) -> bool:
    array = unit.array(value)
    if array is None or value is None or array.dtype.kind != "f" or array.size == 0:
        return False
    return Operand(value, unit).alone


def _scale(unit: Unit, places: list[tuple[Node, int]], number: float) -> None:
    for node, position in places:
        value = node.inputs[position]
        array = unit.array(value)
        assert array is not None and value is not None
        wide = (array * np.asarray(number, np.float64)).astype(array.dtype)
        new = unit.add_constant(graph_of(node), wide, f"{value.name}/scaled", node)
        node.replace_input(position, new)
        unit.count_unread(value)
    release_constants(unit)


def join_products(unit: Unit) -> bool:
    """MatMul(x, a), MatMul(x, b), ... -> Split(MatMul(x, [a b ...])), each with its bias."""
    changed = False
    seen: set[Value] = set()
    order = {node: place for place, node in enumerate(unit.nodes())}
    for node in list(order):
        value = node.inputs[0] if node.graph is not None and is_operator(node, "MatMul") else None
        if value is None or value in seen or unit.opset < 7:
            continue
        seen.add(value)
        users = sorted(
            (user for user in value.users if user in order and _joins(unit, user, node)),
            key=order.__getitem__,
        )
        group = [(user, _bias(unit, user)) for user in users]
        biased = [item for item in group if item[1] is not None]
        plain = [item for item in group if item[1] is None]
        if len(biased) > 1:
            changed |= _join(unit, value, biased)
        elif len(plain) > 2:
            changed |= _join(unit, value, plain)
    return changed


def _joins(unit: Unit, user: Node, first: Node) -> bool:
    if not is_operator(user, "MatMul") or user.graph is not first.graph:
        return False
    weights = unit.array(user.inputs[1])
    if user.inputs[0] is user.inputs[1] or weights is None or weights.ndim != 2:
        return False
    own = user.inputs[1]
    return weights.dtype.kind == "f" and own is not None and len(own.uses) == 1


def _bias(unit: Unit, node: Node) -> Node | None:
    """The Add of a constant vector that is all that reads a product."""
    users = node.output.users
    if len(users) != 1 or node.output.is_output or not is_operator(users[0], "Add"):
        return None
    add = users[0]
    other = add.inputs[1] if add.inputs[0] is node.output else add.inputs[0]
    array = unit.array(other)
    weights = unit.array(node.inputs[1])
    fits = array is not None and weights is not None and array.shape == weights.shape[1:]
    return add if fits and add.graph is node.graph else None


def _join(unit: Unit, value: Value, group: list[tuple[Node, Node | None]]) -> bool:
    weights = [unit.array(node.inputs[1]) for node, _ in group]
    rank = unit.fact(value).rank
    if rank is None or len({array.shape[0] for array in weights if array is not None}) != 1:
        return False
    build = RuleBuilder(unit, group[0][0])
    joined = np.concatenate([array for array in weights if array is not None], axis=1)
    product: Any = build.MatMul(value, joined)
    biases = []
    for node, add in group:
        if add is not None:
            other = add.inputs[1] if add.inputs[0] is node.output else add.inputs[0]
            biases.append(unit.array(other))
    if biases:
        product = build.Add(product, np.concatenate(biases))  # type: ignore[arg-type]
    sizes = [array.shape[1] for array in weights if array is not None]
    parts = build.node("Split", (product,), len(group), "", {"axis": rank - 1, "split": sizes})
    nodes = [item for pair in group for item in pair if item is not None]
    record_origin(unit, build.made, nodes)
    for (node, add), part in zip(group, parts, strict=True):
        unit.substitute((add or node).output, part)
    read = [item for node in nodes for item in node.inputs]
    drop_unused(nodes)
    for item in read:
        unit.count_unread(item)
    release_constants(unit)
    return True
