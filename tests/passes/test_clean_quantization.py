"""Pairs of quantization that undo each other."""

import pytest

from sardonyx.passes.clean_quantization import clean_quantization
from tests.passes.cases import becomes, model_of, stays

BYTES = "(uint8[n,3] x) => (uint8[n,3] y)"
SCALES = ("float s = {0.5}", "float t = {0.25}", "uint8 z = {3}", "uint8 w = {0}", "int8 v = {0}")


def test_a_pair_goes() -> None:
    body = """a = DequantizeLinear(x, s, z) b = QuantizeLinear(a, s, z)
              c = DequantizeLinear(b, t, z) y = QuantizeLinear(c, s, z)"""
    becomes(
        model_of(BYTES, body, *SCALES), ["DequantizeLinear", "QuantizeLinear"], clean_quantization
    )


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (
            "a = DequantizeLinear(x, s, z) y = QuantizeLinear(a, t, z)",
            "scales or zero points differ",
        ),
        (
            "a = DequantizeLinear(x, s, z) y = QuantizeLinear(a, s, w)",
            "scales or zero points differ",
        ),
        ("a = DequantizeLinear(x, s) y = QuantizeLinear(a, s, w)", "only one has a zero point"),
    ],
)
def test_other_scales(body: str, reason: str) -> None:
    stays(model_of(BYTES, body, *SCALES), reason, clean_quantization)


def test_rectifier_before_quantization() -> None:
    signature = "(float[n,3] x) => (uint8[n,3] y)"
    model = model_of(signature, "a = Relu(x) y = QuantizeLinear(a, s, w)", *SCALES)
    becomes(model, ["QuantizeLinear"], clean_quantization)
    kept = model_of(signature, "a = Relu(x) y = QuantizeLinear(a, s, z)", *SCALES)
    stays(kept, "numbers below zero are kept", clean_quantization)


def test_subgraphs() -> None:
    model = model_of(
        "(bool c, float[3] x) => (uint8[3] y)",
        """y = If (c) <
             then_branch = t_ () => (uint8[3] p) { a = Relu(x) p = QuantizeLinear(a, s, w) },
             else_branch = e () => (uint8[3] q) { q = QuantizeLinear(x, t, w) }
           >""",
        *SCALES,
    )
    becomes(model, ["If", "QuantizeLinear", "QuantizeLinear"], clean_quantization)
