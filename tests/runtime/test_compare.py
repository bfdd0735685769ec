"""How far two values are apart, whatever kind they are."""

import math
from typing import Any

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.runtime.compare import compare_values

EQUAL: list[tuple[Any, Any]] = [
    (np.array([1.0, np.nan, np.inf]), np.array([1.0, np.nan, np.inf])),
    (np.array([1e6], np.float32), np.array([1e6 + 1], np.float32)),
    (np.zeros((0, 3)), np.zeros((0, 3))),
    (np.array(["a", "b"], object), np.array(["a", "b"], object)),
    (np.array([1 + 2j]), np.array([1 + 2j])),
    ([np.ones(2), np.zeros(1)], [np.ones(2), np.zeros(1)]),
    ([{0: 0.25, 1: 0.75}], [{1: 0.75, 0: 0.25}]),
    ([], []),
    (None, None),
]
DIFFERENT: list[tuple[Any, Any, str]] = [
    (np.ones((2, 3)), np.ones((3, 2)), "shapes differ: [2, 3] and [3, 2]"),
    (np.ones(2, np.float32), np.ones(2, np.float64), "element types differ: float32 and float64"),
    (np.array(["a"], object), np.array(["b"], object), "texts differ"),
    ([np.ones(1)], [], "lengths differ: 1 and 0"),
    ({0: 1.0}, {1: 1.0}, "the keys differ"),
    ({0: 1.0}, [1.0], "shapes differ: [] and [1]"),
    ([1.0], {0: 1.0}, "shapes differ: [1] and []"),
    ([np.ones(1)], np.ones((1, 2)), "shapes differ: [1, 1] and [1, 2]"),
    (np.ones(1), None, "one of them is absent"),
    (None, np.ones(1), "one of them is absent"),
    (np.array([np.nan]), np.array([1.0]), ""),
    (np.array([np.inf]), np.array([-np.inf]), ""),
]


@pytest.mark.parametrize(("ours", "theirs"), EQUAL)
def test_agree(ours: Any, theirs: Any) -> None:
    assert compare_values("y", ours, theirs).agrees


@pytest.mark.parametrize(("ours", "theirs", "remark"), DIFFERENT)
def test_differ(ours: Any, theirs: Any, remark: str) -> None:
    found = compare_values("y", ours, theirs)
    assert not found.agrees and math.isinf(found.largest) and found.remark == remark


def test_the_worst_part_of_a_list_counts() -> None:
    found = compare_values("y", [np.zeros(1), np.ones(1)], [np.zeros(1), np.array([3.0])])
    assert (found.largest, found.agrees) == (2, False)


def test_tolerances() -> None:
    ours, theirs = np.array([1.0]), np.array([1.01])
    assert not compare_values("y", ours, theirs).agrees
    assert compare_values("y", ours, theirs, rtol=0.1).agrees
    assert compare_values("y", ours, theirs, atol=0.1).agrees


CHAIN = """<ir_version: 8, opset_import: ["": 18]>
g (float[2,3] x) => (float[2,3] y) { a = Exp(x) b = Neg(a) c = Abs(b) y = Sqrt(c) }"""
X = {"x": np.full((2, 3), 0.4, np.float32)}


def test_models_that_agree() -> None:
    model = sx.load_text(CHAIN)
    found = sx.bisect(model, sx.simplify(model), X)
    assert found.agrees and not found.first_node and found.first_value is None


@pytest.mark.parametrize("step", ["Exp(x)", "Neg(a)", "Abs(b)", "Sqrt(c)"])
def test_the_first_node_at_which_models_part(step: str) -> None:
    other = CHAIN.replace(step, f"Add({step[-2]}, {step[-2]})")
    found = sx.bisect(sx.load_text(CHAIN), sx.load_text(other), X)
    name = CHAIN[CHAIN.index(step) - 4]
    assert not found.agrees
    assert found.first_node == f"node of '{name}' (Add)"
    assert found.first_value is not None and found.first_value.name == name


def test_what_only_one_model_computes_is_passed_over() -> None:
    other = CHAIN.replace("b = Neg(a)", "d = Neg(a) b = Ceil(d)")
    found = sx.bisect(sx.load_text(CHAIN), sx.load_text(other), X)
    assert found.first_node == "node of 'b' (Ceil)"
    renamed = other.replace("b = Ceil", "e = Ceil").replace("Abs(b)", "Abs(e)")
    assert (
        sx.bisect(sx.load_text(CHAIN), sx.load_text(renamed), X).first_node == "node of 'c' (Abs)"
    )


def test_a_model_in_another_runtime() -> None:
    model = sx.load_text(CHAIN)
    changed = sx.to_bytes(sx.load_text(CHAIN.replace("Neg(a)", "Ceil(a)")))

    class Wrong:
        def __init__(self, content: bytes) -> None:
            outputs = [item.name for item in sx.load(content).graph.outputs]
            twin = sx.load(changed)
            values = {item.name: item for node in twin.graph.nodes for item in node.outputs}
            twin.graph.outputs[:] = [values[name] for name in outputs]
            self.session = sx.InferenceSession(twin)

        def run(self, names: None, feeds: dict[str, Any]) -> Any:
            return self.session.run(names, feeds)

    assert sx.bisect(model, Wrong, X).first_node == "node of 'b' (Neg)"
    assert sx.bisect(model, sx.InferenceSession, X).agrees


def test_other_outputs() -> None:
    other = CHAIN.replace("(float[2,3] y)", "(float[2,3] y, float[2,3] c)")
    with pytest.raises(sx.InputError, match="same number of outputs"):
        sx.bisect(sx.load_text(CHAIN), sx.load_text(other), X)
