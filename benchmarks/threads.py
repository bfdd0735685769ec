"""What sharing work among threads costs and brings.

    python -m benchmarks.threads [--threads 2] [--runs 40]

Fork-join: a job whose pieces, one for each thread, wait for each other, so that all threads must
come. Idle: processor time of a process whose workers have nothing to do. Then kernels bound by
memory and by arithmetic at one thread and at several, and two callers at once beside one after the
other. Runs alternate; times are best and median.
"""

import argparse
import ctypes
import statistics
import threading
import time
from collections.abc import Callable
from functools import partial

import numpy as np

import sardonyx as sx
from sardonyx.compiler.emit_engine import compile_module
from sardonyx.compiler.engine import load_code
from sardonyx.compiler.host import host_target
from sardonyx.compiler.program import compile_model
from sardonyx.compiler.threads import POOL, Team
from sardonyx.runtime.processors import thread_limits

MEETING = r"""
define void @meet(ptr %place, i64 %begin, i64 %end) {
entry:
 %other = getelementptr i64, ptr %place, i64 1
 %threads = load i64, ptr %other
 %came = atomicrmw add ptr %place, i64 1 seq_cst
 %rounds = udiv i64 %came, %threads
 %round = add i64 %rounds, 1
 %wanted = mul i64 %round, %threads
 br label %wait
wait:
 %now = load atomic i64, ptr %place acquire, align 8
 %all = icmp uge i64 %now, %wanted
 br i1 %all, label %exit, label %wait
exit:
 ret void
}

define void @repeat(ptr %team, ptr %place, i64 %threads, i64 %times) {
entry:
 %dispatch = load ptr, ptr %team
 br label %next
next:
 %number = phi i64 [0, %entry], [%following, %next]
 call void %dispatch(ptr %team, ptr @meet, ptr %place, i64 %threads, i64 %threads)
 %following = add i64 %number, 1
 %more = icmp ult i64 %following, %times
 br i1 %more, label %next, label %exit
exit:
 ret void
}
"""


def timed(call: Callable[[], object], count: int = 1) -> float:
    """Seconds of one of `count` calls that `call` makes."""
    begin = time.perf_counter()
    call()
    return (time.perf_counter() - begin) / count


def row(name: str, times: list[float]) -> str:
    """Best and median, in microseconds."""
    return f"{name:42s} {min(times) * 1e6:11.2f} {statistics.median(times) * 1e6:11.2f}"


def fork_join(threads: int, runs: int) -> None:
    """Latency of a job with workers that spin, and with workers that sleep."""
    begin = time.perf_counter()
    team = Team(threads)
    team.gather()
    print(f"{'pool made, ms':42s} {(time.perf_counter() - begin) * 1e3:11.2f}")
    engine = load_code([compile_module(MEETING, host_target())])
    arguments = [ctypes.c_void_p] * 2 + [ctypes.c_int64] * 2
    repeat = ctypes.CFUNCTYPE(None, *arguments)(engine.address("repeat"))
    place = np.array([0, threads], np.int64)
    awake, asleep = [], []

    def meet(times: int) -> None:
        repeat(team.address, place.ctypes.data, threads, times)

    for _ in range(runs):
        time.sleep(0.003)
        asleep.append(timed(lambda: meet(1)))
        awake.append(timed(lambda: meet(20), 20))
    print(row("fork-join, workers awake, us", awake))
    print(row("fork-join, workers asleep, us", asleep))


def idle(seconds: float) -> None:
    """Processor time while nothing is to do."""
    time.sleep(0.01)
    before, begin = time.process_time(), time.perf_counter()
    time.sleep(seconds)
    spent = (time.process_time() - before) / (time.perf_counter() - begin)
    print(f"{'idle, % of a processor':42s} {spent * 100:11.4f}   ({POOL.workers} workers)")


def kernels() -> dict[str, tuple[sx.Model, dict[str, np.ndarray]]]:
    """Models of one kernel each, with feeds."""
    head = '<ir_version: 10, opset_import: ["": 21]>'
    rng = np.random.default_rng(0)
    wide, long = (rng.standard_normal(shape, np.float32) for shape in ((512, 512), (2048, 4096)))
    product = "g (float[n,512] x, float[512,m] w) => (float[n,m] y) { y = MatMul(x, w) }"
    small = {"x": wide[:64], "w": wide[:, :128]}
    return {
        "memory, 8M elements": (
            sx.load_text(
                head + "g (float[n,m] x) => (float[n,1] y)"
                " { a = Constant<value_ints = [1]>() y = ReduceMax(x, a) }"
            ),
            {"x": long},
        ),
        "memory, 8M results, fresh": (
            sx.load_text(head + "g (float[n,m] x) => (float[n,m] y) { y = Add(x, x) }"),
            {"x": long},
        ),
        "arithmetic, 512x512x512": (sx.load_text(head + product), {"x": wide, "w": wide}),
        "arithmetic, 64x512x128": (
            sx.load_text(head + product),
            {name: np.ascontiguousarray(array) for name, array in small.items()},
        ),
    }


def scaling(threads: int, runs: int) -> None:
    """Kernels at one thread and at several, and two callers at once."""
    for name, (model, feeds) in kernels().items():
        one, many = (compile_model(model, threads=count) for count in (1, threads))
        same = one.run(feeds)[0].tobytes() == many.run(feeds)[0].tobytes()
        alone, together = [], []
        for _ in range(runs):
            alone.append(timed(partial(one.run, feeds)))
            many.run(feeds)
            together.append(timed(partial(many.run, feeds)))
        print(row(f"{name}: 1 thread", alone))
        print(row(f"{name}: {threads}", together), end="")
        print(f"   best {min(alone) / min(together):.2f}x, equal bits: {same}")
        callers(partial(many.run, feeds), max(2, runs // 10))


def callers(run: Callable[[], object], runs: int) -> None:
    """Two threads that run a program at once, beside as many runs in one thread."""

    def several(count: int) -> None:
        for _ in range(count):
            run()

    def at_once() -> None:
        threads = [threading.Thread(target=several, args=(10,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    single, double = [], []
    for _ in range(runs):
        single.append(timed(partial(several, 20), 20))
        double.append(timed(at_once, 20))
    print(row("    one caller, a run", single))
    print(row("    two callers at once, a run", double))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=thread_limits().threads)
    parser.add_argument("--runs", type=int, default=40)
    given = parser.parse_args()
    print(f"{'':42s} {'best':>11s} {'median':>11s}")
    fork_join(given.threads, given.runs)
    idle(2.0)
    scaling(given.threads, given.runs)


if __name__ == "__main__":
    main()
