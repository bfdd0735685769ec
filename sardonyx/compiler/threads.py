"""The process's workers: threads that wait inside native code and share kernels' tasks.

There is one pool for a process. A program has a team: its callers, and as many of the pool's
workers as it may use at once. Workers are started when a run first has work for them and never run
Python; they are ended before the interpreter goes, and a child made by `fork` starts its own.
"""

import atexit
import ctypes
import os
import sys
import threading
from logging import getLogger

import numpy as np

from sardonyx.compiler.engine import Code, load_code
from sardonyx.compiler.pool_record import MOST_THREADS, POOL_BYTES, POOL_SPIN
from sardonyx.compiler.processors import SHARES, available_processors

SPIN_NANOSECONDS = 100_000
"""How long a thread looks for work before it sleeps: more than what lies between two kernels."""
_HALT = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_log = getLogger("sardonyx")


class Pool:
    """Workers, and the record through which they get work."""

    def __init__(self) -> None:
        self._memory = np.zeros(POOL_BYTES + 64, np.uint8)
        self.address = self._memory.ctypes.data + (-self._memory.ctypes.data % 64)
        self._code: Code | None = None
        self._objects = b""
        self._begin()
        if SHARES:
            os.register_at_fork(after_in_child=self._begin)
            atexit.register(self.close)

    def _begin(self) -> None:
        """As nobody works: at first, and in a child, which has none of its parent's threads."""
        self.asked = 0
        """How many workers were asked for; there are fewer where the system gives no more."""
        self._lock = threading.Lock()
        self._threads: list[ctypes.c_ulong] = []
        self._memory[:] = 0
        spin = 0 if available_processors() == 1 else SPIN_NANOSECONDS
        ctypes.c_int64.from_address(self.address + POOL_SPIN).value = spin

    @property
    def workers(self) -> int:
        """How many workers there are."""
        return len(self._threads)

    def offer(self, code: bytes) -> None:
        """Object code of the workers, which a program that was compiled before brings along."""
        self._objects = self._objects or code

    def grow(self, workers: int) -> int:
        """Have as many workers, if the system lets us; the address of `dispatch`."""
        with self._lock:
            if self._code is None:
                self._code = self._load()
            if self.asked < workers:
                self.asked = workers
                self._start(self._code.address("worker"), workers)
            return self._code.address("dispatch")

    def _load(self) -> Code:
        if not self._objects:
            from sardonyx.compiler.emit_pool import emit_pool

            self._objects = emit_pool()
        return load_code([self._objects])

    def _start(self, worker: int, workers: int) -> None:
        create, problem = ctypes.CDLL(None).pthread_create, 0
        while len(self._threads) < workers and not problem:
            thread = ctypes.c_ulong()
            start = ctypes.c_void_p(worker), ctypes.c_void_p(self.address)
            problem = create(ctypes.byref(thread), None, *start)
            self._threads += [] if problem else [thread]
        if problem:
            found = len(self._threads)
            _log.warning("%d of %d threads started: %s", found, workers, os.strerror(problem))

    def close(self) -> None:
        """End the workers for good; callers then work alone."""
        with self._lock:
            self.asked = sys.maxsize
            if self._code is not None:
                _HALT(self._code.address("halt"))(self.address)
            while self._threads:
                ctypes.CDLL(None).pthread_join(self._threads.pop(), None)


POOL = Pool()
"""This process's workers."""


class Team:
    """The threads a run may use: whoever calls it, and up to `threads - 1` workers."""

    def __init__(self, threads: int, pool: Pool = POOL) -> None:
        self.threads = max(1, min(threads, MOST_THREADS)) if SHARES else 1
        self._pool = pool
        self.dispatch = 0
        """Where the function that shares work begins, once workers were gathered."""
        self._record = np.array([0, pool.address, self.threads - 1], np.int64)
        self.address = self._record.ctypes.data

    def gather(self) -> None:
        """Have the workers there; needed before a run that cuts work into pieces."""
        if not self.dispatch or self._pool.asked < self.threads - 1:
            self.dispatch = self._record[0] = self._pool.grow(self.threads - 1)
