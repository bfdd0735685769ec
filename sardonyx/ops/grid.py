# mypy: disable-error-code="misc, no-any-return"
"""Images sampled at places that a grid names."""

import math
from itertools import product
from typing import Any

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.errors import ConversionError, EvaluationError, InferenceError
from sardonyx.graph import Node, Value
from sardonyx.ops.build import Builder
from sardonyx.ops.early_opsets import known_rank
from sardonyx.ops.element_type import cast_like
from sardonyx.ops.fact import Fact, same_size, tensor, unknown
from sardonyx.ops.grid_function import CUBIC, Sampler
from sardonyx.ops.interpolate import cubic
from sardonyx.ops.operator import Operator
from sardonyx.ops.precision import Array, widen

_OLD_NAMES = {"linear": "bilinear", "cubic": "bicubic"}
_NEW_NAMES = {old: name for name, old in _OLD_NAMES.items()}


class GridSample(Operator):
    """Values of an image at places given for each output pixel, in coordinates from -1 to 1."""

    signatures = (
        "16(X: T1, grid: T2, align_corners: int = 0, mode: string = 'bilinear', padding_mode: "
        "string = 'zeros') -> Y: T1; T1: all15; T2: floats3",
        "20(X: T1, grid: T2, align_corners: int = 0, mode: string = 'linear', padding_mode: "
        "string = 'zeros') -> Y: T1; T1: all15; T2: floats3",
        "22(X: T1, grid: T2, align_corners: int = 0, mode: string = 'linear', padding_mode: "
        "string = 'zeros') -> Y: T1; T1: all; T2: floats",
    )

    def infer(x: Fact, grid: Fact, align_corners: int, mode: str, padding_mode: str) -> Fact:
        if mode not in ("linear", "nearest", "cubic"):
            raise InferenceError(f"mode '{mode}' is not one of linear, nearest, cubic")
        if padding_mode not in ("zeros", "border", "reflection"):
            raise InferenceError(f"'{padding_mode}' is not one of zeros, border, reflection")
        ranks = {fact.rank for fact in (x, grid) if fact.rank is not None}
        if len(ranks) > 1 or min(ranks, default=3) < 3:
            raise InferenceError(f"the grid {grid} does not fit {x}")
        if not ranks:
            return unknown(None, x.dtype)
        rank = ranks.pop()
        image = x.shape or (None,) * rank
        places = grid.shape or (None,) * rank
        same_size(places[-1], rank - 2, f"the grid {grid} does not fit {x}: coordinates")
        batch = same_size(image[0], places[0], f"the grid {grid} does not fit {x}: batches")
        return tensor(x.dtype, (batch, image[1], *places[1:-1]))

    def reference(x: Array, grid: Array, align_corners: int, mode: str, padding_mode: str) -> Array:
        sizes = x.shape[2:]
        if grid.shape[-1] != len(sizes) or grid.shape[0] != x.shape[0]:
            raise EvaluationError(f"a grid of {list(grid.shape)} does not fit {list(x.shape)}")
        places = widen(grid).reshape(grid.shape[0], -1, len(sizes))[..., ::-1]
        lines = []
        for axis, size in enumerate(sizes):
            place = _denormalized(places[..., axis], size, bool(align_corners))
            place = np.rint(place) if mode == "nearest" else place
            if mode != "cubic":
                place = _brought_in(place, size, padding_mode, bool(align_corners))
            lines.append(_neighbours(place, size, mode, padding_mode, bool(align_corners)))
        result = _gathered(x, lines, mode)
        return result.reshape(*x.shape[:2], *grid.shape[1:-1]).astype(x.dtype)

    def function(
        build: Builder, x: Value, grid: Value, align_corners: int, mode: str, padding_mode: str
    ) -> Value:
        rank = known_rank(x) or known_rank(grid)
        if rank is None:
            raise ConversionError("the rank of the image must be declared")
        name = _NEW_NAMES.get(mode, mode)
        return Sampler(build, x, grid, rank - 2, bool(align_corners), name, padding_mode).result()

    def upgrade_16(node: Node, build: Builder) -> None:
        mode = node.attribute("mode", "bilinear")
        node.set_attribute("mode", _NEW_NAMES.get(mode, mode))

    def downgrade_20(node: Node, build: Builder) -> Value | None:
        mode = node.attribute("mode", "linear")
        rank = known_rank(node.inputs[0]) or known_rank(node.inputs[1])
        if rank is None:
            raise ConversionError("before opset 20 only images of rank 4 can be sampled")
        if rank == 4:
            node.set_attribute("mode", _OLD_NAMES.get(mode, mode))
            return None
        align, padding = node.attribute("align_corners", 0), node.attribute("padding_mode", "zeros")
        x, grid = node.inputs
        assert x is not None and grid is not None
        return Sampler(build, x, grid, rank - 2, bool(align), mode, padding).result()


def _denormalized(place: Array, size: int, align: bool) -> Array:
    """Coordinates from -1 to 1 as positions among pixels."""
    return (place + 1) / 2 * (size - 1) if align else ((place + 1) * size - 1) / 2


def _brought_in(place: Array, size: int, padding: str, align: bool) -> Array:
    """Positions outside the image moved to its border, or reflected at it; else left outside."""
    low, high = (0.0, size - 1.0) if align else (-0.5, size - 0.5)
    outside = (place < low) | (place > high)
    match padding:
        case "border":
            return np.where(outside, np.clip(place, 0, size - 1), place)
        case "reflection":
            return np.where(outside, _reflected(place, low, high), place)
    return place


def _reflected(place: Array, low: float, high: float) -> Array:
    extent = high - low
    if extent <= 0:
        return np.full_like(place, low)
    there = np.mod(place - low, 2 * extent)
    return low + np.minimum(there, 2 * extent - there)


Neighbour = tuple[Array, Array, Array]
"""Positions along one dimension, their weights, and which of them are inside the image."""


def _neighbours(place: Array, size: int, mode: str, padding: str, align: bool) -> list[Neighbour]:
    """The pixels along one dimension that each position is made of."""
    if mode == "nearest":
        return [_pixel(place, np.ones_like(place), size, padding, align)]
    first = np.floor(place)
    rest = place - first
    steps = range(2) if mode == "linear" else range(-1, 3)
    found = []
    for step in steps:
        weight = 1 - np.abs(rest - step)
        if mode == "cubic":
            weight = np.where(np.isnan(rest), rest, cubic(rest - step, CUBIC))
        found.append(_pixel(first + step, weight, size, padding, align))
    return found


def _pixel(position: Array, weight: Array, size: int, padding: str, align: bool) -> Neighbour:
    inside = (position >= 0) & (position <= size - 1)
    if padding == "reflection":
        low, high = (0.0, size - 1.0) if align else (-0.5, size - 0.5)
        position = np.where(inside, position, _reflected(position, low, high))
    index = np.clip(np.nan_to_num(position), 0, max(size - 1, 0)).astype(np.int64)
    return index, weight, inside if padding == "zeros" else np.ones_like(inside)


def _gathered(x: Array, lines: list[list[Neighbour]], mode: str) -> Array:
    """The weighted sum over all combinations of neighbours, one of each dimension."""
    flat = x.reshape(*x.shape[:2], math.prod(x.shape[2:]))
    total: Any = 0
    for combination in product(*lines):
        index = np.zeros_like(combination[0][0])
        weight, inside = np.ones_like(combination[0][1]), np.ones_like(combination[0][2])
        for size, (position, factor, within) in zip(x.shape[2:], combination, strict=True):
            index, weight, inside = index * size + position, weight * factor, inside & within
        if flat.shape[2] == 0:
            raise EvaluationError("an image without pixels cannot be sampled")
        values = np.take_along_axis(flat, index[:, None], 2)
        if mode == "nearest":
            nothing = np.array("" if x.dtype == object else 0, x.dtype)
            return np.where(inside[:, None], values, nothing)
        total = total + np.where(inside[:, None], widen(values) * weight[:, None], 0)
    return total


class AffineGrid(Operator):
    """The places an affine map sends the pixels of an image to, in coordinates from -1 to 1."""

    signatures = (
        "20(theta: T1, size: T2, align_corners: int = 0) -> grid: T1; T1: floats; T2: int64",
    )

    def infer(theta: Fact, size: Fact, align_corners: int) -> Fact:
        sizes = size.sizes()
        if sizes is None:
            return unknown(None, theta.dtype)
        if len(sizes) not in (4, 5):
            raise InferenceError(f"an image of rank 4 or 5 is needed, not of {len(sizes)}")
        dimensions = len(sizes) - 2
        if theta.shape is not None:
            what = f"the maps {theta} do not fit images of {dimensions} dimensions"
            if len(theta.shape) != 3:
                raise InferenceError(what)
            same_size(theta.shape[1], dimensions, what)
            same_size(theta.shape[2], dimensions + 1, what)
        batch = same_size(sizes[0], theta.shape and theta.shape[0], "the batches differ")
        return tensor(theta.dtype, (batch, *sizes[2:], dimensions))

    def reference(theta: Array, size: Array, align_corners: int) -> Array:
        batch, _, *spatial = size.tolist()
        if batch != theta.shape[0]:
            raise EvaluationError(f"the batches differ: {batch} against {theta.shape[0]}")
        lines = [_coordinates(length, bool(align_corners)) for length in spatial]
        places = np.stack(np.meshgrid(*lines, indexing="ij")[::-1], -1)
        maps = theta.astype(np.float64)
        linear, shift = maps[:, :, :-1], maps[:, :, -1]
        flat = places.reshape(-1, len(spatial)) @ linear.transpose(0, 2, 1) + shift[:, None]
        return flat.reshape(theta.shape[0], *spatial, len(spatial)).astype(theta.dtype)

    def function(build: Builder, theta: Value, size: Value, align_corners: Any) -> Value:
        """Two dimensions are three of which the first has one pixel and is left out at the end."""
        op = build
        spatial = op.Slice(size, [2], [_MANY])
        three = op.Slice(op.Concat([1], spatial, axis=0), [-3], [_MANY])
        align = op.Cast(op.constant(align_corners), to=int(DataType.BOOL))
        lines: list[Value] = []
        for axis, shape in enumerate(([-1, 1, 1], [1, -1, 1], [1, 1, -1])):
            line = _coordinate_values(op, op.Gather(three, axis), align, theta)
            spread = op.Expand(op.Reshape(line, shape), three)
            lines.insert(0, op.Reshape(spread, [-1, 1]))
        count = op.Slice(op.Shape(theta), [1], [2])
        places = op.Slice(op.Concat(*lines, axis=1), [0], count, [1])
        linear, shift = op.Slice(theta, [0], [-1], [2]), op.Slice(theta, [-1], [_MANY], [2])
        columns = op.MatMul(places, op.Transpose(linear, perm=[0, 2, 1]))
        moved = op.Add(columns, op.Transpose(shift, perm=[0, 2, 1]))
        batch = op.Slice(size, [0], [1])
        return op.Reshape(moved, op.Concat(batch, spatial, count, axis=0))


_MANY = 2**31 - 1


def _coordinates(length: int, align: bool) -> Array:
    """The coordinates of pixels between -1 and 1: of their centres, the outer ones at the ends."""
    steps = np.arange(length, dtype=np.float64)
    if align:
        return np.zeros(length) if length == 1 else 2 * steps / (length - 1) - 1
    return (2 * steps + 1) / max(length, 1) - 1


def _coordinate_values(op: Builder, length: Value, align: Value, like: Value) -> Value:
    """What `_coordinates` computes, out of operators."""
    one, two = (cast_like(op, op.constant(np.float32(item)), like) for item in (1, 2))
    steps = op.Mul(cast_like(op, op.Range(0, length, 1), like), two)
    extent = cast_like(op, length, like)
    outer = op.Sub(op.Div(op.Add(steps, one), extent), one)
    gaps = op.Sub(extent, one)
    inner = op.Sub(op.Div(steps, op.Max(gaps, one)), op.Min(gaps, one))
    return op.Where(align, inner, outer)
