# mypy: disable-error-code="no-any-return"
"""Sampling of images at a grid's places, said with operators that gather pixels."""

from itertools import product
from typing import Any

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.graph import Value
from sardonyx.ops.build import Builder
from sardonyx.ops.element_type import cast_like

CUBIC = -0.75
"""The coefficient of cubic convolution in grid sampling."""


class Sampler:
    """GridSample built of operators that gather pixels: for ranks and opsets without it."""

    def __init__(
        self, build: Builder, x: Value, grid: Value, rank: int, align: bool, mode: str, padding: str
    ) -> None:
        self.build, self.x, self.grid, self.rank = build, x, grid, rank
        self.align, self.mode, self.padding = align, mode, padding

    def number(self, value: float) -> Any:
        """A constant in the grid's element type."""
        return cast_like(self.build, self.build.constant(np.float32(value)), self.grid)

    def result(self) -> Value:
        """The sampled image."""
        op = self.build
        shape = op.Shape(self.x)
        lines = [self.line(axis, op.Gather(shape, [axis + 2])) for axis in range(self.rank)]
        flat = op.Reshape(self.x, op.Concat(op.Slice(shape, [0], [2]), [-1], axis=0))
        total: Any = None
        for combination in product(*lines):
            index, weight, outside = combination[0]
            for axis, (position, factor, beyond) in enumerate(combination[1:], 1):
                size = op.Gather(shape, [axis + 2])
                index = op.Add(op.Mul(index, size), position)
                weight, outside = op.Mul(weight, factor), op.Or(outside, beyond)
            pixel = self.pixels(flat, index)
            if self.mode != "nearest":
                pixel = op.Mul(cast_like(op, pixel, self.grid), self.beside(weight))
            if self.padding == "zeros":
                nothing = cast_like(op, op.constant(np.float32(0)), pixel)
                pixel = op.Where(self.beside(outside), nothing, pixel)
            total = pixel if total is None else op.Add(total, pixel)
        places = op.Slice(op.Shape(self.grid), [1], [-1])
        wanted = op.Concat(op.Slice(shape, [0], [2]), places, axis=0)
        return op.Reshape(cast_like(op, total, self.x), wanted)

    def beside(self, value: Value) -> Value:
        """Something for each place, to be combined with every channel."""
        if self.build.opset < 13:
            return self.build.Unsqueeze(value, axes=[1])
        return self.build.Unsqueeze(value, [1])

    def pixels(self, flat: Value, index: Value) -> Value:
        """The pixels at an index into all of an image, for each channel."""
        op = self.build
        spread = op.Slice(op.Shape(flat), [0], [2])
        wanted = op.Concat(spread, [1], axis=0)
        return op.GatherElements(flat, op.Expand(self.beside(index), wanted), axis=2)

    def line(self, axis: int, size: Value) -> list[tuple[Any, Any, Any]]:
        """The neighbours along one dimension: positions, weights, whether they lie outside."""
        op = self.build
        column = op.Gather(self.grid, self.rank - 1 - axis, axis=-1)
        batch = op.Slice(op.Shape(self.grid), [0], [1])
        place = op.Reshape(column, op.Concat(batch, [-1], axis=0))
        extent = cast_like(op, size, self.grid)
        last = op.Sub(extent, self.number(1))
        moved = op.Add(place, self.number(1))
        if self.align:
            place = op.Mul(op.Div(moved, self.number(2)), last)
        else:
            place = op.Div(op.Sub(op.Mul(moved, extent), self.number(1)), self.number(2))
        if self.mode == "nearest":
            place = op.Round(place)
        if self.mode != "cubic":
            place = self.brought_in(place, extent, last)
        if self.mode == "nearest":
            return [self.pixel(place, self.number(1), extent, last)]
        first = op.Floor(place)
        rest = op.Sub(place, first)
        steps = range(2) if self.mode == "linear" else range(-1, 3)
        return [
            self.pixel(op.Add(first, self.number(step)), self.weight(rest, step), extent, last)
            for step in steps
        ]

    def brought_in(self, place: Value, extent: Value, last: Value) -> Value:
        """Positions moved to the border of the image, or reflected at it."""
        op = self.build
        if self.padding == "zeros":
            return place
        low = self.number(0 if self.align else -0.5)
        high = op.Sub(last, low)
        if self.padding == "border":
            inner = op.Min(op.Max(place, self.number(0)), last)
        else:
            inner = self.reflected(place, low, op.Max(op.Sub(high, low), self.number(1)))
        outside = op.Or(op.Less(place, low), op.Greater(place, high))
        return op.Where(outside, inner, place)

    def reflected(self, place: Value, low: Value, extent: Value) -> Value:
        """Positions thrown back at both ends of an extent until they lie within it."""
        op = self.build
        period = op.Mul(extent, self.number(2))
        there = op.Mod(op.Sub(place, low), period, fmod=1)
        there = op.Where(op.Less(there, self.number(0)), op.Add(there, period), there)
        return op.Add(low, op.Min(there, op.Sub(period, there)))

    def weight(self, rest: Value, step: int) -> Value:
        """The weight of a neighbour some steps away."""
        op = self.build
        distance = op.Abs(op.Sub(rest, self.number(step)))
        if self.mode == "linear":
            return op.Sub(self.number(1), distance)
        powers = (CUBIC, -5 * CUBIC, 8 * CUBIC, -4 * CUBIC)
        if step in (0, 1):
            powers = (CUBIC + 2, -(CUBIC + 3), 0.0, 1.0)
        total = self.number(powers[0])
        for power in powers[1:]:
            total = op.Add(op.Mul(total, distance), self.number(power))
        return total

    def pixel(
        self, position: Value, weight: Value, extent: Value, last: Value
    ) -> tuple[Any, Any, Any]:
        """A neighbour: an index that exists, its weight, and whether it lies outside."""
        op = self.build
        zero = self.number(0)
        # Positions are whole here, and a NaN lies nowhere.
        inside = op.And(op.Greater(position, self.number(-1)), op.Less(position, extent))
        beyond = op.Not(inside)
        if self.padding == "reflection":
            low = self.number(0 if self.align else -0.5)
            span = op.Max(last, self.number(1)) if self.align else extent
            position = op.Where(beyond, self.reflected(position, low, span), position)
        place = op.Where(op.Greater(position, zero), op.Min(position, last), zero)
        index = op.Cast(place, to=int(DataType.INT64))
        return index, weight, beyond
