"""Programs of their own that move elements: joining parts, gathering slices, sliding windows."""

import math

from sardonyx.compiler.forms import Gather, Join, Window
from sardonyx.compiler.fuse import Fusion, Group
from sardonyx.compiler.kernels.nest import parallel_kernel, pointwise_kernel
from sardonyx.compiler.kernels.reader import Call, Reader
from sardonyx.compiler.targets import Target
from sardonyx.dims import Size, ceil_divide, maximum, minimum, product, symbol
from sardonyx.dtypes import DataType
from sardonyx.loops.build import constant, nest
from sardonyx.loops.nodes import (
    Binary,
    Cast,
    Guard,
    Kind,
    Let,
    Loop,
    Read,
    Register,
    Select,
    Statement,
    Store,
    Update,
    Whole,
)
from sardonyx.loops.rewrite import merge_axes

WINDOW_VECTORS = 4
"""Vectors of channels that a window takes at once."""


def join_calls(fusion: Fusion, group: Group) -> list[Call]:
    """Each part is computed into its place."""
    form = group.root
    assert isinstance(form, Join)
    calls = []
    start: Size = 0
    for part in form.parts:
        reader = Reader(fusion, group)
        names = [f"%i{axis}" for axis in range(len(part.shape))]
        index = tuple(map(symbol, names))
        place = tuple(at + start if axis == form.axis else at for axis, at in enumerate(index))
        body = (Store(reader.buffer(form), place, reader.value(part, index)),)
        order = fusion.order.get(form, tuple(range(len(part.shape))))
        axes, gone = merge_axes([(names[axis], part.shape[axis]) for axis in order], body)
        made = pointwise_kernel(axes, body, gone)
        calls.append(Call(made, reader.places(made), product(part.shape)))
        start = start + part.shape[form.axis]
    return calls


def gather_calls(fusion: Fusion, group: Group) -> list[Call]:
    """For each index a slice is copied; one out of range is reported and read as the nearest."""
    form = group.root
    assert isinstance(form, Gather)
    reader = Reader(fusion, group)
    table, axis, size = form.table, form.axis, form.table.shape[form.axis]
    names = [f"%i{place}" for place in range(len(form.shape))]
    index = tuple(map(symbol, names))
    behind = axis + len(form.indices.shape)
    given = Cast(reader.value(form.indices, index[axis:behind]), DataType.INT64)
    from_end = Binary("add", given, Whole(size))
    wanted, safe = symbol("%wanted"), symbol("%safe")
    report = (Store(reader.report(), (0,), constant(1, DataType.INT64)),)
    element = reader.value(table, (*index[:axis], safe, *index[behind:]))
    inner: tuple[Statement, ...] = (Store(reader.buffer(form), index, element),)
    slice_axes = [(names[place], form.shape[place]) for place in range(behind, len(form.shape))]
    if slice_axes:
        *more, (last, extent) = slice_axes
        inner = nest(more, (Loop(last, extent, inner, Kind.VECTOR),))
    zero = constant(0, DataType.INT64)
    negative = Binary("lt", given, zero)
    body: list[Statement] = [
        Let("%wanted", Select(negative, from_end, given)),
        Guard(wanted, 0, report),
        Guard(size - 1, wanted, report),
        Let("%safe", Binary("min", Binary("max", Whole(wanted), zero), Whole(size - 1))),
        *inner,
    ]
    outer = [(names[place], form.shape[place]) for place in range(behind)]
    made = parallel_kernel(outer, [Guard(size, 1, report), Guard(0, size, tuple(body))])
    return [Call(made, reader.places(made), product(form.shape))]


def window_calls(fusion: Fusion, group: Group, target: Target) -> list[Call]:
    """For each place of a window, vectors of channels are combined; only taps inside are met."""
    form = group.root
    assert isinstance(form, Window)
    reader, lanes = Reader(fusion, group), target.lanes
    batch, channels, *sizes = form.image.shape
    axes = range(len(sizes))
    places = tuple(symbol(f"%s{axis}") for axis in axes)
    known = channels if isinstance(channels, int) else 1
    count = max(1, min(WINDOW_VECTORS, known // lanes))
    lane = symbol("%v") * lanes + symbol("%l")
    channel = symbol("%block") * (lanes * count) + lane
    bounds: list[Statement] = []
    taps: list[tuple[str, Size]] = []
    met: list[Size] = []
    for axis, step, spread in zip(axes, form.strides, form.dilations, strict=True):
        start = places[axis] * step - form.begins[axis]
        first, behind = symbol(f"%first{axis}"), symbol(f"%behind{axis}")
        bounds += [
            Let(str(first), Whole(maximum(ceil_divide(-start, spread), 0))),
            Let(str(behind), Whole(
                minimum(ceil_divide(sizes[axis] - start, spread), form.kernel[axis])
            )),
        ]  # fmt: skip
        taps.append((f"%t{axis}", behind - first))
        met.append(start + (first + symbol(f"%t{axis}")) * spread)
    take = Update("best", form.combine, reader.value(form.image, (symbol("%n"), channel, *met)),
                  (lane,))  # fmt: skip

    def over_lanes(statement: Statement) -> Loop:
        inner: tuple[Statement, ...] = (statement,)
        if not isinstance(channels, int) or channels % (lanes * count):
            inner = (Guard(channel, channels, inner),)
        return Loop("%v", count, (Loop("%l", lanes, inner, Kind.VECTOR),), Kind.UNROLL)

    result = Read("best", form.dtype, (lane,))
    body: list[Statement] = [
        Register("best", form.dtype, (lanes * count,), form.initial, lanes=True),
        *nest(taps, (over_lanes(take),)),
        over_lanes(Store(reader.buffer(form), (symbol("%n"), channel, *places), result)),
    ]
    outer = [("%n", batch), *((f"%s{axis}", form.shape[2 + axis]) for axis in axes)]
    loops = (*bounds, Loop("%block", ceil_divide(channels, lanes * count), tuple(body)))
    made = parallel_kernel(outer, loops)
    work = product(form.shape) * math.prod(form.kernel)
    return [Call(made, reader.places(made), work)]
