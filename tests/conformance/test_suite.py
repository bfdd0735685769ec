"""Every case of the official backend suite on every provider."""

import pytest

from tests.conformance.suite import KINDS, cases, check, compiled, reference

CASES = [case for kind in KINDS for case in cases(kind)]


@pytest.mark.parametrize("kind", KINDS)
def test_suite_size(kind: str) -> None:
    expected = {"node": 1884, "simple": 23, "pytorch-converted": 82, "pytorch-operator": 35}
    assert len(cases(kind)) == expected[kind]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_reference(case) -> None:
    check(case, reference)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_compiled(case) -> None:
    check(case, compiled)
