"""Workers do every task once, in no more threads than asked for, and survive forks and exits."""

import ctypes
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
import pytest

import sardonyx as sx
from sardonyx.compiler.emit_pool import DIALECTS, HOST, emit_pool
from sardonyx.compiler.pool_record import POOL_SPIN, SLOTS
from sardonyx.compiler.processors import MACHINE, SHARES
from sardonyx.compiler.program import compile_model
from sardonyx.compiler.stop import NEVER
from sardonyx.compiler.threads import POOL, Pool, Team
from tests.compiler.native import engine_of
from tests.compiler.sharing import feeds, shared_model

KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, *[ctypes.c_int64] * 3)
DISPATCH = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, KERNEL, ctypes.c_void_p, *[ctypes.c_int64] * 3, ctypes.c_void_p
)
WAIT = 20

pytestmark = pytest.mark.skipif(not SHARES, reason="threads do not share work on this system")


def dispatch(team: Team, work: Callable[[int, int], None], tasks: int, pieces: int) -> None:
    """Run a Python function on a team as if it were a kernel."""
    team.gather()
    kernel = KERNEL(lambda _, begin, end, step: work(begin, end))
    DISPATCH(team.dispatch)(team.address, kernel, None, tasks, pieces, 1, NEVER.address)


@pytest.fixture
def pool() -> Iterator[Pool]:
    made = Pool()
    yield made
    made.close()


@pytest.mark.parametrize("machine", DIALECTS)
def test_there_is_code_for_each_machine(machine: str) -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    code = emit_pool(DIALECTS[machine])
    numbers = {"x86_64": 62, "aarch64": 183}
    assert code[:4] == b"\x7fELF" and int.from_bytes(code[18:20], "little") == numbers[machine]
    assert all(name in code for name in (b"worker", b"halt", b"dispatch", b"syscall"))


@pytest.mark.parametrize("threads", [1, 2, 3, 5])
@pytest.mark.parametrize("pieces", [1, 2, 3, 16, 100])
def test_every_task_is_done_once(pool: Pool, threads: int, pieces: int) -> None:
    team = Team(threads, pool)
    for tasks in (0, 1, pieces - 1, pieces, pieces + 1, 1000):
        done: list[int] = []
        dispatch(team, lambda begin, end, done=done: done.extend(range(begin, end)), tasks, pieces)
        assert sorted(done) == list(range(tasks))
    assert pool.workers == threads - 1


@pytest.mark.parametrize("threads", [2, 3])
def test_as_many_threads_help_as_asked_for(pool: Pool, threads: int) -> None:
    """First all five meet and stay awake; then pieces take long enough to be joined."""
    ctypes.c_int64.from_address(pool.address + POOL_SPIN).value = 50_000_000
    everyone, pause = threading.Barrier(5), threading.Event()
    seen: set[int] = set()

    def meet(begin: int, end: int) -> None:
        everyone.wait(WAIT)

    def work(begin: int, end: int) -> None:
        seen.add(threading.get_ident())
        pause.wait(0.002)

    for _ in range(3):
        dispatch(Team(5, pool), meet, 5, 5)
        seen.clear()
        dispatch(Team(threads, pool), work, 32, 32)
        assert 1 <= len(seen) <= threads
    assert not everyone.broken


def test_a_worker_that_sleeps_is_woken_and_so_is_its_caller(pool: Pool) -> None:
    team, together = Team(2, pool), threading.Barrier(2)
    for pause in (0.0, 0.01, 0.01):
        late = threading.Event()

        def meet(begin: int, end: int, pause: float = pause, late: threading.Event = late) -> None:
            together.wait(WAIT)
            late.wait(pause if begin else 0)

        dispatch(team, meet, 2, 2)
        late.wait(0.01)
    assert not together.broken


def test_workers_go_from_one_caller_to_another(pool: Pool) -> None:
    """Each of two callers waits for a worker inside its own piece, so each must get one."""
    barriers = [threading.Barrier(2) for _ in range(2)]

    def call(together: threading.Barrier) -> None:
        for _ in range(20):
            dispatch(Team(2, pool), lambda begin, end: met.append(together.wait(WAIT)), 2, 2)

    met: list[int] = []
    callers = [threading.Thread(target=call, args=(barrier,)) for barrier in barriers]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert sorted(met) == [0] * 40 + [1] * 40 and pool.workers == 1


def test_more_callers_than_slots_do_not_disturb_each_other(pool: Pool) -> None:
    wrong: list[int] = []

    def call(number: int) -> None:
        for tasks in range(1, 60):
            done: list[int] = []
            dispatch(
                Team(3, pool),
                lambda begin, end, done=done: done.extend(range(begin, end)),
                tasks,
                7,
            )
            if sorted(done) != list(range(tasks)):
                wrong.append(number)

    callers = [threading.Thread(target=call, args=(number,)) for number in range(SLOTS + 4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert wrong == []


COUNTING = """
define void @count(ptr %sums, i64 %begin, i64 %end, i64 %step) {
entry:
 %row = mul i64 %step, 2
 %here = getelementptr i64, ptr %sums, i64 %row
 %other = getelementptr i64, ptr %here, i64 1
 %tasks = sub i64 %end, %begin
 %ends = add i64 %begin, %end
 %product = mul i64 %tasks, %ends
 %o1 = atomicrmw add ptr %here, i64 %tasks monotonic
 %o2 = atomicrmw add ptr %other, i64 %product monotonic
 ret void
}
define void @repeat(ptr %team, ptr %sums, i64 %jobs, ptr %never) {
entry:
 %dispatch = load ptr, ptr %team
 br label %next
next:
 %job = phi i64 [0, %entry], [%following, %next]
 %size = and i64 %job, 31
 %pieces = add i64 %size, 1
 call void %dispatch(ptr %team, ptr @count, ptr %sums, i64 100, i64 %pieces, i64 3,
  ptr %never)
 %following = add i64 %job, 1
 %more = icmp ult i64 %following, %jobs
 br i1 %more, label %next, label %exit
exit:
 ret void
}
"""


def test_no_piece_is_lost_or_done_twice_however_quick_jobs_are(pool: Pool) -> None:
    engine, jobs = engine_of(COUNTING), 40_000
    arguments = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p
    repeat = ctypes.CFUNCTYPE(None, *arguments)(engine.address("repeat"))
    sums = np.zeros((3, 3, 2), np.int64)

    def call(row: np.ndarray) -> None:
        team = Team(3, pool)
        team.gather()
        repeat(team.address, row.ctypes.data, jobs, NEVER.address)

    callers = [threading.Thread(target=call, args=(row,)) for row in sums]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert (sums == [100 * jobs, 100 * 100 * jobs]).all()


@pytest.mark.parametrize("pieces", [1, 2, 5, 7])
def test_a_step_begins_when_all_tasks_of_the_one_before_are_done(pool: Pool, pieces: int) -> None:
    team, done = Team(3, pool), []
    team.gather()
    kernel = KERNEL(lambda _, begin, end, step: done.extend((step, at) for at in range(begin, end)))
    DISPATCH(team.dispatch)(team.address, kernel, None, 7, pieces, 40, NEVER.address)
    assert [step for step, _ in done] == [step for step in range(40) for _ in range(7)]
    assert sorted(done) == [(step, at) for step in range(40) for at in range(7)]


def test_after_closing_callers_work_alone(pool: Pool) -> None:
    team, seen = Team(3, pool), set[int]()
    team.gather()
    pool.close()
    assert pool.workers == 0
    for one in (team, Team(9, pool)):
        dispatch(one, lambda begin, end: seen.add(threading.get_ident()), 64, 64)
    assert seen == {threading.get_ident()} and pool.workers == 0


def test_workers_leave_signals_to_the_interpreter(pool: Pool) -> None:
    team, together = Team(2, pool), threading.Barrier(2)
    masks: dict[bool, set[int]] = {}

    def look(begin: int, end: int) -> None:
        together.wait(WAIT)
        own = threading.get_ident() == caller
        masks[own] = {int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, ())}

    caller = threading.get_ident()
    dispatch(team, look, 2, 2)
    faults = {signal.SIGILL, signal.SIGBUS, signal.SIGFPE, signal.SIGSEGV}
    own_mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    blocked = signal.pthread_sigmask(signal.SIG_SETMASK, own_mask)
    assert masks[False] == {int(number) for number in blocked - faults}
    assert not masks[True]


MODES = """
define void @read(ptr %modes) {
 SAVE_MODES
 ret void
}
define void @write(ptr %modes) {
 LOAD_MODES
 ret void
}
"""
FLUSHING, ROUNDING, RAISED = {
    "x86_64": (0x8000, 0x6000, 0x3F), "aarch64": (1 << 24, 3 << 22, 0)
}.get(MACHINE, (0, 0, 0))  # fmt: skip
"""Bits of the word of modes: tiny results are 0; rounding towards 0; what was raised so far."""


def test_workers_round_and_flush_as_their_caller_does(pool: Pool) -> None:
    assert HOST is not None
    text = MODES.replace("SAVE_MODES", HOST.save_modes).replace("LOAD_MODES", HOST.load_modes)
    engine = engine_of(HOST.declarations + text)
    access = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    read, write = access(engine.address("read")), access(engine.address("write"))
    team, before, modes = Team(2, pool), ctypes.c_uint64(), ctypes.c_uint64()
    team.gather()
    together, found = threading.Barrier(2), list[int]()

    def look(begin: int, end: int) -> None:
        together.wait(WAIT)
        own = ctypes.c_uint64()
        read(ctypes.addressof(own))
        found.append(own.value & ~RAISED)

    read(ctypes.addressof(before))
    usual = before.value & ~(RAISED | FLUSHING | ROUNDING)
    wanted = [usual | flags for flags in (FLUSHING, ROUNDING, 0)]
    for modes.value in wanted:
        write(ctypes.addressof(modes))
        try:
            dispatch(team, look, 2, 2)
        finally:
            write(ctypes.addressof(before))
    assert found == [flags for flags in wanted for _ in range(2)]


def test_results_do_not_depend_on_threads() -> None:
    model, given = shared_model(), feeds()
    results = [compile_model(model, threads=count).run(given)[0] for count in (1, 2, 3, 7)]
    np.testing.assert_allclose(results[0], sx.evaluate(model, given)[0], rtol=1e-3, atol=1e-3)
    assert len({result.tobytes() for result in results}) == 1
    assert POOL.workers == POOL.asked >= 6


CHILDREN = sorted((Path(__file__).parent / "processes").glob("[!_]*.py"))


@pytest.mark.parametrize("script", CHILDREN, ids=lambda path: path.stem)
def test_processes(script: Path) -> None:
    """Each script says in its first line what must hold; it ends well and says nothing."""
    fork_warns = ["-W", "ignore::DeprecationWarning"]
    command = [sys.executable, *fork_warns, "-m", f"tests.compiler.processes.{script.stem}"]
    found = subprocess.run(
        command, cwd=script.parents[3], capture_output=True, text=True, timeout=600, check=False
    )
    if found.returncode == 77:
        pytest.skip(found.stdout.strip())
    assert (found.returncode, found.stdout, found.stderr) == (0, "", "")
