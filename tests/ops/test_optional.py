"""Optionals: a value or nothing."""

import numpy as np
import pytest

from sardonyx.errors import EvaluationError, InferenceError
from sardonyx.ops.convert import convert_opset
from tests.ops.direct import inferred, run, run_text, text_model
from tests.ops.one_node import run_model

X = np.float32([1, 2])


def test_there_and_back() -> None:
    text = """g (float[2] x) => (y, h) { o = Optional(x) y = OptionalGetElement(o)
        h = OptionalHasElement(o) }"""
    y, has = run_text(text, {"x": X}, 15)
    assert (y.tolist(), has.tolist(), has.shape, has.dtype) == ([1, 2], True, (), bool)
    sequence = text.replace("float[2] x", "seq(float[2]) x")
    y, has = run_text(sequence, {"x": [X, X]}, 15)
    assert (len(y), has.tolist()) == (2, True)


def test_nothing() -> None:
    assert run("Optional", None, type=_float()) is None
    assert run("OptionalHasElement").tolist() is False
    text = "g (optional(float[2]) o) => (h) { h = OptionalHasElement(o) }"
    assert run_text(text, {"o": None}, 18)[0].tolist() is False
    with pytest.raises(EvaluationError, match="holds nothing"):
        run_text("g (optional(float[2]) o) => (y) { y = OptionalGetElement(o) }", {"o": None}, 18)


def _float() -> object:
    from sardonyx.dtypes import DataType
    from sardonyx.graph import TensorType

    return TensorType(DataType.FLOAT, None)


def test_what_is_no_optional_holds_itself() -> None:
    assert run("OptionalGetElement", X).tolist() == [1, 2]
    assert run("OptionalHasElement", X).tolist() is True


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("y = Optional(x)", "optional(float[n])"),
        ("o = Optional(x) y = OptionalGetElement(o)", "float[n]"),
        ("y = OptionalGetElement(p)", "seq(int64[m])"),
        ("y = OptionalGetElement(x)", "float[n]"),
        ("y = OptionalHasElement(p)", "bool[]"),
        ("q = SequenceConstruct(x) y = Optional(q)", "optional(seq(float[n]))"),
    ],
)
def test_types(body: str, expected: str) -> None:
    text = f"g (float[n] x, optional(seq(int64[m])) p) => (y) {{ {body} }}"
    assert inferred(text, 18) == [expected]


def test_an_empty_optional_needs_its_type() -> None:
    with pytest.raises(InferenceError, match="needs its type"):
        inferred("g () => (y) { y = Optional() }", 15)


def test_known_answers_choose_a_branch() -> None:
    text = """g (float[n] x) => (y) { h = OptionalHasElement(x) y = If (h) <
        then_branch = t () => (float[n] a) { a = Neg(x) },
        else_branch = e () => (float b) { b = Constant<value_float=1.0>() }> }"""
    assert inferred(text, 18) == ["float[n]"]


def test_question_about_nothing_goes_down_as_its_answer() -> None:
    lower = convert_opset(text_model("g () => (h) { h = OptionalHasElement() }", 18), 17)
    (result,) = run_model(lower, {})
    assert result.tolist() is False


def test_questions_about_what_is_no_optional_go_down() -> None:
    text = """g (float[2] x, seq(float[2]) s) => (h, y) {
        h = OptionalHasElement(s) y = OptionalGetElement(x) }"""
    lower = convert_opset(text_model(text, 18), 17)
    has, y = run_model(lower, {"x": X, "s": [X]})
    assert (has.tolist(), y.tolist()) == (True, [1, 2])
    kept = "g (optional(float[2]) o) => (h) { h = OptionalHasElement(o) }"
    assert run_model(convert_opset(text_model(kept, 18), 15), {"o": X})[0].tolist() is True
