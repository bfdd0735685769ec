"""Adapters: files that onnxruntime writes and reads, and runs with them."""

from pathlib import Path

import numpy as np
import onnxruntime as real
import pytest

import sardonyx as sx
from sardonyx.compat import onnxruntime as ort
from sardonyx.compat.onnxruntime.capi.onnxruntime_pybind11_state import (
    InvalidProtobuf,
    NoSuchFile,
)

ARRAYS = {
    "a": np.arange(6, dtype=np.float32).reshape(2, 3),
    "a_longer_name": np.array([7, -8], np.int64),
    "half": np.ones((1, 2, 1), np.float16),
    "none": np.zeros((0, 4), np.float32),
}


def write(module, path: Path, arrays: dict[str, np.ndarray]) -> None:
    adapter = module.AdapterFormat()
    adapter.set_adapter_version(3)
    adapter.set_model_version(5)
    adapter.set_parameters(
        {name: module.OrtValue.ortvalue_from_numpy(item) for name, item in arrays.items()}
    )
    adapter.export_adapter(str(path))


@pytest.mark.parametrize(("writer", "reader"), [(real, ort), (ort, real), (ort, ort)])
def test_files_go_both_ways(writer, reader, tmp_path: Path) -> None:
    arrays = {name: item for name, item in ARRAYS.items() if item.size or reader is writer}
    write(writer, tmp_path / "a.onnx_adapter", arrays)
    found = reader.AdapterFormat.read_adapter(str(tmp_path / "a.onnx_adapter"))
    assert (found.get_format_version(), found.get_adapter_version()) == (1, 3)
    assert found.get_model_version() == 5
    values = {name: value.numpy() for name, value in found.get_parameters().items()}
    assert values.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(values[name], array)
        assert values[name].dtype == array.dtype and values[name].shape == array.shape


def test_runs_with_adapters(tmp_path: Path) -> None:
    model = sx.load_text(
        '<ir_version: 9, opset_import: ["": 17]> g (float[2] x, float[2] w, float[2] b) => '
        "(float[2] y) <float[2] w = {1.0, 1.0}, float[2] b = {0.0, 0.0}>"
        "{ m = Mul(x, w) y = Add(m, b) }"
    )
    arrays = {"w": np.float32([2, 3]), "b": np.float32([10, 20])}
    write(ort, tmp_path / "a.onnx_adapter", arrays)
    x, results = np.ones(2, np.float32), []
    for module in (real, ort):
        session = module.InferenceSession(sx.to_bytes(model), providers=["CPUExecutionProvider"])
        adapter = module.LoraAdapter()
        adapter.Load(str(tmp_path / "a.onnx_adapter"))
        options = module.RunOptions()
        options.add_active_adapter(adapter)
        results.append(session.run(None, {"x": x}, options)[0].tolist())
        assert session.run(None, {"x": x})[0].tolist() == [1, 1]
    assert results == [[12, 23], [12, 23]]
    compiled = sx.InferenceSession(model, providers=["CPUExecutionProvider"])
    assert compiled.run(None, {"x": x, "w": x}, options)[0].tolist() == [11, 21]


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.onnx_adapter"
    write(ort, path, ARRAYS)
    whole = path.read_bytes()
    with pytest.raises(NoSuchFile):
        ort.AdapterFormat.read_adapter(tmp_path / "absent")
    random = np.random.default_rng(0)
    refused = 0
    for turn in range(300):
        content = bytearray(whole)
        if turn % 3 == 0:
            content = content[: random.integers(0, len(content))]
        else:
            content[random.integers(0, len(content))] = random.integers(0, 256)
        path.write_bytes(content)
        try:
            ort.AdapterFormat.read_adapter(path)
        except InvalidProtobuf:
            refused += 1
    assert refused > 100
    with pytest.raises(sx.InputError, match="strings"):
        ort.AdapterFormat().set_parameters({"a": np.array(["x"])})
