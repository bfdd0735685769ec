"""Concats and Slices that follow one another."""

from sardonyx.passes.merge_joins import merge_joins
from tests.passes.cases import becomes, model_of, stays

CUT = ("int64[1] b = {0}", "int64[1] e = {2}", "int64[1] zero = {0}", "int64[1] one = {1}")


def test_concats() -> None:
    signature = "(float[n,2] x, float[n,2] z) => (float[n,?] y)"
    model = model_of(signature, "a = Concat<axis=1>(x, z) y = Concat<axis=-1>(a, x)")
    becomes(model, ["Concat"], merge_joins)
    stays(model_of(signature, "a = Concat<axis=0>(x, z) y = Concat<axis=1>(a, a)"), "", merge_joins)


def test_a_concat_with_other_users_stays() -> None:
    signature = "(float[n,2] x) => (float[n,6] y, float[n,4] z)"
    body = "a = Concat<axis=1>(x, x) y = Concat<axis=1>(a, x) z = Neg(a)"
    stays(model_of(signature, body), "", merge_joins)


def test_slices_of_two_axes() -> None:
    signature = "(float[4,4] x) => (float[?,?] y)"
    model = model_of(signature, "a = Slice(x, b, e, zero) y = Slice(a, b, e, one)", *CUT)
    becomes(model, ["Slice"], merge_joins)
    twice = model_of(signature, "a = Slice(x, b, e, zero) y = Slice(a, b, e, zero)", *CUT)
    stays(twice, "an axis is cut twice", merge_joins)


def test_open_bounds_stay() -> None:
    model = model_of("(float[4,4] x, int64[1] f) => (float[?,?] y)",
                     "a = Slice(x, b, f, zero) y = Slice(a, b, e, one)", *CUT)  # fmt: skip
    stays(model, "a bound is not constant", merge_joins)


def test_a_split_joined_again() -> None:
    signature = "(float[n,4] x) => (float[n,4] y)"
    model = model_of(
        signature, "a, b = Split<axis=1, num_outputs=2>(x) c = Concat<axis=1>(a, b) y = Neg(c)"
    )
    becomes(model, ["Neg"], merge_joins)
    other = "a, b = Split<axis=1, num_outputs=2>(x) c = Concat<axis=1>(b, a) y = Neg(c)"
    stays(model_of(signature, other), "", merge_joins)


def test_subgraphs() -> None:
    model = model_of(
        "(bool c, float[2] x) => (float[6] y)",
        """y = If (c) <
             then_branch = t () => (float[6] p) {
               a = Concat<axis=0>(x, x) p = Concat<axis=0>(a, x) },
             else_branch = e () => (float[6] q) { q = Concat<axis=0>(x, x, x) }
           >""",
    )
    becomes(model, ["If", "Concat", "Concat"], merge_joins)
