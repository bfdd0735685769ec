"""Attention of packed heads, by the operators of onnxruntime."""

import pytest

import sardonyx as sx
from sardonyx.passes.fuse_heads import DOMAIN, fuse_heads
from tests.passes.cases import becomes, model_of, operators, run_pass, stays, weights
from tests.passes.export_networks import COUNTS, EXPORTERS, FOLDER
from tests.passes.test_fuse_microsoft import agrees

HEADS = "(float[b,n,4] q, float[b,m,4] k, float[b,m,4] v, float[b,1,n,m] w) => (float[b,n,4] y)"
ATTENTION = "y = Attention<q_num_heads=2, kv_num_heads=2, scale=0.3>(q, k, v, w)"


def test_heads() -> None:
    becomes(model_of(HEADS, ATTENTION, opset=23), ["MultiHeadAttention"], fuse_heads)


@pytest.mark.parametrize(
    "change",
    [
        ("float[b,1,n,m] w", "bool[b,1,n,m] w"),
        ("float[b,1,n,m] w", "float[n,m] w"),
        ("scale=0.3", "is_causal=1"),
        ("scale=0.3", "softcap=2.0"),
        ("kv_num_heads=2", "kv_num_heads=1"),
    ],
)
def test_heads_that_do_not_fit(change: tuple[str, str]) -> None:
    signature = HEADS.replace(*change)
    if "kv_num_heads=1" in change:
        signature = HEADS.replace("m,4", "m,2")
    stays(model_of(signature, ATTENTION.replace(*change), opset=23), "", fuse_heads)


PACKED = (
    "(float[batch,sequence,4] x, float[batch,1,sequence,sequence] w) => (float[batch,sequence,4] y)"
)
PROJECTED = "p = MatMul(x, a) j = Add(p, c) q, k, v = Split<axis=-1>(j, parts) " + ATTENTION
PARTS = (weights("a", 4, 12), weights("c", 12), "int64[3] parts = {4, 4, 4}")


def packs(signature: str, body: str, *parts: str) -> sx.Model:
    """Fail unless one node is left, that onnxruntime finds equal too; returns its model."""
    model = model_of(signature, body, *parts, opset=23)
    result = becomes(model, ["Attention"], fuse_heads)
    assert next(iter(result.graph.nodes)).domain == DOMAIN
    result.opsets.setdefault(DOMAIN, 1)
    agrees(model, result)
    return result


def test_a_projection_goes_in() -> None:
    packs(PACKED, PROJECTED, *PARTS)
    packs(PACKED, PROJECTED.replace("p, c", "c, p"), *PARTS)
    packs(
        "(float[batch,sequence,4] x) => (float[batch,sequence,4] y)",
        PROJECTED.replace(", w)", ")"),
        *PARTS,
    )


def test_a_projection_without_a_bias() -> None:
    body = PROJECTED.replace("j = Add(p, c)", "").replace("(j,", "(p,")
    small = packs(PACKED, body, *PARTS)
    assert not next(iter(small.graph.nodes)).inputs[2].tensor.numpy().any()


def test_values_of_another_width() -> None:
    parts = (weights("a", 4, 16), weights("c", 16), "int64[3] parts = {4, 4, 8}")
    small = packs(PACKED.replace("sequence,4] y", "sequence,8] y"), PROJECTED, *parts)
    assert next(iter(small.graph.nodes)).attribute("qkv_hidden_sizes") == (4, 4, 8)


def test_causal_attention_goes_in() -> None:
    body = PROJECTED.replace("scale=0.3", "is_causal=1").replace(", w)", ")")
    small = packs("(float[batch,sequence,4] x) => (float[batch,sequence,4] y)", body, *PARTS)
    assert next(iter(small.graph.nodes)).attribute("unidirectional") == 1


@pytest.mark.parametrize(
    ("signature", "change"),
    [
        (PACKED, ("(q, k, v, w)", "(k, q, v, w)")),
        (PACKED, ("MatMul(x, a)", "MatMul(x, r)")),
        (PACKED, ("Add(p, c)", "Add(p, d)")),
        (PACKED.replace("sequence,4] x", "sequence,12] x"), ("p = MatMul(x, a) j = Add(p, c)",
                                                   "j = Neg(x)")),
        (PACKED.replace("y)", "y, float[batch,sequence,12] j)"), ("", "")),
        (PACKED.replace("y)", "y, float[batch,sequence,4] k)"), ("", "")),
    ],
)  # fmt: skip
def test_projections_that_do_not_fit(signature: str, change: tuple[str, str]) -> None:
    if "r)" in change[1]:
        signature = signature.replace(") =>", ", float[4,12] r) =>")
    body = PROJECTED.replace(*change) if change[0] else PROJECTED
    model = model_of(signature, body, *PARTS, weights("d", 1, 1, 12), opset=23)
    result, _ = run_pass(model, fuse_heads)
    assert "MultiHeadAttention" in operators(result)


def test_subgraphs() -> None:
    model = model_of(
        "(bool s, float[2,3,4] x) => (float[2,3,4] y)",
        """y = If (s) <
             then_branch = f () => (float[2,3,4] z) {
               p = MatMul(x, a) j = Add(p, c) q, k, v = Split<axis=-1>(j, parts)
               z = Attention<q_num_heads=2, kv_num_heads=2>(q, k, v) },
             else_branch = e () => (float[2,3,4] o) { o = Neg(x) }
           >""",
        *PARTS, opset=23,
    )  # fmt: skip
    result = becomes(model, ["If", "Attention", "Neg"], fuse_heads)
    branch = next(iter(result.graph.nodes)).attributes["then_branch"].value
    assert next(iter(branch.nodes)).domain == DOMAIN


@pytest.mark.parametrize("exporter", EXPORTERS)
@pytest.mark.parametrize("name", COUNTS)
def test_exports(name: str, exporter: str) -> None:
    """Conditions as masks stay with Attention, as do pasts that a graph returns joined."""
    small = sx.optimize(sx.load(FOLDER / f"{name}_{exporter}.onnxtxt"), 3, fusions=DOMAIN)
    kinds = {node.op_type: node.domain for node in small.graph.all_nodes()
             if "Attention" in node.op_type}  # fmt: skip
    conditions = exporter == "torchscript" and name in ("bert", "distilbert", "gpt2_prefill")
    if conditions or name in ("llama", "gpt2_decode"):
        assert kinds == {"Attention": ""}
    elif name == "whisper":
        assert kinds == {"MultiHeadAttention": DOMAIN}
    else:
        assert kinds == {"Attention": DOMAIN}
