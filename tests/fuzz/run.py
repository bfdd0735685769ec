"""Make models of many kinds, run them, and judge what comes: `python -m tests.fuzz.run --count N`.

Each run is in a child that may die. Some children have guard pages behind every array, some check
every access, some have glibc's heap checks, which needs a process that began with them.
Findings that look alike are printed once, with a command that repeats them.
"""

import argparse
import ctypes.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from tests.fuzz.batch import MEMORIES, NAMES, Batch, do, generator, warm_up
from tests.fuzz.judge import Finding
from tests.fuzz.known import known

RUNS_PER_BATCH = 192
HEAP_CHECKS = {"MALLOC_CHECK_": "3", "MALLOC_PERTURB_": "165"}


@dataclass
class Report:
    """What all batches found."""

    outcomes: Counter[str] = field(default_factory=Counter)
    runs: Counter[str] = field(default_factory=Counter)
    seconds: Counter[str] = field(default_factory=Counter)
    found: dict[tuple[str, ...], dict[str, Any]] = field(default_factory=dict)

    @property
    def unknown(self) -> int:
        """How many findings are not in the table of known ones."""
        return sum(not item["known"] for item in self.found.values())

    def add(self, line: dict[str, Any]) -> dict[str, Any] | None:
        """Take what one batch told, or a finding; the finding where it is a new one."""
        if "outcomes" in line:
            self.outcomes.update(line["outcomes"])
            self.runs[line["generator"]] += sum(line["outcomes"].values())
            self.seconds[line["generator"]] += line["seconds"]
            return None
        key = tuple(line["key"])
        if key in self.found:
            self.found[key]["times"] += 1
            return None
        self.found[key] = line | {"times": 1}
        return line


def batches(given: argparse.Namespace, memories: tuple[str, ...]) -> Iterator[Batch]:
    """The batches for processes of some kinds of memory, until the time is over."""
    ends = time.monotonic() + given.seconds if given.seconds else None
    places = []
    for name, count in shares(given).items():
        places += [(at / count, name, at, count) for at in range(0, count, RUNS_PER_BATCH)]
    for place, (_, name, at, count) in enumerate(sorted(places)):
        memory = given.memory or MEMORIES[place % len(MEMORIES)]
        if memory in memories and (ends is None or time.monotonic() < ends):
            stop = given.start + min(at + RUNS_PER_BATCH, count)
            yield Batch(name, given.start + at, stop, memory, given.peer_every)


def shares(given: argparse.Namespace) -> dict[str, int]:
    """How many runs each generator makes."""
    if given.generator:
        return {given.generator: given.count}
    parts = {name: generator(name).SHARE for name in NAMES}
    total = sum(parts.values())
    return {name: max(1, given.count * part // total) for name, part in parts.items()}


def told(batch: Batch) -> Iterator[dict[str, Any]]:
    """A finished batch as lines."""
    yield {"outcomes": batch.outcomes, "generator": batch.name, "seconds": batch.seconds}
    for number, finding in batch.findings:
        yield line_of(batch.name, number, finding, batch.memory)


def line_of(name: str, number: int, finding: Finding, memory: str) -> dict[str, Any]:
    """A finding with what repeats it: its model's runs, up to the one it was found in."""
    first = number - number % generator(name).RUNS
    command = (
        f"python -m tests.fuzz.run --generator {name} --start {first} "
        f"--count {number - first + 1} --memory {memory}"
    )
    if finding.kind == "onnxruntime":
        command += " --peer-every 1"
    return {
        "kind": finding.kind, "generator": name, "what": finding.what, "text": finding.text,
        "place": finding.place, "command": command, "key": [name, *finding.key],
        "known": known(finding),
    }  # fmt: skip


def heap_library() -> str | None:
    """glibc's checked malloc, where the system has it."""
    return ctypes.util.find_library("c_malloc_debug") or next(
        (str(path) for folder in ("/lib", "/usr/lib", "/lib64")
         for path in Path(folder).glob("**/libc_malloc_debug.so.0")), None
    )  # fmt: skip


def work(given: argparse.Namespace, memories: tuple[str, ...], workers: int) -> Iterator[Any]:
    """Do this process's batches."""
    warm_up((given.generator,) if given.generator else NAMES)
    for batch in do(batches(given, memories), workers):
        yield from told(batch)


def heap_process(
    given: argparse.Namespace, workers: int, told: IO[str]
) -> subprocess.Popen[str] | None:
    """A process with a checked heap that does its share of the batches and tells it in a file."""
    library = heap_library()
    if library is None or given.memory not in (None, "heap"):
        return None
    command = [sys.executable, "-m", "tests.fuzz.run", *sys.argv[1:], "--inside", str(workers)]
    environment = os.environ | HEAP_CHECKS | {"LD_PRELOAD": library}
    return subprocess.Popen(command, stdout=told, text=True, env=environment)


def lines(given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """What all processes tell."""
    alone = given.memory == "heap"
    workers = given.workers if alone else max(1, given.workers // len(MEMORIES))
    with tempfile.TemporaryFile("w+") as heap_lines:
        checked = heap_process(given, workers, heap_lines)
        others = MEMORIES[:-1] if checked else MEMORIES
        if not alone or checked is None:
            left = max(1, given.workers - workers) if checked else given.workers
            yield from work(given, others, left)
        if checked is None:
            return
        if checked.wait():
            raise SystemExit(f"the process with a checked heap ended with {checked.returncode}")
        heap_lines.seek(0)
        yield from map(json.loads, heap_lines)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--generator", choices=NAMES)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=0, help="begin nothing after so long")
    parser.add_argument("--memory", choices=MEMORIES, help="one kind of memory for all children")
    parser.add_argument("--peer-every", type=int, default=8, help="models per one of onnxruntime")
    parser.add_argument("--json", type=Path, help="where to write the report")
    parser.add_argument("--inside", type=int, default=0, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> int:
    """Run and print what was found; 1 where anything was that is not known."""
    given = parse()
    os.environ["SARDONYX_CACHE"] = "off"
    if given.inside:
        for line in work(given, ("heap",), given.inside):
            print(json.dumps(line), flush=True)
        return 0
    began, report = time.monotonic(), Report()
    for line in lines(given):
        if new := report.add(line):
            kind = f"{'known ' * new['known']}{new['kind']}"
            print(f"{kind} [{new['what']}] {new['place']} {new['text'][:300]}")
            print(f"    {new['command']}", flush=True)
    taken = time.monotonic() - began
    for name, count in report.runs.items():
        print(f"{name:<10} {count:8} runs, {report.seconds[name] / count * 1e3:6.1f} ms each")
    print(
        f"{sum(report.runs.values())} runs in {taken:.0f} s, {dict(report.outcomes)}, "
        f"{len(report.found)} findings, {len(report.found) - report.unknown} of them known"
    )
    if given.json:
        told = {
            "runs": report.runs,
            "outcomes": report.outcomes,
            "seconds": taken,
            "processor": report.seconds,
            "findings": list(report.found.values()),
        }
        given.json.write_text(json.dumps(told, indent=1))
    return bool(report.unknown)


if __name__ == "__main__":
    sys.exit(main())
