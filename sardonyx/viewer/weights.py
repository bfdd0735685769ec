"""What a page says of a constant: type, size, statistics and a histogram, from a sample."""

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sardonyx.errors import SardonyxError
from sardonyx.graph import SparseTensor, Tensor

SAMPLE = 16_384
"""Elements looked at in a large tensor."""
BLOCKS = 64
"""Stretches a sample consists of, spread evenly over the tensor."""
BINS = 32
SHOWN = 24
"""Tensors with no more elements than this are shown in full."""
SMALL = 6
"""Tensors with no more elements than this are written out in boxes."""
_EXTREME_NAMES = {str(2**63 - 1): "max", str(2**63): "max", str(2**31 - 1): "max"}
_EXTREMES = re.compile(rf"\b(?:{'|'.join(_EXTREME_NAMES)})\b")
"""Numbers that stand for "to the end" in slices."""
LONGEST_TEXT = 600
LARGEST_UNPACKED = 1 << 26
"""Elements of a tensor that must be decoded as a whole; a larger one is not looked into."""


def describe_tensor(tensor: Tensor | SparseTensor) -> dict[str, Any]:
    """Statistics of a tensor as plain data; `problem` says why there are none.

    >>> found = describe_tensor(Tensor(np.arange(4, dtype=np.float32)))
    >>> found["low"], found["high"], found["mean"], found["text"]
    (0.0, 3.0, 1.5, '[0.0, 1.0, 2.0, 3.0]')
    """
    dense = tensor.values if isinstance(tensor, SparseTensor) else tensor
    if dense is None:
        return {"problem": "the sparse tensor lacks its values"}
    try:
        return _describe_dense(dense)
    except SardonyxError as error:
        return {"problem": str(error)}


def small_text(tensor: Tensor | SparseTensor) -> str:
    """The elements of a very small tensor as text; nothing for others.

    >>> small_text(Tensor(np.float32(0.1)))
    '= 0.1'
    """
    try:
        if isinstance(tensor, SparseTensor) or tensor.size > SMALL:
            return ""
        return "= " + _EXTREMES.sub(lambda found: _EXTREME_NAMES[found[0]], _text(tensor.numpy()))
    except SardonyxError:
        return ""


def _describe_dense(tensor: Tensor) -> dict[str, Any]:
    size = tensor.size
    if size > LARGEST_UNPACKED and tensor.dtype.bits < 8:
        return {"problem": "too large to be unpacked for statistics"}
    array = tensor.numpy().reshape(-1)
    found: dict[str, Any] = {"count": size}
    if size <= SHOWN:
        found["text"] = _text(tensor.numpy())
    if array.dtype.kind not in "OSU" and size:
        found |= _statistics(_sample(array))
        found["sampled"] = size > SAMPLE
    return found


def _text(array: NDArray[Any]) -> str:
    if array.dtype == object:
        items = [_string(item) for item in array.reshape(-1)]
        text = repr(items[0] if array.ndim == 0 and items else items)
    else:
        text = repr(_plain(array.tolist()))
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"


def _string(item: Any) -> str:
    return item.decode("utf-8", "replace") if isinstance(item, bytes) else str(item)


def _plain(item: Any) -> Any:
    """Nested lists with numbers rounded to what a reader can use."""
    if isinstance(item, list):
        return [_plain(part) for part in item]
    if isinstance(item, bool | int | complex):
        return item
    return float(f"{float(item):.6g}")


def _sample(array: NDArray[Any]) -> NDArray[Any]:
    if array.size <= SAMPLE:
        return array
    length = SAMPLE // BLOCKS
    starts = np.linspace(0, array.size - length, BLOCKS).astype(np.int64)
    return np.concatenate([array[start : start + length] for start in starts])


def _statistics(sample: NDArray[Any]) -> dict[str, Any]:
    numbers = np.abs(sample) if sample.dtype.kind == "c" else sample
    numbers = numbers.astype(np.float64)
    finite = numbers[np.isfinite(numbers)]
    found: dict[str, Any] = {
        "zeros": float(np.mean(numbers == 0)),
        "odd": float(1 - finite.size / numbers.size),
    }
    if finite.size == 0:
        return found
    low, high = float(finite.min()), float(finite.max())
    with np.errstate(all="ignore"):
        moments = {"mean": float(finite.mean()), "deviation": float(finite.std())}
    found |= {"low": low, "high": high}
    found |= {name: number for name, number in moments.items() if np.isfinite(number)}
    if low < high and np.isfinite(high - low):
        counts, _ = np.histogram(finite, bins=BINS, range=(low, high))
        found["bins"] = (counts * 100 / counts.max()).round(1).tolist()
    return found
