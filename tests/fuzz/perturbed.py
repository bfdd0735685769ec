"""Official cases with other shapes, attributes, types and feeds."""

import random
from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, numpy_helper

from tests.conformance.suite import RANDOM, Case, cases
from tests.fuzz.trial import Feeds, Trial
from tests.fuzz.values import EXTREME, FLOATS, SMALL, elements

RUNS = 6
SHARE = 14
LARGEST = 4096
"""Cases with more bytes of feeds cost time and show nothing more."""

ODD = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1e30, -1e-30, 3e38, 1e-42)
ENUMS = ("", "constant", "linear", "SAME_UPPER", "mean", "none", "relu", "bidirectional", "NOTSET")


@cache
def small_cases() -> tuple[Case, ...]:
    """The cases that run fast."""
    return tuple(case for case in cases("node") if case.data_sets and _bytes(case) <= LARGEST)


def _bytes(case: Case) -> int:
    arrays = [item for item in case.data_sets[0][0] if isinstance(item, np.ndarray)]
    return case.model.ByteSize() + sum(item.nbytes for item in arrays)


def make(seed: int) -> Trial:
    """A case, its model changed in some places; each run changes its feeds."""
    rng = random.Random(seed)
    case = rng.choice(small_cases())
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    _declare(rng, model)
    given: list[Any] = list(case.data_sets[0][0])
    fixed = [item.name for item in model.graph.initializer]
    names = [item.name for item in model.graph.input if item.name not in fixed]
    feeds = dict(zip(names, given, strict=False))
    for _ in range(rng.choice((0, 0, 1, 1, 2))):
        _change_model(rng, model, feeds)
    return Trial(
        bytes(model.SerializeToString()),
        f"{'+'.join(sorted(case.operators))[:60]} {case.name}",
        lambda run: _changed_feeds(random.Random(seed << 8 | run), feeds),
        random=case.name in RANDOM or bool(case.operators & {"Bernoulli", "Dropout"}),
    )


def _declare(rng: random.Random, model: onnx.ModelProto) -> None:
    """Leave declared sizes open, give them names, or keep them."""
    way = rng.choice(("open", "open", "named", "keep"))
    for place, value in enumerate((*model.graph.input, *model.graph.output)):
        if way == "keep" or value.type.WhichOneof("value") != "tensor_type":
            continue
        for axis, size in enumerate(value.type.tensor_type.shape.dim):
            size.Clear()
            if way == "named":
                size.dim_param = f"d{place}_{axis}"


def _change_model(rng: random.Random, model: onnx.ModelProto, feeds: Feeds) -> None:
    way = rng.random()
    if way < 0.55:
        change_attribute(rng, model)
    elif way < 0.75:
        _make_constant(rng, model, feeds)
    elif way < 0.85:
        _drop_attribute(rng, model)
    elif way < 0.92:
        _drop_operand(rng, model)
    else:
        opset = rng.choice(model.opset_import)
        opset.version = max(1, opset.version - rng.choice((1, 2, 4, 8)))


def change_attribute(rng: random.Random, model: onnx.ModelProto) -> None:
    """Give one attribute of some node another number or word."""
    kinds = (AttributeProto.INT, AttributeProto.INTS, AttributeProto.FLOAT, AttributeProto.STRING,
             AttributeProto.FLOATS)  # fmt: skip
    found = [item for node in model.graph.node for item in node.attribute if item.type in kinds]
    if not found:
        return
    attribute = rng.choice(found)
    number = rng.choice(EXTREME if rng.random() < 0.3 else SMALL)
    if attribute.type == AttributeProto.FLOAT:
        attribute.f = rng.choice(ODD)
    elif attribute.type == AttributeProto.STRING:
        attribute.s = rng.choice(ENUMS).encode()
    elif attribute.type == AttributeProto.INT:
        attribute.i = number
    elif attribute.type == AttributeProto.FLOATS:
        if attribute.floats:
            attribute.floats[rng.randrange(len(attribute.floats))] = rng.choice(ODD)
    elif attribute.ints and rng.random() < 0.7:
        attribute.ints[rng.randrange(len(attribute.ints))] = number
    elif attribute.ints and rng.random() < 0.5:
        attribute.ints.pop()
    else:
        attribute.ints.append(number)


def _drop_attribute(rng: random.Random, model: onnx.ModelProto) -> None:
    nodes = [node for node in model.graph.node if node.attribute]
    if nodes:
        node = rng.choice(nodes)
        del node.attribute[rng.randrange(len(node.attribute))]


def _drop_operand(rng: random.Random, model: onnx.ModelProto) -> None:
    nodes = [node for node in model.graph.node if node.input]
    if nodes:
        node = rng.choice(nodes)
        node.input[rng.randrange(len(node.input))] = ""


def _make_constant(rng: random.Random, model: onnx.ModelProto, feeds: Feeds) -> None:
    """Let the model hold what was fed."""
    names = [name for name, item in feeds.items()
             if isinstance(item, np.ndarray) and item.dtype.kind not in "OUS"]  # fmt: skip
    if not names:
        return
    name = rng.choice(names)
    held = _changed_array(rng, feeds[name]) if rng.random() < 0.4 else feeds[name]
    model.graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(held), name))
    for place, value in enumerate(model.graph.input):
        if value.name == name:
            del model.graph.input[place]
            break
    del feeds[name]


def _changed_feeds(rng: random.Random, feeds: Feeds) -> Feeds:
    found = dict(feeds)
    places = [name for name, item in feeds.items() if isinstance(item, np.ndarray)]
    for _ in range(rng.choice((0, 1, 1, 2))):
        if places:
            name = rng.choice(places)
            found[name] = _changed_array(rng, found[name])
    return found


def _changed_array(rng: random.Random, array: Any) -> Any:
    """Another shape, type, or other elements."""
    way = rng.random()
    if array.ndim and way < 0.4:
        shape = list(array.shape)
        axis = rng.randrange(array.ndim)
        shape[axis] = rng.choice((0, 1, shape[axis] + 1, max(shape[axis] - 1, 0), 17))
        if np.prod(shape) > LARGEST:
            return array
        return np.resize(array, shape) if array.size else np.zeros(shape, array.dtype)
    if way < 0.46:
        return array[None] if rng.random() < 0.5 or not array.ndim else array[0:1].reshape(-1)
    if way < 0.5 and array.dtype.kind in "iuf":
        return array.astype(rng.choice(("float64", "int32", "int64", "float16", "uint8", "bool")))
    if not array.size or array.dtype.kind not in "iuf":
        return array
    array = array.copy()
    flat = array.reshape(-1)
    for _ in range(rng.randint(1, 3)):
        name = array.dtype.name
        other = elements(rng, (1,), name, 1.0 if name in FLOATS else 0.5)
        flat[rng.randrange(flat.size)] = other[0]
    return array
