"""What products of quantized numbers are, by whole-number arithmetic: no runtime is asked.

Processors without instructions for products of bytes lead other runtimes to add two such products
in 16 bits, which saturate, so that what they give depends on the machine.
"""

import itertools
from typing import Any

import numpy as np

CLOSE = 1e-5
"""How far a real number may be off by the order in which scales are multiplied, as a part of it."""


def whole(array: Any, zero: Any = None, axis: int | None = None) -> Any:
    """Codes less their zero point, in 64 bits; a vector of zero points lies along `axis`."""
    wide = np.asarray(array).astype(np.int64)
    return wide - along(0 if zero is None else zero, wide.ndim, axis)


def along(items: Any, rank: int, axis: int | None) -> Any:
    """A number, or a vector as it lies along an axis of a tensor of some rank."""
    items = np.asarray(items)
    items = items.astype(np.float64 if items.dtype.kind == "f" else np.int64)
    if items.size == 1 or axis is None:
        return items.reshape(()) if items.size == 1 else items
    shape = [1] * rank
    shape[axis] = items.size
    return items.reshape(shape)


def convolve(
    x: Any, w: Any, *, group: int = 1, strides: Any = (1, 1), dilations: Any = (1, 1),
    pads: Any = (0, 0, 0, 0),
) -> Any:  # fmt: skip
    """The sums of products of whole numbers that a convolution of images is."""
    rows, columns = w.shape[2:]
    x = np.pad(x, ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])))
    high = (x.shape[2] - dilations[0] * (rows - 1) - 1) // strides[0] + 1
    wide = (x.shape[3] - dilations[1] * (columns - 1) - 1) // strides[1] + 1
    total = np.zeros((len(x), len(w), high, wide), np.int64)
    images, filters = np.split(x, group, 1), np.split(w, group)
    for row, column in itertools.product(range(rows), range(columns)):
        top, left = row * dilations[0], column * dilations[1]
        below, right = top + (high - 1) * strides[0] + 1, left + (wide - 1) * strides[1] + 1
        parts = [
            np.einsum("nchw,oc->nohw", image[:, :, top : below : strides[0],
                                             left : right : strides[1]], some[:, :, row, column])
            for image, some in zip(images, filters, strict=True)
        ]  # fmt: skip
        total += np.concatenate(parts, 1)
    return total


def pads_of(kind: str, size: Any, kernel: Any, strides: Any = (1, 1)) -> list[int]:
    """The pads that SAME_UPPER or SAME_LOWER stands for."""
    totals = [
        max((-(-n // s) - 1) * s + k - n, 0) for n, k, s in zip(size, kernel, strides, strict=True)
    ]
    less = [total // 2 for total in totals]
    more = [total - part for total, part in zip(totals, less, strict=True)]
    return [*less, *more] if kind == "SAME_UPPER" else [*more, *less]


def assert_codes(found: Any, real: Any, zero: Any) -> None:
    """Codes are real numbers rounded, as exactly as any order of multiplying scales can.

    `real` is in steps of the result's scale, without its zero point.
    """
    limits, real = np.iinfo(found.dtype), np.asarray(real, np.float64)
    slack = np.abs(real) * CLOSE + CLOSE
    low, high = (
        np.clip(np.rint(bound) + int(zero), limits.min, limits.max).astype(np.int64)
        for bound in (real - slack, real + slack)
    )
    codes = found.astype(np.int64)
    assert found.shape == real.shape, f"{found.shape} where {real.shape} is expected"
    wrong = (codes < low) | (codes > high)
    assert not wrong.any(), f"{int(wrong.sum())} of {wrong.size} codes are no rounded products"


def dynamically_quantized(x: Any) -> tuple[Any, float]:
    """Codes less their zero point, and their scale, of a tensor quantized by its own range."""
    low, high = min(float(x.min()), 0.0), max(float(x.max()), 0.0)
    scale = np.float32((np.float32(high) - np.float32(low)) / np.float32(255)) or np.float32(1)
    zero = np.clip(np.rint(np.float32(-low) / scale), 0, 255)
    codes = np.clip(np.rint(x.astype(np.float32) / scale) + zero, 0, 255)
    return (codes - zero).astype(np.int64), float(scale)
