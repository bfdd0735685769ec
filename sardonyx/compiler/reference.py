"""Run one node by its reference: what has no native form, and what is folded."""

from typing import Any

import numpy as np

from sardonyx.graph import Node, Value
from sardonyx.ops.evaluate import Evaluator, Observe


def read_values(node: Node) -> list[Value]:
    """What a node reads, its subgraphs included."""
    inner = [value for graph in node.subgraphs for value in graph.captured()]
    return [*(value for value in node.inputs if value is not None), *inner]


def run_reference(
    evaluator: Evaluator, node: Node, values: dict[Value, Any], observe: Observe | None = None
) -> tuple[Any, ...]:
    """A node's outputs, given what its inputs and captured values are."""
    with np.errstate(all="ignore"):
        return evaluator.run_node(node, values, observe)
