"""Random models that declare shapes which their nodes do not give, of outputs and inner values.

Some sizes are told only by what is fed; none of them is 0, which other steps would not take.
"""

import numpy as np

import sardonyx as sx
from sardonyx.dtypes import DataType
from tests.compiler.random_graphs import STEPS, grow
from tests.compiler.random_maker import Case, Item, Maker, Step


def _fed(make: Maker, numbers: list[int]) -> sx.Value:
    """An input with some whole numbers."""
    name = f"x{len(make.feeds)}"
    make.feeds[name] = np.array(numbers, np.int64)
    size = f"{name}d0" if make.chance(0.3) else len(numbers)
    return make.graph.add_input(name, sx.TensorType(DataType.INT64, (size,)))


def fed_reshape(make: Maker) -> None:
    item = make.floats()
    shape = [int(np.prod(item.shape))] if make.chance(0.5) else [1, *reversed(item.shape)]
    made = make.op.Reshape(item.value, _fed(make, shape))
    make.keep(made, tuple(shape), item.dtype, item.exact)


def fed_expand(make: Maker) -> None:
    item = make.floats()
    shape = (make.integer(1, 3), *item.shape)
    make.keep(make.op.Expand(item.value, _fed(make, list(shape))), shape, item.dtype, item.exact)


def fed_tile(make: Maker) -> None:
    item = make.floats()
    times = [make.integer(1, 2) for _ in item.shape]
    shape = tuple(size * count for size, count in zip(item.shape, times, strict=True))
    made = make.op.Tile(item.value, _fed(make, times))
    make.keep(made, shape, item.dtype, item.exact)


def fed_fill(make: Maker) -> None:
    shape = [make.integer(1, 4) for _ in range(make.integer(1, 3))]
    value = sx.Tensor(np.array([make.integer(-3, 3)], np.float32))
    made = make.op.ConstantOfShape(_fed(make, shape), value=value)
    make.keep(made, tuple(shape), DataType.FLOAT, True)


def fed_range(make: Maker) -> None:
    count = make.integer(1, 6)
    limit = make.op.Squeeze(_fed(make, [count]), np.array([0]))
    made = make.op.Range(np.array(0), limit, np.array(1))
    make.keep(made, (count,), DataType.INT64, True)


def fed_slice(make: Maker) -> None:
    item = make.floats()
    if not item.shape:
        return
    end = make.integer(1, item.shape[0])
    made = make.op.Slice(item.value, np.array([0]), _fed(make, [end]))
    make.keep(made, (end, *item.shape[1:]), item.dtype, item.exact)


def counted(make: Maker) -> None:
    numbers = [1, *(make.integer(0, 1) for _ in range(make.integer(0, 5)))]
    made = make.op.NonZero(_fed(make, numbers))
    make.keep(made, (1, sum(numbers)), DataType.INT64, True)


def compressed(make: Maker) -> None:
    item = make.floats()
    if not item.shape:
        return
    chosen = [1, *(make.integer(0, 1) for _ in range(1, item.shape[0]))]
    condition = make.op.Cast(_fed(make, chosen), to=int(DataType.BOOL))
    made = make.op.Compress(item.value, condition, axis=0)
    make.keep(made, (sum(chosen), *item.shape[1:]), item.dtype, item.exact)


def measured(make: Maker) -> None:
    """Sizes as numbers, which folding would take from a declaration."""
    item = make.pick()
    if item is not None:
        make.keep(make.op.Shape(item.value), (item.rank,), DataType.INT64, True)


RUN_TIME: tuple[Step, ...] = (
    fed_reshape, fed_expand, fed_tile, fed_fill, fed_range, fed_slice, counted, compressed,
    measured, measured,
)  # fmt: skip


def _wrong(make: Maker, item: Item) -> tuple[int | str | None, ...]:
    """A shape that a value does not have, or has only by chance."""
    names = [f"{name}d{axis}" for name, array in make.feeds.items() for axis in range(array.ndim)]
    shape: list[int | str | None] = list(item.shape)
    match make.integer(0, 3):
        case 0 if shape:
            place = make.integer(0, len(shape) - 1)
            shape[place] = item.shape[place] + make.integer(1, 3)
        case 1:
            shape.insert(make.integer(0, len(shape)), make.integer(1, 4))
        case 2 if shape:
            shape.pop()
        case _:
            shape = [make.choose(*names) for _ in shape]
    return tuple(shape)


def random_declared(seed: int) -> Case:
    """A random model with wrong declarations, the same for the same seed."""
    make = Maker(seed)
    make.floats()
    grow(make, make.integer(3, 14), STEPS + RUN_TIME * 3)
    case = make.finish()
    for item in make.items:
        if item.value.producer is not None and make.chance(0.5):
            item.value.type = sx.TensorType(item.dtype, _wrong(make, item))
            make.graph.declared[item.value] = None
    return case
