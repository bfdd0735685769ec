"""The verbs that run a model: run, bench, profile, compare."""

import json
import re
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

import sardonyx as sx
from sardonyx.cli.output import (
    counting,
    milliseconds,
    print_json,
    print_line,
    print_table,
    waiting,
    warn,
)
from sardonyx.cli.session import Request, open_peer
from sardonyx.errors import InputError
from sardonyx.format.files import replacing
from sardonyx.format.save import to_bytes
from sardonyx.ops.catalog import standard
from sardonyx.runtime.compare import Comparison
from sardonyx.runtime.timing import time_calls

_SHOWN = 1000
"""JSON holds the elements of values up to this many."""


def run_model(
    request: Request, output: Path | None, intermediates: str | None, *, as_json: bool
) -> None:
    """Load, check and run a model, and show it all."""
    pattern = _pattern(intermediates)
    standard()
    start = time.perf_counter()
    model = sx.load(request.path)
    loaded = time.perf_counter()
    problems = [item for item in sx.find_problems(model) if item.severity == "error"]
    checked = time.perf_counter()
    if problems:
        warn(f"breaks {len(problems)} rules: see `sardonyx check {request.path}`; running anyway")
    feeds = request.feeds(model)
    session = request.session(model)
    ready = time.perf_counter()
    with waiting(f"running {request.path.name}"), request.blaming_sizes(model):
        results, inner = session.run(None, feeds, intermediates=pattern)
    done = time.perf_counter()
    names = [argument.name for argument in session.get_outputs()]
    outputs = dict(zip(names, results, strict=True))
    if output is not None:
        _write_arrays(output, outputs | inner)
    seconds = {"load": loaded - start, "check": checked - loaded, "run": done - ready}
    values = {"inputs": feeds, "outputs": outputs, "intermediates": inner}
    if as_json:
        said = {"file": str(request.path), "providers": session.get_providers()}
        described = {title: _described(items) for title, items in values.items()}
        print_json(said | {"seconds": seconds} | described)
        return
    print_line(f"{request.path}  opset {model.opset}, {_count_nodes(model)} nodes")
    print_line(
        f"loaded in {milliseconds(seconds['load'])}, checked in {milliseconds(seconds['check'])}, "
        f"ran in {milliseconds(seconds['run'])} by {session.get_providers()[0]}"
    )
    for title, items in values.items():
        if items:
            print_line()
            print_table(title, ("name", "type", "values"), list(_value_rows(items)))
    if output is not None:
        print_line(f"wrote {output}")


def _pattern(text: str | None) -> str:
    if text is None:
        return "(?!)"
    try:
        re.compile(text)
    except re.error as error:
        raise InputError(f"'{text}' is not a regular expression: {error}") from None
    return text


def _count_nodes(model: sx.Model) -> int:
    return 0 if model.graph is None else sum(1 for _ in model.graph.all_nodes())


def _write_arrays(path: Path, values: dict[str, Any]) -> None:
    arrays: dict[str, Any] = {}
    for name, value in values.items():
        array = np.asarray(value)
        if array.dtype == object:
            try:
                array = array.astype(np.str_)
            except (TypeError, ValueError):
                raise InputError(
                    f"'{name}' is not a tensor, which .npz cannot hold", hint="use --json"
                ) from None
        arrays[name] = array
    with replacing(path) as staged, open(staged, "wb") as file:
        np.savez(file, **arrays)


def _value_rows(values: dict[str, Any]) -> Iterable[tuple[str, str, str]]:
    for name, value in values.items():
        if isinstance(value, np.ndarray | np.generic):
            array = np.asarray(value)
            shown = array.astype(np.float32) if array.dtype.kind == "V" else array
            inside = np.array2string(
                shown, precision=4, threshold=12, edgeitems=3, suppress_small=True
            )
            yield name, f"{array.dtype}{list(array.shape)}", " ".join(inside.split())
        else:
            yield name, type(value).__name__, str(value)[:200]


def _described(values: dict[str, Any]) -> dict[str, Any]:
    said = {}
    for name, value in values.items():
        if isinstance(value, np.ndarray | np.generic):
            array = np.asarray(value)
            said[name] = {"type": str(array.dtype), "shape": list(array.shape)}
            if array.size <= _SHOWN:
                plain = array.astype(np.float32) if array.dtype.kind == "V" else array
                said[name]["values"] = plain.tolist()
        else:
            said[name] = {"type": type(value).__name__, "values": value}
    return said


def bench_model(
    request: Request, runs: int, warmups: int, against: str | None, *, as_json: bool
) -> None:
    """Time a model, and another runtime in turns with it."""
    model = sx.load(request.path)
    feeds = request.feeds(model)
    session = request.session(model)
    calls = {"sardonyx": lambda: session.run(None, feeds)}
    if against is not None:
        other = open_peer(against)(to_bytes(model))
        calls[against] = lambda: other.run(None, feeds)
    with counting("running", runs + warmups) as advance, request.blaming_sizes(model):
        timings = time_calls(calls, runs, warmups, advance)
    if as_json:
        figures = {
            name: {"best": item.best, "median": item.median, "seconds": item.seconds}
            for name, item in timings.items()
        }
        said = {"file": str(request.path), "providers": session.get_providers(), "runs": runs}
        print_json(said | {"timings": figures})
        return
    rows = [
        (name, milliseconds(item.best), milliseconds(item.median), f"{1 / item.median:,.1f}")
        for name, item in timings.items()
    ]
    title = f"{request.path}: {runs} runs by {session.get_providers()[0]}"
    print_table(title, ("runtime", "best", "median", "runs/s"), rows, "best median runs/s")


def profile_model(
    request: Request, runs: int, top: int, trace: Path | None, *, as_json: bool
) -> None:
    """Show where the time goes."""
    content = _record(request, runs)
    if trace is not None:
        with replacing(trace) as staged:
            staged.write_text(content)
    events = [event for event in json.loads(content) if event.get("cat") == "Node"]
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


def _record(request: Request, runs: int) -> str:
    """Run a model with profiling on; returns the trace."""
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
        return Path(session.end_profiling()).read_text()


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


def compare_model(
    request: Request, against: str, rtol: float, atol: float, *, as_json: bool
) -> bool:
    """Compare with another runtime, or another model; True where all outputs agree."""
    second = sx.load(against) if Path(against).is_file() else open_peer(against)
    model = sx.load(request.path)
    feeds = request.feeds(model)
    with waiting("comparing"), request.blaming_sizes(model):
        result = sx.bisect(model, second, feeds, rtol=rtol, atol=atol)
    if as_json:
        print_json({"file": str(request.path), "agrees": result.agrees} | asdict(result))
    else:
        _print_comparison(request.path, against, result)
    return result.agrees


def _print_comparison(path: Path, against: str, result: Comparison) -> None:
    rows = [
        (
            item.name, f"{item.largest:.3g}", f"{item.relative:.3g}",
            "yes" if item.agrees else "NO", item.remark,
        )
        for item in result.outputs
    ]  # fmt: skip
    columns = ("output", "largest difference", "relative", "agrees", "remark")
    print_table(f"{path}: against {against}", columns, rows, "largest difference relative")
    if result.first_node and result.first_value is not None:
        first = result.first_value
        detail = first.remark or f"by {first.largest:.3g}"
        print_line(f"first difference: {result.first_node}, in '{first.name}', {detail}")
    elif not result.agrees:
        print_line("no node of the main graph differs by itself; look into subgraphs or functions")
