"""Convolutions over two spatial axes, channels last, in register tiles.

A tile is mr pixels of a row by nr output channels; every tap of the filter adds its products to it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sardonyx.compiler.constants import constant_array
from sardonyx.compiler.forms import Convolution
from sardonyx.compiler.fuse import Fusion, Group
from sardonyx.compiler.kernels.blocks import PANEL, START, Lines, blocked_kernel
from sardonyx.compiler.kernels.depthwise import depthwise_calls
from sardonyx.compiler.kernels.nest import parallel_kernel
from sardonyx.compiler.kernels.reader import Call, Packed, Reader, Scratch, aligned
from sardonyx.compiler.kernels.tile import (
    ACCUMULATORS,
    Pixel,
    Tile,
    accumulated,
    choose_tile,
    guarded,
    pack_columns,
    tile_statements,
)
from sardonyx.compiler.kernels.winograd import suits, winograd_calls
from sardonyx.compiler.targets import Target
from sardonyx.dims import Size, ceil_divide, product, symbol
from sardonyx.dtypes import DataType
from sardonyx.loops.build import constant, nest
from sardonyx.loops.nodes import (
    Buffer,
    Guard,
    Kernel,
    Kind,
    Load,
    Loop,
    Register,
    Statement,
    Store,
    Value,
)
from sardonyx.loops.rewrite import merge_axes, offset, step

N, G, Y, X, C, KY, KX = "%n", "%g", "%y", "%x", "%ch", "%ky", "%kx"


Pads = tuple[int, int, int, int]


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
    alone = form.groups > 1 and form.groups == weights.shape[0] == form.image.shape[1]
    if alone or suits(form):
        calls, pixel = _image(reader, form, (0, 0, 0, 0))
        make = depthwise_calls if alone else winograd_calls
        return [*calls, *make(group, reader, pixel, weights, target)]
    columns = weights.shape[0] // form.groups
    flat = weights.shape[2:] == (1, 1) and form.strides == (1, 1) and not any(form.pads)
    rows = product((form.shape[0], *form.shape[2:])) if flat else form.shape[3]
    tile = choose_tile(rows, columns, target)
    right = reader.packed(Packed(aligned(_packed_weights(weights, form.groups, tile.nr))))
    calls, pixel = _image(reader, form, form.pads)
    problem = _Problem(form, tile, right, pixel)
    made = _product_kernel(problem, group, reader, target)
    work = product(form.shape) * problem.depth * int(np.prod(weights.shape[2:]))
    calls.append(Call(made, reader.places(made), work))
    return calls


def _image(reader: Reader, form: Convolution, pads: Pads) -> tuple[list[Call], Pixel]:
    """How elements of the image are read, and the call that pads and turns it, where needed."""
    if not any(pads) and _is_channels_last(reader, form):
        return [], lambda n, y, x, c: reader.value(form.image, (n, c, y, x))
    scratch = _padded(reader, form, pads)
    made = _pad_kernel(reader, form, scratch, pads)
    call = Call(made, reader.places(made), product(scratch.shape))
    return [call], lambda n, y, x, c: Load(scratch, (n, y, x, c))


def _is_channels_last(reader: Reader, form: Convolution) -> bool:
    """True where the channels of a pixel lie side by side in memory."""
    element = reader.value(form.image, (symbol(N), symbol(C), symbol(Y), symbol(X)))
    return isinstance(element, Load) and step(offset(element.buffer, element.indices), C) == 1


def _packed_weights(weights: NDArray[np.float32], groups: int, nr: int) -> NDArray[np.float32]:
    """[M, C / groups, kh, kw] -> [groups, panels, kh * kw * C / groups, nr]."""
    channels = weights.shape[0]
    columns = weights.reshape(groups, channels // groups, *weights.shape[1:])
    columns = columns.transpose(0, 3, 4, 2, 1).reshape(groups, -1, channels // groups)
    return pack_columns(columns, nr)


def _padded(reader: Reader, form: Convolution, pads: Pads) -> Buffer:
    batch, channels, height, width = form.image.shape
    top, left, bottom, right = pads
    shape = (batch, height + top + bottom, width + left + right, channels)
    return reader.scratch(Scratch(shape, DataType.FLOAT))


def _pad_kernel(reader: Reader, form: Convolution, scratch: Buffer, pads: Pads) -> Kernel:
    """Each row of the padded image is cleared, then filled where the image reaches."""
    batch, channels, height, width = form.image.shape
    top, left, _, _ = pads
    n, y, x, c = (symbol(name) for name in (N, Y, X, C))
    zero = Store(scratch, (n, y, x, c), constant(0.0))
    clear = nest([(X, scratch.shape[2])], (Loop(C, channels, (zero,), Kind.VECTOR),))
    source = reader.value(form.image, (n, c, y - top, x))
    copy: Statement = Store(scratch, (n, y, x + left, c), source)
    if _is_channels_last(reader, form):
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
