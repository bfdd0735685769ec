"""Random graphs: valid models of any opset, full of what passes look for."""

from collections.abc import Callable
from typing import Any

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.graph import Graph, Model, Opsets, TensorType, Value
from sardonyx.ops.catalog import standard
from sardonyx.passes.options import Options
from sardonyx.passes.rules import RuleBuilder
from sardonyx.passes.unit import Unit

BATCH = 2
"""The size that the symbol `n` stands for when random graphs run."""

Shape = tuple[int, ...]
Step = Callable[["Maker"], None]


class Maker:
    """Grows one graph; knows the shape each value has when `n` is BATCH."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.opset = int(self.random.choice([11, 13, 17, 18, 20, 21, 24]))
        self.graph = Graph("random")
        self.values: list[tuple[Value, Shape]] = []
        for name, shape in (("x", (BATCH, 4)), ("z", (BATCH, 3, 4))):
            declared = TensorType(DataType.FLOAT, ("n", *shape[1:]))
            self.values.append((self.graph.add_input(name, declared), shape))
        anchor = self.graph.add("Identity", [self.values[0][0]], ["anchor"])
        opsets = Opsets({"": self.opset})
        self.model = Model(self.graph, opsets, 10)
        unit = Unit(self.model, self.graph, opsets, standard(), Options())
        self.op: Any = RuleBuilder(unit, anchor)
        self.anchor = anchor

    def pick(self, rank: int | None = None) -> tuple[Value, Shape]:
        """Some value, of a rank if one is asked for."""
        fitting = [item for item in self.values if rank is None or len(item[1]) == rank]
        recent = fitting[-5:]
        return recent[int(self.random.integers(len(recent)))]

    def numbers(self, *shape: int) -> Any:
        """A constant of small random numbers, now and then all 0 or all 1."""
        kind = self.random.random()
        if kind < 0.15:
            return np.full(shape, 0 if kind < 0.07 else 1, np.float32)
        return self.random.uniform(-1, 1, shape).astype(np.float32)

    def add(self, value: Value, shape: Shape) -> None:
        """Remember a new value."""
        self.values.append((value, shape))

    def choose(self, *items: Any) -> Any:
        """One of several."""
        return items[int(self.random.integers(len(items)))]


def unary(make: Maker) -> None:
    value, shape = make.pick()
    name = make.choose("Relu", "Neg", "Abs", "Sigmoid", "Tanh", "Erf", "Identity", "Softplus")
    make.add(getattr(make.op, name)(value), shape)


def binary(make: Maker) -> None:
    value, shape = make.pick()
    other = make.numbers(*make.choose((), shape[-1:], (1,)))
    if make.random.random() < 0.3:
        other = make.choose(*[item for item, size in make.values if size == shape])
    name = make.choose("Add", "Sub", "Mul", "Max", "Min")
    pair = (value, other) if make.random.random() < 0.7 else (other, value)
    make.add(getattr(make.op, name)(*pair), shape)


def divide(make: Maker) -> None:
    value, shape = make.pick()
    make.add(make.op.Div(value, np.float32(make.choose(1, 2, 3, 0.5))), shape)


def cast(make: Maker) -> None:
    value, shape = make.pick()
    between = make.choose(DataType.DOUBLE, DataType.FLOAT)
    make.add(make.op.Cast(make.op.Cast(value, to=int(between)), to=int(DataType.FLOAT)), shape)


def transpose(make: Maker) -> None:
    value, shape = make.pick()
    perm = [int(axis) for axis in make.random.permutation(len(shape))]
    make.add(make.op.Transpose(value, perm=perm), tuple(shape[axis] for axis in perm))


def reshape(make: Maker) -> None:
    value, shape = make.pick()
    flat = int(np.prod(shape))
    new = make.choose((flat,), (flat, 1), shape, shape[::-1], (1, *shape))
    parts = [make.op.Gather(make.op.Shape(value), [0], axis=0), list(new[1:]) or None]
    if new[0] == shape[0] and parts[1] is not None:
        make.add(make.op.Reshape(value, make.op.Concat(*parts, axis=0)), new)
    else:
        make.add(make.op.Reshape(value, list(new)), new)


def squeeze(make: Maker) -> None:
    value, shape = make.pick()
    axis = int(make.random.integers(len(shape) + 1))
    wide = make.op.Unsqueeze(value, axes=[axis])
    if make.random.random() < 0.5:
        make.add(make.op.Squeeze(wide, axes=[axis]), shape)
    else:
        make.add(wide, (*shape[:axis], 1, *shape[axis:]))


def concat(make: Maker) -> None:
    value, shape = make.pick()
    axis = int(make.random.integers(len(shape)))
    parts = [value] * int(make.random.integers(1, 3))
    joined = make.op.Concat(*parts, axis=axis)
    make.add(joined, (*shape[:axis], shape[axis] * len(parts), *shape[axis + 1 :]))


def cut(make: Maker) -> None:
    value, shape = make.pick()
    axis = int(make.random.integers(len(shape)))
    end = make.choose(shape[axis], 2**31, max(1, shape[axis] - 1))
    taken = min(end, shape[axis])
    step = make.op.Slice(value, [0], [end], [axis])
    make.add(step, (*shape[:axis], taken, *shape[axis + 1 :]))


def product(make: Maker) -> None:
    value, shape = make.pick()
    if len(shape) < 2:
        return
    columns = int(make.random.integers(1, 4))
    result = make.op.MatMul(value, make.numbers(shape[-1], columns))
    if make.random.random() < 0.6:
        result = make.op.Add(result, make.numbers(columns))
    if make.random.random() < 0.4:
        result = make.op.Mul(result, np.float32(0.5))
    make.add(result, (*shape[:-1], columns))


def flat_product(make: Maker) -> None:
    value, shape = make.pick()
    if len(shape) < 2:
        return
    flat = make.op.Reshape(value, [-1, shape[-1]])
    result = make.op.Gemm(flat, make.numbers(shape[-1], 2), make.numbers(2))
    make.add(make.op.Reshape(result, [*shape[:-1], 2]), (*shape[:-1], 2))


def convolution(make: Maker) -> None:
    value, shape = make.pick()
    if len(shape) != 3:
        return
    padded = make.op.Pad(value, pads=[0, 0, 1, 0, 0, 1], constant_value=np.float32(0))
    result = make.op.Conv(padded, make.numbers(2, shape[1], 3))
    parts = [make.numbers(2), make.numbers(2), make.numbers(2), np.abs(make.numbers(2))]
    if make.random.random() < 0.6:
        result = make.op.BatchNormalization(result, *parts)
    if make.random.random() < 0.6:
        result = make.op.Mul(result, make.numbers(*make.choose((2, 1), (1,))))
    make.add(result, (shape[0], 2, shape[2]))


def normalize(make: Maker) -> None:
    value, shape = make.pick()
    if shape[-1] < 2:
        return
    op = make.op
    centered = op.Sub(value, op.ReduceMean(value, axes=[-1], keepdims=1))
    variance = op.ReduceMean(op.Mul(centered, centered), axes=[-1], keepdims=1)
    scaled = op.Div(centered, op.Sqrt(op.Add(variance, np.float32(0.1))))
    make.add(op.Add(op.Mul(scaled, make.numbers(shape[-1])), make.numbers(shape[-1])), shape)


def activation(make: Maker) -> None:
    value, shape = make.pick()
    op, kind = make.op, make.random.random()
    if kind < 0.5:
        erf = op.Add(op.Erf(op.Div(value, np.float32(2**0.5))), np.float32(1))
        make.add(op.Mul(op.Mul(value, erf), np.float32(0.5)), shape)
    else:
        make.add(op.Mul(value, op.Sigmoid(value)), shape)


def spread(make: Maker) -> None:
    value, shape = make.pick()
    make.add(make.op.Expand(value, make.op.Shape(value)), shape)


def folded(make: Maker) -> None:
    value, shape = make.pick()
    constant = make.op.Exp(make.op.Transpose(make.numbers(shape[-1], 1), perm=[1, 0]))
    rank = max(len(shape), 2)
    make.add(make.op.Mul(value, constant), (1,) * (rank - len(shape)) + shape)


def branch(make: Maker) -> None:
    """If: on a constant, or on what only a run tells."""
    value, shape = make.pick()
    op = make.op
    condition: Any = np.array(make.random.random() < 0.5)
    if make.random.random() < 0.5:
        total = op.ReduceSum(value, keepdims=0)
        condition = op.Less(total, np.float32(0))
    graphs = []
    for name, kind in (("then", "Abs"), ("else", "Neg")):
        inside = op.inside(name)
        doubled = inside.Mul(inside.Identity(value), inside.Exp(np.float32(0.5)))
        result = getattr(inside, kind)(inside.Add(doubled, doubled))
        result.declared = TensorType(DataType.FLOAT, (None,) * len(shape))
        inside.graph.outputs.append(result)
        graphs.append(inside.graph)
    make.add(op.If(condition, then_branch=graphs[0], else_branch=graphs[1]), shape)


STEPS: tuple[Step, ...] = (
    unary, unary, binary, binary, divide, cast, transpose, transpose, reshape, squeeze, concat, cut,
    product, flat_product, convolution, normalize, activation, spread, folded,
    branch,
)  # fmt: skip


def random_model(seed: int, size: int = 12) -> Model:
    """A random model of about `size` steps; two of its values are returned."""
    make = Maker(seed)
    for _ in range(size):
        STEPS[int(make.random.integers(len(STEPS)))](make)
    make.add(make.op.Neg(make.values[-1][0]), make.values[-1][1])
    last = [(value, shape) for value, shape in make.values if value.producer is not None][-3::2]
    make.graph.nodes.remove(make.anchor)
    for number, node in enumerate(make.graph.nodes):
        node.name = f"node{number}"
    for value, shape in last:
        value.declared = TensorType(DataType.FLOAT, (None,) * len(shape))
        if value not in make.graph.outputs:
            make.graph.outputs.append(value)
    return make.model
