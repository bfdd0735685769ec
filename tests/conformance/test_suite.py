"""Every case of the official backend suite on every provider, and on other targets."""

import pytest

from sardonyx.compiler.host import host_features
from sardonyx.compiler.targets import TARGETS
from tests.conformance.suite import KINDS, Case, Compiled, cases, check, reference, session

CASES = [case for kind in KINDS for case in cases(kind)]
OTHERS = [target.name for target in TARGETS if host_features().issuperset(target.needs)][1:]
"""Targets below the best one that this machine runs."""
SAMPLED = 12
"""Of the other targets every so many cases run; all of them among the slow tests."""


@pytest.mark.parametrize("kind", KINDS)
def test_suite_size(kind: str) -> None:
    expected = {"node": 1884, "simple": 23, "pytorch-converted": 82, "pytorch-operator": 35}
    assert len(cases(kind)) == expected[kind]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_reference(case: Case) -> None:
    check(case, reference)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_compiled(case: Case) -> None:
    check(case, session)


@pytest.mark.parametrize("target", OTHERS)
@pytest.mark.parametrize("case", CASES[::SAMPLED], ids=lambda case: case.name)
def test_other_targets(case: Case, target: str) -> None:
    check(case, Compiled(target))


@pytest.mark.slow
@pytest.mark.parametrize("target", OTHERS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_all_on_other_targets(case: Case, target: str) -> None:
    check(case, Compiled(target))
