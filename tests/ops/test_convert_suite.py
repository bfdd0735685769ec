"""Every node case of the official suite, converted up to the newest opset and down to 17."""

import re
from collections import Counter
from typing import Any

import onnx
import pytest

from sardonyx.errors import ConversionError
from sardonyx.format.read import read_model
from sardonyx.format.write import write_model
from sardonyx.ops.catalog import NEWEST_OPSETS
from sardonyx.ops.convert import convert_opset
from tests.conformance import suite

LOWEST = 17


def _opset(case: suite.Case) -> int:
    return max((item.version for item in case.model.opset_import if item.domain == ""), default=0)


def _convert(content: bytes, version: int) -> bytes:
    model = read_model(memoryview(content), "case", None)
    converted = write_model(convert_opset(model, version)).joined()
    onnx.checker.check_model(onnx.load_from_string(converted))
    return converted


def _check(case: suite.Case, version: int) -> None:
    """Fail unless a case gives the same outputs after conversion as before."""
    content = case.model.SerializeToString()
    converted = _convert(content, version)
    exact = case.name not in suite.RANDOM
    for inputs, _ in case.data_sets:
        expected, actual = suite.reference(content, inputs), suite.reference(converted, inputs)
        assert len(actual) == len(expected)
        for left, right in zip(actual, expected, strict=True):
            half = getattr(right, "dtype", None) in ("float16", "bfloat16")
            rtol = 2**-6 if half else case.rtol
            suite.compare(left, right, rtol, max(case.atol, 1e-6), values=exact)


def test_every_case_converts_up() -> None:
    problems = []
    cases = [case for case in suite.cases("node") if 0 < _opset(case) < NEWEST_OPSETS[""]]
    for case in cases:
        try:
            _check(case, NEWEST_OPSETS[""])
        except Exception as error:  # noqa: BLE001 - every failure is one line of the report
            problems.append(f"{case.name}: {_line(error)}")
    assert not problems, f"{len(problems)} of {len(cases)} cases:\n" + "\n".join(problems)


NEW_TYPES = re.compile(r"float8|float4|float6|u?int4|u?int2\b|attribute 'saturate'")
"""In the reasons of cases about element types that no operator of opset 17 takes."""
BLOCKED = Counter(
    BitCast=6, Equal=2, ImageDecoder=9, RegexFullMatch=3, StringConcat=5, StringSplit=6
)
"""How many other cases older operators cannot say: the bits of floats, images, and texts."""


def test_cases_convert_down() -> None:
    cases = [case for case in suite.cases("node") if _opset(case) > LOWEST]
    problems, typed = [], 0
    blocked: Counter[str] = Counter()
    for case in cases:
        try:
            _check(case, LOWEST)
        except ConversionError as error:
            assert "node" in error.what, f"{case.name}: the reason names no node: {error}"
            if NEW_TYPES.search(error.what):
                typed += 1
            else:
                blocked.update(case.operators)
        except Exception as error:  # noqa: BLE001 - every failure is one line of the report
            problems.append(f"{case.name}: {_line(error)}")
    done = len(cases) - typed - blocked.total() - len(problems)
    print(f"{done} of {len(cases)} cases at opset {LOWEST}, {typed} of later types, {blocked}")
    assert not problems, f"{len(problems)} cases are wrong:\n" + "\n".join(problems)
    assert blocked == BLOCKED
    assert (done, typed) == (1099, 164)


def _line(error: Any) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


@pytest.mark.parametrize("kind", ["simple", "pytorch-converted", "pytorch-operator"])
def test_small_models_convert_up(kind: str) -> None:
    problems = []
    for case in suite.cases(kind):
        if 0 < _opset(case) < NEWEST_OPSETS[""]:
            try:
                _check(case, NEWEST_OPSETS[""])
            except Exception as error:  # noqa: BLE001 - every failure is one line of the report
                problems.append(f"{case.name}: {_line(error)}")
    assert not problems, "\n".join(problems)
