"""Graphs inside nodes: walking them, and refusing those nested too deeply to copy safely."""

from collections.abc import Iterator
from typing import Any

MAXIMUM_NESTING = 100
"""Graphs inside graphs that are followed; a file can hold 33, protobuf reads no deeper."""


def subgraphs(node: Any) -> Iterator[Any]:
    """The graphs in the attributes of `node`, whatever type the attributes claim to have.

    >>> from sardonyx.compat.onnx import NodeProto
    >>> node = NodeProto(op_type="If")
    >>> node.attribute.add(name="then_branch").g.name = "yes"
    >>> [graph.name for graph in subgraphs(node)]
    ['yes']
    """
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def check_nesting(nodes: Any, where: str) -> None:
    """Raise RecursionError if graphs are nested in `nodes` more than `MAXIMUM_NESTING` deep.

    Protobuf copies nested messages recursively in C and would overflow its stack.

    >>> from sardonyx.compat.onnx import GraphProto
    >>> check_nesting(GraphProto().node, "graph 'empty'")
    """
    pending = [(nodes, 0)]
    while pending:
        level, depth = pending.pop()
        if depth > MAXIMUM_NESTING:
            raise RecursionError(
                f"{where} has graphs nested more than {MAXIMUM_NESTING} deep;"
                " no model file can hold that, so flatten them first"
            )
        for node in level:
            pending.extend((graph.node, depth + 1) for graph in subgraphs(node))


def check_model_nesting(model: Any) -> None:
    """Raise RecursionError if the graph or a function of `model` is nested too deeply.

    >>> from sardonyx.compat.onnx import ModelProto
    >>> check_model_nesting(ModelProto())
    """
    check_nesting(model.graph.node, f"graph {model.graph.name!r}")
    for function in model.functions:
        check_nesting(function.node, f"function {function.name!r}")
