"""Rules about sparse constants."""

import math

import numpy as np

from sardonyx.checker.context import Context
from sardonyx.checker.findings import Place
from sardonyx.checker.tensors import check_tensor
from sardonyx.checker.versions import SPARSE
from sardonyx.dtypes import DataType
from sardonyx.errors import SardonyxError
from sardonyx.format.storage import RawData
from sardonyx.graph import SparseTensor, Tensor


def check_sparse_tensor(context: Context, sparse: SparseTensor, place: Place) -> None:
    """All rules about one sparse tensor: values, indices, and that they fit its dimensions."""
    report = context.report
    context.require_ir(SPARSE, "sparse tensors", place)
    values, indices = sparse.values, sparse.indices
    if values is None:
        report.add("sparse-values-missing", place, "the sparse tensor has no values")
        return
    check_tensor(context, values, place / "values")
    if indices is not None:
        check_tensor(context, indices, place / "indices")
    if len(values.shape) != 1:
        what = f"the values have the dimensions {list(values.shape)}"
        report.add("sparse-values-rank", place / "values", what)
        return
    if not sparse.shape:
        report.add("sparse-rank-zero", place, "the sparse tensor has no dimensions")
        return
    if any(size <= 0 for size in sparse.shape):
        what = f"the dimensions {list(sparse.shape)} are not all positive"
        report.add("sparse-dimension", place, what)
        return
    if indices is not None:
        _check_indices(context, sparse.shape, values.shape[0], indices, place / "indices")
    elif values.shape[0]:
        what = f"there are {values.shape[0]} values and no indices"
        report.add("sparse-indices-missing", place, what)


def _check_indices(
    context: Context, shape: tuple[int, ...], count: int, indices: Tensor, place: Place
) -> None:
    report = context.report
    if indices.element != DataType.INT64:
        report.add("sparse-indices-type", place, f"the indices are {indices.type}")
    elif len(indices.shape) not in (1, 2):
        what = f"the indices have the dimensions {list(indices.shape)}"
        report.add("sparse-indices-rank", place, what)
    elif indices.shape[0] != count:
        what = f"there are {count} values and {indices.shape[0]} indices"
        report.add("sparse-indices-count", place, what)
    elif len(indices.shape) == 2 and indices.shape[1] != len(shape):
        what = f"there are {indices.shape[1]} coordinates for {len(shape)} dimensions"
        report.add("sparse-indices-width", place, what)
    else:
        _check_order(context, shape, indices, place)


def _check_order(context: Context, shape: tuple[int, ...], indices: Tensor, place: Place) -> None:
    try:
        found = indices.numpy()
    except SardonyxError as error:
        if not isinstance(indices.data, RawData) or not indices.data.buffer:
            context.report.add("sparse-indices-unreadable", place, error.what)
        return
    if found.ndim == 1:
        found, limits = found[:, None], [math.prod(shape)]
    else:
        limits = list(shape)
    outside = found < 0
    for axis, limit in enumerate(limits):
        if limit <= np.iinfo(np.int64).max:
            outside[:, axis] |= found[:, axis] >= limit
    if outside.any():
        row = int(np.argmax(outside.any(axis=1)))
        what = f"index {row} is {found[row].tolist()}, outside {list(shape)}"
        context.report.add("sparse-indices-range", place, what)
        return
    before, after = found[:-1], found[1:]
    differs = before != after
    first = np.argmax(differs, axis=1)[:, None]
    grows = np.take_along_axis(after, first, 1) > np.take_along_axis(before, first, 1)
    if not grows.all():
        row = int(np.argmin(grows[:, 0])) + 1
        what = f"index {row} does not come after the one before it"
        context.report.add("sparse-indices-order", place, what)
