"""Nodes left and time taken by `simplify`, beside onnxsim, onnxslim and onnxoptimizer.

    python -m benchmarks.simplify [folder] [--set dynamo|torchscript] [--only name ...]
                                  [--tools name ...] [--repeat 3] [--check] [--ort]

Without a folder these are the models of SARDONYX_TEST_MODELS; with `--set` those that
`benchmarks.models` keeps in the folder. `--check` runs what comes out of sardonyx; `--ort` times
onnxruntime on it. Every tool runs in a process of its own for each model; the time is the best of
the repeats, of the call alone, and the size is that of the result's file. Nodes are counted in all
graphs: the main one, inner ones, and bodies of functions.
"""

import argparse
import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import onnx

from benchmarks.models import EXPORTERS, Model, folder_models, iterate_models
from benchmarks.models import FOLDER as BUILT
from benchmarks.verdicts import print_times, print_verdicts

FOLDER = Path(
    os.environ.get("SARDONYX_TEST_MODELS") or Path(__file__).parents[2] / "shared" / "models"
)
TIMEOUT = 120


class Result(NamedTuple):
    """What a tool makes of a model: nodes, the seconds it takes, and the bytes of the file."""

    nodes: int
    seconds: float
    size: int


Answer = Result | str
"""A result, or why there is none."""


def count_nodes(model: onnx.ModelProto) -> int:
    """Nodes of all graphs and functions."""
    waiting = [model.graph.node, *(function.node for function in model.functions)]
    total = 0
    while waiting:
        nodes = waiting.pop()
        total += len(nodes)
        for node in nodes:
            for attribute in node.attribute:
                waiting += [graph.node for graph in (attribute.g, *attribute.graphs)]
    return total


def with_sardonyx(path: str) -> tuple[Callable[[], Any], Callable[[Any], onnx.ModelProto]]:
    from sardonyx.format.load import load
    from sardonyx.format.save import to_bytes
    from sardonyx.passes.pipeline import simplify

    model = load(path)
    return lambda: simplify(model), lambda small: onnx.load_from_string(to_bytes(small))


def with_onnxsim(path: str) -> tuple[Callable[[], Any], Callable[[Any], onnx.ModelProto]]:
    import onnxsim

    model = onnx.load(path)
    return lambda: onnxsim.simplify(model)[0], lambda small: small


def with_onnxslim(path: str) -> tuple[Callable[[], Any], Callable[[Any], onnx.ModelProto]]:
    import onnxslim

    return lambda: onnxslim.slim(onnx.load(path)), lambda small: small


def with_onnxoptimizer(path: str) -> tuple[Callable[[], Any], Callable[[Any], onnx.ModelProto]]:
    import onnxoptimizer

    model = onnx.load(path)
    return lambda: onnxoptimizer.optimize(model), lambda small: small


TOOLS = {
    "sardonyx": with_sardonyx,
    "onnxsim": with_onnxsim,
    "onnxslim": with_onnxslim,
    "onnxoptimizer": with_onnxoptimizer,
}


def measure(tool: str, path: str, repeat: int, answers: Any) -> None:
    """Put one tool's answer for one model into a queue."""
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    try:
        call, finish = TOOLS[tool](path)
        times = []
        for _ in range(repeat):
            start = time.perf_counter()
            small = call()
            times.append(time.perf_counter() - start)
        result = finish(small)
        answers.put(Result(count_nodes(result), min(times), result.ByteSize()))
    except Exception as error:  # noqa: BLE001 - whatever a tool raises is its answer
        answers.put(f"fails: {type(error).__name__}")


def ask(tool: str, path: Path, repeat: int) -> Answer:
    """One tool's answer, from a process of its own."""
    answers: Any = multiprocessing.Queue()
    process = multiprocessing.Process(target=measure, args=(tool, str(path), repeat, answers))
    process.start()
    process.join(TIMEOUT)
    if process.is_alive():
        process.kill()
        return "fails: time"
    return answers.get(timeout=5) if process.exitcode == 0 else "fails: crash"


def text(answer: Answer) -> str:
    """An answer in the table."""
    if isinstance(answer, str):
        return answer
    return f"{answer.nodes} ({answer.seconds * 1000:.0f} ms, {answer.size / 1e6:.1f} MB)"


def main() -> None:
    """Print the table and the totals over models that a tool succeeds with."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--set", choices=EXPORTERS, dest="exporter")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--tools", nargs="*", default=list(TOOLS), choices=list(TOOLS))
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--ort", action="store_true")
    given = parser.parse_args()
    if given.exporter:
        found = iterate_models(given.only, exporter=given.exporter, folder=given.folder or BUILT)
    else:
        found = folder_models(given.folder or FOLDER)
    models = [item for item in found if not given.only or item.name in given.only]
    if not models:
        sys.exit(f"no models in {given.folder or FOLDER}")
    if given.check:
        print_verdicts(models)
    elif given.ort:
        print_times(models)
    else:
        print_counts(models, list(dict.fromkeys(["sardonyx", *given.tools])), given.repeat)


def print_counts(models: list[Model], tools: list[str], repeat: int) -> None:
    """Nodes and time of every tool, for each model and in all."""
    print(f"{'model':22} {'before':>6} {'MB':>6} " + " ".join(f"{tool:>25}" for tool in tools))
    rows: list[tuple[int, dict[str, Answer]]] = []
    for model in models:
        before = count_nodes(onnx.load(model.path, load_external_data=False))
        row = {tool: ask(tool, model.path, repeat) for tool in tools}
        rows.append((before, row))
        cells = " ".join(f"{text(row[tool]):>25}" for tool in tools)
        size = model.path.stat().st_size / 1e6
        print(f"{model.name:22} {before:6} {size:6.1f} {cells}", flush=True)
    print()
    for tool in tools:
        summarize(tool, rows)
    if tools == ["sardonyx"]:
        return
    ours = sum(before if isinstance(row["sardonyx"], str) else row["sardonyx"].nodes
               for before, row in rows)  # fmt: skip
    best = sum(min(before if isinstance(answer, str) else answer.nodes
                   for tool, answer in row.items() if tool != "sardonyx")
               for before, row in rows)  # fmt: skip
    print(f"the best other tool for each model: {best} nodes (sardonyx {ours / best:.3f} of that)")


def summarize(tool: str, rows: list[tuple[int, dict[str, Answer]]]) -> None:
    """One tool's totals beside sardonyx's on the same models; a failure counts as unchanged."""
    nodes = ours = failures = more = 0
    seconds = our_seconds = size = our_size = 0.0
    for before, row in rows:
        own, answer = row["sardonyx"], row[tool]
        failures += isinstance(answer, str)
        left = before if isinstance(answer, str) else answer.nodes
        own_left = before if isinstance(own, str) else own.nodes
        nodes, ours, more = nodes + left, ours + own_left, more + (own_left > left)
        if not isinstance(answer, str) and not isinstance(own, str):
            seconds, our_seconds = seconds + answer.seconds, our_seconds + own.seconds
            size, our_size = size + answer.size / 1e6, our_size + own.size / 1e6
    print(
        f"{tool:14} {nodes:6} nodes (sardonyx {ours / nodes:.3f} of that; more nodes on {more} "
        f"models), {seconds:.2f} s (sardonyx on the same {our_seconds:.2f} s), {size:.1f} MB "
        f"(sardonyx {our_size:.1f} MB), {failures} failures"
    )


if __name__ == "__main__":
    main()
