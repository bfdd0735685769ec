# mypy: disable-error-code="misc"
"""Transpose(Transpose(x)) -> one Transpose or none; Transpose that moves sizes 1 -> Reshape."""

from dataclasses import replace
from typing import Any

import numpy as np

from sardonyx.graph import Node, Value
from sardonyx.passes.fold_shapes import reshape_target
from sardonyx.passes.operand import Operand
from sardonyx.passes.rules import Rule, apply_rules, because
from sardonyx.passes.unit import Unit, is_operator, producer


class MergeTransposes(Rule):
    """Transpose(Transpose(x, p), q) -> Transpose(x, p[q]), or x where that moves nothing."""

    shared = True
    since = 1

    def pattern(op: Any, x: Any) -> Any:
        return op.Transpose(op.Transpose(x).named("inner")).named("outer")

    def check(inner: Node, outer: Node) -> Any:
        first, second = inner.attribute("perm"), outer.attribute("perm")
        return (first is not None and second is not None) or because("an order is not written out")

    def replace(op: Any, x: Operand, inner: Node, outer: Node) -> Any:
        first, second = inner.attribute("perm"), outer.attribute("perm")
        order = [first[place] for place in second]
        return x if order == sorted(order) else op.Transpose(x, perm=order)


class ReplaceFlatTranspose(Rule):
    """Transpose(x) -> Reshape(x), where only sizes of 1 move and a neighbour is a Reshape."""

    since = 5

    def pattern(op: Any, x: Any) -> Any:
        return op.Transpose(x).named("node")

    def check(x: Operand, node: Node, unit: Unit) -> Any:
        perm, shape = node.attribute("perm"), x.shape
        if perm is None or shape is None:
            return because("the order or the shape is not known")
        large = [axis for axis in perm if shape[axis] != 1]
        if large != sorted(large):
            return because("sizes above 1 move")
        shaped = ("Reshape", "Flatten", "Squeeze", "Unsqueeze")
        near = [x.value.producer, *node.output.users]
        if not any(is_operator(item, *shaped) for item in near if item):
            return because("no neighbour changes the shape")
        target = reshape_target(shape, unit.shape(node.output))
        return target is not None or because("more than one size is open")

    def replace(op: Any, x: Operand, node: Node, unit: Unit) -> Any:
        target = reshape_target(x.shape, unit.shape(node.output))
        return op.Reshape(x, np.array(target, np.int64))


class UnfoldTranspose(Rule):
    """Reshape(Transpose(Reshape(x, [-1, m, n]), [0, 2, 1]), [..., n, m]) -> Transpose(x)."""

    shared = True
    since = 5

    def pattern(op: Any, x: Any, s: Any, t: Any) -> Any:
        folded = op.Reshape(x, s).named("folded")
        return op.Reshape(op.Transpose(folded, perm=[0, 2, 1]), t).named("node")

    def check(x: Operand, folded: Node, node: Node, unit: Unit) -> Any:
        shape, inner, after = x.shape, unit.shape(folded.output), unit.shape(node.output)
        if shape is None or inner is None or after is None or None in (*shape, *inner):
            return because("a shape is not known")
        if len(shape) < 3 or inner[1:] != shape[-2:]:
            return because("more than the first axes are folded")
        return after == (*shape[:-2], shape[-1], shape[-2]) or because("the folded axes change")

    def replace(op: Any, x: Operand) -> Any:
        rank = x.rank or 0
        return op.Transpose(x, perm=[*range(rank - 2), rank - 1, rank - 2])


def merge_transposes(unit: Unit) -> bool:
    """Join transposes that follow one another, and move them through what works on elements."""
    count = apply_rules(unit, MergeTransposes, ReplaceFlatTranspose, UnfoldTranspose)
    return bool(count) | sink_transposes(unit)


_UNARY = frozenset(
    ("Relu", "Sigmoid", "Tanh", "Exp", "Log", "Sqrt", "Neg", "Abs", "Erf", "Clip", "LeakyRelu",
     "Cast", "Elu", "Selu", "HardSigmoid", "HardSwish", "Softplus", "Reciprocal", "Floor", "Ceil",
     "Round", "Sign", "Not", "Gelu", "Mish", "Softsign", "Celu", "QuantizeLinear")
)  # fmt: skip
_BINARY = frozenset(("Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Sum", "Mean", "Where"))


def sink_transposes(unit: Unit) -> bool:
    """Relu(Transpose(x)) -> Transpose(Relu(x)), where the Transpose then meets another."""
    changed = False
    for node in list(unit.nodes()):
        if node.graph is None or node.domain or len(node.outputs) != 1 or unit.opset < 7:
            continue
        if node.op_type in _UNARY | _BINARY and _meets(node):
            changed |= _sink(unit, node)
    return changed


def _meets(node: Node) -> bool:
    """True where all that reads a node, through elementwise nodes, is a Transpose."""
    value = node.output
    for _ in range(8):
        users = value.users
        if value.is_output or not users:
            return False
        if all(is_operator(user, "Transpose") for user in users):
            return True
        if len(users) > 1 or users[0].op_type not in _UNARY | _BINARY or users[0].domain:
            return False
        value = users[0].output
    return False


def _sink(unit: Unit, node: Node) -> bool:
    perms: set[tuple[int, ...]] = set()
    sources: list[tuple[Value | None, Any]] = []
    per_tensor = node.op_type in ("Clip", "QuantizeLinear")
    for position, value in enumerate(node.inputs):
        maker = producer(value, "Transpose")
        if maker is not None and maker.graph is node.graph and maker.attribute("perm") is not None:
            if len(value.uses if value else ()) != 1:
                return False
            perms.add(tuple(maker.attribute("perm")))
            sources.append((maker.inputs[0], None))
        elif position and per_tensor:
            array = unit.array(value)
            if value is not None and (array is None or array.size != 1):
                return False
            sources.append((value, None))
        else:
            array = unit.array(value)
            if array is None:
                return False
            sources.append((value, array))
    if len(perms) != 1:
        return False
    perm = perms.pop()
    inverse = [perm.index(axis) for axis in range(len(perm))]
    if any(array is not None and array.ndim > len(perm) for _, array in sources):
        return False
    if any(unit.fact(value).rank != len(perm) for value, array in sources if value and array is None
           and not (per_tensor and unit.array(value) is not None)):  # fmt: skip
        return False
    _rewire(unit, node, sources, perm, inverse)
    return True


def _rewire(
    unit: Unit, node: Node, sources: list[tuple[Value | None, Any]], perm: tuple[int, ...],
    inverse: list[int],
) -> None:  # fmt: skip
    graph = node.graph
    assert graph is not None
    inputs: list[Value | None] = []
    for value, array in sources:
        if array is None or array.size <= 1 or value is None:
            inputs.append(value)
            continue
        spread = array.reshape((1,) * (len(perm) - array.ndim) + array.shape)
        moved = np.ascontiguousarray(spread.transpose(inverse))
        inputs.append(unit.add_constant(graph, moved, f"{value.name}/transposed", node))
    old_inputs = node.inputs
    node.set_inputs(inputs)
    result = Value(unit.names.fresh(f"{node.output.name}/before"))
    output = node.output
    transpose = Node("Transpose", [result], [Value("")], {"perm": perm}, name=f"{node.name}/sunk")
    node.outputs, output.producer = (), None
    node.set_outputs([result])
    transpose.outputs[0].producer = None
    transpose.outputs, output.producer = (output,), transpose
    graph.nodes.insert_after(node, transpose)
    fact = unit.facts.get(output)
    if fact is not None and fact.shape is not None:
        shape = tuple(fact.shape[place] for place in inverse)
        unit.facts[result] = replace(fact, shape=shape, value=None)
    for value in old_inputs:
        maker = producer(value, "Transpose")
        if maker is not None and maker.graph is not None and not maker.output.uses:
            maker.graph.nodes.remove(maker)
