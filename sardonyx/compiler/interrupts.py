"""Native calls that take long, in a way that lets signals through.

Python runs the handlers of signals in the main thread, between two of its own instructions, so that
Ctrl-C waits for a native call there. A call that takes long goes to a thread of its own instead,
and the main thread waits in a way that handlers may end by raising.
"""

import threading
from _thread import allocate_lock, start_new_thread
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

from sardonyx.compiler.stop import Stop

QUICK_WORK = 1 << 24
"""Elementary operations up to which no run takes long."""
LONG_WORK = 1 << 32
"""Elementary operations of which every run takes long, or may do so with other contents."""
LONG_NANOSECONDS = 20_000_000
"""What nobody should wait for who wants to stop."""


class Pace:
    """Whether a native call takes long: as its work says, else as it did the last time."""

    __slots__ = ("_long", "_work")

    def __init__(self, work: int) -> None:
        self._work = work
        self._long = True

    def call(self, native: Callable[[int], int], record: int, stop: Stop, used: Any) -> int:
        """What `native` returns for a record; `used` is kept until it does.

        Where a handler of a signal raises meanwhile, `stop` is set and the call's end awaited.
        """
        begin = perf_counter_ns()
        if self._long and threading.current_thread() is threading.main_thread():
            result = _call_apart(native, record, stop, used)
        else:
            result = native(record)
        self._long = self._work >= LONG_WORK or perf_counter_ns() - begin > LONG_NANOSECONDS
        return result


def _call_apart(native: Callable[[int], int], record: int, stop: Stop, used: Any) -> int:
    """Call in another thread; memory in use stays alive there, whatever becomes of this one."""
    results: list[int] = []
    done = allocate_lock()
    done.acquire()

    def work(used: Any) -> None:
        try:
            results.append(native(record))
        finally:
            done.release()

    try:
        start_new_thread(work, (used,))
    except RuntimeError:  # there is no further thread to be had
        return native(record)
    try:
        done.acquire()
    except BaseException:
        stop.set()
        while not results:
            done.acquire(timeout=1)
        raise
    return results[0]
