"""Equal nodes, equal constants, equal sizes."""

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.graph import Tensor
from sardonyx.ops.catalog import standard
from sardonyx.passes.know_values import Knowledge
from sardonyx.passes.merge_duplicates import _Content, merge_duplicates
from sardonyx.passes.options import Options
from sardonyx.passes.pipeline import make_units
from tests.passes.cases import becomes, model_of, operators, run_pass, stays, weights

PAIR = "(float[n,3] x) => (float[n,3] y)"


def test_equal_nodes_are_computed_once() -> None:
    body = "a = Exp(x) b = Exp(x) c = Neg(a) d = Neg(b) y = Add(c, d)"
    becomes(model_of(PAIR, body), ["Exp", "Neg", "Add"], merge_duplicates)


def test_other_attributes_or_inputs_are_not_equal() -> None:
    signature = "(float[n,3] x) => (float[n,3] y)"
    body = "a = LeakyRelu<alpha=0.1>(x) b = LeakyRelu<alpha=0.2>(x) y = Add(a, b)"
    stays(model_of(signature, body), "", merge_duplicates)
    stays(model_of(PAIR, "a = Exp(x) b = Exp(a) y = Add(a, b)"), "", merge_duplicates)


def test_random_nodes_are_not_merged() -> None:
    signature = "(float[3] x) => (float[3] z)"
    body = (
        "a = RandomNormalLike(x) b = RandomNormalLike(x) c = Sub(a, b) d = Mul(c, k) z = Add(x, d)"
    )
    model = model_of(signature, body, "float k = {0}")
    stays(model, "", merge_duplicates)


def test_equal_constants_are_kept_once() -> None:
    body = "a = Add(x, v) y = Mul(a, w)"
    result = becomes(model_of(PAIR, body, weights("v", 3), weights("w", 3)), ["Add", "Mul"],
                     merge_duplicates)  # fmt: skip
    assert len(result.graph.initializers) == 1
    other = model_of(PAIR, body, weights("v", 3), weights("w", 3, scale=0.2))
    assert len(becomes(other, ["Add", "Mul"], merge_duplicates).graph.initializers) == 2


def test_constants_that_begin_and_end_alike_are_not_equal() -> None:
    array = np.zeros(20_000, np.float32)
    model = model_of("(float[20000] x) => (float[20000] y)",
                     "p = Add(x, a) q = Mul(p, b) y = Sub(q, c)",
                     *(f"float[1] {name} = {{0}}" for name in "abc"))  # fmt: skip
    for name, place in (("a", 10_000), ("b", 10_000), ("c", 10_001)):
        changed = array.copy()
        changed[place] = 1
        model.graph.value(name).tensor.set(changed)
    result = becomes(model, ["Add", "Mul", "Sub"], merge_duplicates)
    assert len(result.graph.initializers) == 2


def test_equal_strings_are_kept_once() -> None:
    body = "p = StringConcat(x, a) q = StringConcat(p, b) y = StringConcat(q, c)"
    model = model_of("(string[2] x) => (string[2] y)", body, 'string[1] a = {"u"}',
                     'string[1] b = {"u"}', 'string[1] c = {"v"}')  # fmt: skip
    twin, _ = run_pass(model, merge_duplicates)
    assert len(twin.graph.initializers) == 2


def test_two_outputs_keep_their_names() -> None:
    model = model_of("(float[n] x) => (float[n] y, float[n] z)", "y = Exp(x) z = Exp(x)")
    result = becomes(model, ["Exp", "Exp"], merge_duplicates)
    assert [value.name for value in result.graph.outputs] == ["y", "z"]


def test_results_of_nodes_with_several_keep_their_places() -> None:
    signature = "(float[5] x) => (float[2] y, int64[2] z, int64[2] w)"
    body = "y, z = TopK(x, k) v, w = TopK(x, k)"
    result, _ = run_pass(model_of(signature, body, "int64[1] k = {2}"), merge_duplicates)
    assert all(value.name for node in result.graph.nodes for value in node.outputs)


def test_what_nothing_reads_any_more_is_gone_at_once() -> None:
    model = model_of(PAIR, "a = Exp(x) b = Exp(x) c = Neg(a) d = Neg(b) y = Add(c, d)")
    (unit,) = make_units(model, Options(), Knowledge(standard()), standard())
    assert merge_duplicates(unit)
    assert operators(model) == ["Exp", "Neg", "Add"]
    assert not merge_duplicates(unit)


def test_large_contents_are_equal_by_all_they_hold() -> None:
    zeros, ones = np.zeros(300, np.float32), np.ones(300, np.float32)
    held = _Content(Tensor(zeros))
    assert held == _Content(Tensor(zeros.copy())) and hash(held) == hash(_Content(Tensor(zeros)))
    for other in (ones, zeros[:299], zeros.reshape(3, 100), zeros.astype(np.int32)):
        assert held != _Content(Tensor(other))
    assert held != "a text"


def test_an_output_takes_over_the_work() -> None:
    signature = "(float[n] x) => (float[n] y, float[n] z)"
    model = model_of(signature, "a = Exp(x) y = Neg(a) z = Exp(x)")
    becomes(model, ["Exp", "Neg"], merge_duplicates)


def test_sizes_that_are_equal_by_inference() -> None:
    signature = "(float[n,m] x) => (float[?] y, float[?] z)"
    body = """a = Shape<end=1>(x) b = Neg(x) s = Shape(b) c = Gather(s, zero)
              y = ConstantOfShape(a) z = ConstantOfShape(c)"""
    model = model_of(signature, body, "int64[1] zero = {0}")
    becomes(model, ["Shape", "ConstantOfShape", "ConstantOfShape"], merge_duplicates)


def test_a_subgraph_reads_what_is_outside() -> None:
    model = model_of(
        "(bool c, float[3] x) => (float[3] y, float[3] z)",
        """z = Exp(x) y = If (c) <
             then_branch = t () => (float[3] p) { a = Exp(x) p = Neg(a) },
             else_branch = e () => (float[3] q) { b = Abs(x) q = Neg(b) }
           >""",
    )
    becomes(model, ["Exp", "If", "Neg", "Abs", "Neg"], merge_duplicates)


def test_a_subgraph_does_not_read_what_comes_later() -> None:
    model = model_of(
        "(bool c, float[3] x) => (float[3] y, float[3] z)",
        """y = If (c) <
             then_branch = t () => (float[3] p) { a = Exp(x) p = Neg(a) },
             else_branch = e () => (float[3] q) { b = Abs(x) q = Neg(b) }
           > z = Exp(x)""",
    )
    stays(model, "", merge_duplicates)


def test_branches_do_not_share_their_nodes() -> None:
    model = model_of(
        "(bool c, float[3] x) => (float[3] y)",
        """y = If (c) <
             then_branch = t () => (float[3] p) { a = Exp(x) p = Neg(a) },
             else_branch = e () => (float[3] q) { b = Exp(x) q = Abs(b) }
           >""",
    )
    stays(model, "", merge_duplicates)


@pytest.mark.parametrize("size", [40, 256, 257, 1000])
def test_equal_constant_nodes_are_kept_once(size: int) -> None:
    numbers = ", ".join(["0.5"] * size)
    other = ", ".join(["0.5"] * 20 + ["0.25"] + ["0.5"] * (size - 21))
    contents = (numbers, numbers, other)
    made = " ".join(
        f"{name} = Constant<value = float[{size}] {{{content}}}>()"
        for name, content in zip("abc", contents, strict=True)
    )
    body = f"{made} p = Add(x, a) q = Mul(p, b) y = Sub(q, c)"
    model = model_of(f"(float[{size}] x) => (float[{size}] y)", body)
    becomes(model, ["Constant", "Constant", "Add", "Mul", "Sub"], merge_duplicates)


def test_constant_nodes_of_other_shapes_or_types_are_not_equal() -> None:
    body = """a = Constant<value = float[2] {1, 0}>() b = Constant<value = float[1,2] {1, 0}>()
              c = Constant<value = int64[1] {1065353216}>() d = Cast<to = 1>(c)
              e = Constant<value = float[0] {}>() f = Constant<value = float[0,2] {}>()
              g = Concat<axis = 0>(e, a) h = Concat<axis = 0>(f, b)
              p = Add(x, g) q = Mul(p, d) y = Sub(q, h)"""
    model = model_of("(float[1,2] x) => (float[1,2] y)", body)
    stays(model, "", merge_duplicates)


def test_constant_nodes_of_strings() -> None:
    texts = ["u" * 30, "v" * 30, "u" * 30]
    made = " ".join(
        f'{name} = Constant<value = string[1] {{"{text}"}}>()'
        for name, text in zip("abc", texts, strict=True)
    )
    body = f"{made} p = StringConcat(x, a) q = StringConcat(p, b) y = StringConcat(q, c)"
    model = model_of("(string[2] x) => (string[2] y)", body)
    twin, _ = run_pass(model, merge_duplicates)
    assert [node.op_type for node in twin.graph.nodes].count("Constant") == 2
    feed = {"x": np.array(["s", "t"], object)}
    assert sx.evaluate(twin, feed)[0].tolist() == sx.evaluate(model, feed)[0].tolist()
