"""The harness itself: deaths are told with their run, seeds repeat, findings that look alike are
one."""

import os
import signal
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.fuzz import batch as batches
from tests.fuzz.batch import NAMES, Batch, do, generator, warm_up
from tests.fuzz.judge import Finding
from tests.fuzz.trial import Trial


def _model() -> bytes:
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "g", value[:1], value[1:])
    opsets = [helper.make_opsetid("", 21)]
    return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString())


def _calls(acts: dict[int, Any]) -> Any:
    """A generator whose runs do what `acts` says when they are called."""

    def make(seed: int) -> Trial:
        def call(session: Any, feeds: Any) -> Any:
            acts.get(seed, lambda: None)()
            return session.run(None, feeds)

        feeds = {"x": np.ones(2, np.float32)}
        return Trial(_model(), "Neg", lambda _: feeds, lambda _: feeds, call)

    return SimpleNamespace(RUNS=1, SHARE=1, make=make)


@pytest.fixture(scope="module", autouse=True)
def warm() -> None:
    """Children find the compiler loaded."""
    warm_up(())


def _wrong() -> None:
    raise KeyError("foreign")


def test_a_death_is_told_with_its_run_and_the_rest_goes_on(monkeypatch: Any) -> None:
    acts = {
        2: lambda: os.kill(os.getpid(), signal.SIGSEGV),
        4: _wrong,
        5: lambda: time.sleep(60),
        7: lambda: os._exit(3),
    }
    monkeypatch.setattr(batches, "generator", lambda _: _calls(acts))
    monkeypatch.setattr(batches, "SECONDS", 2)
    (done,) = do(iter([Batch("calls", 0, 9)]), 1)
    told = {number: (finding.kind, finding.text) for number, finding in done.findings}
    assert told[2] == ("crash", "ended by SIGSEGV")
    assert told[4][0] == "foreign" and "KeyError" in told[4][1]
    assert told[5][0] == "hang"
    assert told[7] == ("crash", "exited with 3")
    assert set(told) == {2, 4, 5, 7} and done.outcomes["ran"] == 5


def test_other_bits_are_a_finding(monkeypatch: Any) -> None:
    def make(seed: int) -> Trial:
        plain = {"x": np.ones(2, np.float32)}
        odd = {"x": np.ones(2, np.float32) * (1 + seed)}
        return Trial(_model(), "Neg", lambda _: odd, lambda _: plain)

    source = SimpleNamespace(RUNS=1, SHARE=1, make=make)
    monkeypatch.setattr(batches, "generator", lambda _: source)
    (done,) = do(iter([Batch("calls", 0, 2)]), 1)
    assert [number for number, _ in done.findings] == [1, 1]


@pytest.mark.parametrize("name", NAMES)
def test_a_seed_gives_the_same_trial_again(name: str) -> None:
    source = generator(name)
    for seed in range(3):
        one, two = source.make(seed), source.make(seed)
        assert one.model == two.model and one.what == two.what
        if name not in ("arrays",):
            a, b = one.feeds(1), two.feeds(1)
            assert repr(a) == repr(b)


def test_findings_that_differ_in_numbers_and_names_are_one() -> None:
    one = Finding("refusal", "Slice Neg", "shape (3, 4) of 'a' for 17 at 1.5e-3")
    two = Finding("refusal", "Slice Add", "shape (5,) of 'bc' for -2 at nan")
    assert one.key == two.key
    assert one.key != Finding("refusal", "Pad", "shape (3, 4) of 'a' for 17 at 1.5e-3").key
