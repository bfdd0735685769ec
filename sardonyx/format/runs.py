"""Long lists in attributes: fields of one tag, one after another, read as one."""

from collections.abc import Iterator
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from sardonyx.format.opened import Stored, content_of
from sardonyx.format.pages import let_go
from sardonyx.format.tags import ATTRIBUTE, packed
from sardonyx.format.wire import Buffer, decode_varints, fields, read_varint
from sardonyx.graph.stored_list import StoredList
from sardonyx.record import record

LONG = 1 << 9
"""Bytes from which on a list is read as a run."""
_PART = 5 << 12
"""Bytes of a run that are looked at together: a multiple of a float's field."""

Position = tuple[int, Any, int, int]


@record
class Run:
    """Items in a run of fields, each with its tag of one byte."""

    stored: Stored
    count: int
    item: type[int] | type[float] | type[bytes]

    @property
    def buffer(self) -> Buffer:
        """The fields' bytes."""
        return content_of(self.stored)

    def array(self) -> NDArray[Any]:
        """All of them, decoded part by part."""
        buffer = self.buffer
        if self.item is float:
            narrow = _records(buffer)[:, 1:].copy().view("<f4")[:, 0]
            with np.errstate(invalid="ignore"):  # a NaN may be a signaling one
                return narrow.astype(np.float64)
        found = np.empty(self.count, np.int64 if self.item is int else object)
        if self.item is bytes:
            known: dict[bytes, bytes] = {}
            for place, (start, stop) in enumerate(_strings(buffer, 0, len(buffer))):
                content = bytes(buffer[start:stop])
                found[place] = known.setdefault(content, content)
            return found
        done = at = 0
        while done < self.count:
            part = np.frombuffer(buffer[at : at + _PART], np.uint8)
            ends = np.flatnonzero(part < 0x80)
            pairs = ends.size // 2
            stop = int(ends[2 * pairs - 1]) + 1
            found[done : done + pairs] = decode_varints(part[:stop].data)[1::2].view(np.int64)
            done, at = done + pairs, at + stop
        return found

    def __hash__(self) -> int:
        buffer = self.buffer
        found = crc32(buffer)
        let_go(buffer)
        return found


def fields_and_runs(buffer: Buffer, pos: int, end: int) -> Iterator[Position]:
    """Walk an attribute as `fields` does; a long list is one field of the negative tag.

    Such a field has the list in the place of where its content starts.
    """
    missed = False
    while pos < end:
        for field in fields(buffer, pos, end):
            tag, at = field[0], field[3]
            if tag in _RUNS and not missed and end - at >= LONG:
                item, find = _RUNS[tag]
                count, stop = find(buffer, at, end)
                missed = stop - at < LONG
                if not missed:
                    content = buffer[at:stop]
                    let_go(content)
                    yield -tag, StoredList(Run(content, count, item)), stop, at
                    pos = stop
                    break
            yield field
        else:
            return


def only_run(spans: list[Position], tag: int, buffer: Buffer) -> StoredList | None:
    """A list that is one long run, or one long packed field, which becomes a run."""
    kind, content, stop, _ = spans[0]
    if len(spans) > 1 or kind == tag:
        return None
    if kind == -tag:
        return content  # type: ignore[no-any-return]
    return _unpacked(tag, buffer[content:stop]) if kind == packed(tag) else None


def _unpacked(tag: int, content: Buffer) -> StoredList | None:
    """A packed field's numbers, as a run; None where it is short, or not well formed."""
    data = np.frombuffer(content, np.uint8)
    if data.size < LONG:
        return None
    if tag == ATTRIBUTE.floats:
        if data.size % 4:
            return None
        records = np.full((data.size // 4, 5), tag, np.uint8)
        records[:, 1:] = data.reshape(-1, 4)
        return StoredList(Run(records.tobytes(), len(records), float))
    ends = np.flatnonzero(data < 0x80)
    starts = np.concatenate(([0], ends + 1))
    if starts[-1] != data.size or int(np.diff(starts).max()) > 10:
        return None
    return StoredList(Run(np.insert(data, starts[:-1], tag).tobytes(), ends.size, int))


def _find_integers(buffer: Buffer, start: int, end: int) -> tuple[int, int]:
    """How many well-formed integers there are one after another, and where they end."""
    count, at = 0, start
    while at < end:
        part = np.frombuffer(buffer[at : min(at + _PART, end)], np.uint8)
        ends = np.flatnonzero(part < 0x80)
        starts = np.concatenate(([0], ends[: ends.size // 2 * 2] + 1))
        tags, values, behind = starts[:-1:2], starts[1::2], starts[2::2]
        fits = (part[tags] == ATTRIBUTE.ints) & (behind - values <= 10)
        good = fits.size if fits.all() else int(fits.argmin())
        count, at = count + good, at + int(starts[2 * good])
        if not good or good < fits.size:
            break
    return count, at


def _find_floats(buffer: Buffer, start: int, end: int) -> tuple[int, int]:
    at = start
    while end - at >= 5:
        stop = at + min(_PART, (end - at) // 5 * 5)
        fits = _records(buffer[at:stop])[:, 0] == ATTRIBUTE.floats
        good = fits.size if fits.all() else int(fits.argmin())
        at += 5 * good
        if good < fits.size:
            break
    return (at - start) // 5, at


def _records(buffer: Buffer) -> NDArray[np.uint8]:
    return np.frombuffer(buffer, np.uint8).reshape(-1, 5)


def _find_strings(buffer: Buffer, start: int, end: int) -> tuple[int, int]:
    count, at = 0, start
    for _, at in _strings(buffer, start, end):  # noqa: B007 - the last one's end is wanted
        count += 1
    return count, at


def _strings(buffer: Buffer, at: int, end: int) -> Iterator[tuple[int, int]]:
    """Where strings begin and end, up to a field of another kind or one cut short."""
    while at < end and buffer[at] == ATTRIBUTE.strings:
        size, start = read_varint(buffer, at + 1, end)
        at = start + size
        if at > end:
            return
        yield start, at


_RUNS: dict[int, Any] = {
    ATTRIBUTE.ints: (int, _find_integers),
    ATTRIBUTE.floats: (float, _find_floats),
    ATTRIBUTE.strings: (bytes, _find_strings),
}
