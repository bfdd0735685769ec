"""Reshape(x, Concat(Shape(x)[0], [12, 64])) -> Reshape(x, [-1, 12, 64]), from inferred sizes."""

from collections.abc import Sequence

import numpy as np

from sardonyx.dims import Expression, Size
from sardonyx.dtypes import DataType
from sardonyx.graph import Node, Value
from sardonyx.passes.fold_constants import replace_by_constant
from sardonyx.passes.unit import Unit, is_operator, refers

_KEPT = ("Constant", "DequantizeLinear")


def fold_shapes(unit: Unit) -> bool:
    """Make constants of values that inference knows, and of shapes that need no computation."""
    changed = False
    for node in list(unit.nodes()):
        if node.graph is None or refers(node):
            continue
        changed |= _fold_known(unit, node)
        if node.graph is not None and is_operator(node, "Reshape"):
            changed |= _fold_target(unit, node)
        elif node.graph is not None and is_operator(node, "Expand"):
            changed |= _fold_expand(unit, node)
    return changed


def _fold_known(unit: Unit, node: Node) -> bool:
    operator = unit.operator(node)
    if is_operator(node, *_KEPT) or (operator is not None and operator.random):
        return False
    changed = False
    for value in node.outputs:
        fact = unit.facts.get(value)
        if fact is None or not value.uses or fact.dtype in (None, DataType.STRING):
            continue
        array = fact.constant
        if array is None or node.graph is None or fact.dtype is None:
            continue
        if fact.shape is not None and array.shape != fact.shape:
            continue
        changed |= replace_by_constant(unit, value, array.astype(fact.dtype.numpy, copy=False))
    return changed


def _fold_target(unit: Unit, node: Node) -> bool:
    if (
        len(node.inputs) < 2
        or unit.array(node.inputs[1]) is not None
        or node.attribute("allowzero")
    ):
        return False
    target = reshape_target(unit.shape(node.inputs[0]), shape_told(unit, node))
    if target is None:
        return False
    node.replace_input(1, _integers(unit, node, target))
    return True


def shape_told(unit: Unit, node: Node) -> Sequence[Size | None] | None:
    """The shape of a node's output, where its inputs tell all of it."""
    after = unit.shape(node.output)
    if after is None or not is_operator(node, "Reshape") or len(node.inputs) < 2:
        return after
    return after if list_is_told(unit, node) else None


def list_is_told(unit: Unit, node: Node) -> bool:
    """Whether the sizes or axes that a node is given are known, if only by names.

    Of others a run must tell whether they fit the tensor, whatever its result would be if so.
    """
    given = node.inputs[1] if len(node.inputs) > 1 else None
    if given is None or unit.array(given) is not None:
        return True
    sizes = unit.fact(given).sizes()
    return sizes is not None and None not in sizes


def reshape_target(
    before: Sequence[Size | None] | None, after: Sequence[Size | None] | None
) -> list[int] | None:
    """The constant to give to Reshape for these shapes: 0 keeps a size, -1 is computed.

    A lone open size is computed even where it could be kept: onnxruntime, where it can tell that
    sizes are equal, lets values far apart share memory, which leaves the caches in between. Beside
    a kept size none is computed, since nobody can where the kept one is 0.

    >>> from sardonyx.dims import symbol
    >>> reshape_target((symbol("n"), 6), (symbol("n"), 2, 3))
    [-1, 2, 3]
    >>> reshape_target((symbol("n"), symbol("m")), (symbol("n"), symbol("m"), 1))
    [0, 0, 1]
    >>> reshape_target((symbol("n"), symbol("m")), (symbol("m"), symbol("n"))) is None
    True
    """
    if after is None or 0 in after:
        return None
    places = [axis for axis, size in enumerate(after) if not isinstance(size, int)]
    kept = before is not None and all(after[axis] in before[axis : axis + 1] for axis in places)
    if len(places) > 1 and (not kept or any(after[axis] is None for axis in places)):
        return None
    mark = 0 if len(places) > 1 else -1
    return [size if isinstance(size, int) else mark for size in after]


def _fold_expand(unit: Unit, node: Node) -> bool:
    """Expand to sizes the input has already needs none of them: 1 does as well."""
    wanted = unit.fact(node.inputs[1]).sizes()
    before = unit.shape(node.inputs[0])
    if wanted is None or before is None or unit.array(node.inputs[1]) is not None:
        return False
    target: list[int] = []
    for place, size in enumerate(wanted):
        axis = len(before) - len(wanted) + place
        if isinstance(size, int):
            target.append(size)
        elif axis >= 0 and isinstance(size, Expression) and size == before[axis]:
            target.append(1)
        else:
            return False
    node.replace_input(1, _integers(unit, node, target))
    return True


def _integers(unit: Unit, node: Node, items: list[int]) -> Value:
    assert node.graph is not None
    name = f"{node.output.name}/shape"
    return unit.add_constant(node.graph, np.array(items, np.int64), name, node)
