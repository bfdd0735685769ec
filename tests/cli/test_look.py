"""The verbs that show a model, or what is installed."""

from pathlib import Path

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.cli import doctor
from sardonyx.cli.doctor import find_problems
from tests.cli.invoke import DIGITS, fails, invoke, told
from tests.shared_models import FOLDER, needs_models

HEAD = '<ir_version: 8, opset_import: ["": 11]>'


def write_text_model(path: Path, body: str, head: str = HEAD) -> Path:
    sx.save(sx.load_text(head + body), path)
    return path


def test_inspect_shows_everything_it_knows(tmp_path: Path) -> None:
    model = sx.load_text(
        HEAD + "g (float[n,4] x, float[2] unused) => (y) <float[4,3] w = "
        "{0,0,0,0,0,0,1,2,3,4,5,6}> { y = MatMul(x, w) }"
    )
    model.metadata["author"] = "Ada"
    model.producer_name = "test"
    path = tmp_path / "model.onnx"
    sx.save(model, path, external_data="weights.bin", size_threshold=1)
    facts = told("inspect", path, "--nodes", "--weights", "--graph")
    assert facts["inputs"] == [
        {"name": "x", "type": "float[n,4]"},
        {"name": "unused", "type": "float[2]"},
    ]
    assert facts["outputs"] == [{"name": "y", "type": "float[n,3]"}]
    assert facts["dynamic_dimensions"] == ["n"]
    assert facts["flops"] == "24*n"
    assert facts["metadata"] == {"author": "Ada"}
    assert facts["external_data"] == {"weights.bin": 48}
    assert facts["file_bytes"] == sum(file.stat().st_size for file in tmp_path.iterdir())
    assert any("opset 11 is old" in text for text in facts["warnings"])
    assert any("'unused' is not used" in text for text in facts["warnings"])
    (weight,) = facts["weights"]
    assert (weight["minimum"], weight["maximum"], weight["zeros"]) == (0, 6, 0.5)
    assert facts["node_list"] == [
        {"name": "", "operator": "MatMul", "inputs": ["x", "w"], "outputs": ["y"]}
    ]
    assert "y = MatMul (x, w)" in facts["graph"]
    shown = invoke("inspect", path, "--nodes", "--weights", "--graph").stdout
    for text in ("author: Ada", "24*n FLOPs", "weights.bin", "50.0%", "y = MatMul (x, w)"):
        assert text in shown


def test_inspect_counts_what_is_not_finite(tmp_path: Path) -> None:
    model = sx.load(DIGITS)
    array = np.zeros((64, 32), np.float32)
    array[0, :3] = [np.nan, np.inf, -np.inf]
    assert model.graph is not None
    model.graph.initializers[0].tensor = sx.Tensor(array, "constant")
    sx.save(model, tmp_path / "bad.onnx")
    weight = told("inspect", tmp_path / "bad.onnx", "--weights")["weights"][0]
    assert (weight["nans"], weight["infinities"], weight["maximum"]) == (1, 2, 0)


@needs_models
def test_inspect_finds_functions_and_quantization() -> None:
    facts = told("inspect", FOLDER / "knn_imputer_functions" / "model.onnx")
    assert len(facts["functions"]) == 7
    facts = told("inspect", FOLDER / "mobilenetv2_qdq_maui" / "model.onnx")
    assert facts["quantization"]["QuantizeLinear"] > 0
    facts = told("inspect", FOLDER / "light_resnet50" / "model.onnx")
    assert 8.0e9 < int(facts["flops"]) < 8.3e9


def test_text_and_parse_give_the_model_back(tmp_path: Path) -> None:
    text = invoke("text", DIGITS).stdout
    (tmp_path / "model.txt").write_text(text)
    invoke("parse", tmp_path / "model.txt", tmp_path / "back.onnx")
    assert sx.to_bytes(sx.load(tmp_path / "back.onnx")) == sx.to_bytes(sx.load(DIGITS))
    invoke("parse", "-", tmp_path / "piped.onnx", stdin=text)
    assert (tmp_path / "piped.onnx").read_bytes() == (tmp_path / "back.onnx").read_bytes()
    invoke("text", DIGITS, "--output", tmp_path / "copy.txt")
    assert (tmp_path / "copy.txt").read_text().strip() == text.strip()


@pytest.mark.parametrize(
    ("stage", "opset", "operators"),
    [
        ("load", 11, ["Twice"]),
        ("upgrade", 28, ["Twice"]),
        ("inline", 28, ["Add"]),
        ("infer", 28, ["Add"]),
    ],
)
def test_show_stages(tmp_path: Path, stage: str, opset: int, operators: list[str]) -> None:
    path = write_text_model(
        tmp_path / "f.onnx",
        "g (float[n] x) => (float[n] y) { y = local.Twice(x) }"
        '<domain: "local", opset_import: ["": 11]> Twice (a) => (b) { b = Add(a, a) }',
        '<ir_version: 8, opset_import: ["": 11, "local": 1]>',
    )
    text = invoke("show", path, "--after", stage).stdout
    shown = sx.load_text(text)
    assert shown.graph is not None
    assert shown.opset == opset
    assert [node.op_type for node in shown.graph.nodes] == operators


def test_show_goes_on_into_the_compiler() -> None:
    assert "contraction 0: Gemm, Relu" in invoke("show", DIGITS, "--after", "fuse").stdout
    assert "define" in told("show", DIGITS, "--after", "llvm")["text"]


def test_diff(tmp_path: Path) -> None:
    head = "g (float[n] x) => (float[n] y)"
    left = write_text_model(tmp_path / "a.onnx", head + "{ y = Neg(x) }")
    right = write_text_model(tmp_path / "b.onnx", head + "{ t = Neg(x)  y = Exp(t) }")
    assert invoke("diff", left, left).stdout == "no difference\n"
    said = told("diff", left, right, code=1)
    assert said["equal"] is False and said["structure"][0]["name"] == "Exp"
    assert said["numerics"][0]["name"] == "y"
    shown = invoke("diff", left, right, "--runs", "0", code=1).stdout
    assert "operator  Exp" in shown and "result" not in shown
    assert "cannot open" in fails("diff", left, tmp_path / "absent.onnx")


def test_inspect_remarks_on_whole_numbers(tmp_path: Path) -> None:
    model = sx.load_text(HEAD + "g (int64[n] x) => (int64[n] y) { y = Gather(w, x) }")
    assert model.graph is not None
    table = model.graph.add_initializer(sx.Tensor(np.arange(2048), "w"))
    model.graph.nodes[0].replace_input(0, table)
    sx.save(model, tmp_path / "whole.onnx")
    warnings = told("inspect", tmp_path / "whole.onnx")["warnings"]
    assert any("1 weights are int64 and take 16,384 bytes" in text for text in warnings)


def test_show_leaves_large_weights_out() -> None:
    assert "float[64,32] constant = {...}" in invoke("show", DIGITS, "--after", "load").stdout


def test_explain() -> None:
    said = told("explain", DIGITS)
    assert said["providers"][0].endswith("ExecutionProvider")
    assert [row["node"].split("(")[1] for row in said["nodes"]] == [
        "Gemm)",
        "Relu)",
        "Gemm)",
        "Softmax)",
    ]
    assert "Softmax" in invoke("explain", DIGITS).stdout


def test_coverage_counts_what_it_lists() -> None:
    said = told("coverage", "--operators")
    listed = [item for item in said["operators"] if item["domain"] == "ai.onnx"]
    (counted,) = [item for item in said["domains"] if item["domain"] == "ai.onnx"]
    assert counted["operators"] == len(listed) > 180
    assert "Softmax" in invoke("coverage", "--operators").stdout
    assert "ai.onnx.ml" in invoke("coverage").stdout


def test_coverage_tells_of_the_official_cases() -> None:
    cases = told("coverage")["cases"]
    assert cases["native"] == cases["count"] - len(cases["fallbacks"])
    share = f"{cases['native']} of {cases['count']} ({cases['native'] / cases['count']:.1%})"
    assert share in invoke("coverage").stdout


def test_doctor() -> None:
    said = told("doctor")
    assert said["needed"]["numpy"] == np.__version__
    assert 1 <= said["threads"] <= said["cores"]
    assert said["target"] in said["targets"]
    assert set(said["targets"].values()) == {"runs"}, "the machine's own targets run"
    assert said["problems"] == list(find_problems(said))


def test_doctor_says_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = {
        "needed": {"numpy": None},
        "targets": {"avx512": "died of SIGILL"},
        "target": "avx512",
        "threads": 1,
        "threads_because": "the quota of the container",
        "cpu_quota": 0.5,
        "memory_limit_bytes": 1 << 28,
        "cache": "/caches",
        "cache_problem": "others may write to it",
    }
    monkeypatch.setattr(doctor, "examine", lambda: told_facts | facts)
    told_facts = dict.fromkeys(
        ("sardonyx", "python", "implementation", "system", "processor"), ""
    ) | {"features": [], "cores": 8, "memory_bytes": None, "optional": {"onnx": None}}
    told_facts["problems"] = list(find_problems(facts))
    shown = invoke("doctor").stdout
    for text in ("numpy MISSING", "fails (died of SIGILL)", "has 0.5 processors", "only 256.0 MiB",
                 "the cache /caches is not used"):  # fmt: skip
        assert text in shown


def test_a_probe_that_dies_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    from sardonyx.cli import probe

    end = "import os, signal; os.kill(os.getpid(), signal.SIGILL)"
    start = probe.subprocess.Popen
    monkeypatch.setattr(
        probe.subprocess,
        "Popen",
        lambda words, **options: start([words[0], "-c", end], **options),
    )
    assert set(probe.probe_targets().values()) == {"died of SIGILL"}


def test_check_reports_each_problem_on_a_line(tmp_path: Path) -> None:
    path = write_text_model(
        tmp_path / "m.onnx", "g (float[n] x) => (float[n] y) { y = Relu(x, z) }"
    )
    lines = invoke("check", path, code=1).stdout.splitlines()
    assert len(lines) == 3 and all(line.startswith("error: ") for line in lines[:2])
    assert {item["rule"] for item in told("check", path, code=1)["findings"]} == {
        "undefined-value",
        "too-many-inputs",
    }
    assert invoke("check", DIGITS).stdout.endswith("no problem found\n")


@pytest.mark.parametrize("verb", ["inspect", "check", "text", "show", "explain"])
def test_bad_files(verb: str, tmp_path: Path) -> None:
    assert "cannot open" in fails(verb, tmp_path / "absent.onnx")
    (tmp_path / "damaged.onnx").write_bytes(b"\xff" * 40)
    fails(verb, tmp_path / "damaged.onnx")
    (tmp_path / "empty.onnx").write_bytes(b"")
    assert "empty" in fails(verb, tmp_path / "empty.onnx")
    assert "not a file" in fails(verb, tmp_path)


def test_mistakes() -> None:
    assert "no stage 'later'" in fails("show", DIGITS, "--after", "later")
    assert "available are" in fails("explain", DIGITS, "--provider", "Nobody")
    assert "'n'; the dynamic dimensions are: batch" in fails("inspect", DIGITS, "--dim", "n=2")
    assert "SYMBOL=SIZE" in fails("inspect", DIGITS, "--dim", "batch")
    assert "whole number" in fails("inspect", DIGITS, "--dim", "batch=many")
