"""A rule that fails on a model of these tests is a defect of ours."""

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def failed_rules() -> Iterator[list[str]]:
    """What rules that failed were logged with; a test that expects some takes them out."""
    found: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: found.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("sardonyx.passes")
    logger.addHandler(handler)
    yield found
    logger.removeHandler(handler)
    assert not found
