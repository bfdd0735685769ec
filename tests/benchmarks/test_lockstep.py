"""Processes that take turns: figures come back, and whoever fails is a row that says so."""

import os
import signal
from pathlib import Path

import numpy as np
import pytest

from benchmarks.lockstep import (
    Contender,
    LostError,
    largest_error,
    read_outputs,
    save_feeds,
    take_turns,
)

DIGITS = Path(__file__).parents[2] / "examples" / "digits.onnx"


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    return save_feeds({"pixels": np.ones((1, 64), np.float32)}, tmp_path / "inputs.npz")


def test_two_runtimes_take_turns_and_agree(tmp_path: Path, inputs: Path) -> None:
    with Contender("sardonyx", 1, 60) as ours, Contender("onnxruntime", 1, 60) as theirs:
        found = []
        for item in (ours, theirs):
            opened = item.open(DIGITS)
            assert opened["create"] > 0
            item.call(inputs, tmp_path / "outputs.npz")
            found.append(read_outputs(tmp_path / "outputs.npz"))
        assert largest_error(*found) < 1e-5
        timings = take_turns([ours, theirs], inputs, runs=5, seconds=20)
        for timing in timings.values():
            assert timing.best is not None and timing.median is not None
            assert 0 < timing.best <= timing.median and len(timing.calls) >= 5
        assert ours.memory() > 0


def test_whoever_fails_is_out_and_the_others_go_on(tmp_path: Path, inputs: Path) -> None:
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"no model")
    with Contender("sardonyx", 1, 60) as ours, Contender("onnxruntime", 1, 60) as theirs:
        ours.open(DIGITS)
        with pytest.raises(LostError, match="failed: "):
            theirs.open(broken)
        timings = take_turns([ours, theirs], inputs, runs=1, seconds=20)
        assert timings["sardonyx"].best is not None
        assert timings["onnxruntime"].best is None
        assert timings["onnxruntime"].problem.startswith("failed: ")


def test_a_process_that_dies_or_hangs_is_told_apart(inputs: Path) -> None:
    with Contender("sardonyx", 1, 60) as ours:
        os.kill(ours.process_id, signal.SIGSEGV)
        with pytest.raises(LostError, match="crashed with signal 11"):
            ours.open(DIGITS)
    with Contender("sardonyx", 1, 0.01) as ours, pytest.raises(LostError, match="timed out"):
        ours.open(DIGITS)


def test_a_model_without_a_module_is_absent_from_torch() -> None:
    pytest.importorskip("torch")
    with Contender("torch", 1, 60) as item, pytest.raises(LostError, match=r"^-$"):
        item.open(DIGITS)


@pytest.mark.parametrize(
    "found, expected, error",
    [
        ([1.0, 2.0], [1.0, 4.0], 0.5),
        ([0.0], [0.0], 0.0),
        ([1e-6], [0.0], 1e-3),
        ([2e-6], [1e-6], 1e-3),
        ([], [], 0.0),
        ([np.nan, 1.0], [np.nan, 1.0], 0.0),
        ([np.inf, 1.0], [np.inf, 1.0], 0.0),
        ([np.inf], [-np.inf], np.inf),
        ([np.nan], [1.0], np.inf),
        ([1.0], [np.nan], np.inf),
        ([1.0], [1.0, 1.0], np.inf),
    ],
)
def test_errors_are_shares_of_the_largest_number(
    found: list[float], expected: list[float], error: float
) -> None:
    assert largest_error([np.array(found)], [np.array(expected)]) == pytest.approx(error)


def test_labels_and_missing_outputs() -> None:
    assert largest_error([np.array(["a"])], [np.array(["a"])]) == 0
    assert largest_error([np.array(["a"])], [np.array(["b"])]) == 1
    assert largest_error([], [np.zeros(1)]) == np.inf
