"""Tests leave the user's cache alone; those that are about it make their own.

A rule of the compiler that fails leaves its node to the reference, which hides the defect from
results: a test in which that happens fails.
"""

import logging
import os
from collections.abc import Iterator

import pytest

os.environ["SARDONYX_CACHE"] = "off"


class _Collector(logging.Handler):
    def __init__(self, messages: list[str]) -> None:
        super().__init__(logging.WARNING)
        self.messages = messages

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


@pytest.fixture(autouse=True)
def failed_rules() -> Iterator[list[str]]:
    """What the compiler warns of; who expects a warning takes it out."""
    messages: list[str] = []
    collector, log = _Collector(messages), logging.getLogger("sardonyx.compiler")
    log.addHandler(collector)
    yield messages
    log.removeHandler(collector)
    assert not messages
