# mypy: disable-error-code="misc, no-any-return"
"""Regular parts of tensors."""

import numpy as np

from sardonyx.dims import Size, ceil_divide, is_nonnegative, maximum, minimum
from sardonyx.errors import ConversionError, InferenceError
from sardonyx.graph import Node
from sardonyx.ops.build import Builder
from sardonyx.ops.fact import Fact, Sizes, tensor, unknown
from sardonyx.ops.operator import Operator
from sardonyx.ops.parameters import to_attribute, to_input
from sardonyx.ops.precision import Array
from sardonyx.ops.shape import known_axes

FAR = 2**31 - 1
"""A position this far out means the end of a dimension, whatever its size."""
BEYOND = 1 << 47
"""No array has so many elements along a dimension."""


class Slice(Operator):
    """From a start up to an end, in steps, along some dimensions."""

    signatures = (
        "1(data: T, axes?: ints, ends: ints, starts: ints) -> output: T; T: all15",
        "10(data: T, starts: Tind, ends: Tind, axes?: Tind, steps?: Tind) -> output: T; T: all15; "
        "Tind: int32 int64",
        "11(data: T, starts: Tind, ends: Tind, axes?: Tind, steps?: Tind) -> output: T; T: all15; "
        "Tind: int32 int64",
        "13(data: T, starts: Tind, ends: Tind, axes?: Tind, steps?: Tind) -> output: T; T: all; "
        "Tind: int32 int64",
    )

    def infer(
        x: Fact, starts: Fact, ends: Fact, axes: Fact | None = None, steps: Fact | None = None
    ) -> Fact:
        given = {"starts": starts, "ends": ends, "axes": axes, "steps": steps}
        for name, item in given.items():
            if item is not None and item.rank not in (None, 1):
                raise InferenceError(f"{name} are {item}, and must be a list")
        if x.shape is None:
            return unknown(None, x.dtype)
        first, last, stride = _elements(starts), _elements(ends), _elements(steps)
        count = next((len(item) for item in (first, last, stride) if item is not None), None)
        along = known_axes(axes, len(x.shape))
        if axes is None and count is not None:
            along = list(range(count))
        if along is None or len(along) > len(x.shape):
            return unknown(len(x.shape), x.dtype)
        if any(item is not None and len(item) != len(along) for item in (first, last, stride)):
            raise InferenceError("starts, ends, axes and steps are not of one length")
        nothing: Sizes = (None,) * len(along)
        by = (1,) * len(along) if steps is None else stride or nothing
        shape = list(x.shape)
        for axis, start, end, step in zip(
            along, first or nothing, last or nothing, by, strict=True
        ):
            shape[axis] = sliced_size(shape[axis], start, end, step)
        return tensor(x.dtype, shape)

    def view(
        x: Array, starts: Array, ends: Array, axes: Array | None = None, steps: Array | None = None
    ) -> Array:
        return x[_slices(x.shape, starts, ends, axes, steps)]

    def reference(
        x: Array, starts: Array, ends: Array, axes: Array | None = None, steps: Array | None = None
    ) -> Array:
        return Slice.view(x, starts, ends, axes, steps).copy()

    def propagate(
        x: Array, starts: Array, ends: Array, axes: Array | None = None, steps: Array | None = None
    ) -> Array | None:
        if any(item is not None and item.dtype == object for item in (starts, ends, axes, steps)):
            return None
        return x[_slices(x.shape, starts, ends, axes, steps)]

    def upgrade_1(node: Node, build: Builder) -> None:
        for position, name in enumerate(("starts", "ends", "axes"), 1):
            to_input(node, build, name, position)

    def downgrade_10(node: Node, build: Builder) -> None:
        steps = build.known(node.inputs[4]) if len(node.inputs) > 4 else None
        if (
            len(node.inputs) > 4
            and node.inputs[4] is not None
            and (steps is None or np.any(steps != 1))
        ):
            raise ConversionError("it has steps, which begin with opset 10")
        for position, name in ((3, "axes"), (2, "ends"), (1, "starts")):
            to_attribute(node, build, position, name)


def _elements(fact: Fact | None) -> Sizes | None:
    return None if fact is None else fact.sizes()


def first_position(start: int, size: int, step: int) -> int:
    """Where a slice begins: backwards from before the front it begins at the front.

    >>> first_position(-9, 4, -1), first_position(-9, 4, 1)
    (-4, -9)
    """
    return max(start, -size) if step < 0 else start


def bounded(position: Size) -> Size:
    """A position or step no further out than any array reaches, so that sums of it stay small.

    >>> bounded(-2**63), bounded(5)
    (-140737488355328, 5)
    """
    return max(-BEYOND, min(position, BEYOND)) if isinstance(position, int) else position


def bounded_start(start: Size) -> Size:
    """Where a slice begins, in small numbers: before the front of any array it is the front."""
    return 0 if isinstance(start, int) and start <= -BEYOND else bounded(start)


def _slices(
    shape: tuple[int, ...], starts: Array, ends: Array, axes: Array | None, steps: Array | None
) -> tuple[slice, ...]:
    along = range(starts.size) if axes is None else axes.tolist()
    by = [1] * starts.size if steps is None else steps.tolist()
    result = [slice(None)] * len(shape)
    for axis, start, end, step in zip(along, starts.tolist(), ends.tolist(), by, strict=True):
        result[axis] = slice(first_position(start, shape[axis], step), end, step)
    return tuple(result)


def sliced_size(
    size: Size | None, start: Size | None, end: Size | None, step: Size | None
) -> Size | None:
    """How many positions of a dimension a slice takes; None where that is not known.

    Symbolic positions are taken not to change their sign: they count from the front, or from the
    end where they are never positive.

    >>> from sardonyx.dims import symbol
    >>> n = symbol("n")
    >>> sliced_size(n, 0, FAR, 2), sliced_size(n, 1, n, 1), sliced_size(n, -3, FAR, 1)
    ((n+1)//2, max(0, n-1), min(3, n))
    """
    if size is None or start is None or end is None or not isinstance(step, int):
        return None
    if step == 0:
        raise InferenceError("the step of a slice is zero")
    if isinstance(size, int) and isinstance(start, int) and isinstance(end, int):
        begin = first_position(start, size, step)
        return len(range(*slice(begin, end, step).indices(size)))
    if abs(step) >= BEYOND:
        one = sliced_size(size, start, end, 1 if step > 0 else -1)
        return None if one is None else minimum(one, 1)
    start, end = bounded_start(start), bounded(end)
    if isinstance(start, int) and start < 0 and _is_far(end) and step > 0:
        return ceil_divide(minimum(-start, size), step)
    first, last = _from_front(start, size), _from_front(end, size)
    if step > 0:
        first, last = _at_least(first, start, 0), size if _is_far(end) else minimum(last, size)
        return ceil_divide(maximum(last - first, 0), step)
    ends = _is_far(start) or start == -1
    first = size - 1 if ends else minimum(_at_least(first, start, 0), size - 1)
    last = -1 if isinstance(end, int) and end <= -FAR else _at_least(last, end, -1)
    return ceil_divide(maximum(first - last, 0), -step)


def _is_far(position: Size) -> bool:
    return isinstance(position, int) and position >= FAR


def _from_front(position: Size, size: Size) -> Size:
    """A position counted from 0."""
    return size + position if position != 0 and is_nonnegative(-position) else position


def _at_least(position: Size, given: Size, lowest: int) -> Size:
    return position if is_nonnegative(given) else maximum(position, lowest)
