"""Images as files: written piece by piece, read by mapping, checked before anything is used.

A file is a line that names the format, the length and checksum of its head, the head (tables, code,
the graph, and where each constant lies), then the constants, each at a multiple of 64 bytes, and at
the end their checksum.
"""

import hashlib
import mmap
import os
import pickle
import struct
import zlib
from collections.abc import Iterator
from dataclasses import replace
from math import prod
from typing import Any, BinaryIO

import numpy as np

from sardonyx.compiler.image import Image, Unmade, Wanted
from sardonyx.compiler.plan import ALIGNMENT
from sardonyx.dtypes import data_type, from_numpy
from sardonyx.errors import FormatError, OutOfMemoryError
from sardonyx.format.pages import let_go
from sardonyx.record import record

MAGIC = b"sardonyx image 1\n"
_LENGTHS = struct.Struct("<QQ32s")
"""Bytes of the head, bytes of the constants behind it, and the head's checksum."""
_SUM = struct.Struct("<I")
_CHUNK = 1 << 24


@record
class _Stored:
    """A constant in a file: where it begins behind the head, its element type, its shape."""

    offset: int
    dtype: int
    shape: tuple[int, ...]


def write_image(image: Image | Wanted, file: BinaryIO) -> None:
    """Write an image to a file that is open at its beginning."""
    places: list[Any] = []
    arrays = []
    end = 0
    for item in image.constants:
        if isinstance(item, Unmade):
            places.append(_Stored(end, item.dtype, item.shape))
        elif isinstance(item, np.ndarray) and item.dtype != object:
            places.append(_Stored(end, int(from_numpy(item.dtype)), item.shape))
        else:
            places.append(item)
            continue
        arrays.append(item)
        end += _padded(item.nbytes)
    head = pickle.dumps(replace(image, constants=tuple(places)), protocol=5)
    head += bytes(-(len(head) + len(MAGIC) + _LENGTHS.size) % ALIGNMENT)
    file.write(MAGIC + _LENGTHS.pack(len(head), end, hashlib.sha256(head).digest()) + head)
    checksum = 0
    for item in arrays:
        array = np.ascontiguousarray(item.make() if isinstance(item, Unmade) else item)
        content = array.reshape(-1).view(np.uint8).data
        for piece in (content, bytes(-content.nbytes % ALIGNMENT)):
            file.write(piece)
            checksum = zlib.crc32(piece, checksum)
        let_go(array)
    file.write(_SUM.pack(checksum))


def read_image(file: BinaryIO, *, trusted: bool) -> Image | Wanted:
    """The image in an open file; `trusted` where its constants are known to be as written.

    Constants stay in the mapped file, which all processes that read it share.
    """
    size = os.fstat(file.fileno()).st_size
    begin = len(MAGIC) + _LENGTHS.size
    if size < begin:
        raise _damaged("it is too short")
    try:
        content = memoryview(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ))
    except (OSError, MemoryError) as error:
        raise OutOfMemoryError(
            f"a compiled program of {size} bytes cannot be mapped: {error}",
            hint="allow the process more address space (ulimit -v)",
        ) from None
    if bytes(content[: len(MAGIC)]) != MAGIC:
        raise _damaged("it does not begin as an image does")
    length, constants, checksum = _LENGTHS.unpack(content[len(MAGIC) : begin])
    start = begin + length
    if start + constants + _SUM.size != size:
        raise _damaged("its length is not what it says")
    head = content[begin:start]
    if hashlib.sha256(head).digest() != checksum:
        raise _damaged("its checksum is wrong")
    if not trusted:
        (wanted,) = _SUM.unpack(content[start + constants :])
        if _checksum(content[start : start + constants]) != wanted:
            raise _damaged("the checksum of its constants is wrong")
    image: Image | Wanted = pickle.loads(head)
    return replace(
        image, constants=tuple(_array(item, content[start:]) for item in image.constants)
    )


def _array(item: Any, content: memoryview) -> Any:
    if not isinstance(item, _Stored):
        return item
    dtype = data_type(item.dtype).numpy
    return np.frombuffer(content, dtype, prod(item.shape), item.offset).reshape(item.shape)


def _checksum(content: memoryview) -> int:
    checksum = 0
    for piece in _pieces(content):
        checksum = zlib.crc32(piece, checksum)
    return checksum


def _pieces(content: memoryview) -> Iterator[memoryview]:
    for start in range(0, len(content), _CHUNK):
        yield content[start : start + _CHUNK]


def _padded(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def _damaged(why: str) -> FormatError:
    return FormatError(f"the image cannot be used: {why}", hint="it will be made again")
