"""All schemas: those of the operator catalog, and those that users register."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from sardonyx.compat.onnx._function_bodies import function_body, function_bytes
from sardonyx.compat.onnx.defs import _facts
from sardonyx.compat.onnx.defs._schema import (
    Attribute,
    AttrType,
    Bodies,
    FormalParameter,
    FormalParameterOption,
    NodeDeterminism,
    OpSchema,
    SchemaError,
    SupportType,
)
from sardonyx.compat.onnx.onnx_ml_pb2 import AttributeProto
from sardonyx.format.write import write_attribute
from sardonyx.graph import Attribute as GraphAttribute
from sardonyx.ops import functions
from sardonyx.ops.catalog import NEWEST_OPSETS, standard
from sardonyx.ops.operator import Operator
from sardonyx.ops.signature import Arity, AttributeFormal, Formal, Signature

__all__ = [
    "OpSchema",
    "SchemaError",
    "deregister_schema",
    "get_all_schemas",
    "get_all_schemas_with_history",
    "get_schema",
    "has_schema",
    "register_schema",
    "schema_version_map",
    "set_domain_to_version",
]

_OWN_DOMAINS = frozenset({"com.microsoft"})
"""Domains of the catalog that onnx itself does not define."""
_FOREIGN = frozenset({("", "SimplifiedLayerNormalization")})
"""Operators that others have put into a domain of onnx."""
Key = tuple[str, str]
"""A domain and an operator's name."""


class Registry:
    """Schemas by domain, name and version; the only state of this module, as onnx has it."""

    def __init__(self) -> None:
        self.custom: dict[Key, dict[int, OpSchema]] = {}
        self.removed: set[tuple[str, str, int]] = set()
        self.domains: dict[str, tuple[int, int]] = {
            domain: (1, newest)
            for domain, newest in NEWEST_OPSETS.items()
            if domain not in _OWN_DOMAINS
        }
        self.domains["ai.onnx.training"] = (1, 1)

    def versions(self, key: Key) -> dict[int, OpSchema]:
        """All versions of one operator."""
        found = {
            since: schema
            for since, schema in _catalog_schemas(key).items()
            if (*key, since) not in self.removed
        }
        return found | self.custom.get(key, {})

    def operators(self) -> Iterator[Key]:
        """Every operator."""
        known = [key for key in standard() if _catalog_schemas(key)]
        yield from dict.fromkeys([*known, *self.custom])


registry = Registry()


@cache
def _catalog_schemas(key: Key) -> Mapping[int, OpSchema]:
    operator = standard().get(key)
    if operator is None or key[0] in _OWN_DOMAINS or key in _FOREIGN:
        return {}
    return {version.since: _schema(operator, version) for version in operator.versions()}


def _schema(operator: type[Operator], version: Signature) -> OpSchema:
    place = (operator.domain, operator.name, version.since)
    schema = OpSchema(
        operator.name,
        operator.domain,
        version.since,
        " ".join((operator.__doc__ or "").split()),
        inputs=[_formal(item) for item in version.inputs],
        outputs=[_formal(item) for item in version.outputs],
        type_constraints=[(name, types, "") for name, types in version.constraints.items()],
        attributes=[_attribute(item) for item in version.attributes.values()],
    )
    if operator.name in _facts.NONDETERMINISTIC:
        schema.node_determinism = NodeDeterminism.NonDeterministic
    elif place in _facts.UNDECIDED:
        schema.node_determinism = NodeDeterminism.Unknown
    if place in _facts.EXPERIMENTAL:
        schema.support_level = SupportType.EXPERIMENTAL
    schema.deprecated = version.deprecated
    schema.has_type_and_shape_inference_function = place[1:] not in _facts.WITHOUT_INFERENCE
    schema.has_data_propagation_function = place[1:] in _facts.WITH_PROPAGATION
    schema._bodies = _bodies(operator, version)
    return schema


def _formal(formal: Formal) -> FormalParameter:
    option = FormalParameterOption.Single
    if formal.arity is Arity.OPTIONAL:
        option = FormalParameterOption.Optional
    elif formal.arity.variadic:
        option = FormalParameterOption.Variadic
    return FormalParameter(
        formal.name,
        formal.type,
        param_option=option,
        is_homogeneous=not formal.each,
        min_arity=0 if formal.arity is Arity.ANY else 1,
    )


def _attribute(formal: AttributeFormal) -> Attribute:
    if formal.required or formal.default is None:
        return Attribute(formal.name, AttrType(formal.kind), required=formal.required)
    content = write_attribute(GraphAttribute(formal.name, formal.default, formal.kind)).joined()
    return Attribute(formal.name, AttributeProto.FromString(content))


def _bodies(operator: type[Operator], version: Signature) -> Bodies:
    place = (operator.domain, operator.name, version.since)
    definition = functions.definitions().get(place)
    if definition is None or operator.function is None:
        return Bodies()

    def general(opset: int) -> bytes:
        return function_bytes(functions.schema_function(operator, version, opset))

    def specific(opset: int, node: bytes, types: Sequence[bytes]) -> bytes:
        imports = {operator.domain: version.since, "": opset} | (
            {} if operator.domain else {"": max(opset, version.since)}
        )
        body = function_body(
            operator.domain, operator.name, node, imports, input_types=lambda: list(types)
        )
        return body or b""

    return Bodies(definition.opsets, definition.per_node, general, specific)


def _lookup(op_type: str, domain: str, version: int | None) -> OpSchema | None:
    found = registry.versions((domain, op_type))
    fitting = [since for since in found if version is None or since <= version]
    return found[max(fitting)] if fitting else None


def _arguments(name: str, max_inclusive_version: Any, domain: Any) -> tuple[int | None, str]:
    """Sort out the two ways of calling: with a version and a domain, or with a domain alone."""
    version = max_inclusive_version
    if isinstance(version, str) and domain is None:
        version, domain = None, version
    domain = "" if domain is None else domain
    if not isinstance(domain, str) or not isinstance(version, int | None):
        raise TypeError(f"{name} takes an operator's name, a version and a domain")
    return version, domain


def get_schema(
    op_type: str, max_inclusive_version: int | str | None = None, domain: str | None = None
) -> OpSchema:
    """The schema of an operator, the newest or the one in force at a version of its domain.

    >>> get_schema("Relu", 13).since_version, get_schema("ZipMap", "ai.onnx.ml").since_version
    (13, 1)
    """
    version, place = _arguments("get_schema", max_inclusive_version, domain)
    if not isinstance(op_type, str):
        raise TypeError("get_schema takes an operator's name")
    found = _lookup(op_type, place, version)
    if found is None:
        limit = "" if version is None else f" at or below version {version}"
        raise SchemaError(f"domain '{place}' has no operator '{op_type}'{limit}")
    return found


def has_schema(
    op_type: str, max_inclusive_version: int | str | None = None, domain: str | None = None
) -> bool:
    """True where an operator is defined, at a version of its domain where one is given.

    >>> has_schema("Gelu"), has_schema("Gelu", 13)
    (True, False)
    """
    version, place = _arguments("has", max_inclusive_version, domain)
    return _lookup(op_type, place, version) is not None


def get_all_schemas() -> list[OpSchema]:
    """The newest schema of every operator.

    >>> len(get_all_schemas()) <= len(get_all_schemas_with_history())
    True
    """
    newest = (registry.versions(key) for key in registry.operators())
    return [versions[max(versions)] for versions in newest if versions]


def get_all_schemas_with_history() -> list[OpSchema]:
    """Every version of every operator's schema.

    >>> sorted(item.since_version for item in get_all_schemas_with_history() if item.name == "Relu")
    [1, 6, 13, 14]
    """
    return [schema for key in registry.operators() for schema in registry.versions(key).values()]


def schema_version_map() -> dict[str, tuple[int, int]]:
    """The first and the newest version of every domain.

    >>> schema_version_map()["ai.onnx.ml"]
    (1, 5)
    """
    return dict(registry.domains)


def set_domain_to_version(
    domain: str, min_version: int, max_version: int, last_release_version: int = -1
) -> None:
    """Say which versions a domain has."""
    registry.domains[domain] = (min_version, max_version)


def register_schema(schema: OpSchema) -> None:
    """Add a schema to a domain and version that exist; see `onnx.defs.register_schema`."""
    if not isinstance(schema, OpSchema):
        raise TypeError(f"an OpSchema is needed, not {type(schema).__name__}")
    key = (schema.domain, schema.name)
    first, newest = registry.domains.get(schema.domain, (0, -1))
    if not first <= schema.since_version <= newest:
        raise SchemaError(
            f"domain '{schema.domain}' has no version {schema.since_version} for '{schema.name}'"
        )
    if schema.since_version in registry.versions(key):
        raise SchemaError(
            f"'{schema.name}' is already defined in version {schema.since_version} of domain "
            f"'{schema.domain}'"
        )
    registry.custom.setdefault(key, {})[schema.since_version] = schema


def deregister_schema(op_type: str, version: int, domain: str) -> None:
    """Remove a schema."""
    key = (domain, op_type)
    if version not in registry.versions(key):
        raise SchemaError(f"'{op_type}' is not defined in version {version} of domain '{domain}'")
    if registry.custom.get(key, {}).pop(version, None) is None:
        registry.removed.add((*key, version))
