"""Inference through functions: once for each signature, without an end to their depth."""

import time

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.ops.call_facts import call_signature
from sardonyx.ops.fact import of_array, tensor
from sardonyx.ops.infer import Inference, infer_all, infer_facts
from tests.scale import models
from tests.scale.hostile import CASES, nested_loops

HEAD = '<ir_version: 10, opset_import: ["": 21, "local": 1]>'
FUNCTION = '<domain: "local", opset_import: ["": 21]>'


def _output(model: sx.Model) -> str:
    graph = sx.infer_shapes(model).graph
    assert graph is not None
    return str(graph.outputs[0].type)


def _loaded(proto: object) -> sx.Model:
    return sx.load(proto.SerializeToString())  # type: ignore[attr-defined]


def test_functions_that_double_are_looked_at_once() -> None:
    model = _loaded(models.doubled_functions(40))
    start = time.process_time()
    assert _output(model) == "float[n,4]"
    assert time.process_time() - start < 2


def test_ten_thousand_functions_in_a_row() -> None:
    assert _output(_loaded(models.chained_functions(10_000))) == "float[n,4]"


def test_each_call_has_sizes_of_its_own() -> None:
    """What only a run tells differs between calls, though both are given the same."""
    model = sx.load_text(
        HEAD + "g (float[n] x, float[n] z) => (a, b, c) {"
        " a = local.f (x) b = local.f (z) c = local.f (x) }" + FUNCTION + "f (x) => (y) {"
        " t = NonZero (x) y = Concat <axis = 1> (t, t) }"
    )
    assert model.graph is not None
    facts = infer_facts(model)
    sizes = [facts[value].shape[1] for value in model.graph.outputs]  # type: ignore[index]
    assert len(set(map(str, sizes))) == 3
    assert all(str(size).startswith("2*") for size in sizes)


def test_sizes_of_one_call_stay_equal() -> None:
    model = sx.load_text(
        HEAD + "g (float[n] x) => (a, b, c, d) { a, b = local.f (x) c, d = local.f (x) }"
        + FUNCTION + "f (x) => (y, z) { y = NonZero (x) z = Neg (y) }"
    )  # fmt: skip
    assert model.graph is not None
    facts = infer_facts(model)
    a, b, c, d = (facts[value].shape for value in model.graph.outputs)
    assert a == b and c == d and a != c


def test_calls_differ_by_shape_content_and_attribute() -> None:
    model = sx.load_text(
        HEAD
        + "g (float[n] x, float[2,3] z) => (a, b, c, d) {"
        " s = Constant <value_ints = [2, 3]> () r = Constant <value_ints = [3, 2]> ()"
        " a = local.f <k = 0> (z, s) b = local.f <k = 0> (z, r)"
        " c = local.f <k = 1> (z, s) d = local.f <k = 0> (x, s) }"
        '<domain: "local", opset_import: ["": 21]> f <k> (x, s) => (y) {'
        " t = Reshape (x, s) y = Unsqueeze0 (t) }".replace(
            "Unsqueeze0 (t)", "Concat <axis: int = @k> (t, t)"
        )
    )
    assert model.graph is not None
    facts = infer_facts(model)
    found = [facts[value].shape for value in model.graph.outputs]
    assert found == [(4, 3), (6, 2), (2, 6), (4, 3)]


def test_signatures_tell_apart() -> None:
    function = sx.Function("local", "f")
    zero, minus = (sx.Attribute("a", value) for value in (0.0, -0.0))
    nan = sx.Attribute("a", float("nan"))
    same = call_signature(function, [tensor(sx.DataType.FLOAT, (2,))], {"a": nan})
    assert same == call_signature(function, [tensor(sx.DataType.FLOAT, (2,))], {"a": nan})
    assert call_signature(function, [], {"a": zero}) != call_signature(function, [], {"a": minus})
    ones, twos = (of_array(np.full(2, value)) for value in (1, 2))
    assert call_signature(function, [ones], {}) != call_signature(function, [twos], {})
    assert call_signature(function, [None], {}) != call_signature(function, [], {})


@pytest.mark.parametrize("case", ["functions with other sizes", "nested loops"])
def test_there_is_a_limit_that_says_so(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Inference, "least_work", 2_000)
    monkeypatch.setattr(Inference, "work_per_node", 4)
    _, findings = infer_all(_loaded(CASES[case]()))
    assert any("follows no more of them" in finding.what for finding in findings)


def test_loops_in_loops_end_early() -> None:
    start = time.process_time()
    infer_facts(_loaded(nested_loops(24)))
    assert time.process_time() - start < 10


def test_recursion_is_named() -> None:
    for case in ("function that calls itself", "functions that call each other"):
        _, findings = infer_all(_loaded(CASES[case]()))
        assert any("calls itself" in finding.what for finding in findings)


def test_contradictions_in_a_body_are_found_once() -> None:
    model = sx.load_text(
        HEAD + "g (float[2,3] x) => (a, b) { a = local.f (x) b = local.f (x) }"
        + FUNCTION + "f (x) => (y) { y = MatMul (x, x) }"
    )  # fmt: skip
    _, findings = infer_all(model)
    assert len(findings) == 1
    with pytest.raises(sx.InferenceError):
        sx.infer_shapes(model, strict=True)
