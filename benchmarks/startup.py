"""Making sessions, with an empty cache and with a filled one, beside other runtimes.

    python -m benchmarks.startup [FOLDER or MODEL ...] [--runs 5] [--peers onnxruntime,openvino]

Every session is the first of a process of its own. A row has milliseconds, best of the runs: to
make a session with an empty cache, with a filled one, and in the peers; then the ratio of the
filled cache to the fastest peer, and the largest memory of each process in MiB, above an
interpreter with NumPy. The time to import each library stands above the table.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

BEGIN = """
import json, sys, time
import numpy
from benchmarks.worker import peak_memory
before = peak_memory()
begin = time.perf_counter()
"""
END = """
made = time.perf_counter()
print(json.dumps([imported - begin, made - imported, (peak_memory() - before) / 2**20]))
"""
COLD, WARM = "cold", "warm"
OURS = """
import sardonyx as sx
make = sx.InferenceSession
imported = time.perf_counter()
session = make(sys.argv[1], providers=["CPUExecutionProvider"])
"""
SCRIPTS = {
    COLD: OURS,
    WARM: OURS,
    "onnxruntime": """
import onnxruntime
onnxruntime.set_default_logger_severity(4)
imported = time.perf_counter()
session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
""",
    "openvino": """
import openvino
imported = time.perf_counter()
session = openvino.Core().compile_model(sys.argv[1], "CPU")
""",
}
"""What a process runs, by the name of its column."""


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
            [sys.executable, "-c", BEGIN + script + END, str(model)],
            capture_output=True,
            text=True,
            env=environment,
            check=False,
        )
        if done.returncode:
            self.error = (done.stderr.strip().splitlines() or ["?"])[-1]
        else:
            self.rows.append(json.loads(done.stdout.splitlines()[-1]))

    def best(self, place: int) -> float:
        """The least of what every process told, by its place; not a number where none told any."""
        return min((row[place] for row in self.rows), default=float("nan"))


def measure(model: Path, runs: int, columns: list[str]) -> dict[str, Times]:
    """Sessions of every kind, taking turns; a peer that cannot make one is left out then."""
    times = {name: Times() for name in columns}
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as folder:
            for name, column in times.items():
                if not column.error:
                    column.add(SCRIPTS[name], model, str(Path(folder) / "cache"))
    return times


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
    parser.add_argument("--peers", default="onnxruntime,openvino")
    given = parser.parse_args()
    peers = [name for name in given.peers.split(",") if name]
    columns = [COLD, WARM, *peers]
    imports = measure(Path("examples/digits.onnx"), given.runs, columns)
    for name in columns[1:]:
        print(
            f"import {'sardonyx' if name == WARM else name}: {imports[name].best(0) * 1e3:.0f} ms"
        )
    heads = "".join(f"{name:>12s}" for name in columns)
    print(f"{'':24s} {'KiB':>8s}{heads}  ratio  MiB{heads}")
    for model in find_models(given.models):
        name = model.stem if model.stem != "model" else model.parent.name
        times = measure(model, given.runs, columns)
        start = f"{name[:24]:24s} {model.stat().st_size // 1024:8d}"
        made = "".join(f"{times[item].best(1) * 1e3:12.1f}" for item in columns)
        fastest = min((times[item].best(1) for item in peers if times[item].rows), default=None)
        ratio = times[WARM].best(1) / fastest if fastest else float("nan")
        memory = "".join(f"{times[item].best(2):12.1f}" for item in columns)
        problems = "; ".join(f"{key}: {item.error}" for key, item in times.items() if item.error)
        print(f"{start}{made} {ratio:6.2f}     {memory}  {problems[:100]}", flush=True)


if __name__ == "__main__":
    main()
