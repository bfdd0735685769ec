"""Damaged files: the generator called `bytes`."""

import random
from functools import cache

from tests.conformance.suite import cases
from tests.fuzz.mutate import default_corpus, mutate
from tests.fuzz.trial import Trial

RUNS = 2
SHARE = 18
LARGEST = 12_000


@cache
def corpus() -> tuple[bytes, ...]:
    """Small real models, and models of the official suite."""
    official = [bytes(case.model.SerializeToString()) for case in cases("node")[::7]]
    real = [content for content in default_corpus() if len(content) < LARGEST]
    return (*real, *[content for content in official if len(content) < 2000])


def make(seed: int) -> Trial:
    """A damaged file, opened and not run."""
    chance = random.Random(seed)
    return Trial(mutate(chance.choice(corpus()), chance), "file", opens=True)
