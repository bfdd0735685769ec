"""Attention that was written out."""

import pytest

from sardonyx.passes.raise_attention import raise_attention
from tests.passes.cases import becomes, model_of, stays, weights

QKV = "(float[b,2,n,4] q, float[b,2,m,4] k, float[b,2,m,4] v) => (float[b,2,n,4] y)"
HALF = "float h = {0.5}"


def attention(scale: str = "c = Mul(a, h)", mask: str = "d = Identity(c)") -> str:
    body = f"t = Transpose<perm=[0, 1, 3, 2]>(k) a = MatMul(q, t) {scale} {mask}"
    return body + " p = Softmax<axis=-1>(d) y = MatMul(p, v)"


def plain(scale: str) -> str:
    return attention(scale, "").replace("Softmax<axis=-1>(d)", "Softmax<axis=-1>(c)")


@pytest.mark.parametrize("scale", ["c = Mul(a, h)", "c = Mul(h, a)", "c = Div(a, h)"])
def test_scaled(scale: str) -> None:
    becomes(model_of(QKV, plain(scale), HALF, opset=23), ["Attention"], raise_attention)


def test_unscaled() -> None:
    body = plain("").replace("(c)", "(a)")
    result = becomes(model_of(QKV, body, opset=23), ["Attention"], raise_attention)
    assert result.graph.nodes[0].attribute("scale") == 1.0


@pytest.mark.parametrize("shape", [(3, 2), (1, 1, 3, 2), (1, 2, 3, 2)])
def test_masked(shape: tuple[int, ...]) -> None:
    signature = QKV.replace("b,", "1,").replace("n,", "3,").replace("m,", "2,")
    body = attention(mask="d = Add(c, w)")
    model = model_of(signature, body, HALF, weights("w", *shape), opset=23)
    becomes(model, ["Attention"], raise_attention)


def test_keys_that_lie_otherwise_are_turned() -> None:
    signature = QKV.replace("float[b,2,m,4] k", "float[b,m,2,4] k")
    body = plain("c = Mul(a, h)").replace("0, 1, 3, 2", "0, 2, 3, 1")
    becomes(model_of(signature, body, HALF, opset=23), ["Transpose", "Attention"], raise_attention)


def test_not_before_opset_23() -> None:
    stays(model_of(QKV, plain("c = Mul(a, h)"), HALF, opset=22), "", raise_attention)


def test_a_scale_for_each_place() -> None:
    signature = QKV.replace("m,", "2,")
    model = model_of(signature, plain("c = Mul(a, h)"), weights("h", 2), opset=23)
    stays(model, "not a constant number", raise_attention)


def test_operands_of_three_dimensions() -> None:
    signature = QKV.replace("b,2,", "b,")
    body = plain("c = Mul(a, h)").replace("0, 1, 3, 2", "0, 2, 1")
    stays(model_of(signature, body, HALF, opset=23), "", raise_attention)


def test_heads_that_are_broadcast() -> None:
    signature = QKV.replace("float[b,2,m,4] v", "float[b,1,m,4] v")
    stays(model_of(signature, plain("c = Mul(a, h)"), HALF, opset=23), "heads", raise_attention)


def test_a_mask_that_is_not_as_long() -> None:
    signature = QKV.replace("m,", "2,")
    for shape in ((1, 1), (1, 2)):
        body = attention(mask="d = Add(c, w)")
        model = model_of(signature, body, HALF, weights("w", *shape), opset=23)
        stays(model, "does not broadcast", raise_attention)


def test_subgraphs() -> None:
    body = plain("c = Mul(a, h)").replace("y =", "z =")
    shape = "float[1,2,3,4]"
    model = model_of(
        f"(bool g, {shape} q, {shape} k, {shape} v) => ({shape} y)",
        f"""y = If (g) <
             then_branch = i () => ({shape} z) {{ {body} }},
             else_branch = e () => ({shape} r) {{ r = Neg(v) }}
           >""",
        HALF, opset=23,
    )  # fmt: skip
    becomes(model, ["If", "Attention", "Neg"], raise_attention)
