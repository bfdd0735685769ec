"""Memory of mapped files that is given back."""

import sys
from pathlib import Path

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.format.pages import let_go, let_go_tensor

WEIGHTS = np.arange(1 << 21, dtype=np.float32)


def mapped_bytes() -> int:
    """Bytes of mapped files that this process has in memory."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssFile")) * 1024


def model_with_weights(path: Path, *, external: bool) -> sx.Model:
    model = sx.load_text(
        f'<ir_version: 10, opset_import: ["": 21]> g (float[{WEIGHTS.size}] x)'
        f" => (float[{WEIGHTS.size}] y) <float[1] w = {{0}}> {{ y = Add(x, w) }}"
    )
    model.graph.value("w").tensor.set(WEIGHTS)
    sx.save(model, path, external_data=external or None)
    return sx.load(path)


@pytest.mark.skipif(sys.platform != "linux", reason="memory is counted by Linux's own files")
@pytest.mark.parametrize("external", [False, True])
def test_pages_go_and_come_back(external: bool, tmp_path: Path) -> None:
    tensor = model_with_weights(tmp_path / "m.onnx", external=external).graph.value("w").tensor
    total = tensor.numpy().sum()
    held = mapped_bytes()
    let_go_tensor(tensor)
    assert held - mapped_bytes() > WEIGHTS.nbytes // 2
    assert tensor.numpy().sum() == total


def test_arrays_in_memory_are_left() -> None:
    array = np.arange(100_000)
    let_go(array)
    let_go_tensor(sx.Tensor(array))
    assert (array == np.arange(100_000)).all()


@pytest.mark.skipif(sys.platform != "linux", reason="memory is counted by Linux's own files")
def test_simplify_lets_go_of_weights_that_it_replaces(tmp_path: Path) -> None:
    model = model_with_weights(tmp_path / "m.onnx", external=False)
    add = model.graph.nodes[0]
    scaled = sx.Node("Neg", [add.inputs[1]], ["n"])
    model.graph.nodes.insert_before(add, scaled)
    add.replace_input(1, scaled.output)
    held = mapped_bytes()
    small = sx.simplify(model)
    assert [node.op_type for node in small.graph.nodes] == ["Add"]
    assert mapped_bytes() - held < WEIGHTS.nbytes // 2
    np.testing.assert_array_equal(model.graph.value("w").tensor.numpy(), WEIGHTS)


@pytest.mark.skipif(sys.platform != "linux", reason="memory is counted by Linux's own files")
@pytest.mark.parametrize("external", [False, True])
def test_saving_lets_go_of_what_it_has_written(external: bool, tmp_path: Path) -> None:
    model = model_with_weights(tmp_path / "m.onnx", external=external)
    held = mapped_bytes()
    sx.save(sx.simplify(model), tmp_path / "n.onnx", external_data=external or None)
    assert mapped_bytes() - held < WEIGHTS.nbytes // 2
    saved = sx.load(tmp_path / "n.onnx").graph.value("w").tensor
    np.testing.assert_array_equal(saved.numpy(), WEIGHTS)
