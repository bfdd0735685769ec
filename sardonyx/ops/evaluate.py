"""Run a model with each operator's reference: the meaning of a model, one node after another."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from sardonyx.boundary import public
from sardonyx.dtypes import from_numpy
from sardonyx.errors import (
    EvaluationError,
    InferenceError,
    InputError,
    OutOfMemoryError,
    SardonyxError,
    UnsupportedError,
)
from sardonyx.graph import Graph, Model, Node, Value
from sardonyx.graph.clone import clone_model
from sardonyx.graph.inline import inline_functions
from sardonyx.graph.sort import sort_graph
from sardonyx.ops.allocate import require_bytes
from sardonyx.ops.catalog import NEWEST_OPSETS, Catalog, canonical_domain, standard
from sardonyx.ops.convert import upgrade_model
from sardonyx.ops.cost import node_work
from sardonyx.ops.fact import Fact, of_array, require_sizes, tensor
from sardonyx.ops.feeds import check_input
from sardonyx.ops.infer import Derivation
from sardonyx.ops.operator import as_outputs, hook_attributes, takes_context
from sardonyx.ops.tolerate import unite_constants
from sardonyx.ops.well_formed import require_well_formed
from sardonyx.ops.work import WORK_LIMIT, elements, require_work
from sardonyx.record import once, record

Observe = Callable[[Value, Any], None]
"""Told of a value, and what it is in this run."""


@record
class Context:
    """What `reference` may ask for beyond its inputs."""

    node: Node
    outputs: int
    run: Callable[[Graph, Sequence[Any]], list[Any]]
    """Runs a subgraph: values of its inputs -> values of its outputs."""
    random: "Callable[[float | None], np.random.Generator]"
    """A generator for a node's `seed` attribute, or the evaluator's own for None."""
    infer: Callable[[Graph, list[Fact]], list[Fact]]
    """The facts of a subgraph's outputs, given facts of its inputs, from what was made so far."""
    scope: Callable[[], dict[str, Any]] = dict
    """Every value made so far that has a name, by name."""
    work_limit: int = WORK_LIMIT
    """Elementary operations over which a node is refused."""


@public("running the model")
def evaluate(
    model: Model, inputs: Mapping[str, Any], outputs: Sequence[str] | None = None
) -> list[Any]:
    """Run a model on the reference implementation; returns its outputs in order.

    >>> import sardonyx as sx
    >>> model = sx.load_text('<ir_version: 10, opset_import: ["": 21]>'
    ...                      'g (float[2] x) => (float[2] y) { y = Add(x, x) }')
    >>> sx.evaluate(model, {"x": np.array([1, 2], np.float32)})[0].tolist()
    [2.0, 4.0]
    """
    return Evaluator(model).run(outputs, inputs)


class Evaluator:
    """A model made ready to run on the reference implementation, any number of times."""

    def __init__(
        self,
        model: Model,
        *,
        catalog: Catalog | None = None,
        seed: int | None = None,
        check_inputs: bool = True,
        work_limit: int = WORK_LIMIT,
    ) -> None:
        if model.graph is None:
            raise UnsupportedError("the model has no graph", hint="the file is empty or damaged")
        self.operators = standard() if catalog is None else catalog
        _require_known_opsets(model, self.operators)
        require_well_formed(model, self.operators)
        self.model = clone_model(model)
        upgrade_model(self.model, None, self.operators)
        inline_functions(self.model)
        require_well_formed(self.model, self.operators)
        assert self.model.graph is not None
        self.graph = self.model.graph
        unite_constants(self.graph)
        sort_graph(self.graph)
        for node in self.graph.all_nodes():
            self._operator(node)
        self._seed = seed
        self._work_limit = work_limit
        self._fitting: dict[Node, Any] = {}
        self._check = check_input if check_inputs else _accept

    def run(
        self,
        outputs: Sequence[str] | None,
        inputs: Mapping[str, Any],
        *,
        observe: Observe | None = None,
    ) -> list[Any]:
        """Run once. `observe` is told of every value with what it is, those in subgraphs too."""
        values = self._bind(inputs)
        wanted = self._outputs(outputs)
        if observe is not None:
            for value, item in values.items():
                observe(value, item)
        with np.errstate(all="ignore"):
            self._run_nodes(self.graph, values, observe)
        return [self._get(value, values, "the graph's outputs") for value in wanted]

    def _outputs(self, names: Sequence[str] | None) -> list[Value]:
        if names is None:
            return list(self.graph.outputs)
        known = {value.name: value for value in self.graph.values()}
        missing = [name for name in names if name not in known]
        if missing:
            have = ", ".join(value.name for value in self.graph.outputs)
            raise InputError(f"the model has no output '{missing[0]}'", hint=f"it has: {have}")
        return [known[name] for name in names]

    def _bind(self, inputs: Mapping[str, Any]) -> dict[Value, Any]:
        values: dict[Value, Any] = {
            value: value.tensor.numpy()
            for value in self.graph.initializers
            if value.tensor is not None
        }
        formals = {value.name: value for value in self.graph.inputs}
        overridable = {value.name: value for value in self.graph.initializers}
        for name, given in inputs.items():
            value = formals.get(name) or overridable.get(name)
            if value is None:
                raise InputError(
                    f"the model has no input '{name}'", hint=f"its inputs are: {', '.join(formals)}"
                )
            values[value] = self._check(value, given)
        missing = [name for name, value in formals.items() if value not in values]
        if missing:
            value = formals[missing[0]]
            raise InputError(f"input '{value.name}' is missing", hint=f"feed a {value.type}")
        return values

    def _run_nodes(self, graph: Graph, values: dict[Value, Any], observe: Observe | None) -> None:
        for node in graph.nodes:
            results = self.run_node(node, values, observe)
            for value, result in zip(node.outputs, results, strict=False):
                values[value] = result
                if observe is not None:
                    observe(value, result)

    def run_node(
        self, node: Node, values: dict[Value, Any], observe: Observe | None = None
    ) -> tuple[Any, ...]:
        """One node's outputs, given what its inputs and the values its subgraphs capture are."""
        operator = self._operator(node)
        hook = self._hook(operator)
        if hook is None:
            raise UnsupportedError(f"{node.where()} has no reference implementation")
        arguments = [
            None if item is None else self._get(item, values, node.where()) for item in node.inputs
        ]
        extra: dict[str, Any] = {}
        if takes_context(hook):
            extra["context"] = Context(
                node,
                len(node.outputs),
                lambda graph, given: self._run_graph(graph, given, values, observe),
                self._generator,
                lambda graph, given: self._infer_graph(graph, given, values),
                lambda: {value.name: item for value, item in values.items() if value.name},
                self._work_limit,
            )
        try:
            attributes = hook_attributes(node, operator)
            self._require_fit(node, operator, arguments, attributes)
            return as_outputs(hook(*arguments, **attributes, **extra))
        except SardonyxError as error:
            if error.where:
                raise
            raise type(error)(error.what, where=node.where(), hint=error.hint) from error
        except MemoryError as error:
            raise OutOfMemoryError(
                f"there is not enough memory: {error}", where=node.where(),
                hint="use smaller inputs, or allow the process more memory",
            ) from error  # fmt: skip
        except Exception as error:
            shapes = ", ".join(_describe(item) for item in arguments)
            raise EvaluationError(
                f"{type(error).__name__}: {error}", where=f"{node.where()} with inputs {shapes}"
            ) from error

    def _require_fit(
        self, node: Node, operator: Any, arguments: list[Any], attributes: dict[str, Any]
    ) -> None:
        """An error where inference says that tensors do not fit; NumPy would broadcast some.

        The same where the node would do more than the limit allows.
        """
        hook = operator.infer
        tensors = all(
            value is None if item is None else isinstance(item, np.ndarray)
            for value, item in zip(node.inputs, arguments, strict=True)
        )
        if hook is None or not tensors:
            return
        key: tuple[Any, ...] = tuple(
            [None if item is None else (item.dtype, item.shape) for item in arguments]
        )
        if self._fitting.get(node) == key or takes_context(hook):
            return
        facts = [None if item is None else tensor(from_numpy(item.dtype), item.shape)
                 for item in arguments]  # fmt: skip
        made = _require_results(hook, facts, attributes)
        if None in made:
            known = [None if item is None else of_array(item) for item in arguments]
            key = (*key, *[_content(fact) for fact in known])
            if self._fitting.get(node) == key:
                return
            made = _require_results(hook, known, attributes)
        self._require_work(node, arguments, made)
        self._fitting[node] = key

    def _require_work(
        self, node: Node, arguments: list[Any], made: list[tuple[int, ...] | None]
    ) -> None:
        read = [None if item is None else item.shape for item in arguments]
        told = [shape for shape in (*read, *made) if shape is not None]
        work = node_work(node, list(read), list(made)) + elements(told)
        require_work("the node", work, self._work_limit)

    def _run_graph(
        self,
        graph: Graph,
        given: Sequence[Any],
        values: dict[Value, Any],
        observe: Observe | None,
    ) -> list[Any]:
        for value in graph.initializers:
            if value.tensor is not None:
                values[value] = value.tensor.numpy()
        for value, item in zip(graph.inputs, given, strict=False):
            values[value] = item
            if observe is not None:
                observe(value, item)
        self._run_nodes(graph, values, observe)
        return [
            self._get(value, values, f"the outputs of subgraph '{graph.name}'")
            for value in graph.outputs
        ]

    def _infer_graph(self, graph: Graph, given: list[Fact], values: dict[Value, Any]) -> list[Fact]:
        """What is known of a subgraph's outputs before it has run; nothing where it is refused."""
        walk = Derivation(self.model, self.operators)
        for value in graph.captured():
            item = self._known(value, values)
            if isinstance(item, np.ndarray):
                walk.facts[value] = of_array(item)
        try:
            return walk.graph(graph, given)
        except InferenceError:
            return [Fact() for _ in graph.outputs]

    def _known(self, value: Value, values: dict[Value, Any]) -> Any:
        """What a value is that a subgraph captures, if it is at hand."""
        return values.get(value)

    def _get(self, value: Value, values: dict[Value, Any], where: str) -> Any:
        try:
            return values[value]
        except KeyError:
            raise EvaluationError(
                f"'{value.name}' is used but nothing makes it", where=where, hint="check the model"
            ) from None

    def _hook(self, operator: Any) -> Any:
        """How an operator is run."""
        return operator.reference

    def _operator(self, node: Node) -> Any:
        operator = self.operators.get((canonical_domain(node.domain), node.op_type))
        if operator is None:
            domain = canonical_domain(node.domain) or "ai.onnx"
            raise UnsupportedError(
                f"operator {node.op_type} of domain '{domain}' is not known",
                where=node.where(),
                hint="check its spelling and domain, or register it as a custom operator",
            )
        return operator

    @once
    def _random(self) -> "np.random.Generator":
        return np.random.default_rng(self._seed)

    def _generator(self, seed: float | None) -> "np.random.Generator":
        if seed is None:
            return self._random
        return np.random.default_rng(np.float64(seed).view(np.uint64))


def _require_known_opsets(model: Model, operators: Catalog) -> None:
    for domain, version in model.opsets.items():
        newest = NEWEST_OPSETS.get(canonical_domain(domain))
        if newest is not None and version > newest:
            raise UnsupportedError(
                f"the model needs version {version} of '{domain or 'ai.onnx'}'",
                hint=f"{newest} is the newest known here; update sardonyx, or export for {newest}",
            )


def _require_results(
    hook: Any, facts: list[Any], attributes: dict[str, Any]
) -> list[tuple[int, ...] | None]:
    """The results' shapes, None where contents decide; an error where inference refuses or
    they are too large."""
    shapes: list[tuple[int, ...] | None] = []
    try:
        for result in as_outputs(hook(*facts, **attributes)):
            require_sizes(result)
            if not isinstance(result, Fact) or not result.is_tensor:
                continue
            sizes = tuple(size for size in result.shape or () if isinstance(size, int))
            told = result.shape is not None and len(sizes) == len(result.shape)
            shapes.append(sizes if told else None)
            require_bytes(sizes, np.dtype(np.int8) if result.dtype is None else result.dtype.numpy)
    except InferenceError as error:
        raise EvaluationError(error.what, hint=error.hint) from error
    return shapes


def _content(fact: Any) -> bytes | None:
    """What is known of an array's elements, to compare."""
    value = None if fact is None else fact.value
    return None if value is None or value.dtype == object else value.tobytes()


def _accept(value: Value, given: Any) -> Any:
    return given


def _describe(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    return "-" if value is None else type(value).__name__
