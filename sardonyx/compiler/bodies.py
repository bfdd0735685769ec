"""Subgraphs of control flow as programs of their own."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from sardonyx.compiler.watch import Checkpoint, Watch
from sardonyx.dims import HIDDEN
from sardonyx.errors import InputError, SardonyxError
from sardonyx.graph import Graph, Model, Opsets, Tensor, TensorType, Value
from sardonyx.graph.clone import Values, clone_graph
from sardonyx.graph.names import Names
from sardonyx.ops.catalog import NEWEST_OPSETS
from sardonyx.ops.evaluate import Evaluator, Observe
from sardonyx.ops.fact import Fact, to_type
from sardonyx.passes.pipeline import optimize
from sardonyx.record import entity


class Runnable(Protocol):
    """What was made of a model."""

    def run(self, feeds: Mapping[str, Any], watch: Watch | None = None) -> list[Any]:
        """The outputs for a value of each input."""
        ...


MOST_SHAPES = 4
"""Sets of shapes for which a subgraph with others inside gets a program of its own."""
Shape = tuple[int | None, ...]


@entity
class Body:
    """A subgraph's programs; what it captures is fed after its own inputs.

    There is one for all ranks that inputs in `open` places were fed with. Where subgraphs lie
    inside, the first shapes that are fed get one each, since those often tell which branch runs.
    """

    captured: tuple[Value, ...]
    names: tuple[str, ...]
    """What its programs call their inputs: names that nothing else in them has."""
    open: tuple[int, ...]
    nested: bool
    programs: dict[tuple[Shape | None, ...], Runnable | None]

    def shapes(self, fed: Sequence[Any]) -> tuple[Shape | None, ...]:
        """The shapes that the program for these inputs knows, None where it was told enough."""
        if self.nested:
            whole = tuple([np.shape(item) for item in fed])
            if whole in self.programs or len(self.programs) < MOST_SHAPES:
                return whole
        found: list[Shape | None] = [None] * len(fed)
        for place in self.open:
            found[place] = (None,) * np.ndim(fed[place])
        return tuple(found)


class BodyEvaluator(Evaluator):
    """Runs nodes by their reference, and their subgraphs as programs."""

    facts: dict[Value, Fact]
    constants: dict[Value, Any]
    compile: Callable[[Model], Runnable]

    def prepare(
        self, facts: dict[Value, Fact], constants: dict[Value, Any],
        compile: Callable[[Model], Runnable],
    ) -> None:  # fmt: skip
        """Say what is known of values, and how a subgraph becomes a program."""
        self.facts, self.constants, self.compile = facts, constants, compile
        self._bodies: dict[Graph, Body] = {}

    def _run_graph(
        self, graph: Graph, given: Sequence[Any], values: dict[Value, Any],
        observe: Observe | None,
    ) -> list[Any]:  # fmt: skip
        body = self._bodies.get(graph)
        if body is None:
            body = self._bodies[graph] = self._body(graph)
        watch = observe if isinstance(observe, Checkpoint) else None
        if watch is not None:
            watch.check()
        if (observe is not None and watch is None) or len(given) != len(graph.inputs):
            return super()._run_graph(graph, given, values, observe)
        fed = [*given, *[self._get(value, values, graph.name) for value in body.captured]]
        shapes = body.shapes(fed)
        if shapes not in body.programs:
            body.programs[shapes] = self._program(graph, body, shapes)
        program = body.programs[shapes]
        if program is None:
            return super()._run_graph(graph, given, values, observe)
        try:
            return program.run(dict(zip(body.names, fed, strict=True)), watch)
        except InputError:
            return super()._run_graph(graph, given, values, observe)

    def _known(self, value: Value, values: dict[Value, Any]) -> Any:
        return self.constants.get(value) if value in self.constants else values.get(value)

    def _body(self, graph: Graph) -> Body:
        captured = tuple(value for value in graph.captured() if value not in self.constants)
        types = [self._declared(value) for value in [*graph.inputs, *captured]]
        unknown = [isinstance(type_, TensorType) and type_.shape is None for type_ in types]
        tensors = all(isinstance(type_, TensorType) for type_ in types)
        nested = tensors and any(True for node in graph.nodes for _ in node.subgraphs)
        names = Names(graph, around=False)
        fresh = tuple(names.fresh(f"{place}") for place in range(len(types)))
        return Body(captured, fresh, tuple(np.flatnonzero(unknown).tolist()), nested, {})

    def _program(self, graph: Graph, body: Body, shapes: Sequence[Shape | None]) -> Runnable | None:
        """A program for inputs of which some shapes are known."""
        outer = graph.captured()
        copies: Values = {}
        for value in outer:
            copies[value] = Value(value.name, self._declared(value))
            if value in self.constants:
                copies[value].tensor = Tensor(self.constants[value], value.name)
        twin = clone_graph(graph, copies)
        twin.inputs += [copies[value] for value in body.captured]
        inputs = [*graph.inputs, *body.captured]
        for value, name, shape in zip(inputs, body.names, shapes, strict=True):
            copies[value].name = name
            copies[value].declared = type_ = self._declared(value)
            if shape is not None and isinstance(type_, TensorType):
                copies[value].declared = type_.with_shape(shape)
        names = Names(twin)
        for value in outer:
            if value in self.constants:
                copies[value].name = names.fresh(value.name)
                twin.initializers.append(copies[value])
        model = Model(twin, Opsets(dict(NEWEST_OPSETS)), ir_version=self.model.ir_version)
        try:
            return self.compile(optimize(model))
        except SardonyxError:
            return None

    def _declared(self, value: Value) -> Any:
        fact = self.facts.get(value)
        return value.declared if fact is None else to_type(fact, HIDDEN) or value.declared
