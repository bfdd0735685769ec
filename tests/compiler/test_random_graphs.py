"""Random models: the compiler, the reference and onnxruntime agree."""

import pytest

from sardonyx.compiler.targets import ACCESSES
from tests.compiler.random_compare import compare

SAMPLE, ALL = 60, 5000
CHECKED = 30
"""Models of which every access is checked."""


@pytest.mark.parametrize("start", range(0, SAMPLE, 5))
def test_random_models_agree(start: int) -> None:
    problems = [line for seed in range(start, start + 5) for line in compare(seed).problems]
    assert problems == []


@pytest.mark.slow
@pytest.mark.parametrize("start", range(SAMPLE, ALL, 20))
def test_many_random_models_agree(start: int) -> None:
    seeds = range(start, min(start + 20, ALL))
    problems = [line for seed in seeds for line in compare(seed).problems]
    assert problems == []


@pytest.mark.parametrize("start", range(ALL, ALL + CHECKED, 5))
def test_checked_models_agree(start: int) -> None:
    problems = [
        line
        for seed in range(start, start + 5)
        for line in compare(seed, checked=ACCESSES).problems
    ]
    assert problems == []


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, ALL, 20))
def test_many_checked_models_agree(start: int) -> None:
    seeds = range(start, start + 20)
    problems = [line for seed in seeds for line in compare(seed, checked=ACCESSES).problems]
    assert problems == []
