"""Memory in which a kernel that reads or writes behind its arrays ends the process at once."""

import ctypes
import mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sardonyx.compiler import segment

_LIBC = ctypes.CDLL(None, use_errno=True)


def guarded(shape: Any, dtype: Any) -> NDArray[Any]:
    """An array that ends right before a page nobody may touch."""
    kind = np.dtype(dtype)
    size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    room = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
    try:
        memory = mmap.mmap(-1, room + mmap.PAGESIZE)
    except (OSError, OverflowError) as error:
        raise MemoryError from error
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    if _LIBC.mprotect(ctypes.c_void_p(base + room), mmap.PAGESIZE, 0):
        raise OSError(ctypes.get_errno(), "mprotect")
    whole = np.frombuffer(memory, np.uint8, room)
    return whole[room - size :].view(kind).reshape(shape)


class _Numpy:
    """NumPy, except that new and contiguous arrays are guarded."""

    empty = staticmethod(guarded)

    @staticmethod
    def ascontiguousarray(array: NDArray[Any]) -> NDArray[Any]:
        copy = guarded(array.shape, array.dtype)
        copy[...] = array
        return copy

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


def guard_segments() -> None:
    """Let native calls work on guarded copies of their inputs, results and memory."""
    segment.np = _Numpy()  # type: ignore[attr-defined]
