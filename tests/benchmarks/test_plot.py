"""The picture of the results."""

from pathlib import Path

import pytest

from benchmarks.plot import draw
from benchmarks.report import Row

pytest.importorskip("matplotlib")


def rows() -> list[Row]:
    return [
        {"model": model, "input": "1", "threads": threads, "sardonyx": ours, "onnxruntime": 2.0,
         "torch": "crashed with signal 11", "best peer": "onnxruntime", "ratio": ratio}
        for model, ours, ratio in (("a", 1.0, 0.5), ("b", "failed", None), ("c", 3.0, 1.5))
        for threads in (1, 2)
    ]  # fmt: skip


@pytest.mark.parametrize("latency", [rows(), []])
def test_pictures_are_drawn_of_what_there_is(latency: list[Row], tmp_path: Path) -> None:
    png, svg = draw(latency, tmp_path / "pictures" / "times")
    assert png.read_bytes().startswith(b"\x89PNG") and "<svg" in svg.read_text()
