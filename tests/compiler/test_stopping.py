"""Runs that are stopped from outside, wherever they are."""

import pickle
import threading
import time
from copy import deepcopy

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.errors import CancelledError, EvaluationError, InputError, WorkLimitError
from tests.compiler.cases_long import HEAD, LATER, LONG, long_model, whole

BOUND = 1.0
"""Seconds after which a run must have ended; it takes milliseconds where there is nothing else."""
FEW = ("range", "rows", "product", "lstm", "sort", "boxes", "loop", "branch")
CASES = [
    pytest.param(kind, threads, marks=[] if kind in FEW and threads == 1 else pytest.mark.slow)
    for kind in LONG
    for threads in (1, 2)
]


def seconds_to_stop(kind: str, threads: int) -> float:
    """How long a run goes on after it was told to stop."""
    model, feeds = long_model(kind)
    options = sx.SessionOptions()
    options.intra_op_num_threads = threads
    session = sx.InferenceSession(model, options)
    run_options, ended, caught = sx.RunOptions(), [], []

    def work() -> None:
        try:
            session.run(None, feeds, run_options)
        except CancelledError as error:
            caught.append(error)
        ended.append(time.perf_counter())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(0.5)
    assert thread.is_alive(), "the run was over too soon to be stopped"
    begin = time.perf_counter()
    run_options.terminate = True
    thread.join(60)
    assert caught, "it was not stopped"
    return ended[0] - begin


@pytest.mark.parametrize(("kind", "threads"), CASES)
def test_a_run_is_stopped_inside_of_a_kernel(kind: str, threads: int) -> None:
    assert seconds_to_stop(kind, threads) < BOUND


FILLED = f"{HEAD} g (int64[1] n) => (float y) {{ c = ConstantOfShape(n) y = ReduceSum <keepdims = 0> (c) }}"  # noqa: E501


def test_others_go_on_where_one_run_is_stopped() -> None:
    session = sx.InferenceSession(sx.load_text(FILLED))
    stopped, going = sx.RunOptions(), sx.RunOptions()
    caught: list[Exception] = []

    def work() -> None:
        try:
            session.run(None, {"n": whole(LATER)}, stopped)
        except CancelledError as error:
            caught.append(error)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert session.run(None, {"n": whole(100)}, going) == [0.0]
    time.sleep(0.2)
    stopped.terminate = True
    stopped.terminate = False
    for thread in threads:
        thread.join(60)
    assert len(caught) == 2
    assert session.run(None, {"n": whole(100)}, stopped) == [0.0]


def test_options_are_copied_without_their_runs() -> None:
    options = sx.RunOptions()
    with options.stopping() as stop:
        twin, other = deepcopy(options), pickle.loads(pickle.dumps(options))
        twin.terminate = other.terminate = True
        assert not stop.is_set and not options.terminate
        options.terminate = True
        assert stop.is_set


@pytest.mark.parametrize(
    ("size", "said"),
    [(1 << 51, r"about \d{16,} .*sardonyx.work_limit"), (1 << 62, "larger than any memory")],
)
def test_work_beyond_the_limit_is_refused(size: int, said: str) -> None:
    session = sx.InferenceSession(sx.load_text(FILLED))
    with pytest.raises(EvaluationError, match=said):
        session.run(None, {"n": whole(size)})
    assert session.run(None, {"n": whole(100)}) == [0.0]


def test_the_limit_of_work_is_set_by_an_entry() -> None:
    options = sx.SessionOptions()
    options.add_session_config_entry("sardonyx.work_limit", "1000")
    text = f"{HEAD} g (float[n, k] a, float[k, n] b) => (float[n, n] y) {{ y = MatMul(a, b) }}"
    session = sx.InferenceSession(sx.load_text(text), options)
    small, large = np.ones((4, 4), np.float32), np.ones((30, 30), np.float32)
    assert session.run(None, {"a": small, "b": small})[0][0, 0] == 4
    with pytest.raises(WorkLimitError, match=r"limit is 1000.*MatMul"):
        session.run(None, {"a": large, "b": large})
    options.add_session_config_entry("sardonyx.work_limit", "0")
    with pytest.raises(InputError, match="work_limit"):
        sx.InferenceSession(sx.load_text(text), options)


PROVIDERS = ("CPUExecutionProvider", "ReferenceExecutionProvider")
ROUNDS = """g (int64 count, bool go, float[1] x) => (float[1] y) {
 y = Loop(count, go, x) <body = b (int64 i, bool c, float[1] v) => (bool d, float[1] w) {
  d = Identity(c) w = Add(v, v) }> }"""


def rounds(count: int) -> dict[str, np.ndarray]:
    """What to feed for a loop of so many rounds."""
    return {"count": np.array(count), "go": np.array(True), "x": np.ones(1, np.float32)}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_loop_without_end_is_refused(provider: str) -> None:
    session = sx.InferenceSession(sx.load_text(HEAD + ROUNDS), providers=[provider])
    with pytest.raises(WorkLimitError, match=r"the loop would take .*sardonyx.work_limit"):
        session.run(None, rounds(1 << 62))
    assert session.run(None, rounds(3))[0] == [8.0]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_loops_inside_each_other_count_together(provider: str) -> None:
    text = """g (int64 count, float[1] x) => (float[1] y) {
     y = Loop(count, , x) <body = b (int64 i, bool c, float[1] v) => (bool d, float[1] w) {
      many = Constant <value = int64 {1048576}> () d = Identity(c)
      w = Loop(many, , v) <body = k (int64 j, bool e, float[1] q) => (bool f, float[1] r) {
       f = Identity(e) r = Add(q, q) }> }> }"""
    session = sx.InferenceSession(sx.load_text(HEAD + text), providers=[provider])
    with pytest.raises(WorkLimitError, match="the loop would take"):
        session.run(None, {"count": np.array(1 << 20), "x": np.ones(1, np.float32)})


@pytest.mark.parametrize("inner", [None, "y"])
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_loop_is_stopped_between_rounds(provider: str, inner: str | None) -> None:
    session = sx.InferenceSession(sx.load_text(HEAD + ROUNDS), providers=[provider])
    options = sx.RunOptions()
    timer = threading.Timer(0.3, lambda: setattr(options, "terminate", True))
    timer.start()
    with pytest.raises(CancelledError):
        session.run(None, rounds(1 << 30), options, intermediates=inner)
    timer.join()
