# mypy: disable-error-code="misc"
"""Operators of `ai.onnx.preview.training`: gradients, and steps of optimizers."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sardonyx.dtypes import from_numpy
from sardonyx.errors import EvaluationError, InferenceError
from sardonyx.graph import TensorType, Value
from sardonyx.ops.build import Builder
from sardonyx.ops.evaluate import Context
from sardonyx.ops.fact import Fact, tensor
from sardonyx.ops.gradients import TRAINING, gradient_graph
from sardonyx.ops.operator import Operator
from sardonyx.ops.precision import Array


def _groups(inputs: Sequence[Any], parts: int) -> list[tuple[Any, ...]]:
    """Each variable with what belongs to it: inputs hold all variables, then all gradients, ..."""
    if len(inputs) % parts:
        raise InferenceError(f"{len(inputs)} inputs are no {parts} for each variable")
    count = len(inputs) // parts
    return [tuple(inputs[index::count]) for index in range(count)]


def _ungrouped(results: Sequence[tuple[Array, ...]]) -> tuple[Array, ...]:
    """All new variables, then all new states of one kind, and of the next."""
    return tuple(item for kind in zip(*results, strict=True) for item in kind)


def _infer(parts: int, inputs: Sequence[Fact]) -> tuple[Fact, ...]:
    """Variables and states keep their types; gradients, the second part, are not given back."""
    groups = _groups(inputs, parts)
    kept = [position for position in range(parts) if position != 1]
    return tuple(
        tensor(group[position].dtype, group[position].shape)
        for position in kept
        for group in groups
    )


class Adagrad(Operator):
    """A step of AdaGrad: rates shrink with the squares of all gradients so far."""

    domain = TRAINING
    signatures = (
        "1(R: T1, T: T2, inputs+: each T3, decay_factor: float = 0.0, epsilon: float = 1e-06, "
        "norm_coefficient: float = 0.0) -> outputs+: each T3; T1: double float; T2: int64; "
        "T3: double float",
    )

    def infer(rate: Fact, count: Fact, *inputs: Fact, **_: Any) -> tuple[Fact, ...]:
        return _infer(3, inputs)

    def reference(
        rate: Array, count: Array, *inputs: Array, decay_factor: float, epsilon: float,
        norm_coefficient: float,
    ) -> tuple[Array, ...]:  # fmt: skip
        results = []
        for x, given, before in _groups(inputs, 3):
            gradient = norm_coefficient * x + given
            squares = before + gradient * gradient
            step = rate / (1 + count * decay_factor) * gradient / (np.sqrt(squares) + epsilon)
            results.append(((x - step).astype(x.dtype), squares.astype(x.dtype)))
        return _ungrouped(results)


class Adam(Operator):
    """A step of Adam: along a running mean of gradients, over the root of one of their squares."""

    domain = TRAINING
    signatures = (
        "1(R: T1, T: T2, inputs+: each T3, alpha: float = 0.9, beta: float = 0.999, "
        "epsilon: float = 1e-06, norm_coefficient: float = 0.0, "
        "norm_coefficient_post: float = 0.0) -> outputs+: each T3; T1: double float; T2: int64; "
        "T3: double float",
    )

    def infer(rate: Fact, count: Fact, *inputs: Fact, **_: Any) -> tuple[Fact, ...]:
        return _infer(4, inputs)

    def reference(
        rate: Array, count: Array, *inputs: Array, alpha: float, beta: float, epsilon: float,
        norm_coefficient: float, norm_coefficient_post: float,
    ) -> tuple[Array, ...]:  # fmt: skip
        times = int(count)
        adjusted = rate * np.sqrt(1 - beta**times) / (1 - alpha**times) if times > 0 else rate
        results = []
        for x, given, mean_before, squares_before in _groups(inputs, 4):
            gradient = norm_coefficient * x + given
            mean = alpha * mean_before + (1 - alpha) * gradient
            squares = beta * squares_before + (1 - beta) * gradient * gradient
            new = x - adjusted * mean / (np.sqrt(squares) + epsilon)
            new = (1 - norm_coefficient_post) * new
            results.append(tuple(item.astype(x.dtype) for item in (new, mean, squares)))
        return _ungrouped(results)


class Momentum(Operator):
    """A step along gradients that carry on those before, in the standard form or Nesterov's."""

    domain = TRAINING
    signatures = (
        "1(R: T1, T: T2, inputs+: each T3, alpha: float, beta: float, mode: string, "
        "norm_coefficient: float) -> outputs+: each T3; T1: double float; T2: int64; "
        "T3: double float",
    )

    def infer(rate: Fact, count: Fact, *inputs: Fact, mode: str, **_: Any) -> tuple[Fact, ...]:
        if mode not in ("standard", "nesterov"):
            raise InferenceError(f"mode '{mode}' is none of standard, nesterov")
        return _infer(3, inputs)

    def reference(
        rate: Array, count: Array, *inputs: Array, alpha: float, beta: float, mode: str,
        norm_coefficient: float,
    ) -> tuple[Array, ...]:  # fmt: skip
        if mode not in ("standard", "nesterov"):
            raise EvaluationError(f"mode '{mode}' is none of standard, nesterov")
        weight = beta if int(count) > 0 else 1.0
        results = []
        for x, given, before in _groups(inputs, 3):
            gradient = norm_coefficient * x + given
            momentum = alpha * before + weight * gradient
            step = momentum if mode == "standard" else gradient + alpha * momentum
            results.append(((x - rate * step).astype(x.dtype), momentum.astype(x.dtype)))
        return _ungrouped(results)


class Gradient(Operator):
    """Gradients of a value of the graph with respect to others, at values that are fed for them."""

    domain = TRAINING
    signatures = (
        "1(Inputs+: each T1, xs: strings, y: string, zs?: strings) -> Outputs+: each T2; "
        "T1: all15; T2: floats3",
    )

    def infer(*inputs: Fact, xs: tuple[str, ...], y: str, zs: tuple[str, ...] | None) -> Any:
        return tuple(tensor(fact.dtype, fact.shape) for fact in inputs[: len(xs)])

    def reference(
        *inputs: Array, xs: tuple[str, ...], y: str, zs: tuple[str, ...] | None, context: Context
    ) -> tuple[Array, ...]:
        source = context.node.graph
        assert source is not None
        names = [value.name for value in context.node.inputs if value is not None]
        given = [
            Value(name, TensorType(from_numpy(item.dtype), item.shape))
            for name, item in zip(names, inputs, strict=True)
        ]
        graph = gradient_graph(source, xs, zs or (), y, given)
        return tuple(context.run(graph, list(inputs)))

    def function(
        build: Builder, *inputs: Value, xs: tuple[str, ...], y: str, zs: tuple[str, ...] | None
    ) -> tuple[Value, ...]:
        graph = gradient_graph(build.graph, xs, zs or (), y, inputs)
        return build.inline(graph, inputs)
