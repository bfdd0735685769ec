"""Three models that decide whether the compiler is fast, beside onnxruntime.

    python benchmarks/slice.py [mlp|bottleneck|bert] [--threads 1,2] [--runs 60]

Runs alternate, so that both see the same noise; best and median are over single calls. Then follow
the ratios of best, median and processor time, the largest error, seconds to compile, and kernels.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime

import sardonyx as sx
from sardonyx.compiler.program import compile_model

Feeds = dict[str, np.ndarray]
FLOAT = sx.DataType.FLOAT


class Weights:
    """Random weights of a sensible size."""

    def __init__(self) -> None:
        self._random = np.random.default_rng(0)

    def __call__(self, *shape: int) -> np.ndarray:
        scale = 1 / np.sqrt(np.prod(shape[1:]) if len(shape) == 4 else shape[0])
        return (self._random.standard_normal(shape) * scale).astype(np.float32)


def _start(name: str, shape: tuple[Any, ...]) -> tuple[sx.Graph, sx.Builder, Any]:
    graph = sx.Graph(name)
    x = graph.add_input("x", sx.TensorType(FLOAT, shape))
    return graph, sx.Builder(graph, opset=21), x


def _finish(graph: sx.Graph, result: Any, shape: tuple[Any, ...]) -> sx.Model:
    result.name = "y"
    result.type = sx.TensorType(FLOAT, shape)
    graph.outputs.append(result)
    return sx.Model(graph, sx.Opsets({"": 21}), ir_version=10)


def mlp() -> tuple[sx.Model, Feeds]:
    """The digit classifier: 64 -> 32 -> 10."""
    graph, op, x = _start("mlp", ("batch", 64))
    weights = Weights()
    hidden = op.Relu(op.Gemm(x, weights(64, 32), weights(32)))
    result = op.Softmax(op.Gemm(hidden, weights(32, 10), weights(10)), axis=1)
    return _finish(graph, result, ("batch", 10)), {"x": Weights()(1, 64)}


def bottleneck(size: int = 56, channels: int = 256, inner: int = 64) -> tuple[sx.Model, Feeds]:
    """A block of a residual network: 1x1, 3x3, 1x1, and the input added."""
    graph, op, x = _start("bottleneck", ("batch", channels, size, size))
    weights = Weights()
    first = op.Relu(op.Conv(x, weights(inner, channels, 1, 1), weights(inner)))
    second = op.Relu(op.Conv(first, weights(inner, inner, 3, 3), weights(inner), pads=[1, 1, 1, 1]))
    third = op.Conv(second, weights(channels, inner, 1, 1), weights(channels))
    result = op.Relu(op.Add(third, x))
    feeds = {"x": np.random.default_rng(1).standard_normal((1, channels, size, size), np.float32)}
    return _finish(graph, result, ("batch", channels, size, size)), feeds


def bert(hidden: int = 768, heads: int = 12, length: int = 128) -> tuple[sx.Model, Feeds]:
    """One layer of BERT: attention and feed-forward, each added to its input and normalised."""
    graph, op, x = _start("bert", ("batch", "sequence", hidden))
    weights, width = Weights(), hidden // heads

    def dense(value: Any, size: int, results: int) -> Any:
        return op.Add(op.MatMul(value, weights(size, results)), weights(results))

    def split_heads(value: Any, order: list[int]) -> Any:
        return op.Transpose(op.Reshape(value, np.array([0, 0, heads, width])), perm=order)

    def normalize(value: Any) -> Any:
        return op.LayerNormalization(
            value, weights(hidden), weights(hidden), axis=-1, epsilon=1e-12
        )

    query = split_heads(dense(x, hidden, hidden), [0, 2, 1, 3])
    key = split_heads(dense(x, hidden, hidden), [0, 2, 3, 1])
    value = split_heads(dense(x, hidden, hidden), [0, 2, 1, 3])
    scores = op.Softmax(op.Div(op.MatMul(query, key), np.float32(np.sqrt(width))), axis=-1)
    mixed = op.Transpose(op.MatMul(scores, value), perm=[0, 2, 1, 3])
    joined = op.Reshape(mixed, np.array([0, 0, hidden]))
    attended = normalize(op.Add(dense(joined, hidden, hidden), x))
    wide = dense(attended, hidden, 4 * hidden)
    erf = op.Erf(op.Div(wide, np.float32(np.sqrt(2))))
    active = op.Mul(op.Mul(wide, op.Add(erf, np.float32(1))), np.float32(0.5))
    result = normalize(op.Add(dense(active, 4 * hidden, hidden), attended))
    feeds = {"x": np.random.default_rng(1).standard_normal((1, length, hidden), np.float32)}
    return _finish(graph, result, ("batch", "sequence", hidden)), feeds


SLICES: dict[str, Callable[[], tuple[sx.Model, Feeds]]] = {
    "mlp": mlp,
    "bottleneck": bottleneck,
    "bert": bert,
}


def peer_session(model: sx.Model, threads: int) -> onnxruntime.InferenceSession:
    """The same model in onnxruntime."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(sx.to_bytes(model), options, ["CPUExecutionProvider"])


def processor_time(call: Callable[[], Any], runs: int) -> float:
    """Seconds of processor time a call takes in all threads, which other load hardly changes."""
    time.sleep(0.05)
    call()
    begin = time.process_time()
    for _ in range(runs):
        call()
    return (time.process_time() - begin) / runs


def measure(name: str, threads: int, runs: int) -> str:
    """One row: best and median of both, and their ratio."""
    model, feeds = SLICES[name]()
    session = peer_session(model, threads)
    begin = time.perf_counter()
    program = compile_model(model, threads=threads)
    compiled = time.perf_counter() - begin
    expected = session.run(None, feeds)[0]
    found = program.run(feeds)[0]
    error = float(np.abs(found - expected).max() / np.abs(expected).max())
    ours, theirs = [], []
    repeat = 50 if name == "mlp" else 1
    for _ in range(runs):
        for times, call in ((ours, program.run), (theirs, lambda feeds: session.run(None, feeds))):
            for _ in range(repeat):
                begin = time.perf_counter()
                call(feeds)
                times.append(time.perf_counter() - begin)
    spent = processor_time(lambda: program.run(feeds), runs)
    peer_spent = processor_time(lambda: session.run(None, feeds), runs)
    best, peer = min(ours), min(theirs)
    middle, peer_middle = statistics.median(ours), statistics.median(theirs)
    return (
        f"{name:11s} {threads:7d} {best * 1e3:10.4f} {middle * 1e3:10.4f} {peer * 1e3:10.4f} "
        f"{peer_middle * 1e3:10.4f} {best / peer:6.2f} {middle / peer_middle:6.2f} "
        f"{spent / peer_spent:6.2f} {error:9.1e} {compiled:8.2f} {program.kernels:7d}"
    )


def main() -> None:
    """Print one row a model and thread count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", default=list(SLICES))
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--runs", type=int, default=60)
    given = parser.parse_args()
    titles = "best ms", "median", "ort best", "median"
    print(" " * 12 + "threads " + " ".join(f"{title:>10s}" for title in titles), end="")
    print("   best median    cpu     error  compile kernels")
    for name in given.models:
        for threads in map(int, given.threads.split(",")):
            print(measure(name, threads, given.runs), flush=True)


if __name__ == "__main__":
    main()
