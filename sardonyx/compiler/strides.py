"""How views and reshapes lie in the memory of what they are made of, where strides can say it."""

from collections.abc import Callable, Sequence
from itertools import pairwise

from sardonyx.compiler.forms import Form, Reshape, View
from sardonyx.dims import Size
from sardonyx.loops.build import dense_strides

Strides = tuple[Size, ...]


def strides_of(form: Form, stored: Callable[[Form], Strides | None]) -> Strides | None:
    """How far apart a form's elements lie; None where no strides say it.

    `stored` gives the strides of what is in memory by itself, and None for anything else.
    """
    chain = [form]
    while (strides := stored(chain[-1])) is None:
        if not isinstance(chain[-1], View | Reshape):
            return None
        chain.append(chain[-1].source)
    for item in reversed(chain[:-1]):
        if strides is None:
            return None
        if isinstance(item, View):
            strides = _viewed(item, strides)
        else:
            assert isinstance(item, Reshape)
            strides = reshaped_strides(item.source.shape, strides, item.shape)
    return strides


def _viewed(view: View, strides: Strides) -> Strides | None:
    made: list[Size] = [0] * len(view.shape)
    for axis, stride in zip(view.axes, strides, strict=True):
        if axis.start != 0:
            return None
        if axis.axis is not None:
            made[axis.axis] = made[axis.axis] + stride * axis.step
    return tuple(made)


def reshaped_strides(
    shape: Sequence[Size], strides: Strides, result: Sequence[Size]
) -> Strides | None:
    """Strides of the same elements in another shape; None where that needs a copy.

    >>> reshaped_strides((2, 12, 5), (60, 1, 12), (2, 3, 4, 5))
    (60, 4, 1, 12)
    >>> reshaped_strides((2, 3), (1, 2), (6,)) is None
    True
    """
    if strides == dense_strides(shape):
        return dense_strides(result)
    if 0 in shape:
        return None
    before = [axis for axis, size in enumerate(shape) if size != 1]
    after = [axis for axis, size in enumerate(result) if size != 1]
    ends = _products([shape[axis] for axis in before])
    cuts = _products([result[axis] for axis in after])
    made: list[Size] = [0] * len(result)
    first = begin = 0
    for end, total in enumerate(ends[1:], 1):
        if total not in cuts:
            continue
        last = cuts.index(total)
        step = _together(shape, strides, before[first:end])
        if step is None:
            return None
        for axis in reversed(after[begin:last]):
            made[axis] = step
            step = step * result[axis]
        first, begin = end, last
    return tuple(made) if first == len(before) and begin == len(after) else None


def _times(left: Size, right: Size) -> Size:
    return left * right


def _together(shape: Sequence[Size], strides: Strides, axes: list[int]) -> Size | None:
    """The stride of some axes as a single one."""
    for outer, inner in pairwise(axes):
        if strides[outer] != strides[inner] * shape[inner]:
            return None
    return strides[axes[-1]]


def lies_in_order(shape: Sequence[Size], strides: Strides) -> bool:
    """Whether elements lie in memory in the order of a form's own axes, without gaps."""
    pairs = zip(shape, strides, dense_strides(shape), strict=True)
    return all(size == 1 or here == usual for size, here, usual in pairs)


def _products(sizes: Sequence[Size]) -> list[Size]:
    """1, and the product of the first sizes up to each."""
    found: list[Size] = [1]
    for size in sizes:
        found.append(_times(found[-1], size))
    return found
