"""A normalized sum of embeddings -> EmbedLayerNormalization, of onnxruntime's own domain.

LayerNormalization(Gather(w, words) + Gather(p, places) + Gather(s, segments), g, b)
    -> EmbedLayerNormalization(words, segments, w, p, s, g, b, places)

Places that count up from 0 are not given, and a segment that is the same everywhere is added to
the table of places.
"""

from collections.abc import Sequence

import numpy as np

from sardonyx.dims import minimum
from sardonyx.dtypes import DataType
from sardonyx.graph import Node, Value
from sardonyx.passes.operand import Operand
from sardonyx.passes.read_scores import constant_number, maker_of
from sardonyx.passes.rules import RuleBuilder
from sardonyx.passes.unit import Unit, drop_unused, is_operator, record_origin
from sardonyx.record import record

DOMAIN = "com.microsoft"
FLOATS = (DataType.FLOAT, DataType.FLOAT16)
_MOVED = ("Expand", "Slice", "GatherElements", "Reshape", "Unsqueeze", "Squeeze", "Transpose")
"""Operators whose results hold only elements of their first input."""


@record
class _Lookup:
    """Rows of a constant table, and the node that takes them."""

    table: Value
    ids: Value
    node: Node


@record
class _Sum:
    """Lookups by what they are; `segment` is the row that is the same everywhere."""

    words: _Lookup
    places: _Lookup
    segments: _Lookup | None
    segment: int | None
    counted: bool
    """True where places are 0, 1, 2 ..."""


def fuse_embeddings(unit: Unit) -> bool:
    """Let one node look up embeddings, add them and normalize the sum."""
    changed = False
    for norm in list(unit.nodes()):
        if is_operator(norm, "LayerNormalization") and len(norm.inputs) == 3:
            lookups, adds = _addends(unit, norm)
            found = _arrange(unit, norm, lookups)
            if isinstance(found, _Sum) and all(_is_closed(unit, item) for item in lookups):
                _replace(unit, norm, found, [*adds, *(item.node for item in lookups)])
                changed = True
            elif isinstance(found, str) and len(lookups) > 1:
                noted = f"FuseEmbeddings: {found}"
                unit.reasons[noted] = unit.reasons.get(noted, 0) + 1
    return changed


def _addends(unit: Unit, norm: Node) -> tuple[list[_Lookup], list[Node]]:
    """The lookups that a normalization's input is the sum of, and the additions; else nothing."""
    waiting, lookups, adds = [norm.inputs[0]], list[_Lookup](), list[Node]()
    while waiting:
        value = waiting.pop()
        node = maker_of(value, norm, "Add", "Gather")
        if node is None or value is None or len(lookups) == 3:
            return [], []
        if node.op_type == "Add":
            if len(value.uses) != 1:
                return [], []
            adds.append(node)
            waiting += reversed(node.inputs)
            continue
        table, ids = node.inputs
        shape = unit.shape(table)
        fits = unit.is_constant(table) and unit.dtype(table) in FLOATS and shape is not None
        if table is None or ids is None or not fits or len(shape or ()) != 2:
            return [], []
        if node.attribute("axis", 0) != 0:
            return [], []
        lookups.append(_Lookup(table, ids, node))
    return lookups, adds


def _is_closed(unit: Unit, lookup: _Lookup) -> bool:
    """True where all but the sum read only the first two sizes of what is looked up."""
    others = [user for user in lookup.node.output.users if not is_operator(user, "Add")]
    return len(others) + 1 == len(lookup.node.output.uses) and all(
        isinstance(user, Node) and _reads_leading_sizes(unit, user) for user in others
    )


def _reads_leading_sizes(unit: Unit, node: Node) -> bool:
    if not is_operator(node, "Shape") or node.attributes or node.output.is_output:
        return False
    picks = node.output.users
    return all(
        is_operator(user, "Gather") and constant_number(unit, user.inputs[1]) in (0, 1)
        for user in picks
    )


def _arrange(unit: Unit, norm: Node, lookups: Sequence[_Lookup]) -> _Sum | str:
    """Say which lookup is which, or why the sum is none that the operator computes."""
    whole = unit.shape(norm.output)
    if len(lookups) < 2 or whole is None or len(whole) != 3 or None in whole:
        return "it is no sum of embeddings of a known shape"
    if norm.attribute("axis", -1) not in (-1, 2) or len(norm.outputs) > 1:
        return "another axis is normalized"
    rest = list(lookups)
    places = next((item for item in rest if _counts_up(unit, item.ids, whole[1])), None)
    counted = places is not None
    if places is None:
        known = [item for item in rest if unit.shape(item.ids) == (1, whole[1])]
        places = known[0] if known else rest[-1]
    rest.remove(places)
    same = [item for item in rest if _only_row(unit, item) is not None]
    joins = len(rest) == 2 and bool(same) and Operand(places.table, unit).alone
    segments = same[0] if joins else rest[1] if len(rest) == 2 else None
    words = next(item for item in rest if item is not segments)
    segment = _only_row(unit, segments) if segments and joins else None
    if unit.shape(words.ids) != whole[:2]:
        return "words are of another shape"
    if segments and segment is None and unit.shape(segments.ids) != whole[:2]:
        return "words and segments are not of one shape"
    if not counted and unit.shape(places.ids) not in (whole[:2], (1, whole[1])):
        return "positions are of another length"
    return _Sum(words, places, segments, segment, counted)


def _counts_up(unit: Unit, ids: Value, length: object) -> bool:
    """True for [[0, 1, 2 ...]] of this length, or as much of it as a longer constant has."""
    shape = unit.shape(ids)
    node = ids.producer if is_operator(ids.producer, "Slice") else None
    table = unit.array(ids if node is None else node.inputs[0])
    if shape is None or len(shape) != 2 or table is None or table.ndim != 2 or len(table) != 1:
        return False
    if table.shape[1] < 2 or not (table == np.arange(table.shape[1])).all():
        return False
    if node is None:
        return shape == (1, length)
    starts, axes, steps = (unit.integers(node, name) for name in ("starts", "axes", "steps"))
    if starts != (0,) or axes not in ((1,), (-1,)) or steps not in (None, (1,)):
        return False
    return shape[0] == 1 and shape[1] in (length, minimum(table.shape[1], length))  # type: ignore[arg-type]


def _only_row(unit: Unit, lookup: _Lookup) -> int | None:
    """The row that every id names; None where they may differ."""
    value: Value | None = lookup.ids
    while value is not None and not unit.is_constant(value):
        if not is_operator(value.producer, *_MOVED):
            return None
        assert value.producer is not None
        value = value.producer.inputs[0]
    array, rows = unit.array(value), len(Operand(lookup.table, unit).array)
    if array is None or not array.size or (array != array.flat[0]).any():
        return None
    return int(array.flat[0]) if -rows <= array.flat[0] < rows else None


def _replace(unit: Unit, norm: Node, found: _Sum, matched: list[Node]) -> None:
    words, places, segments = found.words, found.places, found.segments
    for user in words.node.output.users:
        if is_operator(user, "Shape"):
            user.output.replace_all_uses(RuleBuilder(unit, user).Shape(words.ids))
            drop_unused([user])
    op = RuleBuilder(unit, norm)
    table = places.table
    if segments is not None and found.segment is not None:
        row = Operand(segments.table, unit).array[found.segment]
        table, segments = op.constant(Operand(table, unit).array + row), None
    y, _ = op.EmbedLayerNormalization(
        _narrowed(op, words.ids), _narrowed(op, segments.ids) if segments else None,
        words.table, table, segments.table if segments else None, *norm.inputs[1:], None,
        None if found.counted else _narrowed(op, places.ids),
        epsilon=float(norm.attribute("epsilon", 1e-5)), domain=DOMAIN, outputs=2,
    )  # fmt: skip
    unit.substitute(norm.output, y)
    record_origin(unit, op.made, [norm, *matched])
    drop_unused([norm, *matched])


def _narrowed(op: RuleBuilder, ids: Value) -> Value:
    """Ids of the type that the operator takes."""
    if op.unit.dtype(ids) == DataType.INT32:
        return ids
    return op.Cast(ids, to=int(DataType.INT32))  # type: ignore[no-any-return]
