"""What is linear around a convolution."""

import pytest

from sardonyx.passes.fuse_convolution import fuse_convolution
from tests.passes.cases import becomes, model_of, stays, weights

IMAGE = "(float[n,2,5,5] x) => (float[n,4,?,?] y)"
W, B = weights("w", 4, 2, 3, 3), weights("b", 4)
NORM = (weights("s", 4), weights("o", 4), weights("m", 4), weights("v", 4, positive=True))


@pytest.mark.parametrize("conv", ["Conv(x, w)", "Conv(x, w, b)"])
def test_normalization(conv: str) -> None:
    model = model_of(IMAGE, f"a = {conv} y = BatchNormalization(a, s, o, m, v)", W, B, *NORM)
    becomes(model, ["Conv"], fuse_convolution)


def test_transposed_convolution_in_groups() -> None:
    body = "a = ConvTranspose<group=2>(x, w) y = BatchNormalization(a, s, o, m, v)"
    becomes(
        model_of(IMAGE, body, weights("w", 2, 2, 3, 3), *NORM), ["ConvTranspose"], fuse_convolution
    )


def test_weights_that_are_computed() -> None:
    signature = "(float[n,2,5,5] x, float[4,2,3,3] w) => (float[n,4,3,3] y)"
    model = model_of(signature, "a = Conv(x, w) y = BatchNormalization(a, s, o, m, v)", *NORM)
    stays(model, "the weights are not constant", fuse_convolution)


def test_normalization_in_training() -> None:
    signature = "(float[2,2,5,5] x) => (float[2,4,3,3] y)"
    body = "a = Conv(x, w) y = BatchNormalization<training_mode=1>(a, s, o, m, v)"
    stays(model_of(signature, body, W, *NORM), "not a constant scale", fuse_convolution)


@pytest.mark.parametrize("step", ["Mul(a, k)", "Mul(k, a)", "Div(a, k)", "Add(k, a)", "Sub(a, k)"])
@pytest.mark.parametrize("shape", [(), (1,), (4, 1, 1), (1, 4, 1, 1)])
def test_scale_and_shift(step: str, shape: tuple[int, ...]) -> None:
    factor = weights("k", *shape, positive=True) if shape else "float k = {1.5}"
    model = model_of(IMAGE, f"a = Conv(x, w, b) y = {step}", W, B, factor)
    becomes(model, ["Conv"], fuse_convolution)


@pytest.mark.parametrize("step", ["Div(k, a)", "Sub(k, a)"])
def test_the_other_way_round(step: str) -> None:
    stays(
        model_of(IMAGE, f"a = Conv(x, w, b) y = {step}", W, B, "float k = {2}"),
        "",
        fuse_convolution,
    )


def test_other_shapes_of_factors() -> None:
    wide = model_of(IMAGE, "a = Conv(x, w) y = Mul(a, k)", W, weights("k", 3))
    stays(wide, "s is not per channel", fuse_convolution)
    signature = "(float[n,2,5,5] x) => (float[?,?,?,?,?] y)"
    grown = model_of(signature, "a = Conv(x, w) y = Add(a, k)", W, "float[1,1,1,1,1] k = {1}")
    stays(grown, "o is not per channel", fuse_convolution)


def test_padding() -> None:
    body = "a = Pad(x, p) y = Conv<pads=[1, 0, 0, 0]>(a, w)"
    model = model_of(IMAGE, body, W, "int64[8] p = {0, 0, 1, 2, 0, 0, 0, 1}")
    result = becomes(model, ["Conv"], fuse_convolution)
    assert result.graph.nodes[0].attribute("pads") == (2, 2, 0, 1)


@pytest.mark.parametrize(
    ("body", "amounts"),
    [
        ('a = Pad<mode="reflect">(x, p)', "0, 0, 1, 1, 0, 0, 1, 1"),
        ("a = Pad(x, p, one)", "0, 0, 1, 1, 0, 0, 1, 1"),
        ("a = Pad(x, p)", "1, 0, 1, 1, 0, 0, 1, 1"),
        ("a = Pad(x, p)", "0, 0, -1, 1, 0, 0, 1, 1"),
    ],
)
def test_padding_that_is_not_zeros_around(body: str, amounts: str) -> None:
    model = model_of("(float[2,2,5,5] x) => (float[?,4,?,?] y)", f"{body} y = Conv(a, w)", W,
                     f"int64[8] p = {{{amounts}}}", "float one = {1}")  # fmt: skip
    stays(model, "the padding is not zeros around", fuse_convolution)


def test_padding_before_a_pool() -> None:
    signature, pads = "(float[n,2,5,5] x) => (float[n,2,?,?] y)", "int64[8] p = {0,0,1,1,0,0,1,1}"
    body = "a = Pad(x, p) y = AveragePool<kernel_shape=[3, 3]>(a)"
    becomes(model_of(signature, body, pads), ["AveragePool"], fuse_convolution)
    own = "a = Pad(x, p) y = AveragePool<kernel_shape=[3, 3], pads=[1, 1, 1, 1]>(a)"
    stays(model_of(signature, own, pads), "own padding is not counted", fuse_convolution)
    small = "a = Pad(x, p) y = AveragePool<kernel_shape=[1, 1]>(a)"
    stays(model_of(signature, small, pads), "wider than the window", fuse_convolution)


def test_subgraphs() -> None:
    model = model_of(
        "(bool c, float[1,2,5,5] x) => (float[1,4,3,3] y)",
        """y = If (c) <
             then_branch = t () => (float[1,4,3,3] p) { a = Conv(x, w) p = Mul(a, k) },
             else_branch = e () => (float[1,4,3,3] q) { q = Conv(x, w) }
           >""",
        W, "float k = {2}",
    )  # fmt: skip
    becomes(model, ["If", "Conv", "Conv"], fuse_convolution)
