"""Tests leave the user's cache alone; those that are about it make their own.

A rule of the passes or the compiler that fails leaves its nodes as they are, which hides the
defect from results: a test in which that happens fails. So does one in which an error of ours had
to stand in for another, even where it expects a SardonyxError.
"""

import os
from collections.abc import Iterator

import pytest

from sardonyx import boundary
from sardonyx.errors import InternalError
from tests.logged import warnings_of

os.environ["SARDONYX_CACHE"] = "off"


@pytest.fixture(autouse=True)
def failed_rules() -> Iterator[list[str]]:
    """What the passes and the compiler warn of; who expects a warning takes it out."""
    with warnings_of("sardonyx.passes", "sardonyx.compiler") as messages:
        yield messages
    assert not messages


@pytest.fixture(autouse=True)
def internal_errors(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[InternalError]]:
    """Defects that were met at the public boundary; who makes one on purpose takes it out."""
    met: list[InternalError] = []
    make = boundary.internal_error

    def noticed(error: Exception, doing: str) -> InternalError:
        made = make(error, doing)
        met.append(made)
        return made

    monkeypatch.setattr(boundary, "internal_error", noticed)
    yield met
    assert not met
