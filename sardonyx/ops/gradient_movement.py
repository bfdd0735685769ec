"""Gradients of operators that move elements, repeat them, or leave some out."""

from collections.abc import Sequence

from sardonyx.graph import Value
from sardonyx.ops.gradient_step import Rule, Step, one

Gradients = Sequence[Value | None]


def _reshape(step: Step, gradients: Gradients) -> Gradients:
    return [step.op.Reshape(one(gradients), step.op.Shape(step.x), allowzero=1)]


def _transpose(step: Step, gradients: Gradients) -> Gradients:
    order = step.attributes["perm"]
    back = None if order is None else sorted(range(len(order)), key=order.__getitem__)
    return [step.op.Transpose(one(gradients), perm=back)]


def _expand(step: Step, gradients: Gradients) -> Gradients:
    return [step.sum_to(one(gradients), step.y, step.x)]


def _size_along(step: Step, value: Value, axis: int) -> Value:
    end = None if axis == -1 else axis + 1
    return step.op.Shape(value, start=axis, end=end)  # type: ignore[no-any-return]


def _concat(step: Step, gradients: Gradients) -> Gradients:
    axis, inputs = step.attributes["axis"], [item for item in step.node.inputs if item is not None]
    if len(inputs) == 1:
        return [one(gradients)]
    sizes = step.op.Concat(*(_size_along(step, item, axis) for item in inputs), axis=0)
    return list(step.op.Split(one(gradients), sizes, axis=axis, outputs=len(inputs)))


def _split(step: Step, gradients: Gradients) -> Gradients:
    parts = [
        step.zeros(output) if gradient is None else gradient
        for output, gradient in zip(step.node.outputs, gradients, strict=True)
    ]
    return [step.op.Concat(*parts, axis=step.attributes["axis"])]


def _scatter_back(step: Step, gradients: Gradients) -> Gradients:
    """Any operator that only picks elements of its first input, pads with 0 or repeats them.

    The same operator moves the elements' numbers, from 1; what it fills in has the number 0.
    Gradients are then added up at the numbers they arrive with.
    """
    op = step.op
    size = op.Reshape(op.Size(step.x), [1])
    end = op.Add(op.Size(step.x), 1)
    numbers = op.Reshape(op.Range(1, end, 1), op.Shape(step.x), allowzero=1)
    given = [numbers, *step.node.inputs[1:]]
    if step.node.op_type == "Pad" and len(given) > 2:
        given[2] = None
    attributes = {name: item.value for name, item in step.node.attributes.items()}
    moved = op.node(step.node.op_type, tuple(given), 1, "", attributes)
    slots = op.Expand(step.number(0), op.Add(size, [1]))
    flat = [op.Reshape(item, [-1]) for item in (moved, one(gradients))]
    added = op.Slice(op.ScatterElements(slots, *flat, axis=0, reduction="add"), [1], [_END], [0])
    return [op.Reshape(added, op.Shape(step.x), allowzero=1)]


_END = (1 << 63) - 1


def _scatter_elements(step: Step, gradients: Gradients) -> Gradients:
    op, gradient, axis = step.op, one(gradients), step.attributes["axis"]
    indices, updates = step.needed(1), step.needed(2)
    picked = op.GatherElements(gradient, indices, axis=axis)
    match step.attributes["reduction"]:
        case "none":
            kept = op.ScatterElements(gradient, indices, step.zeros(updates), axis=axis)
        case "add":
            kept = gradient
        case other:
            raise step.unsupported(f"reduction '{other}'")
    return [kept, None, picked]


def _scatter_nd(step: Step, gradients: Gradients) -> Gradients:
    op, gradient = step.op, one(gradients)
    indices, updates = step.needed(1), step.needed(2)
    picked = op.GatherND(gradient, indices)
    match step.attributes["reduction"]:
        case "none":
            kept = op.ScatterND(gradient, indices, step.zeros(updates))
        case "add":
            kept = gradient
        case other:
            raise step.unsupported(f"reduction '{other}'")
    return [kept, None, picked]


def _dropout(step: Step, gradients: Gradients) -> Gradients:
    """The elements that were kept, scaled as they were; all of them where nothing is dropped."""
    op, training = step.op, step.input(2)
    if training is None:
        return [one(gradients)]
    if len(step.node.outputs) < 2 or not step.node.outputs[1].name:
        mask = op.input("mask")
        op.graph.inputs.remove(mask)
        step.node.set_outputs([step.y, mask])
    kept = op.CastLike(step.node.outputs[1], step.x)
    ratio = step.input(1)
    rate = step.number(0.5) if ratio is None else op.CastLike(ratio, step.x)
    factor = op.Where(training, op.Reciprocal(op.Sub(step.number(1), rate)), step.number(1))
    return [op.Mul(one(gradients), op.Mul(kept, factor))]


MOVEMENT: dict[str, Rule] = {
    "Compress": _scatter_back,
    "Concat": _concat,
    "DepthToSpace": _scatter_back,
    "Dropout": _dropout,
    "Expand": _expand,
    "Flatten": _reshape,
    "Gather": _scatter_back,
    "GatherElements": _scatter_back,
    "GatherND": _scatter_back,
    "Pad": _scatter_back,
    "Reshape": _reshape,
    "ReverseSequence": _scatter_back,
    "ScatterElements": _scatter_elements,
    "ScatterND": _scatter_nd,
    "Slice": _scatter_back,
    "SpaceToDepth": _scatter_back,
    "Split": _split,
    "Squeeze": _reshape,
    "Tile": _scatter_back,
    "Transpose": _transpose,
    "Trilu": _scatter_back,
    "Unsqueeze": _reshape,
}
