"""What must not be going on, or must not be inherited, when the process forks.

A child has only the thread that forked. Whatever another one held at that moment would stay held.
"""

import _imp
import concurrent.futures.thread  # noqa: F401 - it and logging have hooks that must run after ours
import importlib._bootstrap
import logging  # noqa: F401
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

Lock = AbstractContextManager[Any]
LONGEST_IMPORT = 120.0
"""Seconds that a fork waits for imports, which might themselves wait for the thread that forks."""
PAUSE = 0.002
"""Seconds between two looks at them."""


class Imports:
    """Modules that other threads are importing: a child would wait for them without end."""

    def __init__(self) -> None:
        self._locks = getattr(importlib._bootstrap, "_module_locks", {})

    def hold(self) -> bool:
        """Keep other threads from importing, unless one does so now; whether it is so.

        One that forks while it imports does not wait, since others may wait for it.
        """
        _imp.acquire_lock()
        importing, me = self._importing(), threading.get_ident()
        if importing and me not in importing:
            _imp.release_lock()
            return False
        return True

    def release(self) -> None:
        """Let others import again."""
        _imp.release_lock()

    def by_others(self, thread: int) -> bool:
        """Whether a thread other than this one imports."""
        _imp.acquire_lock()
        try:
            return bool(self._importing() - {thread})
        finally:
            _imp.release_lock()

    def _importing(self) -> set[int]:
        """The threads that import, 0 for one that is about to; call it while none can begin."""
        locks = [lock for reference in self._locks.values() if (lock := reference()) is not None]
        found = {lock.owner for lock in locks if lock.owner is not None}
        return found | {0 for lock in locks if _is_held(lock.lock)}


def _is_held(lock: Any) -> bool:
    """Whether a lock is taken, for kinds that do not tell."""
    if not lock.acquire(False):
        return True
    lock.release()
    return False


class Gate:
    """Work that a fork waits for; new work waits until the fork is done.

    A fork waits for imports of other threads too, which may be part of work or need some.
    """

    def __init__(self) -> None:
        self._change = threading.Condition()
        self._inside = 0
        self._closing = 0
        self._forks = 0
        """The thread that is about to fork."""
        self._mine = threading.local()
        self._imports = Imports()
        self._locks: list[Lock] = []
        self._held: list[Callable[[], Any]] = []
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=self._close, after_in_parent=self._open, after_in_child=self._open_child
            )

    def take(self, lock: Lock) -> None:
        """Have a fork hold this lock too; work may wait for it, and so it is taken last."""
        self._locks.append(lock)

    @contextmanager
    def held_off(self) -> Iterator[None]:
        """While this lasts no other thread can fork; the thread itself must not."""
        deeper = getattr(self._mine, "depth", 0)
        with self._change:
            while self._closing and not deeper and not self._imports.by_others(self._forks):
                self._change.wait(PAUSE)
            self._inside += 1
        self._mine.depth = deeper + 1
        try:
            yield
        finally:
            self._mine.depth = deeper
            with self._change:
                self._inside -= 1
                self._change.notify_all()

    def _close(self) -> None:
        self._change.acquire()
        self._closing += 1
        self._forks = threading.get_ident()
        end = time.monotonic() + LONGEST_IMPORT
        while True:
            while self._inside:
                self._change.wait()
            if self._imports.hold():
                self._held = [self._imports.release]
                break
            if time.monotonic() > end:
                self._held = []
                break
            self._change.wait(PAUSE)
        for lock in self._locks:
            lock.__enter__()

    def _open(self) -> None:
        for lock in self._locks:
            lock.__exit__(None, None, None)
        for release in self._held:
            release()
        self._closing -= 1
        self._change.notify_all()
        self._change.release()

    def _open_child(self) -> None:
        """The child's only thread: others that were about to fork are not there."""
        self._closing = 1
        self._open()


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
