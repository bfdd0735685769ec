"""Options of sessions and runs: each does what it means, and what has no effect is said."""

import copy
import logging
import pickle
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

import sardonyx as sx
from sardonyx.errors import CancelledError, InputError, UnsupportedError

TEXT = """<ir_version: 9, opset_import: ["": 17]>
g (float[batch,4] x) => (float[batch,4] y) <float[4] w = {1.0, 2.0, 3.0, 4.0}>
{ i = Identity(x) a = Mul(i, w) j = Identity(a) y = Relu(j) }"""
X = np.array([[1, -2, 3, 4]], np.float32)


@pytest.fixture
def model() -> sx.Model:
    return sx.load_text(TEXT)


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


@pytest.mark.parametrize("name", ["SessionOptions", "RunOptions", "IOBinding", "OrtValue"])
def test_every_name_of_onnxruntime_is_there(name: str) -> None:
    assert public(getattr(onnxruntime, name)) <= public(getattr(sx, name))


def test_misspelled_fields_are_refused() -> None:
    for options in (sx.SessionOptions(), sx.RunOptions()):
        with pytest.raises(AttributeError):
            options.nonsense = 1  # type: ignore[union-attr]


def test_options_copy_and_pickle() -> None:
    options = sx.SessionOptions()
    options.intra_op_num_threads = 3
    options.add_session_config_entry("a", "b")
    for twin in (copy.deepcopy(options), pickle.loads(pickle.dumps(options))):
        assert twin.intra_op_num_threads == 3 and twin.get_session_config_entry("a") == "b"


@pytest.mark.parametrize(
    ("level", "nodes"),
    [
        ("ORT_DISABLE_ALL", ["Identity", "Mul", "Identity", "Relu"]),
        ("ORT_ENABLE_BASIC", ["Mul", "Relu"]),
        ("ORT_ENABLE_ALL", ["Mul", "Relu"]),
    ],
)
@pytest.mark.parametrize("provider", ["ReferenceExecutionProvider", "CPUExecutionProvider"])
def test_the_optimized_model_is_written(
    model: sx.Model, tmp_path: Path, level: str, nodes: list[str], provider: str
) -> None:
    options = sx.SessionOptions()
    options.graph_optimization_level = getattr(sx.GraphOptimizationLevel, level)
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    session = sx.InferenceSession(model, options, providers=[provider])
    written = sx.load(tmp_path / "optimized.onnx")
    assert [node.op_type for node in written.graph.nodes] == nodes
    peer = onnxruntime.InferenceSession(tmp_path / "optimized.onnx")
    for runs in (session, peer, sx.InferenceSession(written)):
        np.testing.assert_array_equal(runs.run(None, {"x": X})[0], [[1, 0, 9, 16]])


def test_optimizers_can_be_disabled(model: sx.Model, tmp_path: Path) -> None:
    options = sx.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "o.onnx")
    sx.InferenceSession(model, options, disabled_optimizers=["drop_identities", "NotOneOfOurs"])
    kinds = [node.op_type for node in sx.load(tmp_path / "o.onnx").graph.nodes]
    assert kinds.count("Identity") == 2
    with pytest.raises(InputError):
        options.get_session_config_entry("optimization.disable_specified_optimizers")


def test_weights_of_the_optimized_model_in_a_file(model: sx.Model, tmp_path: Path) -> None:
    options = sx.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "o.onnx")
    begin = "session.optimized_model_external_initializers_"
    options.add_session_config_entry(begin + "file_name", "weights.bin")
    options.add_session_config_entry(begin + "min_size_in_bytes", "1")
    sx.InferenceSession(model, options)
    assert (tmp_path / "weights.bin").stat().st_size >= 16
    options.add_session_config_entry(begin + "min_size_in_bytes", "many")
    with pytest.raises(InputError, match="no number of bytes"):
        sx.InferenceSession(model, options)


def test_sizes_by_name_and_denotation() -> None:
    model = sx.load_text(TEXT)
    kind = model.graph.inputs[0].type
    from dataclasses import replace

    model.graph.inputs[0].type = replace(
        kind, shape=(None, 4), dim_denotations=("DATA_BATCH", None)
    )
    options = sx.SessionOptions()
    options.add_free_dimension_override_by_denotation("DATA_BATCH", 2)
    session = sx.InferenceSession(model, options)
    assert session.get_inputs()[0].shape == [2, 4]
    with pytest.raises(InputError, match=r"\[1, 4\]"):
        session.run(None, {"x": X})


def test_threads(model: sx.Model) -> None:
    options = sx.SessionOptions()
    for count in (1, 2, 5):
        options.intra_op_num_threads = count
        session = sx.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        np.testing.assert_array_equal(session.run(None, {"x": X})[0], [[1, 0, 9, 16]])


def test_initializers_are_replaced(model: sx.Model, tmp_path: Path) -> None:
    options = sx.SessionOptions()
    options.add_external_initializers(["w"], [sx.OrtValue(np.zeros(4, np.float32))])
    assert sx.InferenceSession(model, options).run(None, {"x": X})[0].sum() == 0
    with pytest.raises(InputError, match="1 names and 0 values"):
        options.add_external_initializers(["w"], [])
    options.add_initializer("w", np.zeros(5, np.float32))
    with pytest.raises(InputError, match=r"'w' has the shape \[4\]"):
        sx.InferenceSession(model, options)


def test_external_files_in_memory(model: sx.Model, tmp_path: Path) -> None:
    sx.save(model, tmp_path / "m.onnx", external_data="w.bin", size_threshold=1)
    content = (tmp_path / "w.bin").read_bytes()
    (tmp_path / "w.bin").unlink()
    options = sx.SessionOptions()
    options.add_external_initializers_from_files_in_memory(["w.bin"], [content], [len(content)])
    for source in (tmp_path / "m.onnx", (tmp_path / "m.onnx").read_bytes()):
        session = sx.InferenceSession(source, options)
        np.testing.assert_array_equal(session.run(None, {"x": X})[0], [[1, 0, 9, 16]])
    short = sx.SessionOptions()
    short.add_external_initializers_from_files_in_memory(["w.bin"], [content[:8]], [8])
    with pytest.raises(sx.ExternalDataError, match="wants bytes"):
        sx.InferenceSession(tmp_path / "m.onnx", short)
    replaced = sx.SessionOptions()
    replaced.add_external_initializers(["w"], [np.ones(4, np.float32)])
    session = sx.InferenceSession(tmp_path / "m.onnx", replaced)
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], [[1, 0, 3, 4]])


def test_what_has_no_effect_is_said(model: sx.Model, caplog: pytest.LogCaptureFixture) -> None:
    options = sx.SessionOptions()
    options.enable_mem_pattern = False
    options.execution_mode = sx.ExecutionMode.ORT_PARALLEL
    options.execution_order = sx.ExecutionOrder.PRIORITY_BASED
    options.add_session_config_entry("session.set_denormal_as_zero", "1")
    with caplog.at_level(logging.INFO, "sardonyx"):
        sx.InferenceSession(model, options, read_config_from_model=1)
    for word in ("enable_mem_pattern", "execution_mode", "execution_order", "denormal", "read_con"):
        assert word in caplog.text
    assert "use_deterministic_compute" not in caplog.text


def test_log_severity_of_one_session(model: sx.Model, caplog: pytest.LogCaptureFixture) -> None:
    options = sx.SessionOptions()
    options.enable_mem_pattern = False
    options.log_severity_level = 3
    with caplog.at_level(logging.INFO, "sardonyx"):
        sx.InferenceSession(model, options)
        assert caplog.text == ""
        options.log_severity_level, options.logid = 1, "mine"
        sx.InferenceSession(model, options)
    assert "[mine] " in caplog.text


def test_formats_and_cancellation(model: sx.Model) -> None:
    options = sx.SessionOptions()
    options.add_session_config_entry("session.load_model_format", "ORT")
    with pytest.raises(UnsupportedError, match="onnxruntime's own format"):
        sx.InferenceSession(model, options)
    options = sx.SessionOptions()
    options.set_load_cancellation_flag(True)
    with pytest.raises(CancelledError, match="cancelled"):
        sx.InferenceSession(model, options)


def test_results_do_not_depend_on_threads_or_turns() -> None:
    model = sx.load_text(
        '<ir_version: 9, opset_import: ["": 17]> g (float[n,256] x) => (float[n,1] y) {'
        " e = Exp(x) y = ReduceSum<keepdims = 1>(e, axes) }".replace(
            "{ e", "<int64[1] axes = {1}> { e"
        )
    )
    x = np.random.default_rng(0).standard_normal((512, 256)).astype(np.float32)
    found = []
    for threads in (1, 2, 4):
        options = sx.SessionOptions()
        options.use_deterministic_compute = True
        options.intra_op_num_threads = threads
        session = sx.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        found += [session.run(None, {"x": x})[0] for _ in range(3)]
    assert all(np.array_equal(found[0], item) for item in found)


def test_seed() -> None:
    model = sx.load_text(
        '<ir_version: 9, opset_import: ["": 17]> g () => (float[8] y)'
        "{ y = RandomNormal<shape = [8]>() }"
    )
    from sardonyx.runtime.defaults import PROCESS

    try:
        for provider in ("ReferenceExecutionProvider", "CPUExecutionProvider"):
            made = []
            for seed in (5, 5, 6):
                sx.set_seed(seed)
                session = sx.InferenceSession(model, providers=[provider])
                made.append(session.run(None, {})[0])
            assert np.array_equal(made[0], made[1]) and not np.array_equal(made[0], made[2])
    finally:
        PROCESS.seed = None
