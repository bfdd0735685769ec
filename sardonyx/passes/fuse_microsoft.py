# mypy: disable-error-code="misc"
"""Blocks of transformers -> the operators of onnxruntime's own domain, com.microsoft.

LayerNormalization(x + skip + bias, g, b)       -> SkipLayerNormalization(x, skip, g, b, bias)
Gelu(x + bias)                                  -> BiasGelu(x, bias)
Gelu<tanh>(x + bias)                            -> FastGelu(x, bias)
MatMul(Transpose(a), Transpose(b)) * alpha      -> FusedMatMul(a, b)

Embeddings and attention have modules of their own: `fuse_embeddings` and `fuse_heads`.
"""

from typing import Any

from sardonyx.graph import Node
from sardonyx.passes.fuse_embeddings import DOMAIN, FLOATS, fuse_embeddings
from sardonyx.passes.fuse_heads import fuse_heads
from sardonyx.passes.operand import Operand
from sardonyx.passes.read_scores import maker_of
from sardonyx.passes.rules import Rule, apply_rules, because
from sardonyx.passes.unit import Unit


def _last_axis(norm: Node, x: Operand) -> bool:
    return x.rank == 3 and norm.attribute("axis", -1) in (-1, 2)


def _epsilon(norm: Node) -> float:
    return float(norm.attribute("epsilon", 1e-5))


class FuseSkip(Rule):
    """LayerNormalization(Add(x, skip), g, b) -> SkipLayerNormalization(x, skip, g, b)."""

    shared = True

    def pattern(op: Any, x: Any, skip: Any, g: Any, b: Any) -> Any:
        return op.LayerNormalization(op.Add(x, skip).named("total"), g, b).named("norm")

    def check(x: Operand, skip: Operand, g: Operand, norm: Node) -> Any:
        if not _last_axis(norm, x) or x.shape is None or None in x.shape:
            return because("it is not the last of three axes that is normalized")
        if x.shape != skip.shape or x.dtype not in FLOATS:
            return because("the two addends are not of one shape")
        return g.rank == 1 or because("the scale is no vector")

    def replace(
        op: Any, x: Operand, skip: Operand, g: Operand, b: Operand, norm: Node, total: Node,
        unit: Unit,
    ) -> Any:  # fmt: skip
        first, bias = _without_bias(unit, x, norm)
        given = (first, skip, g, b, bias)
        attributes = {"epsilon": _epsilon(norm)}
        if len(total.output.uses) == 1:
            return op.node("SkipLayerNormalization", given, 1, DOMAIN, attributes)
        y, _, _, joined = op.node("SkipLayerNormalization", given, 4, DOMAIN, attributes)
        unit.substitute(total.output, joined)
        return y


def _without_bias(unit: Unit, x: Operand, near: Node) -> tuple[Any, Any]:
    """x as Add(y, bias) of a constant vector for the last axis, where nothing else reads it."""
    node = maker_of(x.value, near, "Add")
    if node is None or len(x.value.uses) != 1:
        return x, None
    for place in (0, 1):
        bias, rest = node.inputs[1 - place], node.inputs[place]
        if unit.is_constant(bias) and unit.shape(bias) == (x.shape or ())[-1:]:
            return (rest, bias) if unit.shape(rest) == x.shape else (x, None)
    return x, None


class FuseBiasGelu(Rule):
    """Gelu(Add(x, bias)) -> BiasGelu(x, bias), or FastGelu by the formula with tanh."""

    def pattern(op: Any, x: Any, bias: Any) -> Any:
        return op.Gelu(op.Add(x, bias)).named("gelu")

    def check(x: Operand, bias: Operand) -> Any:
        if x.shape is None or bias.shape is None or x.dtype not in FLOATS:
            return because("a shape is not known")
        fits = bias.constant and bias.shape == x.shape[-1:] and None not in bias.shape
        return fits or because("the bias is no vector for the last axis")

    def replace(op: Any, x: Operand, bias: Operand, gelu: Node) -> Any:
        fast = gelu.attribute("approximate") == "tanh"
        return op.node("FastGelu" if fast else "BiasGelu", (x, bias), 1, DOMAIN, {})


class FuseFastGelu(Rule):
    """Gelu(x, approximate="tanh") -> FastGelu(x)."""

    def pattern(op: Any, x: Any) -> Any:
        return op.Gelu(x, approximate="tanh")

    def check(x: Operand) -> Any:
        return x.dtype in FLOATS or because("the type is no float that it takes")

    def replace(op: Any, x: Operand) -> Any:
        return op.FastGelu(x, domain=DOMAIN)


class FuseTurnedProduct(Rule):
    """MatMul(Transpose(a), b), or with b transposed -> FusedMatMul(a, b)."""

    def pattern(op: Any, a: Any, b: Any) -> Any:
        return op.MatMul(a, b).named("product")

    def check(product: Node, a: Operand) -> Any:
        if a.dtype not in FLOATS:
            return because("the type is no float that it takes")
        turned = any(_turned(value, product) is not None for value in product.inputs)
        return turned or because("no factor is transposed")

    def replace(op: Any, product: Node) -> Any:
        sides = [_turned(value, product) for value in product.inputs]
        fed = [value if side is None else side.inputs[0]
               for value, side in zip(product.inputs, sides, strict=True)]  # fmt: skip
        flags = {name: 1 for name, side in zip(("transA", "transB"), sides, strict=True) if side}
        return op.FusedMatMul(*fed, **flags, domain=DOMAIN)


def _turned(value: Any, near: Node) -> Node | None:
    """The Transpose that exchanges a value's last two axes and nothing else."""
    node = maker_of(value, near, "Transpose")
    perm = None if node is None else node.attribute("perm")
    if perm is None or len(perm) < 2:
        return None
    rank = len(perm)
    return node if tuple(perm) == (*range(rank - 2), rank - 1, rank - 2) else None


class FuseScaledProduct(Rule):
    """Mul(MatMul(a, b), s) -> FusedMatMul(a, b, alpha=s), for a constant number s."""

    def pattern(op: Any, a: Any, b: Any, s: Any) -> Any:
        return op.either("Mul", "Div")(op.MatMul(a, b).named("product"), s).named("scale")

    def check(a: Operand, s: Operand, product: Node, scale: Node, unit: Unit) -> Any:
        number = s.scalar
        if number is None or float(number) == 0 or a.dtype not in FLOATS:
            return because("the factor is not a constant number")
        same = unit.shape(scale.output) == unit.shape(product.output) is not None
        return same or because("the number adds axes")

    def replace(op: Any, a: Operand, b: Operand, s: Operand, scale: Node) -> Any:
        number = float(s.scalar)
        alpha = 1 / number if scale.op_type == "Div" else number
        return op.FusedMatMul(a, b, alpha=alpha, domain=DOMAIN)


def fuse_microsoft(unit: Unit) -> bool:
    """Put onnxruntime's own operators in the place of what they compute at once."""
    changed = fuse_embeddings(unit)
    changed |= fuse_heads(unit)
    count = apply_rules(unit, FuseSkip, FuseBiasGelu)
    count += apply_rules(unit, FuseFastGelu, FuseScaledProduct, FuseTurnedProduct)
    changed |= bool(count)
    if changed and not unit.is_function:
        unit.opsets.setdefault(DOMAIN, 1)
    return changed
