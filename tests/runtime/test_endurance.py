"""Sessions under load: many threads, many runs, many shapes, other processes."""

import gc
import os
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.compiler import compile

PROVIDERS = ["ReferenceExecutionProvider", "CPUExecutionProvider"]
HEAD = '<ir_version: 10, opset_import: ["": 21]>'
SMALL = f"""{HEAD} g (float[n,3] x) => (float[n,3] y) <float[3] w = {{1.0, 2.0, 3.0}}>
{{ h = Mul(x, w) y = Relu(h) }}"""
WIDTH, HEADS = 32, 4


def resident() -> int:
    """Bytes of memory in use."""
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def transformer(layers: int = 2) -> sx.Model:
    """Attention and a dense block, several times, over (batch, sequence)."""
    inner = WIDTH // HEADS
    lines, weights, last = [], {}, "x"
    random = np.random.default_rng(0)
    for at in range(layers):
        for name in ("q", "k", "v", "o"):
            weights[f"w{name}{at}"] = random.standard_normal((WIDTH, WIDTH)) / WIDTH**0.5
        weights[f"up{at}"] = random.standard_normal((WIDTH, 2 * WIDTH)) / WIDTH**0.5
        weights[f"down{at}"] = random.standard_normal((2 * WIDTH, WIDTH)) / WIDTH
        for name in ("q", "k", "v"):
            lines.append(f"p{name}{at} = MatMul({last}, w{name}{at})")
            lines.append(f"r{name}{at} = Reshape(p{name}{at}, heads)")
            order = "[0, 2, 3, 1]" if name == "k" else "[0, 2, 1, 3]"
            lines.append(f"t{name}{at} = Transpose<perm = {order}>(r{name}{at})")
        lines += [
            f"s{at} = MatMul(tq{at}, tk{at})", f"d{at} = Div(s{at}, root)",
            f"m{at} = Softmax<axis = -1>(d{at})", f"c{at} = MatMul(m{at}, tv{at})",
            f"b{at} = Transpose<perm = [0, 2, 1, 3]>(c{at})", f"f{at} = Reshape(b{at}, flat)",
            f"o{at} = MatMul(f{at}, wo{at})", f"a{at} = Add(o{at}, {last})",
            f"n{at} = LayerNormalization<axis = -1>(a{at}, ones)", f"u{at} = MatMul(n{at}, up{at})",
            f"g{at} = Relu(u{at})", f"e{at} = MatMul(g{at}, down{at})",
            f"z{at} = Add(e{at}, a{at})",
        ]  # fmt: skip
        last = f"z{at}"
    lines.append(f"y = Identity({last})")
    formals = ", ".join(f"float[{','.join(map(str, item.shape))}] {name}"
                        for name, item in weights.items())  # fmt: skip
    model = sx.load_text(
        f"{HEAD} g (float[batch,sequence,{WIDTH}] x, {formals}) => "
        f"(float[batch,sequence,{WIDTH}] y) <int64[4] heads = {{0, 0, {HEADS}, {inner}}}, "
        f"int64[3] flat = {{0, 0, {WIDTH}}}, float root = {{{inner**0.5}}}, "
        f"float[{WIDTH}] ones = {{{', '.join(['1.0'] * WIDTH)}}}> {{ {' '.join(lines)} }}"
    )
    for value in model.graph.inputs[1:]:
        model.graph.inputs.remove(value)
        value.tensor = sx.Tensor(weights[value.name].astype(np.float32), value.name)
        model.graph.initializers.append(value)
    return model


def run_in_threads(session: sx.InferenceSession, threads: int, runs: int) -> list[int]:
    """The seeds of threads that got a wrong answer."""
    wrong: list[int] = []

    def work(seed: int) -> None:
        x = np.random.default_rng(seed).standard_normal((seed % 5 + 1, 3)).astype(np.float32)
        expected = np.maximum(x * np.array([1, 2, 3], np.float32), 0)
        for _ in range(runs):
            if not np.array_equal(session.run(["y"], {"x": x})[0], expected):
                wrong.append(seed)

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return wrong


@pytest.mark.parametrize("provider", PROVIDERS)
def test_eight_threads_a_thousand_runs_each(provider: str) -> None:
    session = sx.InferenceSession(sx.load_text(SMALL), providers=[provider])
    assert run_in_threads(session, 8, 1000) == []


def test_threads_on_a_transformer() -> None:
    session = sx.InferenceSession(transformer(), providers=PROVIDERS[1:])
    random = np.random.default_rng(0)
    feeds = [random.standard_normal((1 + at % 3, 2 + at % 5, WIDTH)).astype(np.float32)
             for at in range(15)]  # fmt: skip
    expected = [session.run(None, {"x": x})[0] for x in feeds]

    def work(turn: int) -> bool:
        at = turn % len(feeds)
        return np.array_equal(session.run(None, {"x": feeds[at]})[0], expected[at])

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(400)))


def runs_without_growth(runs: int) -> float:
    """Bytes a run by which memory grew over `runs` runs, after as many to settle."""
    session = sx.InferenceSession(sx.load_text(SMALL), providers=PROVIDERS[1:])
    x = np.ones((4, 3), np.float32)
    for _ in range(runs // 4):
        session.run(None, {"x": x})
    before = resident()
    for _ in range(runs):
        session.run(None, {"x": x})
    return (resident() - before) / runs


def test_memory_stays_flat() -> None:
    assert runs_without_growth(4000) * 4000 < 1 << 20


@pytest.mark.slow
def test_memory_stays_flat_over_many_runs() -> None:
    assert runs_without_growth(100_000) * 100_000 < 2 << 20


@pytest.mark.parametrize("provider", PROVIDERS)
def test_options_and_recorded_runs_leave_nothing_behind(provider: str) -> None:
    session = sx.InferenceSession(sx.load_text(SMALL), providers=[provider])
    x = np.ones((4, 3), np.float32)
    for _ in range(500):
        session.run(None, {"x": x}, sx.RunOptions())
    gc.collect()  # what other tests of this process left would otherwise go, or not, in between
    before = resident()
    for _ in range(1000):
        session.run(None, {"x": x}, sx.RunOptions())
    gc.collect()
    assert resident() - before < 1 << 20


def shapes_through(count: int, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int, int]:
    """Compilations, memory after 50 shapes, and memory after all."""
    compiled: list[Any] = []
    original = compile.compile_image

    def counted(*arguments: Any, **options: Any) -> Any:
        compiled.append(1)
        return original(*arguments, **options)

    monkeypatch.setattr(compile, "compile_image", counted)
    session = sx.InferenceSession(transformer(), providers=PROVIDERS[1:])
    random = np.random.default_rng(0)
    shapes = [(1 + at % 8, 1 + at // 8) for at in range(count)]
    order = random.permutation(len(shapes))
    session.run(None, {"x": np.ones((8, 1 + count // 8, WIDTH), np.float32)})
    early = 0
    for turn, at in enumerate(order):
        batch, sequence = shapes[at]
        x = np.ones((batch, sequence, WIDTH), np.float32)
        assert session.run(None, {"x": x})[0].shape == x.shape
        if turn == 50:
            early = resident()
    return len(compiled), early, resident()


def test_many_shapes_need_one_compilation(monkeypatch: pytest.MonkeyPatch) -> None:
    compilations, early, late = shapes_through(200, monkeypatch)
    assert compilations == 1 and late < early * 1.05


@pytest.mark.slow
def test_a_thousand_shapes_need_one_compilation(monkeypatch: pytest.MonkeyPatch) -> None:
    compilations, early, late = shapes_through(1000, monkeypatch)
    assert compilations == 1 and late < early * 1.05


@pytest.mark.parametrize("provider", PROVIDERS)
def test_sessions_pickle(provider: str) -> None:
    options = sx.SessionOptions()
    options.intra_op_num_threads = 1
    options.add_free_dimension_override_by_name("n", 2)
    session = sx.InferenceSession(sx.load_text(SMALL), options, providers=[provider])
    content = pickle.dumps(session)
    x = np.array([[1, -2, 3], [4, 5, -6]], np.float32)
    twin = pickle.loads(content)
    assert twin.get_providers() == session.get_providers()
    assert twin.get_inputs() == session.get_inputs() and twin.get_inputs()[0].shape == [2, 3]
    np.testing.assert_array_equal(twin.run(None, {"x": x})[0], session.run(None, {"x": x})[0])
    code = (
        "import pickle, sys, numpy as np\n"
        "session = pickle.loads(sys.stdin.buffer.read())\n"
        "print(session.run(None, {'x': np.ones((2, 3), np.float32)})[0].tolist())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=content, capture_output=True, check=True
    )
    assert done.stdout.decode().strip() == "[[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_session_made_before_a_fork(provider: str) -> None:
    code = f"""
import os, numpy as np, sardonyx as sx
options = sx.SessionOptions()
options.intra_op_num_threads = 2
session = sx.InferenceSession(sx.load_text({SMALL!r}), options, providers=[{provider!r}])
x = np.ones((20000, 3), np.float32)
session.run(None, {{"x": x}})
child = os.fork()
if child == 0:
    ok = np.array_equal(session.run(None, {{"x": x}})[0][7], [1, 2, 3])
    del session
    os._exit(0 if ok else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
session.run(None, {{"x": x}})
print("done")
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, timeout=120, check=False
    )
    assert done.stdout.decode().strip() == "done", done.stderr.decode()[-500:]


def test_sessions_are_let_go() -> None:
    x = np.ones((64, 3), np.float32)

    def use() -> None:
        for provider in PROVIDERS:
            session = sx.InferenceSession(sx.load_text(SMALL), providers=[provider])
            session.run(None, {"x": x})

    for _ in range(10):
        use()
    threads, before = threading.active_count(), resident()
    for _ in range(20):
        use()
    assert threading.active_count() <= threads
    assert resident() - before < 16 << 20
