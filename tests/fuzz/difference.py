"""Whether results differ by more than their types' resolution allows.

Types other than floats must agree exactly. Floats may differ by a few steps of their type, and by
what small changes of the inputs make of the result: an operator that sums in another order gives
the exact result of inputs that are changed by rounding. Within a model, every operator's result
is such an input. Where sums of magnitudes overflow, the order of the sum decides between numbers,
infinities and NaN.
"""

import random
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from tests.fuzz.trial import Feeds

Array = NDArray[Any]
STEPS = 8
"""Steps of the type that an elementary function and its neighbours may be off."""

SPREAD = 64
"""How many times the effect of one rounding of the inputs is allowed."""

WIDE = 8
"""Steps that a number is moved by at most where the effect is taken as a slack, not counted in
steps: one step may, by chance, change nothing of a result that is rounded itself."""

DRAWS = 4
NARROW = 2
"""Steps for floats of 16 and 8 bits, which are computed in wider ones and rounded once."""

EXACT = frozenset(
    {
        "Slice", "Pad", "Tile", "Range", "ConstantOfShape", "Expand", "Reshape", "Squeeze",
        "Unsqueeze", "Gather", "GatherElements", "GatherND", "Split", "TopK", "OneHot", "Trilu",
        "EyeLike", "Shape", "Size", "Transpose", "Identity", "Concat", "Flatten",
        "CenterCropPad", "ReverseSequence", "DepthToSpace", "SpaceToDepth", "Neg", "Abs",
        "Relu", "Max", "Min", "Clip", "Where", "ArgMax", "ArgMin", "ReduceMax", "ReduceMin",
        "MaxPool", "GlobalMaxPool", "MaxUnpool", "Not", "And", "Or", "Less", "Greater", "Equal",
        "NonZero", "Constant", "Compress", "Unique", "Sign", "Floor", "Ceil", "Round", "IsNaN",
        "IsInf", "BitShift", "LessOrEqual", "GreaterOrEqual",
    }
)  # fmt: skip
"""Operators that only move and choose: every float comes out as it was."""

TRANSFORMS = frozenset({"DFT", "STFT"})
"""Operators whose results have errors relative to the largest of them; what is not finite spreads
over all of them, in a way that the order of the sums decides."""

BOUNDED = frozenset(
    {"RNN", "GRU", "LSTM", "Attention", "LinearAttention", "LayerNormalization",
     "RMSNormalization", "GroupNormalization", "InstanceNormalization"}
)  # fmt: skip
"""Operators that sum products and then bound them: the sum may overflow in some order, which
their results do not show."""

Runs = Callable[[bytes, Feeds], list[Any] | None]
Moved = Callable[[str, Array], Array]
"""What becomes of a result of an operator: given the operator's name and the result."""

Reference = Callable[[bytes, Feeds, Moved], list[Any] | None]
"""A run of the reference that changes the result of every operator."""


def is_float(dtype: np.dtype[Any]) -> bool:
    """Whether a type is one of floats, those of ml_dtypes among them."""
    return dtype.kind == "f" or (dtype.kind == "V" and "float" in dtype.name)


def exact(model: onnx.ModelProto) -> bool:
    """Whether nothing in a model rounds."""
    return not model.functions and all(node.op_type in EXACT for node in model.graph.node)


def resolution(model: onnx.ModelProto, feeds: Feeds) -> float:
    """That of the coarsest of the floats that take part, from 32 bits on: results of other types
    may come from those. Narrower ones are computed in 32 bits and judged by their own steps."""
    kinds = {item.dtype for item in feeds.values() if isinstance(item, np.ndarray)}
    coarse = any(kind == np.float32 for kind in kinds) or any(
        item.data_type == onnx.TensorProto.FLOAT for item in model.graph.initializer
    )
    return float(np.finfo(np.float32).eps) if coarse else 0.0


def form(found: Any, wanted: Any) -> str:
    """How two results differ in type, shape or nesting; empty where they do not."""
    if isinstance(wanted, list | tuple):
        if not isinstance(found, list | tuple) or len(found) != len(wanted):
            return f"a {type(found).__name__} of other length or type"
        said = [text for a, b in zip(found, wanted, strict=True) if (text := form(a, b))]
        return said[0] if said else ""
    if not isinstance(wanted, np.ndarray) or not isinstance(found, np.ndarray):
        return "" if type(found) is type(wanted) else f"{type(found)} for {type(wanted)}"
    if found.dtype != wanted.dtype:
        return f"type {found.dtype} for {wanted.dtype}"
    return "" if found.shape == wanted.shape else f"shape {found.shape} for {wanted.shape}"


def flat(results: Any) -> list[Array]:
    """All tensors of results."""
    if isinstance(results, np.ndarray):
        return [results]
    if isinstance(results, dict):
        return [item for value in results.values() for item in flat(value)]
    if isinstance(results, list | tuple):
        return [item for value in results for item in flat(value)]
    return []


def unequal(
    found: Array, wanted: Array, slack: Array | None = None, eps: float = 0.0
) -> NDArray[np.bool_]:
    """Where two tensors of the same type and shape differ by more than `slack` and a few steps
    (of their type, or of `eps` where that is more); at all, where no slack is given."""
    if not is_float(wanted.dtype):
        return np.asarray(found != wanted)
    facts = ml_dtypes.finfo(wanted.dtype)
    a, b = found.astype(np.float64), wanted.astype(np.float64)
    with np.errstate(all="ignore"):
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        if slack is None:
            return np.asarray(~same)
        steps = STEPS if wanted.dtype.itemsize > 2 else NARROW
        allowed = max(steps * float(facts.eps), STEPS * eps) * np.abs(b) + STEPS * float(
            facts.smallest_subnormal
        )
        near = np.isfinite(a) & np.isfinite(b) & (np.abs(a - b) <= allowed + slack)
    return np.asarray(~(same | near))


def bits_differ(found: list[Any], wanted: list[Any]) -> bool:
    """Whether two runs of one program gave other bits."""
    pairs = zip(flat(found), flat(wanted), strict=False)
    return any(
        a.shape != b.shape or (a.dtype != object and a.tobytes() != b.tobytes()) for a, b in pairs
    )


def difference(
    content: bytes,
    feeds: Feeds,
    found: list[Any],
    wanted: list[Any],
    run: Runs,
    least: float = 0.0,
    reference: Reference | None = None,
) -> str:
    """How results differ beyond resolution, which is taken to be `least` or more; `run` is the
    judge that gave `wanted`."""
    if said := form(found, wanted):
        return said
    pairs = list(zip(flat(found), flat(wanted), strict=True))
    odd = [unequal(a, b) for a, b in pairs]
    if not any(item.any() for item in odd):
        return ""
    model = onnx.ModelProto.FromString(content)
    if not exact(model):
        eps = max(resolution(model, feeds), least)
        odd = [unequal(a, b, np.zeros(b.shape), eps) for a, b in pairs]
        if not any(item.any() for item in odd):
            return ""
        odd = _conditioned(model, feeds, pairs, run, eps)
        if reference is not None and any(item.any() for item in odd):
            slack = noise(content, feeds, pairs, reference, least)
            odd = [
                unequal(a, b, item, eps) & where
                for (a, b), item, where in zip(pairs, slack, odd, strict=True)
            ]
        if any(node.op_type in TRANSFORMS for node in model.graph.node):
            odd = [_transformed(a, b) & where for (a, b), where in zip(pairs, odd, strict=True)]
    for (a, b), where in zip(pairs, odd, strict=True):
        if where.any():
            place = tuple(int(item) for item in np.argwhere(where)[0])
            count = f"{int(where.sum())} of {where.size}"
            return f"{count} {b.dtype} differ: {a[place]!r} for {b[place]!r}"
    return ""


def _transformed(found: Array, wanted: Array) -> NDArray[np.bool_]:
    if not is_float(wanted.dtype) or not wanted.size:
        return unequal(found, wanted)
    if not (np.isfinite(wanted).all() and np.isfinite(found).all()):
        return np.zeros(wanted.shape, bool)
    largest = np.abs(wanted).max() * ml_dtypes.finfo(wanted.dtype).eps
    return unequal(found, wanted, np.full(wanted.shape, STEPS * float(largest)))


def _conditioned(
    model: onnx.ModelProto,
    feeds: Feeds,
    pairs: list[tuple[Array, Array]],
    run: Runs,
    eps: float,
) -> list[NDArray[np.bool_]]:
    """Where results differ by more than rounded inputs explain."""
    rng = random.Random(1)
    slack = [np.zeros(b.shape) for _, b in pairs]
    free = [np.zeros(b.shape, bool) for _, b in pairs]
    if any(node.op_type in BOUNDED for node in model.graph.node) and _overflows(model, feeds):
        free = [np.ones(b.shape, bool) for _, b in pairs]
    products = any(node.op_type == "ReduceProd" for node in model.graph.node)
    for kind in ("round", "round", "round", "magnitude"):
        change = _magnitude if kind == "magnitude" else _rounded(rng)
        results = run(_changed(model, change), _changed_feeds(feeds, change))
        if results is None:
            continue
        others = flat(results)
        if len(others) != len(pairs):
            continue
        for place, ((_, b), other) in enumerate(zip(pairs, others, strict=True)):
            if other.shape != b.shape:
                free[place][...] = True
            elif is_float(b.dtype):
                _loosen(other, b, kind, slack[place], free[place])
                if products and kind == "magnitude" and _finite(model, feeds):
                    # Part of the product overflowed before it met a zero: in another order not.
                    free[place] |= np.isnan(other.astype(np.float64))
            elif kind == "round":
                free[place] |= np.asarray(other != b)
    return [
        unequal(a, b, SPREAD * s, eps) & ~f for (a, b), s, f in zip(pairs, slack, free, strict=True)
    ]


def noise(
    content: bytes,
    feeds: Feeds,
    pairs: list[tuple[Array, Array]],
    reference: Reference,
    least: float = 0.0,
) -> list[Array]:
    """How far results move where the inputs and the results of all operators that round are moved
    by some steps of their types."""
    slack = [np.zeros(b.shape) for _, b in pairs]
    still = reference(content, feeds, lambda _, array: array)
    for seed in range(DRAWS):
        change = _blurred(np.random.default_rng(seed), least)
        moved = {
            name: change("", item) if isinstance(item, np.ndarray) else item
            for name, item in feeds.items()
        }
        other = reference(content, moved, change)
        if still is None or other is None:
            continue
        for room, x, y in zip(slack, flat(still), flat(other), strict=False):
            if x.shape == y.shape == room.shape and is_float(x.dtype):
                with np.errstate(all="ignore"):
                    far = np.abs(x.astype(np.float64) - y.astype(np.float64))
                    room[...] = np.fmax(room, np.where(np.isfinite(far), far, 0))
    return [4 * item for item in slack]


def _blurred(rng: np.random.Generator, least: float) -> Moved:
    def change(operator: str, array: Array) -> Array:
        """Each float moved by up to some steps, where the operator rounds."""
        if operator in EXACT or not is_float(array.dtype):
            return array
        eps = float(ml_dtypes.finfo(array.dtype).eps)
        step = WIDE * max(eps, least) if array.dtype.itemsize > 2 else eps
        with np.errstate(all="ignore"):
            wide = array.astype(np.float64) * (1 + step * rng.uniform(-1, 1, array.shape))
            moved = wide.astype(array.dtype)
        return np.asarray(np.where(np.isfinite(moved), moved, array)).astype(array.dtype)

    return change


def _given(model: onnx.ModelProto, feeds: Feeds) -> list[Array]:
    given = [item for item in feeds.values() if isinstance(item, np.ndarray)]
    return given + [numpy_helper.to_array(item) for item in model.graph.initializer]


def _finite(model: onnx.ModelProto, feeds: Feeds) -> bool:
    """Whether all floats that are given are numbers."""
    floats = (item for item in _given(model, feeds) if is_float(item.dtype))
    return all(np.isfinite(item.astype(np.float64)).all() for item in floats)


def _overflows(model: onnx.ModelProto, feeds: Feeds) -> bool:
    """Whether products of what is given may be beyond the floats of 32 bits."""
    for array in _given(model, feeds):
        if is_float(array.dtype) and array.size:
            wide = np.abs(array.astype(np.float64))
            if (wide[np.isfinite(wide)] > 1e15).any():
                return True
    return False


def _loosen(other: Array, b: Array, kind: str, slack: Array, free: Array) -> None:
    with np.errstate(all="ignore"):
        x, y = other.astype(np.float64), b.astype(np.float64)
        if kind == "magnitude":
            free |= ~np.isfinite(x) & np.isfinite(y)
            free |= np.isinf(x) & ~np.isfinite(y)
        else:
            moved = np.abs(x - y)
            slack[...] = np.fmax(slack, np.where(np.isfinite(moved), moved, 0))
            free |= np.isfinite(x) != np.isfinite(y)


def _rounded(rng: random.Random) -> Callable[[Array], Array]:
    def change(array: Array) -> Array:
        """Each number a step up or down, or as it is."""
        if array.dtype.itemsize < 4 or not array.size:
            eps = float(ml_dtypes.finfo(array.dtype).eps) / 2
            steps = np.array([rng.choice((-eps, 0, eps)) for _ in range(array.size)])
            with np.errstate(all="ignore"):
                wide = array.astype(np.float32) * (1 + steps.reshape(array.shape))
                return np.asarray(wide.astype(array.dtype))
        ways = np.array([rng.choice((-np.inf, np.nan, np.inf)) for _ in range(array.size)])
        goal = ways.reshape(array.shape).astype(array.dtype)
        with np.errstate(all="ignore"):
            moved = np.nextafter(array, goal)
        keep = np.isnan(goal) | ~np.isfinite(moved) | ~np.isfinite(array)
        return np.asarray(np.where(keep, array, moved))

    return change


def _magnitude(array: Array) -> Array:
    return np.asarray(np.abs(array))


def _changed_feeds(feeds: Feeds, change: Callable[[Array], Array]) -> Feeds:
    return {
        name: change(item) if isinstance(item, np.ndarray) and is_float(item.dtype) else item
        for name, item in feeds.items()
    }


def _changed(model: onnx.ModelProto, change: Callable[[Array], Array]) -> bytes:
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for tensor in copy.graph.initializer:
        if tensor.data_type in (1, 10, 11, 16) and not tensor.external_data:
            array = change(numpy_helper.to_array(tensor))
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    return bytes(copy.SerializeToString())
