"""First states of recurrent operators."""

import pytest

from sardonyx.passes.drop_states import drop_states
from tests.passes.cases import becomes, model_of, stays, weights

SIGNATURE = "(float[n,b,3] x) => (float[n,1,b,2] y)"
SHAPE = """s = Shape<start=1, end=2>(x) t = Concat<axis=0>(one, s, two) h = ConstantOfShape(t)"""
SIZES = ("int64[1] one = {1}", "int64[1] two = {2}", "float zero = {0}", "float some = {0.5}")


def parts(gates: int) -> tuple[str, ...]:
    return (weights("w", 1, 2 * gates, 3), weights("r", 1, 2 * gates, 2), *SIZES)


@pytest.mark.parametrize(("name", "gates"), [("RNN", 1), ("GRU", 3), ("LSTM", 4)])
def test_zeros_go(name: str, gates: int) -> None:
    body = f"{SHAPE} y = {name}<hidden_size=2>(x, w, r, , , h)"
    becomes(model_of(SIGNATURE, body, *parts(gates)), [name], drop_states)


def test_both_states() -> None:
    body = f"{SHAPE} c = Expand(zero, t) y = LSTM<hidden_size=2>(x, w, r, , , h, c)"
    becomes(model_of(SIGNATURE, body, *parts(4)), ["LSTM"], drop_states)


def test_a_part_of_zeros() -> None:
    body = f"""{SHAPE.replace("(one, s, two)", "(two, s, two)")} a = Slice(h, zeros, one, zeros)
      b = Slice(h, one, two, zeros) y = LSTM<hidden_size=2>(x, w, r, , , a, b)"""
    model = model_of(SIGNATURE, body, *parts(4), "int64[1] zeros = {0}")
    becomes(model, ["LSTM"], drop_states)


def test_one_of_two_states() -> None:
    body = f"{SHAPE} c = Expand(some, t) y = LSTM<hidden_size=2>(x, w, r, , , h, c)"
    expected = ["Shape", "Concat", "Expand", "LSTM"]
    becomes(model_of(SIGNATURE, body, *parts(4)), expected, drop_states)


def test_other_numbers_stay() -> None:
    for fill in ("h = Expand(some, t)", "h = ConstantOfShape<value=float[1] {0.5}>(t)"):
        start = SHAPE.replace("h = ConstantOfShape(t)", fill)
        body = f"{start} y = GRU<hidden_size=2>(x, w, r, , , h)"
        stays(model_of(SIGNATURE, body, *parts(3)), "", drop_states)


def test_a_state_that_is_an_input_stays() -> None:
    signature = SIGNATURE.replace(" x)", " x, float[1,b,2] h)")
    stays(model_of(signature, "y = GRU<hidden_size=2>(x, w, r, , , h)", *parts(3)), "", drop_states)


def test_subgraphs() -> None:
    inner = f"{SHAPE} z = GRU<hidden_size=2>(x, w, r, , , h)"
    model = model_of(
        "(bool k, float[3,2,3] x) => (float[3,1,2,2] y)",
        f"""y = If (k) <
             then_branch = p () => (float[3,1,2,2] z) {{ {inner} }},
             else_branch = e () => (float[3,1,2,2] q) {{ q = RNN<hidden_size=2>(x, u, v) }}
           >""",
        *parts(3), weights("u", 1, 2, 3), weights("v", 1, 2, 2),
    )  # fmt: skip
    becomes(model, ["If", "GRU", "RNN"], drop_states)
