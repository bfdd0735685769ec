"""Operators that move, choose and make elements as numbers tell them to."""

from collections.abc import Callable

import numpy as np
from onnx import numpy_helper

from tests.fuzz.maker import Maker, Shape
from tests.fuzz.values import FLOATS, INTEGERS, dtype_of, element_type, elements

Output = tuple[str, str]
KINDS = (*["float32"] * 6, *FLOATS, "int64", "int32", "int8", "uint8", "bool", "str")
INDEX = ("int64", "int64", "int32")
NEAR = (-3, -2, -1, 0, 1, 2, 3)


def _tensor(maker: Maker, most: int = 3, least: int = 0) -> tuple[str, str, int]:
    """An input of any rank and type: its name, type and rank."""
    rank = maker.rng.randint(least, most)
    kind = maker.rng.choice(KINDS)
    shape: Shape = tuple(maker.rng.choice(("h", "w", "n", "k", 2, 3)) for _ in range(rank))
    name = maker.data(shape, kind)
    if kind in FLOATS and maker.rng.random() < 0.3:
        name = maker.node("Neg", name)
    return name, kind, rank


def slice_(maker: Maker) -> list[Output]:
    name, kind, rank = _tensor(maker, least=1)
    count = maker.rng.randint(1, rank)
    index = maker.rng.choice(INDEX)
    inputs = [maker.whole(count, index), maker.whole(count, index)]
    if maker.rng.random() < 0.7:
        axes = maker.rng.sample(range(-rank, rank), count)
        inputs.append(maker.constant(np.array(axes, index)))
        if maker.rng.random() < 0.7:
            inputs.append(maker.whole(count, index, 0.4, among=(-1, 1, 2, -2)))
    return [(maker.node("Slice", name, *inputs), kind)]


def pad(maker: Maker) -> list[Output]:
    name, kind, rank = _tensor(maker)
    mode = maker.rng.choice(("constant", "reflect", "edge", "wrap"))
    inputs = [maker.whole(2 * rank, wild=0.2, among=(-2, -1, 0, 0, 1, 2, 3))]
    if maker.rng.random() < 0.3:
        inputs.append(maker.constant(elements(maker.rng, (), kind)))
    return [(maker.node("Pad", name, *inputs, mode=mode), kind)]


def tile(maker: Maker) -> list[Output]:
    name, kind, rank = _tensor(maker)
    return [(maker.node("Tile", name, maker.whole(rank, wild=0.6, among=(0, 1, 2))), kind)]


def range_(maker: Maker) -> list[Output]:
    kind = maker.rng.choice(("int64", "int32", "int16", "float32", "float64"))
    if kind.startswith("int"):
        inputs = [maker.whole(1, kind, 0.6, among=SMALL, scalar=True) for _ in range(3)]
    else:
        inputs = [maker.data((), kind, 0.4) for _ in range(3)]
    return [(maker.node("Range", *inputs), kind)]


SMALL = (-5, -2, -1, 0, 1, 2, 3, 7)
COUNTS = (0, 1, 2, 3, 5)


def constant_of_shape(maker: Maker) -> list[Output]:
    shape = maker.whole(maker.rng.randint(0, 3), wild=0.5, among=COUNTS)
    kind = maker.rng.choice(("float32", "int64", "bool", "float16"))
    value = elements(maker.rng, (1,), kind)
    given = numpy_helper.from_array(value) if kind != "float32" else None
    return [(maker.node("ConstantOfShape", shape, value=given), kind)]


def expand(maker: Maker) -> list[Output]:
    name, kind, rank = _tensor(maker)
    count = max(0, rank + maker.rng.choice((-1, 0, 0, 1)))
    return [(maker.node("Expand", name, maker.whole(count, wild=0.3, among=COUNTS)), kind)]


def reshape(maker: Maker) -> list[Output]:
    name, kind, _ = _tensor(maker)
    sizes = maker.whole(maker.rng.randint(0, 4), wild=0.2, among=(-1, 0, 1, 2, 3, 4))
    zero = maker.maybe(lambda: maker.rng.choice((0, 1)), 0.3)
    return [(maker.node("Reshape", name, sizes, allowzero=zero), kind)]


def squeeze(maker: Maker) -> list[Output]:
    name, kind, rank = _tensor(maker)
    axes = maker.whole(maker.rng.randint(0, rank + 1), wild=0.2, among=NEAR)
    return [(maker.node(maker.rng.choice(("Squeeze", "Unsqueeze")), name, axes), kind)]


def gather(maker: Maker) -> list[Output]:
    name, kind, rank = _tensor(maker, least=1)
    op = maker.rng.choice(("Gather", "GatherElements", "GatherND"))
    index = "int64" if op == "GatherND" else maker.rng.choice(INDEX)
    axis = maker.maybe(lambda: maker.rng.choice((*range(-rank, rank), maker.one())))
    if op == "GatherElements":
        indices = maker.data(("i", *(2,) * (rank - 1)), index, 0.15)
        return [(maker.node(op, name, indices, axis=axis), kind)]
    if op == "GatherND":
        indices = maker.data(("i", maker.rng.randint(1, rank)), index, 0.15)
        return [(maker.node(op, name, indices, batch_dims=maker.maybe(maker.one, 0.2)), kind)]
    indices = maker.data(maker.rng.choice(((), ("i",), ("i", 2))), index, 0.15)
    return [(maker.node(op, name, indices, axis=axis), kind)]


def scatter(maker: Maker) -> list[Output]:
    name, kind, rank = _tensor(maker, least=1)
    op = maker.rng.choice(("ScatterElements", "ScatterND"))
    reduction = maker.rng.choice((None, "add", "mul", "max", "min"))
    if kind in ("bool", "str"):
        reduction = None
    if op == "ScatterND":
        depth = maker.rng.randint(1, rank)
        indices = maker.data(("i", depth), "int64", 0.15)
        updates = maker.data(("i", *(2,) * (rank - depth)), kind)
        return [(maker.node(op, name, indices, updates, reduction=reduction), kind)]
    axis = maker.maybe(lambda: maker.rng.choice((*range(-rank, rank), maker.one())))
    shape: Shape = ("i", *(2,) * (rank - 1))
    indices = maker.data(shape, maker.rng.choice(INDEX), 0.15)
    updates = maker.data(shape, kind)
    return [(maker.node(op, name, indices, updates, axis=axis, reduction=reduction), kind)]


def tensor_scatter(maker: Maker) -> list[Output]:
    kind = maker.rng.choice(("float32", "float16", "int64"))
    mode = maker.rng.choice(("linear", "circular"))
    inputs = [maker.data(("b", 4, "d"), kind), maker.data(("b", 2, "d"), kind)]
    where = maker.data(("b",), "int64", 0.2)
    return [(maker.node("TensorScatter", *inputs, where, mode=mode, axis=-2), kind)]


def split(maker: Maker) -> list[Output]:
    name, kind, rank = _tensor(maker, least=1)
    outputs = maker.rng.randint(1, 3)
    axis = maker.maybe(lambda: maker.rng.choice((*range(-rank, rank), maker.one())))
    if maker.rng.random() < 0.5:
        found = maker.node("Split", name, outputs=outputs, num_outputs=maker.rng.choice(
            (outputs, outputs, maker.one())), axis=axis)  # fmt: skip
    else:
        sizes = maker.whole(outputs, wild=0.3, among=COUNTS)
        found = maker.node("Split", name, sizes, outputs=outputs, axis=axis)
    return [(item, kind) for item in ([found] if outputs == 1 else found)]


def top_k(maker: Maker) -> list[Output]:
    name = maker.data(
        ("h", "w"), kind := maker.rng.choice(("float32", "float16", "int64", "uint8"))
    )
    count = maker.whole(1, wild=0.3, among=COUNTS)
    values, places = maker.node(
        "TopK", name, count, outputs=2, largest=maker.rng.choice((0, 1)),
        axis=maker.rng.choice((0, 1, -1, -2, maker.one())),
    )  # fmt: skip
    return [(values, kind), (places, "int64")]


def one_hot(maker: Maker) -> list[Output]:
    kind = maker.rng.choice(("int64", "int32", "float32", "uint8"))
    indices = maker.data(maker.rng.choice((("n",), ("n", 2))), kind, 0.3)
    depth = maker.whole(
        1, maker.rng.choice(INDEX), 0.3, among=COUNTS, scalar=maker.rng.random() < 0.7
    )
    values = maker.constant(elements(maker.rng, (2,), "float32"))
    axis = maker.maybe(lambda: maker.rng.choice((0, 1, -1, maker.one())))
    return [(maker.node("OneHot", indices, depth, values, axis=axis), "float32")]


def trilu(maker: Maker) -> list[Output]:
    kind = maker.rng.choice(("float32", "int64", "bool", "float16"))
    name = maker.data(maker.rng.choice((("h", "w"), (2, "h", "w"))), kind)
    k = maker.whole(1, wild=0.5, among=NEAR, scalar=True)
    return [(maker.node("Trilu", name, k, upper=maker.rng.choice((0, 1))), kind)]


def eye_like(maker: Maker) -> list[Output]:
    name = maker.data(("h", "w"), "float32")
    return [(maker.node("EyeLike", name, k=maker.one(0.6)), "float32")]


def cumulative(maker: Maker) -> list[Output]:
    op = maker.rng.choice(("CumSum", "CumSum", "CumProd"))
    maker.opset = 24 if op == "CumSum" else 26
    kind = maker.rng.choice(("float32", "int64", "int32", "float64", "float16"))
    name = maker.data(("h", "w"), kind)
    axis = maker.whole(1, maker.rng.choice(INDEX), 0.2, among=(-2, -1, 0, 1), scalar=True)
    given = {key: maker.rng.choice((0, 1)) for key in ("exclusive", "reverse")}
    return [(maker.node(op, name, axis, **given), kind)]


def shape(maker: Maker) -> list[Output]:
    name, _, _ = _tensor(maker)
    given = {"start": maker.maybe(maker.one), "end": maker.maybe(maker.one)}
    sizes = maker.node("Shape", name, **given)
    if maker.rng.random() < 0.5:
        return [(sizes, "int64")]
    return [(maker.node("ConstantOfShape", sizes), "float32")]


def center_crop_pad(maker: Maker) -> list[Output]:
    name, kind, rank = _tensor(maker, least=1)
    axes = maker.rng.sample(range(-rank, rank), maker.rng.randint(1, rank))
    sizes = maker.whole(len(axes), wild=0.3, among=COUNTS)
    return [(maker.node("CenterCropPad", name, sizes, axes=axes), kind)]


def reverse_sequence(maker: Maker) -> list[Output]:
    name = maker.data(("t", "b"), "float32")
    lengths = maker.data(("b",), "int64", 0.3)
    first = maker.rng.choice((0, 1))
    return [(maker.node("ReverseSequence", name, lengths, time_axis=first,
                        batch_axis=1 - first), "float32")]  # fmt: skip


def random_like(maker: Maker) -> list[Output]:
    op = maker.rng.choice(("RandomNormal", "RandomUniform"))
    return [(maker.node(op, shape=maker.some(maker.rng.randint(0, 3))), "float32")]


def bernoulli(maker: Maker) -> list[Output]:
    name = maker.data(("h", "w"), "float32", 0.3)
    return [(maker.node("Bernoulli", name), "float32")]


def multinomial(maker: Maker) -> list[Output]:
    name = maker.data(("b", "c"), "float32", 0.1)
    return [(maker.node("Multinomial", name, sample_size=maker.one(0.4)), "int32")]


def space(maker: Maker) -> list[Output]:
    op = maker.rng.choice(("DepthToSpace", "SpaceToDepth"))
    name = maker.data((1, 4, "h", "w"), "float32")
    return [(maker.node(op, name, blocksize=maker.rng.choice((1, 2, maker.one()))), "float32")]


def flatten(maker: Maker) -> list[Output]:
    name, kind, rank = _tensor(maker)
    axis = maker.rng.choice((*range(-rank, rank + 1), maker.one()))
    return [(maker.node("Flatten", name, axis=axis), kind)]


def concat(maker: Maker) -> list[Output]:
    kind = maker.rng.choice(KINDS)
    left, right = maker.data(("h", 3), kind), maker.data(("h", 2), kind)
    axis = maker.rng.choice((1, -1, 1, 0, maker.one()))
    return [(maker.node("Concat", left, right, axis=axis), kind)]


def transpose(maker: Maker) -> list[Output]:
    name, kind, rank = _tensor(maker, least=1)
    perm = maker.rng.sample(range(rank), rank) if maker.rng.random() < 0.8 else maker.some(rank)
    return [(maker.node("Transpose", name, perm=perm), kind)]


def bit_shift(maker: Maker) -> list[Output]:
    kind = maker.rng.choice(("uint8", "uint16", "uint32", "uint64"))
    left, right = maker.data(("n",), kind, 0.5), maker.data(("n",), kind, 0.5)
    way = maker.rng.choice(("LEFT", "RIGHT"))
    return [(maker.node("BitShift", left, right, direction=way), kind)]


def divide(maker: Maker) -> list[Output]:
    kind = maker.rng.choice((*INTEGERS, *FLOATS))
    left, right = maker.data(("n", 2), kind, 0.5), maker.data((2,), kind, 0.5)
    op = maker.rng.choice(("Div", "Mod", "Pow", "Mul", "Sub", "Max", "Min"))
    if op == "Pow" and kind not in ("int32", "int64", *FLOATS):
        op = "Div"
    fmod = 1 if op == "Mod" and kind in FLOATS else None
    return [(maker.node(op, left, right, fmod=fmod), kind)]


def cast(maker: Maker) -> list[Output]:
    kind = maker.rng.choice((*INTEGERS, *FLOATS, "bool"))
    to = maker.rng.choice((*INTEGERS, *FLOATS, "bool"))
    wild = 0.0 if kind in FLOATS and to in INTEGERS else 0.5
    if kind in FLOATS and to.startswith("u"):
        to = to[1:]
    name = maker.data(("n", 2), kind, wild)
    return [(maker.node("Cast", name, to=element_type(dtype_of(to))), to)]


def clip(maker: Maker) -> list[Output]:
    kind = maker.rng.choice((*FLOATS, "int32", "int64", "uint8"))
    inputs = [maker.data(("n", 2), kind, 0.5), maker.data((), kind, 0.4), maker.data((), kind, 0.4)]
    return [(maker.node("Clip", *inputs), kind)]


def reduce(maker: Maker) -> list[Output]:
    name = maker.data(("h", "w", 2), kind := maker.rng.choice((*FLOATS, "int32", "int64")))
    ops = ["Sum", "Max", "Min", "Mean", "Prod", "SumSquare", "L1"]
    if kind in FLOATS:
        ops += ["L2", "LogSum", "LogSumExp"]
    axes = maker.whole(maker.rng.randint(0, 2), wild=0.15, among=(-3, -2, -1, 0, 1, 2))
    given = {key: maker.rng.choice((0, 1)) for key in ("keepdims", "noop_with_empty_axes")}
    return [(maker.node("Reduce" + maker.rng.choice(ops), name, axes, **given), kind)]


def arg(maker: Maker) -> list[Output]:
    name = maker.data(("h", "w"), maker.rng.choice((*FLOATS, "int32", "uint8")), 0.3)
    axis = maker.rng.choice((0, 1, -1, maker.one()))
    op = maker.rng.choice(("ArgMax", "ArgMin"))
    given = {key: maker.rng.choice((0, 1)) for key in ("keepdims", "select_last_index")}
    return [(maker.node(op, name, axis=axis, **given), "int64")]


TEMPLATES: dict[str, Callable[[Maker], list[Output]]] = {
    "Slice": slice_, "Pad": pad, "Tile": tile, "Range": range_,
    "ConstantOfShape": constant_of_shape, "Expand": expand, "Reshape": reshape,
    "Squeeze": squeeze, "Gather": gather, "Scatter": scatter, "TensorScatter": tensor_scatter,
    "Split": split, "TopK": top_k, "OneHot": one_hot, "Trilu": trilu, "EyeLike": eye_like,
    "Cumulative": cumulative, "Shape": shape, "CenterCropPad": center_crop_pad,
    "ReverseSequence": reverse_sequence, "RandomNormal": random_like, "Bernoulli": bernoulli,
    "Multinomial": multinomial, "Space": space, "Flatten": flatten, "Concat": concat,
    "Transpose": transpose, "BitShift": bit_shift, "Divide": divide, "Cast": cast, "Clip": clip,
    "Reduce": reduce, "Arg": arg,
}  # fmt: skip
