# mypy: disable-error-code="misc, no-any-return"
"""Tensors made larger or smaller at their edges."""

from typing import Any

import numpy as np

from sardonyx.dims import Size, minimum
from sardonyx.dtypes import DataType
from sardonyx.errors import ConversionError, EvaluationError, InferenceError
from sardonyx.graph import Attribute, AttributeType, Node, Tensor, Value
from sardonyx.ops.allocate import count_up
from sardonyx.ops.build import Builder
from sardonyx.ops.early_opsets import known_rank
from sardonyx.ops.element_type import constant_like
from sardonyx.ops.fact import Fact, axis_of, require_room, tensor, unknown
from sardonyx.ops.operator import Operator
from sardonyx.ops.parameters import drop_unused, to_attribute, to_input
from sardonyx.ops.precision import Array
from sardonyx.ops.shape import known_axes

_MODES = ("constant", "reflect", "edge", "wrap")


class Pad(Operator):
    """Elements put before and behind each dimension; negative amounts take some away."""

    signatures = (
        "1(data: T, mode: string = 'constant', paddings: ints, value: float = 0.0) -> output: T; "
        "T: floats3",
        "2(data: T, mode: string = 'constant', pads: ints, value: float = 0.0) -> output: T; T: "
        "floats3",
        "11(data: T, pads: tensor(int64), constant_value?: T, mode: string = 'constant') -> "
        "output: T; T: numeric3",
        "13(data: T, pads: tensor(int64), constant_value?: T, mode: string = 'constant') -> "
        "output: T; T: all",
        "18(data: T, pads: tensor(int64), constant_value?: T, axes?: Tind, mode: string = "
        "'constant') -> output: T; T: all; Tind: int32 int64",
        "19(data: T, pads: tensor(int64), constant_value?: T, axes?: Tind, mode: string = "
        "'constant') -> output: T; T: all; Tind: int32 int64",
        "21(data: T, pads: tensor(int64), constant_value?: T, axes?: Tind, mode: string = "
        "'constant') -> output: T; T: all float8s int4s; Tind: int32 int64",
        "23(data: T, pads: tensor(int64), constant_value?: T, axes?: Tind, mode: string = "
        "'constant') -> output: T; T: all float8s int4s float4e2m1; Tind: int32 int64",
        "24(data: T, pads: tensor(int64), constant_value?: T, axes?: Tind, mode: string = "
        "'constant') -> output: T; T: all float8s int4s float4e2m1 float8e8m0; Tind: int32 int64",
        "25(data: T, pads: tensor(int64), constant_value?: T, axes?: Tind, mode: string = "
        "'constant') -> output: T; T: all float8s int4s int2s float4e2m1 float8e8m0; Tind: int32 "
        "int64",
    )

    def infer(
        x: Fact,
        pads: Fact,
        constant_value: Fact | None = None,
        axes: Fact | None = None,
        *,
        mode: str,
    ) -> Fact:
        if mode not in _MODES:
            raise InferenceError(f"mode '{mode}' is not one of {', '.join(_MODES)}")
        amounts = pads.sizes()
        if x.shape is None:
            known = amounts is not None and axes is None
            return unknown(len(amounts or ()) // 2 if known else None, x.dtype)
        along = known_axes(axes, len(x.shape)) if axes else list(range(len(x.shape)))
        if along is None or amounts is None:
            return unknown(len(x.shape), x.dtype)
        if len(amounts) != 2 * len(along):
            raise InferenceError(
                f"{len(amounts)} amounts do not pad {len(along)} dimensions of {x}"
            )
        shape = list(x.shape)
        for axis, before, behind in zip(along, amounts, amounts[len(along) :], strict=False):
            size = shape[axis]
            if size is None or before is None or behind is None:
                shape[axis] = None
                continue
            shape[axis] = total = size + before + behind
            if isinstance(total, int) and total < 0:
                raise InferenceError(f"{before} and {behind} take more than there is of {x}")
            if mode != "constant":
                what = f"a dimension of size 0 cannot be padded by '{mode}'"
                require_room(minimum(size - 1, 0) * total, what)
        return tensor(x.dtype, shape)

    def reference(
        x: Array, pads: Array, constant_value: Array | None = None, axes: Array | None = None,
        *, mode: str,
    ) -> Array:  # fmt: skip
        along = range(x.ndim) if axes is None else [axis_of(axis, x.ndim) for axis in axes.tolist()]
        amounts = pads.tolist()
        if len(amounts) != 2 * len(along):
            raise EvaluationError(f"{len(amounts)} amounts do not pad {len(along)} dimensions")
        places = [np.arange(size) for size in x.shape]
        for index, axis in enumerate(along):
            before, behind = amounts[index], amounts[index + len(along)]
            total = x.shape[axis] + before + behind
            if total < 0:
                raise EvaluationError(f"{before} and {behind} take more than {x.shape[axis]}")
            places[axis] = count_up(total) - before
        if mode == "constant":
            return _surround(x, places, constant_value)
        sources = [_source(place, size, mode) for place, size in zip(places, x.shape, strict=True)]
        return x[np.ix_(*sources)] if sources else x.copy()

    def upgrade_1(node: Node, build: Builder) -> None:
        node.set_attribute(
            "pads", Attribute("pads", node.attribute("paddings"), AttributeType.INTS)
        )
        del node.attributes["paddings"]

    def upgrade_2(node: Node, build: Builder) -> None:
        number = node.attribute("value", 0.0)
        node.attributes.pop("value", None)
        to_input(node, build, "pads", 1)
        if number and (x := node.inputs[0]) is not None:
            node.set_inputs([*node.inputs, constant_like(build, number, x)])

    def downgrade_19(node: Node, build: Builder) -> Value | None:
        if node.attribute("mode", "constant") != "wrap":
            return None
        x, pads, _, axes = [*node.inputs, None, None][:4]
        return _wrapped(build, x, pads, axes)

    def downgrade_18(node: Node, build: Builder) -> None:
        if len(node.inputs) < 4 or node.inputs[3] is None:
            node.set_inputs(node.inputs[:3])
            return
        x, pads, constant_value, axes = node.inputs
        inputs = [x, _all_amounts(build, x, pads, axes), constant_value]
        node.set_inputs(inputs if constant_value is not None else inputs[:2])

    def downgrade_11(node: Node, build: Builder) -> None:
        number = build.known(node.inputs[2]) if len(node.inputs) > 2 else None
        if number is None and len(node.inputs) > 2 and node.inputs[2] is not None:
            raise ConversionError("the value to pad with is computed, and must be a constant")
        filler = node.inputs[2] if len(node.inputs) > 2 else None
        node.set_inputs(node.inputs[:2])
        drop_unused(filler)
        to_attribute(node, build, 1, "pads")
        if number is not None:
            node.set_attribute("value", float(number.reshape(-1)[0]))

    def downgrade_2(node: Node, build: Builder) -> None:
        node.set_attribute(
            "paddings", Attribute("paddings", node.attribute("pads"), AttributeType.INTS)
        )
        del node.attributes["pads"]


def _all_amounts(build: Builder, x: Any, pads: Any, axes: Any) -> Value:
    """Amounts for some dimensions as amounts for all: zero for the others."""
    along = build.Cast(axes, to=int(DataType.INT64))
    rank = build.Shape(build.Shape(x))
    zeros = build.ConstantOfShape(rank, value=Tensor(np.zeros(1, np.int64)))
    equal = {"num_outputs": 2} if build.opset >= 18 else {}
    halves = [
        build.ScatterElements(zeros, along, half) for half in build.Split(pads, outputs=2, **equal)
    ]
    return build.Concat(*halves, axis=0)


def _wrapped(build: Builder, x: Any, pads: Any, axes: Any) -> Value:
    """A tensor repeated around its edges: along each dimension, positions modulo its size."""
    rank = known_rank(x)
    if rank is None:
        raise ConversionError("mode 'wrap' begins with opset 19, and the rank is not known")
    amounts = pads if axes is None else _all_amounts(build, x, pads, axes)
    shape = build.Shape(x)
    result = build.Identity(x)
    for axis in range(rank):
        size = build.Gather(shape, axis)
        end = build.Add(size, build.Gather(amounts, rank + axis))
        places = build.Range(build.Neg(build.Gather(amounts, axis)), end, 1)
        result = build.Gather(result, build.Mod(places, size), axis=axis)
    return result


def _surround(x: Array, places: list[Array], constant_value: Array | None) -> Array:
    """Elements at the places that lie inside, a constant elsewhere."""
    if constant_value is not None:
        fill = constant_value.reshape(-1)[0]
    else:
        fill = "" if x.dtype == object else np.zeros((), x.dtype)
    result = np.full([len(place) for place in places], fill, x.dtype)
    inside = [(place >= 0) & (place < size) for place, size in zip(places, x.shape, strict=True)]
    target = tuple(slice(*_span(mask)) for mask in inside)
    source = tuple(slice(*_span(mask, place)) for mask, place in zip(inside, places, strict=True))
    result[target] = x[source]
    return result


def _span(mask: Array, numbers: Array | None = None) -> tuple[int, int]:
    """Where a run of true elements begins and ends, or the numbers there."""
    found = np.flatnonzero(mask)
    if found.size == 0:
        return 0, 0
    first, last = (
        (found[0], found[-1]) if numbers is None else (numbers[found[0]], numbers[found[-1]])
    )
    return int(first), int(last) + 1


def _source(place: Array, size: int, mode: str) -> Array:
    """The positions inside a dimension that positions around it stand for."""
    if size == 0 and len(place):
        raise EvaluationError(f"a dimension of size 0 cannot be padded by '{mode}'")
    match mode:
        case "edge":
            return np.clip(place, 0, size - 1)
        case "wrap":
            return place % max(size, 1)
        case "reflect":
            period = max(2 * (size - 1), 1)
            there = place % period
            return np.minimum(there, period - there) if size > 1 else np.zeros_like(place)
    raise EvaluationError(f"mode '{mode}' is not one of {', '.join(_MODES)}")


class CenterCropPad(Operator):
    """Dimensions cut or padded with zeros to given sizes, as evenly at both ends as possible."""

    signatures = (
        "18(input_data: T, shape: Tind, axes?: ints) -> output_data: T; T: all; Tind: int32 int64",
    )

    def infer(x: Fact, shape: Fact, axes: tuple[int, ...] | None) -> Fact:
        if x.shape is None:
            return unknown(None, x.dtype)
        along = (
            range(len(x.shape)) if axes is None else [axis_of(item, len(x.shape)) for item in axes]
        )
        wanted = shape.sizes()
        sizes: list[Size | None] = list(x.shape)
        if wanted is not None and len(wanted) != len(along):
            raise InferenceError(f"{len(wanted)} sizes do not fit {len(along)} dimensions of {x}")
        for axis, size in zip(along, wanted or (None,) * len(along), strict=True):
            sizes[axis] = size
        return tensor(x.dtype, sizes)

    def reference(x: Array, shape: Array, axes: tuple[int, ...] | None) -> Array:
        along = range(x.ndim) if axes is None else [axis_of(item, x.ndim) for item in axes]
        places = [np.arange(size) for size in x.shape]
        for axis, size in zip(along, shape.tolist(), strict=True):
            excess = x.shape[axis] - size
            start = excess // 2 if excess >= 0 else -(-excess // 2)
            places[axis] = start + count_up(size)
        return _surround(x, places, None)

    def function(build: Builder, x: Value, shape: Value, axes: tuple[int, ...] | None) -> Value:
        """A slice of the middle, then zeros around it; one of the two changes nothing."""
        sizes = build.Shape(x)
        wanted = build.Cast(shape, to=int(DataType.INT64))
        if axes is not None:
            wanted = build.ScatterElements(sizes, list(axes), wanted)
        start = build.Div(build.Max(build.Sub(sizes, wanted), [0]), [2])
        middle = build.Slice(x, start, build.Add(start, build.Min(sizes, wanted)))
        lack = build.Max(build.Sub(wanted, sizes), [0])
        before = build.Div(lack, [2])
        return build.Pad(middle, build.Concat(before, build.Sub(lack, before), axis=0))
