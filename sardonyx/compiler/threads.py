"""Threads that wait inside native code for a share of a kernel's tasks."""

import ctypes
import os
import threading
import weakref

import numpy as np

from sardonyx.compiler.emit_engine import Engine
from sardonyx.compiler.emit_pool import POOL_BYTES, SHARES

_WORKER = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
_HALT = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def available_threads() -> int:
    """How many threads this process may run at once; one where threads cannot wait natively."""
    return len(os.sched_getaffinity(0)) if SHARES else 1


class Pool:
    """Python threads parked in a program's machine code; they end with it."""

    def __init__(self, engine: Engine, threads: int) -> None:
        self.threads = threads if SHARES else 1
        self._record = np.zeros(POOL_BYTES + 64, np.uint8)
        self.address = self._record.ctypes.data + (-self._record.ctypes.data % 64)
        worker = _WORKER(engine.address("worker"))
        started = [
            threading.Thread(
                target=worker, args=(self.address, number), daemon=True, name=f"sardonyx-{number}"
            )
            for number in range(1, self.threads)
        ]
        for thread in started:
            thread.start()
        keep = (engine, self._record)
        self.close = weakref.finalize(
            self, _stop, _HALT(engine.address("halt")), self.address, started, keep
        )


def _stop(halt: object, address: int, threads: list[threading.Thread], keep: object) -> None:
    if threads:
        halt(address)  # type: ignore[operator]
    for thread in threads:
        thread.join()
