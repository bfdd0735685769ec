"""How long the command line takes: help, and the inspection of a model of 1 GiB.

`python -m benchmarks.cli` prints each time as the best of some runs of a process of its own.
"""

import compileall
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import sardonyx as sx

RUNS = 10
WEIGHTS = 64
WEIGHT_BYTES = 1 << 24


def large_model(path: Path) -> None:
    """A chain of products whose weights take 1 GiB."""
    side = int((WEIGHT_BYTES // 4) ** 0.5)
    graph = sx.Graph("large")
    value = graph.add_input("x", sx.TensorType(sx.DataType.FLOAT, ("batch", side)))
    op = sx.Builder(graph, opset=21)
    weight = np.random.default_rng(0).standard_normal((side, side)).astype(np.float32)
    for _ in range(WEIGHTS):
        value = op.Relu(op.MatMul(value, weight))
    graph.outputs.append(value)
    sx.save(sx.Model(graph, sx.Opsets({"": 21}), 10), path)


def best_seconds(words: Sequence[str], runs: int = RUNS) -> tuple[float, float]:
    """The shortest time of a process from its start to its end, and that of its processor."""
    times, spent = [], []
    for _ in range(runs):
        before, start = _children(), time.perf_counter()
        subprocess.run([sys.executable, *words], stdout=subprocess.DEVNULL, check=True)
        times.append(time.perf_counter() - start)
        spent.append(_children() - before)
    return min(times), min(spent)


def _children() -> float:
    """Processor time of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Measure and print. What pip does when it installs, compiling modules, is done first."""
    compileall.compile_dir(Path(sx.__file__).parent, quiet=1)
    command = ("-m", "sardonyx.cli.main")
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "large.onnx"
        large_model(model)
        size = f"{model.stat().st_size / (1 << 30):.2f} GiB"
        for name, words, bar in (
            ("python -c pass", ("-c", "pass"), ""),
            ("sardonyx --help", (*command, "--help"), "150"),
            (f"sardonyx inspect, {size}", (*command, "inspect", str(model)), "1000"),
        ):
            wall, processor = (seconds * 1e3 for seconds in best_seconds(words))
            print(
                f"{name:<28}{wall:6.0f} ms, processor {processor:5.0f} ms", bar and f"(bar {bar})"
            )


if __name__ == "__main__":
    main()
