"""The signatures of `com.microsoft`, compared with onnxruntime's own."""

import onnx
import pytest
from onnxruntime.capi import onnxruntime_pybind11_state as runtime

from sardonyx.graph import AttributeType
from sardonyx.ops.catalog import standard
from sardonyx.ops.signature import REQUIRED, Arity

SCHEMAS = {
    item.name: item
    for item in runtime.get_all_operator_schema()
    if item.domain == "com.microsoft" or item.name == "SimplifiedLayerNormalization"
}
OPERATORS = {
    operator.name: operator
    for (domain, _), operator in standard().items()
    if domain == "com.microsoft"
}
OPTIONS = {Arity.ONE: "Single", Arity.OPTIONAL: "Optional", Arity.ANY: "Variadic"}
OPTIONS[Arity.SOME] = "Variadic"


def described(formals):
    return [(item.name, item.type, OPTIONS[item.arity]) for item in formals]


def wanted(formals):
    return [(item.name, item.typeStr, str(item.option).rpartition(".")[2]) for item in formals]


@pytest.mark.parametrize("name", sorted(OPERATORS))
def test_signature(name):
    schema, signature = SCHEMAS[name], OPERATORS[name].newest()
    assert signature.since == schema.since_version == 1
    assert described(signature.inputs) == wanted(schema.inputs)
    assert described(signature.outputs) == wanted(schema.outputs)
    assert signature.input_range[0] == schema.min_input
    assert signature.output_range[0] == schema.min_output
    limits = {item.type_param_str: set(item.allowed_type_strs) for item in schema.type_constraints}
    assert {key: set(types) for key, types in signature.constraints.items()} == limits


@pytest.mark.parametrize("name", sorted(OPERATORS))
def test_attributes(name):
    schema, signature = SCHEMAS[name], OPERATORS[name].newest()
    assert set(signature.attributes) == set(schema.attributes)
    for key, formal in signature.attributes.items():
        item = schema.attributes[key]
        assert formal.kind == AttributeType[str(item.type).rpartition(".")[2]]
        assert (formal.default is REQUIRED) == item.required
        default = onnx.AttributeProto.FromString(item._default_value)
        if not item.required and default.type:
            value = onnx.helper.get_attribute_value(default)
            if isinstance(value, float):
                value = pytest.approx(value, rel=1e-6)
            assert formal.default == (value.decode() if isinstance(value, bytes) else value)


@pytest.mark.parametrize("name", sorted(OPERATORS))
def test_hooks_are_there(name):
    operator = OPERATORS[name]
    assert operator.infer is not None
    assert operator.reference is not None
    assert operator.__doc__
