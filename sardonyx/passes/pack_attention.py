"""Attention(Transpose(Reshape(q)), ...) -> Attention(q, ...) that splits and joins heads itself.

q4, k4, v4 = Transpose(Reshape(x, [b, n, h, d]), [0, 2, 1, 3]) for each of q, k, v
y = Reshape(Transpose(Attention(q4, k4, v4), [0, 2, 1, 3]), [b, n, h*d])
-> y = Attention(q, k, v, q_num_heads=h, kv_num_heads=h)
"""

from sardonyx.dims import Size
from sardonyx.graph import Node, Value
from sardonyx.ops.fact import Sizes
from sardonyx.passes.fuse_convolution import attributes_of
from sardonyx.passes.read_scores import maker_of
from sardonyx.passes.rules import RuleBuilder
from sardonyx.passes.unit import Unit, drop_unused, is_operator, record_origin
from sardonyx.record import record

_EXCHANGED = (0, 2, 1, 3)


@record
class _Packed:
    """A value whose heads lie side by side in the last axis, and how many they are."""

    value: Value
    heads: int
    nodes: tuple[Node, ...]


def pack_attention(unit: Unit) -> bool:
    """Let attention split and join heads by itself, where the graph does it around it."""
    if unit.opset < 23:
        return False
    changed = False
    for node in list(unit.nodes()):
        if is_operator(node, "Attention"):
            changed |= _pack(unit, node)
    return changed


def _pack(unit: Unit, node: Node) -> bool:
    sides = [_split(unit, value, node) for value in node.inputs[:3]]
    q, k, v = sides
    if q is None or k is None or v is None or k.heads != v.heads:
        return False
    after = _joined(unit, node)
    if after is None:
        return False
    op = RuleBuilder(unit, node)
    given = attributes_of(node) | {"q_num_heads": q.heads, "kv_num_heads": k.heads}
    fed = (q.value, k.value, v.value, *node.inputs[3:])
    made = op.node("Attention", fed, len(node.outputs), "", given)
    results = made if isinstance(made, tuple) else (made,)
    unit.substitute(after, results[0])
    for old, new in zip(node.outputs[1:], results[1:], strict=True):
        unit.substitute(old, new)
    record_origin(unit, op.made, [node])
    turned = () if after is node.outputs[0] or after.producer is None else (after.producer,)
    drop_unused([*turned, node, *q.nodes, *k.nodes, *v.nodes])
    return True


def _split(unit: Unit, value: Value | None, near: Node) -> _Packed | None:
    """What Transpose(Reshape(x)) splits into heads; for a length of 1 there is only the Reshape."""
    shape = unit.shape(value)
    turn = maker_of(value, near, "Transpose")
    if turn is not None and turn.attribute("perm") != _EXCHANGED:
        return None
    split = maker_of(value if turn is None else turn.inputs[0], near, "Reshape")
    if split is None or shape is None or len(shape) != 4 or split.inputs[0] is None:
        return None
    batch, heads, length, size = shape
    if not isinstance(heads, int) or not isinstance(size, int) or batch is None:
        return None
    if unit.shape(split.inputs[0]) != (batch, length, heads * size) or length is None:
        return None
    middle = unit.shape(split.output)
    plain = middle == shape and length == 1 if turn is None else middle == _exchange(shape)
    nodes = (split,) if turn is None else (turn, split)
    return _Packed(split.inputs[0], heads, nodes) if plain else None


def _exchange(shape: Sizes) -> Sizes:
    return shape[0], shape[2], shape[1], shape[3]


def _joined(unit: Unit, node: Node) -> Value | None:
    """A result [batch, length, heads, size] that is only reshaped; None where there is none."""
    y = node.outputs[0]
    shape = unit.shape(y)
    if shape is None or len(shape) != 4 or len(y.uses) != 1 or y.is_output:
        return None
    (user,) = y.users
    if is_operator(user, "Transpose") and user.attribute("perm") == _EXCHANGED:
        y = user.output
        if user.graph is not node.graph or len(y.uses) != 1 or y.is_output:
            return None
        (user,) = y.users
    elif shape[2] != 1:
        return None
    target = unit.array(user.inputs[1]) if is_operator(user, "Reshape") else None
    known = unit.shape(user.output)
    whole = known is not None and known == (shape[0], shape[2], _width(shape))
    return y if whole or (target is not None and 0 not in target[2:]) else None


def _width(shape: Sizes) -> Size | None:
    """The size of all heads side by side."""
    return None if shape[1] is None or shape[3] is None else shape[1] * shape[3]
