"""Open files, and what they were when they were opened.

Whoever maps a file sees it change: a shorter file is a signal, another content other numbers. So
parts of mapped files are handed out only while the file is what it was, and what a session computes
with is read into memory of its own.
"""

import mmap
import os
import stat
import sys
import weakref
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sardonyx.errors import ChangedFileError, FormatError, OutOfMemoryError
from sardonyx.format.wire import Buffer

FileState = tuple[int, ...]
_LINE = 64
"""What is read begins at a cache line, as kernels like it."""
_MOST = 1 << 30
"""Bytes that one call to the system reads at most."""


class OpenedFile:
    """A plain file, open for reading, that may be asked whether it is still what it was."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            flags = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
            self.descriptor = os.open(path, os.O_RDONLY | flags)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise FormatError(f"cannot open '{path}': {reason}", hint="check the path") from None
        status = os.fstat(self.descriptor)
        if not stat.S_ISREG(status.st_mode):
            os.close(self.descriptor)
            self.descriptor = -1
            raise FormatError(f"'{path}' is not a file", hint="give the path of a model file")
        self.size = status.st_size
        self.state = file_state(status)
        self._lock = Lock()

    def __del__(self) -> None:
        if getattr(self, "descriptor", -1) >= 0:
            os.close(self.descriptor)

    def require_unchanged(self) -> None:
        """Raise where the file was written to since it was opened.

        Another file of its name in its place is no change: this one is still there.
        """
        status = os.fstat(self.descriptor)
        if file_state(status) == self.state:
            return
        size = status.st_size
        how = f"it had {self.size} bytes, now {size}" if size != self.size else "it was written to"
        raise ChangedFileError(
            f"'{self.path}' changed since it was opened: {how}",
            hint="open it again; who replaces a file should write another and rename it, and "
            "sx.load(path, mapped=False) keeps a copy in memory",
        )

    def is_at(self, path: Path) -> bool:
        """True where this file is the one at a path, and nobody wrote to it since."""
        try:
            return file_state(os.stat(path)) == self.state
        except OSError:
            return False

    def read(self, start: int = 0, length: int | None = None) -> NDArray[np.uint8]:
        """Bytes in memory of our own; an error where the file changed before or meanwhile."""
        length = self.size - start if length is None else length
        room = np.empty(length + _LINE, np.uint8)
        begin = -room.ctypes.data % _LINE
        found = room[begin : begin + length]
        done = 0
        while done < length:
            got = self._read_into(found[done : done + _MOST], start + done)
            if not got:
                break
            done += got
        self.require_unchanged()
        if done < length:
            raise ChangedFileError(
                f"'{self.path}' ends {length - done} bytes early", hint="open it again"
            )
        found.flags.writeable = False
        return found

    def _read_into(self, target: NDArray[np.uint8], start: int) -> int:
        if hasattr(os, "preadv"):
            return os.preadv(self.descriptor, [target.data], start)
        with self._lock:
            os.lseek(self.descriptor, start, os.SEEK_SET)
            content = os.read(self.descriptor, target.size)
        target[: len(content)] = np.frombuffer(content, np.uint8)
        return len(content)


def file_state(status: os.stat_result) -> FileState:
    """What is another where a file is another, or was written to."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


class FileMap(mmap.mmap):
    """A mapped file that knows which file it is."""

    file: OpenedFile


def map_opened(file: OpenedFile) -> memoryview:
    """A file's content without reading it: pages come in when they are touched."""
    if file.size == 0:
        return memoryview(b"")
    more: dict[str, Any] = {"trackfd": False} if sys.version_info >= (3, 13) else {}
    try:
        mapped = FileMap(file.descriptor, file.size, access=mmap.ACCESS_READ, **more)
    except (OSError, ValueError, MemoryError) as error:
        file.require_unchanged()
        raise OutOfMemoryError(
            f"'{file.path}' of {file.size} bytes cannot be mapped: {error}",
            hint="allow the process more address space (ulimit -v)",
        ) from None
    mapped.file = file
    return memoryview(mapped)


class FilePart:
    """Bytes of a file, read when they are wanted and forgotten when nobody uses them any more."""

    __slots__ = ("_file", "_kept", "_length", "_seen", "_start")

    def __init__(self, file: OpenedFile, start: int, length: int) -> None:
        self._file, self._start, self._length = file, start, length
        self._seen: weakref.ref[NDArray[np.uint8]] | None = None
        self._kept: NDArray[np.uint8] | None = None

    def __len__(self) -> int:
        return self._length

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FilePart):
            return NotImplemented
        return self is other or self.read() == other.read()

    def __hash__(self) -> int:
        return hash((self._file.path, self._start, self._length))

    def read(self) -> memoryview:
        """The bytes, in memory of our own."""
        held = self._kept if self._seen is None else self._seen()
        if held is None:
            held = self._file.read(self._start, self._length)
            self._seen = weakref.ref(held)
        return held.data

    def keep(self) -> None:
        """Read now, and never again."""
        held = self.read().obj
        assert isinstance(held, np.ndarray)
        self._kept = held


Stored = Buffer | FilePart
"""Bytes in memory, in a mapped file, or to be read from a file."""


def content_of(stored: Stored) -> Buffer:
    """The bytes; an error where they lie in a file that has changed."""
    if isinstance(stored, FilePart):
        return stored.read()
    file = file_of(stored)
    if file is not None:
        file.require_unchanged()
    return stored


def file_of(stored: Stored) -> OpenedFile | None:
    """The mapped file in which bytes lie, if they do."""
    holder = stored.obj if isinstance(stored, memoryview) else None
    return holder.file if isinstance(holder, FileMap) else None


def as_part(stored: Stored) -> Stored:
    """Bytes in a mapped file as a part to read; what is in memory stays as it is."""
    file = file_of(stored)
    if file is None or isinstance(stored, FilePart | bytes) or not len(stored):
        return stored
    first = np.frombuffer(stored.obj, np.uint8, 1).ctypes.data  # type: ignore[call-overload]
    start = np.frombuffer(stored, np.uint8).ctypes.data - first
    return FilePart(file, start, len(stored))
