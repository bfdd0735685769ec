"""Every rule is found where it is broken: under its name, at its place."""

import onnx
import pytest

from sardonyx.checker import check as check_model
from sardonyx.checker import find_problems
from sardonyx.checker.rules import RULES
from sardonyx.errors import CheckError
from tests.checker import (
    broken_functions,
    broken_names,
    broken_operators,
    broken_structure,
    broken_tensors,
)
from tests.checker.broken_models import BRANCHES, CALL, PLAIN, Broken, sound

CASES = [
    *broken_structure.CASES,
    *broken_names.CASES,
    *broken_operators.CASES,
    *broken_tensors.CASES,
    *broken_functions.CASES,
]
ELSEWHERE = {
    "inference", "inference-failed", "nesting-too-deep", "operator-custom-unknown",
    "tensor-array-mismatch", "too-many-functions", "value-name-missing",
}  # fmt: skip
"""Rules with tests of their own: they need options, or models that no small file holds."""


@pytest.mark.parametrize("text", [PLAIN, BRANCHES, CALL], ids=["plain", "branches", "call"])
def test_sound_models_have_no_problems(text: str) -> None:
    assert find_problems(sound(text)) == []
    onnx.checker.check_model(sound(text))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_broken_model(case: Broken) -> None:
    content = case.message(onnx).SerializeToString()
    findings = find_problems(content)
    places = [(finding.rule, finding.where) for finding in findings]
    assert (case.rule, case.where) in places
    found = next(item for item in findings if (item.rule, item.where) == (case.rule, case.where))
    assert found.what and found.remedy == RULES[case.rule].remedy
    if RULES[case.rule].warning:
        assert found.severity == "warning"
        return
    with pytest.raises(CheckError) as caught:
        check_model(content)
    assert found in caught.value.findings


def test_every_rule_has_a_case() -> None:
    assert {case.rule for case in CASES} | ELSEWHERE == set(RULES)


def test_there_are_enough_cases() -> None:
    assert len(CASES) >= 220
