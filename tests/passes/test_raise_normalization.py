"""Normalizations that were written out."""

import pytest

from sardonyx.passes.raise_normalization import raise_normalization
from tests.passes.cases import becomes, model_of, run_pass, stays, weights

ROWS = "(float[n,m,4] x) => (float[n,m,4] y)"
PARTS = (
    weights("g", 4),
    weights("b", 4),
    "float e = {0.001}",
    "int64[1] last = {-1}",
    "float two = {2}",
)


def layer(square: str = "Pow(d, two)", mean: str = "ReduceMean(x, last)", end: str = "") -> str:
    return f"""u = {mean} d = Sub(x, u) q = {square} v = ReduceMean(q, last) p = Add(v, e)
               s = Sqrt(p) {end or "r = Div(d, s) t = Mul(r, g) y = Add(t, b)"}"""


@pytest.mark.parametrize(
    "body",
    [
        layer(),
        layer(square="Mul(d, d)"),
        layer(square="Mul(d, d)", end="r = Div(g, s) t = Mul(d, r) y = Add(b, t)"),
        layer(end="r = Div(d, s) t = Mul(g, r) y = Add(b, t)"),
    ],
)
def test_layer_normalization(body: str) -> None:
    result = becomes(model_of(ROWS, body, *PARTS), ["LayerNormalization"], raise_normalization)
    node = result.graph.nodes[0]
    assert node.attribute("axis") == -1 and node.attribute("epsilon") == pytest.approx(1e-3)


def test_a_layer_is_not_taken_for_its_root_mean_square() -> None:
    model = model_of(ROWS, layer(), *PARTS, opset=23)
    becomes(model, ["LayerNormalization"], raise_normalization)


@pytest.mark.parametrize("square", ["Pow(d, two)", "Mul(d, d)"])
def test_without_scale_and_shift(square: str) -> None:
    body = layer(square=square, end="y = Div(d, s)")
    becomes(model_of(ROWS, body, *PARTS), ["LayerNormalization"], raise_normalization)
    cube = layer(
        square=square.replace("two", "e").replace("Mul(d, d)", "Mul(d, x)"), end="y = Div(d, s)"
    )
    stays(model_of(ROWS, cube.replace("Pow(d, e)", "Pow(d, u)"), *PARTS), "", raise_normalization)
    stays(model_of(ROWS.replace("4]", "k]"), body, *PARTS[2:]), "a size is not known",
          raise_normalization)  # fmt: skip


def test_axes_as_attributes() -> None:
    body = layer().replace("(x, last)", "_(x)").replace("(q, last)", "_(q)")
    body = body.replace("ReduceMean_", "ReduceMean<axes=[-1]>")
    becomes(model_of(ROWS, body, *PARTS, opset=17), ["LayerNormalization"], raise_normalization)


def test_not_before_opset_17() -> None:
    body = layer().replace("(x, last)", "_(x)").replace("(q, last)", "_(q)")
    body = body.replace("ReduceMean_", "ReduceMean<axes=[-1]>")
    stays(model_of(ROWS, body, *PARTS, opset=16), "", raise_normalization)


def test_other_axes() -> None:
    mixed = (*PARTS, "int64[1] first = {1}")
    signature = "(float[2,4,4] x) => (float[2,4,4] y)"
    model = model_of(signature, layer(mean="ReduceMean(x, first)"), *mixed)
    stays(model, "same last axes", raise_normalization)


def test_a_scale_of_another_shape_stays_outside() -> None:
    parts = ("float[1] g = {2}", *PARTS[1:])
    expected = ["LayerNormalization", "Mul", "Add"]
    _, unit = run_pass(model_of(ROWS, layer(), *parts), raise_normalization)
    assert any("one for each normalized place" in reason for reason in unit.reasons)
    becomes(model_of(ROWS, layer(), *parts), expected, raise_normalization)


def test_a_small_number_that_is_computed() -> None:
    signature = "(float[n,m,4] x, float e) => (float[n,m,4] y)"
    body = layer().replace("Add(v, e)", "Add(v, f)").replace("s = ", "s = ")
    stays(model_of(signature, "f = Abs(e) " + body, *PARTS[:2], *PARTS[3:]), "not constant",
          raise_normalization)  # fmt: skip


SQUARE = "q = Pow(x, two) v = ReduceMean(q, last) p = Add(v, e) s = Sqrt(p)"


@pytest.mark.parametrize(
    "end", ["r = Div(x, s) y = Mul(r, g)", "i = Reciprocal(s) r = Mul(x, i) y = Mul(g, r)"]
)
def test_root_mean_square(end: str) -> None:
    model = model_of(ROWS, f"{SQUARE} {end}", *PARTS, opset=23)
    becomes(model, ["RMSNormalization"], raise_normalization)
    stays(model_of(ROWS, f"{SQUARE} {end}", *PARTS, opset=22), "", raise_normalization)


@pytest.mark.parametrize("square", ["Pow(x, two)", "Mul(x, x)"])
def test_root_mean_square_without_scale(square: str) -> None:
    body = f"{SQUARE.replace('Pow(x, two)', square)} y = Div(x, s)"
    becomes(model_of(ROWS, body, *PARTS, opset=23), ["RMSNormalization"], raise_normalization)
    stays(model_of(ROWS, body, *PARTS, opset=22), "", raise_normalization)


@pytest.mark.parametrize("end", ["r = Div(x, s) y = Mul(r, g)", "y = Div(x, s)"])
def test_another_power_is_no_square(end: str) -> None:
    body = f"{SQUARE.replace('Pow(x, two)', 'Mul(x, g)')} {end}"
    stays(model_of(ROWS, body, *PARTS, opset=23), "not the square", raise_normalization)


def test_a_size_that_is_open_needs_a_scale() -> None:
    signature = "(float[n,4,m] x) => (float[n,4,m] y)"
    stays(model_of(signature, f"{SQUARE} y = Div(x, s)", *PARTS, opset=23), "size is not known",
          raise_normalization)  # fmt: skip


def test_subgraphs() -> None:
    body = layer().replace("y =", "out =")
    model = model_of(
        "(bool c, float[2,4] x) => (float[2,4] y)",
        f"""y = If (c) <
             then_branch = h () => (float[2,4] out) {{ {body} }},
             else_branch = k () => (float[2,4] z) {{ z = Neg(x) }}
           >""",
        *PARTS,
    )
    becomes(model, ["If", "LayerNormalization", "Neg"], raise_normalization)
