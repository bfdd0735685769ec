"""Products and convolutions beside what the machine can do, onnxruntime and OpenVINO.

    python benchmarks/kernels.py [square|dense|rows|batched|resnet|mobile|other] [--threads 1,2]

Each case is a model of one node. Runs alternate, so that all see the same noise; the best counts.
`peak` is the share of the multiply-add peak, or, for a few rows (`rows`), of the speed at which
this core reads as many bytes as the weights have. Both limits are measured by emitted loops.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnxruntime
import openvino

import sardonyx as sx
from sardonyx.compiler.emit_limits import Reading, multiply_add_rate
from sardonyx.compiler.program import compile_model

FLOAT = sx.DataType.FLOAT


@dataclass(frozen=True)
class Case:
    """A product or convolution: input shapes (`constants` are weights), attributes, its work."""

    name: str
    op_type: str
    shapes: tuple[tuple[int, ...], ...]
    work: int
    attributes: dict[str, Any] = field(default_factory=dict)
    constants: int = 1
    streamed: int = 0
    """Bytes of the weights, where reading them is the limit."""

    def model(self) -> tuple[sx.Model, dict[str, np.ndarray]]:
        """The model and a feed."""
        graph = sx.Graph(self.op_type)
        op = sx.Builder(graph, opset=21)
        random = np.random.default_rng(0)
        feeds: dict[str, np.ndarray] = {}
        values = []
        for number, shape in enumerate(self.shapes):
            array = random.standard_normal(shape).astype(np.float32)
            if number >= len(self.shapes) - self.constants:
                values.append(array)
            else:
                feeds[f"x{number}"] = array
                values.append(graph.add_input(f"x{number}", sx.TensorType(FLOAT, shape)))
        result = op.node(self.op_type, tuple(values), 1, "", self.attributes)
        result.name = "y"
        graph.outputs.append(result)
        return sx.Model(graph, sx.Opsets({"": 21}), ir_version=10), feeds


def product(m: int, k: int, n: int) -> Case:
    """Rows by constant weights."""
    return Case(f"{m}x{k}x{n}", "MatMul", ((m, k), (k, n)), 2 * m * k * n)


def few_rows(m: int, k: int, n: int) -> Case:
    """A few rows by constant weights, which are read once."""
    name = f"{m}x{k}x{n}"
    return Case(name, "MatMul", ((m, k), (k, n)), 2 * m * k * n, streamed=4 * k * n)


def batched(batch: int, m: int, k: int, n: int) -> Case:
    """Products of two fed sides."""
    shapes = ((batch, m, k), (batch, k, n))
    return Case(f"{batch}*{m}x{k}x{n}", "MatMul", shapes, 2 * batch * m * k * n, constants=0)


def convolution(size: int, source: int, result: int, filter_size: int, stride: int = 1,
                groups: int = 1, pad: int | None = None) -> Case:  # fmt: skip
    """A square image, as many zeros around it as keep its size."""
    pad = filter_size // 2 if pad is None else pad
    after = (size + 2 * pad - filter_size) // stride + 1
    weights = (result, source // groups, filter_size, filter_size)
    work = 2 * after * after * int(np.prod(weights))
    attributes = {"pads": [pad] * 4, "strides": [stride] * 2, "group": groups}
    name = f"{filter_size}x{filter_size}/{stride} {source}->{result} {size}"
    name += f" g{groups}" if groups > 1 else ""
    return Case(name, "Conv", ((1, source, size, size), weights), work, attributes)


def _cases(section: str) -> list[Case]:
    match section:
        case "square":
            return [product(size, size, size) for size in (512, 768, 1024, 2048)]
        case "dense":
            rows = (128, 197, 512, 1024)
            return [product(m, k, n) for m in rows for k, n in DENSE]
        case "rows":
            sizes = [(768, 768), (768, 3072), (3072, 768), (4096, 4096)]
            return [few_rows(m, k, n) for m in (1, 2, 4) for k, n in sizes]
        case "batched":
            return [batched(12, 128, 64, 128), batched(12, 128, 128, 64), batched(12, 512, 64, 512)]
        case "resnet":
            return [convolution(*sizes) for sizes in RESNET]
        case "mobile":
            return [convolution(*sizes) for sizes in MOBILE]
        case _:
            return [convolution(*sizes) for sizes in OTHER]


DENSE = [(768, 768), (768, 3072), (3072, 768)]
RESNET = [
    (224, 3, 64, 7, 2),
    (56, 64, 64, 1), (56, 64, 64, 3), (56, 64, 256, 1), (56, 256, 64, 1),
    (56, 256, 128, 1), (56, 128, 128, 3, 2), (28, 128, 512, 1), (56, 256, 512, 1, 2),
    (28, 512, 128, 1), (28, 128, 128, 3), (28, 512, 256, 1), (28, 256, 256, 3, 2),
    (14, 256, 1024, 1), (28, 512, 1024, 1, 2), (14, 1024, 256, 1), (14, 256, 256, 3),
    (14, 1024, 512, 1), (14, 512, 512, 3, 2), (7, 512, 2048, 1), (14, 1024, 2048, 1, 2),
    (7, 2048, 512, 1), (7, 512, 512, 3),
]  # fmt: skip
MOBILE = [
    (224, 3, 32, 3, 2), (112, 32, 32, 3, 1, 32), (112, 16, 96, 1), (112, 96, 96, 3, 2, 96),
    (56, 24, 144, 1), (56, 144, 144, 3, 1, 144), (56, 144, 24, 1), (28, 192, 32, 1),
    (28, 192, 192, 3, 2, 192), (14, 384, 384, 3, 1, 384), (14, 384, 64, 1), (7, 160, 960, 1),
    (7, 960, 960, 3, 1, 960), (28, 240, 240, 5, 1, 240), (14, 672, 672, 5, 2, 672),
]  # fmt: skip
OTHER = [
    (224, 3, 96, 4, 4, 1, 0), (56, 96, 96, 7, 1, 96), (14, 384, 384, 7, 1, 384),
    (224, 3, 768, 16, 16, 1, 0), (160, 32, 64, 3, 2), (80, 64, 64, 3), (40, 128, 128, 3),
    (320, 3, 16, 3, 2), (56, 128, 128, 3, 1, 32), (20, 256, 80, 1),
]  # fmt: skip
SECTIONS = ("square", "dense", "rows", "batched", "resnet", "mobile", "other")


def best(call: Callable[[], Any], runs: int, threads: int = 1) -> float:
    """Seconds of the fastest run; of one thread processor time, which other load cannot take."""
    clock = time.process_time if threads == 1 else time.perf_counter
    found = float("inf")
    for _ in range(runs):
        begin = clock()
        call()
        found = min(found, clock() - begin)
    return found


def peers(
    model: sx.Model, feeds: dict[str, np.ndarray], threads: int
) -> Iterator[Callable[[], Any]]:
    """The same model in onnxruntime and in OpenVINO."""
    data = sx.to_bytes(model)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(data, options, ["CPUExecutionProvider"])
    yield lambda: session.run(None, feeds)
    core = openvino.Core()
    settings = {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1,
                "INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"}  # fmt: skip
    compiled = core.compile_model(core.read_model(data), "CPU", settings)
    request = compiled.create_infer_request()
    yield lambda: request.infer(list(feeds.values()), share_inputs=True, share_outputs=True)


def measure(case: Case, threads: int, peak: float, reading: Reading, seconds: float) -> str:
    """One row."""
    model, feeds = case.model()
    begin = time.perf_counter()
    program = compile_model(model, threads=threads)
    compiled = time.perf_counter() - begin
    expected = onnxruntime.InferenceSession(sx.to_bytes(model)).run(None, feeds)[0]
    found = program.run(feeds)[0]
    error = float(np.abs(found - expected).max() / np.abs(expected).max())
    calls = [lambda: program.run(feeds), *peers(model, feeds, threads)]
    if case.streamed:
        bytes_read = np.ones(case.streamed // 8, np.int64)
        calls.append(lambda: reading(bytes_read))
    times = [best(call, 2, threads) for call in calls]
    rounds = int(min(max(seconds / sum(times), 5), 400))
    for _ in range(rounds):
        times = [
            min(least, best(call, 3, threads)) for least, call in zip(times, calls, strict=True)
        ]
    ours = times[0]
    share = times[3] / threads / ours if case.streamed else case.work / ours / peak / threads
    return (
        f"{case.name:26s} {threads} {ours * 1e3:9.4f} ms {case.work / ours / 1e9:6.1f} GF/s "
        f"{share:5.2f} peak  {ours / times[1]:5.2f} ort {ours / times[2]:5.2f} ov "
        f"{error:8.1e} {compiled * 1e3:5.0f} ms to compile"
    )


def main() -> None:
    """Print one row a case and thread count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sections", nargs="*", default=list(SECTIONS))
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--seconds", type=float, default=0.6, help="for each row")
    given = parser.parse_args()
    peak, reading = multiply_add_rate(), Reading()
    print(f"peak of one core {peak / 1e9:.1f} GFLOP/s")
    for section in given.sections or SECTIONS:
        for case in _cases(section):
            for threads in map(int, given.threads.split(",")):
                print(measure(case, threads, peak, reading, given.seconds), flush=True)


if __name__ == "__main__":
    main()
