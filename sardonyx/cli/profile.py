"""The verb `profile`."""

import json
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import sardonyx as sx
from sardonyx.cli.output import counting, print_json, print_line, print_table
from sardonyx.cli.session import Request
from sardonyx.format.files import replacing


def profile_model(
    request: Request, runs: int, top: int, trace: Path | None, *, as_json: bool
) -> None:
    """Show where the time goes."""
    events = record_events(request, runs, trace)
    operators = _grouped(events, lambda event: event["args"]["op_name"])
    nodes = _grouped(events, lambda event: (event["args"]["output"], event["args"]["op_name"]))
    total = sum(event["dur"] for event in events)
    if as_json:
        said: dict[str, Any] = {"file": str(request.path), "runs": runs}
        said["milliseconds"] = total / runs / 1e3
        said["operators"] = [
            {"operator": name, "calls": count // runs, "milliseconds": spent / runs / 1e3}
            for name, (count, spent) in operators
        ]
        said["nodes"] = [
            {"output": name, "operator": kind, "milliseconds": spent / runs / 1e3}
            for (name, kind), (_, spent) in nodes[:top]
        ]
        print_json(said)
        return
    rows = [
        (name, str(count // runs), f"{spent / runs / 1e3:.3f}", _share(spent, total))
        for name, (count, spent) in operators
    ]
    title = f"{request.path}: {total / runs / 1e3:.2f} ms in nodes{_mean(runs)}"
    print_table(title, ("operator", "calls", "ms", "share"), rows, "calls ms share")
    print_line()
    slowest = [
        (name, kind, f"{spent / runs / 1e3:.3f}", _share(spent, total))
        for (name, kind), (_, spent) in nodes[:top]
    ]
    title = f"slowest nodes ({len(slowest)} of {len(nodes)})"
    print_table(title, ("output", "operator", "ms", "share"), slowest, "ms share")
    if trace is not None:
        print_line(f"wrote {trace}")


def record_events(request: Request, runs: int, trace: Path | None = None) -> list[dict[str, Any]]:
    """Run a model with profiling on: what each node took, as events of a trace."""
    model = sx.load(request.path)
    feeds = request.feeds(model)
    with tempfile.TemporaryDirectory() as folder:
        options = sx.SessionOptions()
        options.enable_profiling = True
        options.profile_file_prefix = f"{folder}/trace_"
        session = request.session(model, options)
        with counting("running", runs) as advance, request.blaming_sizes(model):
            for _ in range(runs):
                session.run(None, feeds)
                advance()
        content = Path(session.end_profiling()).read_text()
    if trace is not None:
        with replacing(trace) as staged:
            staged.write_text(content)
    return [event for event in json.loads(content) if event.get("cat") == "Node"]


def _grouped(events: list[dict[str, Any]], key: Any) -> list[tuple[Any, tuple[int, float]]]:
    """Events by key, with how many there are and microseconds together, the slowest first."""
    groups: dict[Any, list[float]] = defaultdict(list)
    for event in events:
        groups[key(event)].append(event["dur"])
    found = [(name, (len(times), sum(times))) for name, times in groups.items()]
    return sorted(found, key=lambda item: -item[1][1])


def _mean(runs: int) -> str:
    return f", mean of {runs} runs" if runs > 1 else ""


def _share(part: float, total: float) -> str:
    return f"{part / total:.1%}" if total else "-"
