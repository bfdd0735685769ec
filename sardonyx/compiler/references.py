"""A program's nodes that run their reference between kernels."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sardonyx.compiler.bodies import BodyEvaluator, Runnable
from sardonyx.compiler.reference import read_values, run_reference
from sardonyx.compiler.watch import Watch
from sardonyx.graph import Model
from sardonyx.ops.catalog import Catalog


class References:
    """The nodes of a graph that has only such; their subgraphs become programs.

    `constants` has, for each node by its number, what it reads and knows beforehand, else None.
    """

    def __init__(
        self, model: Model, catalog: Catalog | None, seed: int | None,
        constants: Mapping[int, Sequence[Any]], compile_body: Callable[[Model], Runnable],
        work_limit: int,
    ) -> None:  # fmt: skip
        self._evaluator = BodyEvaluator(model, catalog=catalog, seed=seed, work_limit=work_limit)
        self._nodes = list(self._evaluator.graph.nodes)
        self._reads = [read_values(node) for node in self._nodes]
        known = {
            value: item
            for number, items in constants.items()
            for value, item in zip(self._reads[number], items, strict=True)
            if item is not None
        }
        self._evaluator.prepare({}, known, compile_body)

    def run(self, number: int, given: Sequence[Any], watch: Watch | None) -> Sequence[Any]:
        """The outputs of a node for what it reads."""
        node = self._nodes[number]
        values = dict(zip(self._reads[number], given, strict=True))
        if watch is None:
            return run_reference(self._evaluator, node, values)
        with watch.during(node):
            return run_reference(self._evaluator, node, values, watch.checkpoint)
