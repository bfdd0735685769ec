"""Looking on while a model runs: to take the time of each kernel and node, and to stop a run."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from sardonyx.compiler.stop import Stop
from sardonyx.compiler.watch import Checkpoint
from sardonyx.errors import CancelledError
from sardonyx.graph import Node, Value


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that ran: a kernel by its name, or a node by itself."""

    kernel: str
    """The kernel's name; empty where the node's reference ran."""
    node: Node | None
    start: int
    end: int
    thread: int


def require_going(stop: Stop) -> None:
    """Raise where a run is to stop."""
    if stop.is_set:
        raise CancelledError(
            "the run was terminated by its RunOptions",
            hint="set terminate = False before these options are used again",
        )


class Watcher:
    """Stops a run once `stop` is set, and remembers what ran when, where that is wanted.

    One watcher looks at one run.
    """

    def __init__(self, stop: Stop | None = None, *, times: bool = False) -> None:
        self.stop = stop = Stop() if stop is None else stop
        self.one_by_one = times
        self.require_going = partial(require_going, stop)
        """Raises where the run is to stop."""
        self._last = time.perf_counter_ns()
        self.checkpoint = Checkpoint(self.require_going, stop)
        self.events: list[Event] = []

    @contextmanager
    def during(self, item: str | Node) -> Iterator[None]:
        """Around a kernel, or around a node's reference."""
        self.require_going()
        start = time.perf_counter_ns()
        yield
        if self.one_by_one:
            self._add(item, start, time.perf_counter_ns())

    def observe(self, value: Value, item: Any) -> None:
        """Told of every value: a node ran since the value before it."""
        now = time.perf_counter_ns()
        node = value.producer
        if self.one_by_one and node is not None and value is node.outputs[0]:
            self._add(node, self._last, now)
        self.require_going()
        self._last = time.perf_counter_ns()

    def _add(self, item: str | Node, start: int, end: int) -> None:
        kernel, node = (item, None) if isinstance(item, str) else ("", item)
        self.events.append(Event(kernel, node, start, end, threading.get_ident()))


def trace_event(name: str, start: int, end: int, thread: int, **more: Any) -> dict[str, Any]:
    """An event as Chrome's trace viewer and onnxruntime's tools read it; times in microseconds."""
    return {
        "cat": more.pop("category", "Node"),
        "pid": os.getpid(),
        "tid": thread,
        "dur": (end - start) / 1e3,
        "ts": start / 1e3,
        "ph": "X",
        "name": name,
        "args": more,
    }
