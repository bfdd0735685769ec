"""Profiles of runs, and runs that are stopped from another thread."""

import json
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.errors import CancelledError, InputError

PROVIDERS = ["ReferenceExecutionProvider", "CPUExecutionProvider"]
HEAD = '<ir_version: 9, opset_import: ["": 17]>'
NETWORK = f"""{HEAD} g (float[n,64] x, float[64,64] w, float[64,8] v)
=> (float[n,8] y, string[1] t) <string[1] s = {{"a"}}>
{{ a = MatMul(x, w) b = Relu(a) c = MatMul(b, v) [last] y = Softmax(c) t = Identity(s) }}"""


def network() -> sx.Model:
    model = sx.load_text(NETWORK)
    random = np.random.default_rng(0)
    for value in model.graph.inputs[1:]:
        fix(model, value.name, random.standard_normal(value.type.shape).astype(np.float32))
    return model


def fix(model: sx.Model, name: str, array: np.ndarray) -> None:
    """Make an input a constant."""
    (value,) = (item for item in model.graph.inputs if item.name == name)
    model.graph.inputs.remove(value)
    value.tensor = sx.Tensor(array, name)
    model.graph.initializers.append(value)


X = np.random.default_rng(1).standard_normal((5, 64)).astype(np.float32)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_profile(provider: str, tmp_path: Path) -> None:
    session = sx.InferenceSession(network(), providers=[provider])
    profile = session.profile({"x": X}, runs=3)
    assert profile.runs == 3 and len(profile.nodes) >= 4
    timed = [row for row in profile.nodes if row.calls]
    assert {row.calls % 3 for row in timed} == {0} and all(row.seconds > 0 for row in timed)
    assert sum(row.seconds for row in profile.kernels) <= profile.seconds
    assert [row.seconds for row in profile.kernels] == sorted(
        (row.seconds for row in profile.kernels), reverse=True
    )
    text = str(profile)
    assert "kernel" in text.splitlines()[0] and text.splitlines()[-1].startswith("the whole run")
    assert all(row.name in text for row in profile.kernels)
    profile.save(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())
    assert sum(event["name"] == "model_run" for event in events) == 3
    assert all(event["ph"] == "X" and event["dur"] >= 0 and event["ts"] >= 0 for event in events)
    for word in ("MatMul", "Softmax"):
        assert any(word in event["args"].get("op_name", "") for event in events)
    with pytest.raises(InputError, match="0 runs"):
        session.profile({"x": X}, runs=0)
    with pytest.raises(InputError, match="missing"):
        session.profile({})


@pytest.mark.parametrize("provider", PROVIDERS)
def test_recording(provider: str, tmp_path: Path) -> None:
    options = sx.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "run_")
    session = sx.InferenceSession(network(), options, providers=[provider])
    assert session.get_profiling_start_time_ns() > 0
    for _ in range(2):
        session.run(None, {"x": X})
    path = session.end_profiling()
    assert path.startswith(str(tmp_path / "run_"))
    events = json.loads(Path(path).read_text())
    kernels = [event for event in events if event["name"].endswith("_kernel_time")]
    assert kernels and len(kernels) % 2 == 0
    with pytest.raises(InputError, match="not enabled"):
        session.end_profiling()


@pytest.mark.parametrize("provider", PROVIDERS)
def test_watched_runs_give_the_same(provider: str) -> None:
    session = sx.InferenceSession(network(), providers=[provider])
    plain, watched = session.run(None, {"x": X}), session.run(None, {"x": X}, sx.RunOptions())
    for one, other in zip(plain, watched, strict=True):
        np.testing.assert_array_equal(one, other)


LOOP = f"""{HEAD} g (int64 count, float[n] x) => (float[n] y) {{
  yes = Constant<value = bool {{1}}>()
  y = Loop (count, yes, x) <body = b (int64 i, bool c, float[n] v) => (bool d, float[n] w) {{
    d = Identity(c)  w = Sin(v)
  }}>
}}"""
CHAIN = "".join(f"a{at + 1} = MatMul(a{at}, w) " for at in range(120))
LONG = f"""{HEAD} g (float[n,256] a0, float[256,256] w) => (float[n,256] a120) {{ {CHAIN} }}"""


def long_chain() -> sx.Model:
    model = sx.load_text(LONG)
    fix(model, "w", np.eye(256, dtype=np.float32))
    return model


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("kind", ["loop", "kernels"])
def test_terminate_while_a_run_goes_on(provider: str, kind: str) -> None:
    if kind == "loop":
        model = sx.load_text(LOOP)
        feeds = {"count": np.array(10**9), "x": np.ones(4, np.float32)}
        short = {"count": np.array(2), "x": np.ones(4, np.float32)}
    else:
        model = long_chain()
        feeds = {"a0": np.ones((8192, 256), np.float32)}
        short = {"a0": np.ones((1, 256), np.float32)}
    session = sx.InferenceSession(model, providers=[provider])
    session.run(None, short)
    options = sx.RunOptions()
    caught: list[BaseException] = []

    def work() -> None:
        try:
            while True:
                session.run(None, feeds, options)
        except CancelledError as error:
            caught.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(0.3)
    assert thread.is_alive()
    options.terminate = True
    thread.join(60)
    assert not thread.is_alive() and "terminated by its RunOptions" in str(caught[0])
    assert len(session.run(None, short)) == 1
    with pytest.raises(CancelledError):
        session.run(None, short, options)
    options.terminate = False
    assert len(session.run(None, short, options)) == 1


@pytest.mark.parametrize("provider", PROVIDERS)
def test_terminate_reaches_bound_and_asynchronous_runs(provider: str) -> None:
    session = sx.InferenceSession(network(), providers=[provider])
    options = sx.RunOptions()
    options.terminate = True
    binding = session.io_binding()
    binding.bind_cpu_input("x", X)
    binding.bind_output("y")
    with pytest.raises(CancelledError):
        session.run_with_iobinding(binding, options)
    with pytest.raises(CancelledError):
        session.run_with_ort_values(None, {"x": sx.OrtValue(X)}, options)
    done, seen = threading.Event(), []

    def callback(results: list, user: object, problem: str) -> None:
        seen.append((results, problem))
        done.set()

    session.run_async(None, {"x": X}, callback, None, options)
    assert done.wait(30) and seen[0][0] == [] and "terminated" in seen[0][1]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_intermediates_by_name(provider: str) -> None:
    session = sx.InferenceSession(network(), providers=[provider])
    outputs, inner = session.run(None, {"x": X}, intermediates="^[abc]$")
    assert sorted(inner) == ["a", "b", "c"] and len(outputs) == 2
    reference = sx.InferenceSession(network(), providers=PROVIDERS[:1])
    _, expected = reference.run(None, {"x": X}, intermediates=".*")
    for name, value in inner.items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-4, atol=1e-5)
    _, everything = session.run(["y"], {"x": X}, intermediates=".")
    assert set(everything) == set(expected) and everything["t"].tolist() == ["a"]
    np.testing.assert_allclose(session.run(["b"], {"x": X})[0], expected["b"], rtol=1e-4, atol=1e-5)
    assert session.run(None, {"x": X}, intermediates="^nothing$")[1] == {}
    with pytest.raises(InputError, match="no regular expression"):
        session.run(None, {"x": X}, intermediates="(")


@pytest.mark.parametrize("provider", PROVIDERS)
def test_intermediates_inside_of_subgraphs(provider: str) -> None:
    session = sx.InferenceSession(sx.load_text(LOOP), providers=[provider])
    feeds = {"count": np.array(3), "x": np.ones(2, np.float32)}
    (y,), inner = session.run(None, feeds, intermediates="^w$")
    np.testing.assert_allclose(inner["w"], y, rtol=1e-6)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_explain(provider: str) -> None:
    session = sx.InferenceSession(network(), providers=[provider])
    lines = session.explain().splitlines()
    assert len(lines) >= 4 and any("Softmax" in line or "last" in line for line in lines)
