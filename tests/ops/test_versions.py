"""Every operator version with a successor: upgraded here, it gives what peers give at its time."""

from typing import Any

import numpy as np
import pytest

from sardonyx.ops.catalog import standard
from tests.conformance import suite
from tests.ops.version_cases import PEERS, OldModel, Version, old_models, versions

WANTED = 3
"""How many models of a version are compared, where there are as many that a peer runs."""

UNREGISTERED = "onnxruntime and onnx's reference both begin with a later version"
ATTRIBUTES = "onnxruntime begins with a later version, and onnx's reference wants its attributes"
NO_PEER = {
    "BatchNormalization-1": UNREGISTERED,
    "Cast-1": "onnxruntime begins with version 6, and onnx's reference knows no types by name",
    "Clip-1": UNREGISTERED,
    "Dropout-1": UNREGISTERED,
    "Dropout-6": UNREGISTERED,
    "GRU-1": ATTRIBUTES,
    "GRU-3": ATTRIBUTES,
    "Gemm-1": UNREGISTERED,
    "GlobalLpPool-1": "onnxruntime begins with version 2, and onnx's reference has none",
    "LSTM-1": ATTRIBUTES,
    "RNN-1": UNREGISTERED,
    "Split-1": UNREGISTERED,
    "Tile-1": "onnxruntime begins with version 6, and onnx's reference takes no axis",
    "Upsample-1": ATTRIBUTES,
}
"""Versions that neither peer runs; they are compared with what the suite expects."""

DIFFERENT = {
    ("AveragePool-1", "onnx"): "counts padding, which began as an attribute of version 7",
    ("BatchNormalization-9", "onnx"): "always updates the statistics, as in training",
    ("Loop-1", "onnx"): "keeps an axis of size 1 behind collected scalars",
    ("Loop-11", "onnx"): "keeps an axis of size 1 behind collected scalars",
    ("MaxUnpool-11", "onnxruntime"): "counts indices in output_shape, not in the pooled shape",
    ("MaxUnpool-9", "onnxruntime"): "counts indices in output_shape, not in the pooled shape",
    ("Optional-15", "onnx"): "an optional tensor is a list, and stays one when it is read",
    ("RoiAlign-10", "onnx"): "shifts by half a pixel, as version 16 does",
}
"""Where a peer does not do what a version says; the other one and the suite do."""


def _compare(model: OldModel, mine: list[Any], theirs: list[Any], *, values: bool) -> None:
    assert len(mine) == len(theirs)
    for left, right in zip(mine, theirs, strict=True):
        numbers = isinstance(right, np.ndarray) and right.dtype.kind == "f"
        sizes = np.nan_to_num(np.abs(right), posinf=0) if numbers else np.zeros(1)
        atol = max(model.atol, 1e-6 * min(1e4, float(np.max(sizes, initial=0))))
        suite.compare(left, right, model.rtol, atol, values=values)


def _peers(model: OldModel) -> dict[str, list[Any]]:
    """What each peer that runs a model makes of it."""
    found = {}
    for name, run in PEERS.items():
        try:
            found[name] = run(model)
        except Exception:  # noqa: BLE001 - a peer may refuse in any way
            continue
    return found


@pytest.mark.parametrize("version", versions(), ids=lambda version: version.label)
def test_old_version(version: Version) -> None:
    fixed = not standard()[version.domain, version.name].random
    seen, compared, different = 0, 0, set()
    for model in old_models(version):
        seen += 1
        mine = suite.reference(model.content, model.inputs)
        if model.expected is not None:
            _compare(model, mine, model.expected, values=model.exact and fixed)
        for peer, theirs in _peers(model).items():
            try:
                _compare(model, mine, theirs, values=model.exact and fixed)
                compared += 1
            except AssertionError as error:
                if (version.label, peer) not in DIFFERENT:
                    raise AssertionError(f"{model.label}, beside {peer}: {error}") from error
                different.add((version.label, peer))
        if compared >= WANTED:
            break
    assert seen, "no model holds a node of this version"
    if version.label in NO_PEER:
        assert not compared, "a peer runs this version: it is not to be listed"
    else:
        assert compared, "no peer runs this version"
    known = {key for key in DIFFERENT if key[0] == version.label}
    assert different == known, "what is listed as different is not"


def test_figures() -> None:
    labels = {version.label for version in versions()}
    assert labels >= {*NO_PEER, *(label for label, _ in DIFFERENT)}
    print(f"{len(labels) - len(NO_PEER)} of {len(labels)} versions beside a peer")
    assert (len(labels), len(NO_PEER)) == (432, 14)
