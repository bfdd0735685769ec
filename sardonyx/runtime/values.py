"""Values that live outside a run: tensors, sparse tensors, sequences, with onnxruntime's names."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sardonyx.dtypes import DataType, data_type, from_numpy
from sardonyx.errors import InputError, UnsupportedError


class OrtValue:
    """A value to feed or fetch, held in memory.

    >>> value = OrtValue.ortvalue_from_numpy(np.zeros((2, 3), np.float32))
    >>> value.shape(), value.data_type(), value.device_name()
    ([2, 3], 'tensor(float)', 'cpu')
    """

    def __init__(self, value: Any, element: DataType | None = None) -> None:
        if isinstance(value, np.generic):
            value = np.asarray(value)
        if isinstance(value, np.ndarray) and value.dtype.kind in "USTa":
            value = value.astype(object)
        self._value = value
        self._element = element

    @staticmethod
    def ortvalue_from_numpy(
        array: NDArray[Any], /, device_type: str = "cpu", device_id: int = 0, vendor_id: int = -1
    ) -> "OrtValue":
        """A value that shares an array's memory."""
        require_cpu(device_type)
        return OrtValue(np.asarray(array))

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
        return OrtValue(np.asarray(array).view(wanted.numpy), wanted)

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
        kind = (
            data_type(element_type) if isinstance(element_type, int) else from_numpy(element_type)
        )
        return OrtValue(np.zeros(tuple(shape), kind.numpy))

    @staticmethod
    def from_dlpack(source: Any, /) -> "OrtValue":
        """A value that shares memory with another library's tensor."""
        return OrtValue(np.from_dlpack(source))

    def __dlpack__(self, *, stream: Any = None, **options: Any) -> Any:
        return self._array().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self._array(), dtype=dtype, copy=copy)

    def numpy(self) -> Any:
        """The array, or the list of arrays of a sequence."""
        return self._value

    def shape(self) -> list[int]:
        """A tensor's shape."""
        return list(self._array().shape)

    def element_type(self) -> int:
        """A tensor's element type, as ONNX's number."""
        return int(from_numpy(self._array().dtype))

    def data_type(self) -> str:
        """The type as text, such as `tensor(float)`."""
        if isinstance(self._value, list):
            inner = OrtValue(self._value[0]).data_type() if self._value else "tensor(float)"
            return f"seq({inner})"
        return f"tensor({from_numpy(self._array().dtype).text})"

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
        """True for sparse tensors; they are passed densely here."""
        return False

    def is_tensor_sequence(self) -> bool:
        """True for sequences of tensors."""
        return isinstance(self._value, list)

    def tensor_size_in_bytes(self) -> int:
        """The bytes of a tensor's memory."""
        return int(self._array().nbytes)

    def update_inplace(self, array: NDArray[Any]) -> None:
        """Copy an array of the same shape and type into this value's memory."""
        mine = self._array()
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


def plain(value: Any) -> Any:
    """What a run takes: an OrtValue's content, anything else as it is."""
    return value.numpy() if isinstance(value, OrtValue) else value


def require_cpu(device: str) -> None:
    """Raise unless a device is this machine's own memory."""
    if device.lower() != "cpu":
        raise UnsupportedError(f"there is no device '{device}'", hint="use 'cpu'")
