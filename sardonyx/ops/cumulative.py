"""Running sums and products."""

from collections.abc import Callable
from typing import Any

import numpy as np

from sardonyx.errors import ConversionError, EvaluationError
from sardonyx.graph import Graph, Value
from sardonyx.ops.build import Builder
from sardonyx.ops.early_opsets import known_rank
from sardonyx.ops.element_type import constant_like, constant_value
from sardonyx.ops.fact import Fact, axis_of, tensor
from sardonyx.ops.operator import Operator
from sardonyx.ops.precision import Array, widen


def _accumulate(
    add: Callable[..., Any], first: int, x: Array, axis: Array, exclusive: int, reverse: int
) -> Array:
    """Results along an axis of everything up to an element, with that element or without it."""
    if axis.size != 1:
        raise EvaluationError(f"the axis must be one number, not {axis.size}")
    along = axis_of(int(axis.reshape(())), x.ndim)
    wide = np.moveaxis(widen(x), along, 0)
    wide = wide[::-1] if reverse else wide
    if exclusive and len(wide):
        wide = np.concatenate([np.full_like(wide[:1], first), wide[:-1]])
    result = add(wide, axis=0, dtype=wide.dtype)
    result = result[::-1] if reverse else result
    return np.ascontiguousarray(np.moveaxis(result, 0, along)).astype(x.dtype, copy=False)


class _Running(Operator):
    """Results that run along one axis, given as an input."""

    def infer(x: Fact, axis: Fact, exclusive: int, reverse: int) -> Fact:
        along = axis.scalar()
        if x.shape is not None and isinstance(along, int | np.integer):
            axis_of(int(along), len(x.shape))
        return tensor(x.dtype, x.shape)


class CumSum(_Running):
    """Sums of all elements up to each one, along an axis."""

    signatures = (
        "11(x: T, axis: T2, exclusive: int = 0, reverse: int = 0) -> y: T;"
        " T: wide double float; T2: int32 int64",
        "14(x: T, axis: T2, exclusive: int = 0, reverse: int = 0) -> y: T;"
        " T: floats wide; T2: int32 int64",
    )

    def reference(x: Array, axis: Array, exclusive: int, reverse: int) -> Array:
        return _accumulate(np.add.accumulate, 0, x, axis, exclusive, reverse)


class CumProd(_Running):
    """Products of all elements up to each one, along an axis."""

    signatures = (
        "26(x: T, axis: T2, exclusive: int = 0, reverse: int = 0) -> y: T;"
        " T: floats wide; T2: int32 int64",
    )

    def reference(x: Array, axis: Array, exclusive: int, reverse: int) -> Array:
        return _accumulate(np.multiply.accumulate, 1, x, axis, exclusive, reverse)

    def function(build: Builder, x: Value, axis: Value, exclusive: int, reverse: int) -> Any:
        constant, rank = constant_value(axis), known_rank(x)
        if constant is not None:
            return _product(build, x, int(constant.reshape(())), exclusive, reverse)
        if rank is None:
            raise ConversionError("the axis must be a constant, or the rank known")
        result = x
        for along in range(rank):
            this = build.Or(
                build.Equal(axis, constant_like(build, along, axis)),
                build.Equal(axis, constant_like(build, along - rank, axis)),
            )
            found, other = Graph("found"), Graph("other")
            inside = Builder(found, build.opset)
            found.outputs.append(_product(inside, x, along, exclusive, reverse))
            other.outputs.append(Builder(other, build.opset).Identity(result))
            result = build.If(this, then_branch=found, else_branch=other)
        return result


def _product(build: Builder, x: Value, axis: int, exclusive: int, reverse: int) -> Any:
    """A running product along a known axis."""
    _, result = build.Scan(
        _ones_across(build, x, axis), x, outputs=2, body=_product_body(build.opset, exclusive),
        num_scan_inputs=1, scan_input_axes=[axis], scan_output_axes=[axis],
        scan_input_directions=[reverse], scan_output_directions=[reverse],
    )  # fmt: skip
    return result


def _product_body(opset: int, exclusive: int) -> Graph:
    """One step: (product so far, element) -> (product with it, what is put out)."""
    body = Graph("product")
    so_far, element = body.add_input("so_far"), body.add_input("element")
    build = Builder(body, opset)
    product = build.Mul(so_far, element)
    body.outputs.append(product)
    body.outputs.append(build.Identity(so_far if exclusive else product))
    return body


def _ones_across(build: Builder, x: Value, axis: int) -> Any:
    """Ones in the type of x and in its shape without `axis`."""
    shape = build.Shape(x)
    before = build.Slice(shape, [0], [axis])
    after = build.Slice(shape, [axis + 1], [np.iinfo(np.int64).max])
    rest = before if axis == -1 else build.Concat(before, after, axis=0)
    return build.CastLike(build.Expand(np.float32(1), rest), x)
