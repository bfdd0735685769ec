"""What nothing uses."""

from sardonyx.format.load import load_text
from sardonyx.passes.pipeline import run_pipeline
from sardonyx.passes.remove_dead import remove_dead
from tests.passes.cases import becomes, model_of, run_pass, weights


def test_nodes_and_constants_go() -> None:
    body = "a = Exp(x) b = Log(a) c = Add(b, w) y = Neg(x)"
    model = model_of("(float[n] x) => (float[n] y)", body, weights("w", 1))
    result = becomes(model, ["Neg"], remove_dead)
    assert not result.graph.initializers


def test_what_is_used_in_a_subgraph_stays() -> None:
    model = model_of(
        "(bool c, float[3] x) => (float[3] y)",
        """a = Exp(x) d = Log(x) y = If (c) <
             then_branch = t () => (float[3] p) { u = Abs(a) p = Neg(a) },
             else_branch = e () => (float[3] q) { q = Neg(x) }
           >""",
    )
    becomes(model, ["Exp", "If", "Neg", "Neg"], remove_dead)


def test_optional_outputs_go() -> None:
    model = model_of("(float[n,1,4,4] x) => (float[n,1,2,2] y)",
                     "y, i = MaxPool<kernel_shape=[2,2], strides=[2,2]>(x)")  # fmt: skip
    result, _ = run_pass(model, remove_dead)
    assert len(result.graph.nodes[0].outputs) == 1


def test_needed_outputs_stay() -> None:
    model = model_of("(float[5] x) => (int64[2] i)", "v, i = TopK(x, k)", "int64[1] k = {2}")
    result, _ = run_pass(model, remove_dead)
    assert len(result.graph.nodes[0].outputs) == 2


def test_functions_nobody_calls_go() -> None:
    model = load_text("""<ir_version: 10, opset_import: ["": 21, "local": 1]>
        g (float[n] x) => (float[n] y) { a = local.used(x) b = local.used(a) y = Neg(b) }
        <domain: "local", opset_import: ["": 21]> used (p) => (q) { r = Exp(p) q = Neg(r) }
        <domain: "local", opset_import: ["": 21]> unused (p) => (q) { q = Neg(p) }""")
    result = run_pipeline(model, (remove_dead,))
    assert [function.name for function in result.functions] == ["used"]
