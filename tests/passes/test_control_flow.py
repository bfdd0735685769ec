"""Branches, loops and calls that are known."""

from sardonyx.format.load import load_text
from sardonyx.passes.inline_branches import inline_branches
from sardonyx.passes.inline_calls import inline_calls
from sardonyx.passes.options import Options
from sardonyx.passes.pipeline import simplify
from sardonyx.passes.unroll_loops import unroll_loops
from tests.passes.cases import becomes, model_of, operators, run_pass, same, stays

BRANCHES = """z = If ({0}) <
    then_branch = t () => (float[n] p) {{ a = Exp(x) p = Neg(a) }},
    else_branch = e () => (float[n] q) {{ a_1 = Abs(x) q = Sqrt(a_1) }}
  > y = Add(z, x)"""
SIGNATURE = "(float[n] x) => (float[n] y)"


def test_a_known_condition() -> None:
    body = BRANCHES.format("c")
    yes, no = model_of(SIGNATURE, body, "bool c = {1}"), model_of(SIGNATURE, body, "bool c = {0}")
    becomes(yes, ["Exp", "Neg", "Add"], inline_branches)
    becomes(no, ["Abs", "Sqrt", "Add"], inline_branches)


def test_a_condition_known_by_inference() -> None:
    body = "s = Shape(x) r = Size(s) c = Equal(r, one) " + BRANCHES.format("c")
    small = simplify(model_of(SIGNATURE, body, "int64 one = {1}"))
    assert operators(small) == ["Exp", "Neg", "Add"] or operators(small) == ["Exp", "Sub"]


def test_an_open_condition_stays() -> None:
    stays(
        model_of("(bool c, float[n] x) => (float[n] y)", BRANCHES.format("c")), "", inline_branches
    )


def test_a_branch_that_returns_an_outer_value() -> None:
    body = """y = If (c) <
        then_branch = t () => (float[n] p) { p = Identity(x) },
        else_branch = e () => (float[n] q) { q = Neg(x) } >"""
    result = becomes(model_of(SIGNATURE, body, "bool c = {1}"), ["Identity"], inline_branches)
    assert result.graph.outputs[0].name == "y"


def test_nested_branches() -> None:
    body = """y = If (c) <
        then_branch = t () => (float[n] p) {
          p = If (c) < then_branch = u () => (float[n] r) { r = Exp(x) },
                       else_branch = v () => (float[n] s) { s = Abs(x) } > },
        else_branch = e () => (float[n] q) { q = Neg(x) } >"""
    assert operators(simplify(model_of(SIGNATURE, body, "bool c = {1}"))) == ["Exp"]


LOOP = """y, w = Loop (m, c, x) < body = b (int64 i, bool going, float[2] s)
    => (bool go, float[2] r, float[2] k) {{ {0} r = Mul(s, s) k = Add(s, x) }} >"""
LOOPED = "(float[2] x) => (float[2] y, float[?,2] w)"


def test_a_short_loop_is_unrolled() -> None:
    model = model_of(LOOPED, LOOP.format("go = Identity(going)"), "int64 m = {3}", "bool c = {1}")
    result, _ = run_pass(model, unroll_loops, options=Options(unroll_limit=3))
    assert sorted(operators(result)) == sorted(["Mul", "Add", "Unsqueeze"] * 3 + ["Concat"])
    stays(model, "", unroll_loops)


def test_one_round_is_unrolled_always() -> None:
    model = model_of(LOOPED, LOOP.format("go = Identity(going)"), "int64 m = {1}", "bool c = {1}")
    assert "Loop" not in operators(simplify(model))
    same(model, simplify(model))


def test_loops_that_may_end_early_stay() -> None:
    body = LOOP.format("t = ReduceSum<keepdims=0>(s) go = Less(t, ten)")
    model = model_of(LOOPED, body, "int64 m = {1}", "bool c = {1}", "float ten = {10}")
    stays(model, "", unroll_loops)
    open_count = model_of("(int64 m, float[2] x) => (float[2] y, float[?,2] w)",
                          LOOP.format("go = Identity(going)"), "bool c = {1}")  # fmt: skip
    stays(open_count, "", unroll_loops)


FUNCTIONS = """<ir_version: 10, opset_import: ["": 21, "local": 1]>
    g (float[n] x) => (float[n] y) {{ {0} }}
    <domain: "local", opset_import: ["": {1}]> twice (p) => (q) {{ r = Add(p, p) q = Exp(r) }}"""


def test_a_function_called_once_is_inlined() -> None:
    model = load_text(FUNCTIONS.format("y = local.twice(x)", 21))
    small = simplify(model)
    assert operators(small) == ["Add", "Exp"] and not small.functions
    same(model, small)


def test_a_function_called_twice_stays() -> None:
    model = load_text(FUNCTIONS.format("a = local.twice(x) y = local.twice(a)", 21))
    assert not inline_calls(model)
    small = simplify(model)
    assert operators(small) == ["twice", "twice"] and len(small.functions) == 1
    same(model, small)


def test_a_function_of_another_opset_stays() -> None:
    model = load_text(FUNCTIONS.format("y = local.twice(x)", 13))
    assert not inline_calls(model)


def test_function_bodies_are_simplified() -> None:
    text = FUNCTIONS.format("a = local.twice(x) y = local.twice(a)", 21)
    model = load_text(text.replace("r = Add(p, p)", "i = Identity(p) d = Exp(p) r = Add(i, p)"))
    small = simplify(model)
    assert [node.op_type for node in small.functions[0].graph.nodes] == ["Add", "Exp"]
    same(model, small)
