"""Tests leave the user's cache alone; those that are about it make their own.

A rule of the passes or the compiler that fails leaves its nodes as they are, which hides the
defect from results: a test in which that happens fails.
"""

import os
from collections.abc import Iterator

import pytest

from tests.logged import warnings_of

os.environ["SARDONYX_CACHE"] = "off"


@pytest.fixture(autouse=True)
def failed_rules() -> Iterator[list[str]]:
    """What the passes and the compiler warn of; who expects a warning takes it out."""
    with warnings_of("sardonyx.passes", "sardonyx.compiler") as messages:
        yield messages
    assert not messages
