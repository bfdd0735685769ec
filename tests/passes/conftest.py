"""A rule that fails on a model of these tests is a defect of ours."""

from collections.abc import Iterator

import pytest

from tests.logged import warnings_of


@pytest.fixture(autouse=True)
def failed_rules() -> Iterator[list[str]]:
    """What rules that failed were logged with; a test that expects some takes them out."""
    with warnings_of("sardonyx.passes", "sardonyx.compiler") as found:
        yield found
    assert not found
