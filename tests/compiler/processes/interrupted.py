"""Ctrl-C ends a run that takes long, and only that; handlers that do not raise end nothing."""

import os
import signal
import threading
import time

import numpy as np

import sardonyx as sx
from tests.compiler.cases_long import LATER, floats, long_model, whole
from tests.compiler.test_stopping import FILLED

BOUND = 2.0
"""Seconds after which a run must have ended."""
sent: list[float] = []


def send(number: int, wait: float = 0.4) -> None:
    """A signal to this process, a moment later."""

    def kick() -> None:
        time.sleep(wait)
        sent.append(time.perf_counter())
        os.kill(os.getpid(), number)

    threading.Thread(target=kick).start()


def interrupted(session: sx.InferenceSession, feeds: dict, options: sx.RunOptions | None) -> None:
    """Run, and be interrupted soon."""
    send(signal.SIGINT)
    try:
        session.run(None, feeds, options)
    except KeyboardInterrupt:
        passed = time.perf_counter() - sent[-1]
    else:
        raise AssertionError("the run came to its end")
    assert passed < BOUND, f"it took {passed} s"


filled = sx.InferenceSession(sx.load_text(FILLED))
short = {"n": whole(100)}
for options in (None, sx.RunOptions()):
    interrupted(filled, {"n": whole(LATER)}, options)
    assert options is None or not options.terminate
    assert filled.run(None, short, options) == [0.0]
binding = filled.io_binding()
binding.bind_cpu_input("n", whole(LATER))
binding.bind_output("y")
send(signal.SIGINT)
try:
    filled.run_with_iobinding(binding)
except KeyboardInterrupt:
    assert time.perf_counter() - sent[-1] < BOUND
else:
    raise AssertionError("the bound run came to its end")
for kind in ("product", "lstm", "sort", "boxes", "loop", "branch"):
    model, feeds = long_model(kind)
    interrupted(sx.InferenceSession(model), feeds, None)
handled = []
signal.signal(signal.SIGUSR1, lambda number, frame: handled.append(time.perf_counter()))
product = sx.InferenceSession(long_model("product")[0])
square = floats(2500, 2500)
send(signal.SIGUSR1, 0.1)
found = product.run(None, {"a": square, "b": square})[0]
while not handled:
    time.sleep(0.01)
np.testing.assert_allclose(found[0], square[0] @ square, rtol=1e-3)
profiled = sx.SessionOptions()
profiled.enable_profiling = True
interrupted(sx.InferenceSession(sx.load_text(FILLED), profiled), {"n": whole(LATER)}, None)
