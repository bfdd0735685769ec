"""Operators that choose elements by computed indices: takes, and maps of indices."""

from sardonyx.compiler.forms import Form, binary, cast, iota, number, reshape, select, take
from sardonyx.compiler.lowerings.request import Lowerings, Request
from sardonyx.dtypes import DataType


def counted_from_end(indices: Form, size: Form) -> Form:
    """Indices as they are meant: a negative one counts from the end."""
    return select(binary("lt", indices, 0), indices + size, indices)


def extent(x: Form, axis: int) -> Form:
    """The size of an axis as a number."""
    return number(x.shape[axis], DataType.INT64)


def gather_elements(request: Request, x: Form, indices: Form, axis: int) -> Form:
    """For each index the element at its own place, but along one axis at the index."""
    place = axis % len(x.shape)
    chosen = counted_from_end(cast(indices, DataType.INT64), extent(x, place))
    places = [
        chosen if other == place else iota(indices.shape, other) for other in range(len(x.shape))
    ]
    return take(x, places, checked=True)


def triangle(request: Request, x: Form, k: Form | None = None, *, upper: int) -> Form:
    """Elements on one side of a diagonal; 0 elsewhere."""
    row, column = iota(x.shape, -2), iota(x.shape, -1)
    offset = column - row
    limit = 0 if k is None else reshape(k, ())
    kept = binary("ge" if upper else "le", offset, limit)
    return select(kept, x, 0)


LOWERINGS: Lowerings = {
    ("", "GatherElements"): gather_elements,
    ("", "Trilu"): triangle,
}
