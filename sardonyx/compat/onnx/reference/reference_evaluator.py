"""`ReferenceEvaluator`: runs a model, graph, function or node."""

from collections.abc import Mapping
from io import BytesIO
from typing import Any

import numpy as np

from sardonyx.compat.onnx import _files, defs
from sardonyx.compat.onnx.model_container import ModelContainer
from sardonyx.compat.onnx.onnx_ml_pb2 import (
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TypeProto,
)
from sardonyx.compat.onnx.reference._custom import custom_operator, expand_operators
from sardonyx.compat.onnx.reference.op_run import OpRun, OpRunExpand
from sardonyx.compat.onnx.reference.shape_annotation_checker import (
    SymbolBindings,
    check_value_against_type,
)
from sardonyx.dtypes import from_numpy
from sardonyx.errors import EvaluationError, SardonyxError, UnsupportedError
from sardonyx.format.files import DataFolder
from sardonyx.format.read import read_model
from sardonyx.format.write import array_bytes, write_type
from sardonyx.graph import Attribute, Graph, Model, TensorType, Value
from sardonyx.graph.clone import clone_graph, clone_model
from sardonyx.ops.catalog import standard
from sardonyx.ops.evaluate import Evaluator

_MESSAGES = {"ModelProto": ModelProto, "GraphProto": GraphProto, "FunctionProto": FunctionProto,
             "NodeProto": NodeProto}  # fmt: skip


class ReferenceEvaluator:
    """Runs a ModelProto, GraphProto, FunctionProto or NodeProto, a file, bytes or a container.

    `opsets` gives the operator sets of a graph, `functions` the functions it may call; `new_ops`
    are classes derived from `OpRun` that add operators or take the place of standard ones;
    `verbose` prints nodes (2) and results (3) as they are made; `check_shape_annotations` raises
    where a value is not what the model declares.

    >>> from sardonyx.compat import onnx
    >>> node = onnx.helper.make_node("Celu", ["x"], ["y"], alpha=0.5)
    >>> ReferenceEvaluator(node).run(None, {"x": np.array([2], np.float32)})[0].tolist()
    [2.0]
    """

    def __init__(
        self,
        proto: Any,
        opsets: dict[str, int] | None = None,
        functions: "list[ReferenceEvaluator | FunctionProto] | None" = None,
        verbose: int = 0,
        new_ops: list[type[OpRun]] | None = None,
        check_shape_annotations: bool = False,
    ) -> None:
        self.container_ = proto if isinstance(proto, ModelContainer) else None
        self.proto_ = proto = _message(proto)
        self.verbose = verbose
        self.check_shape_annotations_ = check_shape_annotations
        self.new_ops_ = _new_ops(new_ops)
        self.functions_: dict[tuple[str, str], ReferenceEvaluator] = {}
        self.attributes_: list[str] = []
        self.input_types_: list[Any] | None = None
        self.output_types_: list[Any] | None = None
        self.opsets_ = self._find_opsets(opsets)
        if isinstance(proto, ModelProto):
            if functions is not None:
                raise ValueError("a ModelProto brings its functions: leave `functions` out")
            functions = list(proto.functions)
        self._add_functions(functions or [])
        self._describe()
        self._prepared: dict[Any, Evaluator] = {}
        self._model = self._read()
        if not isinstance(proto, FunctionProto):
            self._evaluator({}, None)

    def _find_opsets(self, opsets: dict[str, int] | None) -> dict[str, int]:
        proto = self.proto_
        if isinstance(proto, GraphProto):
            if not isinstance(opsets, dict):
                raise TypeError("a GraphProto needs `opsets`, a dictionary of domains and versions")
            return opsets
        if isinstance(proto, NodeProto):
            newest = 1 if proto.domain else defs.onnx_opset_version()
            return opsets or {proto.domain: newest}
        if opsets is not None:
            raise ValueError(f"a {type(proto).__name__} brings its opsets: leave `opsets` out")
        return {item.domain: item.version for item in proto.opset_import}

    def _add_functions(self, functions: list[Any]) -> None:
        for function in functions:
            evaluator = function
            if isinstance(function, FunctionProto):
                evaluator = type(self)(
                    function, verbose=self.verbose, functions=list(self.functions_.values()),
                    new_ops=list(self.new_ops_.values()),
                )  # fmt: skip
            elif not isinstance(function, ReferenceEvaluator):
                raise TypeError(f"a function cannot be a {type(function).__name__}")
            self.functions_[evaluator.proto_.domain, evaluator.proto_.name] = evaluator

    def _describe(self) -> None:
        proto = self.proto_
        graph = proto.graph if isinstance(proto, ModelProto) else proto
        self.all_types_: dict[str, Any] | None = None
        if isinstance(graph, GraphProto):
            self.input_names_ = [value.name for value in graph.input]
            self.input_types_ = [value.type for value in graph.input]
            self.output_names_ = [value.name for value in graph.output]
            self.output_types_ = [value.type for value in graph.output]
            declared = (*graph.input, *graph.value_info, *graph.output)
            self.all_types_ = {value.name: value.type for value in declared}
            return
        self.input_names_, self.output_names_ = list(proto.input), list(proto.output)
        if isinstance(proto, FunctionProto):
            self.attributes_ = list(proto.attribute)
            self.all_types_ = {value.name: value.type for value in proto.value_info}

    def _read(self) -> Model:
        """The proto as a model, with the functions it may call."""
        proto, message = self.proto_, ModelProto()
        if isinstance(proto, ModelProto):
            message = proto
        else:
            message.functions.extend(item.proto_ for item in self._all_functions())
            for domain, version in self.opsets_.items():
                message.opset_import.add(domain=domain, version=version)
        if isinstance(proto, GraphProto):
            message.graph.CopyFrom(proto)
        elif isinstance(proto, FunctionProto):
            message.functions.append(proto)
            message.graph.name = proto.name
        elif isinstance(proto, NodeProto):
            message.graph.node.append(proto)
            for name in filter(None, proto.input):
                message.graph.input.add(name=name)
            for name in filter(None, proto.output):
                message.graph.output.add(name=name)
        content = memoryview(message.SerializeToString())
        model = read_model(content, "the model", self._open_external)
        if model.graph is not None:
            model.graph.inputs += _free_values(model.graph)
        return model

    def _all_functions(self) -> "list[ReferenceEvaluator]":
        found = dict(self.functions_)
        for evaluator in self.functions_.values():
            for key, inner in evaluator.functions_.items():
                found.setdefault(key, inner)
        return list(found.values())

    def _open_external(self, location: str, offset: int, length: int | None) -> Any:
        container = self.container_
        if container is not None and container.is_in_memory_external_initializer(location):
            return array_bytes(container[location])
        return DataFolder(None).open(location, offset, length)

    def _evaluator(
        self, attributes: Mapping[str, Any], feeds: Mapping[str, Any] | None
    ) -> Evaluator:
        """The model ready to run: for a function, with its attributes and the types it is fed."""
        model = self._model
        key: Any = None
        if isinstance(self.proto_, FunctionProto):
            types = tuple((name, _type_of(item)) for name, item in (feeds or {}).items())
            key = (types, tuple((name, repr(item)) for name, item in attributes.items()))
        if key not in self._prepared:
            if isinstance(self.proto_, FunctionProto):
                model = self._bound(attributes, feeds or {})
            expanded = {key for key, kind in self.new_ops_.items() if issubclass(kind, OpRunExpand)}
            try:
                if expanded:
                    model = clone_model(model)
                    expand_operators(model, expanded)
                self._require_domains(model)
                catalog = standard() | self._custom()
                self._prepared[key] = Evaluator(model, catalog=catalog, check_inputs=False)
            except UnsupportedError as error:
                raise NotImplementedError(str(error)) from error
            except SardonyxError as error:
                raise RuntimeError(str(error)) from error
        return self._prepared[key]

    def _bound(self, attributes: Mapping[str, Any], feeds: Mapping[str, Any]) -> Model:
        """A function's body as the graph of a model."""
        model = clone_model(self._model)
        function = model.functions.pop()
        given = {item.name: item for item in function.attribute_defaults}
        given |= {
            name: Attribute(name, value) for name, value in attributes.items() if value is not None
        }
        model.graph = clone_graph(function.graph, None, given)
        for value in model.graph.inputs:
            if value.declared is None and isinstance(feeds.get(value.name), np.ndarray):
                value.declared = _type_of(feeds[value.name])
        return model

    def _custom(self) -> dict[tuple[str, str], Any]:
        parameters = {
            "log": lambda pattern, *args: self._log(10, pattern, *args),
            "opsets": self.opsets_,
            "verbose": self.verbose,
            "new_ops": self.new_ops_,
            "existing_functions": dict(self.functions_),
            "evaluator_cls": type(self),
        }
        return {
            key: custom_operator(key, kind, parameters)
            for key, kind in self.new_ops_.items()
            if not issubclass(kind, OpRunExpand)
        }

    def _require_domains(self, model: Model) -> None:
        known = {"" if domain == "ai.onnx" else domain for domain in model.opsets}
        for node in model.graph.all_nodes() if model.graph is not None else ():
            if ("" if node.domain == "ai.onnx" else node.domain) not in known:
                raise RuntimeError(
                    f"{node.where()} is of domain {node.domain!r}, which is not among the opsets "
                    f"{self.opsets_}"
                )

    @property
    def input_names(self) -> list[str]:
        """The names of the inputs."""
        return self.input_names_

    @property
    def input_types(self) -> list[Any] | None:
        """The TypeProtos of the inputs, where there are any."""
        return self.input_types_

    @property
    def output_names(self) -> list[str]:
        """The names of the outputs."""
        return self.output_names_

    @property
    def output_types(self) -> list[Any] | None:
        """The TypeProtos of the outputs, where there are any."""
        return self.output_types_

    @property
    def opsets(self) -> dict[str, int]:
        """The version of each operator set."""
        return self.opsets_

    def __str__(self) -> str:
        inputs, outputs = ", ".join(self.input_names), ", ".join(self.output_names)
        return f"{type(self).__name__}({inputs}) -> {outputs}"

    def get_result_types(self, name: str, exc: bool = True) -> Any:
        """The declared TypeProto of a value; None, or with `exc` RuntimeError, if there is none."""
        found = (self.all_types_ or {}).get(name)
        if found is None and exc:
            raise RuntimeError(f"no type is declared for {name!r}; infer shapes first")
        return found

    def _log(self, level: int, pattern: str, *args: Any) -> None:
        if level < self.verbose:
            print(pattern % tuple(self._log_arg(item) for item in args))

    def _log_arg(self, a: Any) -> Any:
        """A value in short."""
        if isinstance(a, np.ndarray):
            if self.verbose >= 4:
                items = a.ravel().tolist()
                text = f"{','.join(map(str, items[:5]))}..." if len(items) > 5 else str(items)
                return f"{a.dtype}:{a.shape}:{text}"
            limits = "(empty)" if a.size == 0 else f"in [{a.min()}, {a.max()}]"
            return f"{a.dtype}:{a.shape} {limits}"
        if isinstance(a, list):
            return ", ".join(str(self._log_arg(item)) for item in a)
        return a

    def run(
        self,
        output_names: Any,
        feed_inputs: dict[str, Any],
        attributes: dict[str, Any] | None = None,
        intermediate: bool = False,
        check_shape_annotations: bool | None = None,
        _bindings: SymbolBindings | None = None,
    ) -> dict[str, Any] | list[Any]:
        """The outputs in order, or with `intermediate` every result by name.

        `attributes` are the values of a function's attributes.

        >>> from sardonyx.compat import onnx
        >>> text = ('<ir_version: 8, opset_import: ["": 17]>'
        ...         'g (float[1] x) => (y) { z = Neg(x) y = Abs(z) }')
        >>> evaluator = ReferenceEvaluator(onnx.parser.parse_model(text))
        >>> sorted(evaluator.run(None, {"x": np.ones(1, np.float32)}, intermediate=True))
        ['', 'x', 'y', 'z']
        """
        if isinstance(self.proto_, FunctionProto) and attributes is None:
            raise TypeError("a function needs `attributes`, at least an empty dictionary")
        checked = self.check_shape_annotations_
        if check_shape_annotations is not None:
            checked = check_shape_annotations
        bindings = _bindings or (SymbolBindings() if checked else None)
        feeds = {name: _plain(item) for name, item in feed_inputs.items()}
        evaluator = self._evaluator(attributes or {}, feeds)
        results: dict[str, Any] = {"": None} | feeds
        makers = self._makers()

        def observe(value: Value, item: Any) -> None:
            if bindings is not None and value.declared is not None:
                declared = TypeProto.FromString(write_type(value.declared).joined())
                check_value_against_type(declared, item, bindings, value.name)
            if value.name in makers:
                results[value.name] = item
                self._log_result(value.name, item, makers[value.name])

        try:
            evaluator.run([], _fed(evaluator, feeds), observe=observe)
        except EvaluationError as error:
            raise _cause(error) from error
        except SardonyxError as error:
            raise RuntimeError(str(error)) from error
        if intermediate:
            return results
        wanted = self.output_names if output_names is None else output_names
        for name in wanted:
            if name not in results:
                raise RuntimeError(f"there is no result {name!r}; there are {sorted(results)}")
        return [results[name] for name in wanted]

    def _makers(self) -> dict[str, Any]:
        """The names of all results, each with the node that makes it, or how to mark it."""
        proto = self.proto_
        graph = proto.graph if isinstance(proto, ModelProto) else proto
        found: dict[str, Any] = {}
        if isinstance(graph, GraphProto):
            found |= {item.name: "C" for item in graph.initializer}
            found |= {item.values.name: "C" for item in graph.sparse_initializer}
        found |= dict.fromkeys(self.input_names_, "I")
        for node in [graph] if isinstance(graph, NodeProto) else graph.node:
            found |= dict.fromkeys(node.output, node)
        return found

    def _log_result(self, name: str, item: Any, maker: Any) -> None:
        if isinstance(maker, str):
            self._log(2, f" +{maker} %s: %s", name, item)
            return
        if name == next(filter(None, maker.output)):
            line = (maker.op_type, ", ".join(maker.input), ", ".join(maker.output))
            self._log(1, "%s(%s) -> %s", *line)
        self._log(2, " + %s: %s", name, item)


def _message(proto: Any) -> Any:
    """The message that is to run, in this package's own classes."""
    if isinstance(proto, ModelContainer):
        proto = proto.model_proto
    if isinstance(proto, str):
        return _files.load_model(proto)
    if isinstance(proto, bytes):
        return _files.load_model(BytesIO(proto))
    if isinstance(proto, tuple(_MESSAGES.values())):
        return proto
    name = getattr(getattr(proto, "DESCRIPTOR", None), "name", "")
    if name in _MESSAGES:
        return _MESSAGES[name].FromString(proto.SerializeToString())
    raise TypeError(f"a {type(proto).__name__} cannot be run")


def _new_ops(classes: list[type[OpRun]] | None) -> dict[tuple[str, str], type[OpRun]]:
    found: dict[tuple[str, str], type[OpRun]] = {}
    for kind in classes or ():
        if not hasattr(kind, "op_domain"):
            raise AttributeError(f"class {kind.__name__} has no attribute 'op_domain'")
        if not issubclass(kind, OpRun):
            raise TypeError(f"class {kind.__name__} does not derive from OpRun")
        found.setdefault((kind.op_domain, kind.__name__), kind)
    return found


def _free_values(graph: Graph) -> list[Value]:
    """Values that a graph reads but nothing in it makes: they come from a graph around it."""
    own = {value for part in graph.walk() for value in part.values()}
    used = {value: None for node in graph.all_nodes() for value in node.inputs if value is not None}
    used |= dict.fromkeys(value for part in graph.walk() for value in part.outputs)
    return [value for value in used if value not in own]


def _plain(item: Any) -> Any:
    if isinstance(item, np.generic):
        item = np.asarray(item)
    if isinstance(item, np.ndarray) and item.dtype.kind in "US":
        return item.astype(object)
    return item


def _type_of(item: Any) -> TensorType | None:
    if not isinstance(item, np.ndarray):
        return None
    try:
        return TensorType(from_numpy(item.dtype), (None,) * item.ndim)
    except SardonyxError:
        return None


def _fed(evaluator: Evaluator, feeds: Mapping[str, Any]) -> dict[str, Any]:
    """What is fed of the inputs there are; RuntimeError where one is used but not fed."""
    graph = evaluator.graph
    constants = set(graph.initializers)
    known = {value.name for value in (*graph.inputs, *graph.initializers)}
    found = {name: item for name, item in feeds.items() if name in known}
    for value in graph.inputs:
        if value.name in found or value in constants:
            continue
        if value.uses:
            raise RuntimeError(f"input {value.name!r} is needed; fed are {sorted(feeds)}")
        found[value.name] = None
    return found


def _cause(error: EvaluationError) -> Exception:
    """The exception that stopped an operator, with a note about where that was."""
    cause = error.__cause__
    if not isinstance(cause, Exception) or isinstance(cause, SardonyxError):
        return RuntimeError(str(error))
    cause.add_note(str(error))
    return cause
