"""The drop-in session: methods, errors and module functions that onnxruntime's users call."""

import logging
from pathlib import Path

import numpy as np
import onnxruntime as real
import pytest

import sardonyx as sx
from sardonyx.compat import onnxruntime as ort
from sardonyx.compat.onnxruntime.capi import onnxruntime_pybind11_state as native

TEXT = """<ir_version: 9, opset_import: ["": 17]> g (float[N] x) => (float[N] y)
{ i = Identity(x) y = Neg(i) }"""
X = np.array([1, -2, 3], np.float32)


@pytest.fixture
def content() -> bytes:
    return sx.to_bytes(sx.load_text(TEXT))


def test_every_way_to_run(content: bytes) -> None:
    for module in (real, ort):
        session = module.InferenceSession(content, providers=["CPUExecutionProvider"])
        value = module.OrtValue.ortvalue_from_numpy(X)
        assert session.run(None, {"x": X})[0].tolist() == [-1, 2, -3]
        assert session.run([], {"x": value})[0].tolist() == [-1, 2, -3]
        (result,) = session.run_with_ort_values(["y"], {"x": value})
        assert result.numpy().tolist() == [-1, 2, -3]
        binding = session.io_binding()
        binding.bind_ortvalue_input("x", value)
        binding.bind_output("y")
        session.run_with_iobinding(binding)
        assert binding.copy_outputs_to_cpu()[0].tolist() == [-1, 2, -3]
        assert session.get_providers() == ["CPUExecutionProvider"]
        assert session.get_provider_options() == {"CPUExecutionProvider": {}}
        assert session.create_ortvalue_from_shape_and_type([2], np.float32, "cpu").shape() == [2]
        assert [info.name for info in session.get_input_memory_infos()] == ["Cpu"]
        assert [item.ep_name for item in session.get_input_epdevices()] == ["CPUExecutionProvider"]
        assert session.get_tuning_results() == []


def test_value_vectors(content: bytes) -> None:
    session = ort.InferenceSession(content)
    fetches = native.OrtValueVector()
    session.run_with_ortvaluevector(None, ["x"], [ort.OrtValue(X)], ["y"], fetches)
    assert fetches[0].numpy().tolist() == [-1, 2, -3]
    with pytest.raises(native.InvalidArgument, match="2 names and 1 values"):
        session.run_with_ortvaluevector(None, ["x", "z"], [ort.OrtValue(X)], ["y"], fetches)


def errors_of(module, content: bytes) -> list[str]:
    session = module.InferenceSession(content, providers=["CPUExecutionProvider"])
    stopped = module.RunOptions()
    stopped.terminate = True
    found = []
    for call in (
        lambda: session.run(None, {"x": X}, stopped),
        lambda: session.run(None, {"x": X, "q": X}),
        lambda: session.run(["q"], {"x": X}),
        lambda: session.run(None, {"x": X.astype(np.float64)}),
        lambda: session.run(None, {"x": X.reshape(1, 3)}),
        lambda: module.InferenceSession("/nowhere/model.onnx"),
        lambda: module.InferenceSession(b"nonsense"),
    ):
        try:
            call()
            found.append("nothing")
        except Exception as error:  # noqa: BLE001
            found.append(type(error).__name__)
    return found


def test_errors_have_the_same_classes(content: bytes) -> None:
    assert errors_of(ort, content) == errors_of(real, content)


def test_missing_inputs_are_value_errors_too(content: bytes) -> None:
    for module in (real, ort):
        with pytest.raises(ValueError, match="missing"):
            module.InferenceSession(content).run(None, {})


def test_loading_is_cancelled(content: bytes) -> None:
    options = ort.SessionOptions()
    options.set_load_cancellation_flag(True)
    with pytest.raises(native.ModelLoadCanceled):
        ort.InferenceSession(content, options)


def test_model_compiler(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(content)
    flags = ort.OrtCompileApiFlags
    plain = ort.ModelCompiler(ort.SessionOptions(), str(tmp_path / "m.onnx"))
    plain.compile_to_file()
    assert len(sx.load(tmp_path / "m_ctx.onnx").graph.nodes) == 2
    small = ort.ModelCompiler(
        ort.SessionOptions(), content, flags=flags.ERROR_IF_OUTPUT_FILE_EXISTS,
        graph_optimization_level=ort.GraphOptimizationLevel.ORT_ENABLE_ALL,
    )  # fmt: skip
    assert len(sx.load(small.compile_to_bytes()).graph.nodes) == 1
    parts: list[bytes] = []
    small.compile_to_stream(parts.append)
    assert b"".join(parts) == small.compile_to_bytes()
    with pytest.raises(native.Fail, match="exists already"):
        small.compile_to_file(str(tmp_path / "m.onnx"))
    with pytest.raises(native.InvalidArgument, match="needs a path"):
        small.compile_to_file()
    strict = ort.ModelCompiler(
        ort.SessionOptions(), content, flags=flags.ERROR_IF_NO_NODES_COMPILED
    )
    with pytest.raises(native.Fail, match="no nodes"):
        strict.compile_to_bytes()


def test_devices(content: bytes) -> None:
    for module in (real, ort):
        device = module.OrtDevice.make("cpu", 0)
        assert (device.device_id(), device.device_type(), device.device_mem_type()) == (0, 0, 0)
        assert module.OrtArenaCfg({"max_mem": 5}).max_mem == 5
        (found,) = [item for item in module.get_ep_devices() if item.ep_name.startswith("CPU")]
        assert found.device.type == module.OrtHardwareDeviceType.CPU
        assert module.get_device() == "CPU" and not module.has_collective_ops()
    target = ort.OrtValue.ortvalue_from_shape_and_type([3], np.float32)
    ort.copy_tensors([ort.OrtValue(X)], [target])
    assert target.numpy().tolist() == X.tolist()
    options = ort.SessionOptions()
    options.add_provider_for_devices(ort.get_ep_devices(), {})
    assert options.has_providers()
    assert ort.InferenceSession(content, options).get_providers() == ["CPUExecutionProvider"]
    with pytest.raises(sx.UnsupportedError, match="no device 'cuda'"):
        ort.OrtDevice.make("cuda", 0)
    with pytest.raises(sx.InputError, match="no setting"):
        ort.OrtArenaCfg({"maximum": 5})


def test_module_functions(
    content: bytes, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    log = logging.getLogger("sardonyx")
    before = log.level
    try:
        ort.set_default_logger_severity(3)
        assert log.level == logging.ERROR
        with pytest.raises(native.InvalidArgument, match="no severity 9"):
            ort.set_default_logger_severity(9)
    finally:
        log.setLevel(before)
    ort.print_debug_info()
    assert "sardonyx" in capsys.readouterr().out
    ort.preload_dlls()
    ort.disable_telemetry_events()
    with pytest.raises(native.InvalidArgument, match="cannot be used here"):
        ort.register_execution_provider_library("a", "b.so")
    ort.set_global_thread_pool_sizes(1, 1)
    try:
        options = ort.SessionOptions()
        options.use_per_session_threads = False
        assert ort.InferenceSession(content, options).run(None, {"x": X})[0][0] == -1
    finally:
        ort.set_global_thread_pool_sizes(0, 0)


def test_backend(content: bytes) -> None:
    import onnx

    from sardonyx.compat.onnxruntime import backend

    model = onnx.load_from_string(content)
    assert backend.supports_device("CPU") and backend.is_compatible(model)
    assert backend.run(model, [X])[0].tolist() == [-1, 2, -3]
    assert backend.prepare(model).run([X])[0].tolist() == [-1, 2, -3]


def test_schemas() -> None:
    theirs = {(item.domain, item.name) for item in
              real.capi.onnxruntime_pybind11_state.get_all_operator_schema()}  # fmt: skip
    mine = {(item.domain, item.name) for item in native.get_all_operator_schema()}
    standard = {pair for pair in theirs if pair[0] in ("", "ai.onnx.ml")}
    assert len(standard & mine) > 200
