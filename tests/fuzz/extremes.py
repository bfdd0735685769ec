"""Operators that numbers steer, with numbers from the ends of their types.

Each model has one such operator, often with pointwise nodes, transposes or sums around it, its
numbers being constants or inputs, its sizes fixed or open.
"""

from collections.abc import Callable

from tests.fuzz import extreme_moves, extreme_windows
from tests.fuzz.maker import Maker
from tests.fuzz.trial import Trial
from tests.fuzz.values import FLOATS, INTEGERS, dtype_of, element_type

RUNS = 8
SHARE = 16

Output = tuple[str, str]
"""A value's name and the name of its element type."""

Template = Callable[[Maker], list[Output]]
TEMPLATES: dict[str, Template] = {**extreme_moves.TEMPLATES, **extreme_windows.TEMPLATES}


OFTEN = ("Slice", "Slice", "Slice", "Pad", "Tile", "Expand", "Reshape", "Range", "ConstantOfShape")
"""Templates that have more than one turn: sizes come from the numbers they get."""


def make(seed: int) -> Trial:
    """A model around one operator, every operator in turn."""
    maker = Maker(seed)
    names = [*TEMPLATES, *OFTEN]
    what = names[seed % len(names)]
    found = TEMPLATES[what](maker)
    tail: list[str] = []
    while maker.rng.random() < 0.45 and len(tail) < 3:
        last = follow(maker, found[0], tail)
        found = [last, *(found if tail[-1] in ("Shape", "Size") else found[1:])]
    outputs = [(name, element_number(kind)) for name, kind in found]
    return maker.trial(
        outputs,
        " ".join((what, *tail)),
        threads=2 if maker.rng.random() < 0.1 else 1,
        random=what.startswith("Random") or what in ("Bernoulli", "Multinomial"),
    )


def element_number(kind: str) -> int:
    """ONNX's number of an element type's name."""
    return element_type(dtype_of("object" if kind == "str" else kind))


def follow(maker: Maker, value: Output, tail: list[str]) -> Output:
    """A node that goes on with a value."""
    name, kind = value
    moves = ["Transpose", "Identity", "Shape", "Size"]
    if kind in FLOATS or kind in ("int32", "int64"):
        moves += ["Neg", "Neg", "Add", "Add", "Transpose", "ReduceSum", "ReduceMax", "Mul"]
    if kind in FLOATS:
        moves += ["Relu", "Exp", "Softmax", "ReduceMean"]
    if kind in FLOATS or kind in INTEGERS:
        moves += ["Cast"]
    move = maker.rng.choice(moves)
    tail.append(move)
    if move in ("Add", "Mul"):
        return maker.node(move, name, name), kind
    if move in ("Shape", "Size"):
        return maker.node(move, name), "int64"
    if move == "Cast":
        to = maker.rng.choice(("float32", "int32", "int64", "float64"))
        if kind in FLOATS:
            to = maker.rng.choice(("float32", "float64"))
        return maker.node("Cast", name, to=element_number(to)), to
    if move.startswith("Reduce"):
        return maker.node(move, name, keepdims=maker.rng.choice((0, 1))), kind
    return maker.node(move, name), kind
