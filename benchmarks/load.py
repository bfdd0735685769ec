"""Opening and saving beside `onnx` and `onnx_ir`, in one run: `python -m benchmarks.load`.

Every timing is the best and the median of ten, taken in turns; memory is measured in a process
of its own.
"""

import gc
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
import onnx
import onnx_ir
from onnx import TensorProto, helper, numpy_helper

import sardonyx as sx

RUNS = 10


def one_gigabyte(path: Path) -> None:
    """A model with 1 GiB of weights in one file."""
    chance = np.random.default_rng(0)
    weights = [
        numpy_helper.from_array(chance.random((2048, 2048), dtype=np.float32), f"w{i}")
        for i in range(64)
    ]
    nodes = [helper.make_node("MatMul", [f"x{i}", f"w{i}"], [f"x{i + 1}"]) for i in range(64)]
    onnx.save(_model(nodes, "x64", 2048, weights), path)


def ten_thousand_nodes(path: Path) -> None:
    """A model with 10,000 nodes and no weights."""
    nodes = []
    for i in range(10_000):
        inputs = [f"x{i}"] * (1 + i % 2)
        attributes = {} if i % 2 else {"alpha": 0.5}
        kind = "Add" if i % 2 else "LeakyRelu"
        nodes.append(helper.make_node(kind, inputs, [f"x{i + 1}"], name=f"node_{i}", **attributes))
    onnx.save(_model(nodes, "x10000", 4, []), path)


def _model(nodes: list, last: str, width: int, weights: list) -> onnx.ModelProto:
    first = helper.make_tensor_value_info("x0", TensorProto.FLOAT, ["n", width])
    output = helper.make_tensor_value_info(last, TensorProto.FLOAT, ["n", width])
    return helper.make_model(helper.make_graph(nodes, "g", [first], [output], weights))


def in_turns(calls: dict[str, Callable[[], object]]) -> dict[str, list[float]]:
    """Seconds of each call, `RUNS` times, one after the other."""
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(RUNS):
        for name, call in calls.items():
            gc.collect()
            start = time.perf_counter()
            result = call()
            taken[name].append(time.perf_counter() - start)
            del result
    return taken


def report(title: str, taken: dict[str, list[float]], peer: str) -> None:
    """Print best and median of each, and the peer's best over ours."""
    print(title)
    for name, seconds in taken.items():
        best, middle = min(seconds) * 1e3, median(seconds) * 1e3
        print(f"  {name:<10} best {best:10.2f} ms   median {middle:10.2f} ms")
    print(f"  {peer} / sardonyx = {min(taken[peer]) / min(taken['sardonyx']):.2f}\n")


def touch_one_onnx(path: Path) -> object:
    """Open with onnx and look at one weight."""
    return numpy_helper.to_array(onnx.load(path).graph.initializer[0])[0, 0]


def touch_one(path: Path) -> object:
    """Open with sardonyx and look at one weight."""
    model = sx.load(path)
    return next(model.tensors()).numpy()[0, 0]


MEMORY = """
import sys
import sardonyx as sx
sx.load(sys.argv[2])

def kilobytes(key):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(key))

open("/proc/self/clear_refs", "w").write("5")
before = kilobytes("VmRSS")
model = sx.load(sys.argv[1])
print(kilobytes("VmHWM") - before)
"""
"""Resident memory at its highest while a file is opened, over what it was before."""


def main() -> None:
    """Build the models, time, print."""
    with tempfile.TemporaryDirectory() as folder:
        big, many = Path(folder, "big.onnx"), Path(folder, "many.onnx")
        one_gigabyte(big)
        ten_thousand_nodes(many)
        report(
            "open 1 GiB and touch one weight",
            in_turns({"sardonyx": lambda: touch_one(big), "onnx": lambda: touch_one_onnx(big)}),
            "onnx",
        )
        report(
            "open 10,000 nodes into a graph",
            in_turns({"sardonyx": lambda: sx.load(many), "onnx_ir": lambda: onnx_ir.load(many)}),
            "onnx_ir",
        )
        model, proto = sx.load(big), onnx.load(big)
        target = Path(folder, "saved.onnx")
        report(
            "save 1 GiB",
            in_turns(
                {
                    "sardonyx": lambda: sx.save(model, target),
                    "onnx": lambda: onnx.save(proto, target),
                }
            ),
            "onnx",
        )
        extra = subprocess.run(
            [sys.executable, "-c", MEMORY, big, many], capture_output=True, text=True, check=True
        ).stdout
        print(f"peak extra memory while opening 1 GiB: {int(extra) / 1024:.1f} MiB")


if __name__ == "__main__":
    main()
