# mypy: disable-error-code="misc, no-any-return"
"""Layer normalization joined with what stands before it: skip connections and embeddings."""

from typing import Any

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.errors import EvaluationError
from sardonyx.ops.fact import Fact, Sizes, axis_of, broadcast, same_size, tensor
from sardonyx.ops.infer import InferContext
from sardonyx.ops.ms_arithmetic import size_of
from sardonyx.ops.operator import Operator
from sardonyx.ops.precision import Array, widen


def normalize(
    x: Array, axes: tuple[int, ...], epsilon: float, *, centre: bool
) -> tuple[Array, Array, Array]:
    """(x - mean) / deviation over axes, the mean (0 without `centre`), and 1 / deviation."""
    mean = x.mean(axes, keepdims=True) if centre else np.zeros_like(x.mean(axes, keepdims=True))
    rest = x - mean
    inverse = 1 / np.sqrt(np.square(rest).mean(axes, keepdims=True) + x.dtype.type(epsilon))
    return rest * inverse, mean, inverse


def _reduced(shape: Sizes | None, axis: int) -> Sizes | None:
    if shape is None:
        return None
    axis = axis_of(axis, len(shape))
    return (*shape[:axis], *(1 for _ in shape[axis:]))


class _SkipNormalization(Operator):
    """Normalization of input + skip + bias; the sum is an output too."""

    domain = "com.microsoft"

    def infer(
        x: Fact, skip: Fact, gamma: Fact, *rest: Fact | None, context: InferContext, **_: Any
    ) -> tuple[Fact, ...]:
        hidden = same_size(size_of(x, -1), size_of(gamma, 0), "gamma does not fit the last axis")
        shape = None if x.shape is None else (*x.shape[:-1], hidden)
        broadcast(shape, skip.shape)
        moment = tensor(DataType.FLOAT, _reduced(shape, -1))
        return (tensor(x.dtype, shape), moment, moment, tensor(x.dtype, shape))[: context.outputs]


def _skip_normalization(
    terms: list[Array | None], gamma: Array, beta: Array | None, epsilon: float, *, centre: bool
) -> tuple[Array, ...]:
    dtype = gamma.dtype
    total = sum(widen(term) for term in terms if term is not None)
    assert isinstance(total, np.ndarray)
    unit, mean, inverse = normalize(total, (-1,), epsilon, centre=centre)
    result = unit * widen(gamma)
    if beta is not None:
        result = result + widen(beta)
    moments = (mean.astype(np.float32), inverse.astype(np.float32))
    return result.astype(dtype), *moments, total.astype(dtype)


class SkipLayerNormalization(_SkipNormalization):
    """Layer normalization of input + skip + bias over the last axis."""

    signatures = (
        "1(input: T, skip: T, gamma: T, beta?: T, bias?: T, epsilon: float = 1e-12)"
        " -> (output: T, mean?: U, inv_std_var?: U, input_skip_bias_sum?: T);"
        " T: bfloat16 float float16; U: float",
    )

    def reference(
        x: Array, skip: Array, gamma: Array, beta: Array | None = None, bias: Array | None = None,
        *, epsilon: float,
    ) -> tuple[Array, ...]:  # fmt: skip
        return _skip_normalization([x, skip, bias], gamma, beta, epsilon, centre=True)


class SkipSimplifiedLayerNormalization(_SkipNormalization):
    """input + skip + bias, divided by its root mean square over the last axis."""

    signatures = (
        "1(input: T, skip: T, gamma: T, bias?: T, epsilon: float = 1e-12)"
        " -> (output: T, mean?: U, inv_std_var?: U, input_skip_bias_sum?: T);"
        " T: bfloat16 float float16; U: float",
    )

    def reference(
        x: Array, skip: Array, gamma: Array, bias: Array | None = None, *, epsilon: float
    ) -> tuple[Array, ...]:
        return _skip_normalization([x, skip, bias], gamma, None, epsilon, centre=False)


class SimplifiedLayerNormalization(Operator):
    """X divided by its root mean square over all axes from `axis` on, times a scale."""

    signatures = (
        "1(X: T, scale: V, axis: int = -1, epsilon: float = 1e-05, stash_type: int = 1)"
        " -> (Y: V, inv_std_var?: U); T: floats; U: double float; V: floats",
    )

    def infer(
        x: Fact, scale: Fact, axis: int, epsilon: float, stash_type: int, context: InferContext
    ) -> tuple[Fact, ...]:
        wide = DataType.DOUBLE if stash_type == DataType.DOUBLE else DataType.FLOAT
        made = (tensor(scale.dtype, x.shape), tensor(wide, _reduced(x.shape, axis)))
        return made[: context.outputs]

    def reference(
        x: Array, scale: Array, axis: int, epsilon: float, stash_type: int
    ) -> tuple[Array, Array]:
        axes = tuple(range(axis_of(axis, x.ndim), x.ndim))
        unit, _, inverse = normalize(widen(x), axes, epsilon, centre=False)
        wide = np.float64 if stash_type == DataType.DOUBLE else np.float32
        return (unit * widen(scale)).astype(scale.dtype), inverse.astype(wide)


class MicrosoftSimplifiedLayerNormalization(SimplifiedLayerNormalization):
    """The same operator under its other domain."""

    domain = "com.microsoft"
    name = "SimplifiedLayerNormalization"


class EmbedLayerNormalization(Operator):
    """Layer normalization of the sum of word, position and segment embeddings; lengths of masks."""

    domain = "com.microsoft"
    signatures = (
        "1(input_ids: T1, segment_ids?: T1, word_embedding: T, position_embedding: T,"
        " segment_embedding?: T, gamma: T, beta: T, mask?: T1, position_ids?: T1,"
        " epsilon: float = 1e-12, mask_index_type?: int)"
        " -> (output: T, mask_index?: T1, embedding_sum?: T); T1: int32; T: float float16",
    )

    def infer(
        ids: Fact, segment_ids: Fact | None, words: Fact, *rest: Fact | None,
        context: InferContext, **_: Any,
    ) -> tuple[Fact, ...]:  # fmt: skip
        sizes = (size_of(ids, 0), size_of(ids, 1), size_of(words, 1))
        output = tensor(words.dtype, sizes)
        return (output, tensor(DataType.INT32, sizes[:1]), output)[: context.outputs]

    def reference(
        ids: Array, segment_ids: Array | None, words: Array, positions: Array,
        segments: Array | None, gamma: Array, beta: Array, mask: Array | None = None,
        position_ids: Array | None = None, *, epsilon: float, mask_index_type: int | None,
    ) -> tuple[Array, Array, Array]:  # fmt: skip
        places = np.arange(ids.shape[1])[None] if position_ids is None else position_ids
        total = widen(_rows(words, ids, "word")) + widen(_rows(positions, places, "position"))
        if segments is not None and segment_ids is not None:
            total = total + widen(_rows(segments, segment_ids, "segment"))
        unit, _, _ = normalize(total, (-1,), epsilon, centre=True)
        output = (unit * widen(gamma) + widen(beta)).astype(words.dtype)
        length = np.zeros(len(ids), np.int32)
        if mask is not None:
            length = (mask == 1).sum(1).astype(np.int32)
        return output, length, total.astype(words.dtype)


def _rows(table: Array, indices: Array, what: str) -> Array:
    if indices.size and not 0 <= indices.min() <= indices.max() < len(table):
        raise EvaluationError(f"a {what} id lies outside the {len(table)} rows of its table")
    return table[indices]
