"""What to do where only an operator's newer version takes bfloat16."""

from typing import Any

from sardonyx.dtypes import DataType
from sardonyx.graph import Node
from sardonyx.ops.build import Builder
from sardonyx.ops.element_type import element_type


def through_float(node: Node, build: Builder) -> Any:
    """Cast bfloat16 inputs to float, and the outputs back; nothing where there are none."""
    narrow = [element_type(value) == DataType.BFLOAT16 for value in node.inputs]
    if not any(narrow):
        return None
    inputs = tuple(
        build.Cast(value, to=int(DataType.FLOAT)) if cast else value
        for value, cast in zip(node.inputs, narrow, strict=True)
    )
    back = [element_type(value) == DataType.BFLOAT16 for value in node.outputs]
    made = build.node(node.op_type, inputs, len(back), "", node.attributes)
    results = made if len(back) > 1 else (made,)
    return tuple(
        build.Cast(value, to=int(DataType.BFLOAT16)) if cast else value
        for value, cast in zip(results, back, strict=True)
    )
