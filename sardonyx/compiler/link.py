"""Object code to machine code in memory, without LLVM.

Loading LLVM takes more time and memory than a small model. A program that was compiled before needs
only what a linker does, and the code that we have made needs little of that: sections are laid side
by side in memory, addresses are written into them, and then nobody may write there any more.
"""

import ctypes
import mmap
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from sardonyx.compiler.processors import MACHINE
from sardonyx.compiler.relocations import MACHINES, Machine, Relocation, Way
from sardonyx.errors import UnsupportedError

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QIIq")
_ADDRESS = struct.Struct("<Q")
_WORD = struct.Struct("<I")
_MAGIC = b"\x7fELF\x02\x01"
_PROGRAM, _SYMBOLS, _RELOCATIONS, _EMPTY = 1, 2, 4, 8
_WRITTEN, _ALLOCATED = 1, 2
_UNDEFINED, _CONSTANT = 0, 0xFFF1
"""Numbers in the place of a symbol's section."""
_ENTRY_ALIGNMENT = 16

LINKS = sys.platform == "linux" and MACHINE in MACHINES
"""Whether objects can be linked here; else LLVM must."""


class Linked:
    """Object code in memory; it lives as long as this object.

    Raises UnsupportedError for code that asks for more than this module does.
    """

    def __init__(self, objects: Sequence[bytes]) -> None:
        layout = Layout(objects, MACHINES[MACHINE])
        private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        self._memory = mmap.mmap(-1, max(layout.size, 1), flags=private)
        begin = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self._functions = layout.write(self._memory, begin, process_address)
        _show_to_instructions(begin, len(self._memory))
        _forbid_writing(begin, len(self._memory))

    def address(self, name: str) -> int:
        """Where a function begins; 0 where there is none."""
        return self._functions.get(name, 0)


class Layout:
    """The sections of some objects, and entries for symbols far away, side by side.

    >>> Layout([], MACHINES["aarch64"]).size
    0
    """

    def __init__(self, objects: Sequence[bytes], machine: Machine) -> None:
        self._parts = [_Object(content, machine) for content in objects]
        self.size = 0
        """How many bytes they take."""
        for part in self._parts:
            self.size = part.place(self.size)

    def write(
        self, memory: mmap.mmap | bytearray, begin: int, find: Callable[[str], int]
    ) -> dict[str, int]:
        """Write the code as it is when the memory is at `begin`; the addresses of its functions.

        Names that no object has are found by `find`.
        """
        functions: dict[str, int] = {}
        for part in self._parts:
            functions |= part.exported(begin)
        for part in self._parts:
            part.write(memory)
            part.relocate(memory, begin, lambda name: functions.get(name) or find(name))
        return functions


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


@dataclass(slots=True)
class _Symbol:
    name: str
    shared: bool
    section: int
    value: int


@dataclass(slots=True)
class _Patch:
    section: _Section
    place: int
    relocation: Relocation
    symbol: int
    addend: int


class _Object:
    """One object file; the address of a section is where it lies behind the memory's begin."""

    def __init__(self, content: bytes, machine: Machine) -> None:
        header = _HEADER.unpack_from(content)
        if header[0][:6] != _MAGIC or header[2] != machine.number:
            raise UnsupportedError("object code of this kind is linked by LLVM")
        start, count, names = header[6], header[12], header[13]
        self._content = content
        self._machine = machine
        self._sections = [
            _Section(*_SECTION.unpack_from(content, start + number * _SECTION.size))
            for number in range(count)
        ]
        self._kept = [
            section
            for section in self._sections
            if section.flags & _ALLOCATED
            and section.kind in (_PROGRAM, _EMPTY)
            and self._text(self._sections[names].offset + section.name) != ".eh_frame"
        ]
        """What runs or is read at run time. Nobody unwinds our code, so tables for that are not."""
        if any(section.flags & _WRITTEN for section in self._kept):
            raise UnsupportedError("object code with variables is linked by LLVM")
        self._symbols = list(self._read_symbols())
        self._patches = list(self._read_patches())
        self._entries = self._needed_entries()

    def _text(self, at: int) -> str:
        return self._content[at : self._content.index(b"\0", at)].decode()

    def _read_symbols(self) -> Iterator[_Symbol]:
        for section in self._sections:
            if section.kind != _SYMBOLS:
                continue
            names = self._sections[section.link].offset
            for at in range(section.offset, section.offset + section.size, _SYMBOL.size):
                name, information, _, where, value, _ = _SYMBOL.unpack_from(self._content, at)
                yield _Symbol(self._text(names + name), bool(information >> 4), where, value)

    def _read_patches(self) -> Iterator[_Patch]:
        for section in self._sections:
            if section.kind != _RELOCATIONS or not (target := self._target(section)):
                continue
            for at in range(section.offset, section.offset + section.size, _RELOCATION.size):
                place, kind, number, addend = _RELOCATION.unpack_from(self._content, at)
                found = self._machine.relocations.get(kind)
                if found is None or (addend and found.way is not Way.DIRECT):
                    raise UnsupportedError(f"relocations of the kind {kind} are made by LLVM")
                yield _Patch(target, place, found, number, addend)

    def _target(self, section: _Section) -> _Section | None:
        target = self._sections[section.about]
        return target if any(target is kept for kept in self._kept) else None

    def _needed_entries(self) -> dict[int, int]:
        """By symbols that may be far away, the places of their entries, counted from the first."""
        far = {
            patch.symbol
            for patch in self._patches
            if patch.relocation.way is Way.TABLE
            or (
                patch.relocation.way is Way.NEAR
                and self._symbols[patch.symbol].section == _UNDEFINED
            )
        }
        return {symbol: n * self._machine.entry_size for n, symbol in enumerate(sorted(far))}

    def place(self, end: int) -> int:
        """Give every section and entry its place behind `end`; where the last ends."""
        for section in self._kept:
            section.address = _aligned(end, max(section.alignment, 1))
            end = section.address + section.size
        if not self._entries:
            return end
        first = _aligned(end, _ENTRY_ALIGNMENT)
        self._entries = {symbol: first + at for symbol, at in self._entries.items()}
        return first + len(self._entries) * self._machine.entry_size

    def exported(self, begin: int) -> dict[str, int]:
        """The address of each name that others may use."""
        return {
            symbol.name: begin + self._sections[symbol.section].address + symbol.value
            for symbol in self._symbols
            if symbol.shared and _UNDEFINED < symbol.section < len(self._sections)
        }

    def write(self, memory: mmap.mmap | bytearray) -> None:
        """Write the sections as they are in the object."""
        for section in self._kept:
            if section.kind == _PROGRAM:
                content = self._content[section.offset : section.offset + section.size]
                memory[section.address : section.address + section.size] = content

    def relocate(
        self, memory: mmap.mmap | bytearray, begin: int, find: Callable[[str], int]
    ) -> None:
        """Write addresses into the sections and entries."""
        used = {patch.symbol for patch in self._patches}
        values = {symbol: self._value(self._symbols[symbol], begin, find) for symbol in used}
        for symbol, at in self._entries.items():
            entry = self._machine.jump + _ADDRESS.pack(values[symbol])
            memory[at : at + len(entry)] = entry
        for patch in self._patches:
            at = patch.section.address + patch.place
            value = self._patched(patch, values[patch.symbol], begin, begin + at)
            if patch.relocation.width == 64:
                _ADDRESS.pack_into(memory, at, value & (1 << 64) - 1)
            else:
                word = patch.relocation.patch(_WORD.unpack_from(memory, at)[0], value)
                _WORD.pack_into(memory, at, word)

    def _patched(self, patch: _Patch, symbol: int, begin: int, place: int) -> int:
        """What is to be written for a symbol's address at a place, through its entry if need be."""
        relocation, entry = patch.relocation, self._entries.get(patch.symbol, 0)
        value = relocation.value(symbol + patch.addend, place)
        if relocation.way is Way.TABLE:
            return relocation.value(begin + entry + len(self._machine.jump), place)
        if relocation.way is Way.NEAR and entry and not relocation.reaches(value):
            return relocation.value(begin + entry, place)
        return value

    def _value(self, symbol: _Symbol, begin: int, find: Callable[[str], int]) -> int:
        if symbol.section == _UNDEFINED:
            return find(symbol.name)
        if symbol.section == _CONSTANT:
            return symbol.value
        return begin + self._sections[symbol.section].address + symbol.value


def _aligned(end: int, alignment: int) -> int:
    return -(-end // alignment) * alignment


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


def _show_to_instructions(begin: int, size: int) -> None:
    """Have the processor fetch as instructions what was written as data; x86-64 always does."""
    if MACHINE == "x86_64":
        return
    try:
        clear = ctypes.CDLL("libgcc_s.so.1").__clear_cache
    except (OSError, AttributeError):
        raise UnsupportedError("instructions are made visible by LLVM only") from None
    clear(ctypes.c_void_p(begin), ctypes.c_void_p(begin + size))


def _forbid_writing(begin: int, size: int) -> None:
    system = ctypes.CDLL(None, use_errno=True)
    allowed = mmap.PROT_READ | mmap.PROT_EXEC
    if system.mprotect(ctypes.c_void_p(begin), ctypes.c_size_t(size), allowed):
        raise UnsupportedError(f"the system does not let code be run: error {ctypes.get_errno()}")
