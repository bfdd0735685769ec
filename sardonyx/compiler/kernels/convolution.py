"""Convolutions over two spatial axes, channels last, in register tiles.

A tile is mr pixels of a row by nr output channels; every tap of the filter adds its products to it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sardonyx.compiler.forms import Convolution
from sardonyx.compiler.fuse import CHANNELS_LAST, Fusion, Group
from sardonyx.compiler.kernels.blocks import PANEL, START, Lines, blocked_kernel
from sardonyx.compiler.kernels.nest import parallel_kernel
from sardonyx.compiler.kernels.reader import Call, Packed, Reader, Scratch, aligned, constant_array
from sardonyx.compiler.kernels.tile import (
    ACCUMULATORS,
    LANE,
    ROW,
    Tile,
    accumulated,
    choose_tile,
    guarded,
    over_tile,
    pack_columns,
    tile_statements,
)
from sardonyx.compiler.pages import let_go
from sardonyx.compiler.targets import Target
from sardonyx.dims import Size, ceil_divide, product, symbol
from sardonyx.dtypes import DataType
from sardonyx.loops.build import constant, nest
from sardonyx.loops.nodes import (
    Binary,
    Buffer,
    Guard,
    Kernel,
    Kind,
    Load,
    Loop,
    Register,
    Statement,
    Store,
    Update,
    Value,
)
from sardonyx.loops.rewrite import merge_axes

N, G, Y, X, C, KY, KX = "%n", "%g", "%y", "%x", "%ch", "%ky", "%kx"


Pixel = Callable[[Size, Size, Size, Size], Value]
"""The image's element at batch, row, column and channel, padding counted."""


@dataclass(frozen=True, slots=True)
class _Problem:
    form: Convolution
    tile: Tile
    right: Buffer
    pixel: Pixel

    @property
    def depth(self) -> int:
        """Input channels of a group."""
        size = self.form.weights.shape[1]
        assert isinstance(size, int)
        return size

    @property
    def columns(self) -> int:
        """Output channels of a group."""
        size = self.form.weights.shape[0]
        assert isinstance(size, int)
        return size // self.form.groups


def convolution_calls(fusion: Fusion, group: Group, target: Target) -> list[Call]:
    """The image padded and channels last, where it is not that already; then the products."""
    form = group.tile
    assert isinstance(form, Convolution)
    weights = constant_array(form.weights)
    assert weights is not None
    reader = Reader(fusion, group)
    if form.groups > 1 and form.groups == weights.shape[0] == form.image.shape[1]:
        return _depthwise_calls(fusion, group, reader, weights, target)
    columns = weights.shape[0] // form.groups
    flat = weights.shape[2:] == (1, 1) and form.strides == (1, 1) and not any(form.pads)
    rows = product((form.shape[0], *form.shape[2:])) if flat else form.shape[3]
    tile = choose_tile(rows, columns, target)
    right = reader.packed(Packed(aligned(_packed_weights(weights, form.groups, tile.nr))))
    let_go(weights)
    calls, pixel = _image(fusion, reader, form)
    problem = _Problem(form, tile, right, pixel)
    made = _product_kernel(problem, group, reader, target)
    work = product(form.shape) * problem.depth * int(np.prod(weights.shape[2:]))
    calls.append(Call(made, reader.places(made), work))
    return calls


def _image(fusion: Fusion, reader: Reader, form: Convolution) -> tuple[list[Call], Pixel]:
    """How elements of the image are read, and the call that pads and turns it, where needed."""
    if not any(form.pads) and _is_channels_last(fusion, form):
        return [], lambda n, y, x, c: reader.value(form.image, (n, c, y, x))
    scratch = _padded(reader, form)
    made = _pad_kernel(fusion, reader, form, scratch)
    call = Call(made, reader.places(made), product(scratch.shape))
    return [call], lambda n, y, x, c: Load(scratch, (n, y, x, c))


def _depthwise_calls(
    fusion: Fusion, group: Group, reader: Reader, weights: NDArray[np.float32], target: Target
) -> list[Call]:
    """One filter for each channel: vectors of channels, tiles of pixels in a row."""
    form = group.tile
    assert isinstance(form, Convolution)
    calls, pixel = _image(fusion, reader, form)
    channels, _, kh, kw = weights.shape
    taps = reader.packed(Packed(aligned(weights.reshape(channels, kh, kw).transpose(1, 2, 0))))
    result = reader.buffer(group.root)
    lane = symbol(PANEL) * target.lanes + symbol(LANE)
    row = symbol(ROW)
    y = symbol(Y) * form.strides[0] + symbol(KY) * form.dilations[0]
    x = (symbol(START) + row) * form.strides[1] + symbol(KX) * form.dilations[1]
    products = Binary(
        "mul", pixel(symbol(N), y, x, lane), Load(taps, (symbol(KY), symbol(KX), lane))
    )
    index = (symbol(N), lane, symbol(Y), symbol(START) + row)

    def one_tile(tile: Tile) -> list[Statement]:
        reader.forget()
        reader.computed[form] = lambda _: accumulated(row, symbol(LANE))
        update = Update(ACCUMULATORS, "add", products, (row, symbol(LANE)))
        store = Store(result, index, reader.value(group.root, index))
        first, last = (guarded(lane, channels, tile, item) for item in (update, store))
        return [
            Register(ACCUMULATORS, DataType.FLOAT, (tile.mr, tile.nr), 0.0, lanes=True),
            *nest([(KY, kh), (KX, kw)], over_tile(tile, first)),
            *over_tile(tile, last),
        ]

    batch, _, height, width = form.shape
    tile = Tile(8, 1, target.lanes)
    panels = ceil_divide(channels, target.lanes)
    lines = Lines(Y, height, 4)
    made = blocked_kernel([(N, batch)], {}, width, tile, panels, 1, one_tile, lines)
    return [*calls, Call(made, reader.places(made), product(form.shape) * kh * kw)]


def _is_channels_last(fusion: Fusion, form: Convolution) -> bool:
    """True where the image lies in memory as the kernel wants it."""
    image = form.image
    stored = image in fusion.roots and fusion.order.get(image) == CHANNELS_LAST
    return stored or image in fusion.turned


def _packed_weights(weights: NDArray[np.float32], groups: int, nr: int) -> NDArray[np.float32]:
    """[M, C / groups, kh, kw] -> [groups, panels, kh * kw * C / groups, nr]."""
    channels = weights.shape[0]
    columns = weights.reshape(groups, channels // groups, *weights.shape[1:])
    columns = columns.transpose(0, 3, 4, 2, 1).reshape(groups, -1, channels // groups)
    return pack_columns(columns, nr)


def _padded(reader: Reader, form: Convolution) -> Buffer:
    batch, channels, height, width = form.image.shape
    top, left, bottom, right = form.pads
    shape = (batch, height + top + bottom, width + left + right, channels)
    return reader.scratch(Scratch(shape, DataType.FLOAT))


def _pad_kernel(fusion: Fusion, reader: Reader, form: Convolution, scratch: Buffer) -> Kernel:
    """Each row of the padded image is cleared, then filled where the image reaches."""
    batch, channels, height, width = form.image.shape
    top, left, _, _ = form.pads
    n, y, x, c = (symbol(name) for name in (N, Y, X, C))
    zero = Store(scratch, (n, y, x, c), constant(0.0))
    clear = nest([(X, scratch.shape[2])], (Loop(C, channels, (zero,), Kind.VECTOR),))
    source = reader.value(form.image, (n, c, y - top, x))
    copy: Statement = Store(scratch, (n, y, x + left, c), source)
    if _is_channels_last(fusion, form):
        fill = nest([(X, width)], (Loop(C, channels, (copy,), Kind.VECTOR),))
    else:
        fill = nest([(C, channels)], (Loop(X, width, (copy,), Kind.VECTOR),))
    inside = Guard(-1, y - top, (Guard(y - top, height, fill),))
    return parallel_kernel([(N, batch), (Y, scratch.shape[1])], (*clear, inside))


def _product_kernel(problem: _Problem, group: Group, reader: Reader, target: Target) -> Kernel:
    form = problem.form
    batch, _, height, width = form.shape
    reader.computed[form] = lambda index: accumulated(0, 0)
    result = reader.buffer(group.root)
    index = (symbol(N), symbol(C), symbol(Y), symbol(X))
    probe: tuple[Statement, ...] = (
        Register(ACCUMULATORS, DataType.FLOAT, (1, 1), 0.0),
        Store(result, index, reader.value(group.root, index)),
        Store(result, index, _left(problem, symbol(X), 0)),
    )
    reader.forget()
    axes, gone = merge_axes([(N, batch), (Y, height), (X, width)], probe)
    row_name, rows = axes.pop() if axes else (X, 1)
    lines = None
    size = 4 * problem.depth * form.groups
    if row_name == X and axes and axes[-1][0] == Y:
        across = width * form.strides[1] if isinstance(width, int) else 64
        count = target.second_cache // 2 // max(size * across * form.strides[0], 1)
        lines = Lines(*axes.pop(), max(1, min(count, 8)))
    if form.groups == 1:
        gone = gone | {G: 0}
    outer = [*axes, (G, form.groups)] if form.groups > 1 else axes
    panels = ceil_divide(problem.columns, problem.tile.nr)
    in_block = max(1, target.second_cache // 2 // (size * problem.tile.mr))

    def one_tile(tile: Tile) -> list[Statement]:
        return _one_tile(problem, tile, group, reader, row_name)

    return blocked_kernel(outer, gone, rows, problem.tile, panels, in_block, one_tile, lines)


def _left(problem: _Problem, x: Size, c: Size) -> Value:
    form = problem.form
    row = symbol(Y) * form.strides[0] + symbol(KY) * form.dilations[0]
    column = x * form.strides[1] + symbol(KX) * form.dilations[1]
    return problem.pixel(symbol(N), row, column, symbol(G) * problem.depth + c)


def _one_tile(
    problem: _Problem, tile: Tile, group: Group, reader: Reader, row_name: str
) -> list[Statement]:
    form = problem.form
    result = reader.buffer(group.root)
    kh, kw = form.weights.shape[2:]

    def at(name: str, row: Size) -> Size:
        return symbol(START) + row if name == row_name else symbol(name)

    def left(row: Size) -> Value:
        where = {name: at(name, row) for name in (N, Y)}
        y = where[Y] * form.strides[0] + symbol(KY) * form.dilations[0]
        x = at(X, row) * form.strides[1] + symbol(KX) * form.dilations[1]
        return problem.pixel(where[N], y, x, symbol(G) * problem.depth + symbol(C))

    def right(column: Size) -> Value:
        step = (symbol(KY) * kw + symbol(KX)) * problem.depth + symbol(C)
        return Load(problem.right, (symbol(G), symbol(PANEL), step, column))

    def store(row: Size, column: Size) -> tuple[Statement, ...]:
        reader.forget()
        reader.computed[form] = lambda _: accumulated(row, column)
        place = symbol(PANEL) * tile.nr + column
        index = (at(N, row), symbol(G) * problem.columns + place, at(Y, row), at(X, row))
        made = Store(result, index, reader.value(group.root, index))
        return guarded(place, problem.columns, tile, made)

    return tile_statements(tile, [(KY, kh), (KX, kw), (C, problem.depth)], left, right, store)
