"""Nodes that their operator's signature does not allow are refused before anyone works on them."""

from collections.abc import Callable
from typing import Any

import pytest

import sardonyx as sx
from sardonyx.errors import GraphError, SardonyxError
from sardonyx.graph import Attribute, AttributeType, Model
from sardonyx.ops.catalog import standard
from sardonyx.ops.well_formed import require_well_formed
from tests.logged import warnings_of

HEAD = '<ir_version: 10, opset_import: ["": 21, "l": 1]>'


def _model(body: str, functions: str = "") -> Model:
    text = f"{HEAD} g (float[2,3] x, float[2,3] z, bool c) => (float[2,3] y) {{ {body} }}"
    return sx.load_text(text + functions)


def _inside(body: str) -> str:
    """A node inside a branch."""
    branch = f"g () => (float[2,3] y1) {{ {body} }}"
    other = "g () => (float[2,3] y2) { y2 = Neg (x) }"
    return f"y = If <then_branch = {branch}, else_branch = {other}> (c)"


FAULTS = {
    "y = Add (x)": "has 1 inputs, its operator takes at least 2",
    "y = Add (x, z, x)": "has 3 inputs, its operator takes at most 2",
    "y = Add (x, '')": "input 'B' is absent",
    "y = Where (c, '', z)": "input 'X' is absent",
    "y = Concat <axis = 0> (x, '')": "input 'inputs' is absent",
    "y = Sum ()": "has 0 inputs, its operator takes at least 1",
    "y, more = Neg (x)": "has 2 outputs, its operator gives at most 1",
    "y = Concat (x, z)": "lacks the attribute 'axis'",
    "y = Softmax <axis = 1.5> (x)": "attribute 'axis' is no INT",
    "y = Transpose <perm = 1> (x)": "attribute 'perm' is no INTS",
    "y = Neg <size = 3> (x)": "does not know the attribute 'size'",
    "y = Constant <value = 1.0> ()": "attribute 'value' is no TENSOR",
}


def _plain(body: str) -> str:
    return body.replace("''", '""')


@pytest.mark.parametrize(("body", "said"), FAULTS.items())
@pytest.mark.parametrize("nested", [False, True])
def test_a_node_that_does_not_fit_is_named(body: str, said: str, nested: bool) -> None:
    body = _plain(body)
    model = _model(_inside(body.replace("y", "y1", 1)) if nested else body)
    with pytest.raises(GraphError, match=f"malformed: .*{said}"):
        require_well_formed(model, standard())


def test_functions_are_looked_at_too() -> None:
    call = "y = l.F (x)"
    function = ' <opset_import: ["": 21], domain: "l"> F (a) => (b) { b = Add (a) }'
    with pytest.raises(GraphError, match="at least 2"):
        require_well_formed(_model(call, function), standard())


def test_what_a_call_leaves_out_is_missed_inside() -> None:
    """A function's nodes are as its signature says; what it is called with is not."""
    function = ' <opset_import: ["": 21], domain: "l"> F (a, b) => (d) { d = Add (a, b) }'
    model = _model("y = l.F (x)", function)
    require_well_formed(model, standard())
    for work in WORK.values():
        with pytest.raises(SardonyxError, match="input 'B' is absent"):
            work(model)


def test_an_attribute_that_a_call_gives_is_of_the_kind_that_is_used() -> None:
    body = "{ d = Softmax <axis: int = @n> (a) }"
    function = f' <opset_import: ["": 21], domain: "l"> F <n> (a) => (d) {body}'
    model = _model("y = l.F <n = 1.5> (x)", function)
    for work in WORK.values():
        with pytest.raises(SardonyxError, match="attribute 'axis' is no INT"):
            work(model)


def test_outside_of_functions_nothing_is_referred_to() -> None:
    model = _model("y = Softmax (x)")
    assert model.graph is not None
    (node,) = model.graph.nodes
    node.set_attribute("axis", Attribute.refer("axis", AttributeType.INT, "n"))
    for work in WORK.values():
        with pytest.raises(SardonyxError, match="refers to 'n', and it is in no function"):
            work(model)


def test_kinds_without_a_value() -> None:
    model = _model("y = Transpose <perm = [0, 1]> (x)")
    assert model.graph is not None
    (node,) = model.graph.nodes
    node.set_attribute("perm", Attribute("perm", None, AttributeType.TENSOR))
    for work in WORK.values():
        with pytest.raises(SardonyxError, match="attribute 'perm' is no INTS"):
            work(model)


@pytest.mark.parametrize(
    "body",
    [
        'y = Clip (x, "", "")',
        "y = Dropout (x)",
        "y, mask = Dropout (x)",
        "y = LeakyRelu <alpha = 1> (x)",
        "y = l.Unknown <whatever = 1.5> ()",
        "y = Max (x)",
        _inside("y1 = Identity (x)"),
    ],
)
def test_what_is_allowed_passes(body: str) -> None:
    require_well_formed(_model(body), standard())


def test_a_models_own_function_has_its_own_signature() -> None:
    function = ' <opset_import: ["": 21]> Add (a) => (b) { b = Neg (a) }'
    model = _model("y = Add (x)", function.replace(">", ', domain: ""> ', 1))
    assert model.functions
    require_well_formed(model, standard())


def test_an_operator_that_is_not_imported_is_looked_at() -> None:
    model = _model("y = BitwiseOr (x, z, x)")
    del model.opsets[""]
    with pytest.raises(GraphError, match="at most 2"):
        require_well_formed(model, standard())


def _session(provider: str) -> Callable[[Model], Any]:
    def work(model: Model) -> Any:
        options = sx.SessionOptions()
        options.add_session_config_entry("sardonyx.cache", "off")
        return sx.InferenceSession(model, options, [provider])

    return work


WORK: dict[str, Callable[[Model], Any]] = {
    "simplify": sx.simplify,
    "optimize": lambda model: sx.optimize(model, 1),
    "compiled": _session("CPUExecutionProvider"),
    "reference": _session("ReferenceExecutionProvider"),
}


@pytest.mark.parametrize("body", FAULTS)
@pytest.mark.parametrize("name", [*WORK, "convert"])
def test_whoever_works_on_models_refuses_them(name: str, body: str) -> None:
    model = _model(_plain(body))
    work = WORK.get(name, lambda given: sx.convert_opset(given, 13))
    refused = pytest.raises(SardonyxError, match="malformed")
    with warnings_of("sardonyx.passes", "sardonyx.compiler") as told, refused:
        work(model)
    assert not told
