"""Subgraphs of control flow as programs of their own."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sardonyx.compiler.watch import Checkpoint
from sardonyx.dims import HIDDEN
from sardonyx.errors import InputError, SardonyxError
from sardonyx.graph import Graph, Model, Opsets, Tensor, Value
from sardonyx.graph.clone import Values, clone_graph
from sardonyx.ops.catalog import NEWEST_OPSETS
from sardonyx.ops.evaluate import Evaluator, Observe
from sardonyx.ops.fact import Fact, to_type


class Runnable(Protocol):
    """What was made of a model."""

    def run(self, feeds: Mapping[str, Any]) -> list[Any]:
        """The outputs for a value of each input."""
        ...


@dataclass(frozen=True, eq=False)
class Body:
    """A subgraph's program; what it captures is fed after its own inputs."""

    program: Runnable | None
    captured: tuple[Value, ...]


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
        if isinstance(observe, Checkpoint):
            observe.check()
        looks = observe is not None and not isinstance(observe, Checkpoint)
        if body.program is None or looks or len(given) != len(graph.inputs):
            return super()._run_graph(graph, given, values, observe)
        fed = [*given, *(self._get(value, values, graph.name) for value in body.captured)]
        try:
            return body.program.run({f"{place}": item for place, item in enumerate(fed)})
        except InputError:
            return super()._run_graph(graph, given, values, observe)

    def _body(self, graph: Graph) -> Body:
        outer = graph.captured()
        copies: Values = {}
        captured = tuple(value for value in outer if value not in self.constants)
        for value in outer:
            copies[value] = Value(value.name, self._declared(value))
            if value in self.constants:
                copies[value].tensor = Tensor(self.constants[value], value.name)
        twin = clone_graph(graph, copies)
        twin.initializers += [copies[value] for value in outer if value in self.constants]
        twin.inputs += [copies[value] for value in captured]
        for place, value in enumerate([*graph.inputs, *captured]):
            copies[value].name = f"{place}"
            copies[value].declared = self._declared(value)
        model = Model(twin, Opsets(dict(NEWEST_OPSETS)), ir_version=self.model.ir_version)
        try:
            return Body(self.compile(model), captured)
        except SardonyxError:
            return Body(None, captured)

    def _declared(self, value: Value) -> Any:
        fact = self.facts.get(value)
        return value.declared if fact is None else to_type(fact, HIDDEN) or value.declared
