"""Memory of mapped files that is not needed for now."""

import mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sardonyx.format.opened import FilePart
from sardonyx.format.storage import ExternalData, RawData
from sardonyx.format.wire import Buffer
from sardonyx.graph import ArrayData, Tensor

LARGE = 1 << 14
"""Bytes from which on it is worth while to give memory back."""


def let_go(data: NDArray[Any] | Buffer) -> None:
    """Let the system take back memory of data in a mapped file; a later read brings it back.

    >>> let_go(np.zeros(3))  # not in a mapped file: nothing happens
    """
    array = data if isinstance(data, np.ndarray) else np.frombuffer(data, np.uint8)
    if array.nbytes < LARGE:
        return
    mapped = mapping(array)
    if mapped is None or not array.flags.forc or not hasattr(mmap, "MADV_DONTNEED"):
        return
    begin = array.ctypes.data - np.frombuffer(mapped, np.uint8, 1).ctypes.data
    start = -(-begin // mmap.PAGESIZE) * mmap.PAGESIZE
    length = (begin + array.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE - start
    if length > 0:
        mapped.madvise(mmap.MADV_DONTNEED, start, length)


def mapping(array: NDArray[Any]) -> mmap.mmap | None:
    """The mapped file in which an array lies; None where it lies in memory.

    >>> mapping(np.zeros(3)) is None
    True
    """
    holder: Any = array
    while isinstance(holder, np.ndarray):
        holder = holder.base
    found = holder.obj if isinstance(holder, memoryview) else None
    return found if isinstance(found, mmap.mmap) else None


def let_go_tensor(tensor: Tensor) -> None:
    """The same for the elements of a tensor, wherever they are.

    >>> let_go_tensor(Tensor(np.zeros(3)))
    """
    data = tensor.data
    if isinstance(data, RawData):
        if not isinstance(data.stored, FilePart):
            let_go(data.stored)
    elif isinstance(data, ArrayData):
        let_go(data.values)
    elif type(data) is ExternalData and "checksum" not in dict(data.entries):
        let_go(data.buffer(tensor))
