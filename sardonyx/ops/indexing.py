# mypy: disable-error-code="misc, no-any-return"
"""Elements picked by their positions, which are data."""

import numpy as np

from sardonyx.dims import Size
from sardonyx.errors import EvaluationError, InferenceError
from sardonyx.graph import Node
from sardonyx.ops.build import Builder
from sardonyx.ops.fact import Fact, axis_of, same_size, tensor, unknown
from sardonyx.ops.operator import Operator
from sardonyx.ops.parameters import count_from_front
from sardonyx.ops.precision import Array


class Gather(Operator):
    """Slices of a tensor at the positions an index tensor names, along one dimension."""

    signatures = (
        "1(data: T, indices: Tind, axis: int = 0) -> output: T; T: all15; Tind: int32 int64",
        "11(data: T, indices: Tind, axis: int = 0) -> output: T; T: all15; Tind: int32 int64",
        "13(data: T, indices: Tind, axis: int = 0) -> output: T; T: all; Tind: int32 int64",
    )

    def infer(x: Fact, indices: Fact, axis: int) -> Fact:
        if x.shape is None:
            return unknown(None, x.dtype)
        axis = axis_of(axis, len(x.shape))
        _check_positions(indices, x.shape[axis])
        if indices.shape is None:
            return unknown(None, x.dtype)
        return tensor(x.dtype, (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]))

    def reference(x: Array, indices: Array, axis: int) -> Array:
        return np.asarray(np.take(x, indices, axis), x.dtype)

    def propagate(x: Array, indices: Array, axis: int) -> Array | None:
        if indices.dtype == object:
            return None
        return np.asarray(np.take(x, indices, axis), x.dtype)

    def downgrade_11(node: Node, build: Builder) -> None:
        count_from_front(node, build)


class GatherElements(Operator):
    """Single elements: at each place of the index tensor, the one it names along a dimension."""

    signatures = (
        "11(data: T, indices: Tind, axis: int = 0) -> output: T; T: all15; Tind: int32 int64",
        "13(data: T, indices: Tind, axis: int = 0) -> output: T; T: all; Tind: int32 int64",
    )

    def infer(x: Fact, indices: Fact, axis: int) -> Fact:
        if x.shape is not None:
            _check_positions(indices, x.shape[axis_of(axis, len(x.shape))])
            if indices.rank not in (None, len(x.shape)):
                raise InferenceError(f"indices of rank {indices.rank} do not fit {x}")
        return tensor(
            x.dtype, (None,) * x.rank if indices.shape is None and x.rank else indices.shape
        )

    def reference(x: Array, indices: Array, axis: int) -> Array:
        return x[along(indices, axis, x.shape)]

    def propagate(x: Array, indices: Array, axis: int) -> Array | None:
        return None if indices.dtype == object else x[along(indices, axis, x.shape)]


def along(indices: Array, axis: int, shape: tuple[int, ...]) -> tuple[Array, ...]:
    """An index for each dimension: `indices` along `axis`, its own position along the others."""
    if indices.ndim != len(shape):
        raise EvaluationError(f"indices of rank {indices.ndim} do not fit the shape {list(shape)}")
    places = list(np.ogrid[tuple(map(slice, indices.shape))])
    places[axis] = in_range(indices, shape[axis])
    return tuple(places)


def in_range(indices: Array, size: int) -> Array:
    """Positions counted from 0; an error where one lies outside a dimension of `size`."""
    if indices.size and not -size <= indices.min() <= indices.max() < size:
        wrong = indices[(indices < -size) | (indices >= size)][0]
        raise EvaluationError(f"index {wrong} is outside a dimension of size {size}")
    return np.where(indices < 0, indices + size, indices)


def _check_positions(indices: Fact, size: Size | None) -> None:
    constant = indices.constant
    if constant is None or constant.size == 0 or not isinstance(size, int):
        return
    if not -size <= constant.min() <= constant.max() < size:
        raise InferenceError(f"indices {constant.tolist()} leave a dimension of size {size}")


class GatherND(Operator):
    """Elements or slices at positions that an index tensor names by several coordinates.

    Positions of slices without elements do not matter.
    """

    signatures = (
        "11(data: T, indices: tensor(int64)) -> output: T; T: all15",
        "12(data: T, indices: tensor(int64), batch_dims: int = 0) -> output: T; T: all15",
        "13(data: T, indices: tensor(int64), batch_dims: int = 0) -> output: T; T: all",
    )

    def infer(x: Fact, indices: Fact, batch_dims: int) -> Fact:
        if x.shape is None or indices.shape is None:
            return unknown(None, x.dtype)
        rank, places = len(x.shape), len(indices.shape)
        if not 0 <= batch_dims < min(rank, places):
            raise InferenceError(f"{batch_dims} batch dimensions do not fit {x} and {indices}")
        for axis in range(batch_dims):
            same_size(x.shape[axis], indices.shape[axis], f"batch dimension {axis} differs")
        count = indices.shape[-1]
        if not isinstance(count, int):
            return unknown(None, x.dtype)
        if not 1 <= count <= rank - batch_dims:
            raise InferenceError(f"{count} coordinates do not fit {x}")
        return tensor(x.dtype, (*indices.shape[:-1], *x.shape[batch_dims + count :]))

    def reference(x: Array, indices: Array, batch_dims: int) -> Array:
        return _gather_nd(x, indices, batch_dims)

    def propagate(x: Array, indices: Array, batch_dims: int) -> Array | None:
        return None if indices.dtype == object else _gather_nd(x, indices, batch_dims)


def _gather_nd(x: Array, indices: Array, batch_dims: int) -> Array:
    count = indices.shape[-1]
    sizes = x.shape[batch_dims : batch_dims + count]
    if len(sizes) < count:
        raise EvaluationError(f"{count} coordinates do not fit the shape {list(x.shape)}")
    shape = (*indices.shape[:-1], *x.shape[batch_dims + count :])
    if 0 in shape:
        return np.zeros(shape, x.dtype)
    places = [in_range(indices[..., place], size) for place, size in enumerate(sizes)]
    batch = np.ogrid[tuple(map(slice, indices.shape[:batch_dims]))]
    inner = indices.ndim - 1 - batch_dims
    spread = [item.reshape(item.shape + (1,) * inner) for item in batch]
    return np.asarray(x[(*spread, *places)], x.dtype)
