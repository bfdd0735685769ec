"""Rows of results: means, ratios, what stays in the file, and what the site makes of it."""

import json
from pathlib import Path

import pytest

from benchmarks.lockstep import Timing
from benchmarks.report import LATENCY, MEANS, PROBLEMS, Results, Row, means, peers_of
from benchmarks.run import latency_rows


def row(model: str, threads: int, **times: float | str) -> Row:
    timings = {
        name: Timing(problem=time) if isinstance(time, str) else Timing([time / 1e3, time / 500])
        for name, time in times.items()
    }
    return latency_rows({"model": model, "input": "1", "threads": threads}, timings)[0]


def test_the_ratio_is_to_the_best_peer_that_ran() -> None:
    found = row("a", 1, sardonyx=2.0, onnxruntime=4.0, openvino=1.0)
    assert (found["best peer"], found["ratio"]) == ("openvino", pytest.approx(2.0))
    found = row("a", 1, sardonyx=2.0, onnxruntime=4.0, openvino="crashed with signal 11")
    assert (found["best peer"], found["ratio"]) == ("onnxruntime", pytest.approx(0.5))
    assert found["openvino"] == "crashed with signal 11"
    assert row("a", 1, sardonyx=2.0, openvino="failed: why")["ratio"] is None
    assert row("a", 1, sardonyx="failed: why", openvino=1.0)["ratio"] is None


def test_means_are_geometric_and_by_threads() -> None:
    rows = [
        row("a", 1, sardonyx=1.0, onnxruntime=2.0, torch=4.0),
        row("b", 1, sardonyx=2.0, onnxruntime=1.0, torch="-"),
        row("c", 2, sardonyx="failed: why", onnxruntime=1.0, torch="-"),
    ]
    one, two = means(rows)
    assert peers_of(rows) == ["onnxruntime", "torch"]
    assert one["the best peer"] == one["onnxruntime"] == pytest.approx(1.0)
    assert (one["torch"], one["cases"], one["won"]) == (pytest.approx(0.25), 2, 1)
    assert (one["without a result"], two["without a result"]) == (0, 1)
    assert two["the best peer"] is None and two["cases"] == 1


def test_results_of_other_models_stay(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    first = Results(path)
    for model in ("a", "b"):
        first.add(LATENCY, row(model, 1, sardonyx=1.0, onnxruntime=2.0))
        first.add(PROBLEMS, {"model": model, "runtime": "torch", "what": "crashed"})
    first.save()
    second = Results(path)
    second.forget(["a"])
    second.save()
    said = json.loads(path.read_text())
    assert [item["model"] for item in said[LATENCY]] == ["b"]
    assert [item["model"] for item in said[PROBLEMS]] == ["b"]
    assert said[MEANS][0]["the best peer"] == pytest.approx(0.5)
    third = Results(path)
    third.forget([])
    assert third.tables[LATENCY] == []
