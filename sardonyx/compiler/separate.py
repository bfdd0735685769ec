"""Whether each image of a batch is computed by itself: a table over kinds of forms.

The batch is a size that stands only in the first axis of shapes, alone or times a number.
"""

from collections.abc import Mapping, Sequence

from sardonyx.compiler.forms import (
    Axis,
    Contraction,
    Convolution,
    Fold,
    Form,
    Iota,
    Join,
    Map,
    Number,
    Reshape,
    Source,
    Take,
    View,
    Window,
    topological,
)
from sardonyx.compiler.fuse import Fusion
from sardonyx.dims import Expression, Size, symbol
from sardonyx.loops.nodes import substitute, symbols

Counts = Mapping[Form, int | None]
"""For forms how often the batch is in their first axis, as `leading` says it."""


def leading(shape: Sequence[Size], name: str) -> int | None:
    """How often the batch is in the first axis; 0 where no size is open, None for all else.

    >>> leading((symbol("batch") * 4, 3), "batch"), leading((3,), "batch")
    (4, 0)
    """
    if all(isinstance(size, int) for size in shape):
        return 0
    first, *rest = shape
    if not all(isinstance(size, int) for size in rest) or symbols(first) != {name}:
        return None
    count = substitute(first, {name: 1})
    assert isinstance(count, int)
    return count if count > 0 and first == symbol(name) * count else None


def separates(fusion: Fusion, root: Form, name: str) -> bool:
    """Whether a group's result has each image from the same image of what it reads in memory."""
    counts: dict[Form, int | None] = {}
    for form in [*topological(root.sources, fusion.roots), root]:
        for source in form.sources:
            if source in fusion.roots:
                counts[source] = leading(source.shape, name)
        counts[form] = _count(form, counts, name)
        if counts[form] is None:
            return False
    return True


def _count(form: Form, counts: Counts, name: str) -> int | None:
    """`leading` of a form's shape, or None where its images are not computed one by one."""
    count = leading(form.shape, name)
    if count is None or any(counts[source] is None for source in form.sources):
        return None
    match form:
        case Source():
            good = True
        case Number(number=number):
            good = not isinstance(number, Expression)
        case Iota(axis=axis):
            good = axis != 0 or count == 0
        case Map(arguments=items):
            good = _go_along(form, items, counts)
        case Take():
            good = _takes(form, counts)
        case View():
            good = _shows(form, counts)
        case Reshape(source=source):
            good = (counts[source] == 0) == (count == 0)
        case Fold(argument=source, axes=axes):
            good = counts[source] == count and (0 not in axes or count == 0)
        case Join(parts=parts, axis=axis):
            good = all(counts[part] == count for part in parts) and (axis != 0 or count == 0)
        case Contraction(left=left, right=right):
            sides = [side for side in (left, right) if counts[side]]
            batched = len(form.shape) > 2 or right not in sides
            good = batched and _go_along(form, sides, counts)
        case Convolution(image=image):
            good = counts[image] == count and not any(counts[item] for item in form.sources[1:])
        case Window(image=image):
            good = counts[image] == count
        case _:
            good = False
    return count if good else None


def _go_along(form: Form, items: Sequence[Form], counts: Counts) -> bool:
    """Whether all forms that have a batch have that of a form, along the same axis."""
    with_batch = [item for item in items if counts[item]]
    rank = len(form.shape)
    return all(
        item.shape[0] == form.shape[0] and len(item.shape) == rank for item in with_batch
    ) and (bool(with_batch) or all(isinstance(size, int) for size in form.shape))


def _takes(form: Take, counts: Counts) -> bool:
    """Elements of something without a batch, or of the same image."""
    if not _go_along(form, form.indices, counts):
        return False
    if not counts[form.source]:
        return True
    first = form.indices[0]
    along = isinstance(first, Iota) and first.axis == 0 and len(first.shape) == len(form.shape)
    return along and form.source.shape[0] == form.shape[0]


def _shows(form: View, counts: Counts) -> bool:
    """A view of the same image, or of something that is repeated for every image."""
    if not all(isinstance(size, int) for axis in form.axes for size in (axis.start, axis.step)):
        return False
    moving = [place for place, axis in enumerate(form.axes) if axis.axis == 0 and axis.step != 0]
    if counts[form.source]:
        plain = moving == [0] and form.axes[0] == Axis(0)
        return plain and form.source.shape[0] == form.shape[0]
    return not moving or all(isinstance(size, int) for size in form.shape)
