"""Definitions of operators: every fact of every version as onnx states it."""

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx as real
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
    missing = sorted(f"{domain}.{name}-{since}" for domain, name, since in THEIRS.keys() - OURS.keys())
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


def facts(schema: Any) -> dict[str, Any]:
    """What is compared: all but texts, places in source files, and bodies of functions."""
    plain = (
        "name domain since_version deprecated min_input max_input min_output max_output"
        " has_function has_context_dependent_function function_opset_versions"
        " context_dependent_function_opset_versions all_function_opset_versions non_deterministic"
        " has_type_and_shape_inference_function has_data_propagation_function"
    ).split()
    return {name: getattr(schema, name) for name in plain} | {
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
