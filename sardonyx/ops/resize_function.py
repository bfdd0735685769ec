# mypy: disable-error-code="no-any-return"
"""Resampling said with products and gathering, for what older versions of Resize do not know."""

from typing import Any

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.graph import Value
from sardonyx.ops.build import Builder
from sardonyx.ops.element_type import cast_like, constant_like
from sardonyx.ops.interpolate import Method

_FLOAT, _INT64 = int(DataType.FLOAT), int(DataType.INT64)
_ROUNDINGS = {"floor": "Floor", "ceil": "Ceil"}


class Resampler:
    """Builds the resampling of some dimensions, from sizes or from factors, known or computed."""

    def __init__(
        self, build: Builder, x: Value, roi: Value | None, scales: Value | None,
        sizes: Value | None, axes: list[int], method: Method, policy: str,
    ) -> None:  # fmt: skip
        self.build, self.x, self.axes, self.method, self.policy = build, x, axes, method, policy
        crop = method.coordinates == "tf_crop_and_resize"
        self.roi = build.Cast(roi, to=_FLOAT) if crop and roi is not None else None
        self.scales, self.sizes = scales, sizes
        shape = build.Shape(x)
        self.lengths = [build.Gather(shape, axis) for axis in axes]
        self.ratio = self._common_ratio() if sizes is not None and policy != "stretch" else None

    def _common_ratio(self) -> Value:
        """The ratio all dimensions get, so that their proportions stay."""
        op = self.build
        lengths = op.Concat(*(op.Reshape(item, [1]) for item in self.lengths), axis=0)
        ratios = op.Div(op.Cast(self.sizes, to=_FLOAT), op.Cast(lengths, to=_FLOAT))
        reduce = op.ReduceMin if self.policy == "not_larger" else op.ReduceMax
        return reduce(ratios, keepdims=0)

    def along(self, result: Value, place: int, rank: int) -> Value:
        """`result` resampled along one of the dimensions."""
        op, axis = self.build, self.axes[place]
        count, scale, width = self._target(place)
        length = op.Cast(self.lengths[place], to=_FLOAT)
        places = self._positions(place, length, count, scale, width)
        last = op.Sub(length, np.float32(1))
        if self.method.mode == "nearest":
            index = op.Max(op.Min(self._rounded(places), last), np.float32(0))
            made = op.Gather(result, op.Cast(index, to=_INT64), axis=axis)
        else:
            matrix = cast_like(op, self._matrix(places, place, last, scale), self.x)
            order = [*range(axis), *range(axis + 1, rank), axis]
            moved = op.MatMul(op.Transpose(result, perm=order), op.Transpose(matrix))
            made = op.Transpose(moved, perm=np.argsort(order).tolist())
        if self.method.coordinates != "tf_crop_and_resize":
            return made
        outside = op.Or(op.Less(places, np.float32(0)), op.Greater(places, last))
        mask = op.Reshape(outside, [-1 if other == axis else 1 for other in range(rank)])
        return op.Where(mask, constant_like(op, self.method.extrapolation, self.x), made)

    def _target(self, place: int) -> tuple[Any, Any, Any]:
        """The new size, the factor, and the size as a fraction."""
        op = self.build
        length = op.Cast(self.lengths[place], to=_FLOAT)
        if self.ratio is not None:
            width = op.Mul(self.ratio, length)
            return op.Cast(op.Floor(op.Add(width, np.float32(0.5))), to=_INT64), self.ratio, width
        if self.sizes is not None:
            count = op.Gather(self.sizes, place)
            width = op.Cast(count, to=_FLOAT)
            return count, op.Div(width, length), width
        scale = op.Gather(self.scales, place)
        width = op.Mul(scale, length)
        part = width
        if self.roi is not None:
            start, end = self._region(place)
            part = op.Mul(width, op.Sub(end, start))
        return op.Cast(op.Floor(part), to=_INT64), scale, width

    def _region(self, place: int) -> tuple[Any, Any]:
        op = self.build
        return op.Gather(self.roi, place), op.Gather(self.roi, place + len(self.axes))

    def _positions(
        self, place: int, length: Value, count: Value, scale: Value, width: Value
    ) -> Value:
        """Where each position of the result lies in the original dimension."""
        op = self.build
        half, one = np.float32(0.5), np.float32(1)
        steps = op.Cast(op.Range(0, count, 1), to=_FLOAT)
        total = op.Cast(count, to=_FLOAT)
        several = op.Greater(total, one)
        middle = op.Sub(self._back(op.Add(steps, half), length, scale, width), half)
        match self.method.coordinates:
            case "asymmetric":
                return self._back(steps, length, scale, width)
            case "pytorch_half_pixel":
                return op.Where(several, middle, np.float32(0))
            case "half_pixel_symmetric":
                missing = op.Sub(one, op.Div(total, width))
                return op.Add(op.Mul(op.Mul(length, half), missing), middle)
            case "align_corners":
                gaps = op.Sub(width, one)
                spread = op.Div(op.Mul(steps, op.Sub(length, one)), gaps)
                return op.Where(op.Equal(gaps, np.float32(0)), np.float32(0), spread)
            case "tf_crop_and_resize":
                start, end = (op.Mul(item, op.Sub(length, one)) for item in self._region(place))
                gaps = op.Max(op.Sub(total, one), one)
                spread = op.Add(start, op.Div(op.Mul(steps, op.Sub(end, start)), gaps))
                return op.Where(several, spread, op.Mul(op.Add(start, end), half))
        return middle

    def _back(self, places: Value, length: Value, scale: Value, width: Value) -> Value:
        op = self.build
        if self.sizes is not None and self.ratio is None:
            return op.Div(op.Mul(places, length), width)
        return op.Div(places, scale)

    def _rounded(self, places: Value) -> Value:
        op = self.build
        match self.method.nearest:
            case "round_prefer_floor":
                return op.Ceil(op.Sub(places, np.float32(0.5)))
            case "round_prefer_ceil":
                return op.Floor(op.Add(places, np.float32(0.5)))
        return getattr(op, _ROUNDINGS[self.method.nearest])(places)

    def _matrix(self, places: Value, place: int, last: Value, scale: Value) -> Value:
        """The weight of every original position for every position of the result."""
        op, method = self.build, self.method
        reach = 1 if method.mode == "linear" else 2
        shrink = op.Min(scale, np.float32(1)) if method.antialias else np.float32(1)
        margin = op.Cast(op.Ceil(op.Div(np.float32(reach), shrink)), to=_INT64)
        beyond = op.Add(margin, 2)
        columns = op.Range(op.Neg(beyond), op.Add(self.lengths[place], beyond), 1)
        numbers = op.Cast(columns, to=_FLOAT)
        distances = op.Mul(op.Sub(numbers, op.Reshape(places, [-1, 1])), shrink)
        weights = self._kernel(op.Abs(distances))
        if method.exclude_outside:
            outside = op.Or(op.Less(numbers, np.float32(0)), op.Greater(numbers, last))
            weights = op.Where(outside, np.float32(0), weights)
        if method.exclude_outside or method.antialias:
            total = op.ReduceSum(weights, [1], keepdims=1)
            empty = op.Equal(total, np.float32(0))
            weights = op.Div(weights, op.Where(empty, np.float32(1), total))
        inside = op.Max(op.Min(numbers, last), np.float32(0))
        row = op.Cast(op.Range(0, self.lengths[place], 1), to=_FLOAT)
        folded = op.Equal(op.Reshape(inside, [-1, 1]), row)
        return op.MatMul(weights, op.Cast(folded, to=_FLOAT))

    def _kernel(self, distance: Value) -> Value:
        """The weight at a distance that is not negative."""
        op, a = self.build, self.method.cubic
        if self.method.mode == "linear":
            return op.Max(op.Sub(np.float32(1), distance), np.float32(0))
        near, far = ((a + 2, -(a + 3), 0.0, 1.0), (a, -5 * a, 8 * a, -4 * a))
        inner, outer = (self._polynomial(distance, factors) for factors in (near, far))
        within = op.Where(op.Less(distance, np.float32(2)), outer, np.float32(0))
        return op.Where(op.Greater(distance, np.float32(1)), within, inner)

    def _polynomial(self, x: Value, factors: tuple[float, ...]) -> Value:
        op = self.build
        total: Any = np.float32(factors[0])
        for factor in factors[1:]:
            total = op.Add(op.Mul(total, x), np.float32(factor))
        return total
