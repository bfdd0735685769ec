"""Machine code: object code joined into one piece when it is made, put into memory when it is run.

LLVM can load what it made, but a program from the cache does not need all of LLVM for that. Joined
is what LLVM makes for x86-64 on Linux, where code knows others by whole addresses; other object
code stays as it is, and LLVM loads it.
"""

import ctypes
import mmap
import struct
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from sardonyx.errors import UnsupportedError

_HEADER = b"\x7fELF\x02\x01"
_RELOCATABLE, _X86_64 = 1, 62
_CONTENT, _SYMBOLS, _RELOCATIONS, _EMPTY = 1, 2, 4, 8
_WRITABLE, _IN_MEMORY, _OF_A_THREAD = 1, 2, 1 << 10
_WHOLE_ADDRESS = 1
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_WORD = struct.Struct("<Q")
_WORD_RANGE = 1 << 64


@dataclass(frozen=True, slots=True)
class Joined:
    """Code that runs at any address, once its words are set."""

    content: bytes
    functions: dict[str, int]
    """Where each function begins."""
    inside: tuple[int, ...]
    """Places of words to which the address of the content is added."""
    outside: tuple[tuple[int, str], ...]
    """Places of words to which the address of a function of the C library is added."""


Code = Joined | tuple[bytes, ...]
"""Machine code as an image keeps it: joined, or objects that LLVM must load."""


class _Section(NamedTuple):
    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    entry: int


class Memory:
    """Joined code in memory; it lives as long as this object."""

    def __init__(self, code: Joined) -> None:
        size = -(-len(code.content) // mmap.PAGESIZE) * mmap.PAGESIZE
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        self._memory = mmap.mmap(-1, size, flags, mmap.PROT_READ | mmap.PROT_WRITE)
        self._memory[: len(code.content)] = code.content
        self._pin = ctypes.c_char.from_buffer(self._memory)
        self._base = ctypes.addressof(self._pin)
        self._functions = code.functions
        for place in code.inside:
            self._add(place, self._base)
        for place, name in code.outside:
            address = _library_address(name)
            if address is None:
                raise UnsupportedError(f"the C library has no function '{name}'")
            self._add(place, address)
        protect = ctypes.CDLL(None, use_errno=True).mprotect
        protect.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
        if protect(self._base, size, mmap.PROT_READ | mmap.PROT_EXEC):
            raise UnsupportedError(
                "the system does not let this process run code that it made",
                hint="allow memory that was written to be executed, or use the reference provider",
            )

    def _add(self, place: int, address: int) -> None:
        (word,) = _WORD.unpack_from(self._memory, place)
        _WORD.pack_into(self._memory, place, (word + address) % _WORD_RANGE)

    def address(self, name: str) -> int:
        """Where a function begins."""
        return self._base + self._functions[name]


class Loaded(Protocol):
    """Machine code in memory."""

    def address(self, name: str) -> int:
        """Where a function begins."""
        ...


def load_code(code: Code, target: str | None = None) -> Loaded:
    """Put code into memory, where it lives as long as the result."""
    if isinstance(code, Joined):
        return Memory(code)
    # All of LLVM, which a program from the cache mostly does without.
    from sardonyx.compiler.emit_engine import Engine, host_target

    return Engine(code, host_target(target))


def join_objects(objects: Sequence[bytes]) -> Code:
    """Objects as one piece of code, or as they are where they are of a kind not known here."""
    try:
        return _Joiner(objects).joined() if sys.platform == "linux" else tuple(objects)
    except _UnknownError:
        return tuple(objects)


class _UnknownError(Exception):
    """Something in an object that only LLVM can load."""


class _Joiner:
    def __init__(self, objects: Sequence[bytes]) -> None:
        self.content = bytearray()
        self.functions: dict[str, int] = {}
        self.inside: list[int] = []
        self.outside: list[tuple[int, str]] = []
        self.waiting: list[tuple[int, str, int]] = []
        for content in objects:
            self.add(memoryview(content))

    def joined(self) -> Joined:
        """Everything, with the functions that objects have from each other found."""
        for place, name, added in self.waiting:
            if name in self.functions:
                self.set(place, self.functions[name] + added)
                self.inside.append(place)
            elif _library_address(name) is not None:
                self.set(place, added)
                self.outside.append((place, name))
            else:
                raise _UnknownError
        parts = tuple(self.inside), tuple(self.outside)
        return Joined(bytes(self.content), self.functions, *parts)

    def add(self, content: memoryview) -> None:
        if bytes(content[:6]) != _HEADER or struct.unpack_from("<HH", content, 16) != (
            _RELOCATABLE, _X86_64,
        ):  # fmt: skip
            raise _UnknownError
        (start,) = struct.unpack_from("<Q", content, 40)
        (count,) = struct.unpack_from("<H", content, 60)
        sections = [
            _Section(*_SECTION.unpack_from(content, start + number * _SECTION.size))
            for number in range(count)
        ]
        places = self.place(content, sections)
        symbols = list(self.symbols(content, sections, places))
        for section in sections:
            if section.kind == _RELOCATIONS and section.info in places:
                self.relocate(_rows(_RELOCATION, content, section), places[section.info], symbols)

    def place(self, content: memoryview, sections: list[_Section]) -> dict[int, int]:
        """Where each section that code needs goes."""
        places = {}
        for number, section in enumerate(sections):
            if not section.flags & _IN_MEMORY or section.kind not in (_CONTENT, _EMPTY):
                continue
            if section.kind == _EMPTY or section.flags & (_WRITABLE | _OF_A_THREAD):
                raise _UnknownError
            self.content += bytes(-len(self.content) % max(section.align, 1))
            places[number] = len(self.content)
            self.content += content[section.offset : section.offset + section.size]
        return places

    def symbols(
        self, content: memoryview, sections: list[_Section], places: dict[int, int]
    ) -> Iterator[tuple[str, int | None]]:
        """Each symbol's name and where it is, None where it is not in this object."""
        (table,) = (section for section in sections if section.kind == _SYMBOLS)
        words = sections[table.link]
        names = bytes(content[words.offset : words.offset + words.size])
        for name, info, _, section, value, _ in _rows(_SYMBOL, content, table):
            text = names[name : names.index(b"\0", name)].decode()
            place = places[section] + value if section in places else None
            if place is not None and info >> 4:
                self.functions[text] = place
            yield text, place

    def relocate(
        self, rows: Iterator[Any], begin: int, symbols: list[tuple[str, int | None]]
    ) -> None:
        for offset, info, added in rows:
            name, place = symbols[info >> 32]
            if info & 0xFFFFFFFF != _WHOLE_ADDRESS:
                raise _UnknownError
            if place is None:
                self.waiting.append((begin + offset, name, added))
            else:
                self.set(begin + offset, place + added)
                self.inside.append(begin + offset)

    def set(self, place: int, value: int) -> None:
        _WORD.pack_into(self.content, place, value % _WORD_RANGE)


def _rows(kind: struct.Struct, content: memoryview, section: _Section) -> Iterator[Any]:
    return kind.iter_unpack(content[section.offset : section.offset + section.size])


def _library_address(name: str) -> int | None:
    """Where a function of the C library or its mathematics begins."""
    for library in (None, "libm.so.6"):
        try:
            function = getattr(ctypes.CDLL(library), name)
        except (AttributeError, OSError):
            continue
        return ctypes.cast(function, ctypes.c_void_p).value
    return None
