# mypy: disable-error-code="misc"
"""BatchNormalization, Mul, Add and Pad around a Conv -> into the Conv's weights, bias and pads."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sardonyx.graph import Node
from sardonyx.passes.operand import Operand
from sardonyx.passes.repeats import core
from sardonyx.passes.rules import Rule, apply_rules, because
from sardonyx.passes.unit import UNKNOWN, Unit

Array = NDArray[Any]


def attributes_of(node: Node) -> dict[str, Any]:
    """A node's attributes, to give to another."""
    return dict(node.attributes)


def scale_and_shift(norm: Node, unit: Unit) -> tuple[Array, Array] | None:
    """BatchNormalization in inference as y = x * scale + shift; None where it is something else."""
    if any(value.uses for value in norm.outputs[1:]) or norm.attribute("training_mode", 0):
        return None
    if not norm.attribute("spatial", 1) or (unit.opset < 7 and not norm.attribute("is_test", 0)):
        return None
    arrays = [unit.array(value) for value in norm.inputs[1:5]]
    if len(arrays) < 4 or any(array is None or array.ndim != 1 for array in arrays):
        return None
    gain, bias, mean, variance = (np.asarray(array, np.float64) for array in arrays)
    scale = gain / np.sqrt(variance + norm.attribute("epsilon", 1e-5))
    return scale, bias - mean * scale


def channel_vector(operand: Operand, channels: int, rank: int) -> Array | None:
    """A constant with one element for all, or one for each channel (axis 1), as a vector."""
    array = operand.array
    if array.size == 1 and array.ndim <= rank:
        return np.full(channels, array.reshape(-1)[0])
    shape = (1,) * (rank - array.ndim) + array.shape
    if array.ndim <= rank and shape == (1, channels) + (1,) * (rank - 2):
        return array.reshape(-1)
    return None


def maps_of(conv: Node, weights: Array) -> int:
    """The number of output channels."""
    if conv.op_type == "Conv":
        return int(weights.shape[0])
    return int(weights.shape[1]) * int(conv.attribute("group", 1))


def scaled(conv: Node, weights: Array, scale: Array) -> Array:
    """Weights that give results `scale` times as large."""
    if conv.op_type == "Conv":
        along, once = scale.reshape(-1, *[1] * (weights.ndim - 1)), core(weights)
        made = np.empty(np.broadcast_shapes(once.shape, along.shape), weights.dtype)
        np.multiply(once, along, out=made, casting="unsafe")
        return made if made.shape == weights.shape else np.broadcast_to(made, weights.shape)
    groups = conv.attribute("group", 1)
    split = weights.reshape(groups, -1, *weights.shape[1:])
    along = scale.reshape(groups, 1, weights.shape[1], *[1] * (weights.ndim - 2))
    return (split * along).astype(weights.dtype).reshape(weights.shape)


class FuseConvNormalization(Rule):
    """BatchNormalization(Conv(x, w, b)) -> Conv(x, w', b')."""

    def pattern(op: Any, x: Any, w: Any, s: Any, o: Any, m: Any, v: Any, b: Any = None) -> Any:
        conv = op.either("Conv", "ConvTranspose")(x, w, b).named("conv")
        return op.BatchNormalization(conv, s, o, m, v).named("norm")

    def check(w: Operand, b: Operand | None, norm: Node, unit: Unit) -> Any:
        if not w.constant or (b is not None and not b.constant):
            return because("the weights are not constant")
        if scale_and_shift(norm, unit) is None:
            return because("it is not a constant scale and shift")
        return True

    def replace(
        op: Any, x: Operand, w: Operand, b: Operand | None, conv: Node, norm: Node, unit: Unit
    ) -> Any:
        found = scale_and_shift(norm, unit)
        weights = w.array
        if found is None or found[0].size != maps_of(conv, weights):
            return None
        scale, shift = found
        bias = shift if b is None else b.array * scale + shift
        wide = scaled(conv, weights, scale)
        return op.node(
            conv.op_type, (x, wide, bias.astype(weights.dtype)), 1, "", attributes_of(conv)
        )


class FuseConvScale(Rule):
    """Mul(Conv(x, w, b), s) -> Conv(x, w*s, b*s), when s is one constant for a channel or all."""

    def pattern(op: Any, x: Any, w: Any, s: Any, b: Any = None) -> Any:
        conv = op.either("Conv", "ConvTranspose")(x, w, b).named("conv")
        return op.either("Mul", "Div")(conv, s).named("scale")

    def check(w: Operand, s: Operand, conv: Node, b: Operand | None) -> Any:
        if not w.constant or (b is not None and not b.constant):
            return because("the weights are not constant")
        if not s.constant:
            return because("s is not constant")
        fits = channel_vector(s, maps_of(conv, w.array), w.array.ndim) is not None
        return fits or because("s is not per channel")

    def replace(
        op: Any, x: Operand, w: Operand, b: Operand | None, s: Operand, conv: Node, scale: Node
    ) -> Any:
        weights = w.array
        factors = channel_vector(s, maps_of(conv, weights), weights.ndim)
        if factors is None or (scale.op_type == "Div" and scale.inputs[1] is not s.value):
            return None
        wide = factors.astype(np.float64)
        wide = 1 / wide if scale.op_type == "Div" else wide
        bias = None if b is None else (b.array * wide).astype(weights.dtype)
        made = scaled(conv, weights, wide)
        return op.node(conv.op_type, (x, made, bias), 1, "", attributes_of(conv))


class FuseConvShift(Rule):
    """Add(Conv(x, w, b), o) -> Conv(x, w, b + o), when o is one constant for a channel or all."""

    def pattern(op: Any, x: Any, w: Any, o: Any, b: Any = None) -> Any:
        conv = op.either("Conv", "ConvTranspose")(x, w, b).named("conv")
        return op.either("Add", "Sub")(conv, o).named("shift")

    def check(w: Operand, o: Operand, conv: Node, b: Operand | None) -> Any:
        if w.shape is None or not all(isinstance(size, int) for size in w.shape[:2]):
            return because("the number of channels is not known")
        if (b is not None and not b.constant) or not o.constant:
            return because("the bias is not constant")
        rank = len(w.shape)
        channels = int(w.shape[0]) if conv.op_type == "Conv" else None  # type: ignore[arg-type]
        if channels is None:
            channels = int(w.shape[1]) * conv.attribute("group", 1)  # type: ignore[arg-type]
        return channel_vector(o, channels, rank) is not None or because("o is not per channel")

    def replace(
        op: Any, x: Operand, w: Operand, b: Operand | None, o: Operand, conv: Node, shift: Node
    ) -> Any:
        shape = w.shape or ()
        channels = shape[0] if conv.op_type == "Conv" else shape[1] * conv.attribute("group", 1)
        offsets = channel_vector(o, int(channels), len(shape))  # type: ignore[arg-type]
        if offsets is None or (shift.op_type == "Sub" and shift.inputs[1] is not o.value):
            return None
        offsets = -offsets if shift.op_type == "Sub" else offsets
        bias = offsets if b is None else (b.array + offsets).astype(offsets.dtype)
        return op.node(conv.op_type, (x, w, np.ascontiguousarray(bias)), 1, "", attributes_of(conv))


class FusePadConv(Rule):
    """Conv(Pad(x, zeros around)) -> Conv(x) with larger pads; pools likewise where equal."""

    def pattern(op: Any, x: Any, w: Any, p: Any = None, z: Any = None, b: Any = None) -> Any:
        return op.Conv(op.Pad(x, p, z).named("pad"), w, b).named("conv")

    def check(pad: Node, conv: Node, unit: Unit) -> Any:
        return _pads(pad, conv, unit) is not None or because("the padding is not zeros around")

    def replace(
        op: Any, x: Operand, w: Operand, b: Operand | None, pad: Node, conv: Node, unit: Unit
    ) -> Any:
        attributes = attributes_of(conv)
        attributes.pop("auto_pad", None)
        attributes["pads"] = _pads(pad, conv, unit)
        return op.Conv(x, w, b, **attributes)


class FusePadPool(Rule):
    """AveragePool(Pad(x, zeros around), count_include_pad) -> AveragePool(x) with larger pads."""

    def pattern(op: Any, x: Any, p: Any = None, z: Any = None) -> Any:
        return op.AveragePool(op.Pad(x, p, z).named("pad")).named("pool")

    def check(pad: Node, pool: Node, unit: Unit) -> Any:
        if pool.attribute("ceil_mode", 0):
            return because("the last window may hang over")
        pads = pool.attribute("pads", ())
        if any(pads) and not pool.attribute("count_include_pad", 0):
            return because("own padding is not counted")
        found = _pads(pad, pool, unit)
        if found is None:
            return because("the padding is not zeros around")
        kernel = pool.attribute("kernel_shape", ())
        return all(
            size > max(found[axis], found[axis + len(kernel)]) for axis, size in enumerate(kernel)
        ) or because("the padding is wider than the window")

    def replace(op: Any, x: Operand, pad: Node, pool: Node, unit: Unit) -> Any:
        attributes = attributes_of(pool)
        attributes.pop("auto_pad", None)
        attributes |= {"pads": _pads(pad, pool, unit), "count_include_pad": 1}
        return op.AveragePool(x, **attributes)


def _pads(pad: Node, conv: Node, unit: Unit) -> list[int] | None:
    """Pads of a Conv that do what a Pad before it does too; None where there are none such."""
    if pad.attribute("mode", "constant") != "constant" or len(pad.inputs) > 3:
        return None
    if conv.attribute("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        return None
    amounts = unit.integers(pad, "pads")
    number = unit.parameter(pad, "value" if unit.opset < 11 else "constant_value", 0.0)
    if amounts is None or number is UNKNOWN or np.any(np.asarray(number) != 0):
        return None
    rank = len(amounts) // 2
    begin, end = amounts[:rank], amounts[rank:]
    if any(begin[:2]) or any(end[:2]) or min(amounts) < 0 or rank < 3:
        return None
    own = conv.attribute("pads") or (0,) * (2 * (rank - 2))
    if conv.attribute("auto_pad", "NOTSET") == "VALID":
        own = (0,) * (2 * (rank - 2))
    return [a + b for a, b in zip(own, (*begin[2:], *end[2:]), strict=True)]


def fuse_convolution(unit: Unit) -> bool:
    """Move what is linear around a convolution into it."""
    return bool(
        apply_rules(
            unit,
            FuseConvNormalization,
            FuseConvScale,
            FuseConvShift,
            FusePadConv,
            FusePadPool,
        )
    )
