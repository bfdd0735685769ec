"""Making sessions, with an empty cache and with a filled one, beside onnxruntime.

    python -m benchmarks.startup [FOLDER or MODEL ...] [--runs 5]

Every session is the first of a process of its own. A row has milliseconds, best and median: to make
a session with an empty cache, with a filled one, and in onnxruntime; then the ratio of the filled
cache's best to onnxruntime's, and the largest memory of each process in MiB. The time to import
both libraries stands above the table.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

OURS = """
import json, resource, sys, time
begin = time.perf_counter()
import sardonyx as sx
make = sx.InferenceSession
imported = time.perf_counter()
session = make(sys.argv[1], providers=["CPUExecutionProvider"])
made = time.perf_counter()
"""
THEIRS = """
import json, resource, sys, time
begin = time.perf_counter()
import onnxruntime
onnxruntime.set_default_logger_severity(4)
imported = time.perf_counter()
session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
made = time.perf_counter()
"""
TELL = """
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps([imported - begin, made - imported, peak]))
"""


class Times:
    """What several processes took: seconds to import, seconds to make a session, MiB."""

    def __init__(self) -> None:
        self.rows: list[list[float]] = []
        self.error = ""

    def add(self, script: str, model: Path, cache: str) -> None:
        """Make a session in a new process."""
        environment = {**os.environ, "SARDONYX_CACHE": cache}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        done = subprocess.run(
            [sys.executable, "-c", script + TELL, str(model)],
            capture_output=True,
            text=True,
            env=environment,
            check=False,
        )
        if done.returncode:
            self.error = (done.stderr.strip().splitlines() or ["?"])[-1]
        else:
            self.rows.append(json.loads(done.stdout.splitlines()[-1]))

    @property
    def best(self) -> float:
        """The shortest time to make a session, in milliseconds."""
        return min(row[1] for row in self.rows) * 1e3

    def text(self) -> str:
        """Best and median."""
        return f"{self.best:9.1f} {median(row[1] for row in self.rows) * 1e3:9.1f}"

    @property
    def peak(self) -> float:
        """The largest memory."""
        return max(row[2] for row in self.rows)


def measure(model: Path, runs: int) -> tuple[Times, Times, Times]:
    """Sessions with an empty cache, a filled one, and in onnxruntime, taking turns."""
    cold, warm, peer = Times(), Times(), Times()
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as folder:
            cache = str(Path(folder) / "cache")
            cold.add(OURS, model, cache)
            warm.add(OURS, model, cache)
            peer.add(THEIRS, model, cache)
        if cold.error or warm.error or peer.error:
            break
    return cold, warm, peer


def find_models(words: list[str]) -> list[Path]:
    """Models by path, and those in folders and their folders."""
    found: list[Path] = []
    for word in words:
        path = Path(word)
        found += [path] if path.is_file() else sorted(path.rglob("*.onnx"))
    return found


def main() -> None:
    """Print one row a model."""
    parser = argparse.ArgumentParser(description=__doc__)
    usual = [os.environ.get("SARDONYX_TEST_MODELS", "examples")]
    parser.add_argument("models", nargs="*", default=usual)
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    models = find_models(given.models)
    imports = Times(), Times()
    for _ in range(given.runs):
        for times, script in zip(imports, (OURS, THEIRS), strict=True):
            times.add(script, Path("examples/digits.onnx"), "off")
    for name, times in zip(("sardonyx", "onnxruntime"), imports, strict=True):
        taken = [row[0] * 1e3 for row in times.rows]
        print(f"import {name}: best {min(taken):.0f} ms, median {median(taken):.0f} ms")
    heads = "cold best    median warm best    median  ort best    median  ratio  MiB: cold warm ort"
    print(f"{'':24s} {'KiB':>8s} {heads}")
    for model in models:
        name = model.stem if model.stem != "model" else model.parent.name
        cold, warm, peer = measure(model, given.runs)
        start = f"{name[:24]:24s} {model.stat().st_size // 1024:8d}"
        error = cold.error or warm.error or peer.error
        if error:
            print(start, error, flush=True)
            continue
        ratio = warm.best / peer.best
        memory = f"{cold.peak:9.0f} {warm.peak:4.0f} {peer.peak:4.0f}"
        print(start, cold.text(), warm.text(), peer.text(), f"{ratio:6.2f}", memory, flush=True)


if __name__ == "__main__":
    main()
