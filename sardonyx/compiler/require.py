"""What sizes must be so that forms read only what is there; checked once sizes are known."""

import math
from collections.abc import Collection, Iterator, Sequence

from sardonyx.compiler.derive import Definitions
from sardonyx.compiler.forms import (
    Axis,
    Contraction,
    Convolution,
    Form,
    Gather,
    Join,
    Map,
    NotLowered,
    Reshape,
    Take,
    View,
    Window,
    topological,
)
from sardonyx.compiler.limits import LARGEST_SIZE
from sardonyx.compiler.lowerings.request import Agreement
from sardonyx.dims import Size, is_nonnegative, is_small, minimum, product


def requirements(
    forms: Sequence[Form], known: Collection[Form], definitions: Definitions
) -> list[Agreement]:
    """Everything that forms need of sizes, those behind `known` ones left out.

    Raises `NotLowered` where numbers show already that it does not hold.
    """
    found: dict[Agreement, None] = {}
    for form in topological(forms, known):
        _refuse_large(form)
        for pair in _of_form(form, definitions):
            if pair.left == pair.right or (pair.repeats and pair.left == 1):
                continue
            if isinstance(pair.left, int) and isinstance(pair.right, int):
                raise NotLowered(f"sizes {pair.left} and {pair.right} do not agree")
            found[pair] = None
    return list(found)


def _refuse_large(form: Form) -> None:
    """Numbers that no size has would not fit into 64 bits with others; nor would such an array."""
    sizes = (
        [*form.shape, *(size for axis in form.axes for size in (axis.start, axis.step))]
        if (isinstance(form, View))
        else form.shape
    )
    known = math.prod(max(size, 1) for size in form.shape if isinstance(size, int))
    if known > LARGEST_SIZE or not all(map(is_small, sizes)):
        shape = ", ".join(map(str, form.shape))
        raise NotLowered(f"numbers in the sizes [{shape}] are beyond those of arrays")


def _of_form(form: Form, definitions: Definitions) -> Iterator[Agreement]:
    for size in form.shape:
        yield from _not_negative(definitions.one_level(size), ())
    match form:
        case Map(shape, _, _, arguments) | Take(shape, _, _, arguments):
            for item in arguments:
                yield from _repeated(item.shape, shape[len(shape) - len(item.shape) :])
        case View(shape, _, source, axes):
            for size, axis in zip(source.shape, axes, strict=True):
                yield from _of_axis(size, axis, shape)
        case Reshape(shape, _, source):
            yield Agreement(product(source.shape), product(shape))
        case Join(shape, _, parts, axis):
            for part in parts:
                yield from _equal(_without(part.shape, axis), _without(shape, axis))
            total: Size = sum((part.shape[axis] for part in parts), start=0)
            yield Agreement(total, shape[axis])
        case Gather(shape, _, table, indices, axis):
            made = (*table.shape[:axis], *indices.shape, *table.shape[axis + 1 :])
            yield from _equal(made, shape)
        case Contraction(shape, _, left, right, depth):
            yield from _equal((left.shape[-2], left.shape[-1]), (shape[-2], depth))
            yield from _equal((right.shape[-2], right.shape[-1]), (depth, shape[-1]))
            for item in (left, right):
                batch = item.shape[:-2]
                yield from _repeated(batch, shape[len(shape) - 2 - len(batch) : -2])
        case Convolution(shape, _, image, weights):
            yield from _equal(image.shape[:2], (shape[0], weights.shape[1] * form.groups))
            yield Agreement(weights.shape[0], shape[1])
        case Window(shape, _, _, _, image):
            yield from _equal(image.shape[:2], shape[:2])


def _of_axis(size: Size, axis: Axis, shape: tuple[Size, ...]) -> Iterator[Agreement]:
    """An axis of a view's source is read inside of its size, unless the view is empty."""
    if axis.axis is None:
        yield from _not_negative(axis.start, shape)
        yield from _not_negative(size - 1 - axis.start, shape)
        return
    count = shape[axis.axis]
    if not isinstance(axis.step, int):
        yield Agreement(size, count, True)
        return
    first, last = axis.start, axis.start + (count - 1) * axis.step
    low, high = (first, last) if axis.step >= 0 else (last, first)
    yield from _not_negative(low, shape)
    yield from _not_negative(size - 1 - high, shape)


def _not_negative(size: Size, unless_empty: tuple[Size, ...]) -> Iterator[Agreement]:
    if not is_nonnegative(size):
        yield Agreement(minimum(size, 0) * product(unless_empty), 0)


def _repeated(sizes: Sequence[Size], shape: Sequence[Size]) -> Iterator[Agreement]:
    """Axes that may also be 1; only a run may tell whether they are."""
    for size, result in zip(sizes, shape, strict=True):
        yield Agreement(size, result, True)


def _equal(left: Sequence[Size], right: Sequence[Size]) -> Iterator[Agreement]:
    if len(left) != len(right):
        raise NotLowered(f"{len(left)} axes and {len(right)} axes do not agree")
    yield from map(Agreement, left, right)


def _without(shape: tuple[Size, ...], axis: int) -> tuple[Size, ...]:
    return (*shape[:axis], *shape[axis + 1 :])
