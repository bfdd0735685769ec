"""Recurrent and small networks, and trees, of the benchmark."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from torch import nn

from benchmarks.network import BATCH, BATCHES, TOKENS, Feeds, Network, images


class _Recurrent(nn.Module):
    def __init__(self, cell: type[nn.Module], layers: int) -> None:
        super().__init__()
        self.cells = cell(128, 256, layers, batch_first=True)
        self.last = nn.Linear(256, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.cells(x)[0])


def _recurrent(cell: type[nn.Module], layers: int) -> Network:
    return Network(
        _Recurrent(cell, layers).eval(),
        {f"{batch}x100x128": {"x": images(batch, 100, 128)} for batch in BATCHES},
        ("y",),
        {"x": TOKENS},
        {"x": images(2, 20, 128)},
        {"y": TOKENS},
    )


def lstm() -> Network:
    """Two layers of LSTM of width 256 over 100 steps."""
    return _recurrent(nn.LSTM, 2)


def gru() -> Network:
    """One layer of GRU of width 256 over 100 steps."""
    return _recurrent(nn.GRU, 1)


def _dense(*widths: int) -> Network:
    layers: list[nn.Module] = []
    for inner, outer in pairwise(widths):
        layers += [nn.Linear(inner, outer), nn.ReLU()]
    return Network(
        nn.Sequential(*layers[:-1]).eval(),
        {f"{batch}x{widths[0]}": {"x": images(batch, widths[0])} for batch in BATCHES},
        ("y",),
        {"x": BATCH},
        {"x": images(2, widths[0])},
        {"y": BATCH},
    )


def small_mlp() -> Network:
    """A few microseconds of work."""
    return _dense(64, 32, 10)


def wide_mlp() -> Network:
    """Four products of a vector and a 1024x1024 matrix."""
    return _dense(1024, 1024, 1024, 1024, 1024)


def _table(rows: int) -> np.ndarray:
    return np.random.default_rng(3).standard_normal((rows, 30)).astype(np.float32)


def _trees(estimator: object, path: Path) -> dict[str, Feeds]:
    """Fit trees to a made-up rule, and save them as a model."""
    from skl2onnx import to_onnx

    data = _table(2000)
    labels = (data[:, :5].sum(1) + data[:, 5] * data[:, 6] > 0).astype(np.int64)
    estimator.fit(data, labels)  # type: ignore[attr-defined]
    made = to_onnx(estimator, data[:1], options={"zipmap": False}, target_opset=20)
    path.write_bytes(made.SerializeToString())
    return {f"{rows}x30": {"X": _table(rows)} for rows in (1, 10_000)}


def random_forest(path: Path) -> dict[str, Feeds]:
    """100 trees of depth 12."""
    from sklearn.ensemble import RandomForestClassifier

    return _trees(RandomForestClassifier(100, max_depth=12, random_state=0), path)


def gradient_boosting(path: Path) -> dict[str, Feeds]:
    """100 shallow trees, each correcting those before."""
    from sklearn.ensemble import GradientBoostingClassifier

    return _trees(GradientBoostingClassifier(n_estimators=100, random_state=0), path)
