"""What all attention operators of `com.microsoft` compute: heads, masks, scores, rotation.

Letters: B batch, N heads, S queries, T keys (those of the past included), H size of a head.
"""

import numpy as np

from sardonyx.errors import EvaluationError
from sardonyx.ops.ms_arithmetic import softmax
from sardonyx.ops.precision import Array, widen

LOWEST = np.finfo(np.float32).min
MASK_FILTER = -10000.0
"""What is added to the score of a masked key unless a node says otherwise."""


def split_heads(x: Array, heads: int) -> Array:
    """B, S, N*H -> B, N, S, H.

    >>> split_heads(np.zeros((2, 3, 8)), 4).shape
    (2, 4, 3, 2)
    """
    batch, length, hidden = x.shape
    return x.reshape(batch, length, heads, hidden // heads).swapaxes(1, 2)


def merge_heads(x: Array) -> Array:
    """B, N, S, H -> B, S, N*H."""
    batch, heads, length, size = x.shape
    return x.swapaxes(1, 2).reshape(batch, length, heads * size)


def mask_bias(mask: Array, batch: int, queries: int, keys: int, filtered: float) -> Array:
    """What a mask adds to scores, as B, 1, S or 1, T.

    One axis: B ends of the keys, B more where they start (other counts hold offsets that say the
    same again). Two axes: 1 for a key to attend to. Three axes: 1 for a query and key. Four axes:
    the same for all positions of a longer sequence.
    """
    match mask.ndim:
        case 1:
            position = np.arange(keys)
            seen = position < mask[:batch, None]
            if len(mask) == 2 * batch:
                seen &= position >= mask[batch:, None]
            seen = seen[:, None, None]
        case 2:
            seen = (mask > 0)[:, None, None]
        case 3:
            seen = (mask > 0)[:, None]
        case 4:
            seen = (mask > 0)[:, :, keys - queries : keys, :keys]
        case _:
            raise EvaluationError(f"a mask of {mask.ndim} axes is not known")
    if seen.shape[-1] != keys:
        raise EvaluationError(f"a mask for {seen.shape[-1]} keys does not fit {keys} keys")
    return np.where(seen, np.float32(0), np.float32(filtered))


def score_bias(
    attention_bias: Array | None, mask: Array | None, filtered: float | None, *, causal: bool,
    batch: int, queries: int, keys: int, before: int,
) -> Array | None:  # fmt: skip
    """What is added to scores: a bias, a mask, and by `causal` that a query sees no later keys.

    The first query stands behind `before` keys.
    """
    total = None
    if mask is not None:
        outside = MASK_FILTER if filtered is None else filtered
        total = mask_bias(mask, batch, queries, keys, outside)
    if causal:
        later = np.arange(keys) > np.arange(queries)[:, None] + before
        total = np.where(later, LOWEST, np.float32(0) if total is None else total)
    if attention_bias is None:
        return total
    wide = widen(attention_bias)
    return wide if total is None else wide + total


def attend(
    query: Array, key: Array, value: Array, scale: float | None, bias: Array | None = None
) -> tuple[Array, Array]:
    """Scores of B, N, S, H queries against keys, and the values they weigh out."""
    factor = np.float32(scale if scale else 1 / np.sqrt(query.shape[-1]))
    scores = query @ key.swapaxes(-1, -2) * factor
    if bias is not None:
        scores = scores + bias
    return softmax(scores) @ value, scores


def rotate(x: Array, positions: Array, cosines: Array, sines: Array, *, interleaved: bool) -> Array:
    """Turn pairs of the first elements of B, N, S, H by the angles of B, S positions."""
    if positions.size and not 0 <= positions.min() <= positions.max() < len(cosines):
        raise EvaluationError(f"a position lies outside the {len(cosines)} rows of the cache")
    cosine, sine = cosines[positions][:, None], sines[positions][:, None]
    half = cosines.shape[1]
    turned, rest = x[..., : 2 * half], x[..., 2 * half :]
    if interleaved:
        real, imaginary = turned[..., 0::2], turned[..., 1::2]
    else:
        real, imaginary = turned[..., :half], turned[..., half:]
    pair = (real * cosine - imaginary * sine, imaginary * cosine + real * sine)
    joint = np.stack(pair, -1).reshape(turned.shape) if interleaved else np.concatenate(pair, -1)
    return np.concatenate([joint, rest], -1)


def standard_angles(length: int, size: int) -> tuple[Array, Array]:
    """Cosines and sines of `length` positions for heads of `size`, of the base 10000."""
    steps = np.float32(10000) ** (-np.arange(0, size, 2, dtype=np.float32) / np.float32(size))
    angles = np.arange(length, dtype=np.float32)[:, None] * steps
    return np.cos(angles), np.sin(angles)


def joined(past: Array | None, new: Array) -> Array:
    """Keys or values of the past and new ones behind each other."""
    return new if past is None else np.concatenate([past, new], 2)


def stored(buffer: Array, start: int, new: Array) -> Array:
    """A copy of a buffer of B, N, M, H in which new rows stand from `start` on."""
    if start + new.shape[2] > buffer.shape[2]:
        raise EvaluationError(
            f"{new.shape[2]} rows from {start} on do not fit a buffer of {buffer.shape[2]}"
        )
    filled = buffer.copy()
    filled[:, :, start : start + new.shape[2]] = new
    return filled
