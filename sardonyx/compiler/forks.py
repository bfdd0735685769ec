"""What must not be going on, or must not be inherited, when the process forks.

A child has only the thread that forked. Whatever another one held at that moment would stay held.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

Lock = AbstractContextManager[Any]


class Gate:
    """Work that a fork waits for; new work waits until the fork is done."""

    def __init__(self) -> None:
        self._change = threading.Condition()
        self._inside = 0
        self._locks: list[Lock] = []
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=self._close, after_in_parent=self._open, after_in_child=self._open
            )

    def take(self, lock: Lock) -> None:
        """Have a fork hold this lock too; work may wait for it, and so it is taken last."""
        self._locks.append(lock)

    @contextmanager
    def held_off(self) -> Iterator[None]:
        """While this lasts no other thread can fork; the thread itself must not."""
        with self._change:
            self._inside += 1
        try:
            yield
        finally:
            with self._change:
                self._inside -= 1
                self._change.notify_all()

    def _close(self) -> None:
        self._change.acquire()
        while self._inside:
            self._change.wait()
        for lock in self._locks:
            lock.__enter__()

    def _open(self) -> None:
        for lock in self._locks:
            lock.__exit__(None, None, None)
        self._change.release()


class OwnFiles:
    """Open files that a child must not have, as they keep others out while they are open."""

    def __init__(self) -> None:
        self._descriptors: set[int] = set()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._close)

    def add(self, descriptor: int) -> None:
        """From now on a child closes it."""
        self._descriptors.add(descriptor)

    def close(self, descriptor: int) -> None:
        """Close it here."""
        self._descriptors.discard(descriptor)
        os.close(descriptor)

    def _close(self) -> None:
        while self._descriptors:
            os.close(self._descriptors.pop())


FORKS = Gate()
"""Held off by whatever LLVM does."""
HELD = OwnFiles()
"""Locks of files."""
