"""Random models of 3 to 30 operators, for the compiler to be compared on.

A value that passed through inexact arithmetic is not given to operators that jump (comparisons,
roundings, indices of extremes), since two right implementations may then differ.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import sardonyx as sx
from sardonyx.dtypes import DataType, from_numpy

OPSET = 21
FLOATS = (DataType.FLOAT, DataType.DOUBLE, DataType.FLOAT16, DataType.BFLOAT16)
INTEGERS = (DataType.INT32, DataType.INT64, DataType.UINT8, DataType.INT8)
LARGEST = 4096
"""Elements of a value; larger results are not made."""


@dataclass(frozen=True, slots=True)
class Item:
    """A value of the graph, with the shape it has when the model runs."""

    value: sx.Value
    shape: tuple[int, ...]
    dtype: DataType
    exact: bool

    @property
    def rank(self) -> int:
        return len(self.shape)


@dataclass(frozen=True)
class Case:
    """A model and what to feed."""

    model: sx.Model
    feeds: dict[str, NDArray[Any]]


class Maker:
    """Grows one graph."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.graph = sx.Graph("random")
        self.op: Any = sx.Builder(self.graph, opset=OPSET)
        self.feeds: dict[str, NDArray[Any]] = {}
        self.items: list[Item] = []
        self.names = 0

    def integer(self, low: int, high: int) -> int:
        """A number from low to high, both included."""
        return int(self.random.integers(low, high + 1))

    def chance(self, probability: float) -> bool:
        return bool(self.random.random() < probability)

    def choose(self, *options: Any) -> Any:
        return options[int(self.random.integers(len(options)))]

    def array(self, shape: tuple[int, ...], dtype: DataType) -> NDArray[Any]:
        """Random elements of a sensible size."""
        if dtype is DataType.BOOL:
            return self.random.random(shape) < 0.5
        if dtype.is_float:
            return self.random.standard_normal(shape).astype(np.float32).astype(dtype.numpy)
        low = 0 if dtype.text.startswith("u") else -9
        return self.random.integers(low, 10, shape).astype(dtype.numpy)

    def input(self, shape: tuple[int, ...], dtype: DataType) -> Item:
        """A new input; some of its sizes are symbols."""
        name = f"x{len(self.feeds)}"
        declared: list[Any] = [
            f"{name}d{axis}" if self.chance(0.4) else size for axis, size in enumerate(shape)
        ]
        value = self.graph.add_input(name, sx.TensorType(dtype, tuple(declared)))
        self.feeds[name] = self.array(shape, dtype)
        return self.keep(value, shape, dtype, True)

    def constant(self, shape: tuple[int, ...], dtype: DataType) -> NDArray[Any]:
        return self.array(shape, dtype)

    def keep(self, value: sx.Value, shape: tuple[int, ...], dtype: DataType, exact: bool) -> Item:
        item = Item(value, tuple(int(size) for size in shape), dtype, exact)
        self.items.append(item)
        return item

    def pick(self, fits: Callable[[Item], bool] = lambda item: True) -> Item | None:
        """A value that fits, rather a recent one; a new input where there is none."""
        found = [item for item in self.items[-8:] if fits(item)] or [
            item for item in self.items if fits(item)
        ]
        return found[int(self.random.integers(len(found)))] if found else None

    def floats(self, rank: int | None = None, exact: bool = False) -> Item:
        """A float32 value, of a rank if one is asked for."""
        found = self.pick(
            lambda item: (
                item.dtype is DataType.FLOAT
                and (rank is None or item.rank == rank)
                and (item.exact or not exact)
            )
        )
        if found is not None and self.chance(0.9):
            return found
        sizes = tuple(
            self.integer(1, 6) for _ in range(self.integer(1, 4) if rank is None else rank)
        )
        return self.input(sizes, DataType.FLOAT)

    def finish(self) -> Case:
        """The model: everything that nothing reads is an output."""
        for item in self.items:
            if not item.value.uses and item.value.producer is not None:
                item.value.type = sx.TensorType(item.dtype, (None,) * item.rank)
                self.graph.outputs.append(item.value)
        if not self.graph.outputs:
            item = self.items[-1]
            self.graph.outputs.append(self.op.Identity(item.value))
        model = sx.Model(self.graph, sx.Opsets({"": OPSET}), ir_version=10)
        return Case(model, self.feeds)


Step = Callable[[Maker], None]


def unary(make: Maker) -> None:
    item = make.pick(lambda item: item.dtype in FLOATS[:2]) or make.floats()
    name = make.choose(
        "Relu", "Neg", "Abs", "Sigmoid", "Tanh", "Erf", "Softplus", "Softsign", "LeakyRelu", "Elu",
        "HardSigmoid", "HardSwish", "Gelu", "Mish", "Identity", "Sin", "Cos", "Atan", "Asinh",
        "Celu", "Selu", "ThresholdedRelu",
    )  # fmt: skip
    jumps = name == "ThresholdedRelu"
    if jumps and not item.exact:
        return
    exact = item.exact and name in ("Relu", "Neg", "Abs", "Identity")
    make.keep(getattr(make.op, name)(item.value), item.shape, item.dtype, exact)


def rounded(make: Maker) -> None:
    item = make.floats(exact=True)
    name = make.choose("Floor", "Ceil", "Round", "Sign", "IsNaN", "IsInf")
    dtype = DataType.BOOL if name.startswith("Is") else item.dtype
    make.keep(getattr(make.op, name)(item.value), item.shape, dtype, True)


def _partner(make: Maker, item: Item) -> tuple[Any, tuple[int, ...], bool]:
    """Something that broadcasts with a value: a constant, or another value of its shape."""
    same = [
        other for other in make.items if other.shape == item.shape and other.dtype is item.dtype
    ]
    if len(same) > 1 and make.chance(0.5):
        other = same[int(make.random.integers(len(same)))]
        return other.value, item.shape, other.exact
    shape = tuple(size if make.chance(0.7) else 1 for size in item.shape)
    shape = shape[make.integer(0, len(shape)) :]
    return make.constant(shape, item.dtype), item.shape, True


def binary(make: Maker) -> None:
    item = make.pick(lambda item: item.dtype is not DataType.BOOL) or make.floats()
    other, shape, _ = _partner(make, item)
    name = make.choose("Add", "Sub", "Mul", "Max", "Min")
    pair = (item.value, other) if make.chance(0.6) else (other, item.value)
    exact = item.dtype.is_integer
    make.keep(getattr(make.op, name)(*pair), shape, item.dtype, exact)


def compared(make: Maker) -> None:
    item = make.pick(lambda item: item.exact and item.dtype is not DataType.BOOL)
    if item is None:
        return
    other, shape, exact = _partner(make, item)
    if not exact or item.dtype in FLOATS[2:]:
        return
    name = make.choose("Less", "Greater", "LessOrEqual", "GreaterOrEqual", "Equal")
    make.keep(getattr(make.op, name)(item.value, other), shape, DataType.BOOL, True)


def logic(make: Maker) -> None:
    item = make.pick(lambda item: item.dtype is DataType.BOOL)
    if item is None:
        return
    other, shape, _ = _partner(make, item)
    name = make.choose("And", "Or", "Xor", "Not")
    made = make.op.Not(item.value) if name == "Not" else getattr(make.op, name)(item.value, other)
    make.keep(made, shape, DataType.BOOL, True)


def chosen(make: Maker) -> None:
    item = make.pick(lambda item: item.dtype is not DataType.BOOL) or make.floats()
    condition = make.constant(item.shape, DataType.BOOL)
    other, shape, exact = _partner(make, item)
    make.keep(make.op.Where(condition, item.value, other), shape, item.dtype, item.exact and exact)


def cast(make: Maker) -> None:
    item = make.pick()
    if item is None:
        return
    to = make.choose(*FLOATS, *INTEGERS, DataType.BOOL)
    narrows = not to.is_float
    if narrows and item.dtype.is_float:
        if not item.exact:
            return
        bounded = make.op.Clip(make.op.Cast(item.value, to=1), np.float32(0), np.float32(100))
        make.keep(make.op.Cast(bounded, to=int(to)), item.shape, to, True)
        return
    make.keep(make.op.Cast(item.value, to=int(to)), item.shape, to, item.exact)


def integers(make: Maker) -> None:
    item = make.pick(lambda item: item.dtype in INTEGERS[:2])
    if item is None:
        item = make.input((make.integer(1, 5), make.integer(1, 5)), make.choose(*INTEGERS[:2]))
    name = make.choose("Abs", "Neg", "Mod", "Div", "Sign", "Clip")
    if name == "Mod":
        made = make.op.Mod(item.value, np.array(make.choose(3, -4, 7), item.dtype.numpy))
    elif name == "Div":
        made = make.op.Div(item.value, np.array(make.choose(2, 3, 5), item.dtype.numpy))
    elif name == "Clip":
        made = make.op.Clip(item.value, *(np.array(bound, item.dtype.numpy) for bound in (-3, 4)))
    else:
        made = getattr(make.op, name)(item.value)
    make.keep(made, item.shape, item.dtype, True)


def bits(make: Maker) -> None:
    item = make.pick(lambda item: item.dtype is DataType.UINT8)
    if item is None:
        item = make.input((make.integer(1, 20),), DataType.UINT8)
    count = make.constant(item.shape, DataType.UINT8)
    name = make.choose("BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitShift")
    extra = {"direction": make.choose("LEFT", "RIGHT")} if name == "BitShift" else {}
    made = getattr(make.op, name)(item.value, count % 8, **extra)
    make.keep(made, item.shape, item.dtype, True)


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


def quantized(make: Maker) -> None:
    item = make.floats(exact=True)
    zero = np.array(make.integer(0, 9), make.choose(np.uint8, np.int8))
    scale = np.float32(0.25)
    narrow = make.op.QuantizeLinear(item.value, scale, zero)
    make.keep(narrow, item.shape, from_numpy(zero.dtype), True)
    make.keep(make.op.DequantizeLinear(narrow, scale, zero), item.shape, DataType.FLOAT, True)


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


STEPS: tuple[Step, ...] = (
    unary, unary, unary, rounded, binary, binary, binary, compared, logic, chosen, cast, integers,
    bits, transpose, reshape, axes_of_one, sliced, padded, joined, split, gathered, scattered,
    reduced, reduced, extremes, row_wise, row_wise, product, product_of_two, general_product,
    convolution, pooled, resized, repeated, triangle, quantized, sums_of_products, recurrent,
)  # fmt: skip


def random_case(seed: int) -> Case:
    """A random model, the same for the same seed."""
    make = Maker(seed)
    make.floats()
    wanted = make.integer(3, 30)
    for _ in range(4 * wanted):
        if len(list(make.graph.nodes)) >= wanted:
            break
        STEPS[int(make.random.integers(len(STEPS)))](make)
        if make.items and int(np.prod(make.items[-1].shape)) > LARGEST:
            item = make.items.pop()
            flat = make.op.Reshape(item.value, np.array([-1]))
            short = make.op.Slice(flat, np.array([0]), np.array([64]))
            make.keep(short, (64,), item.dtype, item.exact)
    return make.finish()
