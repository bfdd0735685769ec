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

Work = tuple[int, int, bool]
"""Elementary operations: about so many, at most so many, and whether that depends on contents."""
QUICK_WORK = 1 << 24
"""Operations, at most, of what never takes long."""
LONG_WORK = 1 << 36
"""Operations of what always takes long."""
VARYING_WORK = 1 << 40
"""Operations, at most, of what may take long with other contents, though it did not before."""
LONG_NANOSECONDS = 20_000_000
"""What nobody should wait for who wants to stop."""


class Pace:
    """Whether a native call takes long: as its work says, else as it did the last time."""

    __slots__ = ("_always", "_long")

    def __init__(self, *, always: bool) -> None:
        self._always = always
        self._long = True

    def apart(self) -> bool:
        """Whether a call belongs into a thread of its own: a long one, in the main thread."""
        return self._long and threading.current_thread() is threading.main_thread()

    def call(self, native: Callable[[int], int], record: int) -> int:
        """What `native` returns for a record."""
        begin = perf_counter_ns()
        result = native(record)
        self._long = self._always or perf_counter_ns() - begin > LONG_NANOSECONDS
        return result

    def call_apart(self, native: Callable[[int], int], record: int, stop: Stop, used: Any) -> int:
        """The same in another thread; `used` is kept until it is done.

        Where a handler of a signal raises meanwhile, `stop` is set and the call's end awaited.
        """
        begin = perf_counter_ns()
        result = _call_apart(native, record, stop, used)
        self._long = self._always or perf_counter_ns() - begin > LONG_NANOSECONDS
        return result


def pace_of(work: Work) -> Pace | None:
    """How calls of so much work go; None where they never take long."""
    about, most, varies = work
    if max(about, most) < QUICK_WORK:
        return None
    return Pace(always=about >= LONG_WORK or (varies and most >= VARYING_WORK))


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
