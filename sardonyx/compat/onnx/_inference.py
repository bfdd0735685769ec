"""Inference over messages: types are added to a model where onnx adds them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sardonyx.compat.onnx._facts import type_proto
from sardonyx.compat.onnx._function_calls import check_function_calls, normal_domain
from sardonyx.compat.onnx._schema_operators import catalog
from sardonyx.compat.onnx.defs._schema import normal_type
from sardonyx.errors import InferenceError, SardonyxError
from sardonyx.format.files import DataFolder
from sardonyx.format.read import read_model
from sardonyx.graph import Dimension, Graph, Model, Node, Value
from sardonyx.ops.catalog import Catalog, canonical_domain
from sardonyx.ops.fact import Fact, from_type, merge
from sardonyx.ops.infer import infer_all, type_string
from sardonyx.ops.signature import Formal, Signature

UNKNOWN = "unk__"
"""What the names of sizes begin with that are only known when a model runs."""

Facts = Mapping[Value, Fact]


def infer_model(proto: Any, folder: DataFolder, *, check_type: bool, strict: bool) -> None:
    """Add types to a ModelProto, in place; InferenceError where it contradicts itself.

    Without `strict` only what makes inference meaningless raises: domains that are not imported,
    constants that differ from the inputs they stand for, and with `check_type` wrong types.
    """
    check_function_calls(proto)
    model = read_model(memoryview(proto.SerializeToString()), "the model", folder.open)
    _require_domains(proto.graph, {normal_domain(item.domain) for item in proto.opset_import})
    _check_constants(model)
    _fix_constants(model)
    facts = infer_checked(model, check_type=check_type, strict=strict)
    if model.graph is not None:
        Annotator(facts, _symbols(proto.graph)).graph(proto.graph, model.graph)


def infer_checked(model: Model, *, check_type: bool, strict: bool) -> Facts:
    """What is known of a model's values; InferenceError for what was asked to be checked."""
    imports = {canonical_domain(domain): version for domain, version in model.opsets.items()}
    operators = catalog(imports)
    facts, findings = infer_all(model, catalog=operators)
    if check_type and model.graph is not None:
        for node in model.graph.all_nodes():
            reason = wrong_type(node, _signature(node, operators, imports), facts)
            if reason:
                raise InferenceError(reason, where=node.where())
    if strict and findings:
        raise InferenceError("; ".join(map(str, findings[:20])))
    return facts


def _signature(node: Node, operators: Catalog, imports: Mapping[str, int]) -> Signature | None:
    domain = canonical_domain(node.domain)
    operator = operators.get((domain, node.op_type))
    return None if operator is None or domain not in imports else operator.at(imports[domain])


def _require_domains(graph: Any, imported: set[str]) -> None:
    for inner in _graphs(graph):
        for node in inner.node:
            if normal_domain(node.domain) not in imported:
                raise InferenceError(
                    f"node '{node.name}' ({node.op_type}) is of domain '{node.domain}', which the "
                    "model does not import"
                )


def _graphs(graph: Any) -> Iterator[Any]:
    waiting = [graph]
    while waiting:
        inner = waiting.pop()
        yield inner
        for node in inner.node:
            for attribute in node.attribute:
                waiting.extend(_held(attribute))


def _held(attribute: Any) -> list[Any]:
    return ([attribute.g] if attribute.HasField("g") else []) + list(attribute.graphs)


def _check_constants(model: Model) -> None:
    """Constants that stand for inputs must be of the inputs' types."""
    graph = model.graph
    for value in [] if graph is None else graph.inputs:
        if value.tensor is not None and value.declared is not None:
            try:
                merge(from_type(value.tensor.type), from_type(value.declared))
            except SardonyxError as error:
                raise InferenceError(
                    f"the constant of input '{value.name}' differs from its type: {error.what}"
                ) from None


def _fix_constants(model: Model) -> None:
    """Take constants for what they hold, though a caller could feed others: as onnx does."""
    if model.graph is not None:
        model.graph.inputs = [value for value in model.graph.inputs if value.tensor is None]


def wrong_type(node: Node, version: Signature | None, facts: Facts) -> str:
    """Why the types of a node's inputs and outputs do not fit a signature, or nothing."""
    if version is None:
        return ""
    for what, count, limits in (
        ("inputs", len(node.inputs), version.input_range),
        ("outputs", len(node.outputs), version.output_range),
    ):
        if count < limits[0] or (limits[1] is not None and count > limits[1]):
            return f"there are {count} {what}, which the operator does not take"
    seen: dict[str, str] = {}
    sides = ((version.formal_input, node.inputs), (version.formal_output, node.outputs))
    for formal_at, values in sides:
        for position, value in enumerate(values):
            formal = formal_at(position)
            fact = None if value is None else facts.get(value)
            found = None if fact is None else type_string(fact)
            if formal is not None and found is not None:
                reason = _misfit(formal, found, version, seen)
                if reason:
                    return reason
    return ""


def lacking(node: Node, version: Signature) -> str:
    """Which attribute a signature requires and a node has not, or nothing."""
    for name, formal in version.attributes.items():
        if formal.required and name not in node.attributes:
            return f"the attribute '{name}' is missing"
    return ""


def _misfit(formal: Formal, found: str, version: Signature, seen: dict[str, str]) -> str:
    if normal_type(found) not in {normal_type(item) for item in version.types(formal)}:
        return f"'{formal.name}' is {found}, which the operator does not take"
    if not formal.each and seen.setdefault(formal.type, found) != found:
        return f"'{formal.name}' is {found} where others of the same type are {seen[formal.type]}"
    return ""


def _symbols(graph: Any) -> set[str]:
    """The names of sizes in a graph and the graphs inside it."""
    found: set[str] = set()
    for inner in _graphs(graph):
        for value in (*inner.input, *inner.output, *inner.value_info):
            found.update(_names(value.type))
    return found


def _names(type_: Any) -> Iterator[str]:
    match type_.WhichOneof("value"):
        case "tensor_type" | "sparse_tensor_type" as kind:
            yield from (item.dim_param for item in getattr(type_, kind).shape.dim)
        case "sequence_type" | "optional_type" as kind:
            yield from _names(getattr(type_, kind).elem_type)
        case "map_type":
            yield from _names(type_.map_type.value_type)


class Annotator:
    """Writes what was inferred into graphs; sizes only known at run time get names like unk__0."""

    def __init__(self, facts: Facts, taken: set[str]) -> None:
        self._facts = facts
        self._taken = taken
        self._names: dict[str, str] = {}
        self._count = 0

    def graph(self, proto: Any, graph: Graph) -> None:
        """Add types to a GraphProto and the graphs inside it, in place."""
        typed: dict[str, Any] = {}
        untyped: dict[str, Any] = {}
        for value in (*proto.value_info, *proto.input, *proto.output):
            (typed if value.HasField("type") else untyped)[value.name] = value
        for value in untyped.values():
            value.type.SetInParent()
        for message, node in zip(proto.node, graph.nodes, strict=True):
            self._inside(message, node)
            for name, value in zip(message.output, node.outputs, strict=True):
                fact = self._facts.get(value)
                if not name or fact is None:
                    continue
                inferred = type_proto(fact, self._name)
                if not inferred.WhichOneof("value"):
                    continue
                if name in typed:
                    merge_type(inferred, typed[name].type)
                    continue
                typed[name] = proto.value_info.add(name=name, type=inferred)
                if name in untyped:
                    untyped[name].type.CopyFrom(inferred)

    def _inside(self, message: Any, node: Node) -> None:
        for attribute in message.attribute:
            held = node.attributes.get(attribute.name)
            if held is not None:
                for inner, graph in zip(_held(attribute), held.graphs, strict=False):
                    self.graph(inner, graph)

    def _name(self, hidden: str) -> Dimension:
        if hidden and hidden in self._names:
            return self._names[hidden]
        name = f"{UNKNOWN}{self._count}"
        while name in self._taken:
            self._count += 1
            name = f"{UNKNOWN}{self._count}"
        self._count += 1
        if hidden:
            self._names[hidden] = name
        return name


def merge_type(inferred: Any, existing: Any) -> None:
    """Complete a TypeProto, in place; what it says already stays, unless a number is known now."""
    kind = inferred.WhichOneof("value")
    if existing.WhichOneof("value") is None:
        existing.MergeFrom(inferred)
    elif existing.WhichOneof("value") != kind:
        return
    elif kind in ("tensor_type", "sparse_tensor_type"):
        _merge_tensor(getattr(inferred, kind), getattr(existing, kind))
    elif kind in ("sequence_type", "optional_type"):
        merge_type(getattr(inferred, kind).elem_type, getattr(existing, kind).elem_type)
    elif kind == "map_type":
        merge_type(inferred.map_type.value_type, existing.map_type.value_type)


def _merge_tensor(inferred: Any, existing: Any) -> None:
    if existing.elem_type and inferred.elem_type not in (0, existing.elem_type):
        return
    if not existing.elem_type and inferred.elem_type:
        existing.elem_type = inferred.elem_type
    if not inferred.HasField("shape"):
        return
    if not existing.HasField("shape"):
        existing.shape.CopyFrom(inferred.shape)
        return
    pairs = list(zip(inferred.shape.dim, existing.shape.dim, strict=False))
    if len(inferred.shape.dim) != len(existing.shape.dim) or _differ(pairs):
        return
    for new, old in pairs:
        if old.WhichOneof("value") is None or new.HasField("dim_value"):
            denotation = old.denotation
            old.CopyFrom(new)
            if denotation:
                old.denotation = denotation


def _differ(pairs: Iterable[tuple[Any, Any]]) -> bool:
    return any(
        new.HasField("dim_value") and old.HasField("dim_value") and new.dim_value != old.dim_value
        for new, old in pairs
    )
