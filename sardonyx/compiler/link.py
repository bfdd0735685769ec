"""Object code to machine code in memory, without LLVM.

Loading LLVM takes more time and memory than a small model. A program that was compiled before needs
only what a linker does, and the code that we have made needs little of that: sections are laid side
by side in memory, addresses are written into them, and then nobody may write there any more.
"""

import ctypes
import mmap
import struct
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from sardonyx.errors import UnsupportedError

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QIIq")
_ADDRESS = struct.Struct("<Q")
_MAGIC = b"\x7fELF\x02\x01"
_X86_64 = 62
_PROGRAM, _SYMBOLS, _RELOCATIONS, _EMPTY = 1, 2, 4, 8
_WRITTEN, _ALLOCATED = 1, 2
_ABSOLUTE, _RELATIVE = 1, 24
"""Relocations of 64 bits: an address, and a distance from where it is written."""
_UNDEFINED, _CONSTANT = 0, 0xFFF1
"""Numbers in the place of a symbol's section."""

LINKS = sys.platform == "linux" and struct.calcsize("P") == 8
"""Whether objects can be linked here; else LLVM must."""


class Linked:
    """Object code in memory; it lives as long as this object.

    Raises UnsupportedError for code that asks for more than this module does.
    """

    def __init__(self, objects: Sequence[bytes]) -> None:
        parts = [_Object(content) for content in objects]
        ends = _places(parts)
        private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        self._memory = mmap.mmap(-1, max(ends, 1), flags=private)
        begin = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self._functions: dict[str, int] = {}
        for part in parts:
            part.write(self._memory, begin)
            self._functions |= part.exported(begin)
        for part in parts:
            part.relocate(self._memory, begin, self._functions)
        _forbid_writing(begin, len(self._memory))

    def address(self, name: str) -> int:
        """Where a function begins; 0 where there is none."""
        return self._functions.get(name, 0)


@dataclass(slots=True)
class _Section:
    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    about: int
    alignment: int
    entry: int


@dataclass(frozen=True, slots=True)
class _Symbol:
    name: str
    section: int
    value: int


class _Object:
    """One object file; the address of a section is where it lies behind the memory's begin."""

    def __init__(self, content: bytes) -> None:
        header = _HEADER.unpack_from(content)
        if header[0][:6] != _MAGIC or header[2] != _X86_64:
            raise UnsupportedError("object code of this kind is linked by LLVM")
        start, count = header[6], header[12]
        self._content = content
        self._sections = [
            _Section(*_SECTION.unpack_from(content, start + number * _SECTION.size))
            for number in range(count)
        ]
        self.kept = [
            section
            for section in self._sections
            if section.flags & _ALLOCATED and section.kind in (_PROGRAM, _EMPTY)
        ]
        """What runs or is read at run time. Nobody unwinds our code, so tables for that are not."""
        if any(section.flags & _WRITTEN for section in self.kept):
            raise UnsupportedError("object code with variables is linked by LLVM")
        self._symbols = list(self._read_symbols())

    def _read_symbols(self) -> Iterator[_Symbol]:
        for section in self._sections:
            if section.kind != _SYMBOLS:
                continue
            names = self._sections[section.link].offset
            for at in range(section.offset, section.offset + section.size, _SYMBOL.size):
                name, _, _, where, value, _ = _SYMBOL.unpack_from(self._content, at)
                end = self._content.index(b"\0", names + name)
                yield _Symbol(self._content[names + name : end].decode(), where, value)

    def write(self, memory: mmap.mmap, begin: int) -> None:
        for section in self.kept:
            if section.kind == _PROGRAM:
                content = self._content[section.offset : section.offset + section.size]
                memory[section.address : section.address + section.size] = content

    def exported(self, begin: int) -> dict[str, int]:
        """The address of each name in this object."""
        return {
            symbol.name: begin + self._sections[symbol.section].address + symbol.value
            for symbol in self._symbols
            if symbol.name and _UNDEFINED < symbol.section < len(self._sections)
        }

    def relocate(self, memory: mmap.mmap, begin: int, names: dict[str, int]) -> None:
        """Write addresses into the sections, names found here first, then in the process."""
        for section in self._sections:
            if section.kind != _RELOCATIONS or not (target := self._target(section)):
                continue
            for at in range(section.offset, section.offset + section.size, _RELOCATION.size):
                place, kind, number, addend = _RELOCATION.unpack_from(self._content, at)
                value = self._value(self._symbols[number], begin, names) + addend
                if kind == _RELATIVE:
                    value -= begin + target.address + place
                elif kind != _ABSOLUTE:
                    raise UnsupportedError(f"relocations of the kind {kind} are made by LLVM")
                _ADDRESS.pack_into(memory, target.address + place, value & (1 << 64) - 1)

    def _target(self, section: _Section) -> _Section | None:
        target = self._sections[section.about]
        return target if any(target is kept for kept in self.kept) else None

    def _value(self, symbol: _Symbol, begin: int, names: dict[str, int]) -> int:
        if symbol.section == _UNDEFINED:
            return names.get(symbol.name) or process_address(symbol.name)
        if symbol.section == _CONSTANT:
            return symbol.value
        return begin + self._sections[symbol.section].address + symbol.value


def _places(parts: Sequence[_Object]) -> int:
    """Give every section its place; the end of the last."""
    end = 0
    for section in (section for part in parts for section in part.kept):
        alignment = max(section.alignment, 1)
        section.address = -(-end // alignment) * alignment
        end = section.address + section.size
    return end


@cache
def process_address(name: str) -> int:
    """The address of a function of the C library or of another that the process has loaded.

    >>> process_address("memset") > 0
    True
    """
    for library in (None, "libm.so.6"):
        try:
            function = getattr(ctypes.CDLL(library), name)
        except (OSError, AttributeError):
            continue
        return ctypes.cast(function, ctypes.c_void_p).value or 0
    raise UnsupportedError(f"the function {name} is found by LLVM only")


def _forbid_writing(begin: int, size: int) -> None:
    system = ctypes.CDLL(None, use_errno=True)
    allowed = mmap.PROT_READ | mmap.PROT_EXEC
    if system.mprotect(ctypes.c_void_p(begin), ctypes.c_size_t(size), allowed):
        raise UnsupportedError(f"the system does not let code be run: error {ctypes.get_errno()}")
