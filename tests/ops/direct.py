"""One operator of the newest opset, run on arrays of any element type; and whole small texts."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sardonyx.dtypes import DataType, from_numpy
from sardonyx.format.load import load_text
from sardonyx.graph import Graph, Model, Opsets, SequenceType, TensorType
from sardonyx.ops.build import Builder
from sardonyx.ops.evaluate import Evaluator
from sardonyx.ops.infer import infer_shapes

HEAD = '<ir_version: 10, opset_import: ["": {opset}]>\n'


def type_of(value: Any) -> Any:
    """The type to declare for an array, or for a list of arrays."""
    if isinstance(value, list):
        return SequenceType(TensorType(from_numpy(value[0].dtype), None))
    return TensorType(from_numpy(value.dtype), value.shape)


def node_model(
    op: str, inputs: Sequence[Any], outputs: int = 1, opset: int = 28, **rest: Any
) -> Model:
    """A model of one node whose inputs are declared as the arrays given (None: absent)."""
    graph = Graph("g")
    values = [
        None if item is None else graph.add_input(f"i{index}", type_of(item))
        for index, item in enumerate(inputs)
    ]
    made = getattr(Builder(graph, opset), op)(*values, outputs=outputs, **rest)
    graph.outputs.extend(made if isinstance(made, tuple) else [made])
    return Model(graph, Opsets({"": opset}), 12)


def run(op: str, *inputs: Any, outputs: int = 1, **attributes: Any) -> Any:
    """What an operator makes of arrays; a tuple where it has several outputs."""
    model = node_model(op, inputs, outputs, **attributes)
    given = {f"i{index}": item for index, item in enumerate(inputs) if item is not None}
    results = Evaluator(model).run(None, given)
    return results[0] if outputs == 1 else tuple(results)


def text_model(text: str, opset: int = 21) -> Model:
    """The model of a graph's text."""
    return load_text(HEAD.format(opset=opset) + text)


def run_text(text: str, inputs: Mapping[str, Any], opset: int = 21) -> list[Any]:
    """What a graph's text makes of inputs."""
    return Evaluator(text_model(text, opset)).run(None, inputs)


def inferred(text: str, opset: int = 21, *, strict: bool = True) -> list[str]:
    """The types inferred for the outputs of a graph's text."""
    graph = infer_shapes(text_model(text, opset), strict=strict).graph
    assert graph is not None
    return [str(value.type) for value in graph.outputs]


def sample(kind: DataType, shape: tuple[int, ...], seed: int = 0) -> Any:
    """Small numbers, or texts, of an element type."""
    random = np.random.default_rng(seed)
    if kind == DataType.STRING:
        return random.choice(np.array(["a", "b", "cd", ""], object), shape)
    if kind == DataType.BOOL:
        return random.integers(0, 2, shape).astype(bool)
    bounds = {DataType.INT2: (-2, 2), DataType.UINT2: (0, 4), DataType.FLOAT8E8M0: (1, 6)}
    low, high = bounds.get(kind, (0, 6))
    return random.integers(low, high, shape).astype(np.float32).astype(kind.numpy)
