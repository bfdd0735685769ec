"""simplify and optimize: what they promise."""

import numpy as np
import pytest

from sardonyx.errors import EvaluationError, InputError, UnsupportedError
from sardonyx.format.load import load_text
from sardonyx.format.save import to_bytes
from sardonyx.ops.evaluate import evaluate
from sardonyx.passes.options import Options
from sardonyx.passes.pipeline import LEVELS, PORTABLE, optimize, run_pipeline, simplify
from sardonyx.runtime import InferenceSession
from tests.passes.cases import model_of, operators, same, weights

CHAIN = """s = Shape(x) n = Gather(s, zero) u = Unsqueeze(n, axes) t = Concat<axis=0>(u, rest)
           r = Reshape(x, t) i = Identity(r) y = Relu(i)"""
CONSTANTS = ("int64 zero = {0}", "int64[1] axes = {0}", "int64[2] rest = {2, 3}")


def test_the_model_is_left_as_it_was() -> None:
    model = model_of("(float[n,6] x) => (float[n,2,3] y)", CHAIN, *CONSTANTS)
    before = to_bytes(model)
    small = simplify(model)
    assert operators(small) == ["Reshape", "Relu"]
    assert to_bytes(model) == before
    same(model, small)


def test_what_is_said_about_a_model_stays() -> None:
    model = load_text("""<ir_version: 8, opset_import: ["": 17], producer_name: "maker",
        doc_string: "words", metadata_props: ["key": "value"]>
        named (float[n] x) => (float[n] y) { a = Identity(x) y = Neg(a) }""")
    small = simplify(model)
    assert (small.producer_name, small.doc_string) == ("maker", "words")
    assert (small.metadata, small.opset, small.ir_version) == ({"key": "value"}, 17, 8)
    assert small.graph.name == "named"


def test_fixed_input_shapes() -> None:
    model = model_of("(float[n,6] x) => (float[n,6] y, int64[2] z)", "y = Neg(x) z = Shape(x)")
    assert operators(simplify(model)) == ["Neg", "Shape"]
    fixed = simplify(model, overwrite_input_shapes={"x": (4, 6)})
    assert operators(fixed) == ["Neg", "Constant"]
    assert str(fixed.graph.outputs[0].type) == "float[4,6]"
    assert operators(simplify(model, dynamic=False)) == ["Neg", "Constant"]


def test_fixed_dimensions() -> None:
    signature = "(float[n,m] x, float[n,2] z) => (float[n,m] y, int64[2] s)"
    model = model_of(signature, "t = Shape(z) s = Neg(t) y = Neg(x)")
    fixed = simplify(model, free_dimensions={"n": 4}, verify=1)
    assert operators(fixed) == ["Constant", "Neg"]
    assert [str(value.type) for value in fixed.graph.inputs] == ["float[4,m]", "float[4,2]"]
    assert str(fixed.graph.outputs[0].type) == "float[4,m]"
    with pytest.raises(InputError, match="no input has a dimension 'k'"):
        simplify(model, free_dimensions={"k": 4})
    with pytest.raises(InputError, match="cannot have the size -1"):
        simplify(model, free_dimensions={"n": -1})


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"q": (1, 6)}, "no input 'q'"),
        ({"x": (1, 6, 1)}, "2 dimensions"),
        ({"x": (1, 7)}, "size 6 where 7"),
    ],
)
def test_input_shapes_that_do_not_fit(shapes: dict[str, tuple[int, ...]], message: str) -> None:
    model = model_of("(float[n,6] x) => (float[n,6] y)", "y = Neg(x)")
    with pytest.raises(InputError, match=message):
        simplify(model, overwrite_input_shapes=shapes)


def test_skipped_passes() -> None:
    model = model_of("(float[n,6] x) => (float[n,2,3] y)", CHAIN, *CONSTANTS)
    assert "Identity" in operators(simplify(model, skip=["drop_identities"]))
    with pytest.raises(UnsupportedError, match="no pass 'drop_all'"):
        simplify(model, skip=["drop_all"])


def test_weights_of_old_models_are_constants() -> None:
    model = model_of("(float[2] x, float[2] w) => (float[2] y)", "a = Exp(w) y = Mul(x, a)",
                     weights("w", 2), opset=9, ir=3)  # fmt: skip
    small = simplify(model)
    assert operators(small) == ["Mul"] and small.ir_version == 4
    assert [value.name for value in small.graph.inputs] == ["x"]
    same(model, small)


def test_an_extra_opset() -> None:
    body = """d = Div(x, root) e = Erf(d) p = Add(e, one) a = Mul(x, p) y = Mul(a, half)"""
    numbers = ("float root = {1.4142135}", "float one = {1}", "float half = {0.5}")
    model = model_of("(float[n] x) => (float[n] y)", body, *numbers, opset=13)
    assert operators(simplify(model)) != ["Gelu"]
    raised = simplify(model, extra_opset=20)
    assert operators(raised) == ["Gelu"] and raised.opset == 20
    same(model, raised)


def test_new_nodes_have_names_of_their_own() -> None:
    body = """d = Sub(x, m) e = Exp(d) f = ReduceSum(e) g = Sqrt(f) r = Reciprocal(g) h = Mul(r, k)
              p = Mul(x, h) q = Mul(m, h) t = Sub(b, q) y = Add(p, t)"""
    parts = (weights("b", 3), weights("k", 3))
    model = model_of("(float[2,3] x, float[2,1] m) => (float[2,3] y)", body, *parts)
    for node in model.graph.nodes:
        node.name = "same"
    names = [node.name for node in simplify(model).graph.nodes]
    assert len(set(names)) == len(names)


def test_levels() -> None:
    model = model_of("(float[n,6] x) => (float[n,2,3] y)", CHAIN, *CONSTANTS)
    counts = [len(operators(optimize(model, level))) for level in LEVELS]
    assert counts == [7, 2, 2, 2]
    with pytest.raises(UnsupportedError, match="no level 9"):
        optimize(model, 9)


def test_nodes_out_of_order() -> None:
    model = model_of("(float[n] x) => (float[n] y)", "a = Exp(x) b = Identity(a) y = Neg(b)")
    last = model.graph.nodes[0]
    model.graph.nodes.remove(last, safe=False)
    model.graph.nodes.append(last)
    assert operators(simplify(model)) == ["Exp", "Neg"]


def test_passes_are_recorded_by_name() -> None:
    model = model_of("(float[n] x) => (float[n] y)", "a = Identity(x) y = Neg(a)")
    names: list[str] = []
    run_pipeline(model, PORTABLE, Options(), record=names)
    assert names == ["drop_identities"]


def test_unknown_operators_are_kept() -> None:
    model = load_text("""<ir_version: 8, opset_import: ["": 17, "mine": 1]>
        g (float[n] x) => (float[n] y) {
          a = Identity(x) b = mine.Own(a) c = Identity(b) y = Neg(c) }""")
    assert operators(simplify(model)) == ["Own", "Neg"]


def test_long_chains_of_sizes_do_not_explode() -> None:
    body = "v0 = Reshape(x, s)"
    for place in range(40):
        body += f" a{place} = Add(v{place}, z) v{place + 1} = Reshape(a{place}, {'st'[place % 2]})"
    model = model_of("(float[n,m] x, float[?,?,?] z) => (float[?,?,?] y)", body + " y = Neg(v40)",
                     "int64[3] s = {0, -1, 2}", "int64[3] t = {2, -1, 0}")  # fmt: skip
    assert len(operators(simplify(model))) <= len(operators(model))


def test_a_training_batch_normalization_is_untouched() -> None:
    parts = [weights(name, 2, positive=True) for name in "sbmv"]
    signature = "(float[2,2,3] x) => (float[2,2,3] y, float[2] p, float[2] q)"
    body = "y, p, q = BatchNormalization<training_mode=1>(x, s, b, m, v)"
    model = model_of(signature, body, *parts)
    small = simplify(model)
    assert len(small.graph.nodes[0].outputs) == 3
    same(model, small)


def test_numbers_are_the_same_bit_for_bit_where_nothing_is_joined() -> None:
    model = model_of("(float[n,6] x) => (float[n,2,3] y)", CHAIN, *CONSTANTS)
    feeds = {"x": np.arange(12, dtype=np.float32).reshape(2, 6) / 7}
    np.testing.assert_array_equal(evaluate(model, feeds)[0], evaluate(simplify(model), feeds)[0])


def test_what_breaks_an_operators_rules_is_not_hidden() -> None:
    body = "s = Mul(x, x) m = ReduceMean<keepdims=1>(s, a) b = Add(m, e) r = Sqrt(b) y = Div(x, r)"
    model = model_of("(float[n,4] x) => (float[n,4] y)", body, "int64[1] a = {-1}",
                     "uint8[1] e = {0}")  # fmt: skip
    small = simplify(model)
    assert [node.op_type for node in small.graph.nodes] == ["Mul", "ReduceMean", "Add", "Sqrt",
                                                            "Div"]  # fmt: skip
    feeds = {"x": np.ones((2, 4), np.float32)}
    for provider in ("CPUExecutionProvider", "ReferenceExecutionProvider"):
        with pytest.raises(EvaluationError, match="inputs must have one element type"):
            InferenceSession(small, providers=[provider]).run(None, feeds)
