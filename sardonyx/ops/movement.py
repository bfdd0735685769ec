# mypy: disable-error-code="misc, no-any-return"
"""Elements moved to other places, repeated, or cleared; none of them computed."""

import numpy as np

from sardonyx.dims import Size, floor_divide
from sardonyx.dtypes import DataType
from sardonyx.errors import ConversionError, EvaluationError, InferenceError
from sardonyx.graph import Node, TensorType, Value
from sardonyx.ops.allocate import tile
from sardonyx.ops.build import Builder
from sardonyx.ops.early_opsets import known_rank
from sardonyx.ops.element_type import constant_like
from sardonyx.ops.fact import Fact, axis_of, broadcast, same_size, tensor, unknown
from sardonyx.ops.operator import Operator
from sardonyx.ops.precision import Array


class Transpose(Operator):
    """Dimensions in another order; reversed unless an order is given."""

    signatures = (
        "1(data: T, perm?: ints) -> transposed: T; T: all15",
        "13(data: T, perm?: ints) -> transposed: T; T: all",
        "21(data: T, perm?: ints) -> transposed: T; T: all float8s int4s",
        "23(data: T, perm?: ints) -> transposed: T; T: all float8s int4s float4e2m1",
        "24(data: T, perm?: ints) -> transposed: T; T: all float8s int4s float4e2m1 float8e8m0",
        "25(data: T, perm?: ints) -> transposed: T; T: all float8s int4s int2s float4e2m1 "
        "float8e8m0",
    )

    def infer(x: Fact, perm: tuple[int, ...] | None) -> Fact:
        rank = x.rank if perm is None else len(perm)
        if x.shape is None:
            return unknown(rank, x.dtype)
        order = range(len(x.shape))[::-1] if perm is None else perm
        if sorted(order) != list(range(len(x.shape))):
            raise InferenceError(f"perm {list(order)} is no order of the dimensions of {x}")
        return tensor(x.dtype, [x.shape[axis] for axis in order])

    def reference(x: Array, perm: tuple[int, ...] | None) -> Array:
        return np.transpose(x, perm)

    propagate = reference


class Expand(Operator):
    """A tensor repeated along dimensions of size 1, as broadcasting with a shape would."""

    signatures = (
        "8(input: T, shape: tensor(int64)) -> output: T; T: all15",
        "13(input: T, shape: tensor(int64)) -> output: T; T: all",
    )

    def infer(x: Fact, shape: Fact) -> Fact:
        sizes = shape.sizes()
        if sizes is not None and any(isinstance(size, int) and size < 0 for size in sizes):
            raise InferenceError(f"a tensor cannot be expanded to negative sizes: {list(sizes)}")
        return tensor(x.dtype, broadcast(x.shape, sizes))

    def view(x: Array, shape: Array) -> Array:
        return np.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(shape.tolist())))

    def reference(x: Array, shape: Array) -> Array:
        return Expand.view(x, shape).copy()

    propagate = reference


class Tile(Operator):
    """A tensor repeated whole, a number of times along each dimension."""

    signatures = (
        "1(input: T, tiles: T, axis: T) -> output: T; T: floats3; T1: int64",
        "6(input: T, repeats: T1) -> output: T; T: all15; T1: int64",
        "13(input: T, repeats: T1) -> output: T; T: all; T1: int64",
    )

    def infer(x: Fact, repeats: Fact) -> Fact:
        counts = repeats.sizes()
        if x.shape is None or counts is None:
            return unknown(x.rank if counts is None else len(counts), x.dtype)
        if len(counts) != len(x.shape):
            raise InferenceError(f"{len(counts)} repetitions do not fit {x}")
        pairs = zip(x.shape, counts, strict=True)
        return tensor(x.dtype, [None if a is None or b is None else a * b for a, b in pairs])

    def reference(x: Array, repeats: Array) -> Array:
        return tile(x, repeats.tolist()) if x.ndim else x.copy()

    propagate = reference

    def upgrade_1(node: Node, build: Builder) -> None:
        x, tiles, axis = node.inputs
        rank, known = known_rank(x), build.known(axis)
        if rank is None or known is None:
            raise ConversionError(
                "its rank and its axis must be known to tile along all dimensions"
            )
        before = int(known.reshape(-1)[0]) % max(rank, 1)
        count = build.Reshape(build.Cast(tiles, to=int(DataType.INT64)), [1])
        parts = ([1] * before, count, [1] * (rank - 1 - before))
        repeats = build.Concat(*(part for part in parts if part != []), axis=0)
        node.set_inputs([x, repeats])

    def downgrade_6(node: Node, build: Builder) -> None:
        raise ConversionError("before opset 6 there is no way to tile several dimensions at once")


class DepthToSpace(Operator):
    """Channels moved into blocks of pixels."""

    signatures = (
        "1(input: T, blocksize: int) -> output: T; T: all15",
        "11(input: T, blocksize: int, mode: string = 'DCR') -> output: T; T: all15",
        "13(input: T, blocksize: int, mode: string = 'DCR') -> output: T; T: all",
        "28(input: T, blocksize: int, mode: string = 'DCR') -> output: T; T: all",
    )

    def infer(x: Fact, blocksize: int, mode: str) -> Fact:
        if x.shape is None:
            return unknown(4, x.dtype)
        batch, channels, height, width = _image(x, mode)
        area = blocksize * blocksize
        if isinstance(channels, int) and channels % area:
            raise InferenceError(f"the channels of {x} do not fill blocks of {area}")
        fewer = _blocks(channels, area)
        return tensor(x.dtype, (batch, fewer, _times(height, blocksize), _times(width, blocksize)))

    def reference(x: Array, blocksize: int, mode: str) -> Array:
        batch, channels, height, width = x.shape
        depth = channels // (blocksize * blocksize)
        block = (blocksize, blocksize)
        head = (*block, depth) if mode == "DCR" else (depth, *block)
        order = (0, 3, 4, 1, 5, 2) if mode == "DCR" else (0, 1, 4, 2, 5, 3)
        blocks = x.reshape(batch, *head, height, width).transpose(order)
        return blocks.reshape(batch, depth, height * blocksize, width * blocksize)

    def function(build: Builder, x: Value, blocksize: int, mode: str) -> Value:
        batch, channels, height, width = _dimensions(build, x)
        depth = build.Div(channels, [blocksize * blocksize])
        head = ([blocksize, blocksize], depth) if mode == "DCR" else (depth, [blocksize, blocksize])
        order = (0, 3, 4, 1, 5, 2) if mode == "DCR" else (0, 1, 4, 2, 5, 3)
        apart = _reshape(build, x, build.Concat(batch, *head, height, width, axis=0), x)
        tall, wide = build.Mul(height, [blocksize]), build.Mul(width, [blocksize])
        moved = build.Transpose(apart, perm=order)
        return _reshape(build, moved, build.Concat(batch, depth, tall, wide, axis=0), x)


class SpaceToDepth(Operator):
    """Blocks of pixels moved into channels."""

    signatures = (
        "1(input: T, blocksize: int) -> output: T; T: all15",
        "13(input: T, blocksize: int) -> output: T; T: all",
        "28(input: T, blocksize: int, mode: string = 'DCR') -> output: T; T: all",
    )

    def infer(x: Fact, blocksize: int, mode: str) -> Fact:
        if x.shape is None:
            return unknown(4, x.dtype)
        batch, channels, height, width = _image(x, mode)
        if any(isinstance(size, int) and size % blocksize for size in (height, width)):
            raise InferenceError(f"blocks of {blocksize} by {blocksize} do not fill {x}")
        low, narrow = _blocks(height, blocksize), _blocks(width, blocksize)
        return tensor(x.dtype, (batch, _times(channels, blocksize * blocksize), low, narrow))

    def reference(x: Array, blocksize: int, mode: str) -> Array:
        batch, channels, height, width = x.shape
        low, narrow = height // blocksize, width // blocksize
        blocks = x.reshape(batch, channels, low, blocksize, narrow, blocksize)
        order = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
        return blocks.transpose(order).reshape(batch, channels * blocksize**2, low, narrow)

    def function(build: Builder, x: Value, blocksize: int, mode: str) -> Value:
        batch, channels, height, width = _dimensions(build, x)
        low, narrow = build.Div(height, [blocksize]), build.Div(width, [blocksize])
        inner = (low, [blocksize], narrow, [blocksize])
        apart = _reshape(build, x, build.Concat(batch, channels, *inner, axis=0), x)
        order = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
        deep = build.Mul(channels, [blocksize * blocksize])
        shape = build.Concat(batch, deep, low, narrow, axis=0)
        return _reshape(build, build.Transpose(apart, perm=order), shape, x)


def _image(x: Fact, mode: str) -> tuple[Size | None, Size | None, Size | None, Size | None]:
    if x.shape is None or len(x.shape) != 4:
        raise InferenceError(f"four dimensions are needed, not {x}")
    if mode not in ("DCR", "CRD"):
        raise InferenceError(f"mode '{mode}' is not one of DCR, CRD")
    batch, channels, height, width = x.shape
    return batch, channels, height, width


def _blocks(size: Size | None, each: int) -> Size | None:
    """How many blocks a size consists of."""
    if size is None:
        return None
    count = floor_divide(size, each)
    same_size(size, count * each, f"blocks of {each} do not fill")
    return count


def _times(size: Size | None, factor: int) -> Size | None:
    return None if size is None else size * factor


def _reshape(build: Builder, x: Value, shape: Value, source: Value) -> Value:
    """A tensor in a computed shape, where 0 means no elements unless `source` surely has some."""
    kind = source.type
    sizes = kind.shape if isinstance(kind, TensorType) else None
    filled = sizes is not None and all(isinstance(size, int) and size > 0 for size in sizes)
    return build.Reshape(x, shape, allowzero=1 if build.opset >= 14 and not filled else None)


def _dimensions(build: Builder, x: Value) -> tuple[Value, ...]:
    """The four sizes of a tensor, as vectors of one element."""
    shape = build.Shape(x)
    if build.opset >= 10:
        return tuple(build.Slice(shape, [axis], [axis + 1]) for axis in range(4))
    return tuple(build.Slice(shape, starts=[axis], ends=[axis + 1]) for axis in range(4))


class ReverseSequence(Operator):
    """Each sequence of a batch with its first elements, as many as its length, in reverse order."""

    signatures = (
        "10(input: T, sequence_lens: tensor(int64), batch_axis: int = 1, time_axis: int = 0) -> "
        "Y: T; T: all15",
        "28(input: T, sequence_lens: tensor(int64), batch_axis: int = 1, time_axis: int = 0) -> "
        "Y: T; T: all",
    )

    def infer(x: Fact, lengths: Fact, batch_axis: int, time_axis: int) -> Fact:
        along = (batch_axis, time_axis)
        places = along if x.rank is None else tuple(axis_of(axis, x.rank) for axis in along)
        if places[0] == places[1]:
            raise InferenceError(f"batch_axis and time_axis are both {places[0]}")
        if x.shape is not None and lengths.shape is not None and len(lengths.shape) == 1:
            batch = x.shape[axis_of(batch_axis, len(x.shape), "batch_axis")]
            same_size(batch, lengths.shape[0], f"{x} is given lengths of another batch")
        return tensor(x.dtype, x.shape)

    def reference(x: Array, lengths: Array, batch_axis: int, time_axis: int) -> Array:
        moved = np.moveaxis(x, (time_axis, batch_axis), (0, 1))
        if x.size and not 0 <= lengths.min() <= lengths.max() <= len(moved):
            raise EvaluationError(
                f"lengths lie between {lengths.min()} and {lengths.max()}, but sequences have "
                f"{len(moved)} elements",
                hint="feed lengths of 0 up to the size of the time axis",
            )
        steps = np.arange(moved.shape[0])[:, None]
        source = np.where(steps < lengths, lengths - 1 - steps, steps)
        reversed_ = moved[source, np.arange(moved.shape[1])]
        return np.ascontiguousarray(np.moveaxis(reversed_, (0, 1), (time_axis, batch_axis)))


class Trilu(Operator):
    """The upper or lower triangle of matrices; what lies beyond it becomes zero."""

    signatures = ("14(input: T, k?: tensor(int64), upper: int = 1) -> output: T; T: all",)

    def infer(x: Fact, k: Fact | None = None, *, upper: int) -> Fact:
        if x.rank is not None and x.rank < 2:
            raise InferenceError(f"matrices are needed, not {x}")
        return tensor(x.dtype, x.shape)

    def reference(x: Array, k: Array | None = None, *, upper: int) -> Array:
        diagonal = 0 if k is None else int(k.reshape(-1)[0])
        rows, columns = (np.arange(size) for size in x.shape[-2:])
        offsets = columns - rows[:, None]
        zero = np.array("", object) if x.dtype == object else np.zeros((), x.dtype)
        return np.where(offsets >= diagonal if upper else offsets <= diagonal, x, zero)

    def function(build: Builder, x: Value, k: Value | None = None, *, upper: int) -> Value:
        shape = build.Shape(x)
        rows, columns = (build.Range(0, build.Gather(shape, index), 1) for index in (-2, -1))
        axes = {"axes": [1]} if build.opset < 13 else {}
        column = build.Unsqueeze(rows, *([] if axes else [[1]]), **axes)
        offsets = build.Sub(build.Sub(columns, column), 0 if k is None else k)
        outside = build.Less(offsets, 0) if upper else build.Greater(offsets, 0)
        return build.Where(outside, constant_like(build, 0, x), x)
