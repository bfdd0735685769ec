"""Whether simplified models are valid, give the same results, and are no slower elsewhere."""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime

import sardonyx as sx
from benchmarks.models import Feeds, Model
from sardonyx.runtime.compare import compare_values

ROUNDS = range(3, 16)
"""How often each of two sessions runs, in turns: fewer times where a run is long."""
PATIENCE = 20.0
"""Seconds to spend on a model, about."""


def session(model: bytes | str) -> onnxruntime.InferenceSession:
    """A session of onnxruntime on one thread, quiet, for a model's bytes or file."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model, options, ["CPUExecutionProvider"])


def _distance(found: Sequence[Any], expected: Sequence[Any]) -> float:
    """The largest difference of results, relative to each result's largest number.

    A result whose numbers are all below a hundredth is judged as if they went up to that.
    """
    worst = 0.0
    for mine, other in zip(found, expected, strict=True):
        if not isinstance(other, np.ndarray) or other.dtype.kind not in "fiub":
            worst = max(worst, compare_values("", mine, other).relative)
            continue
        if np.shape(mine) != other.shape:
            return np.inf
        gap = np.abs(np.asarray(mine, np.float64) - other.astype(np.float64))
        worst = max(worst, float(gap.max(initial=0) / max(np.abs(other).max(initial=0), 1e-2)))
    return worst


def judge(model: Model) -> str:
    """Check a simplified model, and run it in onnxruntime and here, each beside the original."""
    small = sx.to_bytes(sx.simplify(sx.load(model.path)))
    notes = []
    before, after = refusal(str(model.path)), refusal(small)
    if before or after:
        notes.append(
            f"checker {'refuses the original' if before else 'REFUSES'}: {before or after}"
        )
    try:
        expected = session(str(model.path)).run(None, model.feeds)
    except Exception as error:  # noqa: BLE001 - whatever it raises is the answer
        notes.append(f"onnxruntime does not run the original: {str(error).splitlines()[0][:120]}")
        return "; ".join(notes)
    theirs = _distance(session(small).run(None, model.feeds), expected)
    found = sx.InferenceSession(small).run(None, model.feeds)
    ours = _distance(found, sx.InferenceSession(str(model.path)).run(None, model.feeds))
    verdict = "agrees" if max(theirs, ours) < 1e-4 else "DIFFERS"
    if (apart := _distance(found, expected)) >= 1e-4:
        notes.append(f"the runtimes differ by {apart:.1e} on the original too")
    return "; ".join([f"{verdict}: onnxruntime {theirs:.1e}, sardonyx {ours:.1e}", *notes])


def refusal(model: bytes | str) -> str:
    """Why onnx.checker refuses a model's bytes or file; empty where it does not."""
    try:
        onnx.checker.check_model(model, full_check=True)
    except Exception as error:  # noqa: BLE001 - inference inside it raises what it likes
        return str(error).splitlines()[0][:120]
    return ""


def print_verdicts(models: Sequence[Model]) -> None:
    """One line a model."""
    for model in models:
        try:
            verdict = judge(model)
        except Exception as error:  # noqa: BLE001 - one model's failure is a line of the table
            verdict = f"FAILS: {type(error).__name__}: {str(error).splitlines()[0][:100]}"
        print(f"{model.name:24} {verdict}", flush=True)


def _seconds(run: onnxruntime.InferenceSession, feeds: Feeds) -> float:
    """Processor time of a run on its one thread, which other load on the machine changes less."""
    begin = time.process_time()
    run.run(None, feeds)
    return time.process_time() - begin


def print_times(models: Sequence[Model]) -> None:
    """onnxruntime on the simplified model over onnxruntime on the original: best and median."""
    print(
        f"{'model':24} {'before ms':>10} {'after ms':>10} {'best':>6} {'median':>6} {'spread':>6}"
    )
    for model in models:
        feeds = model.feeds
        before = session(str(model.path))
        after = session(sx.to_bytes(sx.simplify(sx.load(model.path))))
        first, second = [], []
        once = max(_seconds(before, feeds), _seconds(after, feeds), 1e-6)
        repeat = 1 + int(0.02 / once)
        rounds = min(max(int(PATIENCE / (2 * repeat * once)), ROUNDS[0]), ROUNDS[-1])
        for _ in range(rounds):
            for times, run in ((first, before), (second, after)):
                times.append(min(_seconds(run, feeds) for _ in range(repeat)))
        best, middle = min(second) / min(first), np.median(second) / np.median(first)
        spread = np.median(first) / min(first)
        print(
            f"{model.name:24} {min(first) * 1e3:10.3f} {min(second) * 1e3:10.3f} {best:6.2f} "
            f"{middle:6.2f} {spread:6.2f}",
            flush=True,
        )
