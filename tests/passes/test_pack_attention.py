"""Attention that splits and joins heads by itself."""

import pytest

from sardonyx.passes.pack_attention import pack_attention
from tests.passes.cases import becomes, model_of, operators, run_pass, stays

SIGNATURE = "(float[b,n,8] q, float[b,m,8] k, float[b,m,8] v) => (float[b,n,8] y)"
SPLIT = "int64[4] s = {0, 0, 2, 4}"
JOIN = "int64[3] j = {0, 0, 8}"


def body(turn: str = "0, 2, 1, 3") -> str:
    parts = [
        f"{name}r = Reshape({name}, s) {name}t = Transpose<perm=[0, 2, 1, 3]>({name}r)"
        for name in "qkv"
    ]
    end = f"at = Transpose<perm=[{turn}]>(a) y = Reshape(at, j)"
    return " ".join([*parts, "a = Attention<scale=0.3>(qt, kt, vt)", end])


def test_heads_are_split_and_joined_inside() -> None:
    result = becomes(
        model_of(SIGNATURE, body(), SPLIT, JOIN, opset=23), ["Attention", "Reshape"], pack_attention
    )
    node = result.graph.nodes[0]
    assert (node.attribute("q_num_heads"), node.attribute("kv_num_heads")) == (2, 2)
    assert node.attribute("scale") == pytest.approx(0.3)


def test_a_length_of_one() -> None:
    signature = SIGNATURE.replace("b,n,8", "b,1,8").replace("b,m,8", "b,1,8")
    parts = [f"{name}t = Reshape({name}, s)" for name in "qkv"]
    text = " ".join([*parts, "a = Attention(qt, kt, vt) y = Reshape(a, j)"])
    model = model_of(signature, text, "int64[4] s = {0, 2, 1, 4}", "int64[3] j = {0, 1, 8}",
                     opset=23)  # fmt: skip
    becomes(model, ["Attention", "Reshape"], pack_attention)


def test_a_past_stays_as_it_is() -> None:
    signature = SIGNATURE.replace(" v)", " v, float[b,2,o,4] pk, float[b,2,o,4] pv)")
    signature = signature.replace(" y)", " y, float[b,2,t,4] kk, float[b,2,t,4] vv)")
    text = body().replace("a = Attention<scale=0.3>(qt, kt, vt)",
                          "a, kk, vv = Attention(qt, kt, vt, , pk, pv)")  # fmt: skip
    model = model_of(signature, text, SPLIT, JOIN, opset=23)
    result = becomes(model, ["Attention", "Reshape"], pack_attention)
    assert [item.name for item in result.graph.nodes[0].outputs][1:] == ["kk", "vv"]


@pytest.mark.parametrize(
    "change",
    [
        ("kt = Transpose<perm=[0, 2, 1, 3]>(kr)", "kt = Transpose<perm=[0, 2, 3, 1]>(kr)"),
        ("at = Transpose<perm=[0, 2, 1, 3]>(a)", "at = Transpose<perm=[0, 1, 2, 3]>(a)"),
    ],
)
def test_another_order(change: tuple[str, str]) -> None:
    signature = SIGNATURE.replace("b,m,8", "b,4,8").replace("b,n,8] q", "b,2,8] q")
    signature = signature.replace("b,n,8] y", "b,2,8] y")
    text = body().replace(*change)
    stays(model_of(signature, text, SPLIT, JOIN, opset=23), "", pack_attention)


def test_a_result_that_is_read_twice() -> None:
    signature = SIGNATURE.replace(" y)", " y, float[b,2,n,4] z)")
    model = model_of(signature, body() + " z = Neg(a)", SPLIT, JOIN, opset=23)
    stays(model, "", pack_attention)


def test_values_that_are_not_split() -> None:
    signature = SIGNATURE.replace("float[b,m,8] v", "float[b,2,m,4] vt")
    text = body().replace("vr = Reshape(v, s) vt = Transpose<perm=[0, 2, 1, 3]>(vr)", "")
    stays(model_of(signature, text, SPLIT, JOIN, opset=23), "", pack_attention)


def test_subgraphs() -> None:
    shape = "float[1,3,8]"
    inner = body().replace("y =", "z =")
    model = model_of(
        f"(bool g, {shape} q, {shape} k, {shape} v) => ({shape} y)",
        f"""y = If (g) <
             then_branch = i () => ({shape} z) {{ {inner} }},
             else_branch = e () => ({shape} r) {{ r = Neg(v) }}
           >""",
        SPLIT, JOIN, opset=23,
    )  # fmt: skip
    result, _ = run_pass(model, pack_attention)
    assert operators(result) == ["If", "Attention", "Reshape", "Neg"]
