"""Most accesses of the suite's kernels are proven to stay inside, and none is known to be wrong."""

from collections import Counter

from sardonyx.loops.bounds import Verdict
from tests.conformance.unproven import judged, official_models

SAMPLED = 40
PROVEN = 0.85
"""The part that is proven at least; more where kernels do not look for places in data."""


def test_accesses_are_proven() -> None:
    counts = Counter(item.verdict for _, item in judged(official_models([], SAMPLED)))
    assert counts[Verdict.OUTSIDE] == 0
    assert counts[Verdict.INSIDE] >= PROVEN * counts.total()
