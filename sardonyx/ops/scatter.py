# mypy: disable-error-code="misc, no-any-return"
"""Tensors with elements put in, or joined in, at positions that are data."""

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.errors import EvaluationError, InferenceError
from sardonyx.graph import Node, Tensor, Value
from sardonyx.ops.build import Builder
from sardonyx.ops.element_type import element_type
from sardonyx.ops.fact import Fact, Sizes, axis_of, require_room, same_size, sizes_text, tensor
from sardonyx.ops.indexing import along, in_range
from sardonyx.ops.operator import Operator
from sardonyx.ops.parameters import count_from_front
from sardonyx.ops.precision import Array, widen

_REDUCTIONS: dict[str, np.ufunc] = {
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}
_ON_BOOLEANS: dict[str, np.ufunc] = {
    "add": np.logical_or,
    "mul": np.logical_and,
    "max": np.logical_or,
    "min": np.logical_and,
}


def put(x: Array, places: tuple[Array, ...], updates: Array, reduction: str) -> Array:
    """A copy of `x` with updates written, or joined by a reduction, at the places given."""
    if reduction == "none":
        result = x.copy()
        result[places] = updates
        return result
    if reduction not in _REDUCTIONS:
        raise EvaluationError(
            f"reduction '{reduction}' is not one of none, {', '.join(_REDUCTIONS)}"
        )
    ufunc = (_ON_BOOLEANS if x.dtype == bool else _REDUCTIONS)[reduction]
    wide = widen(x).copy()
    ufunc.at(wide, places, widen(updates))
    return wide.astype(x.dtype)


def _check_reduction(reduction: str) -> None:
    if reduction != "none" and reduction not in _REDUCTIONS:
        raise InferenceError(
            f"reduction '{reduction}' is not one of none, {', '.join(_REDUCTIONS)}"
        )


_OPERATORS = {"add": "Add", "mul": "Mul", "max": "Max", "min": "Min"}
_LOGIC = {"add": "Or", "mul": "And", "max": "Or", "min": "And"}


def _one_by_one(node: Node, build: Builder) -> Value | None:
    """Reductions that an older version does not know, as a loop over what has no repetitions."""
    reduction = node.attribute("reduction", "none")
    if reduction == "none" or (build.opset >= 16 and reduction in ("add", "mul")):
        return None
    x, indices, updates = node.inputs
    names = _LOGIC if element_type(x) == DataType.BOOL else _OPERATORS
    if node.op_type == "ScatterND":
        count = build.Slice(build.Shape(indices), [-1], [_MANY])
        inner = build.Slice(build.Shape(x), count, [_MANY])
        rows = build.Reshape(indices, build.Concat([-1], count, axis=0))
        length = build.Slice(build.Shape(rows), [0], [1])
        items = build.Reshape(updates, build.Concat(length, inner, axis=0))
        axis, how = 0, {}
    else:
        rows, items, axis = indices, updates, node.attribute("axis", 0)
        how = {"axis": axis}
    body = build.inside("update")
    index, going, state = (body.input(name) for name in ("index", "going", "state"))
    place, item = (body.Gather(part, body.Reshape(index, [1]), axis=axis) for part in (rows, items))
    gather, scatter = node.op_type.replace("Scatter", "Gather"), node.op_type
    present = body.node(gather, (state, place), 1, "", how)
    joined = body.node(names[reduction], (present, item), 1, "", {})
    written = body.node(scatter, (state, place, joined), 1, "", how)
    body.graph.outputs.extend([body.Identity(going), written])
    total = build.Gather(build.Shape(rows), axis)
    return build.Loop(total, np.array(True), x, body=body.graph)


_MANY = 2**31 - 1


class ScatterElements(Operator):
    """Single updates written along a dimension: the reverse of GatherElements."""

    signatures = (
        "11(data: T, indices: Tind, updates: T, axis: int = 0) -> output: T; T: all15; Tind: "
        "int32 int64",
        "13(data: T, indices: Tind, updates: T, axis: int = 0) -> output: T; T: all; Tind: int32 "
        "int64",
        "16(data: T, indices: Tind, updates: T, axis: int = 0, reduction: string = 'none') -> "
        "output: T; T: all; Tind: int32 int64",
        "18(data: T, indices: Tind, updates: T, axis: int = 0, reduction: string = 'none') -> "
        "output: T; T: all; Tind: int32 int64",
    )

    def infer(x: Fact, indices: Fact, updates: Fact, axis: int, reduction: str) -> Fact:
        _check_reduction(reduction)
        return _infer_elements(x, indices, updates, axis)

    def reference(x: Array, indices: Array, updates: Array, axis: int, reduction: str) -> Array:
        return put(x, along(indices, axis, x.shape), updates, reduction)

    def propagate(
        x: Array, indices: Array, updates: Array, axis: int, reduction: str
    ) -> Array | None:
        if indices.dtype == object or reduction != "none":
            return None
        return put(x.astype(object), along(indices, axis, x.shape), updates, reduction)

    downgrade_18 = _one_by_one
    downgrade_16 = _one_by_one

    def downgrade_11(node: Node, build: Builder) -> None:
        node.op_type = "Scatter"
        count_from_front(node, build)


class Scatter(Operator):
    """What ScatterElements was called before opset 11."""

    signatures = (
        "9(data: T, indices: Tind, updates: T, axis: int = 0) -> output: T; T: all15; Tind: int32 "
        "int64",
        "11(data: T, indices: Tind, updates: T, axis: int = 0) -> output: T; T: all15; Tind: "
        "int32 int64 deprecated",
    )

    def infer(x: Fact, indices: Fact, updates: Fact, axis: int) -> Fact:
        return _infer_elements(x, indices, updates, axis)

    def reference(x: Array, indices: Array, updates: Array, axis: int) -> Array:
        return put(x, along(indices, axis, x.shape), updates, "none")

    def upgrade_9(node: Node, build: Builder) -> None:
        node.op_type = "ScatterElements"


def _infer_elements(x: Fact, indices: Fact, updates: Fact, axis: int) -> Fact:
    shape: Sizes | None = x.shape
    if x.shape is not None:
        axis_of(axis, len(x.shape))
    for fact in (indices, updates):
        if x.rank is not None and fact.rank not in (None, x.rank):
            raise InferenceError(f"{fact} does not fit {x}: their ranks differ")
    if indices.shape is not None and updates.shape is not None:
        if len(indices.shape) != len(updates.shape):
            raise InferenceError(f"the updates {updates} do not fit the indices {indices}")
        for left, right in zip(indices.shape, updates.shape, strict=True):
            same_size(left, right, f"the updates {updates} do not fit the indices {indices}")
        shape = shape or (None,) * len(indices.shape)
    if x.shape is not None and indices.shape is not None:
        along = axis_of(axis, len(x.shape))
        for other, (size, room) in enumerate(zip(indices.shape, x.shape, strict=True)):
            if other != along and size is not None and room is not None:
                require_room(room - size, f"the indices {indices} do not fit into {x}")
    return tensor(x.dtype or updates.dtype, shape)


class ScatterND(Operator):
    """Updates written at positions named by several coordinates: the reverse of GatherND."""

    signatures = (
        "11(data: T, indices: tensor(int64), updates: T) -> output: T; T: all15",
        "13(data: T, indices: tensor(int64), updates: T) -> output: T; T: all",
        "16(data: T, indices: tensor(int64), updates: T, reduction: string = 'none') -> output: "
        "T; T: all",
        "18(data: T, indices: tensor(int64), updates: T, reduction: string = 'none') -> output: "
        "T; T: all",
    )

    def infer(x: Fact, indices: Fact, updates: Fact, reduction: str) -> Fact:
        _check_reduction(reduction)
        if x.shape is not None and indices.shape is not None and indices.shape:
            count = indices.shape[-1]
            if isinstance(count, int) and not 0 <= count <= len(x.shape):
                raise InferenceError(f"{count} coordinates do not fit {x}")
            if isinstance(count, int) and updates.shape is not None:
                _check_updates((*indices.shape[:-1], *x.shape[count:]), updates)
        return tensor(x.dtype or updates.dtype, x.shape)

    def reference(x: Array, indices: Array, updates: Array, reduction: str) -> Array:
        return _scatter_nd(x, indices, updates, reduction)

    def propagate(x: Array, indices: Array, updates: Array, reduction: str) -> Array | None:
        if indices.dtype == object or reduction != "none":
            return None
        return _scatter_nd(x.astype(object), indices, updates, reduction)

    downgrade_18 = _one_by_one
    downgrade_16 = _one_by_one


def _scatter_nd(x: Array, indices: Array, updates: Array, reduction: str) -> Array:
    count = indices.shape[-1]
    if count > x.ndim:
        raise EvaluationError(f"{count} coordinates do not fit the shape {list(x.shape)}")
    if updates.shape != indices.shape[:-1] + x.shape[count:]:
        raise EvaluationError(f"updates of the shape {list(updates.shape)} do not fit")
    if updates.size == 0:
        return x.copy()
    sizes = x.shape[:count]
    places = [in_range(indices[..., place], size) for place, size in enumerate(sizes)]
    return put(x, tuple(places), updates, reduction)


def _check_updates(wanted: Sizes, updates: Fact) -> None:
    what = f"updates of {sizes_text(wanted)} are needed, not {updates}"
    if updates.shape is None or len(updates.shape) != len(wanted):
        raise InferenceError(what)
    for left, right in zip(wanted, updates.shape, strict=True):
        same_size(left, right, what)


class TensorScatter(Operator):
    """A cache with a run of new entries written along one dimension, at a place for each sample.

    Places of entries without elements do not matter.
    """

    signatures = (
        "24(past_cache: T, update: T, write_indices?: tensor(int64), axis: int = -2, mode: string "
        "= 'linear') -> present_cache: T; T: all float8s int4s float4e2m1 float8e8m0",
    )

    def infer(
        cache: Fact, update: Fact, starts: Fact | None = None, *, axis: int, mode: str
    ) -> Fact:
        if mode not in ("linear", "circular"):
            raise InferenceError(f"mode '{mode}' is not one of linear, circular")
        if cache.shape is None or update.shape is None:
            return tensor(cache.dtype or update.dtype, cache.shape)
        place = axis_of(axis, len(cache.shape))
        what = f"the update {update} does not fit the cache {cache}"
        if place == 0 or len(update.shape) != len(cache.shape):
            raise InferenceError(what)
        for other, (left, right) in enumerate(zip(cache.shape, update.shape, strict=True)):
            if other != place:
                same_size(left, right, what)
            elif isinstance(left, int) and isinstance(right, int) and right > left:
                raise InferenceError(what)
        if starts is not None and starts.shape is not None:
            if len(starts.shape) != 1:
                raise InferenceError(f"write_indices are one for each sample, not {starts}")
            what = f"{starts} are not as many write_indices as there are samples"
            same_size(cache.shape[0], starts.shape[0], what)
        return tensor(cache.dtype, cache.shape)

    def reference(
        cache: Array, update: Array, starts: Array | None = None, *, axis: int, mode: str
    ) -> Array:
        if update.size == 0:
            return cache.copy()
        length, count = cache.shape[axis], update.shape[axis]
        first = np.zeros(cache.shape[0], np.int64) if starts is None else starts
        places = first[:, None] + np.arange(count)
        if mode == "circular":
            places = places % length
        elif places.size and not 0 <= places.min() <= places.max() < length:
            raise EvaluationError(
                f"entries {places.min()} to {places.max()} leave a cache of {length}"
            )
        result = cache.copy()
        moved = np.moveaxis(result, axis, 1)
        moved[np.arange(cache.shape[0])[:, None], places] = np.moveaxis(update, axis, 1)
        return result

    def function(
        build: Builder,
        cache: Value,
        update: Value,
        starts: Value | None = None,
        *,
        axis: int,
        mode: str,
    ) -> Value:
        """Every element scattered to its place along the axis."""
        shape = build.Shape(update)
        length = build.Gather(build.Shape(cache), axis)
        places = build.Range(0, build.Gather(shape, axis), 1)
        if starts is not None:
            places = build.Add(places, build.Unsqueeze(starts, [1]))
        if mode == "circular":
            places = build.Mod(places, length)
        else:  # before the first entry there is none, which a scatter would count from the end
            places = build.Where(build.Less(places, 0), length, places)
        return _scatter_runs(build, cache, update, places, axis, starts is not None)


def _scatter_runs(
    build: Builder, cache: Value, update: Value, places: Value, axis: int, batched: bool
) -> Value:
    """Scatter `update` to places given for each entry, or for each entry of each sample."""
    shape = build.Shape(update)
    rank = build.Shape(shape)
    ones = build.ConstantOfShape(rank, value=Tensor(np.ones(1, np.int64)))
    sizes = build.Gather(shape, [0, axis] if batched else [axis])
    spread = build.ScatterElements(ones, [0, axis] if batched else [axis], sizes)
    indices = build.Expand(build.Reshape(places, spread), shape)
    return build.ScatterElements(cache, indices, update, axis=axis)
