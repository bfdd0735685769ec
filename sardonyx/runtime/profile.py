"""What ran when: as a table for each kernel and node, and as a Chrome trace."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from sardonyx.format.files import replacing
from sardonyx.runtime.watching import Event, trace_event


@dataclass(frozen=True, slots=True)
class Computed:
    """What a kernel computes: nodes, and their operators."""

    nodes: tuple[str, ...]
    operators: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """A kernel or a node: how often it ran, and how long in all."""

    name: str
    what: str
    calls: int
    seconds: float


@dataclass(frozen=True, slots=True)
class RunProfile:
    """The time of each kernel and each node over some runs; `str()` is a table.

    >>> import numpy as np
    >>> import sardonyx as sx
    >>> session = sx.InferenceSession("examples/digits.onnx")
    >>> profile = session.profile({"pixels": np.zeros((1, 64), np.float32)})
    >>> len(profile.nodes), profile.runs, "the whole run" in str(profile)
    (4, 5, True)
    """

    kernels: tuple[Row, ...]
    """The longest first. A node without a kernel of its own stands for itself."""
    nodes: tuple[Row, ...]
    """In the order of the graph. Nodes that share a kernel all have the time of that kernel."""
    runs: int
    seconds: float
    """The time of all runs."""
    events: tuple[dict[str, Any], ...]

    def trace(self) -> str:
        """The events in the JSON that chrome://tracing and Perfetto open."""
        return json.dumps(self.events)

    def save(self, path: str | Path) -> None:
        """Write the trace to a file."""
        with replacing(Path(path)) as staged:
            staged.write_text(self.trace())

    def __str__(self) -> str:
        whole = max(self.seconds, 1e-12)
        lines = [f"{'kernel':<24}{'calls':>7}{'ms a run':>12}{'share':>8}  computes"]
        for row in self.kernels:
            each = row.seconds / self.runs * 1e3
            share = row.seconds / whole * 100
            lines.append(f"{row.name:<24}{row.calls:>7}{each:>12.4f}{share:>7.1f}%  {row.what}")
        rest = self.seconds - sum(row.seconds for row in self.kernels)
        for name, seconds in (("between kernels", rest), ("the whole run", self.seconds)):
            each, share = seconds / self.runs * 1e3, seconds / whole * 100
            lines.append(f"{name:<24}{'':>7}{each:>12.4f}{share:>7.1f}%")
        return "\n".join(lines)


def make_profile(
    runs: Sequence[Sequence[Event]], spans: Sequence[tuple[int, int]],
    computed: Mapping[str, Computed], order: Sequence[tuple[str, str]],
) -> RunProfile:  # fmt: skip
    """A profile of runs: their events, when each began and ended, what kernels compute, and for
    each node of the graph its name and its kernel's."""
    totals: dict[str, tuple[int, float]] = {}
    texts = {name: ", ".join(item.nodes) for name, item in computed.items()}
    for event in (event for events in runs for event in events):
        name = event.node.where() if event.node is not None else event.kernel
        texts.setdefault(name, "reference")
        calls, seconds = totals.get(name, (0, 0.0))
        totals[name] = (calls + 1, seconds + (event.end - event.start) / 1e9)
    rows = [Row(name, texts[name], *total) for name, total in totals.items()]
    nodes = []
    for node, kernel in order:
        found = totals.get(kernel) or totals.get(node) or (0, 0.0)
        nodes.append(Row(node, kernel, *found))
    return RunProfile(
        tuple(sorted(rows, key=lambda row: -row.seconds)), tuple(nodes), len(runs),
        sum(end - start for start, end in spans) / 1e9,
        tuple(_trace(runs, spans, computed)),
    )  # fmt: skip


def _trace(
    runs: Sequence[Sequence[Event]], spans: Sequence[tuple[int, int]],
    computed: Mapping[str, Computed],
) -> list[dict[str, Any]]:  # fmt: skip
    first = spans[0][0] if spans else 0
    made = []
    for events, (start, end) in zip(runs, spans, strict=True):
        thread = events[0].thread if events else 0
        made.append(
            trace_event("model_run", start - first, end - first, thread, category="Session")
        )
        made += [event_of(event, first, computed) for event in events]
    return made


def event_of(event: Event, first: int, computed: Mapping[str, Computed]) -> dict[str, Any]:
    """An event of a trace that began at `first`."""
    if event.node is not None:
        output = event.node.outputs[0].name if event.node.outputs else ""
        name, more = event.node.name or output, {"op_name": event.node.op_type, "output": output}
    else:
        parts = computed.get(event.kernel, Computed((), ()))
        name = event.kernel
        more = {"op_name": "+".join(parts.operators), "output": name}
        more["nodes"] = ", ".join(parts.nodes)
    return trace_event(
        f"{name}_kernel_time", event.start - first, event.end - first, event.thread, **more
    )


class Recording:
    """What a session with `enable_profiling` remembers; safe to add to from several threads."""

    def __init__(self, start: int) -> None:
        self.start = start
        self._events: list[dict[str, Any]] = []

    def add(self, events: Sequence[Event], computed: Mapping[str, Computed]) -> None:
        """Remember what a run did."""
        self._events.extend(event_of(event, self.start, computed) for event in events)

    def write(self, prefix: str) -> str:
        """Write the trace to `<prefix><time>.json`, and return that name."""
        path = Path(f"{prefix}{datetime.now():%Y-%m-%d_%H-%M-%S}.json")
        with replacing(path) as staged:
            staged.write_text(json.dumps(self._events))
        return str(path)
