"""Tensors shared with other libraries without a copy, the narrow floats that NumPy lacks too.

NumPy passes these as integers of the same width; only the element type in the record that the two
sides hand over is written anew.
"""

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sardonyx.dtypes import DataType, from_numpy
from sardonyx.errors import InputError

_INTEGER = 1
_CODES = {
    DataType.BFLOAT16: 4,
    DataType.FLOAT8E4M3FN: 10,
    DataType.FLOAT8E4M3FNUZ: 11,
    DataType.FLOAT8E5M2: 12,
    DataType.FLOAT8E5M2FNUZ: 13,
    DataType.FLOAT8E8M0: 14,
}
"""DLPack's numbers for kinds of elements that NumPy does not know."""


class _Record(ctypes.Structure):
    """The beginning of DLPack's record of a tensor."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
    )


class _Capsule:
    """A capsule that is handed on as it is."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def _record(capsule: Any) -> _Record:
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return _Record.from_address(pointer(capsule, b"dltensor"))


def take_shared(source: Any) -> NDArray[Any]:
    """An array over the memory of another library's tensor, or of what a capsule holds.

    >>> mine = np.arange(3.0)
    >>> np.shares_memory(take_shared(mine), mine)
    True
    """
    given = source if hasattr(source, "__dlpack__") else _Capsule(source)
    try:
        return np.asarray(np.from_dlpack(given))
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        return _take_narrow(given, error)


def _take_narrow(given: Any, reason: Exception) -> NDArray[Any]:
    unfit = InputError(
        f"the tensor cannot be shared: {reason}", hint="copy it to a NumPy array instead"
    )
    try:
        capsule = given.__dlpack__()
        record = _record(capsule)
    except (BufferError, RuntimeError, TypeError, ValueError):
        raise unfit from reason
    kind = next((kind for kind, code in _CODES.items() if code == record.code), None)
    if kind is None or record.device_type != 1 or record.bits != kind.numpy.itemsize * 8:
        raise unfit from reason
    record.code = _INTEGER
    return np.asarray(np.from_dlpack(_Capsule(capsule))).view(kind.numpy)


def share(array: NDArray[Any], **options: Any) -> Any:
    """A capsule of an array's memory for another library to take over."""
    kind = from_numpy(array.dtype)
    if kind not in _CODES:
        return array.__dlpack__(**options)
    capsule = array.view(f"u{array.itemsize}").__dlpack__()
    _record(capsule).code = _CODES[kind]
    return capsule
