"""Infer types, shapes and small values through a model."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from sardonyx.boundary import public
from sardonyx.dims import HIDDEN, Expression, Size, symbol
from sardonyx.dtypes import DataType
from sardonyx.errors import InferenceError, SardonyxError
from sardonyx.graph import Function, Graph, Model, Node, SequenceType, Tensor, Value
from sardonyx.graph.calls import bound_attributes, call_key
from sardonyx.graph.clone import Values, clone_graph, clone_model
from sardonyx.graph.inline import drop_absent
from sardonyx.ops.call_facts import Remembered, Signature, call_signature, symbols_of
from sardonyx.ops.catalog import Catalog, canonical_domain, standard
from sardonyx.ops.convert import needs_upgrade, upgrade_model
from sardonyx.ops.fact import (
    ASSUMED,
    LARGEST_VALUE,
    Assumptions,
    Fact,
    from_type,
    merge,
    of_array,
    require_sizes,
    to_type,
    without_shape,
)
from sardonyx.ops.operator import Operator, as_outputs, hook_attributes, takes_context
from sardonyx.record import record


@record
class InferContext:
    """What `infer` may ask for beyond its inputs: the number of outputs, and subgraphs."""

    node: Node
    outputs: int
    infer: Callable[[Graph, list[Fact]], list[Fact]]
    """The facts of a subgraph's outputs, given facts of its inputs."""


@public("inferring shapes")
def infer_shapes(model: Model, *, strict: bool = False, catalog: Catalog | None = None) -> Model:
    """A copy of `model` with a type on every value that one could be inferred for.

    With `strict`, a contradiction raises with the node and both shapes; else it is passed over.

    >>> import sardonyx as sx
    >>> model = sx.load_text('<ir_version: 10, opset_import: ["": 21]>'
    ...                      'g (float[n,3] x) => (y) { y = Concat<axis = 0>(x, x) }')
    >>> print(sx.infer_shapes(model).graph.outputs[0].type)
    float[2*n,3]
    """
    twin = clone_model(model)
    facts = infer_facts(twin, strict=strict, catalog=catalog)
    for graph in twin.graphs():
        for value in [*graph.inputs, *(item for node in graph.nodes for item in node.outputs)]:
            fact = facts.get(value)
            inferred = None if fact is None else to_type(fact, HIDDEN)
            if inferred is not None and value.name and value.declared != inferred:
                value.declared = inferred
    return twin


def infer_facts(
    model: Model, *, strict: bool = False, catalog: Catalog | None = None
) -> dict[Value, Fact]:
    """What is known of every value of a model, whatever its opset version."""
    return infer_all(model, strict=strict, catalog=catalog)[0]


def infer_all(
    model: Model, *, strict: bool = False, catalog: Catalog | None = None
) -> tuple[dict[Value, Fact], list[InferenceError]]:
    """What is known of every value of a model, and every contradiction that was met."""
    operators = standard() if catalog is None else catalog
    if not needs_upgrade(model, operators):
        inference = Inference(model, operators, strict=strict)
        inference.run()
        return inference.facts, inference.findings
    values: Values = {}
    twin = clone_model(model, values)
    inference = Inference(twin, operators, strict=strict)
    upgrade_model(twin, None, operators, failed=inference.give_up)
    inference.run()
    facts = {old: inference.facts[new] for old, new in values.items() if new in inference.facts}
    return facts, inference.findings


def type_string(fact: Fact) -> str | None:
    """A fact's type in the form signatures use, without the shape.

    >>> from sardonyx.ops.fact import tensor
    >>> type_string(tensor(DataType.INT64, (2,)))
    'tensor(int64)'
    """
    if not fact.is_tensor:
        return _container_string(fact.type)
    return None if fact.dtype is None else f"tensor({fact.dtype.text})"


def _container_string(type_: Any) -> str | None:
    from sardonyx.graph import MapType, OptionalType, SparseTensorType

    if isinstance(type_, SequenceType | OptionalType):
        inner = None if type_.element is None else type_string(from_type(type_.element))
        head = "seq" if isinstance(type_, SequenceType) else "optional"
        return inner and f"{head}({inner})"
    if isinstance(type_, MapType) and isinstance(type_.key, DataType):
        inner = None if type_.value is None else type_string(from_type(type_.value))
        inner = inner[7:-1] if inner and inner.startswith("tensor(") else inner
        return inner and f"map({type_.key.text}, {inner})"
    if isinstance(type_, SparseTensorType) and isinstance(type_.element, DataType):
        return f"sparse_tensor({type_.element.text})"
    return None


@record
class _Frame:
    """A graph that is being walked; where it is a function's body, for which call."""

    graph: Graph
    nodes: Iterator[Node]
    call: Node | None = None
    function: Function | None = None
    signature: Signature = ()
    names: int = 0
    """How many names had been made up before."""


class Inference:
    """One walk through a model whose operators are all of the newest version.

    A function's body is walked once for each signature: what its inputs and attributes are. Bodies
    that call one another are a list and no recursion, since chains of calls may be long.
    """

    longest: ClassVar[int] = 100
    """Sizes written with more names and operations than this get a name of their own."""
    least_work: ClassVar[int] = 50_000
    work_per_node: ClassVar[int] = 64
    """Bodies are followed until this much was looked at: so many nodes and values in any model,
    and so many for each of its own. Loops in loops, and functions of functions, have no end."""
    deepest: ClassVar[int] = 50
    """Graphs inside of nodes are followed no deeper than this."""
    trusting: ClassVar[bool] = True
    """Whether what a model declares of a node's outputs is believed beyond element types.

    A model may declare a shape that its nodes do not give: what decides results must derive it.
    """

    def __init__(self, model: Model, operators: Catalog, *, strict: bool = False) -> None:
        self.model = model
        self.operators = operators
        self.strict = strict
        self.facts: dict[Value, Fact] = {}
        self.findings: list[InferenceError] = []
        self.refused: dict[Node, InferenceError] = {}
        """Nodes of which nothing could be inferred, since they break their operator's rules."""
        self.assumed: dict[Node, Assumptions] = {}
        """Sizes that nodes need to be equal and that only a run tells."""
        self._functions = {function.key: function for function in model.functions}
        self._made_up = 0
        self._short: dict[Size, Size] = {}
        self._given_up: set[Node] = set()
        self._followed: dict[Signature, Remembered | None] = {}
        """What came of calls; None while their bodies are being walked."""
        self._used: set[Signature] = set()
        self._active: set[Function] = set()
        self._depth = 0
        self._work = 0
        extent = sum(map(_extent, model.graphs()))
        self._most_work = max(self.least_work, self.work_per_node * extent)

    def give_up(self, node: Node, error: SardonyxError) -> None:
        """Note that a node could not be brought to the newest version: its outputs are unknown."""
        self._given_up.add(node)
        self._report(node, InferenceError(error.what, hint=error.hint))

    def run(self) -> None:
        """Infer the main graph."""
        graph = self.model.graph
        if graph is not None:
            self.formals(graph)
            self.graph(graph)

    def formals(self, graph: Graph) -> None:
        """Note what the inputs of the main graph are declared to be."""
        constants = {value for value in graph.initializers if self.model.ir_version < 4}
        for value in graph.inputs:
            if value not in constants:
                self.facts[value] = self.named(from_type(value.declared))

    def constants(self, graph: Graph) -> None:
        """Note what a graph's constants are, unless a caller may give others."""
        formals = set(graph.inputs)
        for value in graph.initializers:
            if value in formals and value in self.facts:
                self.facts[value] = replace(self.facts[value], value=None)
            elif value.tensor is not None:
                self.facts[value] = constant_fact(value.tensor)

    def graph(self, graph: Graph, inputs: list[Fact] | None = None) -> list[Fact]:
        """Infer one graph; returns what is known of its outputs."""
        if self._depth > self.deepest:
            raise InferenceError(f"more than {self.deepest} graphs lie inside one another")
        if self._depth:
            self._charge(graph)
        frames = [self._enter(_Frame(graph, iter(graph.nodes)), inputs)]
        self._depth += 1
        try:
            while True:
                call = self._walk(frames[-1])
                if call is not None:
                    frames.append(call)
                    continue
                frame = frames.pop()
                results = self._leave(frame)
                if not frames:
                    return results
        finally:
            self._depth -= 1
            for frame in frames:
                self._forget(frame)

    def _charge(self, graph: Graph) -> None:
        self._work += _extent(graph)
        if self._work > self._most_work:
            raise InferenceError(
                f"inference has looked at {self._most_work} nodes and values inside of functions, "
                "branches and loops, and follows no more of them",
                hint="functions or loops of this model lie inside one another too often",
            )

    def _enter(self, frame: _Frame, inputs: list[Fact] | None) -> _Frame:
        """Note what a graph begins with."""
        if inputs is not None:
            for value, fact in zip(frame.graph.inputs, inputs, strict=False):
                self.facts[value] = self._merged(fact, value, "input of a subgraph")
        self.constants(frame.graph)
        return frame

    def _walk(self, frame: _Frame) -> _Frame | None:
        """Infer nodes up to a call of a function that must be followed first; None at the end."""
        for node in frame.nodes:
            call = self._call(node)
            if call is not None:
                return call
            self._node(node)
        return None

    def _leave(self, frame: _Frame) -> list[Fact]:
        """What is known of a graph's outputs; a call learns it, too."""
        for value in frame.graph.outputs:
            if value not in self.facts:
                self.facts[value] = self._said(value)
        results = [self.facts[value] for value in frame.graph.outputs]
        if frame.call is not None:
            names = {name for name in symbols_of(results) if _number(name) > frame.names}
            self._forget(frame)
            self._followed[frame.signature] = Remembered(results, frozenset(names))
            self._node(frame.call)
        return results

    def _forget(self, frame: _Frame) -> None:
        """A body is not being walked any more."""
        if frame.function is not None:
            self._active.discard(frame.function)
            if self._followed.get(frame.signature) is None:
                self._followed.pop(frame.signature, None)

    def _node(self, node: Node) -> None:
        facts = self._arguments(node)
        results: tuple[Any, ...] = ()
        try:
            results = self._results(node, facts)
        except InferenceError as error:
            self._report(node, error)
        for value, result in zip(node.outputs, results, strict=False):
            if result is not None:
                self.facts[value] = result
        for value in node.outputs:
            fact = self._merged(self.facts.get(value, Fact()), value, node.where())
            self.facts[value] = self.named(fact)

    def _arguments(self, node: Node) -> list[Fact | None]:
        return [None if value is None else self._fact(value) for value in node.inputs]

    def _fact(self, value: Value) -> Fact:
        fact = self.facts.get(value)
        if fact is None:
            fact = self.facts[value] = self._said(value)
        return fact

    def _said(self, value: Value) -> Fact:
        """What the model declares of a value that is not fed, as far as it is believed."""
        return from_type(value.declared if self.trusting else without_shape(value.declared))

    def _results(self, node: Node, facts: list[Fact | None]) -> tuple[Any, ...]:
        function = self._functions.get(call_key(node))
        if function is not None:
            return tuple(self._called(node, function, facts))
        operator = self.operators.get((canonical_domain(node.domain), node.op_type))
        if operator is None or operator.infer is None or node in self._given_up:
            return ()
        return self._operator(node, operator, facts)

    def _operator(
        self, node: Node, operator: type[Operator], facts: list[Fact | None]
    ) -> tuple[Any, ...]:
        assert operator.infer is not None
        extra: dict[str, Any] = {}
        if takes_context(operator.infer):
            extra["context"] = InferContext(node, len(node.outputs), self.graph)
        version = operator.newest()
        if len(facts) < version.input_range[0]:
            raise InferenceError(
                f"there are {len(facts)} inputs, the operator takes at least "
                f"{version.input_range[0]}"
            )
        noted: Assumptions = []
        listening = ASSUMED.set(noted)
        try:
            attributes = hook_attributes(node, operator)
            results = as_outputs(operator.infer(*facts, **attributes, **extra))
        except InferenceError:
            raise
        except SardonyxError as error:
            raise InferenceError(error.what, hint=error.hint) from error
        except Exception as error:
            raise InferenceError(f"inference failed: {type(error).__name__}: {error}") from error
        finally:
            ASSUMED.reset(listening)
        if noted:
            self.assumed[node] = noted
        for result in results:
            require_sizes(result)
        return self._propagate(node, operator, facts, attributes, results)

    def _propagate(
        self, node: Node, operator: type[Operator], facts: list[Fact | None],
        attributes: dict[str, Any], results: tuple[Any, ...],
    ) -> tuple[Any, ...]:  # fmt: skip
        hook = operator.propagate
        if hook is None or operator.random:
            return results
        values = [None if fact is None else fact.value for fact in facts]
        if any(fact is not None and fact.value is None for fact in facts):
            return results
        if any(isinstance(item, Fact) and _too_large(item) for item in results):
            return results
        extra = (
            {"context": InferContext(node, len(node.outputs), self.graph)}
            if takes_context(hook)
            else {}
        )
        try:
            with np.errstate(all="ignore"):
                known = as_outputs(hook(*values, **attributes, **extra))
        except Exception:  # noqa: BLE001 - a value that cannot be followed is simply not known
            return results
        return tuple(
            fact.with_value(np.asarray(value))
            if isinstance(fact, Fact) and value is not None
            else fact
            for fact, value in zip(results, known, strict=False)
        )

    def _needs(self, node: Node) -> bool:
        """True where something of a node is not known yet."""
        return True

    def _call(self, node: Node) -> _Frame | None:
        """The body to follow before a node can be inferred; None where there is nothing to do."""
        function = self._functions.get(call_key(node))
        if function is None or function in self._active or not self._needs(node):
            return None
        facts = self._arguments(node)
        attributes = bound_attributes(node, function)
        signature = call_signature(function, facts, attributes)
        if signature in self._followed:
            return None
        try:
            self._charge(function.graph)
        except InferenceError:
            return None
        body = clone_graph(function.graph, None, attributes)
        given = facts + [None] * (len(body.inputs) - len(facts))
        drop_absent(body, {value for value, fact in zip(body.inputs, given, strict=False)
                           if fact is None})  # fmt: skip
        self._active.add(function)
        self._followed[signature] = None
        frame = _Frame(body, iter(body.nodes), node, function, signature, self._made_up)
        return self._enter(frame, [fact or Fact() for fact in given])

    def _called(self, node: Node, function: Function, facts: list[Fact | None]) -> list[Fact]:
        """What a call gives, which was followed before."""
        signature = call_signature(function, facts, bound_attributes(node, function))
        found = self._followed.get(signature)
        if found is None:
            if function in self._active:
                raise InferenceError(f"function {function.name} calls itself")
            self._charge(function.graph)
            raise InferenceError(f"function {function.name} cannot be followed")
        if signature in self._used:
            return found.renewed(self._fresh)
        self._used.add(signature)
        return found.results

    def _merged(self, fact: Fact, value: Value, where: str) -> Fact:
        if value.declared is None:
            return fact
        try:
            return merge(fact, self._said(value))
        except InferenceError as error:
            problem = InferenceError(
                f"'{value.name}' is declared otherwise than inferred: {error.what}", where=where
            )
            self.findings.append(problem)
            if self.strict:
                raise problem from None
            return fact

    def named(self, fact: Fact) -> Fact:
        """Give sizes that are only known at run time, or are long, names: equal ones stay equal."""
        if fact.shape is not None and any(map(self._needs_name, fact.shape)):
            fact = replace(fact, shape=tuple(map(self._name, fact.shape)))
        value = fact.value
        if value is None or value.dtype != object or not any(map(self._is_long, value.flat)):
            return fact
        items = np.empty(value.size, object)
        items[:] = [self._name(item) if self._is_long(item) else item for item in value.flat]
        return replace(fact, value=items.reshape(value.shape))

    def _needs_name(self, size: Size | None) -> bool:
        return size is None or (size.__class__ is Expression and self._is_long(size))

    def _is_long(self, size: Any) -> bool:
        return isinstance(size, Expression) and size.atoms > self.longest

    def _name(self, size: Size | None) -> Size:
        if size is None:
            return self._fresh()
        if not self._is_long(size):
            return size
        if size not in self._short:
            self._short[size] = self._fresh()
        return self._short[size]

    def _fresh(self) -> Size:
        self._made_up += 1
        return symbol(f"{HIDDEN}{self._made_up}")

    def _report(self, node: Node, error: InferenceError) -> None:
        located = InferenceError(error.what, where=error.where or node.where(), hint=error.hint)
        self.findings.append(located)
        self.refused[node] = located
        if self.strict:
            raise located from error


class Derivation(Inference):
    """Inference that believes of nodes' results only what it derives."""

    trusting = False


def _extent(graph: Graph) -> int:
    """About how much there is to look at in a graph."""
    return 1 + len(graph.nodes) + len(graph.inputs) + len(graph.outputs)


def _number(name: str) -> int:
    """Which name that inference made up this is; 0 for one of the model's."""
    digits = name.removeprefix(HIDDEN)
    made_up = len(digits) < min(len(name), 20) and digits.isdecimal()
    return int(digits) if made_up else 0


def _too_large(fact: Fact) -> bool:
    sizes = [size for size in fact.shape or () if isinstance(size, int)]
    return int(np.prod(sizes, dtype=object)) > LARGEST_VALUE if sizes else False


def constant_fact(tensor: Any) -> Fact:
    """What is known of a constant; its elements only where there are few."""
    fact = from_type(tensor.type)
    if not isinstance(tensor, Tensor) or tensor.element == 0:
        return fact
    try:
        small = tensor.size <= LARGEST_VALUE
        return of_array(tensor.numpy(), tensor.dtype) if small else fact
    except SardonyxError:
        return fact
