"""What a call costs when there is nearly nothing to compute: `python -m benchmarks.chain`.

One model is a chain of 201 operators on 4x4 numbers, the other a classifier of 64 pixels.
"""

import argparse
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np

import sardonyx as sx
from benchmarks.lockstep import Contender, LostError, save_feeds, take_turns
from benchmarks.report import OVERHEAD, RESULTS, Results, Row, show

LINKS = 201
DIGITS = Path(__file__).parents[1] / "examples" / "digits.onnx"


def chain() -> sx.Model:
    """Operators on single elements, one after another; numbers stay between -2 and 2."""
    graph = sx.Graph("chain")
    type_ = sx.TensorType(sx.DataType.FLOAT, (4, 4))
    x = value = graph.add_input("x", type_)
    op = sx.Builder(graph, opset=21)
    steps = (
        lambda value: op.Add(value, np.float32(0.25)),
        op.Tanh,
        lambda value: op.Mul(value, np.float32(1.5)),
        op.Sigmoid,
        lambda value: op.Sub(value, x),
        op.Relu,
        op.Neg,
        lambda value: op.Max(value, np.float32(-1.0)),
        op.Abs,
        op.Sqrt,
    )
    for number in range(LINKS):
        value = steps[number % len(steps)](value)
    value.name, value.type = "y", type_
    graph.outputs.append(value)
    return sx.Model(graph, sx.Opsets({"": 21}), ir_version=10)


def measure(
    name: str, path: Path, feeds: Mapping[str, np.ndarray], runtimes: Sequence[str], threads: int,
    folder: Path, runs: int,
) -> Row:  # fmt: skip
    """Microseconds of the best call of each, and the ratio to the best peer."""
    inputs = save_feeds(feeds, folder / f"{name}.npz")
    row: Row = {"model": name, "threads": threads}
    with ExitStack() as stack:
        contenders = []
        for runtime in runtimes:
            contenders.append(stack.enter_context(Contender(runtime, threads, 120)))
            try:
                contenders[-1].open(path)
            except LostError as lost:
                row[runtime] = str(lost)
        timings = take_turns(contenders, inputs, runs, 60)
    for runtime, timing in timings.items():
        row[runtime] = timing.problem or (timing.best or 0.0) * 1e6
    ours, *peers = (row[runtime] for runtime in runtimes)
    figures = [figure for figure in peers if isinstance(figure, float)]
    row["ratio"] = ours / min(figures) if figures and isinstance(ours, float) else None
    return row


def main() -> None:
    """Measure, print and save."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--runs", type=int, default=20_000, help="calls of each runtime")
    parser.add_argument("--peers", default="onnxruntime,openvino")
    parser.add_argument("--json", type=Path, default=RESULTS)
    given = parser.parse_args()
    peers = given.peers.split(",")
    rows = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        sx.save(chain(), folder / "chain.onnx")
        square = {"x": np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)}
        pixels = {"pixels": np.ones((1, 64), np.float32)}
        cases = ((f"chain of {LINKS}", folder / "chain.onnx", square), ("digits", DIGITS, pixels))
        for threads in map(int, given.threads.split(",")):
            for name, path, feeds in cases:
                runtimes = ("sardonyx", *peers)
                rows.append(measure(name, path, feeds, runtimes, threads, folder, given.runs))
    show(OVERHEAD, rows)
    results = Results(given.json)
    results.replace(OVERHEAD, rows)
    results.save()


if __name__ == "__main__":
    main()
