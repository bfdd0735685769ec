"""Values that live outside a run: tensors, sparse tensors, sequences, with onnxruntime's names."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sardonyx.boundary import public_methods
from sardonyx.dtypes import data_type, from_numpy
from sardonyx.errors import InputError, UnsupportedError
from sardonyx.runtime.dlpack import share, take_shared
from sardonyx.runtime.sparse import SparseValue, zeros


@public_methods("making a value", plain=("__init__", "numpy"))
class OrtValue:
    """A value to feed or fetch, held in memory.

    >>> value = OrtValue.ortvalue_from_numpy(np.zeros((2, 3), np.float32))
    >>> value.shape(), value.data_type(), value.device_name()
    ([2, 3], 'tensor(float)', 'cpu')
    """

    def __init__(self, value: Any) -> None:
        if isinstance(value, np.generic):
            value = np.asarray(value)
        if isinstance(value, np.ndarray) and value.dtype.kind in "USTa":
            value = value.astype(object)
        self._value = value

    @staticmethod
    def ortvalue_from_numpy(
        array: NDArray[Any], /, device_type: str = "cpu", device_id: int = 0, vendor_id: int = -1
    ) -> "OrtValue":
        """A value that shares an array's memory, where that is in one piece."""
        require_cpu(device_type)
        return OrtValue(np.asarray(array_of(array, "the value"), order="C"))

    @staticmethod
    def ortvalue_from_numpy_with_onnx_type(
        array: NDArray[Any], /, onnx_element_type: int
    ) -> "OrtValue":
        """A value whose bits are read as another element type: how bfloat16 used to be passed.

        >>> bits = np.array([0x3F80], np.uint16)
        >>> OrtValue.ortvalue_from_numpy_with_onnx_type(bits, 16).numpy().tolist()
        [1.0]
        """
        wanted = data_type(onnx_element_type)
        if array.dtype != wanted.numpy and array.dtype.itemsize != wanted.numpy.itemsize:
            raise InputError(f"{array.dtype} cannot be read as {wanted.text}: the sizes differ")
        return OrtValue(np.asarray(array).view(wanted.numpy))

    @staticmethod
    def ortvalue_from_shape_and_type(
        shape: Sequence[int],
        element_type: Any = np.float32,
        device_type: str = "cpu",
        device_id: int = 0,
        vendor_id: int = -1,
        memory_info: Any = None,
    ) -> "OrtValue":
        """Memory for a tensor, to be bound as an output; its content is zero."""
        require_cpu(device_type)
        return OrtValue(zeros(shape, element_kind(element_type)))

    @staticmethod
    def ort_value_from_sparse_tensor(tensor: SparseValue) -> "OrtValue":
        """A value that holds a sparse tensor."""
        return OrtValue(tensor)

    def as_sparse_tensor(self) -> SparseValue:
        """The sparse tensor that is held."""
        if not isinstance(self._value, SparseValue):
            raise InputError(f"the value is a {self.data_type()}, not a sparse tensor")
        return self._value

    @staticmethod
    def from_dlpack(source: Any, /) -> "OrtValue":
        """A value that shares memory with another library's tensor.

        >>> import ml_dtypes
        >>> narrow = OrtValue.ortvalue_from_numpy(np.ones(2, ml_dtypes.bfloat16))
        >>> OrtValue.from_dlpack(narrow).data_type()
        'tensor(bfloat16)'
        """
        return OrtValue(take_shared(source))

    def __dlpack__(self, *, stream: Any = None, **options: Any) -> Any:
        return share(self._array(), **options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self._array(), dtype=dtype, copy=copy)

    def numpy(self) -> Any:
        """The array, or the list of arrays of a sequence."""
        if isinstance(self._value, SparseValue):
            raise InputError(
                "the value is a sparse tensor", hint="use as_sparse_tensor().dense() for an array"
            )
        return self._value

    def shape(self) -> list[int]:
        """A tensor's shape."""
        if isinstance(self._value, SparseValue):
            return self._value.dense_shape()
        return list(self._array().shape)

    def element_type(self) -> int:
        """A tensor's element type, as ONNX's number."""
        sparse = isinstance(self._value, SparseValue)
        array = self._value.values() if sparse else self._array()
        return int(from_numpy(array.dtype))

    def data_type(self) -> str:
        """The type as text, such as `tensor(float)`."""
        return _type_of(self._value)

    def data_ptr(self) -> int:
        """The address of a tensor's memory."""
        return int(self._array().ctypes.data)

    def device_name(self) -> str:
        """Where the memory is: `cpu`."""
        return "cpu"

    def has_value(self) -> bool:
        """False for an optional that holds nothing."""
        return self._value is not None

    def is_tensor(self) -> bool:
        """True for dense tensors."""
        return isinstance(self._value, np.ndarray)

    def is_sparse_tensor(self) -> bool:
        """True for sparse tensors."""
        return isinstance(self._value, SparseValue)

    def is_tensor_sequence(self) -> bool:
        """True for sequences of tensors."""
        return isinstance(self._value, list)

    def tensor_size_in_bytes(self) -> int:
        """The bytes of a tensor's memory."""
        return int(self._array().nbytes)

    def update_inplace(self, array: NDArray[Any]) -> None:
        """Copy an array of the same shape and type into this value's memory."""
        mine = self._array()
        if not isinstance(array, np.ndarray):
            raise InputError(f"the value holds a tensor, not a {type(array).__name__}")
        if mine.shape != array.shape or mine.dtype != array.dtype:
            raise InputError(
                f"the value holds {mine.dtype}{list(mine.shape)}, "
                f"not {array.dtype}{list(array.shape)}"
            )
        if not mine.flags.writeable:
            raise InputError(
                "the value's memory is read-only", hint="make it from a copy of the array"
            )
        mine[...] = array

    def _array(self) -> NDArray[Any]:
        if not isinstance(self._value, np.ndarray):
            raise InputError(f"the value is a {type(self._value).__name__}, not a tensor")
        return self._value

    def __repr__(self) -> str:
        return f"OrtValue({self.data_type() if self.has_value() else 'nothing'})"


def _type_of(value: Any) -> str:
    match value:
        case SparseValue():
            return value.data_type()
        case list():
            return f"seq({_type_of(value[0]) if value else 'tensor(float)'})"
        case dict():
            key, item = next(iter(value.items()), (0, 0.0))
            return f"map({_name_of(key)},tensor({_name_of(item)}))"
        case np.ndarray():
            return f"tensor({_name_of(value)})"
    raise InputError(f"the value is a {type(value).__name__}, not a tensor")


def _name_of(value: Any) -> str:
    array = np.asarray(value)
    return from_numpy(np.float32 if isinstance(value, float) else array.dtype).text


def array_of(given: Any, what: str) -> NDArray[Any]:
    """An array from one, or from what NumPy can make one of; an error that names it otherwise."""
    try:
        return np.asarray(given)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"{what} cannot be made an array: {error}",
            hint="give an array, or lists of equal lengths",
        ) from None


def plain(value: Any) -> Any:
    """What a run takes: an OrtValue's content, a sparse tensor densely, anything else as it is."""
    held = value._value if isinstance(value, OrtValue) else value
    return held.dense() if isinstance(held, SparseValue) else held


def element_kind(given: Any) -> np.dtype[Any]:
    """A NumPy type from what users pass as one: a type, or ONNX's number of an element type.

    >>> element_kind(1), element_kind(np.int64)
    (dtype('float32'), dtype('int64'))
    """
    return (data_type(given) if isinstance(given, int) else from_numpy(given)).numpy


def require_cpu(device: str) -> None:
    """Raise unless a device is this machine's own memory."""
    if device.lower() != "cpu":
        raise UnsupportedError(f"there is no device '{device}'", hint="use 'cpu'")
