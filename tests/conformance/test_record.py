"""The record of the official cases says what the compiler does."""

from importlib.metadata import version

import pytest

from sardonyx.compiler.coverage import official_cases
from tests.conformance.record import case_fallbacks
from tests.conformance.suite import Case, cases

RECORD = official_cases()
SAMPLED = 16
"""Of the cases that are said to be native every so many are looked at; all among the slow tests."""
LISTED = [case for case in cases("node") if case.name in RECORD.fallbacks]
OTHERS = [case for case in cases("node") if case.name not in RECORD.fallbacks]


def test_the_record_is_of_these_cases() -> None:
    assert (RECORD.version, RECORD.count) == (version("onnx"), len(cases("node")))
    assert len(LISTED) == len(RECORD.fallbacks)


@pytest.mark.parametrize("case", [*LISTED, *OTHERS[::SAMPLED]], ids=lambda case: case.name)
def test_recorded(case: Case) -> None:
    assert case_fallbacks(case) == RECORD.fallbacks.get(case.name, ())


@pytest.mark.slow
@pytest.mark.parametrize("case", OTHERS, ids=lambda case: case.name)
def test_native(case: Case) -> None:
    assert case_fallbacks(case) == ()
