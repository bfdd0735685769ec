"""Tensors: a name, dimensions, an element type, and data that may still lie in a file."""

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sardonyx.dtypes import DataType, data_type, from_numpy
from sardonyx.errors import OutOfMemoryError, TensorError
from sardonyx.graph.types import TensorType, element_text, known_element

LARGEST = 2**62
"""More elements than any machine holds: a product of dimensions beyond it is refused."""


HIGHEST_RANK = 64
"""Dimensions that NumPy's arrays can have."""


class Data(Protocol):
    """Where a tensor's elements are, and how to get at them."""

    def array(self, tensor: "Tensor") -> NDArray[Any]:
        """The elements in the tensor's shape; read-only where they are not our own copy."""
        ...

    def nbytes(self, tensor: "Tensor") -> int:
        """Bytes the stored form takes."""
        ...


@dataclass(frozen=True, slots=True)
class ArrayData:
    """Elements in memory."""

    values: NDArray[Any]

    def array(self, tensor: "Tensor") -> NDArray[Any]:
        """The array itself."""
        return self.values

    def nbytes(self, tensor: "Tensor") -> int:
        """Bytes in raw storage; for strings the sum of their lengths."""
        if tensor.type.element == DataType.STRING:
            return sum(len(encode_string(item)) for item in self.values.flat)
        return from_numpy(self.values.dtype).raw_size(self.values.size)


class Tensor:
    """A constant: weights, a constant's value, an attribute.

    >>> weights = Tensor(np.eye(2, dtype=np.float32), name="w")
    >>> weights.shape, weights.dtype, weights.nbytes
    ((2, 2), <DataType.FLOAT: 1>, 16)
    >>> weights.numpy()[0].tolist()
    [1.0, 0.0]
    """

    __slots__ = (
        "data",
        "doc_string",
        "element",
        "leftover",
        "metadata",
        "name",
        "segment",
        "shape",
    )

    name: str
    shape: tuple[int, ...]
    element: int
    data: Data
    doc_string: str
    metadata: dict[str, str] | None
    segment: tuple[int, int] | None
    leftover: bytes

    def __init__(self, values: ArrayLike, name: str = "", *, dtype: DataType | None = None) -> None:
        array = _as_array(values, dtype)
        self.name = name
        self.shape = array.shape
        self.element = int(from_numpy(array.dtype) if dtype is None else dtype)
        self.data = ArrayData(array)
        self.doc_string = ""
        self.metadata = None
        self.segment = None
        self.leftover = b""

    @classmethod
    def stored(cls, name: str, shape: tuple[int, ...], element: int, data: Data) -> "Tensor":
        """A tensor whose elements lie elsewhere."""
        tensor = cls.__new__(cls)
        tensor.name, tensor.shape, tensor.element, tensor.data = name, shape, element, data
        tensor.doc_string, tensor.metadata, tensor.segment, tensor.leftover = "", None, None, b""
        return tensor

    @property
    def dtype(self) -> DataType:
        """The element type; an error where its number is unknown."""
        return data_type(self.element)

    @property
    def type(self) -> TensorType:
        """The type of a value that holds this tensor."""
        return TensorType(known_element(self.element), self.shape)

    @property
    def size(self) -> int:
        """The number of elements; an error where dimensions make no sense."""
        if any(dim < 0 for dim in self.shape):
            raise TensorError(f"tensor '{self.name}' has a negative dimension: {list(self.shape)}")
        size = math.prod(self.shape)
        if size > LARGEST:
            raise TensorError(
                f"tensor '{self.name}' claims {size} elements: {list(self.shape)}",
                hint="no machine holds that many; the file is damaged or hostile",
            )
        return size

    @property
    def nbytes(self) -> int:
        """Bytes the stored form takes."""
        return self.data.nbytes(self)

    def numpy(self) -> NDArray[Any]:
        """The elements as an array: a view into the mapped file where that is possible."""
        require_array(self.name, self.shape)
        return self.data.array(self)

    def set(self, values: ArrayLike) -> None:
        """Replace the elements; shape and element type follow the array."""
        array = _as_array(values, None)
        self.shape, self.element, self.data = (
            array.shape,
            int(from_numpy(array.dtype)),
            ArrayData(array),
        )

    def copy(self) -> "Tensor":
        """A tensor of its own that shares the immutable data."""
        twin = Tensor.stored(self.name, self.shape, self.element, self.data)
        twin.doc_string, twin.segment, twin.leftover = self.doc_string, self.segment, self.leftover
        twin.metadata = dict(self.metadata) if self.metadata else None
        return twin

    def __repr__(self) -> str:
        return (
            f"Tensor({self.name!r}, {element_text(known_element(self.element))}{list(self.shape)})"
        )


class SparseTensor:
    """A sparse constant in coordinate form.

    >>> sparse = SparseTensor(Tensor([5.0], "s"), Tensor(np.array([3])), (2, 2))
    >>> sparse.numpy().tolist()
    [[0.0, 0.0], [0.0, 5.0]]
    """

    __slots__ = ("indices", "leftover", "shape", "values")

    def __init__(
        self,
        values: Tensor | None,
        indices: Tensor | None,
        shape: tuple[int, ...],
        leftover: bytes = b"",
    ) -> None:
        self.values = values
        self.indices = indices
        self.shape = shape
        self.leftover = leftover

    @property
    def name(self) -> str:
        """The name, which the tensor of values carries."""
        return self.values.name if self.values is not None else ""

    @property
    def type(self) -> TensorType:
        """The type a value that holds this constant has: the dense one."""
        element = None if self.values is None else known_element(self.values.element)
        return TensorType(element, self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes the stored form takes."""
        return sum(part.nbytes for part in (self.values, self.indices) if part is not None)

    def numpy(self) -> NDArray[Any]:
        """The dense array."""
        if self.values is None or self.indices is None:
            raise TensorError(f"sparse tensor '{self.name}' lacks its values or its indices")
        values, indices = self.values.numpy(), self.indices.numpy()
        size = Tensor.stored(self.name, self.shape, self.values.element, self.values.data).size
        require_array(self.name, self.shape)
        flat = _flat_indices(indices, self.shape)
        if values.shape != flat.shape or (flat.size and not (0 <= flat.min() <= flat.max() < size)):
            raise TensorError(
                f"sparse tensor '{self.name}' has {values.size} values and indices that do not fit "
                f"the shape {list(self.shape)}"
            )
        try:
            dense = np.zeros(size, values.dtype)
        except (MemoryError, ValueError) as error:  # NumPy's ValueError is beyond all addresses
            raise OutOfMemoryError(
                f"sparse tensor '{self.name}' of the shape {list(self.shape)} does not fit into "
                f"memory: {error}"
            ) from None
        dense[flat] = values
        return dense.reshape(self.shape)

    def copy(self) -> "SparseTensor":
        """A sparse tensor of its own that shares the immutable data."""
        values = self.values and self.values.copy()
        indices = self.indices and self.indices.copy()
        return SparseTensor(values, indices, self.shape, self.leftover)

    def __repr__(self) -> str:
        return f"SparseTensor({self.name!r}, {self.type})"


def require_array(name: str, shape: tuple[int, ...]) -> None:
    """An error where NumPy has no array of a shape: empty ones have limits too."""
    if len(shape) > HIGHEST_RANK:
        raise TensorError(
            f"tensor '{name}' has {len(shape)} dimensions", hint=f"at most {HIGHEST_RANK} work here"
        )
    if 0 in shape and math.prod(size for size in shape if size > 0) > LARGEST >> 4:
        raise TensorError(
            f"tensor '{name}' has the shape {list(shape)}: it is empty, but too large otherwise",
            hint="the file is damaged or hostile",
        )


def _flat_indices(indices: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    if indices.ndim != 2:
        return indices.reshape(-1)
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    if indices.shape[1] != len(shape):
        raise TensorError(f"indices of {indices.shape[1]} coordinates do not fit rank {len(shape)}")
    return indices.astype(np.int64) @ np.array(strides, np.int64)


def _as_array(values: ArrayLike, dtype: DataType | None) -> NDArray[Any]:
    array = np.asarray(values)
    if dtype is not None:
        array = array.astype(dtype.numpy, copy=False)
    if array.dtype.kind in "USTa":
        array = array.astype(object)
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("="))
    return array


def encode_string(item: Any) -> bytes:
    """One element of a string tensor as bytes."""
    return item if isinstance(item, bytes) else str(item).encode("utf-8", "surrogateescape")
