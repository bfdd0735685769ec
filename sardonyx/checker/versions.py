"""Rules about versions: the IR version and what it has, and imports of operator sets."""

from collections import Counter

from sardonyx.checker.context import Context, kept_fields
from sardonyx.checker.findings import Place, Report
from sardonyx.dtypes import DataType
from sardonyx.format.fields import IR_VERSION
from sardonyx.format.tags import FUNCTION, MODEL
from sardonyx.format.wire import fields, signed
from sardonyx.graph import (
    Function,
    MapType,
    Model,
    OpaqueType,
    OptionalType,
    SequenceType,
    SparseTensorType,
    TensorType,
    Type,
)
from sardonyx.ops.catalog import NEWEST_OPSETS, canonical_domain

FUNCTIONS, FUNCTION_DEFAULTS, OVERLOADS, METADATA = 8, 9, 10, 10
FREE_INITIALIZERS, QUANTIZATION, SPARSE, TRAINING, DEVICES = 4, 5, 6, 7, 11
IMPORTS = 3
"""The IR versions that brought each of these."""

_LARGEST_VERSION = 2**31 - 1
_TYPES = frozenset(DataType)


def check_ir_version(report: Report, model: Model, place: Place) -> None:
    """Rules about the IR version itself."""
    version = model.ir_version
    if version == 0:
        report.add("ir-version-missing", place, "the model does not say which IR version it is")
    elif version < 0:
        report.add("ir-version-negative", place, f"the IR version is {version}")
    elif version > IR_VERSION:
        what = f"IR version {version} is newer than {IR_VERSION}, the newest that is known"
        report.add("ir-version-too-new", place, what)


def imports_of(owner: Model | Function) -> list[tuple[str, int]]:
    """Everything a model or function imports, also what says a domain again or no version."""
    tags = MODEL if isinstance(owner, Model) else FUNCTION
    number = tags.opset_import >> 3
    kept = [content for kept, content in kept_fields(owner.leftover) if kept == number]
    return [*owner.opsets.items(), *(_import(content or b"") for content in kept)]


def effective_imports(owner: Model | Function) -> dict[str, int]:
    """The versions that count: for each domain the first that is stated."""
    versions: dict[str, int] = {}
    for domain, version in imports_of(owner):
        versions.setdefault(domain, version)
    return versions


def check_imports(report: Report, owner: Model | Function, place: Place) -> None:
    """Rules about the operator sets a model or a function imports."""
    imports = imports_of(owner)
    if isinstance(owner, Model):
        if not imports and owner.ir_version >= IMPORTS:
            report.add("opset-import-missing", place, "the model imports no operator set")
        if imports and owner.ir_version < IMPORTS:
            what = f"IR version {owner.ir_version} has no imports of operator sets"
            report.add("opset-import-forbidden", place, what)
    for domain, count in Counter(domain for domain, _ in imports).items():
        if count > 1:
            what = f"the operator set '{domain or 'ai.onnx'}' is imported more than once"
            report.add("opset-import-duplicate", place, what)
    domains = [domain for domain, _ in imports]
    if "" in domains and "ai.onnx" in domains:
        what = "the default operator set is imported under both its names"
        report.add("opset-import-duplicate", place, what)
    if "ai.onnx" in domains:
        what = "the default operator set is imported as 'ai.onnx'"
        report.add("opset-import-spelling", place, what)
    for domain, version in imports:
        _check_version(report, domain, version, place / f"import of '{domain or 'ai.onnx'}'")


def _check_version(report: Report, domain: str, version: int, place: Place) -> None:
    newest = NEWEST_OPSETS.get(canonical_domain(domain))
    if not -_LARGEST_VERSION - 1 <= version <= _LARGEST_VERSION:
        report.add("opset-version-range", place, f"the version is {version}")
    elif version < 1:
        report.add("opset-version-invalid", place, f"the version is {version}")
    elif newest is not None and version > newest:
        what = f"version {version} is newer than {newest}, the newest that is known"
        report.add("opset-too-new", place, what)


def _import(content: bytes) -> tuple[str, int]:
    domain, version = "", 0
    for tag, a, b, _ in fields(content, 0, len(content)):
        if tag >> 3 == 1:
            domain = str(content[a:b], "utf-8", "replace")
        elif tag >> 3 == 2:
            version = signed(a)
    return domain, version


def require_element(context: Context, element: int | None, place: Place) -> None:
    """Note where the model's IR version does not have an element type yet."""
    if element in _TYPES:
        kind = DataType(element)
        context.require_ir(kind.since_ir, f"{kind.text} elements", place)


def require_type(context: Context, type_: Type | None, place: Place) -> None:
    """Note where the model's IR version does not have a type, or one inside it, yet."""
    while type_ is not None:
        match type_:
            case TensorType():
                if isinstance(type_, SparseTensorType):
                    context.require_ir(8, "sparse tensor types", place)
                require_element(context, type_.element, place)
                return
            case OptionalType():
                context.require_ir(8, "optional types", place)
                type_ = type_.element
            case SequenceType():
                type_ = type_.element
            case MapType():
                type_ = type_.value
            case OpaqueType() | Type():
                return
