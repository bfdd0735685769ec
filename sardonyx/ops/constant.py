# mypy: disable-error-code="misc, no-any-return"
"""Tensors out of nothing or of a few numbers."""

from typing import Any

import numpy as np

from sardonyx.dims import Expression, Size, ceil_divide, maximum
from sardonyx.dtypes import DataType, data_type
from sardonyx.errors import ConversionError, InferenceError
from sardonyx.graph import Node, Tensor, Value
from sardonyx.ops.allocate import count_up
from sardonyx.ops.build import Builder, constant_array
from sardonyx.ops.element_type import cast_like, element_type
from sardonyx.ops.fact import Fact, of_array, tensor, unknown
from sardonyx.ops.operator import Operator
from sardonyx.ops.precision import Array
from sardonyx.ops.symbolic import settled

_FORMS = (
    "(sparse_value?: sparse_tensor, value?: tensor, value_float?: float, value_floats?: floats, "
    "value_int?: int, value_ints?: ints, value_string?: string, value_strings?: strings) "
    "-> output: T"
)


def _constant(attributes: dict[str, Any]) -> Array:
    array = constant_array(attributes)
    if array is None:
        raise InferenceError("a constant has exactly one attribute that says its value")
    return array


class Constant(Operator):
    """A tensor that the node itself holds."""

    signatures = (
        "1(value: tensor) -> output: T; T: floats3",
        "9(value: tensor) -> output: T; T: all15",
        "11(sparse_value?: sparse_tensor, value?: tensor) -> output: T; T: all15",
        f"12{_FORMS}; T: all15",
        f"13{_FORMS}; T: all",
        f"19{_FORMS}; T: all float8s",
        f"21{_FORMS}; T: all float8s int4s",
        f"23{_FORMS}; T: all float8s int4s float4e2m1",
        f"24{_FORMS}; T: all float8s int4s float4e2m1 float8e8m0",
        f"25{_FORMS}; T: all float8s int4s int2s float4e2m1 float8e8m0",
    )

    def infer(**attributes: Any) -> Fact:
        return of_array(_constant(attributes))

    def reference(**attributes: Any) -> Array:
        return _constant(attributes)

    def downgrade_12(node: Node, build: Builder) -> None:
        _hold_tensor(node, build, kept=("value", "sparse_value"))

    def downgrade_11(node: Node, build: Builder) -> None:
        _hold_tensor(node, build, kept=("value",))


def _hold_tensor(node: Node, build: Builder, kept: tuple[str, ...]) -> None:
    """Say a constant with `value`, unless it is said with one of `kept`."""
    if any(name in node.attributes for name in kept):
        return
    array = build.known(node.output)
    if array is None:
        raise ConversionError("its value is not known before the function is called")
    node.attributes.clear()
    node.set_attribute("value", Tensor(array))


class ConstantOfShape(Operator):
    """A tensor of a shape that is computed, filled with one number."""

    signatures = (
        "9(input: T1, value?: tensor) -> output: T2; T1: int64; T2: numeric3 bool",
        "20(input: T1, value?: tensor) -> output: T2; T1: int64; T2: numeric float8s bool",
        "21(input: T1, value?: tensor) -> output: T2; T1: int64; T2: numeric float8s int4s bool",
        "23(input: T1, value?: tensor) -> output: T2; T1: int64; T2: numeric float8s int4s bool "
        "float4e2m1",
        "24(input: T1, value?: tensor) -> output: T2; T1: int64; T2: numeric float8s int4s bool "
        "float4e2m1 float8e8m0",
        "25(input: T1, value?: tensor) -> output: T2; T1: int64; T2: numeric float8s int4s int2s "
        "bool float4e2m1 float8e8m0",
    )

    def infer(shape: Fact, value: Array | None) -> Fact:
        dtype = DataType.FLOAT if value is None else of_array(value).dtype
        sizes = shape.sizes()
        if sizes is None:
            return unknown(None, dtype)
        if any(isinstance(size, int) and size < 0 for size in sizes):
            raise InferenceError(f"a shape cannot hold negative sizes: {list(sizes)}")
        return tensor(dtype, sizes)

    def view(shape: Array, value: Array | None) -> Array:
        fill = np.zeros(1, np.float32) if value is None else value.reshape(-1)[:1]
        return np.broadcast_to(fill.reshape(()), tuple(shape.tolist()))

    def reference(shape: Array, value: Array | None) -> Array:
        return ConstantOfShape.view(shape, value).copy()

    propagate = reference

    def function(build: Builder, shape: Value, value: Array | None) -> Value:
        fill = np.zeros(1, np.float32) if value is None else value
        return build.Expand(fill.reshape(()), shape)


class EyeLike(Operator):
    """A matrix of the input's shape with ones on one diagonal."""

    signatures = (
        "9(input: T1, dtype?: int, k: int = 0) -> output: T2; T1: numeric3 bool; T2: numeric3 bool",
        "22(input: T1, dtype?: int, k: int = 0) -> output: T2; T1: numeric bool; T2: numeric bool",
    )

    def infer(x: Fact, dtype: int | None, k: int) -> Fact:
        if x.rank not in (None, 2):
            raise InferenceError(f"a matrix is needed, not {x}")
        element = x.dtype if dtype is None else data_type(dtype)
        return tensor(element, (None, None) if x.shape is None else x.shape)

    def reference(x: Array, dtype: int | None, k: int) -> Array:
        rows, columns = x.shape
        element = x.dtype if dtype is None else data_type(dtype).numpy
        return np.eye(rows, columns, k, bool).astype(element)


class Range(Operator):
    """Numbers from a start up to, and without, a limit, in equal steps."""

    signatures = (
        "11(start: T, limit: T, delta: T) -> output: T; T: double float int16 int32 int64",
        "27(start: T, limit: T, delta: T, stash_type: int = 1) -> output: T; T: floats int16 "
        "int32 int64",
    )

    def infer(start: Fact, limit: Fact, delta: Fact, stash_type: int) -> Fact:
        for name, fact in (("start", start), ("limit", limit), ("delta", delta)):
            if any(isinstance(size, int) and size != 1 for size in fact.shape or ()):
                raise InferenceError(f"{name} is one number, not {fact}")
        dtype = start.dtype or limit.dtype or delta.dtype
        return tensor(dtype, (_count(start.scalar(), limit.scalar(), delta.scalar()),))

    def reference(start: Array, limit: Array, delta: Array, stash_type: int) -> Array:
        return _range(start, limit, delta, stash_type)

    def propagate(start: Array, limit: Array, delta: Array, stash_type: int) -> Array | None:
        if object not in (start.dtype, limit.dtype, delta.dtype):
            return _range(start, limit, delta, stash_type)
        first, step = start.reshape(-1)[0], delta.reshape(-1)[0]
        count = _count(first, limit.reshape(-1)[0], step)
        if not isinstance(count, int) or first is None:
            return None
        return settled([first + int(step) * index for index in range(count)], DataType.INT64)

    def function(
        build: Builder, start: Value, limit: Value, delta: Value, stash_type: int
    ) -> Value:
        """Start + step * (0, 1, ...), the indices being where a tensor of ones is not zero."""
        element = element_type(start)
        parts = (start, limit, delta)
        if element in (DataType.FLOAT16, DataType.BFLOAT16) and stash_type == DataType.FLOAT:
            made = _progression(
                build, *(build.Cast(item, to=int(DataType.FLOAT)) for item in parts)
            )
            return build.Cast(made, to=int(element))
        return _progression(build, *parts)


def _range(start: Array, limit: Array, delta: Array, stash_type: int) -> Array:
    dtype = start.dtype
    if dtype.itemsize == 2 and dtype.kind != "i" and stash_type == DataType.FLOAT:
        start, limit, delta = (item.astype(np.float32) for item in (start, limit, delta))
    first, end, step = (item.reshape(-1)[0] for item in (start, limit, delta))
    count = _count(first, end, step)
    if not isinstance(count, int):
        raise InferenceError("the step of a range is zero")
    return (first + count_up(count).astype(start.dtype) * step).astype(dtype)


def _progression(build: Builder, start: Value, limit: Value, delta: Value) -> Value:
    span = build.Cast(build.Sub(limit, start), to=int(DataType.DOUBLE))
    steps = build.Ceil(build.Div(span, build.Cast(delta, to=int(DataType.DOUBLE))))
    count = build.Cast(build.Max(steps, np.float64(0)), to=int(DataType.INT64))
    if build.opset < 15 and element_type(start) is None:
        return _counted(build, start, count, delta)
    ones = build.ConstantOfShape(build.Reshape(count, [1]), value=Tensor(np.ones(1, np.int64)))
    indices = cast_like(build, build.Reshape(build.NonZero(ones), [-1]), start)
    return build.Add(start, build.Mul(indices, delta))


def _counted(build: Builder, start: Value, count: Value, delta: Value) -> Value:
    """Numbers added up one after another, whatever their type."""
    body = build.inside("numbers")
    _, again, number = (body.input(name) for name in ("index", "again", "number"))
    results = (body.Identity(again), body.Add(number, delta), body.Identity(number))
    body.graph.outputs.extend(results)
    _, numbers = build.Loop(count, np.bool_(True), start, body=body.graph, outputs=2)
    return numbers


def _count(start: Any, limit: Any, delta: Any) -> Size | None:
    """How many numbers a range has: ceil((limit - start) / delta), but not below zero."""
    if start is None or limit is None or delta is None or isinstance(delta, Expression):
        return None
    if delta == 0:
        return None
    if isinstance(start, Expression) or isinstance(limit, Expression):
        span = _plain(limit) - _plain(start)
        span = span if delta > 0 else -span
        return ceil_divide(maximum(span, 0), abs(int(delta)))
    if isinstance(start, int | np.integer):
        return max(0, -((int(start) - int(limit)) // int(delta)))
    return max(0, int(np.ceil(np.float64(limit - start) / np.float64(delta))))


def _plain(size: Any) -> Size:
    return size if isinstance(size, Expression) else int(size)
