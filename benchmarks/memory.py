"""Memory that simplifying a model takes, beside its size: `python -m benchmarks.memory`.

    python -m benchmarks.memory [model.onnx ...] [--large] [--tools sardonyx,onnxsim,...]

Every tool opens, simplifies and saves a model in a process of its own, after it has done so with a
model of one node: what the process takes by then (interpreter, imports) is printed apart. A ratio
is what it takes more at most, mapped files included, over the bytes of the model and its data file,
or those of the result where these are more. That of a small file says little: a node takes a few KB
while it is an object, operators' code is loaded when a model first has them, and Python takes
memory by the MB. A verdict for each tool follows the table, of models from 1 MB on and of smaller
ones. `--large` adds models of 1 GiB, and of 2.2 GiB with external data: one whose weights stay, one
where all change.
"""

import argparse
import multiprocessing
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

WIDTH = 2048
MOST = 1.5
"""How many times a model's size may be taken."""
SMALL = 10**6
"""Bytes below which a model is judged by what it takes, not by the ratio."""
TINY = b'<ir_version: 8, opset_import: ["": 17]> g (float[n] x) => (float[n] y) { y = Neg(x) }'


def with_sardonyx(path: str, target: str) -> None:
    import sardonyx as sx

    sx.save(sx.simplify(sx.load(path)), target)


def with_onnxsim(path: str, target: str) -> None:
    import onnx
    import onnxsim

    onnx.save(onnxsim.simplify(onnx.load(path))[0], target)


def with_onnxslim(path: str, target: str) -> None:
    import onnx
    import onnxslim

    onnx.save(onnxslim.slim(onnx.load(path)), target)


def with_onnxoptimizer(path: str, target: str) -> None:
    import onnx
    import onnxoptimizer

    onnx.save(onnxoptimizer.optimize(onnx.load(path)), target)


TOOLS: dict[str, Callable[[str, str], None]] = {
    "sardonyx": with_sardonyx,
    "onnxsim": with_onnxsim,
    "onnxslim": with_onnxslim,
    "onnxoptimizer": with_onnxoptimizer,
}


def memory(line: str) -> int:
    """Bytes that Linux counts for this process."""
    with open("/proc/self/status", encoding="ascii") as lines:
        return next(int(item.split()[1]) for item in lines if item.startswith(line)) * 1024


def measure(tool: str, path: str, folder: str, answers: Any) -> None:
    """Put what a tool takes for itself, and more for a model, into a queue."""
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    target = str(Path(folder, "out.onnx"))
    try:
        TOOLS[tool](str(Path(folder, "tiny.onnx")), target)
        Path("/proc/self/clear_refs").write_text("5")
        base = memory("VmRSS")
        TOOLS[tool](path, target)
        answers.put((base, memory("VmHWM") - base))
    except Exception as error:  # noqa: BLE001 - whatever a tool raises is its answer
        answers.put(f"fails: {type(error).__name__}")


@dataclass(frozen=True, slots=True)
class Answer:
    """Bytes of a process before, how many more a model takes, and the model's own; or a failure."""

    name: str
    base: int = 0
    more: int = 0
    size: int = 1
    failure: str = ""

    def __str__(self) -> str:
        if self.failure:
            return self.failure
        return f"{self.base / 1e6:.0f} + {self.more / 1e6:.1f} MB ({self.more / self.size:.2f})"


def ask(tool: str, path: Path, folder: str) -> Answer:
    """A tool's answer, from a process of its own."""
    name = path.parent.name if path.stem == "model" else path.stem
    context = multiprocessing.get_context("spawn")
    answers: Any = context.Queue()
    process = context.Process(target=measure, args=(tool, str(path), folder, answers))
    process.start()
    process.join()
    results = list(Path(folder).glob("out.onnx*"))
    sizes = [sum(part.stat().st_size for part in parts)
             for parts in (results, path.parent.glob(f"{path.name}*"))]  # fmt: skip
    for part in results:
        part.unlink()
    if process.exitcode:
        return Answer(name, failure="fails: crash")
    answer = answers.get(timeout=5)
    if isinstance(answer, str):
        return Answer(name, failure=answer)
    return Answer(name, *answer, max(sizes))


def print_verdict(tool: str, answers: list[Answer]) -> None:
    """Say which models take too much."""
    done = [answer for answer in answers if not answer.failure]
    large = [answer for answer in done if answer.size >= SMALL]
    over = [answer for answer in large if answer.more > MOST * answer.size]
    names = ", ".join(f"{answer.name} {answer}" for answer in over) or "none"
    print(f"{tool}: of {len(large)} models from 1 MB on, {len(over)} take over {MOST}: {names}")
    small = [answer for answer in done if answer.size < SMALL]
    if small:
        most = max(small, key=lambda answer: answer.more)
        print(f"{tool}: {len(small)} smaller ones take at most {most.name} {most}")
    if len(done) < len(answers):
        print(f"{tool}: fails on {len(answers) - len(done)}")


def build_large(path: Path, layers: int, step: str, *, external: bool) -> Path:
    """Products with a matrix, each with a vector added, or times it, which goes into the matrix."""
    import sardonyx as sx
    from sardonyx.dtypes import DataType

    chance = np.random.default_rng(0)
    matrix = chance.random((WIDTH, WIDTH), np.float32)
    rows = sx.TensorType(DataType.FLOAT, ("n", WIDTH))
    graph = sx.Graph("g")
    value = sx.Value("x", rows)
    graph.inputs.append(value)
    for layer in range(layers):
        weights = graph.add_initializer(sx.Tensor(np.roll(matrix, layer, 0)), f"w{layer}")
        vector = graph.add_initializer(sx.Tensor(chance.random(WIDTH, np.float32)), f"b{layer}")
        for kind, inputs in (("MatMul", [weights]), (step, [vector]), ("Relu", [])):
            node = sx.Node(kind, [value, *inputs], [f"{kind}{layer}"])
            graph.nodes.append(node)
            value = node.output
    value.name, value.declared = "y", rows
    graph.outputs.append(value)
    sx.save(sx.Model(graph, {"": 21}, ir_version=10), path, external_data=external or None)
    return path


def main() -> None:
    """Print a line a model."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--tools", default="sardonyx")
    given = parser.parse_args()
    tools = given.tools.split(",")
    with tempfile.TemporaryDirectory() as folder:
        import sardonyx as sx

        sx.save(sx.load_text(TINY.decode()), Path(folder, "tiny.onnx"))
        paths = list(given.paths)
        if given.large:
            for name, step in (("kept", "Add"), ("changed", "Mul")):
                place = Path(folder, f"{name}-1g.onnx")
                paths.append(build_large(place, 64, step, external=False))
                place = Path(folder, f"{name}-2g.onnx")
                paths.append(build_large(place, 141, step, external=True))
        print(f"{'model':34}" + "".join(f"{tool:>28}" for tool in tools))
        rows = []
        for path in paths:
            rows.append([ask(tool, path, folder) for tool in tools])
            cells = "".join(f"{answer!s:>28}" for answer in rows[-1])
            print(f"{rows[-1][0].name:34}{cells}", flush=True)
        for tool, answers in zip(tools, zip(*rows, strict=True), strict=False):
            print_verdict(tool, list(answers))


if __name__ == "__main__":
    main()
