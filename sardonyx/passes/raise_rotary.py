"""x * cos + (-x2, x1) * sin -> RotaryEmbedding(x, cos, sin), where the opset has it.

cos = Unsqueeze(Cos(Concat(f, f)), 1); sin = Unsqueeze(Sin(Concat(f, f)), 1)
y = x * cos + Concat(-x[..., n/2:], x[..., :n/2]) * sin
-> y = RotaryEmbedding(x, Cos(f), Sin(f))
"""

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.graph import Graph, Node, Value
from sardonyx.passes.read_scores import constant_number, maker_of
from sardonyx.passes.rules import RuleBuilder
from sardonyx.passes.unit import Unit, drop_unused, is_operator, record_origin
from sardonyx.record import record

_FLOATS = (DataType.FLOAT, DataType.FLOAT16)

Caches = dict[tuple[Graph | None, Value, object], Value]


@record
class _Wave:
    """A cosine or sine of angles whose two halves are equal, times a number."""

    function: str
    angles: Value
    factor: float


@record
class _Turn:
    """A rotation that was written out."""

    x: Value
    cos: Value
    sin: Value
    nodes: tuple[Node, ...]


def raise_rotary(unit: Unit) -> bool:
    """Find rotations of halves that were written out, where the opset has them whole."""
    if unit.opset < 23:
        return False
    caches: Caches = {}
    changed = False
    for node in list(unit.nodes()):
        if is_operator(node, "Add") and node.graph is not None:
            changed |= _raise(unit, node, caches)
    return changed


def _raise(unit: Unit, root: Node, caches: Caches) -> bool:
    turn = _read(unit, root)
    if turn is None:
        return False
    waves = [_wave(unit, value, root) for value in (turn.cos, turn.sin)]
    if [wave and wave.function for wave in waves] != ["Cos", "Sin"]:
        return False
    op = RuleBuilder(unit, root)
    made = []
    for value, wave in zip((turn.cos, turn.sin), waves, strict=True):
        assert wave is not None
        made.append(_cache(op, unit, turn.x, value, wave, caches))
    y = op.RotaryEmbedding(turn.x, *made)
    unit.substitute(root.output, y)
    if root.output.is_output and root.output.producer is root:
        root.set_inputs([y])
        root.op_type, root.attributes = "Identity", {}
    record_origin(unit, op.made, turn.nodes)
    drop_unused(turn.nodes)
    return True


def _read(unit: Unit, root: Node) -> _Turn | None:
    """Take x * cos + turned(x) * sin apart; None for anything else."""
    for place in (0, 1):
        plain = maker_of(root.inputs[place], root, "Mul")
        other = maker_of(root.inputs[1 - place], root, "Mul")
        if plain is None or other is None:
            return None
        for side in (0, 1):
            join = maker_of(other.inputs[side], root, "Concat")
            x = None if join is None else _halves(unit, join)
            if join is None or x is None or x not in plain.inputs:
                continue
            cos, sin = plain.inputs[1 - plain.inputs.index(x)], other.inputs[1 - side]
            minus = join.inputs[0]
            inner = (plain, other, join)
            if cos is None or sin is None or minus is None or minus.producer is None:
                continue
            if all(len(node.output.uses) == 1 for node in inner):
                halves = [item.producer for item in (minus, *minus.producer.inputs, join.inputs[1])
                          if item and item.producer]  # fmt: skip
                return _Turn(x, cos, sin, (root, *inner, *halves))
    return None


def _halves(unit: Unit, join: Node) -> Value | None:
    """The x of Concat(-x[..., n/2:], x[..., :n/2]), of four axes; None for anything else."""
    if len(join.inputs) != 2 or join.attribute("axis") not in (-1, 3):
        return None
    minus, low = maker_of(join.inputs[0], join, "Neg"), maker_of(join.inputs[1], join, "Slice")
    high = None if minus is None else maker_of(minus.inputs[0], join, "Slice", "Split")
    if high is None:
        return None
    x = high.inputs[0]
    shape = unit.shape(x)
    if x is None or shape is None or len(shape) != 4 or unit.dtype(x) not in _FLOATS:
        return None
    size = shape[3]
    if not isinstance(size, int) or size % 2:
        return None
    if is_operator(high, "Split"):
        assert minus is not None
        whole = (join.inputs[1], minus.inputs[0]) == tuple(high.outputs)
        even = unit.shape(high.outputs[0]) == (*shape[:3], size // 2)
        return x if whole and even and high.attribute("axis", 0) in (-1, 3) else None
    if low is None or low.inputs[0] is not x:
        return None
    return x if _cuts(unit, low, 0, size) and _cuts(unit, high, size // 2, size) else None


def _cuts(unit: Unit, node: Node, start: int, size: int) -> bool:
    """True for a Slice of half of the last axis, from a place on."""
    shape = unit.shape(node.output)
    steps = unit.integers(node, "steps") or (1,)
    return (
        unit.integers(node, "starts") == (start,)
        and unit.integers(node, "axes") in ((3,), (-1,))
        and steps == (1,)
        and shape is not None
        and shape[3] == size // 2
    )


def _wave(unit: Unit, value: Value, near: Node) -> _Wave | None:
    """A cosine or sine of [batch, length, size], spread over heads; None for anything else."""
    spread = maker_of(value, near, "Unsqueeze", "Reshape")
    shape = unit.shape(value)
    inner = None if spread is None else spread.inputs[0]
    before = unit.shape(inner)
    if shape is None or len(shape) != 4 or before is None or None in before:
        return None
    if shape[1] != 1 or before != (shape[0], *shape[2:]):
        return None
    factor = 1.0
    while scaled := maker_of(inner, near, "Mul"):
        numbers = [constant_number(unit, item) for item in scaled.inputs]
        if numbers[0] is None and numbers[1] is None:
            return None
        place = 0 if numbers[0] is None else 1
        factor *= numbers[1 - place] or 0.0
        inner = scaled.inputs[place]
    wave = maker_of(inner, near, "Cos", "Sin")
    join = None if wave is None else maker_of(wave.inputs[0], near, "Concat")
    if wave is None or join is None or join.attribute("axis") not in (-1, 2):
        return None
    if len(join.inputs) != 2 or join.inputs[0] is not join.inputs[1] or join.inputs[0] is None:
        return None
    return _Wave(wave.op_type, join.inputs[0], factor)


def _cache(
    op: RuleBuilder, unit: Unit, x: Value, value: Value, wave: _Wave, caches: Caches
) -> Value:
    """The cosines or sines of one half, for each of the batch: made once for all who want them."""
    shape, angles = unit.shape(x), unit.shape(wave.angles)
    assert shape is not None and angles is not None
    key = op.graph, value, shape[0]
    if key not in caches:
        made = op.node(wave.function, (wave.angles,), 1, "", {})
        if wave.factor != 1:
            element = unit.dtype(wave.angles) or DataType.FLOAT
            made = op.Mul(made, np.array(wave.factor, element.numpy))
        if angles[0] != shape[0]:
            if isinstance(shape[0], int):
                made = op.Expand(made, np.array([shape[0], 1, 1], np.int64))
            else:
                batch = op.Shape(x, start=0, end=1)
                made = op.Expand(made, op.Concat(batch, np.array([1, 1], np.int64), axis=0))
        caches[key] = made
    return caches[key]
