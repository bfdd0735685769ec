"""Activations that were written out."""

import pytest

from sardonyx.passes.raise_activations import raise_activations
from tests.passes.cases import becomes, model_of, operators, run_pass, stays

ROW = "(float[n,3] x) => (float[n,3] y)"
NUMBERS = (
    "float root = {1.4142135}", "float rooted = {0.70710678}", "float one = {1}",
    "float half = {0.5}", "float three = {3}", "float six = {6}", "float zero = {0}",
    "float cube = {0.044715}", "float sixth = {0.16666667}",
    "float ratio = {0.7978845608}", "float wrong = {1.5}",
)  # fmt: skip
ERF = "d = Div(x, root) e = Erf(d) p = Add(e, one)"
TANH = """c = Pow(x, three) k = Mul(cube, c) s = Add(x, k) m = Mul(s, ratio) t = Tanh(m)
          p = Add(one, t)"""

RAISED = [
    (f"{ERF} a = Mul(x, p) y = Mul(a, half)", "Gelu", 20),
    (f"{ERF} a = Mul(half, p) y = Mul(x, a)", "Gelu", 20),
    (f"{ERF} a = Mul(x, half) y = Mul(a, p)", "Gelu", 20),
    ("d = Mul(x, rooted) e = Erf(d) p = Add(one, e) a = Mul(x, p) y = Mul(a, half)", "Gelu", 20),
    (f"{TANH} a = Mul(x, half) y = Mul(a, p)", "Gelu", 20),
    (f"{TANH} a = Mul(half, p) y = Mul(x, a)", "Gelu", 20),
    ("s = Sigmoid(x) y = Mul(x, s)", "Swish", 24),
    ("s = Softplus(x) t = Tanh(s) y = Mul(t, x)", "Mish", 18),
    ("h = HardSigmoid<alpha=0.16666667, beta=0.5>(x) y = Mul(x, h)", "HardSwish", 14),
    ("a = Add(x, three) c = Clip(a, zero, six) m = Mul(x, c) y = Div(m, six)", "HardSwish", 14),
    ("q = Mul(x, wrong) s = Sigmoid(q) y = Mul(x, s)", "Swish", 24),
    ("e = Exp(x) p = Add(e, one) l = Log(p) t = Tanh(l) y = Mul(x, t)", "Mish", 18),
    ("a = Add(x, three) c = Clip(a, zero, six) m = Mul(x, c) y = Mul(m, sixth)", "HardSwish", 14),
    (f"{TANH.replace('c = Pow(x, three)', 'b = Mul(x, x) c = Mul(b, x)')} a = Mul(x, half) "
     "y = Mul(a, p)", "Gelu", 20),
    ("a = Add(x, three) c = Clip(a, zero, six) y = Div(c, six)", "HardSigmoid", 11),
    ("a = Add(x, three) c = Clip(a, zero, six) y = Mul(sixth, c)", "HardSigmoid", 11),
]  # fmt: skip


@pytest.mark.parametrize(
    ("body", "name", "opset"), RAISED, ids=[f"{r[1]}-{i}" for i, r in enumerate(RAISED)]
)
def test_raised(body: str, name: str, opset: int) -> None:
    becomes(model_of(ROW, body, *NUMBERS, opset=opset), [name], raise_activations)


@pytest.mark.parametrize(
    ("body", "name", "opset"), RAISED[:14], ids=[f"{r[1]}-{i}" for i, r in enumerate(RAISED[:14])]
)
def test_not_before_the_opset_has_it(body: str, name: str, opset: int) -> None:
    model = model_of(ROW, body, *NUMBERS, opset=opset - 1)
    assert name not in operators(run_pass(model, raise_activations)[0])


NEARLY = [
    ("d = Div(x, wrong) e = Erf(d) p = Add(e, one) a = Mul(x, p) y = Mul(a, half)", ""),
    (f"{ERF} a = Mul(x, p) y = Mul(a, wrong)", ""),
    ("s = Sigmoid(x) n = Neg(x) y = Mul(n, s)", ""),
    ("h = HardSigmoid(x) y = Mul(x, h)", ""),
    ("e = Exp(x) p = Add(e, half) l = Log(p) t = Tanh(l) y = Mul(x, t)", ""),
    ("q = Mul(x, x) s = Sigmoid(q) y = Mul(x, s)", "not a constant number"),
    ("a = Add(x, three) c = Clip(a, zero, six) m = Mul(x, c) y = Mul(m, wrong)", ""),
    ("a = Add(x, three) c = Clip(a, zero, three) y = Div(c, six)", "the bounds are not 0 and 6"),
    ("a = Add(x, three) c = Clip(a, zero) y = Div(c, six)", "the bounds are not known"),
]


@pytest.mark.parametrize(("body", "reason"), NEARLY)
def test_nearly(body: str, reason: str) -> None:
    stays(model_of(ROW, body, *NUMBERS, opset=24), reason, raise_activations)


def test_other_users_inside() -> None:
    signature = "(float[n,3] x) => (float[n,3] y, float[n,3] z)"
    stays(model_of(signature, "s = Sigmoid(x) y = Mul(x, s) z = Neg(s)", opset=24), "",
          raise_activations)  # fmt: skip


def test_subgraphs() -> None:
    model = model_of(
        "(bool c, float[3] x) => (float[3] y)",
        """y = If (c) <
             then_branch = t () => (float[3] p) { s = Sigmoid(x) p = Mul(x, s) },
             else_branch = e () => (float[3] q) { q = Neg(x) }
           >""",
        opset=24,
    )
    becomes(model, ["If", "Swish", "Neg"], raise_activations)
