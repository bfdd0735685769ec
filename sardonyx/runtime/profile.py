"""What ran when: recorded value by value, written as a Chrome trace."""

import json
import os
import threading
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from sardonyx.format.files import replacing
from sardonyx.graph import Value

Recorder = Callable[[Value, Any], None]


class Profile:
    """The events of a session's runs; safe to record from several threads."""

    def __init__(self) -> None:
        self.start = time.perf_counter_ns()
        self._events: list[dict[str, Any]] = []

    def recorder(self) -> Recorder:
        """What one run tells of each value as it is made: the time since the one before it."""
        last = time.perf_counter_ns()

        def record(value: Value, item: Any) -> None:
            nonlocal last
            now = time.perf_counter_ns()
            node = value.producer
            if node is not None and value is node.outputs[0]:
                self._events.append(
                    {
                        "cat": "Node",
                        "pid": os.getpid(),
                        "tid": threading.get_ident(),
                        "dur": (now - last) / 1e3,
                        "ts": (last - self.start) / 1e3,
                        "ph": "X",
                        "name": f"{node.name or value.name}_kernel_time",
                        "args": {"op_name": node.op_type, "output": value.name},
                    }
                )
            last = time.perf_counter_ns()

        return record

    def write(self, prefix: str) -> str:
        """Write the trace to `<prefix><time>.json`, and return that name."""
        path = Path(f"{prefix}{datetime.now():%Y-%m-%d_%H-%M-%S}.json")
        with replacing(path) as staged:
            staged.write_text(json.dumps(self._events))
        return str(path)
