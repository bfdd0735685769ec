"""Cases of the official suite whose output is random: judged over many runs."""

from typing import Any

import numpy as np
import pytest

from sardonyx.format.load import load
from sardonyx.ops.evaluate import Evaluator
from tests.conformance.suite import RANDOM, Case, cases

RUNS = 400
RANDOM_CASES = [case for case in cases("node") if case.name in RANDOM]


def outputs(case: Case) -> tuple[list[Any], np.ndarray]:
    """The inputs, and the first output of many runs with different seeds."""
    ((inputs, _),) = case.data_sets
    model = load(case.model)
    assert model.graph is not None
    for node in model.graph.all_nodes():
        node.attributes.pop("seed", None)
    feeds = dict(zip([value.name for value in model.graph.inputs], inputs, strict=True))
    runs = [Evaluator(model, seed=seed).run(None, feeds)[0] for seed in range(RUNS)]
    return inputs, np.stack(runs).astype(np.float64)


def test_every_random_case_is_here() -> None:
    assert {case.name for case in RANDOM_CASES} == RANDOM


@pytest.mark.parametrize("case", RANDOM_CASES, ids=lambda case: case.name)
def test_distribution(case: Case) -> None:
    inputs, runs = outputs(case)
    if "bernoulli" in case.name:
        (probability,) = inputs
        if case.name.endswith("expanded"):
            # This graph of the suite says Greater(random, p), which is true with 1 - p.
            probability = 1 - probability
        assert set(np.unique(runs)) <= {0.0, 1.0}
        deviation = np.sqrt(probability * (1 - probability) / RUNS) + 1e-9
        assert np.all(np.abs(runs.mean(0) - probability) < 5 * deviation + 1e-6)
    else:
        x, ratio = inputs[0], float(inputs[1]) if len(inputs) > 1 else 0.5
        kept = runs != 0
        assert abs(kept.mean() - (1 - ratio)) < 5 * np.sqrt(ratio * (1 - ratio) / kept.size)
        expected = np.broadcast_to(x / (1 - ratio), runs.shape)
        np.testing.assert_allclose(runs[kept], expected[kept], rtol=1e-5)
