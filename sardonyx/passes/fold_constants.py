"""y = Add(constant, constant) -> a constant y, by each operator's own reference."""

import math
from typing import Any

import numpy as np

from sardonyx.errors import SardonyxError
from sardonyx.format.pages import let_go
from sardonyx.graph import Graph, Model, Node, Opsets, Tensor, TensorType, Value
from sardonyx.graph.clone import clone_node
from sardonyx.graph.collect import disband
from sardonyx.ops.catalog import Catalog
from sardonyx.ops.evaluate import Evaluator, Observe
from sardonyx.ops.fact import to_type
from sardonyx.passes.remove_dead import drop_constants
from sardonyx.passes.repeats import compact
from sardonyx.passes.unit import Unit, drop_unused, graph_of, refers

_KEPT = frozenset({"Constant", "DequantizeLinear", "ImageDecoder"})
"""Never folded: what is a constant already, what keeps weights small, what depends on libraries."""
_BOUNDED = frozenset({"NonZero", "Unique", "Compress", "NonMaxSuppression"})
"""Results of a size that only a run tells, but never much larger than the inputs."""


def fold_constants(unit: Unit) -> bool:
    """Compute what depends on constants alone, unless that would make the model much larger."""
    changed = False
    batches = _batches(unit, _foldable(unit))
    for nodes in batches:
        changed |= _fold(unit, nodes)
        if len(batches) > 1:
            drop_unused(nodes)
            for part in unit.graph.walk():
                drop_constants(part)
    return changed


def _batches(unit: Unit, nodes: list[Node]) -> list[list[Node]]:
    """Nodes in order, cut where what they were computed from should be let go first."""
    batches: list[list[Node]] = []
    room = 0
    kept = set(_read_outside(nodes))
    for node in nodes:
        if room <= 0:
            batches.append([])
            room = unit.slack
        batches[-1].append(node)
        room -= _taken(unit, node, kept)
    return batches


def _taken(unit: Unit, node: Node, kept: set[Value]) -> int:
    """Bytes that a node's results take: views only where kept, and no more than they look at."""
    made = sum(_bytes(unit, value) or 0 for value in node.outputs)
    operator = unit.operator(node)
    if operator is None or operator.view is None:
        return made
    read = sum(_bytes(unit, value) or 0 for value in node.inputs)
    return 0 if kept.isdisjoint(node.outputs) else min(made, read)


def _bytes(unit: Unit, value: Value | None) -> int | None:
    """Bytes that a value takes, where that is known."""
    fact = unit.fact(value)
    if not fact.is_tensor or fact.dtype is None or fact.shape is None:
        return None
    sizes = [size for size in fact.shape if isinstance(size, int)]
    return None if len(sizes) < len(fact.shape) else fact.dtype.raw_size(math.prod(sizes))


def _fold(unit: Unit, nodes: list[Node]) -> bool:
    wanted = _read_outside(nodes)
    known = evaluate_nodes(unit, nodes)
    changed = False
    for value in wanted:
        if value in known:
            changed |= replace_by_constant(unit, value, known[value])
    return changed


def _read_outside(nodes: list[Node]) -> list[Value]:
    """What nodes make that others read."""
    inside = set(nodes)
    return [
        value
        for node in nodes
        for value in node.outputs
        if any(user not in inside for user, _ in value.uses)
    ]


def replace_by_constant(unit: Unit, value: Value, array: Any) -> bool:
    """Let a constant take the place of what a node makes; a graph's result stays a node."""
    node = value.producer
    assert node is not None
    graph = graph_of(node)
    fact = unit.fact(value)
    tensor = Tensor(array, value.name, dtype=fact.dtype)
    if value.is_output:
        if len(node.outputs) > 1 or node.op_type in ("Constant", "Identity"):
            return False
        node.set_inputs(())
        node.op_type, node.domain, node.attributes = "Constant", "", {}
        node.set_attribute("value", tensor)
        return True
    name, value.name = value.name, ""
    unit.names.release(name)
    constant = unit.add_constant(graph, tensor, name or "constant", node)
    value.replace_all_uses(constant)
    unit.facts[constant] = fact
    if not any(item.uses for item in node.outputs):
        graph.nodes.remove(node)
    elif name:
        value.name = unit.names.fresh(f"{name}/unused")
    return True


def _foldable(unit: Unit) -> list[Node]:
    found: list[Node] = []
    made: set[Value] = set()
    for node in unit.nodes():
        if not node.inputs or node.op_type in _KEPT or refers(node) or any(node.subgraphs):
            continue
        inputs = [value for value in node.inputs if value is not None]
        if not inputs or not all(value in made or unit.is_constant(value) for value in inputs):
            continue
        operator = unit.operator(node)
        if operator is None or operator.reference is None or operator.random:
            continue
        if _growth(unit, node, made) <= unit.options.fold_limit:
            found.append(node)
            made.update(node.outputs)
    return found


def _growth(unit: Unit, node: Node, made: set[Value]) -> float:
    """By how many bytes the model grows with a node's results in place of the node."""
    freed = sum(
        value.tensor.nbytes
        for value in dict.fromkeys(node.inputs)
        if value is not None and value.tensor is not None and value.users == (node,)
    )
    if node.op_type in _BOUNDED:
        return 0
    total = 0
    for value in node.outputs:
        if not value.uses and not value.name:
            continue
        size = _bytes(unit, value)
        if size is None:
            return math.inf
        total += size
    return total - freed


def evaluate_nodes(unit: Unit, nodes: list[Node]) -> dict[Value, Any]:
    """What nodes that read constants and one another make for others; what fails is left out."""
    known: dict[Value, Any] = {}
    waiting = [nodes]
    while waiting:
        batch = waiting.pop()
        try:
            known |= _evaluate(unit, batch, known)
        except (SardonyxError, MemoryError):
            middle = len(batch) // 2
            if middle:
                waiting += [batch[middle:], batch[:middle]]
    return known


class _Folding(Evaluator):
    """Runs operators on views where that will do, and lets go what has been read."""

    def __init__(self, model: Model, catalog: Catalog) -> None:
        super().__init__(model, catalog=catalog)
        self._left = {value: len(value.users) for value in self.graph.values()}

    def _hook(self, operator: Any) -> Any:
        return operator.view or operator.reference

    def run_node(
        self, node: Node, values: dict[Value, Any], observe: Observe | None = None
    ) -> tuple[Any, ...]:
        """One node's outputs; what only it had still to read is let go."""
        made = super().run_node(node, values, observe)
        for value in dict.fromkeys(node.inputs) if node.graph is self.graph else ():
            if value is not None:
                self._left[value] -= 1
                if not self._left[value] and isinstance(item := values.pop(value), np.ndarray):
                    let_go(item)
        return made


def _evaluate(unit: Unit, nodes: list[Node], known: dict[Value, Any]) -> dict[Value, Any]:
    graph = Graph("constants")
    values: dict[Value, Value] = {}
    inside = {value for node in nodes for value in node.outputs}
    for node in nodes:
        for value in node.inputs:
            if value is None or value in values or value in inside:
                continue
            array = known.get(value) if value in known else unit.array(value)
            if array is None:
                raise SardonyxError(f"'{value.name}' is not known")
            tensor = Tensor(array, dtype=unit.dtype(value))
            values[value] = graph.add_initializer(tensor, f"c{len(values)}")
    for node in nodes:
        for value in node.outputs:
            name = f"v{len(values)}" if value.name or value.uses else ""
            values[value] = Value(name, to_type(unit.fact(value)))
        graph.nodes.append(clone_node(node, values))
    names = {values[value].name: value for value in _read_outside(nodes)}
    model = Model(graph, Opsets(unit.opsets), ir_version=10)
    found: dict[Value, Any] = {}

    def observe(value: Value, item: Any) -> None:
        original = names.get(value.name)
        if original is not None and isinstance(item, np.ndarray | np.generic):
            found[original] = compact(np.asarray(item))

    evaluator = _Folding(model, unit.catalog)
    evaluator.run([], {}, observe=observe)
    disband(model)
    disband(evaluator.model)
    for value, array in found.items():
        expected = to_type(unit.fact(value))
        if isinstance(expected, TensorType) and expected.shape is not None:
            assert len(expected.shape) == array.ndim, f"'{value.name}' has another rank"
    return found
