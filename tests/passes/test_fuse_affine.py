"""Arithmetic with constants."""

import pytest

from sardonyx.passes.fuse_affine import fuse_affine
from tests.passes.cases import becomes, model_of, stays, weights

ROW = "(float[n,3] x) => (float[n,3] y)"
TWO, THREE = "float a = {2}", "float[3] b = {3, 4, 5}"
ONE = "float one = {1}"
NORM = (weights("s", 2), weights("o", 2), weights("m", 2), weights("v", 2, positive=True))
IMAGE = "(float[n,2,3,3] x) => (float[n,2,3,3] y)"

JOINED = [
    ("p = Mul(x, a) y = Mul(b, p)", ["Mul"]),
    ("p = Add(x, a) y = Add(p, b)", ["Add"]),
    ("p = Mul(x, a) y = Div(p, b)", ["Mul"]),
    ("p = Div(x, a) y = Div(p, b)", ["Mul"]),
    ("p = Div(x, b) y = Mul(p, a)", ["Mul"]),
    ("p = Neg(x) q = Neg(p) y = Exp(q)", ["Exp"]),
    ("p = Neg(x) y = Add(p, b)", ["Sub"]),
    ("p = Relu(x) q = Relu(p) y = Exp(q)", ["Relu", "Exp"]),
    ("e = Exp(x) p = Reciprocal(e) y = Mul(x, p)", ["Exp", "Div"]),
    ("e = Exp(x) p = Div(one, e) y = Mul(p, x)", ["Exp", "Div"]),
]


@pytest.mark.parametrize(("body", "expected"), JOINED, ids=[item[0] for item in JOINED])
def test_joined(body: str, expected: list[str]) -> None:
    becomes(model_of(ROW, body, TWO, THREE, ONE), expected, fuse_affine)


KEPT = [
    ("p = Div(a, x) y = Mul(p, b)", ""),
    ("p = Mul(x, a) y = Div(b, p)", ""),
    ("p = Neg(x) q = Abs(p) y = Neg(q)", ""),
    ("p = Abs(x) y = Relu(p)", "the two differ"),
    ("p = Mul(x, a) y = Add(p, b)", ""),
]


@pytest.mark.parametrize(("body", "reason"), KEPT, ids=[item[0] for item in KEPT])
def test_kept(body: str, reason: str) -> None:
    stays(model_of(ROW, body, TWO, THREE), reason, fuse_affine)


def test_constants_do_not_grow() -> None:
    model = model_of("(float[2,3] x) => (float[2,3] y)", "p = Mul(x, c) y = Mul(p, b)",
                     "float[2,1] c = {1, 2}", THREE)  # fmt: skip
    stays(model, "grow together", fuse_affine)


def test_constants_that_overflow_together_stay() -> None:
    model = model_of(ROW, "p = Mul(x, c) y = Mul(p, d)", "float c = {1e-30}", "float d = {1e-30}")
    stays(model, "", fuse_affine)


def test_quotients_of_whole_numbers_are_not_joined() -> None:
    model = model_of("(int32[n] x) => (int32[n] y)", "q = Abs(x) r = Add(q, c) p = Div(c, r) "
                     "y = Mul(x, p)", "int32 c = {1}")  # fmt: skip
    stays(model, "whole numbers are divided", fuse_affine)


def test_whole_numbers_are_not_divided_anew() -> None:
    model = model_of("(int32[n] x) => (int32[n] y)", "p = Mul(x, c) y = Div(p, d)",
                     "int32 c = {3}", "int32 d = {2}")  # fmt: skip
    stays(model, "whole numbers are divided", fuse_affine)


@pytest.mark.parametrize("step", ["Mul(p, k)", "Add(k, p)"])
def test_normalization_takes_scale_and_shift(step: str) -> None:
    body = f"p = BatchNormalization(x, s, o, m, v) y = {step}"
    becomes(
        model_of(IMAGE, body, *NORM, weights("k", 2, 1, 1)), ["BatchNormalization"], fuse_affine
    )
    stays(model_of(IMAGE, body, *NORM, weights("k", 3)), "not per channel", fuse_affine)


def test_a_centered_normalization() -> None:
    body = """d = Sub(x, m) e = Exp(d) f = ReduceSum(e) g = Sqrt(f) r = Reciprocal(g) h = Mul(r, k)
              p = Mul(x, h) q = Mul(m, h) t = Sub(b, q) y = Add(p, t)"""
    model = model_of("(float[2,3] x, float[2,1] m) => (float[2,3] y)", body, THREE, weights("k", 3))
    expected = ["Sub", "Exp", "ReduceSum", "Sqrt", "Div", "Mul", "Add"]
    becomes(model, expected, fuse_affine)


def test_old_arithmetic_without_broadcasting_is_left() -> None:
    model = model_of("(float[2,3] x) => (float[2,3] y)",
                     "p = Mul<broadcast=1>(x, a) y = Mul<broadcast=1>(p, a)", "float[1] a = {2}",
                     opset=6, ir=4)  # fmt: skip
    stays(model, "", fuse_affine)


def test_subgraphs() -> None:
    model = model_of(
        "(bool c, float[3] x) => (float[3] y)",
        """y = If (c) <
             then_branch = t () => (float[3] p) { q = Mul(x, a) p = Mul(q, b) },
             else_branch = e () => (float[3] r) { r = Neg(x) }
           >""",
        TWO, THREE,
    )  # fmt: skip
    becomes(model, ["If", "Mul", "Neg"], fuse_affine)
