"""Sparse tensors as values of a run, with onnxruntime's names."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sardonyx.boundary import public_methods
from sardonyx.dtypes import from_numpy
from sardonyx.errors import InputError, UnsupportedError


class OrtSparseFormat(Enum):
    """How the places of a sparse tensor's elements are written down."""

    ORT_SPARSE_UNDEFINED = 0
    ORT_SPARSE_COO = 1
    ORT_SPARSE_CSRC = 2
    ORT_SPARSE_BLOCK_SPARSE = 4


@dataclass(frozen=True)
class CooView:
    """Places as coordinates: one number for each element in the flattened tensor, or a pair."""

    _indices: NDArray[np.int64]

    def indices(self) -> NDArray[np.int64]:
        """The coordinates."""
        return self._indices


@dataclass(frozen=True)
class CsrView:
    """Places as columns, and where each row begins among them."""

    _inner: NDArray[np.int64]
    _outer: NDArray[np.int64]

    def inner(self) -> NDArray[np.int64]:
        """The column of each element."""
        return self._inner

    def outer(self) -> NDArray[np.int64]:
        """The first element of each row, and their number at the end."""
        return self._outer


def zeros(shape: Sequence[int], kind: np.dtype[Any]) -> NDArray[Any]:
    """An array of zeros; an error where NumPy has none of this shape.

    >>> zeros([2], np.dtype(np.int8)).tolist()
    [0, 0]
    """
    try:
        return np.zeros(tuple(shape), kind)
    except (ValueError, TypeError) as error:
        raise InputError(f"there is no tensor of the shape {list(shape)}: {error}") from None


@public_methods("making a sparse value")
class SparseValue:
    """A tensor of which only some elements are held; runs take and return it as a dense one.

    >>> value = SparseValue.sparse_coo_from_numpy(
    ...     [2, 3], np.array([5.0, 6.0], np.float32), np.array([1, 3]))
    >>> value.dense().tolist()
    [[0.0, 5.0, 0.0], [6.0, 0.0, 0.0]]
    """

    def __init__(
        self, shape: Sequence[int], values: NDArray[Any], places: CooView | CsrView
    ) -> None:
        self._shape = tuple(int(size) for size in shape)
        self._values = np.asarray(values)
        self._places = places

    @classmethod
    def sparse_coo_from_numpy(
        cls, dense_shape: Sequence[int], values: NDArray[Any], coo_indices: NDArray[np.int64],
        ort_device: Any = None,
    ) -> "SparseValue":  # fmt: skip
        """From elements and their coordinates: [count], or [count, 2] for matrices."""
        indices = np.asarray(coo_indices, np.int64)
        if indices.shape[:1] != np.shape(values)[:1] or indices.ndim not in (1, 2):
            raise InputError(f"{len(values)} values cannot lie at indices of {indices.shape}")
        made = cls(dense_shape, values, CooView(indices))
        made.dense()
        return made

    @classmethod
    def sparse_csr_from_numpy(
        cls, dense_shape: Sequence[int], values: NDArray[Any], inner_indices: NDArray[np.int64],
        outer_indices: NDArray[np.int64], ort_device: Any = None,
    ) -> "SparseValue":  # fmt: skip
        """From elements, the column of each, and where each row begins among them."""
        inner, outer = np.asarray(inner_indices, np.int64), np.asarray(outer_indices, np.int64)
        made = cls(dense_shape, values, CsrView(inner, outer))
        made.dense()
        return made

    @classmethod
    def from_dense(cls, array: NDArray[Any]) -> "SparseValue":
        """The elements of an array that are not zero."""
        flat = array.reshape(-1)
        at = np.flatnonzero(flat)
        return cls(array.shape, flat[at], CooView(at.astype(np.int64)))

    def dense(self) -> NDArray[Any]:
        """All elements, zeros too."""
        result = zeros(self._shape, self._values.dtype)
        try:
            result.reshape(-1)[self._flat()] = self._values
        except (IndexError, ValueError) as error:
            raise InputError(
                f"the places do not fit a tensor of {list(self._shape)}: {error}",
                hint="check the indices and the dense shape",
            ) from None
        return result

    def _flat(self) -> NDArray[np.int64]:
        if isinstance(self._places, CsrView):
            counts = np.diff(self._places.outer())
            rows = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
            flat: NDArray[np.int64] = rows * self._shape[-1] + self._places.inner()
            return flat
        indices = self._places.indices()
        if indices.ndim == 2:
            return np.asarray(np.ravel_multi_index(tuple(indices.T), self._shape), np.int64)
        return indices

    def as_coo_view(self) -> CooView:
        """The places as coordinates; an error where they are written otherwise."""
        if not isinstance(self._places, CooView):
            raise InputError("the tensor is not in the COO format", hint="use as_csrc_view()")
        return self._places

    def as_csrc_view(self) -> CsrView:
        """The places as rows and columns; an error where they are written otherwise."""
        if not isinstance(self._places, CsrView):
            raise InputError("the tensor is not in the CSR format", hint="use as_coo_view()")
        return self._places

    def as_blocksparse_view(self) -> Any:
        """No tensor here is held in blocks."""
        raise UnsupportedError("the tensor is not held in blocks", hint="use as_coo_view()")

    def to_cuda(self, ort_device: Any = None) -> Any:
        """There is no such device."""
        raise UnsupportedError("there is no device 'cuda'", hint="use the value on the CPU")

    def values(self) -> NDArray[Any]:
        """The elements that are held."""
        return self._values

    def dense_shape(self) -> list[int]:
        """The shape with all elements."""
        return list(self._shape)

    def format(self) -> OrtSparseFormat:
        """How places are written down."""
        coo = isinstance(self._places, CooView)
        return OrtSparseFormat.ORT_SPARSE_COO if coo else OrtSparseFormat.ORT_SPARSE_CSRC

    def data_type(self) -> str:
        """The type as text."""
        return f"sparse_tensor({from_numpy(self._values.dtype).text})"

    def device_name(self) -> str:
        """Where the memory is: `cpu`."""
        return "cpu"
