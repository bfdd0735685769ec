"""Definitions of operators: every fact of every version as onnx states it."""

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx as real
import onnx.reference
import pytest

from sardonyx.compat import onnx as ours
from tests.compat.differential import assert_same

Key = tuple[str, str, int]


def _by_key(module: Any) -> dict[Key, Any]:
    schemas = module.defs.get_all_schemas_with_history()
    return {(schema.domain, schema.name, schema.since_version): schema for schema in schemas}


THEIRS = _by_key(real)
OURS = _by_key(ours)


def test_every_version_of_every_operator_is_there() -> None:
    missing = sorted(
        f"{domain}.{name}-{since}" for domain, name, since in THEIRS.keys() - OURS.keys()
    )
    assert not missing, f"{len(missing)} of {len(THEIRS)} are missing: {' '.join(missing)}"
    assert not OURS.keys() - THEIRS.keys()
    assert len(ours.defs.get_all_schemas()) == 227


def _formal(parameter: Any) -> Any:
    return (
        parameter.name, parameter.type_str, parameter.types, parameter.option.name,
        parameter.is_homogeneous, parameter.min_arity,
    )  # fmt: skip


def _attribute(attribute: Any) -> Any:
    return (
        attribute.name, attribute.type.name, attribute.required,
        attribute.default_value.SerializeToString(deterministic=True),
    )  # fmt: skip


_PLAIN = (
    "name",
    "domain",
    "since_version",
    "deprecated",
    "min_input",
    "max_input",
    "min_output",
    "max_output",
    "has_function",
    "has_context_dependent_function",
    "function_opset_versions",
    "context_dependent_function_opset_versions",
    "all_function_opset_versions",
    "non_deterministic",
    "has_type_and_shape_inference_function",
    "has_data_propagation_function",
)


def facts(schema: Any) -> dict[str, Any]:
    """What is compared: all but texts, places in source files, and bodies of functions."""
    return {name: getattr(schema, name) for name in _PLAIN} | {
        "support_level": schema.support_level.name,
        "node_determinism": schema.node_determinism.name,
        "inputs": [_formal(item) for item in schema.inputs],
        "outputs": [_formal(item) for item in schema.outputs],
        "attributes": {name: _attribute(item) for name, item in schema.attributes.items()},
        "type_constraints": {
            item.type_param_str: sorted(item.allowed_type_strs) for item in schema.type_constraints
        },
        "body": bool(schema._function_body),
    }


@pytest.mark.parametrize("key", sorted(THEIRS.keys() & OURS.keys()), ids=str)
def test_facts_are_the_same(key: Key) -> None:
    assert facts(OURS[key]) == facts(THEIRS[key])
    assert OURS[key].doc


CALLS: dict[str, Any] = {
    "newest": lambda o: o.defs.get_schema("Relu").since_version,
    "at_a_version": lambda o: o.defs.get_schema("Relu", 6).since_version,
    "between_versions": lambda o: o.defs.get_schema("Relu", 12).since_version,
    "beyond_all_versions": lambda o: o.defs.get_schema("Relu", 100).since_version,
    "at_a_version_of_a_domain": lambda o: o.defs.get_schema("Scaler", 5, "ai.onnx.ml").name,
    "in_a_domain": lambda o: o.defs.get_schema("Scaler", "ai.onnx.ml").name,
    "domain_by_keyword": lambda o: o.defs.get_schema("Scaler", domain="ai.onnx.ml").name,
    "version_by_keyword": lambda o: o.defs.get_schema("Relu", max_inclusive_version=6).name,
    "unknown": lambda o: o.defs.get_schema("Reluu"),
    "before_the_first_version": lambda o: o.defs.get_schema("Gelu", 13),
    "other_domain": lambda o: o.defs.get_schema("Relu", 14, "ai.onnx.ml"),
    "long_name_of_the_default_domain": lambda o: o.defs.get_schema("Relu", "ai.onnx"),
    "deprecated": lambda o: o.defs.get_schema("Upsample").deprecated,
    "wrong_types": lambda o: o.defs.get_schema("Relu", 1.5),
    "has": lambda o: o.defs.has("Relu"),
    "has_version": lambda o: o.defs.has("Gelu", 13),
    "has_domain": lambda o: o.defs.has("Scaler", "ai.onnx.ml"),
    "has_not": lambda o: o.defs.has("Scaler"),
    "has_wrong_types": lambda o: o.defs.has("Relu", 1.5),
    "opset_version": lambda o: o.defs.onnx_opset_version(),
    "ml_opset_version": lambda o: o.defs.onnx_ml_opset_version(),
    "domains": lambda o: o.defs.C.schema_version_map(),
    "constants": lambda o: [
        o.defs.ONNX_DOMAIN, o.defs.ONNX_ML_DOMAIN, o.defs.AI_ONNX_PREVIEW_DOMAIN,
        o.defs.AI_ONNX_PREVIEW_TRAINING_DOMAIN,
    ],
    "functions": lambda o: {(item.domain, item.name) for item in o.defs.get_function_ops()},
    "is_infinite": lambda o: o.defs.OpSchema.is_infinite(o.defs.get_schema("Sum").max_input),
    "attribute_types": lambda o: [(item.name, item.value) for item in o.defs.OpSchema.AttrType],
    "options": lambda o: list(map(str, o.defs.OpSchema.FormalParameterOption)),
    "support": lambda o: [(repr(item), item.value) for item in o.defs.OpSchema.SupportType],
    "determinism": lambda o: [
        (repr(item), item.value) for item in o.defs.OpSchema.NodeDeterminism
    ],
    "categories": lambda o: [
        (repr(item), item.value) for item in o.defs.OpSchema.DifferentiationCategory
    ],
    "schema_error": lambda o: [kind.__name__ for kind in o.defs.SchemaError.__mro__],
    "all_names": lambda o: sorted(o.defs.__all__),
    "C_names": lambda o: sorted(name for name in dir(o.defs.C) if name in real.defs.C.__dict__),
}  # fmt: skip


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_calls(call: Any, tmp_path: Any) -> None:
    assert_same(lambda o, _: call(o), tmp_path)


def _formals(o: Any) -> Any:
    make, options = o.defs.OpSchema.FormalParameter, o.defs.OpSchema.FormalParameterOption
    return [
        make("x", "T", "the input"),
        make("y", "tensor(int64)", param_option=options.Optional),
        make("z", "T", param_option=options.Variadic, is_homogeneous=False, min_arity=2),
    ]


def _custom(o: Any, **changes: Any) -> Any:
    kinds = o.defs.OpSchema.AttrType
    default = o.helper.make_attribute("beta", [1, 2])
    given = {
        "doc": "a doc",
        "inputs": _formals(o),
        "outputs": _formals(o)[:1],
        "type_constraints": [("T", ["tensor(float)", "seq(tensor(int8))"], "some")],
        "attributes": [
            o.defs.OpSchema.Attribute("alpha", kinds.FLOAT, "an attribute"),
            o.defs.OpSchema.Attribute("gamma", kinds.INTS, required=False),
            o.defs.OpSchema.Attribute("beta", default, "with a default"),
        ],
    } | changes
    return o.defs.OpSchema("Custom", "test.domain", 3, **given)


CUSTOM: dict[str, Any] = {
    "facts": lambda o: facts(_custom(o)),
    "texts": lambda o: [_custom(o).doc, _custom(o).file, _custom(o).line],
    "printed": lambda o: str(_custom(o, attributes=[])),
    "bare": lambda o: str(o.defs.OpSchema("A", "b", 1)),
    "unknown_type": lambda o: _custom(o, type_constraints=[("T", ["tensor(nonsense)"], "")]),
    "free_type_name": lambda o: _custom(o, type_constraints=[]),
    "name_is_no_text": lambda o: o.defs.OpSchema(1, "b", 1),
    "no_domain": lambda o: o.defs.OpSchema("a", since_version=1),
    "wrong_formal": lambda o: _custom(o, inputs=[("x", "T")]),
    "attribute_without_type": lambda o: o.defs.OpSchema.Attribute("a"),
    "attribute_of_a_number": lambda o: o.defs.OpSchema.Attribute("a", 3),
    "formal_printed": lambda o: repr(_formals(o)[2]),
    "constraint_printed": lambda o: repr(
        o.defs.OpSchema.TypeConstraintParam("T", ("tensor(float)",), "some")
    ),
    "determinism": lambda o: (
        _custom(
            o, node_determinism=o.defs.OpSchema.NodeDeterminism.NonDeterministic
        ).non_deterministic
    ),
}


@pytest.mark.parametrize("call", CUSTOM.values(), ids=CUSTOM)
def test_custom_schemas(call: Any, tmp_path: Any) -> None:
    assert_same(lambda o, _: call(o), tmp_path)


def _registered(o: Any, *, twice: bool = False) -> Iterator[Any]:
    """What is found while schemas are registered, and after."""
    for version in (3, 5):
        o.defs.register_schema(o.defs.OpSchema("Registered", "test.registry", version))
    try:
        if twice:
            o.defs.register_schema(o.defs.OpSchema("Registered", "test.registry", 5))
        yield o.defs.C.schema_version_map()["test.registry"]
        for version in (2, 3, 4, 5, 9):
            found = o.defs.has("Registered", version, "test.registry")
            yield found and o.defs.get_schema("Registered", version, "test.registry").since_version
        yield len([s for s in o.defs.get_all_schemas() if s.name == "Registered"])
        yield len([s for s in o.defs.get_all_schemas_with_history() if s.name == "Registered"])
        o.defs.deregister_schema("Registered", 5, "test.registry")
        yield o.defs.get_schema("Registered", "test.registry").since_version
    finally:
        for version in (3, 5):
            if o.defs.has("Registered", version, "test.registry"):
                found = o.defs.get_schema("Registered", version, "test.registry").since_version
                o.defs.deregister_schema("Registered", found, "test.registry")
    yield o.defs.has("Registered", "test.registry")


def test_registering(tmp_path: Any) -> None:
    assert_same(lambda o, _: list(_registered(o)), tmp_path)


def test_registering_twice(tmp_path: Any) -> None:
    assert_same(lambda o, _: list(_registered(o, twice=True)), tmp_path)


def _accepted(o: Any, option: str, least: int) -> list[bool]:
    """Whether nodes of 0, 1, 2 inputs pass where a schema has one formal input."""
    options = o.defs.OpSchema.FormalParameterOption
    make = o.defs.OpSchema.FormalParameter
    taken = make("x", "tensor(float)", param_option=getattr(options, option), min_arity=least)
    schema = o.defs.OpSchema(
        "Taking", "test.taking", 1, inputs=[taken], outputs=[make("y", "tensor(float)")]
    )
    o.defs.register_schema(schema)
    opsets = [o.helper.make_opsetid("", 21), o.helper.make_opsetid("test.taking", 1)]
    accepted = []
    try:
        for names in ([], ["a"], ["a", "b"]):
            values = [o.helper.make_tensor_value_info(name, 1, [1]) for name in (*names, "y")]
            node = o.helper.make_node("Taking", names, ["y"], domain="test.taking")
            graph = o.helper.make_graph([node], "g", values[:-1], values[-1:])
            model = o.helper.make_model(graph, opset_imports=opsets, ir_version=10)
            try:
                o.checker.check_model(model)
                accepted.append(True)
            except o.checker.ValidationError:
                accepted.append(False)
    finally:
        o.defs.deregister_schema("Taking", 1, "test.taking")
    return accepted


@pytest.mark.parametrize("option", ["Single", "Optional", "Variadic"])
@pytest.mark.parametrize("least", [0, 1])
def test_how_many_inputs_a_schema_takes(option: str, least: int, tmp_path: Any) -> None:
    assert_same(lambda o, _: _accepted(o, option, least), tmp_path)


def test_removing_what_is_not_there(tmp_path: Any) -> None:
    assert_same(lambda o, _: o.defs.deregister_schema("Relu", 2, ""), tmp_path)


def test_registering_a_version_that_a_standard_domain_has_not(tmp_path: Any) -> None:
    assert_same(
        lambda o, _: o.defs.C.register_schema(o.defs.OpSchema("Registered", "", 99)), tmp_path
    )


def test_signatures() -> None:
    for name in ("onnx_opset_version", "onnx_ml_opset_version", "get_function_ops"):
        mine = inspect.signature(getattr(ours.defs, name))
        theirs = inspect.signature(getattr(real.defs, name))
        assert list(mine.parameters) == list(theirs.parameters)
    mine = inspect.signature(ours.defs.register_schema)
    assert list(mine.parameters) == list(inspect.signature(real.defs.register_schema).parameters)


GENERAL = [key for key, schema in sorted(OURS.items()) if schema.has_function]


@pytest.mark.parametrize("key", GENERAL, ids=str)
def test_functions_are_valid(key: Key) -> None:
    """The body of an operator that is a function is one that onnx accepts, with the same face."""
    for opset in OURS[key].function_opset_versions:
        content = OURS[key].get_function_with_opset_version(opset)
        body = real.FunctionProto.FromString(content)
        theirs = real.FunctionProto.FromString(THEIRS[key].get_function_with_opset_version(opset))
        assert (list(body.input), list(body.output)) == (list(theirs.input), list(theirs.output))
        names = [*body.attribute, *(item.name for item in body.attribute_proto)]
        assert sorted(names) == sorted(THEIRS[key].attributes)
        context = real.checker.C.CheckerContext()
        context.ir_version = 10
        context.opset_imports = {"": opset}
        real.checker.check_function(body, context, real.checker.LEXICAL_SCOPE_CONTEXT)


def test_a_function_takes_its_attributes_from_the_call() -> None:
    body = ours.defs.get_schema("LeakyRelu").function_body
    evaluator = real.reference.ReferenceEvaluator(
        real.FunctionProto.FromString(body.SerializeToString())
    )
    x = np.array([-2, 3], np.float32)
    assert evaluator.run(None, {"X": x}, attributes={"alpha": 0.5})[0].tolist() == [-1, 3]
