"""Casts that follow one another."""

from sardonyx.passes.merge_casts import merge_casts
from tests.passes.cases import becomes, model_of, stays

FLOAT, INT32, INT64, DOUBLE = 1, 6, 7, 11


def test_a_wider_type_between_is_left_out() -> None:
    model = model_of(
        "(int32[n] x) => (float[n] y)", f"a = Cast<to={INT64}>(x) y = Cast<to={FLOAT}>(a)"
    )
    becomes(model, ["Cast"], merge_casts)
    back = model_of("(float[n] x) => (float[n] y)",
                    f"a = Cast<to={DOUBLE}>(x) b = Cast<to={FLOAT}>(a) y = Neg(b)")  # fmt: skip
    becomes(back, ["Neg"], merge_casts)


def test_a_cast_that_loses_stays() -> None:
    body = f"a = Cast<to={INT32}>(x) y = Cast<to={FLOAT}>(a)"
    stays(model_of("(float[n] x) => (float[n] y)", body), "the first cast loses", merge_casts)
    narrow = f"a = Cast<to={FLOAT}>(x) y = Cast<to={DOUBLE}>(a)"
    stays(model_of("(int64[n] x) => (double[n] y)", narrow), "the first cast loses", merge_casts)


def test_casts_that_say_how_to_round_stay() -> None:
    body = f"a = Cast<to={DOUBLE}>(x) y = Cast<to={FLOAT}, saturate=0>(a)"
    stays(model_of("(float[n] x) => (float[n] y)", body), "says how to round", merge_casts)


def test_subgraphs() -> None:
    model = model_of(
        "(bool c, float[2] x) => (float[2] y)",
        """y = If (c) <
             then_branch = t () => (float[2] p) {
               a = Cast<to=11>(x) b = Cast<to=1>(a) p = Neg(b) },
             else_branch = e () => (float[2] q) { q = Neg(x) }
           >""",
    )
    becomes(model, ["If", "Neg", "Neg"], merge_casts)
