"""What onnx's compiled checker offers: contexts, and checks of messages given as bytes.

Our rules go beyond what onnx enforces; `ENFORCED` names those it raises for.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from google.protobuf.message import DecodeError

from sardonyx.checker.attributes import check_attribute as find_attribute_problems
from sardonyx.checker.context import Context, Scope
from sardonyx.checker.findings import Finding, Place, Report
from sardonyx.checker.functions import check_function as find_function_problems
from sardonyx.checker.graphs import check_graph as find_graph_problems
from sardonyx.checker.operators import check_node as find_node_problems
from sardonyx.checker.sparse import check_sparse_tensor as find_sparse_problems
from sardonyx.checker.structure import find_model_problems
from sardonyx.checker.tensors import check_tensor as find_tensor_problems
from sardonyx.compat.onnx._errors import ValidationError
from sardonyx.compat.onnx._external_location import check_location
from sardonyx.compat.onnx._schema_operators import catalog as registered_catalog
from sardonyx.compat.onnx.defs._registry import registry
from sardonyx.compat.onnx.onnx_ml_pb2 import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    SparseTensorProto,
    TensorProto,
    ValueInfoProto,
)
from sardonyx.errors import FormatError
from sardonyx.format.read import (
    read_function_bytes,
    read_graph_bytes,
    read_model,
    read_tensor_bytes,
)
from sardonyx.format.storage import ExternalData
from sardonyx.graph import Graph, Model, SparseTensor, Tensor
from sardonyx.ops.catalog import OPERATORS, Catalog, LazyCatalog, of_domains

_FUNCTIONS_SINCE = 8
_NOT_IMPORTED = -1
"""The version that onnx takes for no import at all where it compares those of functions."""
_VERSIONS = frozenset({"function-opset-incompatible", "function-import-spelling"})

ENFORCED = frozenset(
    """
    model-graph-missing ir-version-missing ir-version-too-new opset-import-missing
    opset-import-forbidden opset-version-range model-metadata-duplicate graph-name-empty
    nesting-too-deep input-name-empty output-name-empty type-missing type-unset element-missing
    shape-missing container-element-missing opaque-name-missing input-duplicate
    initializer-name-empty initializer-duplicate initializer-not-input undefined-value unsorted
    duplicate-definition shadowing output-undefined output-from-outer
    operator-empty node-empty domain-not-imported domain-spelling operator-unknown operator-not-yet
    operator-deprecated operator-custom-unknown too-few-inputs too-many-inputs too-few-outputs
    too-many-outputs output-count input-required-empty output-required-empty
    function-standard-domain
    attribute-name-empty attribute-duplicate attribute-type-missing attribute-type-unknown
    attribute-type attribute-field-mismatch attribute-several-values attribute-without-value
    attribute-unknown attribute-missing nested-reference-with-value
    tensor-element-undefined tensor-element-unknown tensor-dimension-negative tensor-too-large
    tensor-no-data tensor-several-fields tensor-empty-with-data tensor-data-field tensor-data-short
    tensor-string-raw tensor-float6-bits external-data-fields
    sparse-values-missing sparse-name-empty sparse-values-rank sparse-rank-zero sparse-dimension
    sparse-indices-missing sparse-indices-type sparse-indices-rank sparse-indices-count
    sparse-indices-width sparse-indices-range sparse-indices-order
    too-many-functions function-name-empty function-domain-missing function-duplicate
    function-recursive function-chain-too-long function-input-duplicate function-output-duplicate
    function-attribute-duplicate
    """.split()  # noqa: SIM905 - a list this long reads better without quotes
)
"""The rules whose breach onnx's own checker refuses."""


class CheckerContext:
    """The IR version and the operator sets that a part of a model is checked against.

    >>> context = CheckerContext()
    >>> context.ir_version, context.opset_imports
    (-1, {})
    """

    __slots__ = ("_ir_version", "_opset_imports")

    def __init__(self) -> None:
        self._ir_version = -1
        self._opset_imports: dict[str, int] = {}

    @property
    def ir_version(self) -> int:
        """The IR version."""
        return self._ir_version

    @ir_version.setter
    def ir_version(self, version: int) -> None:
        self._ir_version = _small_integer(version)

    @property
    def opset_imports(self) -> dict[str, int]:
        """A copy of the imports: domain -> version."""
        return dict(self._opset_imports)

    @opset_imports.setter
    def opset_imports(self, imports: Mapping[str, int]) -> None:
        if not isinstance(imports, Mapping) or not all(isinstance(key, str) for key in imports):
            raise TypeError("opset_imports must be a mapping from domains to versions")
        self._opset_imports = {key: _small_integer(value) for key, value in imports.items()}

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("a CheckerContext cannot be pickled")


class LexicalScopeContext:
    """The names around a graph; none can be given from Python."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("a LexicalScopeContext cannot be pickled")


def _small_integer(value: Any) -> int:
    if not isinstance(value, int) or not -(2**31) <= value < 2**31:
        raise TypeError(f"a version must be an integer of 32 bits, not {value!r}")
    return int(value)


@cache
def _standard() -> LazyCatalog:
    """The operators onnx itself defines."""
    return of_domains(*(domain for domain in OPERATORS if domain != "com.microsoft"))


def _catalog(imports: Mapping[str, int]) -> Catalog:
    """The operators onnx defines, and those registered with it."""
    if not registry.custom:
        return _standard()
    known = registered_catalog(imports)
    return _standard() | {key: known[key] for key in registry.custom if key in known}


def _parse(message: Any, content: Any) -> Any:
    if not isinstance(content, bytes):
        raise TypeError(f"a {message.__name__} is given as bytes, not as {type(content).__name__}")
    try:
        return message.FromString(content)
    except DecodeError as error:
        raise ValueError(f"the bytes are not a {message.__name__}: {error}") from None


def _no_data(*_: Any) -> bytes:
    raise FormatError("external data is not read by the checker")


def _raise(findings: list[Finding], enforced: frozenset[str] = ENFORCED) -> None:
    for finding in findings:
        if finding.rule in enforced:
            raise ValidationError(str(finding))
    for finding in findings:
        if finding.rule == "sparse-indices-unreadable":
            from sardonyx.compat.onnx.shape_inference import InferenceError

            raise InferenceError(str(finding))


def _tensors(graph: Graph) -> Iterator[Tensor]:
    for part in graph.walk():
        for value in part.initializers:
            yield from _dense(value.tensor)
        for node in part.nodes:
            for attribute in node.attributes.values():
                for tensor in attribute.tensors:
                    yield from _dense(tensor)


def _dense(tensor: Tensor | SparseTensor | None) -> Iterator[Tensor]:
    parts = (tensor.values, tensor.indices) if isinstance(tensor, SparseTensor) else (tensor,)
    yield from (part for part in parts if part is not None)


def _check_locations(tensors: Iterator[Tensor], folder: str = "") -> None:
    for tensor in tensors:
        if isinstance(tensor.data, ExternalData):
            locations = [value for key, value in tensor.data.entries if key == "location"]
            if not locations:
                raise ValidationError(f"external data of tensor {tensor.name!r} has no location")
            for location in locations:
                check_location(folder, location, tensor.name)


def _context(checker_context: Any) -> Context:
    if not isinstance(checker_context, CheckerContext):
        kind = type(checker_context).__name__
        raise TypeError(f"the context must be a CheckerContext, not {kind}")
    version, imports = checker_context.ir_version, checker_context.opset_imports
    return Context(Report(), _catalog(imports), version, imports)


def _require_scope(lexical_scope_context: Any) -> None:
    if not isinstance(lexical_scope_context, LexicalScopeContext):
        kind = type(lexical_scope_context).__name__
        raise TypeError(f"the scope must be a LexicalScopeContext, not {kind}")


def _read(read: Callable[..., Any], message: Any) -> Any:
    try:
        content = memoryview(message.SerializeToString())
        return read(content, f"the {type(message).__name__}", _no_data)
    except FormatError as error:
        raise ValidationError(str(error)) from error


def _check_in_graph(
    graph_message: Any, context: Context, check: Callable[[Graph, Place], object]
) -> None:
    """Read a part of a model as the only part of a graph, check it, and raise what is enforced."""
    graph = _read(read_graph_bytes, graph_message)
    check(graph, Place("graph"))
    _raise(context.report.findings)
    _check_locations(_tensors(graph))


def _inner_check(context: Context) -> Callable[[Graph, Place], None]:
    def check_inner(graph: Graph, place: Place) -> None:
        deeper = replace(context, depth=context.depth + 1)
        find_graph_problems(deeper, graph, place / f"graph '{graph.name}'", Scope())

    return check_inner


def check_value_info(bytes: bytes, checker_context: CheckerContext) -> None:
    """Raise ValidationError unless a ValueInfoProto is right."""
    message = GraphProto(name="graph", input=[_parse(ValueInfoProto, bytes)])
    context = _context(checker_context)
    _check_in_graph(message, context, lambda graph, at: find_graph_problems(context, graph, at))


def check_tensor(bytes: bytes, checker_context: CheckerContext) -> None:
    """Raise ValidationError unless a TensorProto is right."""
    context = _context(checker_context)
    tensor = _read(read_tensor_bytes, _parse(TensorProto, bytes))
    find_tensor_problems(context, tensor, Place(f"tensor '{tensor.name}'"))
    _raise(context.report.findings)
    _check_locations(iter([tensor]))


def check_sparse_tensor(bytes: bytes, checker_context: CheckerContext) -> None:
    """Raise ValidationError unless a SparseTensorProto is right."""
    message = GraphProto(sparse_initializer=[_parse(SparseTensorProto, bytes)])
    context = _context(checker_context)

    def check(graph: Graph, place: Place) -> None:
        tensor = graph.initializers[0].tensor
        assert isinstance(tensor, SparseTensor)
        find_sparse_problems(context, tensor, place / f"sparse tensor '{tensor.name}'")

    _check_in_graph(message, context, check)


def check_attribute(
    bytes: bytes, checker_context: CheckerContext, lexical_scope_context: LexicalScopeContext
) -> None:
    """Raise ValidationError unless an AttributeProto is right by itself."""
    _require_scope(lexical_scope_context)
    node = NodeProto(attribute=[_parse(AttributeProto, bytes)])
    context = _context(checker_context)

    def check(graph: Graph, place: Place) -> None:
        for name, attribute in graph.nodes[0].attributes.items():
            here = place / f"attribute '{name}'"
            find_attribute_problems(context, attribute, here, _inner_check(context))

    _check_in_graph(GraphProto(node=[node]), context, check)


def check_node(
    bytes: bytes, checker_context: CheckerContext, lexical_scope_context: LexicalScopeContext
) -> None:
    """Raise ValidationError unless a NodeProto is right, wherever its inputs come from."""
    _require_scope(lexical_scope_context)
    message = GraphProto(node=[_parse(NodeProto, bytes)])
    context = _context(checker_context)

    def check(graph: Graph, place: Place) -> None:
        node = graph.nodes[0]
        find_node_problems(context, node, place / node, _inner_check(context))

    _check_in_graph(message, context, check)


def check_graph(
    bytes: bytes, checker_context: CheckerContext, lexical_scope_context: LexicalScopeContext
) -> None:
    """Raise ValidationError unless a GraphProto is right as a main graph."""
    _require_scope(lexical_scope_context)
    context = _context(checker_context)
    message = _parse(GraphProto, bytes)
    _check_in_graph(message, context, lambda graph, at: find_graph_problems(context, graph, at))


def check_function(
    bytes: bytes, checker_context: CheckerContext, lexical_scope_context: LexicalScopeContext
) -> None:
    """Raise ValidationError unless a FunctionProto is right."""
    _require_scope(lexical_scope_context)
    context = _context(checker_context)
    message = _parse(FunctionProto, bytes)
    _normalize_function(message)
    function = _read(read_function_bytes, message)
    place = Place(f"function '{function.name}'")
    find_function_problems(context, function, context.opsets, place)
    _raise(context.report.findings, ENFORCED | _VERSIONS)
    _check_locations(_tensors(function.graph))


def check_model(
    bytes: bytes,
    full_check: bool = False,
    skip_opset_compatibility_check: bool = False,
    check_custom_domain: bool = False,
) -> None:
    """Raise ValidationError unless a ModelProto is right; InferenceError for `full_check`."""
    options = (full_check, skip_opset_compatibility_check, check_custom_domain)
    _require_bools(options)
    _check_model(_parse(ModelProto, bytes), "", *options)


def check_model_path(
    path: str,
    full_check: bool = False,
    skip_opset_compatibility_check: bool = False,
    check_custom_domain: bool = False,
) -> None:
    """As `check_model`, for a file; external data is looked for beside it."""
    options = (full_check, skip_opset_compatibility_check, check_custom_domain)
    _require_bools(options)
    if not isinstance(path, str):
        raise TypeError(f"path must be text, not {type(path).__name__}")
    try:
        with open(path, "rb") as file:
            content = file.read()
    except IsADirectoryError as error:
        raise RuntimeError(f"{path!r} is a folder") from error
    except (OSError, ValueError) as error:
        raise ValidationError(f"the model {path!r} cannot be read: {error}") from error
    try:
        message = ModelProto.FromString(content)
    except DecodeError as error:
        raise ValidationError(f"{path!r} is not a model: {error}") from error
    _check_model(message, os.path.dirname(path), *options)


def _require_bools(options: tuple[Any, ...]) -> None:
    if not all(isinstance(option, bool) for option in options):
        raise TypeError("the options of check_model are True or False")


def _check_model(message: Any, folder: str, full: bool, skip: bool, custom: bool) -> None:
    _normalize_model(message)
    model = _read(read_model, message)
    catalog = _catalog(model.opsets)
    enforced = ENFORCED if skip else ENFORCED | _VERSIONS
    findings = find_model_problems(model, catalog=catalog, custom_domains=not custom)
    _raise(findings, enforced)
    if custom:
        _refuse_calls(model, catalog)
    if model.graph is not None:
        _check_locations(_tensors(model.graph), folder)
    for function in model.functions:
        _check_locations(_tensors(function.graph), folder)
    if full:
        from sardonyx.compat.onnx.shape_inference import infer_shapes

        infer_shapes(message, check_type=True, strict_mode=True)


def _refuse_calls(model: Model, catalog: Catalog) -> None:
    """To onnx, with `check_custom_domain`, calls of a model's functions are unknown operators."""
    keys = {function.key for function in model.functions}
    for graph in model.graphs():
        for node in graph.nodes:
            called = (node.domain, node.op_type, node.overload) in keys
            if called and (node.domain, node.op_type) not in catalog:
                raise ValidationError(f"{node.where()} calls a function, not an operator")


def _normalize_model(message: Any) -> None:
    """Drop what onnx does not look at, and let the last import of a domain count, as it does."""
    del message.training_info[:]
    _keep_last_imports(message)
    if message.ir_version < _FUNCTIONS_SINCE:
        del message.functions[:]
    for function in message.functions:
        _normalize_function(function)


def _normalize_function(message: Any) -> None:
    del message.attribute_proto[:]
    _keep_last_imports(message)
    for item in [item for item in message.opset_import if item.version == _NOT_IMPORTED]:
        message.opset_import.remove(item)


def _keep_last_imports(message: Any) -> None:
    last: dict[str, int] = {}
    for position, item in enumerate(message.opset_import):
        last[item.domain] = position
        if not -(2**31) <= item.version < 2**31:
            raise ValidationError(f"no operator set has the version {item.version}")
    for position in reversed(range(len(message.opset_import))):
        if last[message.opset_import[position].domain] != position:
            del message.opset_import[position]
