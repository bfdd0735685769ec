"""What users of other runtimes complain about, as things that must hold here."""

import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import sardonyx as sx
from sardonyx.errors import EvaluationError, InputError, SardonyxError
from tests.runtime.test_endurance import transformer

PROVIDERS = ["ReferenceExecutionProvider", "CPUExecutionProvider"]
HEAD = '<ir_version: 10, opset_import: ["": 21]>'


def test_1_what_onnx_writes_by_default_runs() -> None:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
    model = helper.make_model(graph)
    assert model.ir_version == onnx.IR_VERSION
    for provider in PROVIDERS:
        session = sx.InferenceSession(model.SerializeToString(), providers=[provider])
        assert session.run(None, {"x": np.float32([-1, 2])})[0].tolist() == [0, 2]


def test_2_all_reasons_why_a_model_cannot_be_converted_are_told() -> None:
    model = sx.load_text(f"{HEAD} g (float[4] x) => (float[4] y) {{ a = Gelu(x) y = Swish(a) }}"
                         .replace("21", "24"))  # fmt: skip
    assert sx.InferenceSession(sx.convert_opset(model, 17)).run(None, {"x": np.ones(4, "f4")})
    with pytest.raises(sx.ConversionError, match="no version 99"):
        sx.convert_opset(model, 99)


def test_5_weights_are_not_twice_in_memory(tmp_path: Path) -> None:
    size = 48 << 20
    model = sx.load_text(f"{HEAD} g (float[n,1] x) => (float[n,1] y) <float[1] w = {{1.0}}>"
                         "{ a = ReduceSum<keepdims = 0>(w) y = Mul(x, a) }")  # fmt: skip
    model.graph.initializers[0].tensor = sx.Tensor(np.ones(size // 4, np.float32), "w")
    sx.save(model, tmp_path / "big.onnx")
    code = f"""
import resource, numpy as np, sardonyx as sx
x = np.ones((2, 1), np.float32)
sx.InferenceSession(sx.load_text({f"{HEAD} g (float[n,1] x) => (float[n,1] y) {{y = Neg(x)}}"!r}),
                    providers=["ReferenceExecutionProvider"]).run(None, {{"x": x}})
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
session = sx.InferenceSession({str(tmp_path / "big.onnx")!r},
                              providers=["ReferenceExecutionProvider"])
session.run(None, {{"x": x}})
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert int(done.stdout) * 1024 < size * 1.15


def test_6_no_more_threads_than_were_asked_for() -> None:
    before = threading.active_count()
    options = sx.SessionOptions()
    options.intra_op_num_threads = 1
    session = sx.InferenceSession(transformer(1), options, providers=PROVIDERS[1:])
    session.run(None, {"x": np.ones((4, 64, 32), np.float32)})
    assert threading.active_count() == before


def test_7_idle_sessions_burn_nothing() -> None:
    options = sx.SessionOptions()
    options.intra_op_num_threads = 4
    session = sx.InferenceSession(transformer(1), options, providers=PROVIDERS[1:])
    session.run(None, {"x": np.ones((4, 64, 32), np.float32)})
    time.sleep(0.2)
    before = time.process_time()
    time.sleep(0.5)
    assert time.process_time() - before < 0.25
    assert session.get_providers()


def test_8_several_sessions_beside_torch() -> None:
    torch = pytest.importorskip("torch")
    sessions = [sx.InferenceSession(transformer(1), providers=PROVIDERS[1:]) for _ in range(2)]
    x = np.random.default_rng(0).standard_normal((2, 9, 32)).astype(np.float32)
    expected = sessions[0].run(None, {"x": x})[0]
    for _ in range(20):
        for session in sessions:
            np.testing.assert_array_equal(session.run(None, {"x": x})[0], expected)
        assert torch.ones(200, 200).mm(torch.ones(200, 200))[0, 0] == 200


def test_9_workers_of_a_pool_use_a_session_of_their_parent() -> None:
    code = f"""
import multiprocessing, numpy as np, sardonyx as sx
session = None
def work(at):
    return float(session.run(None, {{"x": np.full((3,), at, np.float32)}})[0].sum())
if __name__ == "__main__":
    session = sx.InferenceSession(
        sx.load_text({f"{HEAD} g (float[n] x) => (float[n] y) {{y = Add(x, x)}}"!r}),
        providers=["CPUExecutionProvider"])
    work(1)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(work, range(20)) == [6.0 * at for at in range(20)]
    print("done", work(2))
"""
    if not hasattr(os, "fork"):
        pytest.skip("the system cannot fork")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, timeout=120, check=False
    )
    assert done.stdout.split() == [b"done", b"12.0"], done.stderr.decode()[-800:]


CORE = ["MatMul(x, x)", "Add(x, x)", "Mul(x, x)", "Relu(x)", "Sigmoid(x)", "Softmax(x)",
        "Gemm(x, x)", "ReduceMean<keepdims = 1>(x)", "RMSNormalization(x, x)", "Sqrt(x)",
        "Exp(x)", "Tanh(x)", "Gelu(x)"]  # fmt: skip


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("kind", ["bfloat16", "float16"])
def test_15_narrow_floats_are_computed(provider: str, kind: str) -> None:
    x = np.random.default_rng(0).random((4, 4)).astype(getattr(ml_dtypes, kind, kind))
    for call in CORE:
        text = f"{HEAD} g ({kind}[4,4] x) => (y) {{ y = {call} }}".replace("21", "23")
        model = sx.infer_shapes(sx.load_text(text))
        (y,) = sx.InferenceSession(model, providers=[provider]).run(None, {"x": x})
        wide = sx.infer_shapes(sx.load_text(text.replace(f"({kind}[", "(float[")))
        (expected,) = sx.InferenceSession(wide).run(None, {"x": x.astype(np.float32)})
        assert y.dtype == x.dtype, call
        np.testing.assert_allclose(y.astype(np.float32), expected, rtol=0.05, atol=0.02)


def test_16_precision_is_asked_for_never_taken() -> None:
    session = sx.InferenceSession(transformer(1), providers=PROVIDERS[1:])
    exact = sx.InferenceSession(transformer(1), providers=PROVIDERS[:1])
    x = np.random.default_rng(0).standard_normal((2, 16, 32)).astype(np.float32)
    y, expected = (runs.run(None, {"x": x})[0] for runs in (session, exact))
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)
    asked = sx.compile(transformer(1), precision="medium")(x)
    np.testing.assert_allclose(asked, expected, rtol=0.1, atol=0.1)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_18_any_inner_tensor_can_be_fetched(provider: str) -> None:
    session = sx.InferenceSession(transformer(1), providers=[provider])
    feeds = {"x": np.ones((1, 3, 32), np.float32)}
    _, inner = session.run(None, feeds, intermediates=".*")
    assert {"pq0", "m0", "c0", "n0", "z0"} <= set(inner)
    np.testing.assert_allclose(inner["m0"].sum(-1), 1, rtol=1e-5)


def test_19_optimization_does_not_change_the_answer() -> None:
    x = np.random.default_rng(0).standard_normal((2, 7, 32)).astype(np.float32)
    found = []
    for level in (0, 99):
        options = sx.SessionOptions()
        options.graph_optimization_level = sx.GraphOptimizationLevel(level)
        session = sx.InferenceSession(transformer(1), options, providers=PROVIDERS[1:])
        found.append(session.run(None, {"x": x})[0])
    for item in found[1:]:
        np.testing.assert_allclose(item, found[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_20_errors_name_input_node_and_shapes(provider: str) -> None:
    text = f"""{HEAD} g (float[n,3] x, float[m,4] y) => (float[n,4] z)
    {{ [first] a = Relu(x) [product] z = MatMul(a, y) }}"""
    session = sx.InferenceSession(sx.load_text(text), providers=[provider])
    x, y = np.ones((2, 3), np.float32), np.ones((5, 4), np.float32)
    with pytest.raises(SardonyxError) as caught:
        session.run(None, {"x": x, "y": y})
    message = str(caught.value)
    assert re.search(r"3", message) and re.search(r"5", message)
    with pytest.raises(InputError, match=r"'x' is int64.*float is expected.*astype\('float32'\)"):
        session.run(None, {"x": x.astype(np.int64), "y": y})
    indexed = sx.InferenceSession(
        sx.load_text(f"{HEAD} g (float[n] x, int64[1] i) => (float[1] y) {{ y = Gather(x, i) }}"),
        providers=[provider],
    )
    with pytest.raises(EvaluationError, match=r"[Ii]nd(ex|ices)"):
        indexed.run(None, {"x": x[0], "i": np.array([9])})
