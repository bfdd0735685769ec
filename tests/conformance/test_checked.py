"""Official cases with every access of every kernel checked, and no use of what nobody wrote."""

import pytest

from sardonyx.compiler.host import host_features
from sardonyx.compiler.targets import ACCESSES, TARGETS
from tests.conformance.suite import KINDS, Case, Compiled, cases, check

CASES = [case for kind in KINDS for case in cases(kind)]
RUNNABLE = [target.name for target in TARGETS if host_features().issuperset(target.needs)]
SAMPLED = 16
"""Every so many cases run, for the best target; all for all targets among the slow tests."""


@pytest.mark.parametrize("case", CASES[5::SAMPLED], ids=lambda case: case.name)
def test_checked(case: Case) -> None:
    check(case, Compiled(checked=ACCESSES))


@pytest.mark.slow
@pytest.mark.parametrize("target", RUNNABLE)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_all_checked(case: Case, target: str) -> None:
    check(case, Compiled(target, ACCESSES))
