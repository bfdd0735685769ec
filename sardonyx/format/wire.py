"""Protobuf's wire format: varints, tags, and a walk over the fields of a message."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Buffer = bytes | memoryview

VARINT, FIXED64, BYTES, GROUP, END_GROUP, FIXED32 = range(6)
DEEPEST = 100
"""How many messages may lie inside one another: protobuf's own limit."""
MASK = (1 << 64) - 1


class WireError(Exception):
    """What is wrong with the bytes, and the offset at which it shows."""

    def __init__(self, offset: int, what: str) -> None:
        self.offset = offset
        self.what = what
        super().__init__(f"{what} at byte {offset}")


def read_varint(buffer: Buffer, pos: int, end: int) -> tuple[int, int]:
    """A varint as an unsigned 64-bit number, and the offset behind it."""
    start = pos
    value = shift = 0
    while True:
        if pos >= end:
            raise WireError(start, "the data ends inside a number")
        byte = buffer[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & MASK, pos
        shift += 7
        if shift > 63:
            raise WireError(start, "a number has more than ten bytes")


def signed(value: int) -> int:
    """An unsigned 64-bit number read as a signed one."""
    return value - (1 << 64) if value >> 63 else value


def fields(buffer: Buffer, pos: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Walk a message: (tag, a, b, at) for each field, where bytes [at, b) are the whole field.

    For a varint `a` is its value, for every other kind `a` is where its content starts.
    """
    while pos < end:
        at = pos
        tag = buffer[pos]
        pos += 1
        if tag >= 0x80:
            tag, pos = read_varint(buffer, at, end)
        kind = tag & 7
        if tag < 8:
            raise WireError(at, "a field has the number 0")
        if kind == BYTES:
            size, pos = read_varint(buffer, pos, end)
            stop = pos + size
            if stop > end:
                raise WireError(at, f"a field claims {size} bytes where {end - pos} are left")
            yield tag, pos, stop, at
            pos = stop
        elif kind == VARINT:
            value, pos = read_varint(buffer, pos, end)
            yield tag, value, pos, at
        elif kind in (FIXED32, FIXED64):
            stop = pos + (4 if kind == FIXED32 else 8)
            if stop > end:
                raise WireError(at, "the data ends inside a number")
            yield tag, pos, stop, at
            pos = stop
        elif kind == GROUP:
            start, pos = pos, _skip_group(buffer, pos, end, tag >> 3, at)
            yield tag, start, pos, at
        else:
            raise WireError(at, f"a field has the wire type {kind}, which does not exist here")
        if tag >> 3 > 0x1FFFFFFF:
            raise WireError(at, f"the field number {tag >> 3} is too large")


def _skip_group(buffer: Buffer, pos: int, end: int, number: int, start: int) -> int:
    open_groups = [number]
    while open_groups:
        at = pos
        tag, pos = read_varint(buffer, pos, end)
        match tag & 7:
            case 0:
                _, pos = read_varint(buffer, pos, end)
            case 1:
                pos += 8
            case 2:
                size, pos = read_varint(buffer, pos, end)
                pos += size
            case 3:
                open_groups.append(tag >> 3)
                if len(open_groups) > DEEPEST:
                    raise WireError(start, f"more than {DEEPEST} groups lie inside one another")
            case 4:
                if open_groups.pop() != tag >> 3:
                    raise WireError(at, "a group ends that did not begin")
            case 5:
                pos += 4
            case kind:
                raise WireError(at, f"a field has the wire type {kind}, which does not exist")
        if pos > end:
            raise WireError(at, "the data ends inside a group")
    return pos


def integers(buffer: Buffer, start: int, end: int, into: list[int]) -> None:
    """Append the signed numbers of a packed field."""
    while start < end:
        value, start = read_varint(buffer, start, end)
        into.append(signed(value))


def count_varints(buffer: Buffer) -> int:
    """How many varints a packed field holds."""
    return int(np.count_nonzero(np.frombuffer(buffer, np.uint8) < 0x80))


def decode_varints(buffer: Buffer) -> NDArray[np.uint64]:
    """The varints of a packed field, all at once."""
    data = np.frombuffer(buffer, np.uint8)
    last = np.flatnonzero(data < 0x80)
    if data.size and (last.size == 0 or last[-1] != data.size - 1):
        raise WireError(0, "the data ends inside a number")
    first = np.concatenate(([0], last[:-1] + 1)) if last.size else last
    lengths = last - first + 1
    if last.size and int(lengths.max()) > 10:
        raise WireError(0, "a number has more than ten bytes")
    values = (data[first] & 0x7F).astype(np.uint64)
    for extra in range(1, int(lengths.max(initial=0))):
        longer = np.flatnonzero(lengths > extra)
        group = (data[first[longer] + extra] & 0x7F).astype(np.uint64)
        values[longer] |= group << np.uint64(7 * extra)
    return values


def varint(value: int) -> bytes:
    """A number as a varint; a negative one takes ten bytes.

    >>> varint(300)
    b'\\xac\\x02'
    """
    if 0 <= value < 0x80:
        return _SMALL[value]
    value &= MASK
    pieces = bytearray()
    while value >= 0x80:
        pieces.append(value & 0x7F | 0x80)
        value >>= 7
    pieces.append(value)
    return bytes(pieces)


_SMALL = tuple(bytes((value,)) for value in range(0x80))
