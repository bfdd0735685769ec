"""Schemas, where packages look for them in onnx's native module."""

from sardonyx.compat.onnx.defs import (
    OpSchema,
    SchemaError,
    get_all_schemas,
    get_all_schemas_with_history,
    get_schema,
    has,
)
from sardonyx.ops.catalog import NEWEST_OPSETS

has_schema = has


def schema_version_map() -> dict[str, tuple[int, int]]:
    """The first and the newest version of each domain of the standard.

    >>> schema_version_map()["ai.onnx.ml"]
    (1, 5)
    """
    return {
        domain: (1, newest)
        for domain, newest in NEWEST_OPSETS.items()
        if domain == "" or domain.startswith("ai.onnx")
    }


__all__ = [
    "OpSchema",
    "SchemaError",
    "get_all_schemas",
    "get_all_schemas_with_history",
    "get_schema",
    "has_schema",
    "schema_version_map",
]
