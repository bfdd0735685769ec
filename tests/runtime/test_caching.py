"""Sessions find their programs again, and never another model's."""

import os
from pathlib import Path

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.compiler.cache import Cache
from sardonyx.errors import InputError
from sardonyx.runtime.caching import open_cache, usual_folder
from tests.cli.invoke import invoke, told

HEAD = '<ir_version: 10, opset_import: ["": 21]>'
COMPILED = ["CPUExecutionProvider"]


def write_model(path: Path, scale: float) -> None:
    """A model that multiplies by a number, which lies in another file; times tell nothing."""
    graph = sx.Graph("g")
    x = graph.add_input("x", sx.TensorType(sx.DataType.FLOAT, ("n",)))
    graph.outputs.append(sx.Builder(graph, opset=21).Mul(x, np.full(1, scale, np.float32)))
    model = sx.Model(graph, sx.Opsets({"": 21}), ir_version=10)
    sx.save(model, path, external_data=f"{path.stem}.bin", size_threshold=0)


def options_for(folder: Path) -> sx.SessionOptions:
    options = sx.SessionOptions()
    options.add_session_config_entry("sardonyx.cache", str(folder))
    return options


def run(source: object, folder: Path) -> float:
    session = sx.InferenceSession(source, options_for(folder), COMPILED)
    (result,) = session.run(None, {"x": np.ones(1, np.float32)})
    return float(result[0])


def test_weights_that_change_in_their_file_are_seen(tmp_path: Path) -> None:
    path, cache = tmp_path / "model.onnx", tmp_path / "cache"
    write_model(path, 2)
    for item in tmp_path.iterdir():
        os.utime(item, (1e9, 1e9))
    assert [run(path, cache), run(path, cache), run(str(path), cache)] == [2, 2, 2]
    assert len(Cache(cache).entries()) == 1
    content = path.read_bytes()
    write_model(path, 3)
    assert path.read_bytes() == content
    for item in tmp_path.iterdir():
        os.utime(item, (1e9, 1e9))
    assert [run(path, cache), run(path, cache)] == [3, 3]


def test_bytes_and_models_are_known_by_content(tmp_path: Path) -> None:
    model = sx.load_text(HEAD + "g (float[n] x) => (float[n] y) { y = Exp(x) }")
    results = {run(source, tmp_path / "c") for source in (model, sx.to_bytes(model), model)}
    assert len(results) == 1


def test_a_filled_cache_needs_no_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = sx.to_bytes(sx.load_text(HEAD + "g (float[n] x) => (float[n] y) { y = Neg(x) }"))
    assert run(content, tmp_path / "c") == -1

    def never(*_: object) -> None:
        raise AssertionError("the model was read")

    monkeypatch.setattr("sardonyx.runtime.session.load", never)
    assert run(content, tmp_path / "c") == -1


def test_options_that_change_a_model_make_another_program(tmp_path: Path) -> None:
    content = sx.to_bytes(
        sx.load_text(HEAD + "g (float[n] x) => (y) <float[1] w = {2}> { y = Mul(x, w) }")
    )
    assert run(content, tmp_path / "c") == 2
    options = options_for(tmp_path / "c")
    options.add_initializer("w", np.full(1, 5, np.float32))
    session = sx.InferenceSession(content, options, COMPILED)
    assert session.run(None, {"x": np.ones(1, np.float32)})[0].tolist() == [5.0]
    options = options_for(tmp_path / "c")
    options.add_free_dimension_override_by_name("n", 3)
    session = sx.InferenceSession(content, options, COMPILED)
    with pytest.raises(InputError):
        session.run(None, {"x": np.ones(1, np.float32)})
    assert len(Cache(tmp_path / "c").entries()) == 3


def test_the_environment_and_options_choose_the_folder() -> None:
    assert open_cache(None, {"SARDONYX_CACHE": "OFF"}) is None
    chosen = open_cache(None, {"SARDONYX_CACHE": "/somewhere"})
    assert chosen is not None and chosen.folder == Path("/somewhere")
    usual = open_cache(None, {"XDG_CACHE_HOME": "/caches"})
    assert usual is not None and usual.folder == usual_folder({"XDG_CACHE_HOME": "/caches"})
    options = options_for(Path("/elsewhere"))
    options.add_session_config_entry("sardonyx.cache_limit", "1000")
    found = open_cache(options, {"SARDONYX_CACHE": "/somewhere"})
    assert found is not None and (found.folder, found.limit) == (Path("/elsewhere"), 1000)
    options.add_session_config_entry("sardonyx.cache_limit", "much")
    with pytest.raises(InputError, match="number of bytes"):
        open_cache(options, {})


def test_the_verbs_list_and_clear(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "c"
    monkeypatch.setenv("SARDONYX_CACHE", str(folder))
    write_model(tmp_path / "model.onnx", 2)
    run(tmp_path / "model.onnx", folder)
    (entry,) = told("cache", "list")["programs"]
    assert entry["model"].endswith("model.onnx'") and entry["bytes"] > 1000
    assert "model.onnx" in invoke("cache", "list").stdout
    assert "freed" in invoke("cache", "clear").stdout
    assert told("cache", "list") == {"folder": str(folder), "programs": []}
    monkeypatch.setenv("SARDONYX_CACHE", "off")
    assert "turned off" in invoke("cache", "clear").stdout
    assert told("cache", "list")["folder"] is None
