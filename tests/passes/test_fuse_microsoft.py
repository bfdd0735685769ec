"""Operators of onnxruntime's own domain."""

import onnxruntime
import pytest

import sardonyx as sx
from sardonyx.graph import Model
from sardonyx.passes.fuse_microsoft import DOMAIN, fuse_microsoft
from sardonyx.passes.verify_result import same_values
from tests.passes.cases import becomes, model_of, operators, run_pass, stays, weights
from tests.passes.export_networks import COUNTS, EXPORTERS, FOLDER
from tests.passes.test_exports import make_feeds

ROWS = "(float[b,n,4] x, float[b,n,4] s) => (float[b,n,4] y)"
NORM = (weights("g", 4), weights("c", 4), weights("d", 4))


def agrees(before: Model, after: Model) -> None:
    """Fail unless onnxruntime gives the same with both."""
    feeds = make_feeds(before)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    results = []
    for model in (before, after):
        model.ir_version = min(model.ir_version, 11)
        session = onnxruntime.InferenceSession(sx.to_bytes(model), options)
        results.append(session.run(None, feeds))
    for mine, other in zip(*results, strict=True):
        assert same_values(mine, other)


def fuses(model: Model, *expected: str) -> Model:
    result = becomes(model, list(expected), fuse_microsoft)
    assert result.opsets[DOMAIN] == 1
    return result


def test_a_sum_that_is_normalized() -> None:
    fuses(model_of(ROWS, "t = Add(x, s) y = LayerNormalization(t, g, c)", *NORM),
          "SkipLayerNormalization")  # fmt: skip


def test_a_bias_in_the_sum() -> None:
    body = "a = Exp(x) e = Add(a, d) t = Add(e, s) y = LayerNormalization(t, g, c)"
    result = fuses(model_of(ROWS, body, *NORM), "Exp", "SkipLayerNormalization")
    assert len(result.graph.nodes[-1].inputs) == 5


def test_a_sum_that_is_read_again() -> None:
    body = "t = Add(x, s) n = LayerNormalization(t, g, c) y = Sub(n, t)"
    fuses(model_of(ROWS, body, *NORM), "SkipLayerNormalization", "Sub")


@pytest.mark.parametrize(
    ("signature", "norm", "reason"),
    [
        (ROWS, "LayerNormalization<axis=1>(t, w, z)", "last of three axes"),
        (ROWS.replace("float[b,n,4] s", "float[n,4] s"), "LayerNormalization(t, g, c)",
         "not of one shape"),
        (ROWS.replace("b,n,4", "n,4"), "LayerNormalization(t, g, c)", "last of three axes"),
    ],
)  # fmt: skip
def test_sums_that_do_not_fit(signature: str, norm: str, reason: str) -> None:
    more = (weights("w", 3, 4), weights("z", 3, 4))
    signature = signature.replace("n,4", "3,4")
    stays(model_of(signature, f"t = Add(x, s) y = {norm}", *NORM, *more), reason, fuse_microsoft)


@pytest.mark.parametrize(("kind", "name"), [("none", "BiasGelu"), ("tanh", "FastGelu")])
def test_gelu_with_a_bias(kind: str, name: str) -> None:
    signature = "(float[b,4] x) => (float[b,4] y)"
    body = f'a = Add(x, d) y = Gelu<approximate="{kind}">(a)'
    fuses(model_of(signature, body, *NORM), name)
    short = model_of(signature, body, "float d = {0.5}")
    expected = ["Add", "FastGelu"] if kind == "tanh" else ["Add", "Gelu"]
    result, unit = run_pass(short, fuse_microsoft)
    assert operators(result) == expected
    assert any("no vector" in reason for reason in unit.reasons)


PRODUCT = "(float[b,3,4] x, float[b,3,5] z) => (float[b,4,5] y)"


def test_products() -> None:
    turned = "t = Transpose<perm=[0, 2, 1]>(x) y = MatMul(t, z)"
    result = fuses(model_of(PRODUCT, turned), "FusedMatMul")
    assert result.graph.nodes[0].attribute("transA") == 1
    scaled = "p = MatMul(x, z) y = Div(p, h)"
    signature = PRODUCT.replace("b,3,4", "b,4,3")
    result = fuses(model_of(signature, scaled, "float h = {4}"), "FusedMatMul")
    assert result.graph.nodes[0].attribute("alpha") == 0.25


@pytest.mark.parametrize(
    ("signature", "body", "reason"),
    [
        (PRODUCT.replace("b,3,4", "b,4,3"), "y = MatMul(x, z)", "no factor is transposed"),
        (PRODUCT.replace("b,3,4", "3,4,b"), "t = Transpose<perm=[2, 1, 0]>(x) y = MatMul(t, z)",
         "no factor"),
        (PRODUCT.replace("b,3,4", "b,4,3"), "p = MatMul(x, z) y = Mul(p, v)",
         "not a constant number"),
        (PRODUCT.replace("b,3,4", "b,4,3"), "p = MatMul(x, z) y = Div(h, p)", ""),
        (PRODUCT.replace("b,3,4", "b,4,3").replace("b,4,5", "1,b,4,5"),
         "p = MatMul(x, z) y = Mul(p, u)", "adds axes"),
    ],
)  # fmt: skip
def test_products_that_do_not_fit(signature: str, body: str, reason: str) -> None:
    more = (weights("v", 5), "float h = {4}", "float[1,1,1,1] u = {2}")
    stays(model_of(signature, body, *more), reason, fuse_microsoft)


def test_subgraphs() -> None:
    model = model_of(
        "(bool k, float[2,4] x) => (float[2,4] y)",
        """y = If (k) <
             then_branch = p () => (float[2,4] z) { a = Add(x, d) z = Gelu(a) },
             else_branch = e () => (float[2,4] n) { n = Neg(x) }
           >""",
        *NORM,
    )
    fuses(model, "If", "BiasGelu", "Neg")


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("exporter", EXPORTERS)
def test_onnxruntime_runs_them(name: str, exporter: str) -> None:
    model = sx.load(FOLDER / f"{name}_{exporter}.onnxtxt")
    small = sx.optimize(model, 3, fusions=DOMAIN)
    assert (DOMAIN in small.opsets) == (name != "llama")
    agrees(model, small)


def test_fusions_that_do_not_exist() -> None:
    model = model_of(ROWS, "y = Add(x, s)")
    with pytest.raises(sx.UnsupportedError, match="no fusions 'other'"):
        sx.optimize(model, fusions="other")


def test_a_model_without_a_fusion_imports_nothing() -> None:
    model = model_of(ROWS, "y = Add(x, s)")
    assert DOMAIN not in sx.optimize(model, fusions=DOMAIN).opsets
