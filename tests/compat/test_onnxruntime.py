"""The drop-in `onnxruntime`: snippets as its users write them."""

import numpy as np
import onnxruntime as real
import pytest

import sardonyx as sx
from sardonyx.compat import onnxruntime as ort
from sardonyx.compat.onnxruntime.capi.onnxruntime_pybind11_state import (
    Fail,
    InvalidArgument,
    InvalidProtobuf,
    NoSuchFile,
    NotImplemented,
)

TEXT = '<ir_version: 9, opset_import: ["": 17]> g (float[N] x) => (float[N] y) { y = Neg(x) }'


def test_the_usual_snippet() -> None:
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(
        sx.to_bytes(sx.load_text(TEXT)), options, providers=["CPUExecutionProvider"]
    )
    name = session.get_inputs()[0].name
    (y,) = session.run([session.get_outputs()[0].name], {name: np.ones(3, np.float32)})
    assert y.tolist() == [-1, -1, -1] and session.get_providers() == ["CPUExecutionProvider"]
    assert ort.get_device() == real.get_device() and ort.get_version_string() == ort.__version__


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda o, s: s.run(None, {"x": np.ones((2, 2), np.float32)}), "InvalidArgument"),
        (lambda o, s: s.run(None, {"x": np.ones(2)}), "InvalidArgument"),
        (lambda o, s: s.run(None, {"z": np.ones(2, np.float32)}), "InvalidArgument"),
        (lambda o, s: s.run(["q"], {"x": np.ones(2, np.float32)}), "InvalidArgument"),
        (lambda o, s: o.InferenceSession("/nowhere/model.onnx"), "NoSuchFile"),
        (lambda o, s: o.InferenceSession(b"nonsense"), "InvalidProtobuf"),
    ],
)
def test_errors_are_caught_by_the_same_names(call, error: str) -> None:
    session = ort.InferenceSession(sx.to_bytes(sx.load_text(TEXT)))
    with pytest.raises(getattr(ort.capi.onnxruntime_pybind11_state, error)):
        call(ort, session)


def test_unknown_operators() -> None:
    with pytest.raises(NotImplemented, match="Strange"):
        ort.InferenceSession(sx.load_text(TEXT.replace("Neg", "Strange")))


def test_every_exception_of_the_real_module_is_there() -> None:
    from onnxruntime.capi import onnxruntime_pybind11_state as native

    names = [
        n
        for n in dir(native)
        if isinstance(getattr(native, n), type) and issubclass(getattr(native, n), Exception)
    ]
    assert [n for n in names if not hasattr(ort.capi.onnxruntime_pybind11_state, n)] == []
    assert all(
        issubclass(kind, sx.SardonyxError)
        for kind in (Fail, InvalidArgument, InvalidProtobuf, NoSuchFile)
    )
