"""The picture of a benchmark's results: `python -m benchmarks.plot [results.json] [picture]`.

Each model has a line with a dot for each peer: its time over sardonyx's, best call by best call.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import LATENCY, RATIO, RESULTS, Row, peers_of

PICTURE = Path(__file__).parents[1] / "docs" / "benchmarks"
COLORS = {"onnxruntime": "#0072b2", "openvino": "#d55e00", "torch": "#009e73"}
OTHERS = ("#cc79a7", "#56b4e9", "#e69f00")


def draw(latency: Sequence[Row], picture: Path) -> list[Path]:
    """Draw a panel for each number of threads, as PNG and SVG."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "sardonyx"
    from matplotlib import pyplot

    counts = sorted({row["threads"] for row in latency})
    cases = list(dict.fromkeys(_case(row) for row in latency))
    peers = peers_of(latency)
    size = (4.6 * max(len(counts), 1) + 2.4, 0.24 * len(cases) + 1.6)
    figure, panels = pyplot.subplots(
        1, max(len(counts), 1), figsize=size, sharey=True, squeeze=False, layout="constrained"
    )
    for panel, threads in zip(panels[0], counts, strict=False):
        rows = {_case(row): row for row in latency if row["threads"] == threads}
        _draw_panel(panel, cases, rows, peers)
        panel.set_title(f"{threads} thread{'s' if threads > 1 else ''}", fontsize=10)
    panels[0][0].set_yticks(range(len(cases)), cases, fontsize=8)
    panels[0][0].invert_yaxis()
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False)
    figure.supxlabel("time of the peer / time of sardonyx  (right of 1: sardonyx is faster)",
                     fontsize=9)  # fmt: skip
    picture.parent.mkdir(parents=True, exist_ok=True)
    written = []
    for kind, more in ((".png", {"dpi": 150}), (".svg", {"metadata": {"Date": None}})):
        written.append(picture.with_suffix(kind))
        figure.savefig(written[-1], **more)
    pyplot.close(figure)
    return written


def _draw_panel(panel: Any, cases: list[str], rows: dict[str, Row], peers: list[str]) -> None:
    others = iter(OTHERS * len(peers))
    for peer in peers:
        color = COLORS.get(peer) or next(others)
        points = [
            (row[peer] / row["sardonyx"], at)
            for at, case in enumerate(cases)
            if (row := rows.get(case)) and row.get(RATIO) and isinstance(row.get(peer), float)
        ]
        panel.scatter(*zip(*points, strict=True) if points else ([], []), s=22, color=color,
                      label=peer, zorder=3)  # fmt: skip
    for at, case in enumerate(cases):
        if case in rows and not rows[case].get(RATIO):
            panel.text(1, at, " no result", fontsize=7, va="center", color="#aa0000")
    panel.set_xscale("log", base=2)
    panel.xaxis.set_major_formatter(lambda value, _: f"{value:.3g}x")
    panel.axvline(1, color="#444444", linewidth=1)
    panel.grid(axis="both", color="#dddddd", linewidth=0.6)
    panel.set_axisbelow(True)
    panel.tick_params(labelsize=8)
    for side in ("top", "right", "left"):
        panel.spines[side].set_visible(False)


def _case(row: Row) -> str:
    return f"{row['model']}  {row['input']}"


def main() -> None:
    """Draw what was measured."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("results", nargs="?", type=Path, default=RESULTS)
    parser.add_argument("picture", nargs="?", type=Path, default=PICTURE, help="without suffix")
    given = parser.parse_args()
    rows = json.loads(given.results.read_text()).get(LATENCY, [])
    for path in draw(rows, given.picture):
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
