"""Declared shapes, ranks and types that are not what is computed or fed."""

import random
from typing import Any

import onnx
from onnx import TensorProto, helper

from tests.fuzz.maker import Maker
from tests.fuzz.trial import Feeds, Trial
from tests.fuzz.values import dtype_of, elements

RUNS = 6
SHARE = 12
SIZES = (0, 1, 1, 2, 3, 3, 3, 4, 5, 7, -1, 2**31, 2**62, 2**63 - 1, -(2**63))
TYPES = (TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32, TensorProto.FLOAT16,
         TensorProto.BOOL, TensorProto.STRING, TensorProto.DOUBLE, TensorProto.BFLOAT16,
         TensorProto.UNDEFINED)  # fmt: skip
BINARY = ("Add", "Mul", "Sub", "Max", "Where", "MatMul", "Concat")
UNARY = ("Relu", "Neg", "Transpose", "ReduceSum", "Softmax", "Reshape", "Flatten", "Slice", "Exp",
         "Unsqueeze", "Gather", "Expand", "Tile", "Identity")  # fmt: skip


def make(seed: int) -> Trial:
    """A small graph whose declarations are partly untrue."""
    maker = Maker(seed)
    rng = maker.rng
    size = rng.choice(("n", "n", 3))
    values = [maker.data((size, size)), maker.data((size, size))]
    if rng.random() < 0.5:
        values.append(maker.data((rng.choice((1, "n", 3)), "n")))
    for _ in range(rng.randint(1, 5)):
        values.append(_step(maker, values))
    for name in values:
        if rng.random() < 0.3:
            sizes = [rng.choice(("n", None, 3, "m")) for _ in range(2)]
            maker.values.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, sizes))
    taken = {name for node in maker.nodes for name in node.input}
    outputs = [(name, TensorProto.FLOAT) for name in values if name not in taken]
    model = onnx.ModelProto.FromString(maker.model(outputs))
    operators = sorted({node.op_type for node in model.graph.node})
    lies = [_lie(rng, model) for _ in range(rng.randint(1, 3))]
    what = f"{' '.join(operators)} ({', '.join(lies)})"
    return Trial(bytes(model.SerializeToString()), what, _feeds(maker))


def _step(maker: Maker, values: list[str]) -> str:
    rng = maker.rng
    one, two = rng.choice(values[-3:]), rng.choice(values[-3:])
    if rng.random() < 0.4:
        kind = rng.choice(BINARY)
        if kind == "Where":
            return str(maker.node(kind, maker.node("Less", one, two), one, two))
        given: dict[str, Any] = {"axis": rng.choice((0, 1, -1))} if kind == "Concat" else {}
        return str(maker.node(kind, one, two, **given))
    kind = rng.choice(UNARY)
    extra: list[str] = []
    if kind == "Reshape":
        extra = [maker.whole(2, wild=0.05, among=(-1, 0, 1, 3))]
    elif kind == "Slice":
        extra = [maker.whole(1, wild=0.2, among=(0, 1)), maker.whole(1, wild=0.2, among=(2, 3))]
    elif kind == "Unsqueeze":
        extra = [maker.whole(1, wild=0.02, among=(0, 1, -1))]
    elif kind == "Gather":
        extra = [maker.whole(2, wild=0.05, among=(0, 1, -1))]
    elif kind in ("Expand", "Tile"):
        extra = [maker.whole(2, wild=0.1, among=(1, 1, 2, 3))]
    return str(maker.node(kind, one, *extra))


def _feeds(maker: Maker) -> Any:
    def feeds(run: int) -> Feeds:
        """Mostly what the graph was made for; now and then another size, rank or type."""
        found = maker.feeds(run)
        rng = random.Random(maker.seed << 8 | run)
        for name in found:
            if rng.random() < 0.08:
                shape = [rng.choice((0, 1, 2, 3, 5)) for _ in range(rng.choice((0, 1, 2, 2, 2, 3)))]
                found[name] = elements(rng, shape, found[name].dtype.name)
            elif rng.random() < 0.02:
                kind = rng.choice(("float64", "int64", "float16", "bool"))
                found[name] = found[name].astype(dtype_of(kind))
        return found

    return feeds


def _lie(rng: Any, model: onnx.ModelProto) -> str:
    """Make one declaration untrue; what was done, in a word."""
    graph = model.graph
    value = rng.choice((*graph.input, *graph.output, *graph.value_info))
    tensor = value.type.tensor_type
    done = rng.choice(("type", "size", "size", "name", "name", "rank", "rank", "empty", "less"))
    if done == "type":
        tensor.elem_type = rng.choice(TYPES)
    elif done in ("size", "name") and tensor.shape.dim:
        place = rng.choice(tensor.shape.dim)
        if done == "size":
            place.dim_value = rng.choice(SIZES)
        else:
            place.dim_param = rng.choice(("n", "n", "", "m", "n + 1", "h w", "0"))
    elif done == "rank":
        for _ in range(rng.choice((1, 1, 2))):
            if tensor.shape.dim and rng.random() < 0.5:
                del tensor.shape.dim[rng.randrange(len(tensor.shape.dim))]
            else:
                tensor.shape.dim.add(dim_value=rng.choice((1, 2, 3)))
    elif done == "empty":
        tensor.shape.ClearField("dim")
        tensor.shape.SetInParent()
    elif rng.random() < 0.5:
        tensor.ClearField("shape")
    else:
        value.ClearField("type")
    return str(done)
