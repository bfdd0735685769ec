"""The verbs that run a model."""

import json
import wave
from pathlib import Path

import numpy as np
import pytest

import sardonyx as sx
from tests.cli.invoke import DIGITS, DIGITS_INPUT, fails, invoke, told

HEAD = '<ir_version: 10, opset_import: ["": 21]>'


@pytest.fixture
def double(tmp_path: Path) -> Path:
    """A model y = x + x, with z = -y behind it."""
    path = tmp_path / "double.onnx"
    text = "g (float[n,2] x) => (float[n,2] z) { y = Add(x, x)  z = Neg(y) }"
    sx.save(sx.load_text(HEAD + text), path)
    return path


def identity(path: Path, type_: str) -> Path:
    """A model that returns its only input, of some type."""
    sx.save(sx.load_text(f"{HEAD} g ({type_} x) => ({type_} y) {{ y = Identity(x) }}"), path)
    return path


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("zeros", [[0, 0], [0, 0], [0, 0]]),
        ("ones", [[-2, -2], [-2, -2], [-2, -2]]),
        ("[[1, 2], [3, 4]]", [[-2, -4], [-6, -8]]),
    ],
)
def test_made_up_and_written_inputs(double: Path, how: str, expected: list[list[float]]) -> None:
    said = told("run", double, "--input", f"x={how}", "--dim", "n=3")
    assert said["outputs"]["z"]["values"] == expected


def test_random_inputs_follow_the_seed(double: Path) -> None:
    values = [told("run", double, "--seed", seed)["outputs"]["z"]["values"] for seed in (1, 1, 2)]
    assert values[0] == values[1] != values[2]


@pytest.mark.parametrize("suffix", ["npy", "npz", "pb", "json"])
def test_files(double: Path, tmp_path: Path, suffix: str) -> None:
    array = np.array([[1, 2]], np.float32)
    path = tmp_path / f"x.{suffix}"
    match suffix:
        case "npy":
            np.save(path, array)
        case "npz":
            np.savez(path, x=array, other=array[0])
        case "pb":
            sx.save_tensor(sx.Tensor(array, "x"), path)
        case "json":
            path.write_text(json.dumps(array.tolist()))
    for word in (f"x={path}", path):
        said = told("run", double, "--input", word)
        assert said["outputs"]["z"]["values"] == [[-2, -4]]


def test_images(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    image.new("RGB", (8, 4), (255, 0, 51)).save(tmp_path / "red.png")
    floats = identity(tmp_path / "floats.onnx", "float[1,3,2,2]")
    values = told("run", floats, "--input", tmp_path / "red.png")["outputs"]["y"]["values"]
    assert np.allclose(np.array(values)[0, :, 0, 0], [1, 0, 0.2])
    last = identity(tmp_path / "last.onnx", "uint8[n,h,w,3]")
    said = told("run", last, "--input", tmp_path / "red.png")["outputs"]["y"]
    assert said["shape"] == [1, 4, 8, 3] and said["values"][0][0][0] == [255, 0, 51]
    gray = identity(tmp_path / "gray.onnx", "float[1,1,h,w]")
    assert told("run", gray, "--input", tmp_path / "red.png")["outputs"]["y"]["shape"] == [
        1, 1, 4, 8,
    ]  # fmt: skip


def test_sound(tmp_path: Path) -> None:
    with wave.open(str(tmp_path / "tone.wav"), "wb") as sound:
        sound.setnchannels(2)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        sound.writeframes(np.array([[16384, 0], [-32768, -32768]], "<i2").tobytes())
    path = identity(tmp_path / "sound.onnx", "float[batch,samples]")
    said = told("run", path, "--input", tmp_path / "tone.wav")
    assert said["outputs"]["y"]["values"] == [[0.25, -1.0]]


def test_maps_from_json(tmp_path: Path) -> None:
    model = sx.load_text(
        '<ir_version: 10, opset_import: ["": 21, "ai.onnx.ml": 3]>'
        "g (map(int64, float) x) => (float[1,n] y)"
        "{ y = ai.onnx.ml.DictVectorizer<int64_vocabulary = [3, 5]>(x) }"
    )
    sx.save(model, tmp_path / "map.onnx")
    said = told("run", tmp_path / "map.onnx", "--input", 'x={"5": 1.5}')
    assert np.ravel(said["outputs"]["y"]["values"]).tolist() == [0, 1.5]
    assert "cannot be made up" in fails("run", tmp_path / "map.onnx")


def test_intermediates(double: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.npz"
    said = told("run", double, "--input", "x=ones", "--intermediates", "^y$", "--output", out)
    assert said["intermediates"]["y"]["values"] == [[2, 2]]
    assert sorted(np.load(out).files) == ["y", "z"]
    assert told("run", double)["intermediates"] == {}


def test_bench(double: Path) -> None:
    said = told("bench", double, "-n", "3", "--dim", "n=2")
    times = said["timings"]["sardonyx"]
    assert len(times["seconds"]) == 3 and times["best"] == min(times["seconds"])
    assert "median" in invoke("bench", double, "-n", "2").stdout


def test_precision() -> None:
    for verb in ("run", "bench"):
        assert told(verb, DIGITS, "--precision", "medium")["providers"] == ["CPUExecutionProvider"]
        assert "no precision 'low'; choose" in fails(verb, DIGITS, "--precision", "low")


def test_bench_against_a_peer(double: Path) -> None:
    pytest.importorskip("onnxruntime")
    said = told("bench", double, "-n", "3", "--against", "onnxruntime")
    assert {len(item["seconds"]) for item in said["timings"].values()} == {3}
    assert list(said["timings"]) == ["sardonyx", "onnxruntime"]


def test_bench_against_two_peers_with_threads_and_a_batch(double: Path) -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("openvino")
    words = ("bench", double, "-n", "2", "--against", "onnxruntime,openvino", "--threads", "1")
    said = told(*words, "--batch", "3")
    assert list(said["timings"]) == ["sardonyx", "onnxruntime", "openvino"]
    assert said["threads"] == 1
    lines = invoke(*words).stdout.splitlines()
    bars = [line for line in lines if line.lstrip().split(" ")[-1] == "ms" and "#" in line]
    assert [line.split()[0] for line in bars] == ["sardonyx", "onnxruntime", "openvino"]


def test_batch_needs_an_open_first_dimension(tmp_path: Path) -> None:
    path = identity(tmp_path / "fixed.onnx", "float[2,3]")
    assert "first dimension open" in fails("bench", path, "--batch", "4")


def test_compare_with_openvino(double: Path) -> None:
    pytest.importorskip("openvino")
    assert told("compare", double, "--against", "openvino")["agrees"] is True


def test_all_inputs_filled_alike(tmp_path: Path) -> None:
    path = tmp_path / "sum.onnx"
    text = "g (float[2] a, float[2] b) => (float[2] c) { c = Add(a, b) }"
    sx.save(sx.load_text(HEAD + text), path)
    assert told("run", path, "--input", "ones")["outputs"]["c"]["values"] == [2, 2]


def test_run_shows_ranges_and_what_is_not_finite(tmp_path: Path) -> None:
    path = identity(tmp_path / "same.onnx", "float[n]")
    shown = invoke("run", path, "--input", "[1, 2.5, 1e400, -3]").stdout
    assert "-3 .. 2.5, 1 not finite" in shown and "1 2.5 inf -3" in shown
    assert "…" in invoke("run", path, "--dim", "n=100").stdout


def test_profile_beside_the_limits_of_the_machine(double: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    said = told("profile", double, "--roofline", "--threads", "1", "--trace", trace)
    assert said["limits"]["flops"] > 0 and said["limits"]["bytes"] > 0
    assert all(item["seconds"] > 0 and item["share"] >= 0 for item in said["kernels"])
    assert any(item["bytes"] > 0 for item in said["kernels"]) and trace.is_file()


def test_profile_and_its_trace(double: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    said = told("profile", double, "--trace", trace, "-n", "4")
    assert [item["calls"] for item in said["operators"]] == [1]
    assert {item["output"] for item in said["nodes"]} == {"map 0"}
    events = json.loads(trace.read_text())
    assert len(events) == 4 and all(event["ph"] == "X" for event in events)
    assert len(told("profile", double, "--top", "1")["nodes"]) == 1


def test_compare_finds_the_first_node(double: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A peer that adds wrongly is caught at the addition, not at what comes behind it."""
    from types import SimpleNamespace

    from sardonyx.cli import peers

    class Wrong:
        def __init__(self, content: bytes, providers: object = None) -> None:
            model = sx.load(content)
            assert model.graph is not None
            for node in model.graph.nodes:
                if node.op_type == "Add":
                    node.op_type = "Sub"
            self._session = sx.InferenceSession(model)

        def run(self, names: object, feeds: dict[str, object]) -> object:
            return self._session.run(None, feeds)

    monkeypatch.setattr(
        peers, "import_module", lambda name: SimpleNamespace(InferenceSession=Wrong)
    )
    said = told("compare", double, "--against", "wrong", "--input", "x=ones", code=1)
    assert said["agrees"] is False
    assert said["outputs"][0]["largest"] == 2
    assert said["first_value"]["name"] == "y" and "Add" in said["first_node"]
    shown = invoke("compare", double, "--against", "wrong", code=1).stdout
    assert "first difference: node of 'y' (Add)" in shown


def test_mistakes(double: Path, tmp_path: Path) -> None:
    assert "no input 'w'" in fails("run", double, "--input", "w=ones")
    assert "cannot open" in fails("run", double, "--input", "x=absent.npy")
    assert "cannot open" in fails("bench", tmp_path / "absent.onnx")
    (tmp_path / "bad.npy").write_bytes(b"no array")
    assert "cannot read arrays" in fails("run", double, "--input", f"x={tmp_path / 'bad.npy'}")
    (tmp_path / "bad.json").write_text("[1,")
    assert "JSON" in fails("profile", double, "--input", f"x={tmp_path / 'bad.json'}")
    (tmp_path / "bad.wav").write_bytes(b"no sound")
    assert "sound" in fails("run", double, "--input", f"x={tmp_path / 'bad.wav'}")
    assert "expects float[n,2]" in fails("run", double, "--input", "x=[[1, 2, 3]]")
    assert "available are" in fails("run", double, "--provider", "Nobody")
    assert "regular expression" in fails("run", double, "--intermediates", "(")
    (tmp_path / "bad.txt").write_text("1 2")
    assert "give one of: .npy" in fails("run", double, "--input", f"x={tmp_path / 'bad.txt'}")
    assert "not the name of a package" in fails("bench", double, "--against", "../x")
    assert "is not installed" in fails("compare", double, "--against", "no_such_runtime")
    assert "no runtime" in fails("bench", double, "--against", "json")
    assert "dynamic dimension 'm'; the dynamic dimensions are: n" in fails(
        "run", double, "--dim", "m=2"
    )
    assert "cannot write" in fails("run", double, "--output", tmp_path / "no" / "out.npz")
    assert "whole number" in fails("run", double, "--dim", "n=-1")
    assert not list(tmp_path.glob("*.tmp")) and not list(tmp_path.glob(".*"))


def test_an_error_in_a_made_up_run_names_the_free_dimensions(tmp_path: Path) -> None:
    path = tmp_path / "conv.onnx"
    text = "g (float[1,1,n] x, float[1,1,3] w) => (float[1,1,m] y) { y = Conv(x, w) }"
    sx.save(sx.load_text(HEAD + text), path)
    assert "size 1 in n: try --dim" in fails("run", path)
    assert told("run", path, "--dim", "n=5")["outputs"]["y"]["shape"] == [1, 1, 3]


def test_usage_errors_exit_with_2(double: Path) -> None:
    for words in (
        ["run"],
        ["bench", double, "-n", "0"],
        ["bench", double, "--threads", "0"],
        ["run", double, "--bogus"],
        ["view", double, "--port", "99999"],
        ["fly"],
    ):
        assert invoke(*words, code=2).stderr


def test_the_recorded_image_is_a_known_digit() -> None:
    said = told("run", DIGITS, "--input", f"pixels={DIGITS_INPUT}")
    assert max(said["outputs"]["probabilities"]["values"][0]) > 0.5


def test_compare_with_another_model(double: Path, tmp_path: Path) -> None:
    assert told("compare", double, "--against", str(double))["agrees"] is True
    model = sx.load(double)
    for node in model.graph.nodes:
        if node.op_type == "Add":
            node.op_type = "Sub"
    sx.save(model, tmp_path / "other.onnx")
    other = str(tmp_path / "other.onnx")
    said = told("compare", double, "--against", other, "--input", "x=ones", code=1)
    assert said["first_node"] == "node of 'y' (Sub)"
