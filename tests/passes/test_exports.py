"""Transformers as torch exports them: every block becomes the one operator that it is."""

import importlib.util
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.graph import Model
from sardonyx.graph.verify import verify
from sardonyx.ops.evaluate import Evaluator
from sardonyx.passes.pipeline import RAISED_OPSET, optimize, simplify
from sardonyx.passes.verify_result import same_values
from tests.passes.cases import operators
from tests.passes.export_networks import (
    COUNTS,
    EXPORTERS,
    FOLDER,
    WRITTEN_OUT,
    expected_counts,
    export_network,
)

SIZES = {"batch": 2, "sequence": 5, "past": 3, "total": 4}
CASES = [(name, exporter) for name in COUNTS for exporter in EXPORTERS]


def check(model: Model, small: Model, name: str, layers: int) -> None:
    """Fail unless all that was written out has become whole, and results stay."""
    verify(small)
    found = Counter(operators(small))
    expected = expected_counts(name, layers)
    assert {key: found[key] for key in expected} == expected
    assert not [key for key in WRITTEN_OUT if found[key]]
    feeds = make_feeds(model)
    for mine, other in zip(
        Evaluator(small).run(None, feeds), Evaluator(model).run(None, feeds), strict=True
    ):
        assert same_values(mine, other)


def make_feeds(model: Model) -> dict[str, Any]:
    """Random inputs, with a mask that hides a word."""
    generator = np.random.default_rng(0)
    feeds: dict[str, Any] = {}
    for value in model.graph.inputs:
        shape = [SIZES.get(size, size) for size in value.type.shape]
        if value.type.element.is_float:
            feeds[value.name] = generator.standard_normal(shape, np.float32)
        elif value.name == "attention_mask":
            feeds[value.name] = np.ones(shape, np.int64)
            feeds[value.name][0, 1] = 0
        else:
            feeds[value.name] = generator.integers(0, 20, shape)
    return feeds


@pytest.mark.parametrize(("name", "exporter"), CASES)
def test_stored(name: str, exporter: str) -> None:
    model = sx.load(FOLDER / f"{name}_{exporter}.onnxtxt")
    check(model, simplify(model, extra_opset=RAISED_OPSET), name, 1)


@pytest.mark.parametrize(("name", "exporter"), [CASES[0], CASES[-1]])
def test_optimize_raises_the_opset_where_that_helps(name: str, exporter: str) -> None:
    model = sx.load(FOLDER / f"{name}_{exporter}.onnxtxt")
    small = optimize(model, 3)
    assert small.opset == RAISED_OPSET
    check(model, small, name, 1)
    assert optimize(model, 2).opset == simplify(model).opset == model.opset
    assert "Attention" not in operators(simplify(model))


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
@pytest.mark.parametrize(("name", "exporter"), CASES)
def test_exported(name: str, exporter: str, tmp_path: Path) -> None:
    pytest.importorskip("benchmarks.language", exc_type=ImportError)
    model = export_network(name, exporter, 2, 32, tmp_path / "model.onnx")
    check(model, simplify(model, extra_opset=RAISED_OPSET), name, 2)
