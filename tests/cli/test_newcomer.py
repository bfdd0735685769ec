"""A newcomer's path over real models: inspect, check, run, compare, profile."""

from pathlib import Path

import numpy as np
import pytest

from tests.cli.invoke import DIGITS, DIGITS_INPUT, invoke, told
from tests.shared_models import FOLDER, needs_models

NAMES = (
    "cnn_mnist_pytorch",
    "conv_qdq_external",
    "knn_imputer_functions",
    "loop_lstm_tiny",
    "lr_mnist_scikit",
    "mnist_8",
    "scan_rnn",
    "sk_rf_iris",
    "sk_titanic",
    "tract_lgbm_classifier",
    "tract_qlstm",
    "voice_commands",
)


def recorded_inputs(folder: Path, target: Path) -> Path:
    """The recorded inputs of a model as a .npz file with the inputs' own names."""
    recorded = np.load(folder / "case0.npz")
    arrays = {name[3:]: recorded[name] for name in recorded.files if name.startswith("in:")}
    np.savez(target, **arrays)
    return target


@needs_models
@pytest.mark.parametrize("name", NAMES)
def test_path(name: str, tmp_path: Path) -> None:
    model = FOLDER / name / "model.onnx"
    feeds = recorded_inputs(FOLDER / name, tmp_path / "inputs.npz")
    facts = told("inspect", model)
    assert facts["inputs"] and facts["outputs"] and facts["nodes"] > 0
    shown = invoke("inspect", model, "--nodes", "--weights").stdout
    assert all(item["name"] in shown for item in facts["inputs"])
    assert told("check", model)["valid"] is True
    ran = told("run", model, "--input", feeds)
    assert list(ran["outputs"]) == [item["name"] for item in facts["outputs"]]
    pytest.importorskip("onnxruntime")
    compared = told("compare", model, "--input", feeds)
    assert compared["agrees"] is True
    assert [item["name"] for item in compared["outputs"]] == list(ran["outputs"])
    profiled = told("profile", model, "--input", feeds)
    assert sum(item["milliseconds"] for item in profiled["operators"]) > 0


def test_path_of_the_example(tmp_path: Path) -> None:
    assert told("inspect", DIGITS)["flops"] == "4736*batch"
    assert told("inspect", DIGITS, "--dim", "batch=2")["flops"] == "9472"
    assert told("check", DIGITS, "--full")["findings"] == []
    outputs = tmp_path / "out.npz"
    shown = invoke("run", DIGITS, "--input", f"pixels={DIGITS_INPUT}", "--output", outputs).stdout
    assert "probabilities" in shown and f"wrote {outputs}" in shown
    assert np.load(outputs)["probabilities"].shape == (1, 10)
    assert list(tmp_path.iterdir()) == [outputs]
    assert "Gemm" in invoke("profile", DIGITS).stdout
    assert told("compare", DIGITS)["agrees"] is True


@needs_models
def test_a_model_that_breaks_rules_is_reported_and_still_runs() -> None:
    model = FOLDER / "bert_toy_optimized" / "model.onnx"
    assert told("check", model, code=1)["valid"] is False
    shown = invoke("check", model, code=1).stdout
    assert "[unsorted]" in shown and "errors" in shown.splitlines()[-1]
    ran = invoke("run", model, "--dim", "max_seq_len_in_batch=3")
    assert ran.stderr.startswith("warning: ")
    assert "prediction_scores" in ran.stdout
