"""Guarded memory ends a process whose kernel leaves its array, and lets all others run."""

import faulthandler
import os
import signal
from collections.abc import Callable

import pytest

from sardonyx.compiler.host import host_target
from sardonyx.compiler.targets import MEMORY
from sardonyx.dtypes import DataType
from sardonyx.loops.build import dense
from sardonyx.loops.nodes import Kernel, Load, Local, Store
from tests.compiler.test_checked import AT, FEED, RIGHT, SIZE, WRONG, Tried, X, Y, over
from tests.conformance.suite import KINDS, cases
from tests.fuzz.guard import BEGIN, END, SIDES, guard_segments
from tests.fuzz.guarded import official, run_batch, shared
from tests.shared_models import model_paths, needs_models

FLOAT = DataType.FLOAT
SAMPLED = 80
OWN = dense("own", FLOAT, (16,))


def own(index: object) -> Kernel:
    """A kernel that writes an element of memory of a task's own."""
    store = Store(OWN, (index,), Load(X, (AT,)))  # type: ignore[arg-type]
    return over(SIZE, [Local("own", FLOAT, (16,)), store, Store(Y, (AT,), Load(X, (AT,)))])


def ending(work: Callable[[], object]) -> int:
    """How a child ends that does something."""
    child = os.fork()
    if not child:
        faulthandler.disable()
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


BESIDE = [
    ("reads one beyond", END), ("writes one beyond", END), ("a lane read beyond", END),
    ("a lane beyond", END), ("lanes written apart", END), ("a row picked beyond", END),
    ("reads one below", BEGIN), ("writes one below", BEGIN), ("a lane read below", BEGIN),
    ("lanes backwards", BEGIN),
]  # fmt: skip


@pytest.mark.parametrize(("name", "side"), BESIDE)
def test_who_leaves_an_array_ends_the_process(name: str, side: str) -> None:
    def work() -> None:
        guard_segments(side)
        Tried(WRONG[name], host_target(), checked=MEMORY)()

    assert ending(work) == -signal.SIGSEGV


@pytest.mark.parametrize(("index", "side"), [(AT + 16, END), (AT - 1, BEGIN)])
def test_who_leaves_memory_of_its_own_ends_the_process(index: object, side: str) -> None:
    def work() -> None:
        guard_segments(side)
        Tried(own(index), host_target(), checked=MEMORY)()

    assert ending(work) == -signal.SIGSEGV


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_runs(name: str, side: str) -> None:
    def work() -> None:
        guard_segments(side)
        found = Tried(RIGHT[name], host_target(), checked=MEMORY)()
        assert found.tolist() == FEED.tolist()

    assert ending(work) == 0


def test_a_crash_is_told_by_its_name() -> None:
    def crash(guards: object) -> None:
        os.kill(os.getpid(), signal.SIGSEGV)

    def fail(guards: object) -> None:
        raise ValueError("two\nlines")

    found = run_batch([("one", lambda guards: None), ("two", crash), ("three", fail)])
    assert list(found) == ["two: ended with SIGSEGV", "three: ValueError: two lines"]


@pytest.mark.parametrize("threads", [1, 2])
def test_official_cases(threads: int) -> None:
    chosen = [case for kind in KINDS for case in cases(kind)][threads::SAMPLED]
    assert list(run_batch([official(case, threads, MEMORY, None) for case in chosen])) == []


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_all_official_cases(kind: str, threads: int) -> None:
    works = [official(case, threads, MEMORY, None) for case in cases(kind)]
    found = [line for start in range(0, len(works), 40)
             for line in run_batch(works[start : start + 40])]  # fmt: skip
    assert found == []


@needs_models
@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("path", model_paths(), ids=lambda path: path.parent.name)
def test_shared_models(path: object, threads: int) -> None:
    assert list(run_batch([shared(path, threads, MEMORY)])) == []
