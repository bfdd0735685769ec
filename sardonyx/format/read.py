"""Bytes -> Model. Nothing of a weight is copied, and errors say the byte and the field."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sardonyx.errors import FormatError
from sardonyx.format.locate import locate
from sardonyx.format.read_node import read_attribute, read_node
from sardonyx.format.read_types import (
    add_entry,
    read_entry,
    read_sparse,
    read_tensor,
    read_type,
    text,
    unknown_field,
)
from sardonyx.format.records import read_record
from sardonyx.format.tags import FUNCTION, GRAPH, MODEL, OPSET, QUANTIZATION, TRAINING, VALUE
from sardonyx.format.wire import DEEPEST, Buffer, WireError, fields, signed
from sardonyx.graph import (
    Declaration,
    Function,
    Graph,
    Model,
    Opsets,
    QuantizationAnnotation,
    SparseTensor,
    Tensor,
    TrainingInfo,
    Type,
    Value,
)
from sardonyx.graph.collect import collection_paused

_DEEPEST_GRAPH = DEEPEST // 3
"""A graph inside a graph is three messages deeper: node, attribute, graph."""
OpenExternal = Callable[[str, int, int | None], Buffer]


def read_model(buffer: memoryview, source: str, open_external: OpenExternal) -> Model:
    """Decode a ModelProto."""
    reader = Reader(buffer, open_external)
    with collection_paused(), _errors(buffer, "ModelProto", source):
        model = reader.model()
    model.source = source
    return model


def read_tensor_bytes(buffer: memoryview, source: str, open_external: OpenExternal) -> Tensor:
    """Decode a TensorProto."""
    with _errors(buffer, "TensorProto", source):
        return read_tensor(buffer, 0, len(buffer), open_external)


def read_function_bytes(buffer: memoryview, source: str, open_external: OpenExternal) -> Function:
    """Decode a FunctionProto."""
    with _errors(buffer, "FunctionProto", source):
        return Reader(buffer, open_external).function(0, len(buffer))


def read_graph_bytes(buffer: memoryview, source: str, open_external: OpenExternal) -> Graph:
    """Decode a GraphProto."""
    with _errors(buffer, "GraphProto", source):
        return Reader(buffer, open_external).graph(0, len(buffer), None)


@contextmanager
def _errors(buffer: Buffer, message: str, source: str) -> Iterator[None]:
    try:
        yield
    except WireError as error:
        path = locate(buffer, message, error.offset)
        where = f"byte {error.offset}" + (f", in {path}" if path else "")
        raise FormatError(
            f"{source} is not a readable {message}: {error.what}",
            where=where,
            hint="the file is damaged, cut short, or not an ONNX file; fetch or export it again",
        ) from None


class Scope:
    """The names one graph defines; what is used before it is defined waits here."""

    __slots__ = ("values",)

    def __init__(self) -> None:
        self.values: dict[str, Value] = {}

    def use(self, name: str) -> Value:
        """The value called `name`, made now if it has not been seen."""
        value = self.values.get(name)
        if value is None:
            value = self.values[name] = Value(name)
        return value

    def define(self, name: str) -> Value:
        """The value a node makes under `name`; a second definition is a value of its own."""
        if not name:
            return Value("")
        value = self.values.get(name)
        if value is None or value.producer is not None:
            value = self.values[name] = Value(name)
        return value


class Reader:
    """Reads messages of one buffer."""

    def __init__(self, buffer: memoryview, open_external: OpenExternal) -> None:
        self.buffer = buffer
        self.open_external = open_external
        self._depth = 0
        self._types: dict[bytes, Type] = {}

    def model(self) -> Model:
        """The whole buffer as a model."""
        buffer = self.buffer
        model = Model()
        keep = bytearray()
        later: list[tuple[int, int, int]] = []
        for tag, a, b, at in fields(buffer, 0, len(buffer)):
            match tag:
                case MODEL.ir_version | MODEL.model_version:
                    setattr(model, _MODEL_NAMES[tag], signed(a))
                    keep += b"" if a else buffer[at:b]
                case MODEL.producer_name | MODEL.producer_version | MODEL.domain | MODEL.doc_string:
                    setattr(model, _MODEL_NAMES[tag], text(buffer, a, b))
                    keep += b"" if b > a else buffer[at:b]
                case MODEL.opset_import:
                    keep += self._opset(model.opsets, a, b, at)
                case MODEL.graph | MODEL.functions | MODEL.training_info:
                    later.append((tag, a, b))
                case MODEL.metadata_props:
                    keep += add_entry(model.metadata, buffer, a, b, at)
                case MODEL.configuration:
                    record = read_record(buffer, a, b, "DeviceConfigurationProto")
                    model.device_configurations.append(record)
                case _:
                    keep += unknown_field(buffer, tag, at, b, MODEL)
        model.leftover = bytes(keep)
        self._bodies(model, later)
        return model

    def _bodies(self, model: Model, spans: list[tuple[int, int, int]]) -> None:
        graphs = [(a, b) for tag, a, b in spans if tag == MODEL.graph]
        if len(graphs) > 1:
            raise WireError(graphs[1][0], "a model holds more than one graph")
        scope: Scope | None = None
        for a, b in graphs:
            model.graph, scope = self._graph(a, b, None)
        for tag, a, b in spans:
            if tag == MODEL.functions:
                model.functions.append(self.function(a, b))
            elif tag == MODEL.training_info:
                model.training.append(self._training(a, b, scope))

    def graph(self, start: int, end: int, outer: Scope | None) -> Graph:
        """A GraphProto; names it does not define are looked up in `outer`."""
        return self._graph(start, end, outer)[0]

    def _graph(self, start: int, end: int, outer: Scope | None) -> tuple[Graph, Scope]:
        self._depth += 1
        if self._depth > _DEEPEST_GRAPH:
            raise WireError(start, f"more than {_DEEPEST_GRAPH} graphs lie inside one another")
        buffer = self.buffer
        graph, scope = Graph(), Scope()
        keep = bytearray()
        later: dict[int, list[tuple[int, int]]] = {}
        append = graph.nodes.append
        for tag, a, b, at in fields(buffer, start, end):
            if tag == GRAPH.node:
                append(read_node(self, a, b, scope))
            elif tag in _LATER:
                later.setdefault(tag, []).append((a, b))
            elif tag in (GRAPH.name, GRAPH.doc_string):
                setattr(graph, "name" if tag == GRAPH.name else "doc_string", text(buffer, a, b))
                keep += b"" if b > a else buffer[at:b]
            elif tag == GRAPH.metadata_props:
                graph.metadata = {} if graph.metadata is None else graph.metadata
                keep += add_entry(graph.metadata, buffer, a, b, at)
            else:
                keep += unknown_field(buffer, tag, at, b, GRAPH)
        graph.leftover = bytes(keep)
        self._declare(graph, scope, later)
        if outer is not None:
            _connect(graph, scope, outer)
        self._depth -= 1
        return graph, scope

    def _declare(self, graph: Graph, scope: Scope, later: dict[int, list[tuple[int, int]]]) -> None:
        taken: set[Value] = set()
        for a, b in later.get(GRAPH.input, ()):
            name, declaration = self.declaration(a, b)
            value = scope.use(name)
            if value.producer is not None or value in taken:
                value = Value(name)
            _apply(value, declaration)
            graph.inputs.append(value)
            taken.add(value)
        outputs: list[Value] = []
        for a, b in later.get(GRAPH.output, ()):
            name, declaration = self.declaration(a, b)
            value = scope.use(name)
            if value not in taken:
                _apply(value, declaration)
            elif _declaration(value) != declaration:
                graph.output_declarations[value] = declaration
            outputs.append(value)
            taken.add(value)
        graph.outputs.extend(outputs)
        for a, b in later.get(GRAPH.initializer, ()):
            self._constant(graph, scope, read_tensor(self.buffer, a, b, self.open_external))
        for a, b in later.get(GRAPH.sparse_initializer, ()):
            self._constant(graph, scope, read_sparse(self.buffer, a, b, self.open_external))
        for a, b in later.get(GRAPH.value_info, ()):
            self._value_info(graph, scope, taken, a, b)
        for a, b in later.get(GRAPH.quantization_annotation, ()):
            graph.quantization.append(self._quantization(scope, a, b))

    def _constant(self, graph: Graph, scope: Scope, tensor: Tensor | SparseTensor) -> None:
        value = scope.use(tensor.name) if tensor.name else Value("")
        if value.producer is not None or value.tensor is not None:
            value = Value(tensor.name)
        value.tensor = tensor
        graph.initializers.append(value)

    def _value_info(self, graph: Graph, scope: Scope, taken: set[Value], a: int, b: int) -> None:
        name, declaration = self.declaration(a, b)
        value = scope.values.get(name)
        if value is None or value in taken or value in graph.declared:
            value = Value(name)
        _apply(value, declaration)
        graph.declared[value] = None

    def declaration(self, start: int, end: int) -> tuple[str, Declaration]:
        """A ValueInfoProto: the name, and what it says."""
        buffer = self.buffer
        name = doc_string = ""
        type_: Type | None = None
        metadata: dict[str, str] = {}
        keep = bytearray()
        for tag, a, b, at in fields(buffer, start, end):
            if tag == VALUE.name:
                name = text(buffer, a, b)
                keep += b"" if b > a else buffer[at:b]
            elif tag == VALUE.type:
                type_ = self._type(a, b)
            elif tag == VALUE.doc_string:
                doc_string = text(buffer, a, b)
                keep += b"" if b > a else buffer[at:b]
            elif tag == VALUE.metadata_props:
                keep += add_entry(metadata, buffer, a, b, at)
            else:
                keep += unknown_field(buffer, tag, at, b, VALUE)
        return name, Declaration(type_, doc_string, metadata, bytes(keep))

    def _type(self, start: int, end: int) -> Type:
        content = bytes(self.buffer[start:end])
        found = self._types.get(content)
        if found is None:
            found = self._types[content] = read_type(self.buffer, start, end)
        return found

    def _opset(self, opsets: Opsets, start: int, end: int, at: int) -> bytes:
        domain: str | None = None
        version: int | None = None
        odd = False
        for tag, a, b, _ in fields(self.buffer, start, end):
            if tag == OPSET.domain:
                domain = text(self.buffer, a, b)
            elif tag == OPSET.version:
                version = signed(a)
            else:
                odd = True
        if odd or version is None or (domain or "") in opsets:
            return bytes(self.buffer[at:end])
        if domain is None:
            opsets.unnamed = True
        opsets[domain or ""] = version
        return b""

    def _quantization(self, scope: Scope, start: int, end: int) -> QuantizationAnnotation:
        annotation = QuantizationAnnotation(Value(""), {})
        keep = bytearray()
        for tag, a, b, at in fields(self.buffer, start, end):
            if tag == QUANTIZATION.tensor_name and b > a:
                annotation.value = scope.use(text(self.buffer, a, b))
            elif tag == QUANTIZATION.quant_parameter_tensor_names:
                key, name, rest = read_entry(self.buffer, a, b)
                if rest or key in annotation.parameters:
                    keep += self.buffer[at:b]
                else:
                    annotation.parameters[key] = scope.use(name)
            else:
                keep += self.buffer[at:b]
        annotation.leftover = bytes(keep)
        return annotation

    def _training(self, start: int, end: int, scope: Scope | None) -> TrainingInfo:
        info = TrainingInfo()
        keep = bytearray()
        for tag, a, b, at in fields(self.buffer, start, end):
            match tag:
                case TRAINING.initialization:
                    info.initialization = self.graph(a, b, None)
                case TRAINING.algorithm:
                    info.algorithm = self.graph(a, b, scope)
                case TRAINING.initialization_binding | TRAINING.update_binding:
                    key, value, _ = read_entry(self.buffer, a, b)
                    first = tag == TRAINING.initialization_binding
                    (info.initialization_binding if first else info.update_binding).append(
                        (key, value)
                    )
                case _:
                    keep += unknown_field(self.buffer, tag, at, b, TRAINING)
        info.leftover = bytes(keep)
        return info

    def function(self, start: int, end: int) -> Function:
        """A FunctionProto."""
        buffer = self.buffer
        function, scope = Function("", ""), Scope()
        graph = function.graph
        keep = bytearray()
        names: dict[int, list[str]] = {
            FUNCTION.input: [],
            FUNCTION.output: [],
            FUNCTION.attribute: [],
        }
        infos: list[tuple[int, int]] = []
        for tag, a, b, at in fields(buffer, start, end):
            if tag == FUNCTION.node:
                graph.nodes.append(read_node(self, a, b, scope))
            elif tag in names:
                names[tag].append(text(buffer, a, b))
            elif tag == FUNCTION.value_info:
                infos.append((a, b))
            elif tag == FUNCTION.attribute_proto:
                function.attribute_defaults.append(read_attribute(self, buffer, 0, a, b, scope))
            elif tag == FUNCTION.opset_import:
                keep += self._opset(function.opsets, a, b, at)
            elif tag == FUNCTION.metadata_props:
                function.metadata = {} if function.metadata is None else function.metadata
                keep += add_entry(function.metadata, buffer, a, b, at)
            elif tag in _FUNCTION_NAMES:
                setattr(function, _FUNCTION_NAMES[tag], text(buffer, a, b))
                keep += b"" if b > a else buffer[at:b]
            else:
                keep += unknown_field(buffer, tag, at, b, FUNCTION)
        function.leftover, graph.name = bytes(keep), function.name
        function.attributes = names[FUNCTION.attribute]
        taken: set[Value] = set()
        for name in names[FUNCTION.input]:
            value = scope.use(name)
            if value.producer is not None or value in taken:
                value = Value(name)
            graph.inputs.append(value)
            taken.add(value)
        graph.outputs.extend(scope.use(name) for name in names[FUNCTION.output])
        for a, b in infos:
            self._value_info(graph, scope, set(), a, b)
        return function


_MODEL_NAMES = {tag: name for name, tag in vars(MODEL).items() if name != "numbers"}
_FUNCTION_NAMES = {
    FUNCTION.name: "name",
    FUNCTION.domain: "domain",
    FUNCTION.overload: "overload",
    FUNCTION.doc_string: "doc_string",
}
_LATER = frozenset(
    (
        GRAPH.input,
        GRAPH.output,
        GRAPH.initializer,
        GRAPH.sparse_initializer,
        GRAPH.value_info,
        GRAPH.quantization_annotation,
    )
)


def _apply(value: Value, declaration: Declaration) -> None:
    value.declared = declaration.type
    value.doc_string = declaration.doc_string
    value.metadata = declaration.metadata or None
    value.leftover = declaration.leftover


def _declaration(value: Value) -> Declaration:
    return Declaration(value.declared, value.doc_string, value.metadata or {}, value.leftover)


def _connect(graph: Graph, scope: Scope, outer: Scope) -> None:
    """Let names that a subgraph uses but does not define be those of the graph around it."""
    own: set[Value] = {*graph.inputs, *graph.initializers}
    known: dict[Value, Value] = {}
    for name, value in scope.values.items():
        if value.producer is None and value not in own:
            known[value] = outer.use(name)
            value.replace_all_uses(known[value])
    for annotation in graph.quantization:
        annotation.value = known.get(annotation.value, annotation.value)
        for key, parameter in annotation.parameters.items():
            annotation.parameters[key] = known.get(parameter, parameter)
