"""Steps of random models: elements moved, repeated, chosen and put elsewhere."""

from typing import Any

import numpy as np

from tests.compiler.random_maker import Maker


def transpose(make: Maker) -> None:
    item = make.pick(lambda item: item.rank > 1) or make.floats(3)
    order = [int(axis) for axis in make.random.permutation(item.rank)]
    shape = tuple(item.shape[axis] for axis in order)
    make.keep(make.op.Transpose(item.value, perm=order), shape, item.dtype, item.exact)


def reshape(make: Maker) -> None:
    item = make.pick() or make.floats()
    count = int(np.prod(item.shape))
    options = [(count,), (1, count), (*item.shape, 1), item.shape[::-1]]
    options += [(count // part, part) for part in (2, 3, 4, 5) if count % part == 0 and count]
    shape = make.choose(*options)
    said = [size if place else -1 for place, size in enumerate(shape)] if count else list(shape)
    made = make.op.Reshape(item.value, np.array(said), allowzero=int(not count))
    make.keep(made, shape, item.dtype, item.exact)


def axes_of_one(make: Maker) -> None:
    item = make.pick() or make.floats()
    if 1 in item.shape and make.chance(0.5):
        axis = item.shape.index(1)
        shape = item.shape[:axis] + item.shape[axis + 1 :]
        make.keep(make.op.Squeeze(item.value, np.array([axis])), shape, item.dtype, item.exact)
    elif item.rank < 5:
        axis = make.integer(0, item.rank)
        shape = (*item.shape[:axis], 1, *item.shape[axis:])
        make.keep(make.op.Unsqueeze(item.value, np.array([axis])), shape, item.dtype, item.exact)


def _slice_size(size: int, start: int, end: int, step: int) -> int:
    """How many elements the specification leaves: NumPy takes fewer from before the front."""
    start, end = (place + size if place < 0 else place for place in (start, end))
    last = size - 1 if step < 0 else size
    steps = range(max(0, min(start, last)), max(-1 if step < 0 else 0, min(end, last)), step)
    return min(len(steps), size)


def sliced(make: Maker) -> None:
    item = make.pick(lambda item: item.rank > 0) or make.floats(2)
    axis = make.integer(0, item.rank - 1)
    step = make.choose(1, 1, 2, -1, -2)
    start, end = sorted(make.integer(-item.shape[axis] - 1, item.shape[axis] + 1) for _ in range(2))
    if step < 0:
        start, end = end, start
    size = _slice_size(item.shape[axis], start, end, step)
    shape = (*item.shape[:axis], size, *item.shape[axis + 1 :])
    made = make.op.Slice(item.value, *(np.array([number]) for number in (start, end, axis, step)))
    make.keep(made, shape, item.dtype, item.exact)


def padded(make: Maker) -> None:
    item = make.floats(make.choose(1, 2, 3))
    mode = make.choose("constant", "edge", "reflect", "wrap")
    if 0 in item.shape:
        return
    most = [min(size - 1, 3) if mode in ("reflect", "wrap") else 3 for size in item.shape]
    pads = [make.integer(0, limit) for limit in most * 2]
    shape = tuple(
        size + pads[axis] + pads[axis + item.rank] for axis, size in enumerate(item.shape)
    )
    made = make.op.Pad(item.value, np.array(pads), np.float32(0.5), mode=mode)
    make.keep(made, shape, item.dtype, item.exact)


def joined(make: Maker) -> None:
    item = make.pick(lambda item: item.rank > 0) or make.floats(2)
    axis = make.integer(0, item.rank - 1)
    shape = list(item.shape)
    shape[axis] = make.integer(0, 3)
    parts: list[Any] = [item.value, make.constant(tuple(shape), item.dtype)]
    if make.chance(0.5):
        parts.append(item.value)
    total = item.shape[axis] * (len(parts) - 1) + shape[axis]
    made = make.op.Concat(*parts, axis=axis)
    make.keep(made, (*item.shape[:axis], total, *item.shape[axis + 1 :]), item.dtype, item.exact)


def split(make: Maker) -> None:
    item = make.pick(lambda item: item.rank > 0 and max(item.shape) > 1)
    if item is None:
        return
    axis = int(np.argmax(item.shape))
    first = make.integer(1, item.shape[axis] - 1)
    sizes = (first, item.shape[axis] - first)
    parts = make.op.Split(item.value, np.array(sizes), axis=axis, outputs=2)
    for part, size in zip(parts, sizes, strict=True):
        make.keep(part, (*item.shape[:axis], size, *item.shape[axis + 1 :]), item.dtype, item.exact)


def gathered(make: Maker) -> None:
    item = make.pick(lambda item: item.rank > 0 and 0 not in item.shape)
    if item is None:
        return
    axis = make.integer(0, item.rank - 1)
    size = item.shape[axis]
    if make.chance(0.5):
        wanted = make.choose((), (3,), (2, 2))
        indices = make.random.integers(-size, size, wanted)
        shape = (*item.shape[:axis], *wanted, *item.shape[axis + 1 :])
        made = make.op.Gather(item.value, np.asarray(indices), axis=axis)
    else:
        shape = (*item.shape[:axis], make.integer(1, 4), *item.shape[axis + 1 :])
        indices = make.random.integers(-size, size, shape)
        made = make.op.GatherElements(item.value, indices, axis=axis)
    make.keep(made, shape, item.dtype, item.exact)


def scattered(make: Maker) -> None:
    item = make.floats(2)
    if 0 in item.shape:
        return
    rows = make.integer(1, item.shape[0])
    shape = (rows, item.shape[1])
    indices = np.stack([make.random.permutation(item.shape[0])[:rows]] * item.shape[1], 1)
    updates = make.constant(shape, item.dtype)
    how = make.choose("none", "add", "mul", "max", "min")
    made = make.op.ScatterElements(item.value, indices, updates, axis=0, reduction=how)
    make.keep(made, item.shape, item.dtype, item.exact and how not in ("add", "mul"))


def repeated(make: Maker) -> None:
    item = make.pick(lambda item: 0 < item.rank < 4 and np.prod(item.shape) < 500) or make.floats(2)
    if make.chance(0.5):
        counts = [make.integer(1, 3) for _ in item.shape]
        shape = tuple(size * count for size, count in zip(item.shape, counts, strict=True))
        made = make.op.Tile(item.value, np.array(counts))
    else:
        shape = (make.integer(1, 3), *item.shape)
        made = make.op.Expand(item.value, np.array(shape))
    make.keep(made, shape, item.dtype, item.exact)


def triangle(make: Maker) -> None:
    item = make.pick(lambda item: item.rank > 1) or make.floats(2)
    made = make.op.Trilu(item.value, np.array(make.integer(-2, 2)), upper=make.integer(0, 1))
    make.keep(made, item.shape, item.dtype, item.exact)
