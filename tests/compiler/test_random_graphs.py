"""Random models: the compiler, the reference and onnxruntime agree."""

import pytest

from tests.compiler.random_compare import compare

SAMPLE, ALL = 60, 5000


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
