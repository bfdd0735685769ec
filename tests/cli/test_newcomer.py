"""A newcomer's path over real models, in terminals, by nothing but what --help says."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from tests.cli.invoke import (
    DIGITS,
    DIGITS_INPUT,
    ESCAPES,
    in_terminal,
    invoke,
    shown_lines,
    told,
)
from tests.shared_models import FOLDER, needs_models

NAMES = (
    "cnn_mnist_pytorch",
    "conv_qdq_external",
    "dnsmos_model_v8",
    "knn_imputer_functions",
    "loop_lstm_tiny",
    "mnist_8",
    "scan_rnn",
    "sk_rf_iris",
    "tract_qlstm",
    "voice_commands",
)
MARK = "=== exit code"
SESSION = f"""
import json, sys
from sardonyx.cli.main import app

for words in json.loads(sys.argv[1]):
    try:
        code = app(words, prog_name="sardonyx", standalone_mode=False)
    except SystemExit as end:
        code = end.code
    sys.stdout.flush()
    print("{MARK}", code or 0, flush=True)
"""


def recorded_inputs(folder: Path, target: Path) -> Path:
    """The recorded inputs of a model as a .npz file with the inputs' own names."""
    recorded = np.load(folder / "case0.npz")
    arrays = {name[3:]: recorded[name] for name in recorded.files if name.startswith("in:")}
    np.savez(target, **arrays)
    return target


def steps(model: Path, folder: Path) -> list[list[str]]:
    """What a newcomer types."""
    feeds, small, page = (str(folder / name) for name in ("in.npz", "small.onnx", "page.html"))
    path = str(model)
    return [
        ["inspect", path, "--nodes", "--weights"],
        ["check", path],
        ["simplify", path, small, "--verify", "1"],
        ["run", small, "--input", feeds, "--output", str(folder / "out.npz")],
        ["compare", small, "--against", "onnxruntime", "--input", feeds],
        ["profile", small, "--input", feeds],
        ["view", path, "--simplified", "--profile", "--input", feeds, "--html", page],
    ]


def test_help_is_all_one_needs() -> None:
    """Every verb of the path is in `--help`, every option in that of its verb."""
    listed = re.findall(r"^  ([\w-]+) ", invoke("--help").stdout.split("Commands:")[1], re.M)
    for verb, *words in steps(Path("m.onnx"), Path("folder")):
        assert verb in listed
        shown = invoke(verb, "--help").stdout
        assert [word for word in words if word.startswith("--") and word not in shown] == []


@needs_models
@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", NAMES)
def test_path_in_a_terminal(name: str, width: int, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    model = FOLDER / name / "model.onnx"
    recorded_inputs(FOLDER / name, tmp_path / "in.npz")
    words = steps(model, tmp_path)
    content, code = in_terminal(width, json.dumps(words), command=("-c", SESSION))
    assert code == 0, content
    screens = re.split(rf"{MARK} (\d+)\r?\n", content)
    assert screens[1::2] == ["0"] * len(words), content
    facts = told("inspect", model)
    inspect, check, simplify, run, compare, profile, view = (
        " ".join(ESCAPES.sub("", screen).split()) for screen in screens[:-1:2]
    )
    assert all(item["name"][:12] in inspect for item in facts["inputs"] + facts["outputs"])
    assert "no problem found" in check or " 0 errors" in check
    assert "all nodes" in simplify and "wrote" in simplify
    assert all(item["name"][:12] in run for item in facts["outputs"])
    assert "agrees" in compare and " yes" in compare and " NO " not in compare
    assert "slowest nodes" in profile
    assert "wrote" in view and (tmp_path / "page.html").stat().st_size > 40_000
    assert [line for line in shown_lines(content) if len(line) > width + len(str(tmp_path))] == []
    tables = [line for line in shown_lines(content) if "─" in line]
    assert tables and max(map(len, tables)) <= width
    assert "\x1b[1m" in content


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
