"""Tensor elements as numbers in a list: raw bytes to numbers and back, per element type."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sardonyx.dtypes import DataType, pack, unpack
from sardonyx.format.text_numbers import format_floats

TYPE_NUMBERS = {kind.text: int(kind) for kind in DataType if kind != DataType.UNDEFINED}
"""Element type names of the textual syntax -> ONNX's numbers."""
TYPE_NAMES = {number: name for name, number in TYPE_NUMBERS.items()}

_CANONICAL = {4: (0x7FC00000, 0xFFC00000), 8: (0x7FF8 << 48, 0xFFF8 << 48)}
_PATTERNS = {2: "<u1", 4: "<u1", 6: "<u1", 8: "<u1", 16: "<u2"}


def listed_type(kind: DataType) -> np.dtype[Any] | None:
    """How an element is listed: by value, or by its bit pattern where it is a narrow float or bool.

    >>> listed_type(DataType.BFLOAT16), listed_type(DataType.COMPLEX64)
    (dtype('uint16'), dtype('float32'))
    """
    match kind:
        case DataType.UNDEFINED | DataType.STRING:
            return None
        case DataType.FLOAT | DataType.COMPLEX64:
            return np.dtype("<f4")
        case DataType.DOUBLE | DataType.COMPLEX128:
            return np.dtype("<f8")
        case DataType.INT2 | DataType.INT4:
            return np.dtype("<i1")
    return kind.numpy.newbyteorder("<") if _whole(kind) else np.dtype(_PATTERNS[kind.bits])


def _whole(kind: DataType) -> bool:
    return kind.is_integer and kind.bits >= 8


def numbers_of_raw(raw: bytes, kind: DataType, dims: Sequence[int]) -> NDArray[Any] | None:
    """The numbers that list `raw` exactly; None when no list gives the same bytes back.

    >>> numbers_of_raw(b"\\xf1\\x02", DataType.INT4, [3]).tolist()
    [1, -1, 2]
    """
    form = listed_type(kind)
    if form is None:
        return None
    if kind.bits < 8:
        return _codes_of_raw(raw, kind, dims)
    if len(raw) % form.itemsize:
        return None
    numbers = np.frombuffer(raw, form)
    return numbers if form.kind != "f" or _nans_are_canonical(numbers) else None


def _codes_of_raw(raw: bytes, kind: DataType, dims: Sequence[int]) -> NDArray[Any] | None:
    stream = np.frombuffer(raw, np.uint8)
    fitting = len(raw) * 8 // kind.bits
    count = 1
    for size in dims:
        count = min(count * max(size, 0), fitting + 1)
    for length in (count, fitting):
        if kind.raw_size(length) != len(raw):
            continue
        codes = unpack(stream, kind.bits, length)
        if pack(codes, kind.bits).tobytes() == raw:
            return _signed(codes, kind)
    return None


def _signed(codes: NDArray[np.uint8], kind: DataType) -> NDArray[Any]:
    if listed_type(kind) != np.int8:
        return codes
    half = 1 << (kind.bits - 1)
    return ((codes ^ half).astype(np.int8) - half).astype(np.int8)


def _nans_are_canonical(numbers: NDArray[Any]) -> bool:
    """True when every NaN is one of the two that `nan` and `-nan` stand for."""
    bits = numbers.view(f"<u{numbers.itemsize}")[np.isnan(numbers)]
    return bool(np.isin(bits, np.array(_CANONICAL[numbers.itemsize], bits.dtype)).all())


def number_limits(kind: DataType) -> tuple[int, int]:
    """The least and greatest number that may be listed for an element kept in raw bytes.

    >>> number_limits(DataType.INT4), number_limits(DataType.FLOAT16)
    ((-8, 7), (0, 65535))
    """
    form = listed_type(kind)
    assert form is not None and form.kind in "iu"
    bits = min(kind.bits, form.itemsize * 8)
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if form.kind == "i" else (0, (1 << bits) - 1)


def raw_of_numbers(numbers: Any, kind: DataType) -> bytes:
    """The raw bytes of listed numbers, each within `number_limits`.

    >>> raw_of_numbers([1, -1, 2], DataType.INT4)
    b'\\xf1\\x02'
    """
    form = listed_type(kind)
    assert form is not None
    array = np.asarray(numbers, form)
    if kind.bits >= 8:
        return array.tobytes()
    return pack(array.view(np.uint8) & np.uint8((1 << kind.bits) - 1), kind.bits).tobytes()


def format_numbers(numbers: NDArray[Any]) -> list[str]:
    """Each number as text: integers plainly, floats as the shortest exact decimals.

    >>> format_numbers(np.array([1, -2], np.int8))
    ['1', '-2']
    """
    return format_floats(numbers) if numbers.dtype.kind == "f" else list(map(str, numbers.tolist()))
