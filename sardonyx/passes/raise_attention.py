"""softmax(q k^T * scale + mask) v -> Attention(q, k, v, mask), where the opset has it.

Keys and values repeated for groups of heads go in unrepeated, and those joined to a past go in with
it:

    k = Concat(past_key, new_key); y = softmax(q k^T) Concat(past_value, new_value)
    -> y, k, v = Attention(q, new_key, new_value, past_key, past_value)

Attention gives zeros for a query that may see nothing, where a softmax alone gives NaN; so
Where(IsNaN(p), 0, p) behind the softmax goes too.
"""

from collections.abc import Iterable

from sardonyx.dtypes import DataType
from sardonyx.graph import Node, Value
from sardonyx.ops.fact import Sizes
from sardonyx.passes.make_mask import Mask, make_mask, read_mask
from sardonyx.passes.read_causal import is_causal
from sardonyx.passes.read_scores import (
    Scores,
    constant_number,
    maker_of,
    read_factor,
    read_scores,
    turned,
)
from sardonyx.passes.rules import RuleBuilder
from sardonyx.passes.unit import Unit, drop_unused, is_operator, record_origin, refers
from sardonyx.record import record

_FLOATS = (DataType.FLOAT, DataType.FLOAT16)


@record
class _Side:
    """Keys or values as Attention takes them, and the nodes between them and the products."""

    value: Value
    joined: Node | None
    """The node that joins the past to them."""
    nodes: tuple[Node, ...]


def raise_attention(unit: Unit) -> bool:
    """Find attention that was written out, where the opset has it whole."""
    if unit.opset < 23:
        return False
    changed = False
    for node in list(unit.nodes()):
        if is_operator(node, "MatMul") and node.graph is not None:
            changed |= _raise(unit, node)
        elif is_operator(node, "Attention"):
            changed |= _absorb_scales(unit, node)
    return changed


def _raise(unit: Unit, root: Node) -> bool:
    probabilities, v = root.inputs
    between, softmax = _unguarded(unit, root, probabilities)
    if softmax is None or v is None:
        return False
    axis, shape = softmax.attribute("axis", -1), unit.shape(softmax.output)
    if shape is None or axis not in (-1, len(shape) - 1) or refers(softmax):
        return False
    scores = read_scores(unit, softmax.inputs[0], softmax)
    if scores is None:
        return False
    masks = tuple(read_mask(unit, item) for item in scores.masks)
    reason = _misfit(unit, scores, v, masks)
    if reason:
        noted = f"RaiseAttention: {reason}"
        unit.reasons[noted] = unit.reasons.get(noted, 0) + 1
        return False
    _replace(unit, root, scores, masks, (*between, softmax))
    return True


def _absorb_scales(unit: Unit, node: Node) -> bool:
    """Attention(Transpose(Mul(q, s)), k, v) -> Attention(Transpose(q), k, v), scaled by s."""
    changed = False
    scale = unit.parameter(node, "scale")
    for operand in node.inputs[:2]:
        value = _shaped(operand, node)
        maker = maker_of(value, node, "Mul", "Div")
        if maker is None or value is None or len(value.uses) != 1 or not isinstance(scale, float):
            continue
        inner, factor = read_factor(unit, maker)
        if inner is None or unit.shape(inner) != unit.shape(value):
            continue
        scale *= factor
        changed |= unit.substitute(value, inner)
        drop_unused([maker])
        node.set_attribute("scale", scale)
    return changed


def _shaped(value: Value | None, near: Node) -> Value | None:
    """What a value was before it was turned and reshaped for one user alone."""
    while value is not None and len(value.uses) == 1:
        maker = maker_of(value, near, "Transpose", "Reshape")
        if maker is None:
            break
        value = maker.inputs[0]
    return value


def _unguarded(unit: Unit, root: Node, value: Value | None) -> tuple[tuple[Node, ...], Node | None]:
    """The Softmax that a value comes from, through a guard against rows without a number."""
    guard = maker_of(value, root, "Where")
    if guard is None:
        softmax = maker_of(value, root, "Softmax")
        alone = softmax is not None and len(softmax.output.uses) == 1
        return (), softmax if alone else None
    test, softmax = maker_of(guard.inputs[0], root, "IsNaN"), maker_of(guard.inputs[2], root)
    if test is None or not is_operator(softmax, "Softmax") or test.inputs[0] is not guard.inputs[2]:
        return (), None
    assert softmax is not None
    alone = [len(node.output.uses) for node in (guard, test, softmax)] == [1, 1, 2]
    empty = constant_number(unit, guard.inputs[1]) == 0
    return (guard, test), softmax if alone and empty else None


def _misfit(unit: Unit, scores: Scores, v: Value, masks: tuple[Mask, ...]) -> str:
    """Why a product with scores is not what Attention computes; empty where it is."""
    query, keys, values = unit.shape(scores.query), unit.shape(scores.keys), unit.shape(v)
    if query is None or keys is None or values is None:
        return "a shape is not known"
    if not len(query) == len(keys) == len(values) == 4:
        return "the operands do not have four dimensions"
    if unit.dtype(scores.query) not in _FLOATS:
        return "the type is no float that every runtime takes"
    same = query[:2] == keys[:2] == values[:2] and keys[3] == values[2] and query[3] == keys[2]
    if not same or None in query or None in keys:
        return "batches, heads or lengths differ"
    if not scores.scale > 0:
        return "the scale is not above zero"
    full = (*query[:3], keys[3])
    if not all(_spreads(unit.shape(mask.value), mask.windows or full) for mask in masks):
        return "the mask does not broadcast to the scores"
    if any(mask.windows and not _is_countable(unit, mask) for mask in masks):
        return "the windows, or a mask of them, are of an open size"
    added = [unit.dtype(mask.value) for mask in masks if mask.fill is None]
    return "" if all(item == unit.dtype(scores.query) for item in added) else "a mask's type"


def _is_countable(unit: Unit, mask: Mask) -> bool:
    """True where a mask of windows has fixed sizes, and there is a fixed number of windows."""
    shape = unit.shape(mask.value) or (None,)
    assert mask.windows is not None
    sizes = (mask.windows[1], *shape[-3:])
    return all(isinstance(size, int) for size in sizes)


def _spreads(shape: Sizes | None, full: Sizes) -> bool:
    if shape is None or len(shape) > len(full):
        return False
    pairs = zip(reversed(shape), reversed(full), strict=False)
    return all(size in (1, whole) for size, whole in pairs)


def _replace(
    unit: Unit, root: Node, scores: Scores, masks: tuple[Mask, ...], inner: tuple[Node, ...]
) -> None:
    matched = (root, *inner, *scores.nodes)
    op = RuleBuilder(unit, root)
    turn, key = turned(unit, scores.keys, root)
    keys, values = _sides(unit, root, key, turn, matched)
    if keys.value is scores.keys:
        keys = _Side(_turn_back(op, scores.keys, root), None, ())
    joined = keys.joined is not None and values.joined is not None
    causal = not joined and _sees_the_past(unit, scores, masks)
    mask = None if causal else make_mask(op, unit, masks, scores.query, scores.keys)
    fed: list[Value | None] = [scores.query, keys.value, values.value, mask]
    if keys.joined is None or values.joined is None:
        y = op.Attention(*fed, scale=scores.scale, is_causal=1 if causal else None)
    else:
        fed[1], fed[2] = keys.joined.inputs[1], values.joined.inputs[1]
        past = keys.joined.inputs[0], values.joined.inputs[0]
        y, present_key, present_value = op.Attention(*fed, *past, scale=scores.scale, outputs=3)
        unit.substitute(keys.joined.output, present_key)
        unit.substitute(values.joined.output, present_value)
    unit.substitute(root.output, y)
    _keep_names(root, y)
    every = [*matched, *keys.nodes, *values.nodes]
    every += [side.joined for side in (keys, values) if side.joined is not None]
    record_origin(unit, op.made, matched)
    drop_unused(every)


def _sees_the_past(unit: Unit, scores: Scores, masks: tuple[Mask, ...]) -> bool:
    """True where the only mask, as wide as the scores, is that of causal attention."""
    if len(masks) != 1:
        return False
    query, keys, shape = (unit.shape(item) for item in (scores.query, scores.keys, masks[0].value))
    if query is None or keys is None or shape is None:
        return False
    return shape[-2:] == (query[2], keys[3]) and is_causal(unit, masks[0])


def _turn_back(op: RuleBuilder, keys: Value, root: Node) -> Value:
    """Keys whose lengths are the last axis -> keys as Attention takes them."""
    node = maker_of(keys, root, "Transpose")
    perm = None if node is None else node.attribute("perm")
    if node is None or perm is None:
        return op.Transpose(keys, perm=[0, 1, 3, 2])  # type: ignore[no-any-return]
    order = [perm[place] for place in (0, 1, 3, 2)]
    return op.Transpose(node.inputs[0], perm=order)  # type: ignore[no-any-return]


def _keep_names(root: Node, y: Value) -> None:
    """Where a graph still returns the product, let it be a copy."""
    if root.output.is_output and root.output.producer is root:
        root.set_inputs([y])
        root.op_type, root.domain, root.attributes = "Identity", "", {}


def _sides(
    unit: Unit, root: Node, key: Value, turn: tuple[Node, ...], matched: tuple[Node, ...]
) -> tuple[_Side, _Side]:
    """Keys and values, both without repetition and past, or both with."""
    v = root.inputs[1]
    assert v is not None
    sides = _Side(key, None, turn), _Side(v, None, ())
    short = [_unrepeated(unit, side.value, root) for side in sides]
    if all(short) and turn:
        sides = tuple(
            _Side(found[0], None, side.nodes + found[1])
            for side, found in zip(sides, short, strict=True) if found
        )  # type: ignore[assignment]  # fmt: skip
    inside = {*matched, *sides[0].nodes, *sides[1].nodes}
    joins = [_join(unit, side, root, inside) for side in sides]
    if not turn or not _same_past(unit, *joins):
        return sides
    first, second = sides
    return (
        _Side(first.value, joins[0], first.nodes),
        _Side(second.value, joins[1], second.nodes),
    )


def _unrepeated(unit: Unit, value: Value, root: Node) -> tuple[Value, tuple[Node, ...]] | None:
    """What Reshape(Expand(Unsqueeze(x, 2))) repeats for each head of a group, with these nodes."""
    flat = maker_of(value, root, "Reshape")
    wide = None if flat is None else maker_of(flat.inputs[0], root, "Expand")
    lift = None if wide is None else maker_of(wide.inputs[0], root, "Unsqueeze", "Reshape")
    if flat is None or wide is None or lift is None:
        return None
    source = lift.inputs[0]
    whole, spread, thin = (unit.shape(node.output) for node in (flat, wide, lift))
    shape = unit.shape(source)
    if source is None or shape is None or spread is None or thin is None or len(shape) != 4:
        return None
    batch, groups, length, size = shape
    if len(spread) != 5 or thin != (batch, groups, 1, length, size) or None in shape:
        return None
    count = spread[2]
    if spread != (batch, groups, count, length, size) or groups is None or count is None:
        return None
    return (source, (flat, wide, lift)) if whole == (batch, groups * count, length, size) else None


def _join(unit: Unit, side: _Side, root: Node, inside: set[Node]) -> Node | None:
    """The Concat of a past and what is new, where nothing else in the graph reads what follows."""
    join = maker_of(side.value, root, "Concat")
    if join is None or len(join.inputs) != 2 or join.attribute("axis") not in (2, -2):
        return None
    read: Iterable[Node] = (join, *side.nodes)
    closed = all(user in inside for node in read for user in node.output.users)
    inner = all(not node.output.is_output for node in side.nodes)
    return join if closed and inner else None


def _same_past(unit: Unit, first: Node | None, second: Node | None) -> bool:
    """True where two pasts have equal length, and what is joined to them does too."""
    if first is None or second is None:
        return False
    for one, other in zip(first.inputs, second.inputs, strict=True):
        shape, partner = unit.shape(one), unit.shape(other)
        if shape is None or partner is None or len(shape) != 4 or shape[2] is None:
            return False
        if shape[:3] != partner[:3]:
            return False
    return True
