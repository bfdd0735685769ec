"""The definitions of operators.

>>> from sardonyx.compat.onnx import defs
>>> schema = defs.get_schema("Gemm")
>>> [parameter.name for parameter in schema.inputs], schema.attributes["alpha"].default_value.f
(['A', 'B', 'C'], 1.0)
"""

from sardonyx.compat.onnx.defs import _registry as C  # noqa: N812 - onnx's name for it
from sardonyx.compat.onnx.defs._registry import (
    deregister_schema,
    get_all_schemas,
    get_all_schemas_with_history,
    get_schema,
)
from sardonyx.compat.onnx.defs._registry import has_schema as has
from sardonyx.compat.onnx.defs._schema import OpSchema, SchemaError

__all__ = [
    "AI_ONNX_PREVIEW_DOMAIN",
    "AI_ONNX_PREVIEW_TRAINING_DOMAIN",
    "ONNX_DOMAIN",
    "ONNX_ML_DOMAIN",
    "C",
    "OpSchema",
    "SchemaError",
    "deregister_schema",
    "get_all_schemas",
    "get_all_schemas_with_history",
    "get_function_ops",
    "get_schema",
    "has",
    "onnx_opset_version",
    "register_schema",
]

ONNX_DOMAIN = ""
ONNX_ML_DOMAIN = "ai.onnx.ml"
AI_ONNX_PREVIEW_DOMAIN = "ai.onnx.preview"
AI_ONNX_PREVIEW_TRAINING_DOMAIN = "ai.onnx.preview.training"


def onnx_opset_version() -> int:
    """The newest version of the default operator set.

    >>> onnx_opset_version()
    28
    """
    return C.schema_version_map()[ONNX_DOMAIN][1]


def onnx_ml_opset_version() -> int:
    """The newest version of the operator set `ai.onnx.ml`.

    >>> onnx_ml_opset_version()
    5
    """
    return C.schema_version_map()[ONNX_ML_DOMAIN][1]


def get_function_ops() -> list[OpSchema]:
    """The operators that stand for functions.

    >>> "Relu" in [schema.name for schema in get_function_ops()]
    True
    """
    return [
        schema
        for schema in get_all_schemas()
        if schema.has_function or schema.has_context_dependent_function
    ]


def register_schema(schema: OpSchema) -> None:
    """Add a schema; its domain is made, or gets the schema's version, where that is needed.

    >>> register_schema(OpSchema("Twice", "local.example", 3))
    >>> has("Twice", 2, "local.example"), has("Twice", 3, "local.example")
    (False, True)
    >>> deregister_schema("Twice", 3, "local.example")
    """
    version = schema.since_version
    first, newest = C.schema_version_map().get(schema.domain, (version, version))
    C.set_domain_to_version(schema.domain, min(first, version), max(newest, version))
    C.register_schema(schema)
