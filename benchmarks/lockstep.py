"""Processes of different runtimes that take turns, so that all see the same noise of the machine.

A runtime that crashes, hangs or refuses a model is an answer that says so; the others go on.
"""

import contextlib
import json
import os
import selectors
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

TURN = 0.02
"""Seconds of a turn, if one call is shorter."""
SMALLEST = 1e-3
"""Errors of outputs that lie below are shares of this number: there is nothing in them to lose."""
PAUSE = 0.01
"""Seconds between turns, in which the workers of the runtime before stop to spin."""
BEFORE = "before"
"""Sardonyx of another checkout."""

HELD = {"avx2": {"ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2"}}
"""What holds OpenVINO and PyTorch to a target; nothing holds onnxruntime."""


class LostError(Exception):
    """A process gave no figure; the text is what its row says."""


class Contender:
    """A runtime in a process of its own."""

    def __init__(
        self, runtime: str, threads: int, limit: float, cache: Path | None = None, target: str = "",
        checkout: Path | None = None,
    ) -> None:  # fmt: skip
        self.runtime = runtime
        self.problem = ""
        """Why it is out, or nothing."""
        self._limit = limit
        self._threads = threads
        self._cache = cache
        environment = os.environ | {"OMP_NUM_THREADS": str(threads), "TOKENIZERS_PARALLELISM": ""}
        environment |= {"SARDONYX_TARGET": target} | HELD.get(target, {})
        if cache is not None:
            environment["SARDONYX_CACHE"] = str(cache)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            cwd=checkout if runtime == BEFORE else None,
        )

    @property
    def process_id(self) -> int:
        """The number of the process."""
        return self._process.pid

    def ask(self, **request: Any) -> dict[str, Any]:
        """The answer to a request; whoever fails once is out."""
        if self.problem:
            raise LostError(self.problem)
        try:
            return self._ask(request)
        except LostError as lost:
            self.problem = str(lost)
            self.close()
            raise

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            raise LostError(self._end()) from None
        reply = self._line()
        if "failed" in reply:
            kind, why = reply["failed"], reply["why"]
            raise LostError("-" if kind == "AbsentError" else f"failed: {kind}: {why}")
        return reply

    def _line(self) -> dict[str, Any]:
        """The next line, which is short and comes at once."""
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            if not selector.select(self._limit):
                raise LostError(f"timed out after {self._limit:.0f} s")
        line = self._process.stdout.readline()
        if not line:
            raise LostError(self._end())
        return json.loads(line)

    def _end(self) -> str:
        code = self._process.wait(10)
        return f"crashed with signal {-code}" if code < 0 else f"crashed with status {code}"

    def open(self, path: Path, name: str = "", precision: str = "highest") -> dict[str, float]:
        """Make a session; seconds of the import and of making it."""
        job = {"path": str(path.resolve()), "name": name, "threads": self._threads}
        runtime = "sardonyx" if self.runtime == BEFORE else self.runtime
        if runtime == "sardonyx":
            job["precision"] = precision
        elif self._cache is not None:
            job["cache"] = str(self._cache)
        return self.ask(do="open", runtime=runtime, job=job)

    def call(self, inputs: Path, outputs: Path | None = None, seconds: float = 0) -> list[float]:
        """Seconds of each call, one at least."""
        kept = str(outputs or "")
        return self.ask(do="call", inputs=str(inputs), outputs=kept, seconds=seconds)["times"]

    def memory(self) -> int:
        """Bytes at the peak above an interpreter's."""
        return self.ask(do="memory")["bytes"]

    def close(self) -> None:
        """End the process."""
        with contextlib.suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        self._process.kill()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def __enter__(self) -> "Contender":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass
class Timing:
    """Seconds of the calls of one runtime, or the problem it has."""

    calls: list[float] = field(default_factory=list)
    problem: str = ""

    @property
    def best(self) -> float | None:
        """The fastest call; None where there is a problem."""
        return min(self.calls) if self.calls and not self.problem else None

    @property
    def median(self) -> float | None:
        """The call in the middle."""
        return statistics.median(self.calls) if self.calls and not self.problem else None


def take_turns(
    contenders: Sequence[Contender], inputs: Path, runs: int, seconds: float
) -> dict[str, Timing]:
    """Time all in turns: `runs` calls of each, or as many as `seconds` allow after three turns.

    The first call of a turn of several does not count: it finds the caches of others.
    """
    timings = {item.runtime: Timing() for item in contenders}
    start = time.perf_counter()
    turn = 0
    while True:
        shift = turn % len(contenders)
        for contender in (*contenders[shift:], *contenders[:shift]):
            timing = timings[contender.runtime]
            if timing.problem:
                continue
            time.sleep(PAUSE)
            try:
                times = contender.call(inputs, seconds=TURN)
            except LostError as lost:
                timing.problem = str(lost)
                continue
            timing.calls += times[1:] or times
        turn += 1
        running = [timing for timing in timings.values() if not timing.problem]
        late = time.perf_counter() - start > seconds
        if turn >= 3 and (late or all(len(timing.calls) >= runs for timing in running)):
            return timings


def save_feeds(feeds: Mapping[str, np.ndarray], path: Path) -> Path:
    """Inputs as a file for the processes."""
    np.savez(path, **feeds)
    return path


def read_outputs(path: Path) -> list[np.ndarray]:
    """The outputs that a process kept, in the model's order."""
    with np.load(path, allow_pickle=False) as file:
        return [file[name] for name in file.files]


def largest_error(found: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> float:
    """The largest difference, as a share of the largest number of that output.

    Outputs that differ in number, shape or where they are not finite are infinitely far apart.

    >>> largest_error([np.array([1.0, 2.0])], [np.array([1.0, 4.0])])
    0.5
    """
    if [item.shape for item in found] != [item.shape for item in expected]:
        return float("inf")
    worst = 0.0
    for ours, theirs in zip(found, expected, strict=True):
        if ours.dtype.kind in "US":
            worst = max(worst, float((ours != theirs).any()))
            continue
        here, there = ours.astype(np.float64), theirs.astype(np.float64)
        finite = np.isfinite(there)
        if not np.array_equal(here[~finite], there[~finite], equal_nan=True):
            return float("inf")
        here, there = here[finite], there[finite]
        if not np.isfinite(here).all():
            return float("inf")
        largest = np.abs(there).max(initial=SMALLEST)
        worst = max(worst, float(np.abs(here - there).max(initial=0.0) / largest))
    return worst
