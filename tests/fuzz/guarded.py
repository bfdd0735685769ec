"""Run the official suite and the shared models in guarded memory.

    python -m tests.fuzz.guarded [--threads 2] [--check] [--target avx2] [--every 10] [--models]

Inputs, results, constants, every block that kernels use between each other and memory of a task's
own end right before a page nobody may touch, and then begin right after one. Every model has to
give the same bits both times; with `--check` kernels check their accesses too. Cases run in
children, so that one that ends by a signal is told by its name.
"""

import argparse
import faulthandler
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import sardonyx as sx
from sardonyx.compiler.program import compile_model
from sardonyx.compiler.targets import ACCESSES, MEMORY
from tests.conformance.suite import Case, Run, check, select
from tests.fuzz.guard import SIDES, Guards, guard_segments
from tests.ops.test_shared_models import read_case, with_keys
from tests.shared_models import model_paths

BATCH = 40
Work = tuple[str, Callable[[Guards], None]]
"""A name, and what is done under its name."""


def same(left: Any, right: Any) -> bool:
    """Whether two values are the same bits."""
    if isinstance(left, np.ndarray) and isinstance(right, np.ndarray):
        if left.dtype == object:
            return bool(np.array_equal(left, right))
        return left.shape == right.shape and left.tobytes() == right.tobytes()
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    return bool(left == right or left is right)


def on_both_sides(guards: Guards, run: Callable[[], list[Any]]) -> list[Any]:
    """Results at one side of their pages, which must be those at the other."""
    found = []
    for side in SIDES:
        guards.turn(side)
        found.append(run())
    if not all(same(found[0], other) for other in found[1:]):
        raise AssertionError("results depend on where memory lies")
    return found[0]


def official(case: Case, threads: int, checked: str, target: str | None) -> Work:
    """An official case."""

    def work(guards: Guards) -> None:
        def run(content: bytes, inputs: list[Any]) -> list[Any]:
            program = compile_model(
                sx.load(content), target=target, threads=threads, checked=checked, seed=0
            )
            feeds = dict(zip(program.input_names, inputs, strict=False))
            drawn = any("Random" in row.operator or row.operator in DRAWN
                        for row in program.explain())  # fmt: skip
            return (
                program.run(feeds) if drawn else on_both_sides(guards, lambda: program.run(feeds))
            )

        made: Run = run
        check(case, made)

    return case.name, work


DRAWN = frozenset({"Bernoulli", "Dropout", "Multinomial"})
"""Operators that give other results each time."""


def shared(path: Any, threads: int, checked: str) -> Work:
    """A shared model with its stored inputs, as a session runs it."""

    def work(guards: Guards) -> None:
        options = sx.SessionOptions()
        options.intra_op_num_threads = threads
        options.add_session_config_entry("sardonyx.cache", "off")
        options.add_session_config_entry("sardonyx.work_limit", str(1 << 32))
        options.add_session_config_entry("sardonyx.check", checked)
        session = sx.InferenceSession(path, options, ["CPUExecutionProvider"])
        stored = sorted(path.parent.glob("case*.npz"))
        fed = [with_keys(sx.load(path), read_case(case)[0]) for case in stored]
        for feeds in fed or [sx.make_inputs(path)]:
            on_both_sides(guards, lambda feeds=feeds: session.run(None, feeds))  # type: ignore[misc]

    return path.parent.name, work


def run_batch(batch: Sequence[Work]) -> Iterator[str]:
    """What is wrong with some of a batch, which runs in a child."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        warnings.simplefilter("ignore")
        faulthandler.disable()
        guards = guard_segments()
        with os.fdopen(writer, "w", buffering=1) as out:
            for number, (_, work) in enumerate(batch):
                out.write(f"@{number}\n")
                try:
                    work(guards)
                except Exception as error:  # noqa: BLE001 - whatever it is, is told
                    out.write(f"{type(error).__name__}: {' '.join(str(error).split())[:300]}\n")
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as lines:
        told = lines.read().splitlines()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    name = ""
    last = 0
    for line in told:
        if line.startswith("@"):
            last = int(line[1:])
            name = batch[last][0]
        else:
            yield f"{name}: {line}"
    if code:
        how = signal.Signals(-code).name if code < 0 else f"status {code}"
        yield f"{name}: ended with {how}"
        yield from run_batch(batch[last + 1 :]) if last + 1 < len(batch) else ()


def main() -> int:
    """Run everything, print what is wrong and how much there was."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wanted", nargs="*", help="cases by name or operator")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--check", action="store_true", help="check accesses as well")
    parser.add_argument("--target", default=None)
    parser.add_argument("--every", type=int, default=1, help="take one of so many cases")
    parser.add_argument("--models", action="store_true", help="only the shared models")
    given = parser.parse_args()
    checked = ACCESSES if given.check else MEMORY
    works: list[Work] = []
    if not given.models:
        chosen = list(select(given.wanted))[:: given.every]
        works += [official(case, given.threads, checked, given.target) for case in chosen]
    cases = len(works)
    models = [] if given.wanted else model_paths()[:: given.every]
    works += [shared(path, given.threads, checked) for path in models]
    problems = 0
    for start in range(0, len(works), BATCH):
        for line in run_batch(works[start : start + BATCH]):
            problems += 1
            print(line, flush=True)
    print(
        f"{cases} official cases and {len(models)} shared models, {given.threads} threads, "
        f"checks of {checked}: {problems} problems"
    )
    return min(problems, 100)


if __name__ == "__main__":
    sys.exit(main())
