"""Put the bodies of functions in the place of the calls."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from google.protobuf.message import DecodeError

from sardonyx.compat.onnx._function_calls import (
    call_identifier,
    check_function_calls,
    function_identifier,
    normal_domain,
)
from sardonyx.compat.onnx._nesting import MAXIMUM_NESTING, check_nesting, subgraphs
from sardonyx.compat.onnx._renaming import Names, Renamer
from sardonyx.compat.onnx.onnx_ml_pb2 import FunctionProto, ModelProto

MAXIMUM_DEPTH = 1_000
"""Calls inside calls; only operator bodies that lead back to a local function get there."""
MAXIMUM_NODES = 2_000_000
MAXIMUM_BYTES = 2**31 - 1

Selected = Callable[[str, str], bool]


@dataclass(frozen=True)
class _Callee:
    """A local function, and the operator set version its body must be converted to."""

    function: Any
    target_version: int | None = None


def inline_local(model: Any, convert_version: bool) -> None:
    """Inline, in place, the local functions whose operator sets fit the model's.

    With `convert_version`, a body that differs only in the version of the default operator set
    is converted. Functions that do not fit stay, and so do the calls of them.
    """
    check_function_calls(model)
    imported: dict[str, int] = {}
    _import_all(imported, model.opset_import)
    callees = {}
    for function in model.functions:
        mismatches = {}
        for entry in function.opset_import:
            domain = normal_domain(entry.domain)
            if imported.get(domain, entry.version) != entry.version:
                mismatches[domain] = imported[domain]
        target = mismatches.pop("", None) if convert_version else None
        if not mismatches:
            callees[function_identifier(function)] = _Callee(function, target)
    _Inliner(model, lambda domain, name: True, callees, schema_functions=False).expand_all()
    _remove_functions(model, callees)


def inline_selected(model: Any, selected: Selected, schema_functions: bool) -> None:
    """Inline, in place, the functions for which `selected(domain, name)` is true.

    All local functions must agree with the model on operator set versions. With
    `schema_functions`, operators defined as functions are inlined too.
    """
    check_function_calls(model)
    imported: dict[str, int] = {}
    _import_all(imported, model.opset_import)
    callees, others = {}, []
    for function in model.functions:
        if not _import_all(imported, function.opset_import):
            raise RuntimeError(
                f"function {function_identifier(function)} imports another version of an operator"
                " set than the model or another function; convert them to one version first"
            )
        if selected(function.domain, function.name):
            callees[function_identifier(function)] = _Callee(function)
        else:
            others.append(function)
    _Inliner(model, selected, callees, schema_functions).expand_all(others)
    _remove_functions(model, callees)


def _import_all(imported: dict[str, int], entries: Iterable[Any]) -> bool:
    """Add entries to `imported` up to the first that contradicts it; false if one does."""
    return all(
        imported.setdefault(normal_domain(entry.domain), entry.version) == entry.version
        for entry in entries
    )


def _remove_functions(model: Any, callees: dict[str, _Callee]) -> None:
    for index in reversed(range(len(model.functions))):
        if function_identifier(model.functions[index]) in callees:
            del model.functions[index]


class _Inliner:
    """Replaces calls in one model, keeping names unique and the result of bearable size."""

    def __init__(
        self, model: Any, selected: Selected, callees: dict[str, _Callee], schema_functions: bool
    ) -> None:
        self._model = model
        self._selected = selected
        self._callees = callees
        self._schema_functions = schema_functions
        self._names = Names(model.graph)
        self._calls = 0
        self._nodes = 0
        self._bytes = 0
        self._expanded_nodes: dict[str, int] = {}

    def expand_all(self, others: Iterable[Any] = ()) -> None:
        """Replace the calls in the model's graph, then in the functions `others`."""
        self._model.graph.SetInParent()
        owners = (self._model.graph, *others)
        expanded = sum(self._count_expanded(owner.node) for owner in owners)
        if self._callees and expanded > MAXIMUM_NODES:
            self._refuse("in the whole model")
        for owner in owners:
            self.expand(owner)

    def expand(self, owner: Any, nesting: int = 0, depth: int = 0) -> None:
        """Replace the calls in a graph or function by bodies, and the calls in those, in place."""
        if nesting > MAXIMUM_NESTING:
            raise DecodeError(f"inlining nests graphs more than {MAXIMUM_NESTING} deep")
        pending = [(node, depth) for node in reversed(owner.node)]
        del owner.node[:]
        while pending:
            node, depth = pending.pop()
            body = self._body_for(node, depth)
            if body is None:
                for graph in subgraphs(node):
                    self.expand(graph, nesting + 1, depth)
                owner.node.append(node)
                continue
            arguments = {*node.input, *node.output}
            owner.value_info.extend(it for it in body.value_info if it.name not in arguments)
            pending.extend((inner, depth + 1) for inner in reversed(body.node))

    def _body_for(self, call: Any, depth: int) -> Any:
        """The body that replaces `call`, renamed and bound to it; None if it is to stay."""
        if not self._selected(call.domain, call.op_type):
            return None
        callee = self._callees.get(call_identifier(call))
        if callee is None and self._schema_functions:
            callee = self._schema_function(call)
        if callee is None:
            return None
        self._charge(callee.function, callee.function.node, call, depth)
        body = FunctionProto()
        body.CopyFrom(callee.function)
        self._bind_attributes(body, call, depth)
        self._calls += 1
        Renamer(f"__{self._calls}", self._names).rename_body(call, body)
        if callee.target_version is not None:
            self._convert_version(call, body, callee.target_version)
        return body

    def _count_expanded(self, nodes: Iterable[Any]) -> int:
        """How many nodes there are once all local functions are inlined in `nodes`."""
        count = 0
        for node in _all_nodes(nodes):
            name = call_identifier(node)
            callee = self._callees.get(name) if self._selected(node.domain, node.op_type) else None
            if callee is not None and name not in self._expanded_nodes:
                self._expanded_nodes[name] = self._count_expanded(callee.function.node)
            count += 1 if callee is None else self._expanded_nodes[name]
        return count

    def _charge(self, message: Any, nodes: Iterable[Any], call: Any, depth: int) -> None:
        """Refuse to copy `message` when calls multiply beyond what a model can hold."""
        self._bytes += message.ByteSize()
        self._nodes += sum(1 for _ in _all_nodes(nodes))
        where = f"at the call of {call_identifier(call)}"
        if depth > MAXIMUM_DEPTH:
            raise _validation_error(
                f"calls are nested more than {MAXIMUM_DEPTH} deep {where}; a function calls itself"
            )
        if self._nodes > MAXIMUM_NODES or self._bytes > MAXIMUM_BYTES:
            self._refuse(where)

    def _refuse(self, where: str) -> NoReturn:
        raise _validation_error(
            f"inlining makes more than {MAXIMUM_NODES} nodes or {MAXIMUM_BYTES} bytes {where};"
            " functions call each other too often"
        )

    def _bind_attributes(self, body: Any, call: Any, depth: int) -> None:
        """Give attributes of the body that refer to the call's attributes their values.

        A reference to an attribute that the call does not have is removed.
        """
        values = {attribute.name: attribute for attribute in call.attribute}
        pending = [body.node]
        for nodes in _grow(pending):
            for node in nodes:
                for index in reversed(range(len(node.attribute))):
                    attribute = node.attribute[index]
                    if not attribute.ref_attr_name:
                        pending.extend(graph.node for graph in _graphs(attribute))
                    elif attribute.ref_attr_name in values:
                        value = values[attribute.ref_attr_name]
                        inner = (node for graph in _graphs(value) for node in graph.node)
                        self._charge(value, inner, call, depth)
                        name = attribute.name
                        attribute.CopyFrom(value)
                        attribute.name = name
                    else:
                        del node.attribute[index]
        check_nesting(body.node, f"function {function_identifier(body)}")

    def _schema_function(self, call: Any) -> _Callee | None:
        """The body of an operator that the standard defines as a function, or None."""
        from sardonyx.compat.onnx._function_bodies import function_body

        imports: dict[str, int] = {}
        for entry in self._model.opset_import:
            imports.setdefault(entry.domain, entry.version)
        if call.domain not in imports or call.domain == "ai.onnx":
            return None
        content = function_body(
            call.domain,
            call.op_type,
            call.SerializeToString(),
            imports,
            input_types=lambda: self._input_types(call),
        )
        return None if content is None else _Callee(FunctionProto.FromString(content))

    def _input_types(self, call: Any) -> list[bytes]:
        self._infer_shapes()
        return [self._type_of(name).SerializeToString() if name else b"" for name in call.input]

    def _infer_shapes(self) -> None:
        from sardonyx.compat.onnx import shape_inference

        self._model.graph.CopyFrom(shape_inference.infer_shapes(self._model).graph)

    def _type_of(self, name: str) -> Any:
        graph = self._model.graph
        for values in (graph.value_info, graph.input, graph.output):
            for value in values:
                if value.name == name:
                    return value.type
        raise RuntimeError(
            f"the type of {name!r} is unknown, but a function that depends on it is inlined;"
            " add it to the graph's value_info"
        )

    def _convert_version(self, call: Any, body: Any, target_version: int) -> None:
        """Convert the nodes of `body`, as a model of its own, to another operator set version."""
        from sardonyx.compat.onnx import version_converter

        self._infer_shapes()
        graph = self._model.graph
        constants = {
            node.output[0]: node
            for node in graph.node
            if normal_domain(node.domain) == "" and node.op_type == "Constant" and node.output
        }
        model = ModelProto(ir_version=self._model.ir_version, opset_import=body.opset_import)
        for name in _used_values(call):
            model.graph.input.add(name=name, type=self._type_of(name))
            if name in constants:
                model.graph.node.append(constants[name])
        for name in filter(None, call.output):
            model.graph.output.add(name=name, type=self._type_of(name))
        model.graph.node.extend(body.node)
        converted = version_converter.convert_version(model, target_version)
        del body.node[:]
        body.node.extend(converted.graph.node)
        graph.initializer.extend(converted.graph.initializer)
        graph.sparse_initializer.extend(converted.graph.sparse_initializer)


def _graphs(attribute: Any) -> Iterator[Any]:
    if attribute.HasField("g"):
        yield attribute.g
    yield from attribute.graphs


def _grow(pending: list[Any]) -> Iterator[Any]:
    """The items of a list that grows while it is worked off."""
    while pending:
        yield pending.pop()


def _all_nodes(nodes: Iterable[Any]) -> Iterator[Any]:
    """The nodes, and those of the graphs inside them."""
    pending = [nodes]
    for level in _grow(pending):
        for node in level:
            yield node
            pending.extend(graph.node for graph in subgraphs(node))


def _validation_error(text: str) -> Exception:
    from sardonyx.compat.onnx.checker import ValidationError

    error: Exception = ValidationError(text)
    return error


def _used_values(node: Any) -> list[str]:
    """The values `node` reads, with those from outside that the graphs inside it read."""
    used: list[str] = []
    scopes: list[set[str]] = []

    def visit(node: Any) -> None:
        used.extend(
            name for name in node.input if name and not any(name in scope for scope in scopes)
        )
        if scopes:
            scopes[-1].update(filter(None, node.output))
        for graph in subgraphs(node):
            scopes.append({value.name for value in (*graph.input, *graph.initializer)})
            for inner in graph.node:
                visit(inner)
            scopes.pop()

    visit(node)
    return used
