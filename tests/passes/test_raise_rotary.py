"""Rotations of halves that were written out."""

import pytest

from sardonyx.passes.raise_rotary import raise_rotary
from tests.passes.cases import becomes, model_of, operators, run_pass, stays

SIGNATURE = "(float[b,2,n,4] x, float[b,n,2] f) => (float[b,2,n,4] y)"
NUMBERS = (
    "int64[1] zero = {0}", "int64[1] half = {2}", "int64[1] end = {9223372036854775807}",
    "int64[1] last = {3}", "int64[1] one = {1}", "int64[1] step = {1}", "float t = {1.5}",
)  # fmt: skip
WAVES = """
  e = Concat<axis=-1>(f, f) c = Cos(e) s = Sin(e) c4 = Unsqueeze(c, one) s4 = Unsqueeze(s, one)
"""
TURN = """
  l = Slice(x, zero, half, last, step) h = Slice(x, half, end, last, step) m = Neg(h)
  j = Concat<axis=-1>(m, l) p = Mul(x, c4) q = Mul(j, s4) y = Add(p, q)
"""
RAISED = ["Cos", "Sin", "RotaryEmbedding"]


def test_halves() -> None:
    becomes(model_of(SIGNATURE, WAVES + TURN, *NUMBERS, opset=23), RAISED, raise_rotary)


def test_orders_of_operands() -> None:
    body = TURN.replace("Mul(x, c4)", "Mul(c4, x)").replace("Mul(j, s4)", "Mul(s4, j)")
    body = body.replace("Add(p, q)", "Add(q, p)")
    becomes(model_of(SIGNATURE, WAVES + body, *NUMBERS, opset=23), RAISED, raise_rotary)


def test_waves_that_are_scaled() -> None:
    waves = WAVES.replace("c = Cos(e)", "c0 = Cos(e) c = Mul(c0, t)")
    expected = ["Cos", "Mul", "Sin", "RotaryEmbedding"]
    becomes(model_of(SIGNATURE, waves + TURN, *NUMBERS, opset=23), expected, raise_rotary)


def test_angles_for_all_of_the_batch() -> None:
    signature = SIGNATURE.replace("float[b,n,2] f", "float[1,n,2] f")
    model = model_of(signature, WAVES + TURN, *NUMBERS, opset=23)
    result, _ = run_pass(model, raise_rotary)
    assert operators(result).count("Expand") == 2
    fixed = model_of(signature.replace("b,", "3,"), WAVES + TURN, *NUMBERS, opset=23)
    becomes(fixed, ["Cos", "Expand", "Sin", "Expand", "RotaryEmbedding"], raise_rotary)


def test_two_rotations_share_their_waves() -> None:
    signature = SIGNATURE.replace("(float", "(float[b,3,n,4] z, float").replace(
        " y)", " y, float[b,3,n,4] y2)"
    )
    second = TURN
    for name in "lhmjpq":
        second = second.replace(f"{name} =", f"{name}2 =").replace(f"({name}", f"({name}2")
        second = second.replace(f", {name})", f", {name}2)")
    second = second.replace("(x", "(z").replace("y =", "y2 =")
    model = model_of(signature, WAVES + TURN + second, *NUMBERS, opset=23)
    becomes(model, ["Cos", "Sin", "RotaryEmbedding", "RotaryEmbedding"], raise_rotary)


@pytest.mark.parametrize(
    "change",
    [
        ("Concat<axis=-1>(m, l)", "Concat<axis=-1>(l, m)"),
        ("m = Neg(h)", "m = Abs(h)"),
        ("Slice(x, zero, half, last, step)", "Slice(x, one, last, last, step)"),
        ("Concat<axis=-1>(f, f)", "Concat<axis=-1>(f, g)"),
        ("s = Sin(e)", "s = Cos(e)"),
        ("y = Add(p, q)", "y = Sub(p, q)"),
    ],
)
def test_near_misses(change: tuple[str, str]) -> None:
    text = "g = Neg(f) " if "g)" in change[1] else ""
    model = model_of(SIGNATURE, text + (WAVES + TURN).replace(*change), *NUMBERS, opset=23)
    stays(model, "", raise_rotary)


@pytest.mark.parametrize(
    ("shape", "sizes", "raised"),
    [
        ("2,3,2", (2, 1, 3, 4), True),
        ("2,3,2", (1, 2, 3, 4), False),
        ("1,6,2", (1, 2, 3, 4), False),
        ("1,6,2", (2, 1, 3, 4), False),
        ("6,1,2", (2, 1, 3, 4), False),
    ],
)
def test_waves_that_are_reshaped(shape: str, sizes: tuple[int, ...], raised: bool) -> None:
    """Only what keeps [batch, length, size] apart from one axis of heads is a wave of those."""
    signature = f"(float[2,2,3,4] x, float[{shape}] f) => (float[2,2,3,4] y)"
    body = (WAVES + TURN).replace("Unsqueeze(c, one)", "Reshape(c, to)")
    body = body.replace("Unsqueeze(s, one)", "Reshape(s, to)")
    to = f"int64[4] to = {{{', '.join(map(str, sizes))}}}"
    model = model_of(signature, body, *NUMBERS, to, opset=23)
    if raised:
        becomes(model, RAISED, raise_rotary)
    else:
        stays(model, "", raise_rotary)


def test_a_part_that_is_read_elsewhere() -> None:
    signature = SIGNATURE.replace(" y)", " y, float[b,2,n,4] q)")
    stays(model_of(signature, WAVES + TURN, *NUMBERS, opset=23), "", raise_rotary)


def test_not_before_opset_23() -> None:
    stays(model_of(SIGNATURE, WAVES + TURN, *NUMBERS, opset=22), "", raise_rotary)


def test_subgraphs() -> None:
    inner = (WAVES + TURN).replace("y =", "z =")
    model = model_of(
        "(bool g, float[1,2,3,4] x, float[1,3,2] f) => (float[1,2,3,4] y)",
        f"""y = If (g) <
             then_branch = i () => (float[1,2,3,4] z) {{ {inner} }},
             else_branch = o () => (float[1,2,3,4] r) {{ r = Neg(x) }}
           >""",
        *NUMBERS, opset=23,
    )  # fmt: skip
    becomes(model, ["If", *RAISED, "Neg"], raise_rotary)
