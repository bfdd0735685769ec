"""Convolutions with one filter for each channel: vectors of channels, tiles of pixels in a row.

A pixel's vector is loaded once for all places of a row of the filter. Beyond the edges of the image
lies nothing: rows there are left out, pixels there are 0.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sardonyx.compiler.forms import Convolution, Form, Map
from sardonyx.compiler.fuse import Group
from sardonyx.compiler.kernels.nest import parallel_kernel
from sardonyx.compiler.kernels.reader import Call, Reader, pack
from sardonyx.compiler.kernels.tile import ACCUMULATORS, LANE, Pixel, waste
from sardonyx.compiler.targets import Target
from sardonyx.dims import Size, ceil_divide, minimum, product, symbol
from sardonyx.dtypes import DataType
from sardonyx.loops.build import constant
from sardonyx.loops.nodes import (
    Binary,
    Buffer,
    Cast,
    Guard,
    Kind,
    Let,
    Load,
    Loop,
    Read,
    Register,
    Select,
    Statement,
    Store,
    Update,
    Value,
    Whole,
    dtype_of,
)
from sardonyx.record import record

N, BLOCK, LINE, Y, TILE, START = "%n", "%block", "%line", "%y", "%tile", "%start"
INSIDE, CHANNELS, KY, ROW = "%inside", "%cb", "%ky", "%row"
PIXELS = "px"
BLOCKS = 16
"""Blocks of lines of an image whose height is known."""


@record
class _Problem:
    form: Convolution
    group: Group
    reader: Reader
    pixel: Pixel
    taps: Buffer
    lanes: int
    mr: int
    """Pixels of a tile."""

    @property
    def channel(self) -> Size:
        return symbol(CHANNELS) * self.lanes + symbol(LANE)

    @property
    def channels(self) -> int:
        size = self.form.weights.shape[0]
        assert isinstance(size, int)
        return size

    @property
    def reach(self) -> int:
        """Pixels of the image along a row that a tile needs."""
        across = self.form.weights.shape[3]
        assert isinstance(across, int)
        return (self.mr - 1) * self.form.strides[1] + (across - 1) * self.form.dilations[1] + 1

    @property
    def left(self) -> Size:
        """The first of them."""
        return symbol(START) * self.form.strides[1] - self.form.pads[1]


def depthwise_calls(
    group: Group, reader: Reader, pixel: Pixel, weights: NDArray[Any], target: Target
) -> list[Call]:
    """One kernel; a task is some rows of an image."""
    form = group.tile
    assert isinstance(form, Convolution)
    kh, kw = weights.shape[2:]
    shape = (kh, kw, len(weights))
    taps = reader.packed(pack(form.weights, shape, DataType.FLOAT, partial(_packed_taps)))
    batch, _, height, width = form.shape
    problem = _Problem(form, group, reader, pixel, taps, target.lanes, _tile_width(width, target))
    lines = max(1, height // BLOCKS) if isinstance(height, int) else 4
    first = symbol(BLOCK) * lines
    here = minimum(lines, height - first)
    body = (Let(Y, Whole(first + symbol(LINE))), *_row(problem, width))
    outer = [(N, batch), (BLOCK, ceil_divide(height, lines))]
    made = parallel_kernel(outer, [Loop(LINE, here, body)])
    return [Call(made, reader.places(made), product(form.shape) * kh * kw)]


def _packed_taps(weights: NDArray[Any]) -> NDArray[Any]:
    channels, _, kh, kw = weights.shape
    return weights.reshape(channels, kh, kw).transpose(1, 2, 0).astype(np.float32)


def _tile_width(width: Size, target: Target) -> int:
    """Pixels of a tile: many, and few of them computed twice."""
    most = target.registers // 4
    if not isinstance(width, int):
        return most
    return min(range(1, max(min(most, width), 1) + 1), key=lambda mr: waste(width, mr) + 1 / mr)


def _row(problem: _Problem, width: Size) -> list[Statement]:
    """A row of the result, in tiles; one that is shorter than a tile pixel by pixel."""

    def tiles(mr: int) -> Statement:
        part = replace(problem, mr=mr)
        start = minimum(symbol(TILE) * mr, width - mr)
        return Loop(TILE, ceil_divide(width, mr), (Let(START, Whole(start)), *_tile(part)))

    if isinstance(width, int):
        return [tiles(problem.mr)]
    return [
        Guard(problem.mr - 1, width, (tiles(problem.mr),)),
        Guard(width, problem.mr, (tiles(1),)),
    ]


def _tile(problem: _Problem) -> list[Statement]:
    """All channels of a tile, which has to look where the image ends if it does not lie inside."""
    width = problem.form.image.shape[3]
    fits = Binary(
        "and",
        Binary("lt", Whole(-1), Whole(problem.left)),
        Binary("lt", Whole(problem.left + problem.reach - 1), Whole(width)),
    )
    flag = Select(fits, constant(1, DataType.INT64), constant(0, DataType.INT64))
    return [Let(INSIDE, flag), _vectors(problem)]


def _vectors(problem: _Problem) -> Statement:
    form, lanes = problem.form, problem.lanes
    kh, _ = form.weights.shape[2:]
    row = symbol(Y) * form.strides[0] + symbol(KY) * form.dilations[0] - form.pads[0]
    fast, careful = (_in_lanes(problem, _pixels(problem, careful)) for careful in (False, True))
    pixels = (Guard(0, symbol(INSIDE), (fast,)), Guard(symbol(INSIDE), 1, (careful,)))
    taken = (
        Register(PIXELS, DataType.FLOAT, (problem.reach, lanes), -0.0, lanes=True),
        *((careful,) if problem.mr == 1 else pixels),
        _in_lanes(problem, _products(problem)),
    )
    inside = Guard(-1, symbol(ROW), (Guard(symbol(ROW), form.image.shape[2], taken),))
    body = (
        Register(ACCUMULATORS, DataType.FLOAT, (problem.mr, lanes), 0.0, lanes=True),
        Loop(KY, kh, (Let(ROW, Whole(row)), inside)),
        _in_lanes(problem, _stores(problem)),
    )
    return Loop(CHANNELS, -(-problem.channels // lanes), body)


def _in_lanes(problem: _Problem, body: list[Statement]) -> Statement:
    inner = tuple(body)
    if problem.channels % problem.lanes:
        inner = (Guard(problem.channel, problem.channels, inner),)
    return Loop(LANE, problem.lanes, inner, Kind.VECTOR)


def _pixels(problem: _Problem, careful: bool) -> list[Statement]:
    """The pixels that a row of the filter meets."""
    form, lane = problem.form, symbol(LANE)
    width = form.image.shape[3]
    kw = form.weights.shape[3]
    assert isinstance(kw, int)
    step, spread = form.strides[1], form.dilations[1]
    needed = sorted({r * step + kx * spread for r in range(problem.mr) for kx in range(kw)})
    body: list[Statement] = []
    problem.reader.forget()
    for offset in needed:
        x = problem.left + offset
        element = problem.pixel(symbol(N), (symbol(ROW), x), problem.channel)
        if form.zero is not None:
            zero = problem.reader.value(form.zero, ())
            element = Binary("sub", Cast(element, DataType.INT32), zero)
        if dtype_of(element) is not DataType.FLOAT:
            element = Cast(element, DataType.FLOAT)
        take: Statement = Update(PIXELS, "add", element, (offset, lane))
        if careful:
            take = Guard(-1, x, (Guard(x, width, (take,)),))
        body.append(take)
    return body


def _products(problem: _Problem) -> list[Statement]:
    """What the pixels add to the tile."""
    form, lane = problem.form, symbol(LANE)
    kw = form.weights.shape[3]
    assert isinstance(kw, int)
    step, spread = form.strides[1], form.dilations[1]
    body: list[Statement] = []
    for kx in range(kw):
        tap = Load(problem.taps, (symbol(KY), kx, problem.channel))
        for r in range(problem.mr):
            pixel = Read(PIXELS, DataType.FLOAT, (r * step + kx * spread, lane))
            body.append(Update(ACCUMULATORS, "add", Binary("mul", pixel, tap), (r, lane)))
    return body


def _stores(problem: _Problem) -> list[Statement]:
    form, reader, root = problem.form, problem.reader, problem.group.root
    body: list[Statement] = []
    for r in range(problem.mr):
        reader.forget()
        total = Read(ACCUMULATORS, DataType.FLOAT, (r, symbol(LANE)))
        floats = form.dtype is DataType.FLOAT
        value: Value = total if floats else Cast(total, form.dtype)
        reader.computed[form] = lambda _, value=value: value  # type: ignore[misc]
        for member in _as_floats(problem):
            reader.computed[member] = lambda _, total=total: total  # type: ignore[misc]
        index = (symbol(N), problem.channel, symbol(Y), symbol(START) + r)
        body.append(Store(reader.buffer(root), index, reader.value(root, index)))
    reader.forget()
    return body


def _as_floats(problem: _Problem) -> list[Form]:
    """The result as floats: sums of bytes' products are whole, so it is what was added up."""
    casts = [item for item in problem.group.members if isinstance(item, Map)]
    casts = [item for item in casts if item.name == "cast" and item.arguments == (problem.form,)]
    return [item for item in casts if item.dtype is DataType.FLOAT]
