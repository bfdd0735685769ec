"""Operators that write elements at indices, as routines: a copy, then one write after another."""

from collections.abc import Callable, Sequence

from sardonyx.compiler.forms import (
    Form,
    Memories,
    NotLowered,
    Room,
    Routine,
    binary,
    expand,
    iota,
    number,
    reshape,
    results,
    select,
    take,
)
from sardonyx.compiler.kernels.nest import pointwise_kernel
from sardonyx.compiler.lowerings.request import Lowerings, Request
from sardonyx.dims import Size, product, symbol
from sardonyx.dtypes import DataType
from sardonyx.loops.build import constant, kernel, nest
from sardonyx.loops.nodes import (
    STORED,
    Binary,
    Buffer,
    Cast,
    Guard,
    Kernel,
    Let,
    Load,
    Select,
    Statement,
    Store,
    Value,
    Whole,
)
from sardonyx.loops.rewrite import merge_axes
from sardonyx.ops.fact import axis_of

COMBINE = {"none": "", "add": "add", "mul": "mul", "max": "max", "min": "min"}
OUTSIDE = 1 << 62
"""An index that no array has."""
Index = tuple[Size, ...]
Ints = tuple[int, ...]


def scatter_elements(
    request: Request, x: Form, indices: Form, updates: Form, axis: int, reduction: str
) -> Form:
    """Updates written at their own places, but along one axis at the index."""
    place = axis_of(axis, len(x.shape))
    for other, (size, found) in enumerate(zip(updates.shape, indices.shape, strict=True)):
        request.agree(size, found)
        if other != place:
            request.fit(size, x.shape[other])

    def target(names: Index, wanted: Sequence[Size]) -> Index:
        return (*names[:place], wanted[0], *names[place + 1 :])

    def source(names: Index) -> list[Index]:
        return [names]

    return _scattered(x, indices, updates, reduction, [place], source, target)


def scatter_nd(request: Request, x: Form, indices: Form, updates: Form, reduction: str) -> Form:
    """Updates, elements or slices, written at indices that lie along the last axis."""
    depth, around = indices.shape[-1], len(indices.shape) - 1
    if not isinstance(depth, int):
        raise NotLowered("how many axes an index has is only known later")
    if depth > len(x.shape):
        raise NotLowered(f"an index of {depth} axes does not fit rank {len(x.shape)}")
    for size, found in zip(updates.shape, (*indices.shape[:-1], *x.shape[depth:]), strict=True):
        request.agree(size, found)

    def target(names: Index, wanted: Sequence[Size]) -> Index:
        return (*wanted, *names[around:])

    def source(names: Index) -> list[Index]:
        return [(*names[:around], position) for position in range(depth)]

    return _scattered(x, indices, updates, reduction, list(range(depth)), source, target)


def _scattered(
    x: Form, indices: Form, updates: Form, reduction: str, axes: list[int],
    source: Callable[[Index], list[Index]], target: Callable[[Index, Sequence[Size]], Index],
) -> Form:  # fmt: skip
    """`source` says where the indices for an update stand, `target` where it then goes."""
    if reduction not in COMBINE:
        raise NotLowered(f"the reduction '{reduction}' has no native form")

    def write(memories: Memories) -> Sequence[Kernel]:
        data, chosen, given = memories.arguments
        (result,) = memories.results
        names = [f"%u{axis}" for axis in range(len(given.shape))]
        at = tuple(map(symbol, names))
        body: list[Statement] = []
        wanted: list[Size] = []
        for position, place in enumerate(source(at)):
            size = data.shape[axes[position]]
            body.append(Let(f"%w{position}", from_end(Load(chosen, place), size)))
            wanted.append(symbol(f"%w{position}"))
        spot = target(at, wanted)
        inner: tuple[Statement, ...] = (
            Store(result, spot, _combined(reduction, Load(result, spot), Load(given, at))),
        )
        report = (Store(memories.report, (0,), constant(1, DataType.INT64)),)
        for axis, index in zip(axes, wanted, strict=True):
            size = data.shape[axis]
            body += [Guard(index, 0, report), Guard(size - 1, index, report)]
            inner = (Guard(-1, index, (Guard(index, size, inner),)),)
        loops = nest(list(zip(names, given.shape, strict=True)), (*body, *inner))
        return [copy_kernel(data, result), kernel(loops)]

    routine = Routine((x, indices, updates), (Room(x.shape, x.dtype),), write, product(x.shape))
    return results(routine)[0]


def from_end(index: Value, size: Size) -> Value:
    """An index as an int64, counted from the end where it is negative."""
    wide = Cast(index, DataType.INT64)
    negative = Binary("lt", wide, constant(0, DataType.INT64))
    return Select(negative, Binary("add", wide, Whole(size)), wide)


def _combined(reduction: str, before: Load, update: Load) -> Value:
    dtype = before.buffer.dtype
    if reduction == "none":
        return update
    if dtype is DataType.BOOL:
        return Binary("or" if reduction in ("add", "max") else "and", before, update)
    if dtype in STORED:
        wide = [Cast(item, DataType.FLOAT) for item in (before, update)]
        return Cast(Binary(COMBINE[reduction], *wide), dtype)
    return Binary(COMBINE[reduction], before, update)


def copy_kernel(source: Buffer, target: Buffer) -> Kernel:
    """Every element copied."""
    names = [f"%i{axis}" for axis in range(len(source.shape))]
    index = tuple(map(symbol, names))
    body = (Store(target, index, Load(source, index)),)
    axes, gone = merge_axes(list(zip(names, source.shape, strict=True)), body)
    return pointwise_kernel(axes, body, gone)


def max_unpool(
    request: Request, x: Form, indices: Form, output_shape: Form | None = None, *,
    kernel_shape: Ints, pads: Ints | None, strides: Ints | None,
) -> Form:  # fmt: skip
    """Elements put back where a max pool found them; everything else is zero."""
    rank = len(kernel_shape)
    steps, edges = strides or (1,) * rank, pads or (0,) * 2 * rank
    spatial: list[Size] = [
        (size - 1) * steps[axis] - edges[axis] - edges[rank + axis] + kernel_shape[axis]
        for axis, size in enumerate(x.shape[2:])
    ]
    shape = (*x.shape[:2], *spatial)
    zeros = expand(number(0, x.dtype), (product(shape),))
    flat = [reshape(item, (product(item.shape),)) for item in (indices, x)]
    # Here nothing is counted from the end: a negative index lies outside as one too large does.
    places = select(binary("lt", flat[0], 0), OUTSIDE, flat[0])
    image = reshape(scatter_elements(request, zeros, places, flat[1], 0, "none"), shape)
    if output_shape is None:
        return image
    wanted = request.told(2)
    return take(image, [iota(wanted, axis) for axis in range(len(wanted))])


LOWERINGS: Lowerings = {
    ("", "ScatterElements"): scatter_elements,
    ("", "ScatterND"): scatter_nd,
    ("", "MaxUnpool"): max_unpool,
}
