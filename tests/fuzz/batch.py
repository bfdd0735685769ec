"""Batches of runs in children that may die: a death is told with its seed, and the batch goes on.

A child tells its parent about every run before it begins, by lines in a pipe; limits of time and
memory are the kernel's, so that native code meets them too.
"""

import faulthandler
import gc
import importlib
import json
import os
import pkgutil
import resource
import selectors
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.fuzz import peer
from tests.fuzz.guard import guard_segments
from tests.fuzz.judge import COMPILED, Bench, Finding, judge
from tests.fuzz.trial import Generator, Trial

SECONDS = 5
"""Processor time of one run; what only waits gets four times as much."""

MEMORY = 2 << 30
"""Address space of a child beyond what it begins with."""

MEMORIES = ("plain", "guard", "checked", "heap")
"""Kinds of children: as users run; guard pages behind every array; kernels that check each access
and that all memory is written; glibc's heap checks."""

NAMES = ("extremes", "lying", "perturbed", "nested", "structure", "arrays", "bytes")
HOMES = {"bytes": "damaged"}
BROKEN = 77
"""How a child ends where the harness itself fails."""


def generator(name: str) -> Generator:
    """A generator by name."""
    found: Any = importlib.import_module(f"tests.fuzz.{HOMES.get(name, name)}")
    return found  # type: ignore[no-any-return]


def warm_up(names: tuple[str, ...]) -> None:
    """Load what children need, so that they need not."""
    importlib.import_module("onnxruntime")
    for part in ("checker", "compiler", "format", "graph", "loops", "ops", "passes", "runtime"):
        package = importlib.import_module(f"sardonyx.{part}")
        for module in pkgutil.walk_packages(package.__path__, f"sardonyx.{part}."):
            importlib.import_module(module.name)
    for name in names:
        generator(name).make(0)
    bench = Bench(generator("extremes").make(0))
    bench.run(COMPILED, bench.trial.feeds(0))


@dataclass
class Batch:
    """Runs `start` to `stop` of a generator, and what came of those that are done."""

    name: str
    start: int
    stop: int
    memory: str = "plain"
    peer_every: int = 8
    """One model of so many is run by onnxruntime too; 0 for none."""

    outcomes: dict[str, int] = field(default_factory=dict)
    findings: list[tuple[int, Finding]] = field(default_factory=list)
    last: int = -1
    child: int = 0
    rest: bytes = b""
    trace: list[str] = field(default_factory=list)
    seconds: float = 0.0
    """Processor time of all its children."""

    def take(self, data: bytes) -> None:
        """Read what the child wrote."""
        *lines, self.rest = (self.rest + data).split(b"\n")
        for raw in lines:
            line = raw.decode(errors="replace")
            if line.startswith("@"):
                self.last = int(line[1:])
                self.trace.clear()
            elif line.startswith("{"):
                told = json.loads(line)
                outcome = told["outcome"]
                self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1
                for item in told["findings"]:
                    self.findings.append((self.last, Finding(*item)))
            else:
                self.trace.append(line)

    def end(self, status: int) -> int:
        """Note how the child ended; the run to go on with."""
        code = os.waitstatus_to_exitcode(status)
        if code == 0:
            return self.stop
        if self.last < self.start or code == BROKEN:
            raise RuntimeError(f"{self.name}, run {self.last}: ended with {code}, {self.trace}")
        slow = code in (-signal.SIGALRM, -signal.SIGPROF, -signal.SIGXCPU)
        text = f"took over {SECONDS} s" if slow else _ended(code)
        self.outcomes["ended"] = self.outcomes.get("ended", 0) + 1
        what = generator(self.name).make(self.last // generator(self.name).RUNS).what
        kind = "hang" if slow else "crash"
        self.findings.append((self.last, Finding(kind, what, text, _innermost(self.trace))))
        return self._after() if slow else self.last + 1

    def _after(self) -> int:
        """The first run of the next model: this one would hang again."""
        runs = generator(self.name).RUNS
        begin = min(self.stop, (self.last // runs + 1) * runs)
        self.outcomes["skipped"] = self.outcomes.get("skipped", 0) + begin - self.last - 1
        return begin


def _ended(code: int) -> str:
    return f"ended by {signal.Signals(-code).name}" if code < 0 else f"exited with {code}"


def _innermost(trace: list[str]) -> str:
    """The first line of ours in what faulthandler wrote."""
    for line in trace:
        if "sardonyx/" in line and "File" in line:
            path, _, rest = line.split("sardonyx/", 1)[1].partition('"')
            return f"{path}:{rest.rsplit(' in ', 1)[-1]}"
    return ""


def start(batch: Batch, begin: int) -> int:
    """Fork a child that does the batch from `begin` on; the pipe to read from."""
    reader, writer = os.pipe()
    child = os.fork()
    if child:
        os.close(writer)
        batch.child, batch.last, batch.rest = child, -1, b""
        return reader
    try:
        os.close(reader)
        _work(batch, begin, writer)
    except BaseException as error:  # noqa: BLE001 - the harness itself failed
        os.write(writer, f"{type(error).__name__}: {error}\n".encode())
        os._exit(BROKEN)
    os._exit(0)


def _limits(writer: int) -> None:
    with open("/proc/self/statm") as file:
        taken = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + MEMORY, taken + MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sink = os.open(os.devnull, os.O_RDWR)
    os.dup2(sink, 1)
    os.dup2(sink, 2)
    faulthandler.enable(writer, all_threads=False)
    for number in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(number, signal.SIG_DFL)
        faulthandler.register(number, writer, all_threads=False, chain=True)


def _work(batch: Batch, begin: int, writer: int) -> None:
    source = generator(batch.name)
    other = peer.Peer()
    gc.freeze()
    _limits(writer)
    if batch.memory == "guard":
        guard_segments()
    os.environ["SARDONYX_CHECK"] = "memory" if batch.memory == "checked" else "0"
    bench, group = Bench(Trial(b"", "")), -1
    for number in range(begin, batch.stop):
        os.write(writer, b"@%d\n" % number)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        signal.setitimer(signal.ITIMER_REAL, 4 * SECONDS)
        if number // source.RUNS != group:
            group = number // source.RUNS
            bench = Bench(source.make(group))
        run = number % source.RUNS
        asked = batch.peer_every and group % batch.peer_every == 0
        try:
            outcome = judge(bench, run)
            if asked and outcome == "ran" and bench.trial.plain is None:
                signal.setitimer(signal.ITIMER_REAL, 0)
                _beside(bench, other, run)
        except MemoryError:  # of the comparison: what runs models tells it as an error of ours
            outcome = "skipped"
        told = [(item.kind, item.what, item.text, item.place) for item in bench.findings]
        bench.findings.clear()
        line = json.dumps({"outcome": outcome, "findings": told})
        os.write(writer, line.encode() + b"\n")
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.setitimer(signal.ITIMER_REAL, 0)
    other.close()


def _beside(bench: Bench, other: peer.Peer, run: int) -> None:
    """Compare with onnxruntime, where no difference was found before."""
    if bench.findings or bench.trial.random:
        return
    feeds = bench.trial.feeds(run)
    said = other.disagrees(bench.trial, feeds, bench.run(COMPILED, feeds))
    if said:
        bench.note("onnxruntime", said)


def do(batches: Iterator[Batch], workers: int) -> Iterator[Batch]:
    """Do batches in `workers` children at a time; each is given back when it is done."""
    waiting = selectors.DefaultSelector()
    running = 0
    while True:
        while running < workers and (batch := next(batches, None)) is not None:
            waiting.register(start(batch, batch.start), selectors.EVENT_READ, batch)
            running += 1
        if not running:
            return
        for ready, _ in waiting.select():
            batch = ready.data
            if data := os.read(ready.fd, 1 << 16):
                batch.take(data)
                continue
            waiting.unregister(ready.fd)
            os.close(ready.fd)
            _, status, used = os.wait4(batch.child, 0)
            batch.seconds += used.ru_utime + used.ru_stime
            begin = batch.end(status)
            if begin < batch.stop:
                waiting.register(start(batch, begin), selectors.EVENT_READ, batch)
            else:
                running -= 1
                yield batch
