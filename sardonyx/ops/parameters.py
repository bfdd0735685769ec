"""Parameters that are an attribute in one version of an operator and an input in another."""

from typing import Any

import numpy as np

from sardonyx.errors import ConversionError
from sardonyx.graph import Attribute, AttributeType, Node, Value
from sardonyx.ops.build import Builder
from sardonyx.ops.early_opsets import known_rank


def to_input(node: Node, build: Builder, name: str, position: int, dtype: Any = np.int64) -> None:
    """Let an attribute become the input at `position`; where it is absent, so is the input."""
    held = node.attributes.pop(name, None)
    if held is not None:
        inputs = [*node.inputs, *[None] * (position + 1 - len(node.inputs))]
        inputs[position] = build.constant(np.asarray(held.value, dtype))
        node.set_inputs(inputs)


def to_attribute(node: Node, build: Builder, position: int, name: str) -> None:
    """Let the last input, which stands at `position`, become an attribute of whole numbers."""
    value = node.inputs[position] if position < len(node.inputs) else None
    known = build.known(value)
    if value is not None and known is None:
        raise ConversionError(f"'{name}' is computed, and must be a constant before this opset")
    node.set_inputs(node.inputs[:position])
    drop_unused(value)
    if known is not None:
        numbers = known.reshape(-1).tolist()
        node.set_attribute(name, Attribute(name, numbers, AttributeType.INTS))


def drop_unused(value: Value | None) -> None:
    """Remove the node of a constant that nothing reads any more."""
    maker = None if value is None or value.uses else value.producer
    if maker is not None and maker.graph is not None and maker.op_type == "Constant":
        maker.graph.nodes.remove(maker)


def count_from_front(node: Node, build: Builder, name: str = "axis", more: int = 0) -> None:
    """Write axes without a minus sign, as operators before opset 11 need them.

    They count dimensions of the first input, or of a result with `more` of them.
    """
    given = node.attribute(name, 0)
    axes = (given,) if isinstance(given, int) else given
    if min(axes, default=0) < 0:
        rank = known_rank(node.inputs[0])
        if rank is None:
            raise ConversionError(f"'{name}' counts from the end, and the rank is not declared")
        counted = [axis % (rank + more) for axis in axes]
        node.set_attribute(name, counted[0] if isinstance(given, int) else counted)
