# mypy: disable-error-code="misc"
"""Rotary position embedding."""

import numpy as np

from sardonyx.dims import Size, floor_divide
from sardonyx.errors import EvaluationError, InferenceError
from sardonyx.graph import TensorType, Value
from sardonyx.ops.build import Builder
from sardonyx.ops.fact import Fact, same_size, tensor
from sardonyx.ops.operator import Operator
from sardonyx.ops.precision import Array, widen

_END = np.iinfo(np.int64).max


class RotaryEmbedding(Operator):
    """Turns pairs of a head's elements by angles that depend on the position."""

    signatures = (
        "23(X: T, cos_cache: T, sin_cache: T, position_ids?: M, interleaved: int = 0, "
        "num_heads?: int, rotary_embedding_dim: int = 0) -> Y: T; "
        "T: bfloat16 float float16; M: int64",
    )

    def infer(
        x: Fact, cosine: Fact, sine: Fact, positions: Fact | None = None, *,
        interleaved: int, num_heads: int | None, rotary_embedding_dim: int,
    ) -> Fact:  # fmt: skip
        if x.rank not in (None, 3, 4):
            raise InferenceError(f"X has rank {x.rank}, expected 3 or 4")
        if x.rank == 3 and not num_heads:
            raise InferenceError("X has rank 3, which needs the attribute num_heads")
        rank = 3 if positions is None else 2
        for fact, name in ((cosine, "cos_cache"), (sine, "sin_cache")):
            if fact.rank not in (None, rank):
                raise InferenceError(f"{name} has rank {fact.rank}, expected {rank}")
        half = _half(x, num_heads, rotary_embedding_dim)
        for fact in (cosine, sine):
            same_size(half, fact.shape[-1] if fact.shape else None, "half the rotated size, cache")
        return tensor(x.dtype, x.shape)

    def reference(
        x: Array, cosine: Array, sine: Array, positions: Array | None = None, *,
        interleaved: int, num_heads: int | None, rotary_embedding_dim: int,
    ) -> Array:  # fmt: skip
        if x.ndim == 4:
            heads = x.swapaxes(1, 2)
        elif x.ndim == 3 and num_heads and x.shape[2] % num_heads == 0:
            heads = x.reshape(*x.shape[:2], num_heads, x.shape[2] // num_heads)
        else:
            raise EvaluationError(f"X of shape {list(x.shape)} has no {num_heads} heads")
        size = rotary_embedding_dim or heads.shape[3]
        if positions is not None:
            cosine, sine = cosine[positions], sine[positions]
        cos, sin = widen(cosine)[:, :, None], widen(sine)[:, :, None]
        if not cos.shape[-1] == sin.shape[-1] == size // 2:
            raise EvaluationError(f"caches of {cos.shape[-1]} angles turn no {size} elements")
        turned = widen(heads[..., :size]).copy()
        first = np.s_[..., 0::2] if interleaved else np.s_[..., : size // 2]
        second = np.s_[..., 1::2] if interleaved else np.s_[..., size // 2 :]
        real, imaginary = turned[first].copy(), turned[second].copy()
        turned[first] = cos * real - sin * imaginary
        turned[second] = sin * real + cos * imaginary
        result = np.concatenate([turned.astype(x.dtype), heads[..., size:]], -1)
        return result.swapaxes(1, 2) if x.ndim == 4 else result.reshape(x.shape)

    def function(
        build: Builder, x: Value, cosine: Value, sine: Value, positions: Value | None = None, *,
        interleaved: int, num_heads: int | None, rotary_embedding_dim: int,
    ) -> Value:  # fmt: skip
        packed = bool(num_heads) and not _has_four_axes(x)
        if packed:
            heads = build.Reshape(x, [0, 0, num_heads, -1])
        else:
            heads = build.Transpose(x, perm=[0, 2, 1, 3])
        if positions is not None:
            cosine, sine = build.Gather(cosine, positions), build.Gather(sine, positions)
        cos, sin = build.Unsqueeze(cosine, [2]), build.Unsqueeze(sine, [2])
        size = rotary_embedding_dim
        turned = build.Slice(heads, [0], [size], [3]) if size else heads
        if interleaved:
            real = build.Slice(turned, [0], [_END], [3], [2])
            imaginary = build.Slice(turned, [1], [_END], [3], [2])
        else:
            count = {"num_outputs": 2} if build.opset >= 18 else {}
            real, imaginary = build.Split(turned, axis=3, outputs=2, **count)
        parts = [
            build.Sub(build.Mul(cos, real), build.Mul(sin, imaginary)),
            build.Add(build.Mul(sin, real), build.Mul(cos, imaginary)),
        ]
        if interleaved:
            pairs = build.Concat(*(build.Unsqueeze(part, [4]) for part in parts), axis=4)
            result = build.Reshape(pairs, build.Shape(turned))
        else:
            result = build.Concat(*parts, axis=3)
        if size:
            result = build.Concat(result, build.Slice(heads, [size], [_END], [3]), axis=3)
        if packed:
            return build.Reshape(result, build.Shape(x))  # type: ignore[no-any-return]
        return build.Transpose(result, perm=[0, 2, 1, 3])  # type: ignore[no-any-return]


def _half(x: Fact, num_heads: int | None, rotated: int) -> Size | None:
    """Half of the elements that are turned in each head, where it is known."""
    if rotated:
        return rotated // 2
    if x.shape is None or x.shape[-1] is None:
        return None
    return floor_divide(x.shape[-1], 2 * (num_heads or 1) if x.rank == 3 else 2)


def _has_four_axes(x: Value) -> bool:
    kind = x.type
    return isinstance(kind, TensorType) and kind.shape is not None and len(kind.shape) == 4
