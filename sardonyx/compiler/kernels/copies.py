"""Programs of their own that move elements: joining parts, gathering slices, sliding windows."""

from sardonyx.compiler.forms import Gather, Join, Window
from sardonyx.compiler.fuse import Fusion, Group
from sardonyx.compiler.kernels.nest import parallel_kernel, pointwise_kernel
from sardonyx.compiler.kernels.reader import Call, Reader
from sardonyx.compiler.targets import Target
from sardonyx.dims import Size, ceil_divide, product, symbol
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
    made = parallel_kernel(outer, [Guard(0, size, tuple(body))])
    return [Call(made, reader.places(made), product(form.shape))]


def window_calls(fusion: Fusion, group: Group, target: Target) -> list[Call]:
    """For each place of a window, vectors of channels are combined."""
    form = group.root
    assert isinstance(form, Window)
    reader, lanes = Reader(fusion, group), target.lanes
    batch, channels, height, width = form.image.shape
    n, y, x, block, ky, kx = (symbol(f"%{name}") for name in ("n", "y", "x", "block", "ky", "kx"))
    channel = block * lanes + symbol("%l")
    row = y * form.strides[0] + ky * form.dilations[0] - form.begins[0]
    column = x * form.strides[1] + kx * form.dilations[1] - form.begins[1]
    element = reader.value(form.image, (n, channel, row, column))
    take = Update("best", form.combine, element, (symbol("%l"),))

    def over_lanes(statement: Statement) -> Loop:
        return Loop("%l", lanes, (Guard(channel, channels, (statement,)),), Kind.VECTOR)

    inside: Statement = over_lanes(take)
    for place, extent in ((column, width), (row, height)):
        inside = Guard(-1, place, (Guard(place, extent, (inside,)),))
    result = Read("best", form.dtype, (symbol("%l"),))
    body: list[Statement] = [
        Register("best", form.dtype, (lanes,), form.initial, lanes=True),
        *nest([("%ky", form.kernel[0]), ("%kx", form.kernel[1])], (inside,)),
        over_lanes(Store(reader.buffer(form), (n, channel, y, x), result)),
    ]
    outer = [("%n", batch), ("%y", form.shape[2]), ("%x", form.shape[3])]
    loops = (Loop("%block", ceil_divide(channels, lanes), tuple(body)),)
    made = parallel_kernel(outer, loops)
    work = product(form.shape) * form.kernel[0] * form.kernel[1]
    return [Call(made, reader.places(made), work)]
