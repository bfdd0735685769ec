"""Results of the benchmark: lists of rows by title, kept as JSON that the site makes tables of."""

import json
import math
import os
import platform
import sys
from collections.abc import Sequence
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

Row = dict[str, Any]

RESULTS = Path(__file__).parent / "results.json"
PACKAGES = ("sardonyx", "onnxruntime", "openvino", "torch")
RATIO = "ratio"
LATENCY = "Latency: best call, milliseconds"
MEDIANS = "Latency: median call, milliseconds"
MEANS = "Geometric means of sardonyx's time over that of"
ACCURACY = "Largest error, as a share of the output's largest number"
CREATION = "Creation of a session, seconds"
ANSWER = "From nothing to the first answer, seconds"
MEMORY = "Peak memory above the interpreter, MB"
PROBLEMS = "Problems"
OVERHEAD = "Calls of small models, microseconds"
DYNAMIC = "Texts of many lengths, seconds"
TITLES = (MEANS, LATENCY, MEDIANS, ACCURACY, CREATION, ANSWER, MEMORY, OVERHEAD, DYNAMIC, PROBLEMS)
"""In the order of the page."""


class Results:
    """Rows by title, and facts; what the file has of another processor or target is dropped."""

    def __init__(self, path: Path, **more: str) -> None:
        self._path = path
        self.tables: dict[str, list[Row]] = {}
        before = json.loads(path.read_text()) if path.is_file() else {}
        self._facts = _facts() | more
        same = (before.get(name) == self._facts.get(name) for name in ("processor", "target"))
        if all(same):
            self.tables = {title: before[title] for title in TITLES if title in before}

    def forget(self, names: Sequence[str]) -> None:
        """Drop what was measured before of these models, and of all if none is named."""
        for title in set(TITLES) - {OVERHEAD, DYNAMIC}:
            rows = self.tables.get(title, []) if names else []
            self.tables[title] = [row for row in rows if row.get("model") not in names]

    def add(self, title: str, row: Row) -> None:
        """One more row."""
        self.tables.setdefault(title, []).append(row)

    def replace(self, title: str, rows: list[Row]) -> None:
        """The rows of a table."""
        self.tables[title] = rows

    def save(self) -> None:
        """Write the facts and all tables, the means anew."""
        self.tables[MEANS] = means(self.tables.get(LATENCY, []))
        tables = {title: self.tables[title] for title in TITLES if self.tables.get(title)}
        part = self._path.with_suffix(".part")
        part.write_text(json.dumps(self._facts | tables, indent=1) + "\n")
        part.replace(self._path)


def _facts() -> dict[str, Any]:
    """The machine, the moment, and what took part."""
    versions = []
    for name in PACKAGES:
        try:
            versions.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            versions.append(f"{name} (not installed)")
    return {
        "measured": f"{datetime.now():%Y-%m-%d %H:%M}",
        "processor": f"{_processor()}, {os.cpu_count()} logical cores",
        "system": f"{platform.system()} {platform.release()}, Python {platform.python_version()}",
        "versions": ", ".join(versions),
        "load before": round(os.getloadavg()[0], 2),
    }


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.is_file():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def geometric_mean(values: Sequence[float]) -> float | None:
    """The n-th root of the product of n values; None of none.

    >>> geometric_mean([0.5, 2.0])
    1.0
    """
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def means(latency: Sequence[Row]) -> list[Row]:
    """For each number of threads the mean ratio to each peer, and to the best of them each time.

    Cases in which sardonyx fails, or gives other numbers, are told apart: they have no ratio.
    """
    found = []
    for threads in sorted({row["threads"] for row in latency}):
        rows = [row for row in latency if row["threads"] == threads]
        ratios = [row[RATIO] for row in rows if isinstance(row.get(RATIO), float)]
        said: Row = {"threads": threads, "cases": len(rows)}
        said["without a result"] = sum(row.get("best peer") is not None for row in rows) - len(
            ratios
        )
        said["won"] = sum(ratio < 1 for ratio in ratios)
        said["the best peer"] = geometric_mean(ratios)
        for peer in peers_of(rows):
            pairs = [(row["sardonyx"], row.get(peer)) for row in rows if row.get(RATIO)]
            said[peer] = geometric_mean(
                [a / b for a, b in pairs if isinstance(a, float) and isinstance(b, float)]
            )
        found.append(said)
    return found


NOT_PEERS = ("model", "input", "threads", "sardonyx", "best peer", RATIO, "median ratio", "error")


def peers_of(rows: Sequence[Row]) -> list[str]:
    """The other runtimes that rows have columns of."""
    return list(dict.fromkeys(name for row in rows for name in row if name not in NOT_PEERS))


def show(title: str, rows: Sequence[Row]) -> None:
    """Print rows as a table."""
    if not rows:
        return
    columns = list(dict.fromkeys(name for row in rows for name in row))
    cells = [[_cell(row.get(name)) for name in columns] for row in rows]
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    print(f"\n{title}")
    for line in (columns, *cells):
        sized = [
            text.ljust(width) if at < 2 else text.rjust(width)
            for at, (text, width) in enumerate(zip(line, widths, strict=True))
        ]
        print("  ".join(sized).rstrip())
    sys.stdout.flush()


def _cell(item: Any) -> str:
    if item is None:
        return "-"
    return f"{item:.4g}" if isinstance(item, float) else str(item)[:60]
