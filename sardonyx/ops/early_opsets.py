"""What operators of the first opsets carried along and later ones lost."""

from typing import Any

from sardonyx.errors import ConversionError
from sardonyx.graph import Node, Shape, TensorType, Value
from sardonyx.ops.build import Builder


def forget_consumed_inputs(node: Node, build: Builder) -> None:
    """`consumed_inputs` was a hint about memory: without it the meaning is the same."""
    node.attributes.pop("consumed_inputs", None)


def known_shape(value: Value | None) -> Shape | None:
    """The shape a value is declared with, or that of the constant it holds, also behind casts."""
    while value is not None:
        kind = value.type
        if isinstance(kind, TensorType) and kind.shape is not None:
            return kind.shape
        maker = value.producer
        passes = maker is not None and maker.op_type in ("Cast", "CastLike", "Identity")
        value = maker.inputs[0] if maker is not None and passes else None
    return None


def known_rank(value: Value | None) -> int | None:
    """The rank of a value's known shape."""
    shape = known_shape(value)
    return None if shape is None else len(shape)


def proven_rank(value: Value | None) -> int | None:
    """The rank of a constant or of what is fed; what is declared of other values may be wrong."""
    return known_rank(value) if value is not None and value.producer is None else None


def align_second_input(node: Node, build: Builder) -> Any:
    """`broadcast` and `axis` said where the second input lies in the first: now its shape does."""
    node.attributes.pop("consumed_inputs", None)
    axis = node.attribute("axis")
    broadcast = node.attribute("broadcast", 0)
    node.attributes.pop("axis", None)
    node.attributes.pop("broadcast", None)
    return align_at(node, axis, build) if broadcast and axis is not None else None


def align_at(node: Node, axis: int, build: Builder) -> Any:
    """Let the second input begin at an axis of the first; ranks need not be known for that.

    Where they are not, all axes are reversed: what lay at the front then lines up by itself.
    """
    first, second = node.inputs
    believed = proven_rank if axis >= 0 else known_rank
    rank, inner = believed(first), believed(second)
    if inner is not None and (axis < 0 or rank is not None):
        after = -axis if axis < 0 else (rank or 0) - axis
        axes = list(range(inner, after))
        if axes:
            node.set_inputs([first, build.Unsqueeze(second, axes=axes)])
        return None
    if axis < 0:
        raise ConversionError(f"'axis' is {axis} and the second input's rank is not known")
    if axis:
        second = build.Unsqueeze(second, axes=list(range(axis)))
    reversed_inputs = (build.Transpose(first), build.Transpose(second))
    return build.Transpose(build.node(node.op_type, reversed_inputs, 1, "", {}))


def state_broadcast(node: Node, build: Builder) -> None:
    """The reverse: before opset 7 `broadcast` was needed, and only the second input grew."""
    first, second = map(known_shape, node.inputs)
    if first is None or second is None or None in second:
        raise ConversionError("before opset 7, both shapes must be known to say how they broadcast")
    if first != second:
        if second not in ((), (1,)) and first[-len(second) :] != second:
            raise ConversionError("before opset 7, the second shape must be the end of the first")
        node.set_attribute("broadcast", 1)
