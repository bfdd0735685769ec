"""Steps of random models: elements added up, from reductions to recurrent layers."""

import math

import numpy as np

from sardonyx.dtypes import DataType
from tests.compiler.random_maker import FLOATS, Item, Maker

LONGEST_PRODUCT = 16


def reduced(make: Maker) -> None:
    item = make.pick(lambda item: item.dtype is DataType.FLOAT and item.rank > 0) or make.floats(3)
    axes = [axis for axis in range(item.rank) if make.chance(0.5)]
    keep = make.integer(0, 1)
    gone = axes or list(range(item.rank))
    empty = any(item.shape[axis] == 0 for axis in gone)
    name = make.choose(
        "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2",
        "ReduceSumSquare", "ReduceLogSumExp", "ReduceProd",
    )  # fmt: skip
    if empty and name not in ("ReduceSum", "ReduceSumSquare", "ReduceL1"):
        return
    # Whether a long product overflows on its way depends on the order, which is each one's own.
    if name == "ReduceProd" and math.prod(item.shape[axis] for axis in gone) > LONGEST_PRODUCT:
        return
    shape = tuple(
        1 if axis in gone else size
        for axis, size in enumerate(item.shape)
        if keep or axis not in gone
    )
    made = getattr(make.op, name)(item.value, np.array(axes, np.int64), keepdims=keep)
    make.keep(made, shape, item.dtype, item.exact and name in ("ReduceMax", "ReduceMin"))


def extremes(make: Maker) -> None:
    item = make.pick(
        lambda item: item.exact and item.dtype is DataType.FLOAT and item.rank > 0
        and 0 not in item.shape
    )  # fmt: skip
    if item is None:
        return
    axis = make.integer(0, item.rank - 1)
    name = make.choose("ArgMax", "ArgMin", "TopK")
    if name == "TopK":
        count = make.integer(1, item.shape[axis])
        shape = (*item.shape[:axis], count, *item.shape[axis + 1 :])
        values, places = make.op.TopK(
            item.value, np.array([count]), axis=axis, largest=make.integer(0, 1), outputs=2
        )
        make.keep(values, shape, item.dtype, True)
        make.keep(places, shape, DataType.INT64, True)
        return
    shape = (*item.shape[:axis], 1, *item.shape[axis + 1 :])
    made = getattr(make.op, name)(item.value, axis=axis, select_last_index=make.integer(0, 1))
    make.keep(made, shape, DataType.INT64, True)


def row_wise(make: Maker) -> None:
    item = make.pick(
        lambda item: item.dtype is DataType.FLOAT and item.rank > 0 and 0 not in item.shape
    )
    if item is None:
        return
    axis = make.integer(-item.rank, item.rank - 1)
    last = item.shape[-1]
    match make.choose("Softmax", "LogSoftmax", "LpNormalization", "CumSum", "LayerNormalization"):
        case "CumSum":
            made = make.op.CumSum(
                item.value, np.array(axis), exclusive=make.integer(0, 1), reverse=make.integer(0, 1)
            )
        case "LayerNormalization":
            scale, bias = (make.constant((last,), item.dtype) for _ in range(2))
            made = make.op.LayerNormalization(item.value, scale, bias, epsilon=0.1)
        case "LpNormalization":
            made = make.op.LpNormalization(make.op.Add(item.value, np.float32(3)), axis=axis, p=2)
        case name:
            made = getattr(make.op, name)(item.value, axis=axis)
    make.keep(made, item.shape, item.dtype, False)


def product(make: Maker) -> None:
    item = make.pick(lambda item: item.dtype in FLOATS[:2] and item.rank > 1) or make.floats(2)
    columns = make.integer(1, 20)
    other = make.constant((item.shape[-1], columns), item.dtype)
    shape = (*item.shape[:-1], columns)
    made = make.op.MatMul(item.value, other)
    if make.chance(0.5):
        made = make.op.Add(made, make.constant((columns,), item.dtype))
    if make.chance(0.3):
        made = make.op.Relu(made)
    make.keep(made, shape, item.dtype, False)


def product_of_two(make: Maker) -> None:
    item = make.floats(3)
    turned = make.op.Transpose(item.value, perm=[0, 2, 1])
    shape = (*item.shape[:-1], item.shape[-2])
    make.keep(make.op.MatMul(item.value, turned), shape, item.dtype, False)


def general_product(make: Maker) -> None:
    item = make.floats(2)
    columns = make.integer(1, 9)
    flip = make.integer(0, 1)
    shape = (columns, item.shape[1]) if flip else (item.shape[1], columns)
    other, bias = make.constant(shape, item.dtype), make.constant((columns,), item.dtype)
    # onnxruntime forgets beta where there is nothing to multiply.
    beta = make.choose(1.0, 2.0) if item.shape[1] else 1.0
    made = make.op.Gemm(item.value, other, bias, transB=flip, alpha=0.5, beta=beta)
    make.keep(made, (item.shape[0], columns), item.dtype, False)


def _image(make: Maker, rank: int) -> Item:
    found = make.pick(
        lambda item: item.dtype is DataType.FLOAT and item.rank == rank and min(item.shape) > 0
    )
    if found is not None and make.chance(0.7):
        return found
    sizes = (make.integer(1, 2), make.integer(1, 6), *(make.integer(3, 8) for _ in range(rank - 2)))
    return make.input(sizes, DataType.FLOAT)


def _slid(
    item: Item, kernel: list[int], steps: list[int], spread: list[int], pads: list[int]
) -> list[int]:
    axes = len(kernel)
    return [
        (item.shape[2 + n] + pads[n] + pads[n + axes] - spread[n] * (kernel[n] - 1) - 1) // steps[n]
        + 1
        for n in range(axes)
    ]


def convolution(make: Maker) -> None:
    rank = make.choose(3, 4, 4, 5)
    item = _image(make, rank)
    channels, axes = item.shape[1], rank - 2
    groups = make.choose(1, 1, channels)
    results = groups * make.integer(1, 3)
    kernel = [make.integer(1, 3) for _ in range(axes)]
    steps = [make.integer(1, 2) for _ in range(axes)]
    spread = [make.integer(1, 2) for _ in range(axes)]
    pads = [make.integer(0, 2) for _ in range(2 * axes)]
    sizes = _slid(item, kernel, steps, spread, pads)
    if min(sizes) < 1:
        return
    weights = make.constant((results, channels // groups, *kernel), item.dtype)
    extra = [make.constant((results,), item.dtype)] if make.chance(0.5) else []
    made = make.op.Conv(
        item.value, weights, *extra, group=groups, strides=steps, dilations=spread, pads=pads
    )
    make.keep(made, (item.shape[0], results, *sizes), item.dtype, False)


def pooled(make: Maker) -> None:
    rank = make.choose(3, 4, 4)
    item = _image(make, rank)
    axes = rank - 2
    kernel = [make.integer(2, 3) for _ in range(axes)]
    steps = [make.integer(1, 2) for _ in range(axes)]
    pads = [make.integer(0, 1) for _ in range(2 * axes)]
    sizes = _slid(item, kernel, steps, [1] * axes, pads)
    if min(sizes) < 1:
        return
    name = make.choose("MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool")
    if name.startswith("Global"):
        made, sizes = getattr(make.op, name)(item.value), [1] * axes
    else:
        extra = {"count_include_pad": make.integer(0, 1)} if name == "AveragePool" else {}
        made = getattr(make.op, name)(
            item.value, kernel_shape=kernel, strides=steps, pads=pads, **extra
        )
    shape = (item.shape[0], item.shape[1], *sizes)
    make.keep(made, shape, item.dtype, item.exact and "Max" in name)


def sums_of_products(make: Maker) -> None:
    item = make.floats(3)
    other = make.constant((item.shape[2], make.integer(1, 5)), item.dtype)
    equation = make.choose("abc,cd->abd", "abc,cd->da", "abc,cd->bd")
    sizes = dict(zip("abcd", (*item.shape, other.shape[1]), strict=True))
    shape = tuple(sizes[letter] for letter in equation.split("->")[1])
    make.keep(make.op.Einsum(item.value, other, equation=equation), shape, item.dtype, False)


def recurrent(make: Maker) -> None:
    item = _image(make, 3)
    steps, batch, width = item.shape
    name, gates = make.choose(("LSTM", 4), ("GRU", 3), ("RNN", 1))
    hidden = make.integer(1, 9)
    way = make.choose("forward", "reverse", "bidirectional")
    count = 2 if way == "bidirectional" else 1
    weights = [
        make.constant((count, gates * hidden, width), item.dtype) * np.float32(0.3),
        make.constant((count, gates * hidden, hidden), item.dtype) * np.float32(0.3),
        make.constant((count, 2 * gates * hidden), item.dtype),
    ]
    results = make.op.node(
        name, (item.value, *weights), 2, "", {"hidden_size": hidden, "direction": way}
    )
    make.keep(results[0], (steps, count, batch, hidden), item.dtype, False)
    make.keep(results[1], (count, batch, hidden), item.dtype, False)


def resized(make: Maker) -> None:
    item = _image(make, 4)
    sizes = (*item.shape[:2], make.integer(1, 9), make.integer(1, 9))
    mode = make.choose("nearest", "linear", "cubic")
    how = make.choose("half_pixel", "align_corners", "asymmetric")
    if mode == "nearest":
        how = "asymmetric"
    made = make.op.Resize(
        item.value, None, None, np.array(sizes), mode=mode, coordinate_transformation_mode=how,
        nearest_mode="floor",
    )  # fmt: skip
    make.keep(made, sizes, item.dtype, item.exact and mode == "nearest")
