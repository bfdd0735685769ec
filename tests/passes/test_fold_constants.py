"""Constant folding."""

import numpy as np
import pytest

from sardonyx.graph import Attribute, SparseTensor, Tensor
from sardonyx.passes.fold_constants import fold_constants
from sardonyx.passes.lift_constants import lift_constants
from sardonyx.passes.options import Options
from sardonyx.passes.pipeline import simplify
from tests.passes.cases import becomes, model_of, operators, run_pass, stays, weights

ROW = "(float[n,3] x) => (float[n,3] y)"


def test_what_depends_on_constants_alone_is_computed() -> None:
    body = "a = Add(w, v) b = Exp(a) c = Transpose(b) y = Mul(x, c)"
    model = model_of(ROW, body, weights("w", 3), weights("v", 3))
    result = becomes(model, ["Mul"], fold_constants)
    assert [value.name for value in result.graph.initializers] == ["c"]


def test_constant_nodes_become_initializers() -> None:
    body = "c = Constant<value_floats=[1.0, 2.0, 3.0]>() y = Mul(x, c)"
    becomes(model_of(ROW, body), ["Mul"], lift_constants)


def test_sparse_constants_stay_nodes() -> None:
    body = "c = Constant<value_floats=[1.0, 2.0, 3.0]>() y = Mul(x, c)"
    model = model_of(ROW, body)
    assert model.graph is not None
    sparse = SparseTensor(Tensor(np.array([5], np.float32)), Tensor(np.array([1])), (3,))
    model.graph.nodes[0].attributes = {"sparse_value": Attribute("sparse_value", sparse)}
    stays(model, "", lift_constants)


def test_a_returned_constant_stays_a_node() -> None:
    signature = "(float[n] x) => (float[3] y, float[n] z)"
    model = model_of(signature, "a = Neg(w) y = Exp(a) z = Neg(x)", weights("w", 3))
    becomes(model, ["Constant", "Neg"], fold_constants)


def test_random_numbers_are_not_folded() -> None:
    signature = "(float[2] x) => (float[2] y)"
    body = "r = RandomNormalLike<seed=1.0>(w) y = Add(x, r)"
    result, _ = run_pass(model_of(signature, body, weights("w", 2)), fold_constants)
    assert len(result.graph.nodes) == 2


def test_weights_stay_quantized() -> None:
    body = "w = DequantizeLinear(q, s) y = Mul(x, w)"
    stays(model_of(ROW, body, "int8[3] q = {1, 2, 3}", "float s = {0.5}"), "", fold_constants)


def test_results_over_the_limit_stay_computed() -> None:
    signature, body = "(float[4,64] x) => (float[4,64] y)", "e = Expand(w, s) y = Mul(x, e)"
    model = model_of(signature, body, weights("w", 64), "int64[2] s = {4, 64}")
    becomes(model, ["Mul"], fold_constants)
    becomes(model, ["Expand", "Mul"], fold_constants, options=Options(fold_limit=100))


def test_weights_that_only_move_are_folded_over_the_limit_too() -> None:
    signature, body = "(float[4,64] x) => (float[4,2] y)", "t = Transpose(w) y = MatMul(x, t)"
    model = model_of(signature, body, weights("w", 2, 64))
    becomes(model, ["MatMul"], fold_constants, options=Options(fold_limit=100))
    shared = model_of(
        "(float[4,64] x) => (float[4,2] y, float[2,64] z)", body + " z = Neg(w)",
        weights("w", 2, 64),
    )  # fmt: skip
    becomes(shared, ["MatMul", "Constant"], fold_constants, options=Options(fold_limit=600))
    becomes(shared, ["Transpose", "MatMul", "Neg"], fold_constants, options=Options(fold_limit=100))


def test_inputs_with_a_default_are_not_constant() -> None:
    model = model_of("(float[2] x, float[2] w) => (float[2] y)", "a = Exp(w) y = Mul(x, a)",
                     weights("w", 2))  # fmt: skip
    stays(model, "", fold_constants)


def test_subgraphs_are_folded() -> None:
    model = model_of(
        "(bool c, float[3] x) => (float[3] y)",
        """y = If (c) <
             then_branch = t () => (float[3] p) { a = Exp(w) p = Mul(x, a) },
             else_branch = e () => (float[3] q) { q = Neg(x) }
           >""",
        weights("w", 3),
    )
    becomes(model, ["If", "Mul", "Neg"], fold_constants)


def test_old_operator_versions_are_folded() -> None:
    body = "u = Unsqueeze<axes=[0]>(w) a = Clip<max=0.2>(u) y = Mul(x, a)"
    becomes(model_of(ROW, body, weights("w", 3), opset=9), ["Mul"], fold_constants)


def test_a_node_that_fails_is_left_as_it_is() -> None:
    body = "a = Reshape(w, s) b = Exp(v) c = Add(x, b) y = Add(c, a)"
    model = model_of("(float[3] x) => (float[3] y)", body, weights("w", 3), weights("v", 3),
                     "int64[1] s = {3}")  # fmt: skip
    model.graph.initializers[-1].tensor.set([4])
    assert operators(simplify(model)).count("Reshape") == 1


def test_large_results_are_computed_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    body = "a = Exp(w) b = Neg(a) c = Abs(b) d = Add(a, c) p = Mul(x, d) y = Sub(p, c)"
    model = model_of("(float[n,3] x) => (float[n,3] y)", body, weights("w", 3))
    whole = becomes(model, ["Mul", "Sub"], fold_constants)
    monkeypatch.setattr("sardonyx.passes.unit.LEAST_SLACK", 1)
    turns = becomes(model, ["Mul", "Sub"], fold_constants)
    assert len(turns.graph.initializers) == len(whole.graph.initializers) == 2
