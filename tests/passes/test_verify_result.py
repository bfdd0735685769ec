"""Checking a simplified model on random inputs, and finding who is to blame."""

import pytest

from sardonyx.errors import EvaluationError, InputError
from sardonyx.passes.drop_identities import drop_identities
from sardonyx.passes.options import Options
from sardonyx.passes.pipeline import run_pipeline, simplify
from sardonyx.passes.unit import Unit
from sardonyx.passes.verify_result import same_values, verify_result
from tests.passes.cases import model_of


def spoil_tanh(unit: Unit) -> bool:
    changed = False
    for node in unit.nodes():
        if node.op_type == "Tanh":
            node.op_type = "Sigmoid"
            changed = True
    return changed


def test_a_right_result_passes() -> None:
    model = model_of("(float[n] x) => (float[n] y)", "a = Identity(x) y = Tanh(a)")
    assert len(simplify(model, verify=3).graph.nodes) == 1


def test_the_pass_and_the_node_are_named() -> None:
    body = "a = Identity(x) b = Abs(a) [guilty] c = Tanh(b) d = Identity(c) y = Neg(d)"
    model = model_of("(float[n] x) => (float[n] y)", body)
    pipeline = (drop_identities, spoil_tanh)
    small = run_pipeline(model, pipeline)
    with pytest.raises(EvaluationError, match=r"first in pass 'spoil_tanh' .* node 'guilty'"):
        verify_result(model, small, pipeline, Options(), 1)


def test_a_model_that_does_not_run_says_so() -> None:
    model = model_of("(float[2] x, int64[1] i) => (float[?] y)", "j = Add(i, k) y = Gather(x, j)",
                     "int64 k = {100}")  # fmt: skip
    with pytest.raises(InputError, match="does not run on random inputs"):
        simplify(model, verify=1)


def test_larger_sizes_are_tried_where_the_model_needs_them() -> None:
    body = "a = Identity(x) y = AveragePool<kernel_shape=[20]>(a)"
    model = model_of("(float[1,1,n] x) => (float[1,1,m] y)", body)
    assert len(simplify(model, verify=1).graph.nodes) == 1


def test_sizes_that_would_be_too_large_are_not_tried() -> None:
    body = "a = Identity(x) y = AveragePool<kernel_shape=[100]>(a)"
    model = model_of("(float[n,n,n] x) => (float[n,n,m] y)", body)
    with pytest.raises(InputError, match=r"does not run on random inputs.*fix open sizes"):
        simplify(model, verify=1)


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ([1.0], [1.0], True),
        ([1.0], [1.1], False),
        ([1], [1.0], False),
        ({"a": 1.0}, {"a": 1.0}, True),
        ({"a": 1.0}, {"b": 1.0}, False),
        (None, None, True),
        (None, [1.0], False),
        ([float("nan")], [float("nan")], True),
    ],
)
def test_same_values(left: object, right: object, same: bool) -> None:
    assert same_values(left, right) is same
