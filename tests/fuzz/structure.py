"""Real models with their structure changed: nodes, values, attributes and types that are deleted,
doubled, swapped, renamed, or made to point at one another."""

import random
from collections.abc import Callable
from functools import cache
from typing import Any

import onnx
from onnx import AttributeProto

from tests.conformance.suite import cases
from tests.fuzz.damaged import corpus
from tests.fuzz.mutate import default_corpus
from tests.fuzz.trial import Trial
from tests.fuzz.values import EXTREME, SMALL

RUNS = 6
SHARE = 18
LARGEST = 8_000
Change = Callable[[random.Random, onnx.ModelProto], str]


@cache
def models() -> tuple[bytes, ...]:
    """Small shared models, and official cases with more than one node or with graphs inside."""
    rich = [
        case.model.SerializeToString()
        for case in cases("node")
        if len(case.model.graph.node) > 1 or _has_graph(case.model)
    ]
    real = [content for content in default_corpus() if len(content) < LARGEST]
    small = [bytes(content) for content in rich if len(content) < LARGEST // 2]
    return (*real * 3, *small, *corpus()[::4])


def _has_graph(model: onnx.ModelProto) -> bool:
    return any(item.HasField("g") for node in model.graph.node for item in node.attribute)


def make(seed: int) -> Trial:
    """A changed model, opened."""
    rng = random.Random(seed)
    model = onnx.ModelProto.FromString(rng.choice(models()))
    done = [rng.choice(CHANGES)(rng, model) for _ in range(rng.choice((1, 1, 2, 3)))]
    return Trial(bytes(model.SerializeToString()), " ".join(sorted(done)), opens=True)


def _graphs(model: onnx.ModelProto) -> list[Any]:
    """All graphs and functions, outer ones first."""
    found: list[Any] = [model.graph, *model.functions]
    for graph in found:
        for node in graph.node:
            for item in node.attribute:
                found += [item.g] if item.HasField("g") else []
                found += item.graphs
    return found


def _node(rng: random.Random, model: onnx.ModelProto) -> tuple[Any, Any]:
    """A graph and one of its nodes; None where there is none."""
    graph = rng.choice(_graphs(model))
    return graph, rng.choice(graph.node) if graph.node else None


def _name(rng: random.Random, model: onnx.ModelProto) -> str:
    """A name that some value has, or none has."""
    _, node = _node(rng, model)
    names = [*node.input, *node.output] if node is not None else []
    names += [item.name for item in model.graph.input] + ["nowhere", ""]
    return str(rng.choice(names))


def _lists(rng: random.Random, model: onnx.ModelProto) -> Any:
    """Some repeated field: of the model, a graph, a node, a type."""
    graph, node = _node(rng, model)
    found: list[Any] = [graph.node, graph.node, model.opset_import, model.functions]
    if isinstance(graph, onnx.GraphProto):
        found += [graph.input, graph.output, graph.initializer, graph.value_info]
        for value in (*graph.input, *graph.output):
            found.append(value.type.tensor_type.shape.dim)
        found += [item.dims for item in graph.initializer]
    else:
        found += [graph.input, graph.output, graph.attribute]
    if node is not None:
        found += [node.input, node.input, node.output, node.attribute, node.attribute]
    return rng.choice([item for item in found if len(item)] or [model.opset_import])


def delete(rng: random.Random, model: onnx.ModelProto) -> str:
    items = _lists(rng, model)
    if items:
        del items[rng.randrange(len(items))]
    return "delete"


def double(rng: random.Random, model: onnx.ModelProto) -> str:
    items = _lists(rng, model)
    if items and len(items) < 100:
        items.append(rng.choice(items))
    return "double"


def swap(rng: random.Random, model: onnx.ModelProto) -> str:
    items = _lists(rng, model)
    if len(items) > 1:
        held = list(items)
        one, two = rng.sample(range(len(held)), 2)
        held[one], held[two] = held[two], held[one]
        copies = [_copy(item) for item in held]
        del items[:]
        items.extend(copies)
    return "swap"


def _copy(item: Any) -> Any:
    if not hasattr(item, "CopyFrom"):
        return item
    copy = type(item)()
    copy.CopyFrom(item)
    return copy


def rewire(rng: random.Random, model: onnx.ModelProto) -> str:
    """Another operand or result: dangling, a cycle, or one that is already there."""
    _, node = _node(rng, model)
    if node is not None:
        names = node.input if rng.random() < 0.7 else node.output
        if names:
            names[rng.randrange(len(names))] = _name(rng, model)
        else:
            names.append(_name(rng, model))
    return "rewire"


def rename(rng: random.Random, model: onnx.ModelProto) -> str:
    """A value, operator, domain, function or attribute gets another's name."""
    graph, node = _node(rng, model)
    if node is None:
        return "rename"
    _, other = _node(rng, model)
    way = rng.randrange(5)
    if way == 0:
        node.op_type = other.op_type if rng.random() < 0.7 else rng.choice(("", "Nothing", "If"))
    elif way == 1:
        node.domain = rng.choice(("", "ai.onnx.ml", "com.microsoft", "nowhere"))
    elif way == 2 and node.attribute:
        rng.choice(node.attribute).name = rng.choice(("", "axis", "body", "to", "value"))
    elif way == 3 and isinstance(graph, onnx.GraphProto) and graph.input:
        rng.choice(graph.input).name = _name(rng, model)
    elif isinstance(graph, onnx.GraphProto) and graph.output:
        rng.choice(graph.output).name = _name(rng, model)
    return "rename"


def attribute(rng: random.Random, model: onnx.ModelProto) -> str:
    """An attribute gets another kind, number or contents."""
    _, node = _node(rng, model)
    if node is None or not node.attribute:
        return "attribute"
    item = rng.choice(node.attribute)
    way = rng.randrange(5)
    if way == 0:
        item.type = rng.choice(list(AttributeProto.AttributeType.values()))
    elif way == 1:
        item.i = rng.choice((*EXTREME, *SMALL))
    elif way == 2:
        item.ints.append(rng.choice((*EXTREME, *SMALL)))
    elif way == 3:
        item.s = rng.choice((b"", b"\xff", b"NOTSET", b"x" * 300))
    else:
        item.ref_attr_name = rng.choice(("", "axis", "nowhere"))
    return "attribute"


def declare(rng: random.Random, model: onnx.ModelProto) -> str:
    """A type of another kind, element or size."""
    graph = rng.choice(_graphs(model))
    values = [*graph.value_info]
    if isinstance(graph, onnx.GraphProto):
        values += [*graph.input, *graph.output]
    if not values:
        return "declare"
    kind = rng.choice(values).type
    way = rng.randrange(6)
    if way == 0:
        kind.tensor_type.elem_type = rng.choice((*range(24), 99, 2**31 - 1))
    elif way == 1:
        kind.tensor_type.shape.dim.add().dim_value = rng.choice((*EXTREME, *SMALL))
    elif way == 2:
        kind.sequence_type.elem_type.tensor_type.elem_type = 1
    elif way == 3:
        kind.optional_type.SetInParent()
    elif way == 4:
        kind.map_type.key_type = rng.choice((0, 1, 7, 8))
    else:
        kind.Clear()
    return "declare"


def tensor(rng: random.Random, model: onnx.ModelProto) -> str:
    """A constant of another type, size or place."""
    held = [item for graph in _graphs(model) if isinstance(graph, onnx.GraphProto)
            for item in graph.initializer]  # fmt: skip
    if not held:
        return "tensor"
    item = rng.choice(held)
    way = rng.randrange(5)
    if way == 0:
        item.data_type = rng.choice((*range(24), 99))
    elif way == 1:
        item.dims.append(rng.choice((*EXTREME, *SMALL)))
    elif way == 2 and item.dims:
        item.dims[rng.randrange(len(item.dims))] = rng.choice((*EXTREME, *SMALL))
    elif way == 3:
        item.data_location = onnx.TensorProto.EXTERNAL
        location = rng.choice(("", ".", "..", "/dev/zero", "x", "a\0b"))
        item.external_data.add(key="location", value=location)
    else:
        item.name = _name(rng, model)
    return "tensor"


def nest(rng: random.Random, model: onnx.ModelProto) -> str:
    """A graph inside one of its own nodes, or a function that calls itself."""
    graph, node = _node(rng, model)
    if node is None:
        return "nest"
    if model.functions and rng.random() < 0.5:
        function = rng.choice(model.functions)
        node.op_type, node.domain = function.name, function.domain
    elif isinstance(graph, onnx.GraphProto) and graph.ByteSize() < LARGEST:
        copy = onnx.GraphProto()
        copy.CopyFrom(graph)
        name = rng.choice(("body", "then_branch", "else_branch", "x"))
        node.attribute.add(name=name, type=AttributeProto.GRAPH).g.CopyFrom(copy)
    return "nest"


CHANGES: tuple[Change, ...] = (
    delete, delete, double, double, swap, rewire, rewire, rewire, rename, rename, attribute,
    attribute, declare, declare, tensor, nest,
)  # fmt: skip
