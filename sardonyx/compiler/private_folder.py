"""A folder for what only this user may have written, since it will be executed."""

import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from sardonyx.compiler.forks import FORKS, HELD

try:
    import fcntl
except ImportError:  # pragma: no cover - systems without it do not wait for each other
    fcntl = None  # type: ignore[assignment]

BEAT = 0.5
"""Seconds between two signs of life."""
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_NO_LINKS = getattr(os, "O_NOFOLLOW", 0)


class PrivateFolder:
    """A folder that is this user's alone; links are not followed."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def problem(self) -> str:
        """Why the folder cannot be used, or nothing; it is made where it is missing."""
        try:
            found = self._status()
        except OSError as error:
            return error.strerror or str(error)
        if not stat.S_ISDIR(found.st_mode):
            return "it is not a folder"
        return _distrust(found) or ("" if os.access(self.path, os.W_OK) else "it is read-only")

    def _status(self) -> os.stat_result:
        try:
            return os.lstat(self.path)
        except FileNotFoundError:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            return os.lstat(self.path)

    def open(self, name: str) -> BinaryIO | None:
        """A file to read; None where there is none, or others could have written it."""
        try:
            descriptor = os.open(self.path / name, os.O_RDONLY | _NO_LINKS)
        except OSError:
            return None
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or _distrust(found):
            os.close(descriptor)
            return None
        return os.fdopen(descriptor, "rb")

    @contextmanager
    def replacing(self, name: str) -> Iterator[BinaryIO]:
        """A new file that takes its place when everything is written."""
        staged = self.path / f".{name}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINKS
        try:
            with os.fdopen(os.open(staged, flags, 0o600), "wb") as file:
                yield file
            os.replace(staged, self.path / name)
        finally:
            staged.unlink(missing_ok=True)

    def lock(self, name: str) -> int | None:
        """A descriptor that keeps others out until `HELD` closes it; None while another holds one.

        The lock of a process that died is free.
        """
        flags = os.O_RDWR | os.O_CREAT | _NO_LINKS
        with FORKS.held_off():
            descriptor = os.open(self.path / f"{name}.lock", flags, 0o600)
            try:
                if fcntl is not None:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                return None
            HELD.add(descriptor)
            return descriptor

    def last_sign(self, name: str) -> int:
        """A number that changes while the process that holds a lock is alive and not stopped."""
        return os.stat(self.path / f"{name}.lock").st_mtime_ns


@contextmanager
def beating(lock: int) -> Iterator[None]:
    """Give signs of life, by the times of a lock's file, to those who wait for it."""
    done = threading.Event()

    def beat() -> None:
        while not done.wait(BEAT):
            os.utime(lock)

    if os.utime not in os.supports_fd:
        yield
        return
    os.utime(lock)
    beats = threading.Thread(target=beat, daemon=True)
    try:
        beats.start()
    except RuntimeError:  # there is no thread to be had: others do not wait long
        yield
        return
    try:
        yield
    finally:
        done.set()
        beats.join()


def _distrust(found: os.stat_result) -> str:
    """Why others could have written something, or nothing."""
    if not hasattr(os, "geteuid"):
        return ""
    if found.st_uid != os.geteuid():
        return "it belongs to another user"
    return "others may write to it" if found.st_mode & _OTHERS_WRITE else ""
