"""The benchmark: sardonyx beside onnxruntime, OpenVINO and PyTorch.

    python -m benchmarks.run [name ...] [--threads 1,2] [--runs 50] [--peers onnxruntime,openvino]
                             [--target avx512] [--precision medium]
                             [--before CHECKOUT] [--json benchmarks/results.json]

Every runtime has a process of its own for each model; they take turns call by call, with the same
inputs and number of threads. Outputs are compared with a run in float64. Results are saved after
each model; with names, those of other models stay in the file.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.lockstep import (
    BEFORE,
    Contender,
    LostError,
    Timing,
    largest_error,
    read_outputs,
    save_feeds,
    take_turns,
)
from benchmarks.models import EXPORTERS, FOLDER, NAMES, NETWORKS, Model, iterate_models
from benchmarks.report import (
    ACCURACY,
    ANSWER,
    CREATION,
    LATENCY,
    MEANS,
    MEDIANS,
    MEMORY,
    PROBLEMS,
    RATIO,
    RESULTS,
    TITLES,
    Results,
    Row,
    show,
)

QUICK = ("small-mlp", "minilm-l6", "mobilenetv2", "gradient-boosting")
PEERS = ("onnxruntime", "openvino", "torch")
KEEPING = ("sardonyx", BEFORE, "openvino")
"""Runtimes that keep what they compiled for the next process."""
TOLERANCE = 1e-3
NARROW_TOLERANCE = 0.2
"""With a lower precision: networks of random weights make errors grow from layer to layer."""


@dataclass(frozen=True)
class Plan:
    """How to measure."""

    runtimes: tuple[str, ...]
    threads: tuple[int, ...]
    runs: int
    seconds: float
    limit: float
    target: str
    precision: str
    start: bool
    before: Path | None = None
    """Another checkout, which takes part as `before`."""

    @property
    def tolerance(self) -> float:
        """The largest error of a result that is right."""
        return TOLERANCE if self.precision == "highest" else NARROW_TOLERANCE


class Measurement:
    """One model: its files in a folder of its own, and where its rows go."""

    def __init__(self, model: Model, plan: Plan, folder: Path, results: Results) -> None:
        self.model = model
        self.plan = plan
        self._folder = folder
        self._results = results
        self._inputs = {
            label: save_feeds(feeds, folder / f"inputs{number}.npz")
            for number, (label, feeds) in enumerate(model.variants.items())
        }
        self._truth: dict[str, list[np.ndarray]] = {}
        self._out: set[str] = set()
        """Runtimes with a problem that was told."""
        self._judge = "float64" if model.name in NETWORKS else "the reference"

    def measure(self) -> None:
        """All rows of the model."""
        self._find_truth()
        for threads in self.plan.threads:
            self._measure_calls(threads)
        if self.plan.start:
            self._measure_start(max(self.plan.threads))

    def _problem(self, runtime: str, what: str, **where: Any) -> None:
        self._out.add(runtime)
        if what != "-":
            self._results.add(
                PROBLEMS, {"model": self.model.name, "runtime": runtime, **where, "what": what}
            )
            print(f"  {runtime}: {what} {where or ''}", file=sys.stderr, flush=True)

    def _find_truth(self) -> None:
        """Outputs in float64, or of the reference."""
        with Contender("truth", max(self.plan.threads), self.plan.limit) as judge:
            try:
                judge.open(self.model.path, self.model.name)
                for label, inputs in self._inputs.items():
                    outputs = self._folder / "truth.npz"
                    judge.call(inputs, outputs)
                    self._truth[label] = read_outputs(outputs)
            except LostError as lost:
                self._problem(self._judge, str(lost))

    def _measure_calls(self, threads: int) -> None:
        """Times of all variants with some number of threads."""
        cache = self._folder / "cache"
        with ExitStack() as stack:
            contenders = []
            for runtime in self.plan.runtimes:
                plan = self.plan
                contender = Contender(runtime, threads, plan.limit, cache, plan.target, plan.before)
                contenders.append(stack.enter_context(contender))
                try:
                    contender.open(self.model.path, self.model.name, plan.precision)
                except LostError as lost:
                    self._problem(runtime, str(lost), threads=threads)
            for label, inputs in self._inputs.items():
                self._measure_variant(contenders, label, inputs, threads)

    def _measure_variant(
        self, contenders: list[Contender], label: str, inputs: Path, threads: int
    ) -> None:
        where: Row = {"model": self.model.name, "input": label}
        found: dict[str, list[np.ndarray]] = {}
        for item in contenders:
            if item.problem:
                continue
            outputs = self._folder / f"{item.runtime}.npz"
            try:
                item.call(inputs, outputs)
                found[item.runtime] = read_outputs(outputs)
            except LostError as lost:
                self._problem(item.runtime, str(lost), input=label, threads=threads)
        errors = self._errors(label, found, threads)
        if threads == self.plan.threads[0] and errors:
            self._results.add(ACCURACY, where | {"judge": self._judge_of(label)} | errors)
        timings = take_turns(contenders, inputs, self.plan.runs, self.plan.seconds)
        for item in contenders:
            if timings[item.runtime].problem and item.runtime in found:
                self._problem(item.runtime, item.problem, input=label, threads=threads)
        best, median = latency_rows(where | {"threads": threads}, timings)
        best["error"] = errors.get("sardonyx")
        if errors.get("sardonyx", 0.0) > self.plan.tolerance:
            best[RATIO] = best["median ratio"] = median["median ratio"] = None
        self._results.add(LATENCY, best)
        self._results.add(MEDIANS, median)
        print_case(best)

    def _judge_of(self, label: str) -> str:
        return self._judge if label in self._truth else "onnxruntime"

    def _errors(
        self, label: str, found: dict[str, list[np.ndarray]], threads: int
    ) -> dict[str, float]:
        """How far each is from the truth, or from onnxruntime where there is none."""
        truth = self._truth.get(label) or found.get("onnxruntime")
        if truth is None:
            return {}
        errors = {runtime: largest_error(outputs, truth) for runtime, outputs in found.items()}
        for runtime, error in errors.items():
            if not error <= (self.plan.tolerance if runtime == "sardonyx" else TOLERANCE):
                what = f"disagrees with {self._judge_of(label)}: error {error:.2g}"
                self._problem(runtime, what, input=label, threads=threads)
        return errors

    def _measure_start(self, threads: int) -> None:
        """Sessions made with an empty cache and with a filled one, in new processes.

        PyTorch has no files to start from, so it is left out.
        """
        inputs = next(iter(self._inputs.values()))
        rows: dict[str, Row] = {title: {"model": self.model.name, "threads": threads}
                                for title in (CREATION, ANSWER, MEMORY)}  # fmt: skip
        for runtime in self.plan.runtimes:
            if runtime.startswith("torch"):
                continue
            cache = self._folder / f"start-{runtime}"
            kinds = ("cold", "warm") if runtime in KEEPING else ("",)
            for kind in kinds:
                column = f"{runtime} {kind}".strip()
                try:
                    taken = self._start(runtime, threads, cache, inputs)
                except LostError as lost:
                    if runtime not in self._out:
                        self._problem(runtime, str(lost), input=f"{kind} start".strip())
                    taken = dict.fromkeys(rows, str(lost).partition(":")[0])
                for title, figure in taken.items():
                    rows[title][column] = figure
        for title, row in rows.items():
            self._results.add(title, row)

    def _start(self, runtime: str, threads: int, cache: Path, inputs: Path) -> Row:
        plan = self.plan
        with Contender(runtime, threads, plan.limit, cache, plan.target, plan.before) as item:
            opened = item.open(self.model.path, self.model.name, self.plan.precision)
            (first, *_) = item.call(inputs)
            return {
                CREATION: opened["create"],
                ANSWER: opened["import"] + opened["create"] + first,
                MEMORY: item.memory() / 1e6,
            }


def latency_rows(where: Row, timings: dict[str, Timing]) -> tuple[Row, Row]:
    """The rows of the best and the median calls, in milliseconds, with ratios to the best peer."""
    best, median = dict(where), dict(where)
    for runtime, timing in timings.items():
        best[runtime] = timing.problem.split(":")[0] or (timing.best or 0.0) * 1e3
        median[runtime] = timing.problem.split(":")[0] or (timing.median or 0.0) * 1e3
    for row, name in ((best, RATIO), (median, "median ratio")):
        figures = {runtime: row[runtime] for runtime in timings if isinstance(row[runtime], float)}
        ours = figures.pop("sardonyx", None)
        peer = min(figures, key=lambda runtime: figures[runtime], default=None)
        row["best peer"] = peer
        row[name] = ours / figures[peer] if peer is not None and ours is not None else None
    best["median ratio"] = median["median ratio"]
    return best, median


def print_case(row: Row) -> None:
    """A row as soon as it is measured."""
    figures = [
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in row.items()
        if name not in ("model", "input", "threads")
    ]
    print(f"{row['model']} [{row['input']}] x{row['threads']}: {', '.join(figures)}", flush=True)


def ready_models(
    names: tuple[str, ...], exporter: str, folder: Path, limit: float, results: Results
) -> Iterator[Model]:
    """The models, each built in another process where it is not there; failures become rows."""
    for name in names:
        command = [sys.executable, "-m", "benchmarks.models", name, "--exporter", exporter]
        command += ["--folder", str(folder)]
        try:
            made = subprocess.run(
                command, capture_output=True, text=True, timeout=limit * 2, check=False
            )
            problem = made.stderr.strip().splitlines()[-1:] if made.returncode else []
        except subprocess.TimeoutExpired:
            problem = [f"not exported after {limit * 2:.0f} s"]
        found = [] if problem else list(iterate_models([name], exporter=exporter, folder=folder))
        if not found:
            what = problem[0] if problem else "no such file; set SARDONYX_TEST_MODELS"
            results.add(PROBLEMS, {"model": name, "runtime": "export", "what": what})
            print(f"{name}: {what}", file=sys.stderr, flush=True)
        yield from found


def read_arguments() -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="name", help=", ".join(NAMES))
    parser.add_argument("--quick", action="store_true", help=f"only {', '.join(QUICK)}")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--runs", type=int, default=50, help="calls of each runtime")
    parser.add_argument("--seconds", type=float, default=15, help="at most, for each case")
    parser.add_argument("--limit", type=float, default=300, help="seconds to open, or of a call")
    parser.add_argument("--peers", default=",".join(PEERS), help="torch-compile is one too")
    parser.add_argument(
        "--target", default="", help="such as avx2; OpenVINO and PyTorch are held to avx2 too"
    )
    parser.add_argument(
        "--before", type=Path, metavar="CHECKOUT", help="another checkout, timed as one more peer"
    )
    parser.add_argument("--precision", default="highest", help="of sardonyx, such as medium")
    parser.add_argument("--exporter", choices=EXPORTERS, default="dynamo")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="of the models")
    parser.add_argument("--no-start", action="store_true", help="leave creation and memory out")
    parser.add_argument("--json", type=Path, default=RESULTS)
    given = parser.parse_args()
    unknown = set(given.names) - set(NAMES)
    if unknown:
        parser.error(f"there is no model {', '.join(unknown)}; there are: {', '.join(NAMES)}")
    return given


def main() -> None:
    """Measure, print and save."""
    given = read_arguments()
    peers = tuple(name for name in given.peers.split(",") if name)
    peers += (BEFORE,) if given.before else ()
    threads = tuple(map(int, given.threads.split(",")))
    plan = Plan(("sardonyx", *peers), threads, given.runs, given.seconds, given.limit,
                given.target, given.precision, not given.no_start,
                given.before and given.before.resolve())  # fmt: skip
    names = tuple(given.names) or (QUICK if given.quick else ())
    said = {"target": given.target} if given.target else {}
    said |= {"precision": given.precision} if given.precision != "highest" else {}
    results = Results(given.json, **said)
    results.forget(names)
    for model in ready_models(names or NAMES, given.exporter, given.folder, given.limit, results):
        with tempfile.TemporaryDirectory() as folder:
            Measurement(model, plan, Path(folder), results).measure()
        results.save()
    results.save()
    for title in TITLES:
        rows = results.tables.get(title, [])
        show(title, rows if title == MEANS or not names
             else [row for row in rows if row.get("model") in names])  # fmt: skip


if __name__ == "__main__":
    main()
