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
from sardonyx.ops.convert import TypeRule, convert_opset
from tests.conformance import suite

LOWEST = 17


def _opset(case: suite.Case) -> int:
    return max((item.version for item in case.model.opset_import if item.domain == ""), default=0)


def _convert(content: bytes, version: int, types: TypeRule = "strict") -> bytes:
    model = read_model(memoryview(content), "case", None)
    converted = write_model(convert_opset(model, version, types=types)).joined()
    onnx.checker.check_model(onnx.load_from_string(converted))
    return converted


def _check(case: suite.Case, version: int, types: TypeRule = "strict") -> bytes:
    """A case's model in another version; fails unless it gives the same outputs as before."""
    content = case.model.SerializeToString()
    converted = _convert(content, version, types)
    exact = case.name not in suite.RANDOM
    for inputs, _ in case.data_sets:
        expected, actual = suite.reference(content, inputs), suite.reference(converted, inputs)
        assert len(actual) == len(expected)
        for left, right in zip(actual, expected, strict=True):
            half = getattr(right, "dtype", None) in ("float16", "bfloat16")
            rtol = 2**-6 if half else case.rtol
            suite.compare(left, right, rtol, max(case.atol, 1e-6), values=exact)
    return converted


def test_every_case_converts_up() -> None:
    problems = []
    cases = [case for case in suite.cases("node") if 0 < _opset(case) < NEWEST_OPSETS[""]]
    for case in cases:
        try:
            _check(case, NEWEST_OPSETS[""])
        except Exception as error:  # noqa: BLE001 - every failure is one line of the report
            problems.append(f"{case.name}: {_line(error)}")
    assert not problems, f"{len(problems)} of {len(cases)} cases:\n" + "\n".join(problems)


BLOCKED = Counter(BitCast=4, ImageDecoder=9, RegexFullMatch=3, StringConcat=5, StringSplit=6)
"""How many cases older operators cannot say: the bits of floats, NaNs' too, images, and texts."""
NO_INFINITY = "saturate=0 with float8e5m2 cannot be said before opset 19"
STRICT, KEPT, INFINITE = 1103, 158, 6
"""Cases that become valid models of opset 17, that keep later types, and that say NO_INFINITY."""


def _downgraded(case: suite.Case, types: TypeRule) -> bytes | str:
    """A case's model at the lowest opset, which computes the same, or why there is none."""
    try:
        return _check(case, LOWEST, types)
    except ConversionError as error:
        assert "node" in error.what, f"{case.name}: the reason names no node: {error}"
        assert ("types='keep'" in str(error)) == bool(NEW_TYPES.search(error.what))
        return error.what


NEW_TYPES = re.compile(r"\b(float8|float4|u?int4|u?int2\b).* is not allowed")


def test_cases_convert_down(caplog: pytest.LogCaptureFixture) -> None:
    cases = [case for case in suite.cases("node") if _opset(case) > LOWEST]
    problems, strict, kept, infinite = [], 0, 0, 0
    blocked: Counter[str] = Counter()
    for case in cases:
        try:
            result = _downgraded(case, "strict")
            if isinstance(result, bytes):
                strict += 1
                assert _convert(case.model.SerializeToString(), LOWEST, "keep") == result
            elif NEW_TYPES.search(result):
                caplog.clear()
                loose = _downgraded(case, "keep")
                if isinstance(loose, bytes):
                    kept += 1
                    assert f"outside of opset {LOWEST}: node" in caplog.text
                else:
                    infinite += NO_INFINITY in loose
            else:
                blocked.update(case.operators)
        except Exception as error:  # noqa: BLE001 - every failure is one line of the report
            problems.append(f"{case.name}: {_line(error)}")
    print(f"{strict} of {len(cases)} cases at opset {LOWEST}, {kept} with later types, {blocked}")
    assert not problems, f"{len(problems)} cases are wrong:\n" + "\n".join(problems)
    assert blocked == BLOCKED
    assert (strict, kept, infinite) == (STRICT, KEPT, INFINITE)


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
