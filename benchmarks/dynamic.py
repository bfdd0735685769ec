"""Texts of many lengths, one call each: `python -m benchmarks.dynamic [--model bert-base]`.

The time of all calls counts, and so whatever a runtime does for a length that it has not seen.
"""

import argparse
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from benchmarks.lockstep import Contender, LostError, largest_error, read_outputs, save_feeds
from benchmarks.models import FOLDER, Model, iterate_models
from benchmarks.report import DYNAMIC, RESULTS, Results, Row, show


def lengths(count: int, longest: int) -> list[int]:
    """Random lengths, always the same."""
    return np.random.default_rng(4).integers(1, longest + 1, count).tolist()


def measure(model: Model, runtimes: Sequence[str], threads: int, sizes: Sequence[int]) -> Row:
    """Total seconds of each runtime, its slowest call, and how far sardonyx is from the others."""
    row: Row = {"model": model.name, "texts": len(sizes), "threads": threads}
    spent: dict[str, list[float]] = {name: [] for name in runtimes}
    error = 0.0
    with tempfile.TemporaryDirectory() as place, ExitStack() as stack:
        folder = Path(place)
        contenders = []
        for name in runtimes:
            contenders.append(stack.enter_context(Contender(name, threads, 600, folder / "cache")))
            try:
                contenders[-1].open(model.path, model.name)
            except LostError as lost:
                row[name] = str(lost)
        for size in sizes:
            inputs = save_feeds(_text(model, size), folder / f"{size}.npz")
            found = []
            for item in contenders:
                if item.problem:
                    continue
                outputs = folder / f"{item.runtime}.npz"
                try:
                    spent[item.runtime] += item.call(inputs, outputs)
                    found.append(read_outputs(outputs))
                except LostError as lost:
                    row[item.runtime] = f"{lost} (length {size})"
            error = max([error, *(largest_error(each, found[0]) for each in found[1:])])
    for name in runtimes:
        if name not in row:
            row[name] = sum(spent[name])
            row[f"{name}, slowest call"] = max(spent[name])
    first, *others = (row[name] for name in runtimes)
    figures = [other for other in others if isinstance(other, float)]
    row["ratio"] = first / min(figures) if figures and isinstance(first, float) else None
    row["error"] = error
    return row


def _text(model: Model, size: int) -> dict[str, np.ndarray]:
    """The model's own inputs, repeated to a length."""
    return {
        name: np.ascontiguousarray(np.resize(array[:1], (1, size)))
        for name, array in model.feeds.items()
    }


def main() -> None:
    """Measure, print and save."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", default="bert-base")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--longest", type=int, default=512)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--peers", default="onnxruntime")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="of the models")
    parser.add_argument("--json", type=Path, default=RESULTS)
    given = parser.parse_args()
    (model,) = iterate_models([given.model], folder=given.folder)
    peers = given.peers.split(",")
    sizes = lengths(given.count, given.longest)
    rows = [
        measure(model, ("sardonyx", *peers), int(threads), sizes)
        for threads in given.threads.split(",")
    ]
    show(DYNAMIC, rows)
    results = Results(given.json)
    results.replace(DYNAMIC, rows)
    results.save()


if __name__ == "__main__":
    main()
