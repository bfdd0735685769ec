"""A part of a model: which nodes, constants, inputs and functions it keeps."""

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.errors import GraphError
from sardonyx.graph import Model
from sardonyx.graph.graph import QuantizationAnnotation
from sardonyx.graph.verify import verify
from sardonyx.passes.extract import extract_model
from tests.passes.cases import model_of, operators

CHAIN = "a = Relu(x) b = Add(a, w) c = Mul(b, v) y = Sub(c, a)"
PAIR = "(float[n] x) => (float[n] y)"
WEIGHTS = ("float w = {1}", "float v = {2}", "float u = {3}")


def chain() -> Model:
    return model_of(PAIR, CHAIN, *WEIGHTS)


def names(values: object) -> list[str]:
    return [value.name for value in values]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("inputs", "outputs", "kept", "constants"),
    [
        (["x"], ["y"], ["Relu", "Add", "Mul", "Sub"], ["w", "v"]),
        (["x"], ["b"], ["Relu", "Add"], ["w"]),
        (["a"], ["b", "c"], ["Add", "Mul"], ["w", "v"]),
        (["b", "a"], ["y"], ["Mul", "Sub"], ["v"]),
        (["a", "w"], ["b"], ["Add"], []),
        (["x", "a"], ["a"], [], []),
        (["x"], ["w"], [], ["w"]),
    ],
)
def test_what_leads_from_inputs_to_outputs(
    inputs: list[str], outputs: list[str], kept: list[str], constants: list[str]
) -> None:
    part = extract_model(chain(), inputs, outputs)
    verify(part)
    assert part.graph is not None
    assert operators(part) == kept
    assert names(part.graph.inputs) == inputs and names(part.graph.outputs) == outputs
    assert names(part.graph.initializers) == constants
    assert all(str(value.type) in ("float[n]", "float[]") for value in part.graph.inputs)


def test_a_part_computes_what_the_whole_does() -> None:
    x = np.array([-1, 0.5], np.float32)
    (whole,) = sx.evaluate(chain(), {"x": x})
    a = np.maximum(x, 0)
    (part,) = sx.evaluate(extract_model(chain(), ["b", "a"], ["y"]), {"b": a + 1, "a": a})
    assert np.array_equal(part, whole)


@pytest.mark.parametrize(
    ("inputs", "outputs", "message"),
    [
        (["x"], [], "needs outputs"),
        (["nowhere"], ["y"], "no value 'nowhere'"),
        (["x"], ["nowhere"], "no value 'nowhere'"),
        (["b"], ["y"], "depend on the input 'x'"),
        ([], ["b"], "depend on the input 'x'"),
    ],
)
def test_parts_that_cannot_be(inputs: list[str], outputs: list[str], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        extract_model(chain(), inputs, outputs)


def test_a_model_without_a_graph() -> None:
    with pytest.raises(GraphError, match="no graph"):
        extract_model(Model(None, sx.Opsets({"": 21}), 10), ["x"], ["y"])


def test_one_of_two_results_as_an_input() -> None:
    model = model_of("(float[4] x) => (float[2] y)", "a, b = Split<num_outputs=2>(x) y = Add(a, b)")
    part = extract_model(model, ["x", "a"], ["y"])
    verify(part)
    assert part.graph is not None and operators(part) == ["Split", "Add"]
    assert names(part.graph.nodes[0].outputs) == ["", "b"]


def test_defaults_of_inputs_stay() -> None:
    """An initializer that is an input too may still be fed, and keeps its number."""
    model = model_of("(float[n] x, float w) => (float[n] y)", CHAIN, *WEIGHTS)
    assert model.graph is not None and "w" in names(model.graph.initializers)
    for inputs in (["x"], ["x", "w"]):
        part = extract_model(model, inputs, ["b"])
        assert part.graph is not None
        assert names(part.graph.inputs) == ["x", "w"]
        assert names(part.graph.initializers) == ["w"]
    rest = extract_model(model, ["b", "a"], ["y"])
    assert rest.graph is not None
    assert names(rest.graph.inputs) == ["b", "a"] and names(rest.graph.initializers) == ["v"]


def test_what_inner_graphs_read_is_kept() -> None:
    body = """a = Relu(x) b = Neg(x) y = If (k) <
        then_branch = t () => (float[n] p) { p = Add(a, w) },
        else_branch = e () => (float[n] q) { q = Mul(a, v) }>"""
    model = model_of("(bool k, float[n] x) => (float[n] y)", body, *WEIGHTS)
    part = extract_model(model, ["k", "a"], ["y"])
    verify(part)
    assert part.graph is not None
    assert operators(part) == ["If", "Add", "Mul"]
    assert names(part.graph.initializers) == ["w", "v"]
    with pytest.raises(GraphError, match="depend on the input 'x'"):
        extract_model(model, ["k"], ["y"])


def test_functions_that_are_still_called_are_kept() -> None:
    head = '<ir_version: 10, opset_import: ["": 21, "local": 1]>'
    function = '<domain: "local", opset_import: ["": 21, "local": 1]>'
    model = sx.load_text(
        f"{head} g (float[n] x) => (float[n] y) {{ a = local.outer(x) y = local.other(a) }}"
        f"{function} inner (p) => (r) {{ r = Neg(p) }}"
        f"{function} outer (p) => (r) {{ r = local.inner(p) }}"
        f"{function} other (p) => (r) {{ r = Abs(p) }}"
    )
    for inputs, outputs, kept in (
        ("x", "y", ["inner", "outer", "other"]), ("x", "a", ["inner", "outer"]),
        ("a", "y", ["other"]), ("a", "a", []),
    ):  # fmt: skip
        part = extract_model(model, [inputs], [outputs])
        assert [function.name for function in part.functions] == kept


def test_declarations_and_quantization_of_what_is_left() -> None:
    model = chain()
    assert model.graph is not None
    for name in "ab":
        value = model.graph.value(name)
        model.graph.quantization.append(
            QuantizationAnnotation(value, {"SCALE_TENSOR": model.graph.value("w")})
        )
        model.graph.declared[value] = None
    for outputs, kept in (("a", ["a"]), ("b", ["a", "b"])):
        part = extract_model(model, ["x"], [outputs])
        assert part.graph is not None
        assert [item.value.name for item in part.graph.quantization] == kept
        assert {value.name for value in part.graph.declared} <= {"x", "y", *kept}
        assert set(part.graph.declared) <= set(part.graph.values())
