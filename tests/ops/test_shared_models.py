"""Real models on the reference implementation, beside outputs of another runtime."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sardonyx.format.load import load
from sardonyx.graph import Model, TensorType
from sardonyx.ops.evaluate import Evaluator
from tests.shared_models import model_paths, needs_models

RTOL, ATOL = 1e-3, 1e-4


def read_case(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Inputs and outputs by name; maps and sequences of maps are stored as JSON."""
    stored = np.load(path, allow_pickle=False)
    feeds: dict[str, Any] = {}
    expected: dict[str, Any] = {}
    for key in stored.files:
        kind, _, name = key.partition(":")
        value = stored[key]
        if kind.endswith("json"):
            value = json.loads(str(value))
        elif value.dtype.kind == "U":
            value = value.astype(object)
        (feeds if kind.startswith("in") else expected)[name] = value
    return feeds, expected


def agree(actual: Any, expected: Any, atol: float) -> None:
    """Fail unless a value agrees with a stored one."""
    if isinstance(expected, dict):
        plain = {str(key): value for key, value in actual.items()}
        assert set(plain) == set(expected)
        for key, value in expected.items():
            np.testing.assert_allclose(plain[key], value, rtol=RTOL, atol=atol)
    elif isinstance(expected, list):
        assert len(actual) == len(expected)
        for left, right in zip(actual, expected, strict=True):
            agree(left, right, atol)
    elif expected.dtype == object:
        np.testing.assert_array_equal(np.asarray(actual, object), expected)
    else:
        assert actual.shape == expected.shape and actual.dtype == expected.dtype
        np.testing.assert_allclose(
            actual.astype(np.float64), expected.astype(np.float64), rtol=RTOL, atol=atol
        )


WIDER = {
    # Outputs are multiples of 0.1531, the last quantization's step. A sum of floats that rounds
    # otherwise moves a code by one, and 53 layers on, outputs lie apart by two steps or three: so
    # do those of NumPy with the sums of three kinds of processors, and the other runtime's own with
    # its optimizations off. Five steps leave room for orders that were not tried.
    "mobilenetv2_qdq_maui": 5.01 * 0.15309935,
}
"""Models whose outputs have a coarser resolution of their own: that of quantized numbers."""


def cases() -> list[Path]:
    return [case for path in model_paths() for case in sorted(path.parent.glob("case*.npz"))]


@needs_models
@pytest.mark.parametrize("path", cases(), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_real_models(path: Path) -> None:
    model = load(path.parent / "model.onnx")
    feeds, expected = read_case(path)
    results = Evaluator(model).run(list(expected), with_keys(model, feeds))
    for actual, wanted in zip(results, expected.values(), strict=True):
        agree(actual, wanted, WIDER.get(path.parent.name, ATOL))


def with_keys(model: Model, feeds: dict[str, Any]) -> dict[str, Any]:
    """Feeds whose maps have keys of the type the model wants: JSON has only text."""
    assert model.graph is not None
    kinds = {value.name: value.type for value in model.graph.inputs}
    return {
        name: {int(key) if key.lstrip("-").isdigit() else key: item for key, item in value.items()}
        if isinstance(value, dict) and not isinstance(kinds.get(name), TensorType)
        else value
        for name, value in feeds.items()
    }
