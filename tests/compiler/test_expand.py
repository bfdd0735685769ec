"""Rules that fail: the node runs its reference, and somebody is told."""

from typing import Any

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.compiler.lowerings import LOWERINGS
from sardonyx.compiler.program import compile_model
from sardonyx.ops.activations import SwiGLU
from sardonyx.ops.catalog import standard

X = np.float32([[1, -2, 3]])


def fail(*_: Any, **__: Any) -> None:
    raise ZeroDivisionError("a defect")


def model(call: str) -> sx.Model:
    return sx.load_text(
        '<ir_version: 14, opset_import: ["": 28]> g (float[n,3] x) => (float[n,3] y)'
        f" {{ y = {call} }}"
    )


def test_a_lowering_that_fails_is_told(
    monkeypatch: pytest.MonkeyPatch, failed_rules: list[str]
) -> None:
    monkeypatch.setitem(LOWERINGS, ("", "Relu"), fail)
    program = compile_model(model("Relu(x)"), threads=1)
    assert program.run({"x": X})[0].tolist() == [[1, 0, 3]]
    assert failed_rules == [
        "node of 'y' (Relu) does not get the form it should: ZeroDivisionError: a defect"
    ]
    failed_rules.clear()


def test_an_expansion_that_fails_is_told(
    monkeypatch: pytest.MonkeyPatch, failed_rules: list[str]
) -> None:
    assert standard()["", "SwiGLU"] is SwiGLU
    monkeypatch.setattr(SwiGLU, "function", fail)
    program = compile_model(model("SwiGLU(x, x)"), threads=1)
    expected = X / (1 + np.exp(-X)) * X
    np.testing.assert_allclose(program.run({"x": X})[0], expected, rtol=1e-5)
    (message,) = failed_rules
    assert "SwiGLU" in message
    assert "a defect" in message
    failed_rules.clear()
