"""y = Add(constant, constant) -> a constant y, by each operator's own reference."""

import math
from typing import Any

import numpy as np

from sardonyx.errors import SardonyxError
from sardonyx.graph import Graph, Model, Node, Opsets, Tensor, TensorType, Value
from sardonyx.graph.clone import clone_node
from sardonyx.ops.evaluate import Evaluator
from sardonyx.ops.fact import to_type
from sardonyx.passes.remove_dead import drop_constants
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
    for node in nodes:
        if room <= 0:
            batches.append([])
            room = unit.slack
        batches[-1].append(node)
        if (operator := unit.operator(node)) is None or operator.repeat is None:
            room -= sum(_bytes(unit, value) or 0 for value in node.outputs)
    return batches


def _bytes(unit: Unit, value: Value) -> int | None:
    """Bytes that a value takes, where that is known."""
    fact = unit.fact(value)
    if not fact.is_tensor or fact.dtype is None or fact.shape is None:
        return None
    sizes = [size for size in fact.shape if isinstance(size, int)]
    return None if len(sizes) < len(fact.shape) else fact.dtype.raw_size(math.prod(sizes))


def _fold(unit: Unit, nodes: list[Node]) -> bool:
    inside = set(nodes)
    wanted = [
        value
        for node in nodes
        for value in node.outputs
        if any(user not in inside for user, _ in value.uses)
    ]
    known = evaluate_nodes(unit, nodes)
    changed = False
    for value in wanted:
        if value in known:
            changed |= replace_by_constant(unit, value, known[value])
    return changed


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
    """What nodes that read constants and one another make; those that fail are left out."""
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
    """Runs operators so that elements which repeat lie in memory once."""

    def _hook(self, operator: Any) -> Any:
        return operator.repeat or operator.reference


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
    names: dict[str, Value] = {}
    for node in nodes:
        for value in node.outputs:
            name = f"v{len(names)}" if value.name or value.uses else ""
            values[value] = Value(name, to_type(unit.fact(value)))
            if name:
                names[name] = value
        graph.nodes.append(clone_node(node, values))
    model = Model(graph, Opsets(unit.opsets), ir_version=10)
    found: dict[Value, Any] = {}

    def observe(value: Value, item: Any) -> None:
        original = names.get(value.name)
        if original is not None and isinstance(item, np.ndarray | np.generic):
            found[original] = np.asarray(item)

    evaluator = _Folding(model, catalog=unit.catalog)
    evaluator.run([], {}, observe=observe)
    for part in (graph, evaluator.graph):  # graphs are cycles: what they hold would stay for long
        for value in part.initializers:
            value.tensor = None
    for value, array in found.items():
        expected = to_type(unit.fact(value))
        if isinstance(expected, TensorType) and expected.shape is not None:
            assert len(expected.shape) == array.ndim, f"'{value.name}' has another rank"
    return found
