"""Shapes that a model declares and its nodes do not give: the results are what nodes compute."""

import logging
from typing import Any

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.compiler.program import compile_model
from sardonyx.errors import InferenceError
from sardonyx.ops.operator import Operator

X = np.array([1, 0, 2], np.float32)
THREE = np.array([3])
WRONG: dict[str, tuple[str, dict[str, Any]]] = {
    "range": (
        "g (int64 n) => (int64[4] y) { a = Constant<value_int=0>() b = Constant<value_int=1>()"
        " y = Range(a, n, b) }",
        {"n": np.array(3)},
    ),
    "filled": (
        "g (int64[k] n) => (float[4] y) { y = ConstantOfShape<value=float[1] {2}>(n) }",
        {"n": THREE},
    ),
    "expanded": (
        "g (float[1] x, int64[k] n) => (float[4] y) { y = Expand(x, n) }",
        {"x": X[:1], "n": THREE},
    ),
    "reshaped": (
        "g (float[3] x, int64[k] n) => (float[2,2] y) { y = Reshape(x, n) }",
        {"x": X, "n": np.array([3, 1])},
    ),
    "counted": ("g (float[3] x) => (int64[1,3] y) { y = NonZero(x) }", {"x": X}),
    "elementwise": ("g (float[3] x) => (float[4] y) { y = Neg(x) }", {"x": X}),
    "rank": ("g (float[3] x) => (float[3,1] y) { y = Neg(x) }", {"x": X}),
    "loop": (
        "g (int64 n, float[3] x) => (float[2] y) { y = Loop(n, , x)<"
        "body = b (int64 i, bool c, float[2] s) => (bool d, float[2] t) {"
        " d = Identity(c) t = Concat<axis=0>(s, s) }> }",
        {"n": np.array(2), "x": X},
    ),
    "branches": (
        "g (bool c, float[3] x) => (float[2] y) { y = If(c)<"
        "then_branch = t () => (float[2] a) { a = Neg(x) },"
        "else_branch = e () => (float[4,1] b) { b = Concat<axis=0>(x, x) }> }",
        {"c": np.array(False), "x": X},
    ),
    "inner shape": (
        "g (float[3] x) => (y) <int64[1,7] a> { a = NonZero(x) y = Shape(a) }", {"x": X},
    ),
    "inner sum": (
        "g (float[3] x) => (float[9] y) <int64[1,7] a, float[9,9] b> {"
        " a = NonZero(x) b = Cast<to=1>(a) c = Constant<value_ints=[-1]>() y = Reshape(b, c) }",
        {"x": X},
    ),
    "inner name": (
        "g (float[N] x) => (float[N] y) <int64[1,N] a> {"
        " a = NonZero(x) b = Cast<to=1>(a) y = ReduceSum<keepdims=0>(b) }",
        {"x": X},
    ),
    "inner rank": (
        "g (float[N] x) => (int64[1] y) <int64[N] a> { a = NonZero(x) s = Shape(a) y = Shape(s) }",
        {"x": X},
    ),
}  # fmt: skip


def model(text: str) -> sx.Model:
    return sx.load_text(f'<ir_version: 10, opset_import: ["": 21]>{text}')


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("level", [0, 1, 99])
def test_results_have_the_shape_that_is_computed(name: str, level: int) -> None:
    text, feeds = WRONG[name]
    wanted = sx.evaluate(model(text), feeds)
    options = sx.SessionOptions()
    options.graph_optimization_level = sx.GraphOptimizationLevel(level)
    session = sx.InferenceSession(model(text), options)
    for _ in range(2):
        for a, b in zip(session.run(None, feeds), wanted, strict=True):
            np.testing.assert_array_equal(a, b, strict=True)


@pytest.mark.parametrize("name", ["range", "rank"])
def test_another_shape_is_told_once(name: str, caplog: pytest.LogCaptureFixture) -> None:
    text, feeds = WRONG[name]
    program = compile_model(model(text), threads=1)
    with caplog.at_level(logging.WARNING, "sardonyx"):
        program.run(feeds)
        program.run(feeds)
    (record,) = caplog.records
    assert record.getMessage().startswith("output 'y' is declared as [")
    assert record.getMessage().endswith("and has the shape [3]")


def test_a_shape_that_holds_is_no_notice(caplog: pytest.LogCaptureFixture) -> None:
    text, feeds = WRONG["range"]
    with caplog.at_level(logging.WARNING, "sardonyx"):
        compile_model(model(text.replace("[4] y", "[3] y")), threads=1).run(feeds)
    assert not caplog.records


@pytest.mark.parametrize("level", [0, 99])
def test_older_opsets_do_not_ask_declarations(level: int) -> None:
    text = """g (float[2,3,4] x) => (float[2,3,4] y) <float[2,3] a> {
        a = Neg(x) y = Softmax<axis=1>(a) }"""
    source = sx.load_text(f'<ir_version: 7, opset_import: ["": 11]>{text}')
    options = sx.SessionOptions()
    options.graph_optimization_level = sx.GraphOptimizationLevel(level)
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4) / 9
    (found,) = sx.InferenceSession(source, options).run(None, {"x": x})
    powers = np.exp(-x)
    wanted = powers / powers.sum((1, 2), keepdims=True)
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
    np.testing.assert_allclose(sx.evaluate(source, {"x": x})[0], wanted, rtol=1e-5)


class Doubled(Operator):
    """An operator that does not say what shape its result has."""

    name, domain = "Doubled", "test"
    signatures = ("1(x: T) -> y: T; T: float",)

    def reference(x: Any) -> Any:
        return np.concatenate([x, x])


DOUBLED = "g (float[N] x) => (y) <float[6] a> { a = test.Doubled(x) b = Mul(a, a) y = Add(b, a) }"


@pytest.mark.parametrize("declared", ["[6]", "[7]", "[6,1]", "[M]", ""])
def test_a_shape_that_only_the_model_says_is_checked(declared: str) -> None:
    text = DOUBLED.replace("[6]", declared)
    source = sx.load_text(f'<ir_version: 10, opset_import: ["": 21, "test": 1]>{text}')
    session = sx.InferenceSession(source, operators=[Doubled])
    for _ in range(2):
        np.testing.assert_array_equal(
            session.run(None, {"x": X})[0], np.array([2, 0, 6] * 2, np.float32), strict=True
        )


def test_a_declared_rank_lets_kernels_run_behind_an_operator() -> None:
    source = sx.load_text(f'<ir_version: 10, opset_import: ["": 21, "test": 1]>{DOUBLED}')
    session = sx.InferenceSession(source, operators=[Doubled])
    assert session.explain().count("reference") == 1


@pytest.mark.parametrize("level", [0, 1, 99])
def test_another_element_type_is_refused(level: int) -> None:
    options = sx.SessionOptions()
    options.graph_optimization_level = sx.GraphOptimizationLevel(level)
    wrong = model("g (float[3] x) => (int64[3] y) { y = Neg(x) }")
    with pytest.raises(InferenceError, match="'y' is declared as int64, and is float"):
        sx.InferenceSession(wrong, options)
