"""Sessions with onnxruntime's names, beside onnxruntime itself."""

import json
import pickle
import threading
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

import sardonyx as sx
from sardonyx.errors import EvaluationError, InputError, UnsupportedError
from sardonyx.runtime import providers

TEXT = """<ir_version: 9, opset_import: ["": 17], producer_name: "p", model_version: 3,
  metadata_props: ["a": "b"]>
g (float[batch,3] x, float[3] w) => (float[batch,3] y, int64[2] s)
<float[3] w = {1.0, 2.0, 3.0}>
{ h = Mul(x, w) y = Relu(h) s = Shape(x) }"""
X = np.array([[1, -2, 3], [4, 5, -6]], np.float32)
Y = np.maximum(X * [1, 2, 3], 0).astype(np.float32)


@pytest.fixture
def model() -> sx.Model:
    return sx.load_text(TEXT)


@pytest.fixture(params=["ReferenceExecutionProvider", "CPUExecutionProvider"])
def session(model: sx.Model, request: pytest.FixtureRequest) -> sx.InferenceSession:
    return sx.InferenceSession(model, providers=[request.param])


def test_the_same_as_onnxruntime(model: sx.Model, session: sx.InferenceSession) -> None:
    peer = onnxruntime.InferenceSession(sx.to_bytes(model))
    for mine, theirs in zip(session.run(None, {"x": X}), peer.run(None, {"x": X}), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    for method in ("get_inputs", "get_outputs", "get_overridable_initializers"):
        mine = [(item.name, item.type, item.shape) for item in getattr(session, method)()]
        theirs = [(item.name, item.type, item.shape) for item in getattr(peer, method)()]
        assert mine == theirs
    ours, meta = session.get_modelmeta(), peer.get_modelmeta()
    for name in ("producer_name", "graph_name", "domain", "version", "custom_metadata_map"):
        assert getattr(ours, name) == getattr(meta, name)


def test_sources(tmp_path: Path, model: sx.Model) -> None:
    sx.save(model, tmp_path / "m.onnx")
    for source in (model, sx.to_bytes(model), tmp_path / "m.onnx", str(tmp_path / "m.onnx")):
        np.testing.assert_array_equal(sx.InferenceSession(source).run(["y"], {"x": X})[0], Y)


def test_chosen_outputs_and_replaced_constants(session: sx.InferenceSession) -> None:
    shape, y = session.run(["s", "y"], {"x": X, "w": np.ones(3, np.float32)})
    assert shape.tolist() == [2, 3]
    np.testing.assert_array_equal(y, np.maximum(X, 0))


def test_intermediates(session: sx.InferenceSession) -> None:
    outputs, inner = session.run(["y"], {"x": X}, intermediates="^h$")
    assert list(inner) == ["h"] and len(outputs) == 1
    np.testing.assert_array_equal(inner["h"], X * [1, 2, 3])


def test_outputs_have_memory_of_their_own() -> None:
    same = sx.load_text(
        '<ir_version: 9, opset_import: ["": 17]> g (float[2] x) => (float[2] y, float[2] c)'
        "<float[2] k = {1.0, 2.0}> { y = Identity(x) c = Identity(k) }"
    )
    session = sx.InferenceSession(same)
    x = np.zeros(2, np.float32)
    y, constant = session.run(None, {"x": x})
    y += 1
    constant += 5
    assert x.sum() == 0 and session.run(["c"], {"x": x})[0].tolist() == [1, 2]


def test_ort_values(session: sx.InferenceSession) -> None:
    value = sx.OrtValue.ortvalue_from_numpy(X.copy())
    (y, _) = session.run_with_ort_values(None, {"x": value})
    assert (y.shape(), y.data_type(), y.element_type()) == ([2, 3], "tensor(float)", 1)
    assert y.is_tensor() and not y.is_tensor_sequence() and y.has_value()
    np.testing.assert_array_equal(np.from_dlpack(y), Y)
    assert sx.OrtValue.from_dlpack(np.ones(3)).tensor_size_in_bytes() == 24
    value.update_inplace(np.zeros_like(X))
    assert value.numpy().sum() == 0 and X.sum() != 0


def test_ort_values_that_do_not_fit() -> None:
    value = sx.OrtValue.ortvalue_from_shape_and_type([2], np.float32)
    with pytest.raises(InputError, match="the value holds float32"):
        value.update_inplace(np.zeros(3, np.float32))
    with pytest.raises(UnsupportedError, match="no device 'cuda'"):
        sx.OrtValue.ortvalue_from_numpy(np.zeros(2), "cuda")
    with pytest.raises(InputError, match="sizes differ"):
        sx.OrtValue.ortvalue_from_numpy_with_onnx_type(np.zeros(2, np.float32), 16)
    with pytest.raises(InputError, match="not a tensor"):
        sx.OrtValue([np.zeros(2)]).shape()


def test_binding(session: sx.InferenceSession) -> None:
    binding = session.io_binding()
    place = sx.OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32)
    raw = np.zeros(2, np.int64)
    source = np.array([[1, -2, 3], [4, 5, -6]], np.float32)
    binding.bind_input("x", "cpu", 0, np.float32, [2, 3], source.ctypes.data)
    binding.bind_ortvalue_output("y", place)
    binding.bind_output("s", "cpu", 0, np.int64, [2], raw.ctypes.data)
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(place.numpy(), Y)
    assert raw.tolist() == [2, 3] and len(binding.get_outputs()) == 2
    binding.clear_binding_inputs()
    with pytest.raises(InputError, match="'x' is missing"):
        session.run_with_iobinding(binding)


def test_run_async(session: sx.InferenceSession) -> None:
    done = threading.Event()
    seen = []

    def callback(results: list, user: str, problem: str) -> None:
        seen.append((len(results), user, bool(problem)))
        done.set()

    session.run_async(None, {"x": X}, callback, "tag")
    assert done.wait(10)
    done.clear()
    session.run_async(None, {}, callback, "bad")
    assert done.wait(10) and seen == [(2, "tag", False), (0, "bad", True)]


def test_terminate(session: sx.InferenceSession) -> None:
    options = sx.RunOptions()
    assert len(session.run(None, {"x": X}, options)) == 2
    options.terminate = True
    with pytest.raises(EvaluationError, match="terminated"):
        session.run(None, {"x": X}, options)


def test_options_that_change_the_model(model: sx.Model, tmp_path: Path) -> None:
    options = sx.SessionOptions()
    options.add_free_dimension_override_by_name("batch", 4)
    options.add_initializer("w", sx.OrtValue.ortvalue_from_numpy(np.zeros(3, np.float32)))
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    session = sx.InferenceSession(model, options)
    assert session.get_inputs()[0].shape == [4, 3]
    with pytest.raises(InputError, match=r"expects float\[4,3\]"):
        session.run(None, {"x": X})
    assert session.run(["y"], {"x": np.ones((4, 3), np.float32)})[0].sum() == 0
    assert sx.load(tmp_path / "optimized.onnx").graph.inputs[0].type.shape == (4, 3)
    options.add_initializer("nothing", np.zeros(1))
    with pytest.raises(InputError, match="no constant 'nothing'"):
        sx.InferenceSession(model, options)


def test_configuration_entries() -> None:
    for options, add, get in (
        (sx.SessionOptions(), "add_session_config_entry", "get_session_config_entry"),
        (sx.RunOptions(), "add_run_config_entry", "get_run_config_entry"),
    ):
        getattr(options, add)("a.b", "1")
        assert getattr(options, get)("a.b") == "1"
        with pytest.raises(InputError, match="no configuration entry 'c'"):
            getattr(options, get)("c")
    with pytest.raises(InputError, match="library for onnxruntime"):
        sx.SessionOptions().register_custom_ops_library("x.so")


def test_defaults_equal_onnxruntimes() -> None:
    for mine, theirs in (
        (sx.SessionOptions(), onnxruntime.SessionOptions()),
        (sx.RunOptions(), onnxruntime.RunOptions()),
    ):
        for name in dir(theirs):
            value = getattr(theirs, name)
            if not name.startswith("_") and isinstance(value, bool | int | str):
                assert getattr(mine, name) == value, name


def test_providers(model: sx.Model) -> None:
    session = sx.InferenceSession(
        model, providers=["CUDAExecutionProvider", ("CPUExecutionProvider", {})]
    )
    assert session.get_providers() == [sx.get_available_providers()[0]]
    with pytest.raises(UnsupportedError, match="none of the providers"):
        sx.InferenceSession(model, providers=["CUDAExecutionProvider"])
    session.set_providers(["ReferenceExecutionProvider"])
    assert session.get_providers() == ["ReferenceExecutionProvider"]


def test_profiling(model: sx.Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    options = sx.SessionOptions()
    options.enable_profiling = True
    session = sx.InferenceSession(model, options, providers=["ReferenceExecutionProvider"])
    session.run(None, {"x": X})
    events = json.loads(Path(session.end_profiling()).read_text())
    assert [event["args"]["op_name"] for event in events] == ["Mul", "Relu", "Shape"]
    with pytest.raises(InputError, match="profiling is not enabled"):
        session.end_profiling()


def test_what_cannot_be_compiled_falls_back(
    model: sx.Model, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object) -> None:
        raise UnsupportedError("sizes are too long")

    monkeypatch.setitem(providers.PROVIDERS, "CPUExecutionProvider", refuse)
    wanted = ["CPUExecutionProvider"]
    session = sx.InferenceSession(model, providers=wanted)
    assert "the slow reference runs this model: sizes are too long" in caplog.text
    assert session.get_providers() == [*wanted, "ReferenceExecutionProvider"]
    np.testing.assert_array_equal(session.run(["y"], {"x": X})[0], Y)
    options = sx.SessionOptions()
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    for arguments in ({"sess_options": options}, {"enable_fallback": 0}):
        with pytest.raises(UnsupportedError, match="too long"):
            sx.InferenceSession(model, providers=wanted, **arguments)
    session.disable_fallback()
    with pytest.raises(UnsupportedError, match="too long"):
        session.set_providers(wanted)


def test_options_of_providers(model: sx.Model) -> None:
    name = "CPUExecutionProvider"
    for arguments in (
        {"providers": [(name, {"use_arena": True})]},
        {"providers": [name], "provider_options": [{"use_arena": True}]},
    ):
        session = sx.InferenceSession(model, **arguments)
        assert session.get_provider_options() == {name: {"use_arena": "True"}}
    with pytest.raises(InputError, match="1 providers and 2 sets"):
        sx.InferenceSession(model, providers=[name], provider_options=[{}, {}])


class Triple(sx.Operator):
    """x * 3."""

    domain = "custom"
    signatures = ("1(X: T) -> Y: T; T: floats",)

    def infer(x):
        return x

    def reference(x):
        return x * np.asarray(3, x.dtype)


def test_custom_operators() -> None:
    text = ('<ir_version: 9, opset_import: ["": 17, "custom": 1]> g (float[2] x) => (float[2] y)'
            "{ t = custom.Triple(x) y = Neg(t) }")  # fmt: skip
    session = sx.InferenceSession(sx.load_text(text), operators=[Triple])
    assert session.run(None, {"x": np.ones(2, np.float32)})[0].tolist() == [-3, -3]
    with pytest.raises(UnsupportedError, match="operator Triple of domain 'custom'"):
        sx.InferenceSession(sx.load_text(text))


def test_pickle(session: sx.InferenceSession) -> None:
    twin = pickle.loads(pickle.dumps(session))
    np.testing.assert_array_equal(twin.run(["y"], {"x": X})[0], session.run(["y"], {"x": X})[0])


def test_many_threads_on_one_session(session: sx.InferenceSession) -> None:
    problems = []

    def work(seed: int) -> None:
        x = np.random.default_rng(seed).standard_normal((seed + 1, 3)).astype(np.float32)
        expected = np.maximum(x * np.array([1, 2, 3], np.float32), 0)
        for _ in range(100):
            if not np.array_equal(session.run(["y"], {"x": x})[0], expected):
                problems.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
