"""Operators that are functions: their bodies compute what the operators do."""

from typing import Any

import numpy as np
import onnx
import pytest

from sardonyx.compat.onnx._function_bodies import function_body
from sardonyx.format.read import read_model
from sardonyx.graph import Attribute, Function, Graph, Model, Node, Opsets
from sardonyx.graph.inline import inline_functions
from sardonyx.ops.catalog import standard
from sardonyx.ops.evaluate import Evaluator
from sardonyx.ops.fact import to_type
from sardonyx.ops.functions import definitions, is_function, node_function, schema_function
from sardonyx.ops.infer import infer_facts
from tests.conformance import suite


def test_definitions_are_those_of_onnx() -> None:
    theirs = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.has_function or schema.has_context_dependent_function:
            key = (schema.domain, schema.name, schema.since_version)
            theirs[key] = (
                tuple(schema.all_function_opset_versions),
                schema.has_context_dependent_function,
            )
    ours = {key: (item.opsets, item.per_node) for key, item in definitions().items()}
    assert ours == theirs


NAMES = sorted({(domain, name) for domain, name, _ in definitions()})


@pytest.mark.parametrize(("domain", "name"), NAMES, ids=lambda item: item)
def test_every_function_has_a_hook(domain: str, name: str) -> None:
    assert standard()[domain, name].function is not None


def _expanded(content: bytes) -> tuple[Model, int]:
    """A model with its nodes that are functions replaced by these; and how many there were."""
    model = read_model(memoryview(content), "case", None)
    assert model.graph is not None
    for value, fact in infer_facts(model).items():
        if value.declared is None:
            value.declared = to_type(fact)
    count = 0
    for node in list(model.graph.nodes):
        if is_function(node.domain, node.op_type, model.opsets):
            types = [value and value.type for value in node.inputs]
            function = node_function(node, model.opsets, lambda types=types: types)
            function.name = f"{node.op_type}_{count}"
            function.domain, node.domain, node.op_type = "local", "local", function.name
            node.attributes.clear()
            model.functions.append(function)
            count += 1
    inline_functions(model)
    return model, count


def _cases() -> list[suite.Case]:
    names = {name for _, name in NAMES}
    return [
        case
        for case in suite.cases("node")
        if case.operators & names and case.name not in suite.RANDOM and "expanded" not in case.name
    ]


def test_bodies_compute_what_operators_do() -> None:
    problems, count = [], 0
    for case in _cases():
        try:
            model, replaced = _expanded(case.model.SerializeToString())
            count += replaced
            if replaced:
                _compare(model, case)
        except Exception as error:  # noqa: BLE001 - every failure is one line of the report
            problems.append(
                f"{case.name}: {type(error).__name__}: {' '.join(str(error).split())[:200]}"
            )
    print(f"{count} nodes replaced by functions")
    assert count > 300
    assert not problems, f"{len(problems)} of {count}:\n" + "\n".join(problems)


def _compare(model: Any, case: suite.Case) -> None:
    constants = set(model.graph.initializers)
    formals = [value for value in model.graph.inputs if value not in constants]
    for inputs, expected in case.data_sets:
        feeds = {value.name: item for value, item in zip(formals, inputs, strict=False)}
        for left, right in zip(Evaluator(model).run(None, feeds), expected, strict=True):
            half = getattr(right, "dtype", None) in ("float16", "bfloat16")
            suite.compare(left, right, 2**-6 if half else case.rtol, max(case.atol, 1e-6))


ATTRIBUTES: dict[str, dict[str, Any]] = {
    "Celu": {"alpha": 0.5},
    "Elu": {"alpha": 0.5},
    "HardSigmoid": {"alpha": 0.3, "beta": 0.4},
    "LeakyRelu": {"alpha": 0.25},
    "MeanVarianceNormalization": {"axes": [1]},
    "ReduceLogSumExp": {"keepdims": 0},
    "ReduceL1": {"keepdims": 0, "noop_with_empty_axes": 1},
    "Selu": {"alpha": 0.5, "gamma": 2.0},
    "Shrink": {"bias": 0.25, "lambd": 0.75},
    "Swish": {"alpha": 2.0},
    "ThresholdedRelu": {"alpha": 0.5},
    "Relu": {},
    "Softsign": {},
}


@pytest.mark.parametrize("name", ATTRIBUTES)
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_general_bodies_take_attributes_from_the_call(name: str, dtype: Any) -> None:
    operator = standard()["", name]
    keys = [
        key for key in definitions() if key[:2] == ("", name) and not definitions()[key].per_node
    ]
    version = operator.at(max(key[2] for key in keys))
    assert version is not None
    opset = max(*definitions()["", name, version.since].opsets, version.since)
    function = schema_function(operator, version, opset)
    function.domain = "local"
    x = np.linspace(-2, 2, 12).reshape(3, 4).astype(dtype)
    results = [
        Evaluator(_call(domain, name, opset, function)).run(None, {"x": x})[0]
        for domain in ("", "local")
    ]
    tolerance = 4e-3 if dtype == np.float16 else 1e-6
    np.testing.assert_allclose(results[1], results[0], rtol=tolerance, atol=tolerance)


def _call(domain: str, name: str, opset: int, function: Function) -> Model:
    graph = Graph("g")
    x = graph.add_input("x")
    attributes = {key: Attribute(key, value) for key, value in ATTRIBUTES[name].items()}
    node = graph.nodes.append(Node(name, [x], ["y"], dict(attributes), domain=domain))
    graph.outputs.append(node.output)
    model = Model(graph, Opsets({"": opset, "local": 1}), 10)
    model.functions.append(function)
    return model


def _body(op_type: str, opset: int, types: Any = list, **attributes: Any) -> Any:
    inputs = ["a", "b"][: standard()["", op_type].newest().input_range[0]]
    node = onnx.helper.make_node(op_type, inputs, ["y"], **attributes).SerializeToString()
    return function_body("", op_type, node, {"": opset}, input_types=types)


def test_types_are_asked_for_only_where_they_matter() -> None:
    def refuse() -> list[bytes]:
        raise AssertionError("the types were asked for")

    assert _body("GreaterOrEqual", 16, refuse)
    with pytest.raises(AssertionError, match="asked for"):
        _body("CastLike", 19, refuse)


def test_no_body() -> None:
    assert _body("Add", 14) is None
    assert _body("Softplus", 17) is None, "it is a function only from opset 18 on"
    assert function_body("", "NoSuch", b"", {"": 20}, input_types=list) is None
    assert function_body("local", "Relu", b"", {"": 20}, input_types=list) is None


def test_a_type_that_must_be_known() -> None:
    with pytest.raises(RuntimeError, match="CastLike cannot be replaced"):
        _body("CastLike", 19)
    to = onnx.helper.make_tensor_type_proto(onnx.TensorProto.INT32, [2]).SerializeToString()
    body = onnx.FunctionProto.FromString(_body("CastLike", 19, lambda: [to, to]))
    assert [node.op_type for node in body.node] == ["Cast"]
    assert body.node[0].attribute[0].i == onnx.TensorProto.INT32
