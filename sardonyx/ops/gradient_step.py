"""What a rule of differentiation is given, and what rules share."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from sardonyx.errors import UnsupportedError
from sardonyx.graph import Node, Value
from sardonyx.ops.build import Builder
from sardonyx.ops.fact import Fact, Sizes
from sardonyx.record import record


@record
class Step:
    """One node on the way back from outputs to inputs."""

    op: Builder
    node: Node
    attributes: dict[str, Any]
    facts: Mapping[Value, Fact]

    @property
    def x(self) -> Value:
        """The first input."""
        return self.needed(0)

    @property
    def y(self) -> Value:
        """The first output."""
        return self.node.outputs[0]

    def input(self, position: int) -> Value | None:
        """An input, or None where it is absent."""
        return self.node.inputs[position] if position < len(self.node.inputs) else None

    def needed(self, position: int) -> Value:
        """An input that must be there."""
        value = self.input(position)
        if value is None:
            raise UnsupportedError(f"input {position} is absent", where=self.node.where())
        return value

    def rank(self, value: Value) -> int:
        """How many axes a value has; an error where that is not known."""
        fact = self.facts.get(value)
        if fact is None or fact.rank is None:
            raise UnsupportedError(
                f"the gradient depends on the rank of '{value.name}', which is not known",
                where=self.node.where(), hint="declare the shapes of the model's inputs",
            )  # fmt: skip
        return fact.rank

    def unsupported(self, what: str) -> UnsupportedError:
        """The error for a case that has no gradient yet."""
        return UnsupportedError(
            f"{self.node.op_type} with {what} has no gradient yet", where=self.node.where()
        )

    def shape(self, value: Value) -> Sizes | None:
        """The sizes of a value, as far as they are known."""
        fact = self.facts.get(value)
        return None if fact is None else fact.shape

    def number(self, value: float, like: Value | None = None) -> Value:
        """A scalar in the element type of the first input, or of another value."""
        scalar = np.float32(value) if float(np.float32(value)) == value else np.float64(value)
        return self.op.CastLike(scalar, self.x if like is None else like)  # type: ignore[no-any-return]

    def zeros(self, like: Value) -> Value:
        """As many zeros as a value has elements, in its shape."""
        return self.op.Expand(self.number(0, like), self.op.Shape(like))  # type: ignore[no-any-return]

    def sum_to(
        self, gradient: Value, whole: Value, part: Value, sizes: Sizes | None = None
    ) -> Value:
        """A gradient shaped like `whole`, summed to the shape of `part` that was broadcast to it.

        `sizes` are those of `whole` where it is not a value of the differentiated graph.
        """
        op = self.op
        wide, narrow = sizes or self.shape(whole), self.shape(part)
        if wide is not None and narrow is not None and len(wide) >= len(narrow):
            padded = (1,) * (len(wide) - len(narrow)) + narrow
            pairs = list(enumerate(zip(wide, padded, strict=True)))
            if wide == narrow:
                return gradient
            if all(b in (a, 1) for _, (a, b) in pairs):
                axes = [axis for axis, (a, b) in pairs if a != b]
                summed = op.ReduceSum(gradient, axes, keepdims=1) if axes else gradient
                return op.Reshape(summed, op.Shape(part), allowzero=1)  # type: ignore[no-any-return]
        shape, target = op.Shape(whole), op.Shape(part)
        ones = op.Expand(1, op.Sub(op.Shape(shape), op.Shape(target)))
        differ = op.Not(op.Equal(op.Concat(ones, target, axis=0), shape))
        places = op.Reshape(op.NonZero(differ), [-1])
        summed = op.ReduceSum(gradient, places, keepdims=1, noop_with_empty_axes=1)
        return op.Reshape(summed, target, allowzero=1)  # type: ignore[no-any-return]


Rule = Callable[[Step, Sequence[Value | None]], Sequence[Value | None]]
"""From gradients of a node's outputs (None for zero) to those of its inputs."""


def one(gradients: Sequence[Value | None]) -> Value:
    """The gradient of an operator's only output."""
    (gradient,) = gradients[:1]
    assert gradient is not None
    return gradient
