"""The verb `run`."""

import re
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

import sardonyx as sx
from sardonyx.cli.output import (
    complain,
    milliseconds,
    print_json,
    print_line,
    print_table,
    waiting,
)
from sardonyx.cli.session import Request
from sardonyx.errors import InputError
from sardonyx.format.files import replacing

_SHOWN = 1000
"""JSON holds the elements of values up to this many."""
_LISTED = 8
"""Elements of a value that people see."""


def run_model(
    request: Request, output: Path | None, intermediates: str | None, *, as_json: bool
) -> None:
    """Load, check and run a model, and show it all."""
    pattern = _pattern(intermediates)
    start = time.perf_counter()
    model = sx.load(request.path)
    loaded = time.perf_counter()
    problems = [item for item in sx.find_problems(model) if item.severity == "error"]
    checked = time.perf_counter()
    if problems:
        rules = f"breaks {len(problems)} rules: see `sardonyx check {request.path}`"
        complain("warning", f"{rules}; running anyway")
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
            columns = ("name", "type", "range", "values")
            print_table(title, columns, list(_value_rows(items)))
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


def _value_rows(values: dict[str, Any]) -> Iterable[tuple[str, str, str, str]]:
    for name, value in values.items():
        if isinstance(value, np.ndarray | np.generic):
            array = np.asarray(value)
            shape = ",".join(map(str, array.shape))
            yield name, f"{array.dtype}[{shape}]", _range(array), _beginning(array)
        else:
            yield name, type(value).__name__, "", str(value)[:200]


def _range(array: Any) -> str:
    """The smallest and the largest element, and how many are no numbers."""
    if array.dtype.kind not in "fiuV" or array.size < 2:
        return ""
    plain = array.astype(np.float32) if array.dtype.kind == "V" else array
    finite = plain[np.isfinite(plain)]
    missing = plain.size - finite.size
    text = f"{_number(finite.min())} .. {_number(finite.max())}" if finite.size else "-"
    return f"{text}, {missing} not finite" if missing else text


def _beginning(array: Any) -> str:
    """The first elements, in one line."""
    plain = array.astype(np.float32) if array.dtype.kind == "V" else array
    first = plain.reshape(-1)[:_LISTED]
    return " ".join(map(_number, first.tolist())) + (" …" if plain.size > _LISTED else "")


def _number(item: Any) -> str:
    return f"{item:.4g}" if isinstance(item, float | np.floating) else str(item)


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
