"""Convolutions over any number of spatial axes, channels last, in register tiles.

A tile is mr pixels of a row by nr output channels; every tap of the filter adds its products to it.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sardonyx.compiler.constants import constant_array
from sardonyx.compiler.forms import Convolution
from sardonyx.compiler.fuse import Fusion, Group
from sardonyx.compiler.kernels.blocks import PANEL, Lines, blocked_kernel
from sardonyx.compiler.kernels.depthwise import depthwise_calls
from sardonyx.compiler.kernels.image import N, place_names, read_image
from sardonyx.compiler.kernels.nest import parallel_kernel
from sardonyx.compiler.kernels.reader import Call, Packed, Reader, Scratch, pack
from sardonyx.compiler.kernels.tile import (
    ACCUMULATORS,
    PAIRS,
    Arithmetic,
    Pixel,
    Tile,
    accumulated,
    arithmetic_of,
    choose_tile,
    guarded,
    pack_columns,
    suits_pairs,
    tile_statements,
)
from sardonyx.compiler.kernels.winograd import winograd_calls
from sardonyx.compiler.kernels.winograd_filters import suits
from sardonyx.compiler.targets import Target
from sardonyx.dims import Size, ceil_divide, product, symbol
from sardonyx.dtypes import DataType
from sardonyx.loops.build import nest
from sardonyx.loops.nodes import (
    Binary,
    Buffer,
    Cast,
    Kernel,
    Kind,
    Load,
    Loop,
    Register,
    Statement,
    Store,
    Value,
)
from sardonyx.loops.rewrite import merge_axes
from sardonyx.record import record

G, C = "%g", "%ch"
DEPTH = 32
"""Products of a piece of a sum: errors grow from one convolution to the next."""
USUAL_WIDTH = 28
"""Pixels of a row, to choose a tile where nobody knows."""


@record
class _Problem:
    form: Convolution
    group: Group
    reader: Reader
    tile: Tile
    arithmetic: Arithmetic
    right: Buffer
    sums: Buffer | None
    """For each output channel what its weights add up to, times the zero point if that is known."""
    pixel: Pixel
    taps: tuple[int, ...]
    depth: int
    """Input channels of a group, or words of them."""
    columns: int
    """Output channels of a group."""

    @property
    def names(self) -> list[str]:
        """Names of the places along spatial axes."""
        return place_names(len(self.taps))

    @property
    def steps(self) -> list[tuple[str, int]]:
        """Loops over the taps of a filter."""
        return [(f"%t{axis}", size) for axis, size in enumerate(self.taps)]


def convolution_calls(fusion: Fusion, group: Group, target: Target) -> list[Call]:
    """The image padded and channels last, where it is not that already; then the products."""
    form = group.tile
    assert isinstance(form, Convolution)
    reader = Reader(fusion, group)
    weights = constant_array(form.weights)
    columns, depth, *taps = (_known(size) for size in form.weights.shape)
    if weights is not None and len(taps) == 2 and not form.spreads:
        alone = form.groups > 1 and form.groups == columns == form.image.shape[1]
        if (alone and adds_exactly(form)) or suits(form):
            calls, pixel = read_image(reader, form, padded=False)
            make = depthwise_calls if alone else winograd_calls
            return [*calls, *make(group, reader, pixel, weights, target)]
    columns //= form.groups
    rows = _rows(form, taps)
    tile = choose_tile(rows, columns, target, form.dtype)
    arithmetic = arithmetic_of(form.image.dtype, form.weights.dtype, form.dtype)
    if suits_pairs(rows, columns, form.dtype, target):
        arithmetic = PAIRS
    if weights is None or (form.groups > 1 and depth % arithmetic.parts):
        arithmetic = Arithmetic(form.dtype)
    calls, right = _right_side(reader, form, weights, tile, arithmetic)
    sums = _sums(reader, form, weights, arithmetic)
    more, pixel = read_image(reader, form, padded=True, narrow=arithmetic.narrow)
    inner = -(-depth // arithmetic.parts)
    problem = _Problem(
        form, group, reader, tile, arithmetic, right, sums, pixel, tuple(taps), inner, columns
    )
    made = _product_kernel(problem, target)
    work = product(form.shape) * depth * math.prod(taps)
    return [*calls, *more, Call(made, reader.places(made), work)]


def _sums(
    reader: Reader, form: Convolution, weights: NDArray[Any] | None, arithmetic: Arithmetic
) -> Buffer | None:
    """What is taken off each output channel for the image's zero point."""
    if not arithmetic.words or weights is None or form.zero is None:
        return None
    total = weights.sum(tuple(range(1, weights.ndim)), np.int32)
    zero = constant_array(form.zero)
    return reader.packed(Packed.of(total if zero is None else total * zero))


def adds_exactly(form: Convolution) -> bool:
    """Whether a filter's products with a channel can be added up in float32 without a loss."""
    floats = form.image.dtype is DataType.FLOAT
    taps = math.prod(_known(size) for size in form.weights.shape[1:])
    narrow = form.image.dtype is DataType.UINT8 and form.weights.dtype is DataType.INT8
    return floats or (narrow and taps * 255 * 128 < 1 << 24)


def _known(size: Size) -> int:
    assert isinstance(size, int)
    return size


def _rows(form: Convolution, taps: Sequence[int]) -> Size:
    """Pixels that lie in a row; all of them where a filter is a single tap."""
    flat = {*taps, *form.strides} == {1} and not any(form.pads) and not form.spreads
    if flat:
        return product((form.shape[0], *form.shape[2:]))
    return form.shape[-1] if isinstance(form.shape[-1], int) else USUAL_WIDTH


def _packed(weights: NDArray[Any], groups: int, nr: int, arithmetic: Arithmetic) -> NDArray[Any]:
    """[M, C / groups, taps] -> [groups, panels, taps * C / groups, nr]."""
    count = len(weights) // groups
    columns = weights.reshape(groups, count, *weights.shape[1:])
    columns = columns.transpose(0, *range(3, columns.ndim), 2, 1)
    return pack_columns(arithmetic.pack(columns).reshape(groups, -1, count), nr)


def _right_side(
    reader: Reader, form: Convolution, weights: NDArray[Any] | None, tile: Tile,
    arithmetic: Arithmetic,
) -> tuple[list[Call], Buffer]:  # fmt: skip
    """Weights as [groups, panels, taps * C / groups, nr], packed before or by a call."""
    groups = form.groups
    if weights is not None:
        inner = -(-weights.shape[1] // arithmetic.parts) * math.prod(weights.shape[2:])
        kind = DataType.INT32 if arithmetic.words else form.weights.dtype
        packing = partial(_packed, groups=groups, nr=tile.nr, arithmetic=arithmetic)
        shape = (groups, -(-weights.shape[0] // groups // tile.nr), inner, tile.nr)
        return [], reader.packed(pack(form.weights, shape, kind, packing))
    channels, depth, *taps = (_known(size) for size in form.weights.shape)
    count = channels // groups
    panels = -(-count // tile.nr)
    right = reader.scratch(Scratch((groups, panels, *taps, depth, tile.nr), form.weights.dtype))
    steps = [(f"%t{axis}", size) for axis, size in enumerate(taps)]
    column = symbol(PANEL) * tile.nr + symbol("%v")
    inner = tuple(symbol(name) for name, _ in steps)
    index = (symbol(G) * count + column, symbol(C), *inner)
    place = (symbol(G), symbol(PANEL), *inner, symbol(C), symbol("%v"))
    body = guarded(column, count, tile, Store(right, place, reader.value(form.weights, index)))
    loops = nest([*steps, (C, depth)], (Loop("%v", tile.nr, body, Kind.VECTOR),))
    made = parallel_kernel([(G, groups), (PANEL, panels)], loops)
    flat = Buffer(right.memory, right.dtype, (groups, panels, math.prod(taps) * depth, tile.nr),
                  (right.strides[0], right.strides[1], tile.nr, 1))  # fmt: skip
    return [Call(made, reader.places(made), product(form.weights.shape))], flat


def _product_kernel(problem: _Problem, target: Target) -> Kernel:
    form, group, reader = problem.form, problem.group, problem.reader
    batch, _, *sizes = form.shape
    reader.computed[form] = lambda index: accumulated(0, 0, form.dtype)
    result = reader.buffer(group.root)
    places = tuple(map(symbol, problem.names))
    index = (symbol(N), symbol(C), *places)
    probe: tuple[Statement, ...] = (
        Register(ACCUMULATORS, form.dtype, (1, 1), 0),
        Store(result, index, reader.value(group.root, index)),
        Store(result, index, _left(problem, symbol(N), places, 0)),
    )
    reader.forget()
    named = list(zip(problem.names, sizes, strict=True))
    axes, gone = merge_axes([(N, batch), *named], probe)
    row_name, rows = axes.pop() if axes else (problem.names[-1], 1)
    lines = None
    size = 4 * problem.depth * form.groups
    if row_name == problem.names[-1] and axes and axes[-1][0] == problem.names[-2:][0]:
        width = sizes[-1] if isinstance(sizes[-1], int) else USUAL_WIDTH // 2
        across = width * form.strides[-1]
        count = target.second_cache // 2 // max(size * across * form.strides[-2], 1)
        lines = Lines(*axes.pop(), max(1, min(count, 8)))
    if form.groups == 1:
        gone = gone | {G: 0}
    outer = [*axes, (G, form.groups)] if form.groups > 1 else axes
    panels = ceil_divide(problem.columns, problem.tile.nr)
    in_block = max(1, target.second_cache // 2 // (size * problem.tile.mr))

    def one_tile(tile: Tile, row_at: Callable[[Size], Size]) -> list[Statement]:
        def at(row: Size) -> tuple[Size, ...]:
            """The image and the places of a tile's row."""
            names = (N, *problem.names)
            return tuple(row_at(row) if name == row_name else symbol(name) for name in names)

        return _one_tile(problem, tile, at)

    seldom_low = len(sizes) > 1 and not any(isinstance(size, int) for size in sizes)
    return blocked_kernel(
        outer, gone, rows, problem.tile, panels, in_block, one_tile, lines, seldom_low=seldom_low
    )


def _left(problem: _Problem, batch: Size, places: Sequence[Size], channel: Size) -> Value:
    """The pixel that a tap meets for a place of the result."""
    form = problem.form
    met = tuple(
        place * step + symbol(name) * spread
        for place, step, (name, _), spread in zip(
            places, form.strides, problem.steps, form.dilations, strict=True
        )
    )
    pixel = problem.pixel(batch, met, symbol(G) * problem.depth + channel)
    if form.zero is None or problem.arithmetic.words:
        return pixel
    zero = problem.reader.value(form.zero, ())
    return Binary("sub", Cast(pixel, form.dtype), zero)


def _one_tile(
    problem: _Problem, tile: Tile, at: Callable[[Size], tuple[Size, ...]]
) -> list[Statement]:
    form, reader, root = problem.form, problem.reader, problem.group.root
    result = reader.buffer(root)

    def left(row: Size) -> Value:
        batch, *places = at(row)
        return _left(problem, batch, places, symbol(C))

    def right(column: Size) -> Value:
        tap: Size = 0
        for name, size in problem.steps:
            tap = tap * size + symbol(name)
        step = tap * problem.depth + symbol(C)
        return Load(problem.right, (symbol(G), symbol(PANEL), step, column))

    def store(row: Size, column: Size) -> tuple[Statement, ...]:
        reader.forget()
        place = symbol(PANEL) * tile.nr + column
        batch, *places = at(row)
        channel = symbol(G) * problem.columns + place
        index = (batch, channel, *places)
        total: Value = accumulated(row, column, form.dtype)
        if problem.sums is not None and form.zero is not None:
            more: Value = Load(problem.sums, (channel,))
            if constant_array(form.zero) is None:
                more = Binary("mul", reader.value(form.zero, ()), more)
            total = Binary("sub", total, more)
        reader.computed[form] = lambda _: total
        made = Store(result, index, reader.value(root, index))
        return guarded(place, problem.columns, tile, made)

    steps = [*problem.steps, (C, problem.depth)]
    return tile_statements(tile, steps, left, right, store, problem.arithmetic, DEPTH)
