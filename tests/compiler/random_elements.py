"""Steps of random models: functions of single elements."""

from typing import Any

import numpy as np

from sardonyx.dtypes import DataType, from_numpy
from tests.compiler.random_maker import FLOATS, INTEGERS, Item, Maker


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


def quantized(make: Maker) -> None:
    item = make.floats(exact=True)
    zero = np.array(make.integer(0, 9), make.choose(np.uint8, np.int8))
    scale = np.float32(0.25)
    narrow = make.op.QuantizeLinear(item.value, scale, zero)
    make.keep(narrow, item.shape, from_numpy(zero.dtype), True)
    make.keep(make.op.DequantizeLinear(narrow, scale, zero), item.shape, DataType.FLOAT, True)
