"""What differs between two models."""

import math

import numpy as np
import pytest

from sardonyx.passes.diff_models import diff, largest_gap
from sardonyx.passes.pipeline import simplify
from tests.passes.cases import model_of, weights

ROW = "(float[n,3] x) => (float[n,3] y)"


def test_equal_models() -> None:
    model = model_of(ROW, "y = Mul(x, w)", weights("w", 3))
    found = diff(model, model, runs=2)
    assert not found and str(found) == "no difference"


def test_structure_weights_and_results() -> None:
    left = model_of(ROW, "a = Neg(x) y = Mul(a, w)", weights("w", 3), weights("u", 2))
    right = model_of(ROW, "y = Mul(x, w)", weights("w", 3, scale=0.2), opset=20, ir=9)
    found = diff(left, right)
    assert {(item.kind, item.name) for item in found.structure} == {
        ("IR version", ""), ("opset", ""), ("operator", "Neg"),
    }  # fmt: skip
    assert [(item.name, item.right is None) for item in found.weights] == [
        ("w", False),
        ("u", True),
    ]
    assert [item.name for item in found.numerics] == ["y"]
    assert str(found).splitlines()[0].split() == ["what", "name", "left", "right"]


@pytest.mark.parametrize("other", ["structure", "weights", "numerics"])
def test_one_kind_of_difference_is_enough(other: str) -> None:
    left = model_of(ROW, "a = Mul(x, w) y = Add(a, a)", weights("w", 3))
    right = {
        "structure": model_of(ROW, "b = Identity(x) a = Mul(b, w) y = Add(a, a)", weights("w", 3)),
        "weights": model_of(ROW, "a = Mul(x, w) y = Add(a, a)", weights("w", 3, scale=0.2)),
        "numerics": model_of(ROW, "a = Add(x, w) y = Mul(a, a)", weights("w", 3)),
    }[other]
    found = diff(left, right, runs=int(other == "numerics"))
    kinds = {kind for kind in ("structure", "weights", "numerics") if getattr(found, kind)}
    assert found and kinds == {other}


def test_weights_that_differ() -> None:
    left = model_of(ROW, "y = Mul(x, w)", "float[3] w = {1, 2, 3}", "float[2] v = {1, 2}")
    right = model_of(ROW, "y = Mul(x, w)", "float[3] w = {1, 2, 3.5}", "float[3] v = {1, 2, 3}",
                     "float u = {1}")  # fmt: skip
    found = [(item.name, item.left, item.right) for item in diff(left, right, runs=0).weights]
    assert found == [
        ("w", "equal shape", "differs by 0.5"), ("v", "float[2]", "float[3]"),
        ("u", None, "float[]"),
    ]  # fmt: skip


def test_a_simplified_model_computes_the_same() -> None:
    model = model_of(ROW, "a = Identity(x) b = Exp(w) y = Mul(a, b)", weights("w", 3))
    assert not diff(model, simplify(model)).numerics


def test_models_that_do_not_run() -> None:
    model = model_of("(float[2] x, int64[1] i) => (float[?] y)", "j = Add(i, k) y = Gather(x, j)",
                     "int64 k = {100}")  # fmt: skip
    (only,) = diff(model, model).numerics
    assert only.right.startswith("not compared")


@pytest.mark.parametrize(
    ("left", "right", "gap"),
    [
        (np.array([1.0]), np.array([1.0, 2.0]), math.inf),
        (np.array([1.0]), np.array([1.0], np.float32), math.inf),
        (np.array([np.nan, 1.0]), np.array([np.nan, 3.0]), 2.0),
        (np.array([np.nan]), np.array([1.0]), math.inf),
        (np.array([np.inf]), np.array([np.inf]), 0.0),
        (np.array(["a"], object), np.array(["b"], object), math.inf),
    ],
)
def test_largest_gap(left: object, right: object, gap: float) -> None:
    assert largest_gap(left, right) == gap
