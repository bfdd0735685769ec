"""The official backend interface: onnx's own suite runs on `sardonyx.backend`."""

import unittest
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.backend.base
import onnx.backend.test
import pytest

import sardonyx as sx
import sardonyx.compat.onnx.backend.base
from sardonyx import backend
from sardonyx.compat import onnx as ours
from sardonyx.errors import InputError
from tests.compat.differential import assert_same

TEXT = (
    '<ir_version: 10, opset_import: ["" : 21]>'
    "g (float[2] x, float[2] w) => (float[2] y, float[2] z) { y = Add (x, w) z = Sub (x, w) }"
)
X, W = np.float32([1, 2]), np.float32([3, 5])


def _suite() -> unittest.TestSuite:
    """A part of the official cases, by the official runner; all of them run in `conformance`."""
    tests = onnx.backend.test.BackendTest(backend, __name__)
    tests.include(r"^test_(add|and|cast_FLOAT|concat|conv|gather|if|loop|lstm|matmul|maxpool)_")
    tests.include(r"^test_(optional|relu|reshape|resize|sequence|softmax|split|string|topk)_")
    tests.include(r"^test_(operator|Linear|Conv2d|single)_?")
    return tests.test_suite


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_the_official_runner_accepts_this_module() -> None:
    result = unittest.TestResult()
    _suite().run(result)
    problems = [
        f"{test}: {trace.splitlines()[-1]}" for test, trace in result.failures + result.errors
    ]
    assert not problems, "\n".join(problems)
    assert result.testsRun - len(result.skipped) > 250


def _saved(folder: Path) -> Path:
    sx.save(sx.load_text(TEXT), folder / "m.onnx")
    return folder / "m.onnx"


SOURCES: dict[str, Any] = {
    "real message": lambda folder: onnx.parser.parse_model(TEXT),
    "our message": lambda folder: ours.parser.parse_model(TEXT),
    "bytes": lambda folder: onnx.parser.parse_model(TEXT).SerializeToString(),
    "model": lambda folder: sx.load_text(TEXT),
    "path": _saved,
}


@pytest.mark.parametrize("name", SOURCES)
def test_sources(name: str, tmp_path: Path) -> None:
    source = SOURCES[name](tmp_path)
    assert backend.is_compatible(source)
    outputs = backend.run_model(source, [X, W])
    assert [item.tolist() for item in outputs] == [[4, 7], [-2, -3]]


def test_outputs_by_name_and_inputs_by_name() -> None:
    prepared = backend.prepare(sx.load_text(TEXT))
    outputs = prepared.run({"w": W, "x": X})
    assert outputs["y"].tolist() == outputs.y.tolist() == outputs[0].tolist() == [4, 7]
    assert prepared.run((X, X))["z"].tolist() == [0, 0]
    assert len(outputs) == 2
    with pytest.raises(AttributeError):
        _ = outputs.q


def test_one_array_is_one_input() -> None:
    model = sx.load_text(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (y) { y = Neg (x) }'
    )
    assert backend.run_model(model, X)[0].tolist() == [-1, -2]


def test_wrong_inputs() -> None:
    prepared = backend.prepare(sx.load_text(TEXT))
    with pytest.raises(InputError, match="3 inputs are fed to a model with 2"):
        prepared.run([X, W, X])
    with pytest.raises(InputError, match="'w' is missing"):
        prepared.run([X])


@pytest.mark.parametrize("helper", [onnx.helper, ours.helper])
def test_nodes(helper: Any) -> None:
    node = helper.make_node("Clip", ["x", "", "h"], ["y"])
    assert backend.run_node(node, [X, np.float32(1.5)])["y"].tolist() == [1, 1.5]
    node = helper.make_node("Split", ["x"], ["a", "b"], num_outputs=2)
    assert [item.tolist() for item in backend.run_node(node, [X])] == [[1], [2]]
    node = helper.make_node("Softmax", ["x"], ["y"])
    old = backend.run_node(node, [np.ones((1, 2, 2), np.float32)], opset_version=11)
    assert old[0].ravel().tolist() == [0.25] * 4
    node = helper.make_node("Normalizer", ["x"], ["y"], domain="ai.onnx.ml", norm="MAX")
    assert backend.run_node(node, [W[None]])[0].tolist() == [[np.float32(3 / 5), 1]]
    node = helper.make_node("StringConcat", ["a", "b"], ["c"])
    texts = backend.run_node(node, [np.array(["a"]), np.array(["b"])])
    assert texts[0].tolist() == ["ab"]


def test_devices_and_providers() -> None:
    model = sx.load_text(TEXT)
    assert backend.supports_device("CPU:0") and not backend.supports_device("CUDA")
    assert not backend.is_compatible(model, "CUDA")
    with pytest.raises(InputError, match="no device 'CUDA'"):
        backend.prepare(model, "CUDA")
    with pytest.raises(InputError, match="no provider 'none'"):
        backend.prepare(model, provider="none")


def test_what_cannot_run() -> None:
    unknown = TEXT.replace("Add", "NoSuch")
    assert not backend.is_compatible(sx.load_text(unknown))
    assert not backend.is_compatible(b"not a model")


BASE: dict[str, Any] = {
    "device": lambda o: vars(o.backend.base.Device("CUDA:1")),
    "plain device": lambda o: vars(o.backend.base.Device("CPU")),
    "unknown device": lambda o: o.backend.base.Device("TPU"),
    "types": lambda o: [o.backend.base.DeviceType.CPU, o.backend.base.DeviceType.CUDA],
    "tuple": lambda o: [
        [made["0"], made["y"], made[1], made.y, len(made), type(made).__name__]
        for made in [o.backend.base.namedtupledict("Outputs", ["0", "y"])(1, 2)]
    ],
    "unknown name": lambda o: o.backend.base.namedtupledict("Outputs", ["y"])(1)["z"],
    "run": lambda o: o.backend.base.BackendRep().run([]),
    "prepare": lambda o: o.backend.base.Backend.prepare(o.parser.parse_model(TEXT)),
    "prepare nothing": lambda o: o.backend.base.Backend.prepare(o.ModelProto()),
    "node": lambda o: o.backend.base.Backend.run_node(o.helper.make_node("Relu", ["x"], ["y"]), []),
    "wrong node": lambda o: o.backend.base.Backend.run_node(
        o.helper.make_node("Relu", [], ["y"]), []
    ),
    "later node": lambda o: o.backend.base.Backend.run_node(
        o.helper.make_node("Gelu", ["x"], ["y"]), [], opset_version=13
    ),
    "devices": lambda o: o.backend.base.Backend.supports_device("anything"),
    "compatible": lambda o: o.backend.base.Backend.is_compatible(o.ModelProto()),
}


@pytest.mark.parametrize("name", BASE)
def test_the_base_of_backends_is_that_of_onnx(name: str, tmp_path: Path) -> None:
    assert_same(lambda o, _: BASE[name](o), tmp_path)
