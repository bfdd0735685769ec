# mypy: disable-error-code="misc"
"""MatMul followed by Add, scales and transposes -> Gemm or MatMul with other weights."""

from typing import Any

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.graph import Node
from sardonyx.passes.fuse_convolution import attributes_of, scale_and_shift
from sardonyx.passes.operand import Operand
from sardonyx.passes.rules import Rule, apply_rules, because
from sardonyx.passes.unit import Unit

_GEMM = (DataType.FLOAT, DataType.DOUBLE, DataType.FLOAT16)


def _fits_gemm(a: Operand, b: Operand, c: Operand, unit: Unit) -> Any:
    if a.rank != 2 or b.rank != 2:
        return because("the factors are not matrices")
    if a.dtype not in _GEMM:
        return because("Gemm does not take this type")
    shape = c.shape
    if shape is None or b.shape is None or len(shape) > 2:
        return because("the addend has another rank")
    row = b.shape[1]
    fits = all(size == 1 for size in shape[:-1]) and (not shape or shape[-1] in (1, row))
    return fits or because("the addend does not broadcast to the product")


class MakeGemm(Rule):
    """Add(MatMul(a, b), c) -> Gemm(a, b, c), for matrices."""

    def pattern(op: Any, a: Any, b: Any, c: Any) -> Any:
        return op.Add(op.MatMul(a, b), c)

    def check(a: Operand, b: Operand, c: Operand, unit: Unit) -> Any:
        return _fits_gemm(a, b, c, unit)

    def replace(op: Any, a: Operand, b: Operand, c: Operand) -> Any:
        return op.Gemm(a, b, c)


class GiveGemmBias(Rule):
    """Add(Gemm(a, b), c) -> Gemm(a, b, c); a constant bias is added up."""

    since = 11

    def pattern(op: Any, a: Any, b: Any, c: Any, bias: Any = None) -> Any:
        return op.Add(op.Gemm(a, b, bias).named("gemm"), c)

    def check(a: Operand, b: Operand, c: Operand, bias: Operand | None, gemm: Node) -> Any:
        if bias is not None and not (bias.constant and c.constant):
            return because("the bias is not constant")
        if gemm.attribute("beta", 1.0) != 1:
            return because("the bias is scaled")
        if c.shape is None or b.shape is None:
            return because("a shape is not known")
        row = b.shape[0 if gemm.attribute("transB", 0) else 1]
        fits = len(c.shape) <= 2 and all(size == 1 for size in c.shape[:-1])
        return (fits and c.shape[-1:] in ((1,), (row,), ())) or because("it does not broadcast")

    def replace(
        op: Any, a: Operand, b: Operand, c: Operand, bias: Operand | None, gemm: Node
    ) -> Any:
        total = c if bias is None else (bias.array + c.array).astype(c.array.dtype)
        return op.Gemm(a, b, total, **attributes_of(gemm))


class TransposeInGemm(Rule):
    """Gemm(Transpose(a), b) -> Gemm(a, b, transA=1), for either factor."""

    shared = True

    def pattern(op: Any, a: Any, b: Any, c: Any = None) -> Any:
        return op.Gemm(a, b, c).named("gemm")

    def check(a: Operand, b: Operand) -> Any:
        turned = _turned(a) or _turned(b)
        return turned or because("no factor is transposed")

    def replace(op: Any, a: Operand, b: Operand, c: Operand | None, gemm: Node) -> Any:
        attributes = attributes_of(gemm)
        factors: list[Any] = [a, b]
        for place, name in enumerate(("transA", "transB")):
            if _turned(factors[place]):
                factors[place] = factors[place].value.producer.inputs[0]
                attributes[name] = 1 - gemm.attribute(name, 0)
        return op.Gemm(*factors, c, **attributes)


def _turned(operand: Operand) -> bool:
    maker = operand.value.producer
    if maker is None or maker.op_type != "Transpose" or maker.domain:
        return False
    rank = operand.rank
    return maker.attribute("perm") == (1, 0) or (maker.attribute("perm") is None and rank == 2)


class ScaleFactor(Rule):
    """Mul(MatMul(x, w), s) -> MatMul(x, w*s), when w and s are constant."""

    def pattern(op: Any, x: Any, w: Any, s: Any) -> Any:
        return op.either("Mul", "Div")(op.MatMul(x, w), s).named("scale")

    def check(w: Operand, s: Operand) -> Any:
        if not w.constant or not s.constant:
            return because("the factor is not constant")
        if w.array.ndim < 2 or w.array.dtype.kind != "f" or not w.alone:
            return because("the weights are no floating-point matrix of their own")
        return _per_column(w, s) or because("the factor is not one for a column")

    def replace(op: Any, x: Operand, w: Operand, s: Operand, scale: Node) -> Any:
        factors = s.array.reshape(-1).astype(np.float64)
        factors = 1 / factors if scale.op_type == "Div" else factors
        return op.MatMul(x, (w.array * factors).astype(w.array.dtype))


class ScaleSum(Rule):
    """Mul(Add(MatMul(x, w), b), s) -> Add(MatMul(x, w*s), b*s), when w, b and s are constant."""

    def pattern(op: Any, x: Any, w: Any, b: Any, s: Any) -> Any:
        return op.Mul(op.Add(op.MatMul(x, w), b), s)

    def check(w: Operand, b: Operand, s: Operand) -> Any:
        if not b.constant or b.array.ndim != 1:
            return because("the addend is no constant vector")
        return ScaleFactor.check(w, s)

    def replace(op: Any, x: Operand, w: Operand, b: Operand, s: Operand) -> Any:
        factors = s.array.reshape(-1).astype(np.float64)
        weights, bias = ((item.array * factors).astype(w.array.dtype) for item in (w, b))
        return op.Add(op.MatMul(x, weights), bias)


def _per_column(w: Operand, s: Operand) -> bool:
    array = s.array
    if array.size == 1:
        return array.ndim <= 2
    return array.shape == (w.array.shape[-1],)


class ScaleGemm(Rule):
    """Mul(Gemm(x, w, b), s) -> Gemm(x, w*s, b*s), when w, b and s are constant."""

    def pattern(op: Any, x: Any, w: Any, s: Any, b: Any = None) -> Any:
        return op.either("Mul", "Div")(op.Gemm(x, w, b).named("gemm"), s).named("scale")

    def check(w: Operand, s: Operand, b: Operand | None, gemm: Node) -> Any:
        if not w.constant or not s.constant or (b is not None and not b.constant):
            return because("the factor is not constant")
        columns = w.array.shape[0 if gemm.attribute("transB", 0) else 1]
        single = s.array.size == 1 and s.array.ndim <= 2
        return single or s.array.shape in ((columns,), (1, columns)) or because("not per column")

    def replace(
        op: Any, x: Operand, w: Operand, b: Operand | None, s: Operand, gemm: Node, scale: Node
    ) -> Any:
        factors = s.array.reshape(-1).astype(np.float64)
        factors = 1 / factors if scale.op_type == "Div" else factors
        along = factors.reshape(-1, 1) if gemm.attribute("transB", 0) else factors
        weights = (w.array * along).astype(w.array.dtype)
        bias = None if b is None else (b.array * factors).astype(w.array.dtype)
        return op.Gemm(x, weights, bias, **attributes_of(gemm))


class FuseGemmNormalization(Rule):
    """BatchNormalization(Gemm(x, w, b)) -> Gemm(x, w', b')."""

    def pattern(op: Any, x: Any, w: Any, s: Any, o: Any, m: Any, v: Any, b: Any = None) -> Any:
        gemm = op.Gemm(x, w, b).named("gemm")
        return op.BatchNormalization(gemm, s, o, m, v).named("norm")

    def check(w: Operand, b: Operand | None, norm: Node, gemm: Node, unit: Unit) -> Any:
        if not w.constant or (b is not None and not b.constant):
            return because("the weights are not constant")
        if gemm.attribute("alpha", 1.0) != 1 or gemm.attribute("beta", 1.0) != 1:
            return because("the product is scaled")
        return scale_and_shift(norm, unit) is not None or because("it is not a constant scale")

    def replace(
        op: Any, x: Operand, w: Operand, b: Operand | None, gemm: Node, norm: Node, unit: Unit
    ) -> Any:
        found = scale_and_shift(norm, unit)
        if found is None:
            return None
        scale, shift = found
        along = scale.reshape(-1, 1) if gemm.attribute("transB", 0) else scale
        weights = (w.array * along).astype(w.array.dtype)
        bias = shift if b is None else b.array * scale + shift
        return op.Gemm(x, weights, bias.astype(w.array.dtype), **attributes_of(gemm))


def fuse_products(unit: Unit) -> bool:
    """Move additions, constant factors and transposes into matrix products."""
    rules = (
        MakeGemm, GiveGemmBias, TransposeInGemm, ScaleFactor, ScaleSum, ScaleGemm,
        FuseGemmNormalization,
    )  # fmt: skip
    return bool(apply_rules(unit, *rules))
