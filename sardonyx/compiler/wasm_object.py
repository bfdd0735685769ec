"""WebAssembly objects as LLVM makes them: functions, data, and where numbers go into these.

The format is that of the tool conventions for linking: an ordinary module whose calls, addresses
and types are numbers of five bytes, a custom section `linking` that names what the numbers mean,
and one for code and one for data that says where they stand.
"""

from collections.abc import Iterator
from enum import Enum, IntEnum

from sardonyx.errors import FormatError, UnsupportedError
from sardonyx.record import record

MAGIC = b"\0asm\x01\0\0\0"
_VERSION = 2
"""Of the convention."""
_LAST = "target_features"
"""The section that LLVM writes behind all others."""
_SEGMENTS, _SYMBOLS = 5, 8
"""Parts of the section `linking`."""
_LOCAL, _UNDEFINED, _NAMED = 0x02, 0x10, 0x40
"""Flags of symbols."""
_PASSIVE, _ELSEWHERE = 1, 2
"""Flags of data: not laid into memory, or into another than the first."""
_MOST_ALIGNED = 16
"""The power of two that divides addresses at most."""
_CONSTANT, _END = 0x41, 0x0B
"""The instructions `i32.const` and `end`."""


class Kind(IntEnum):
    """What a symbol names."""

    FUNCTION = 0
    DATA = 1
    GLOBAL = 2
    TABLE = 5


class Meaning(Enum):
    """What a number in code or data is."""

    FUNCTION = "a function"
    POINTER = "a place in the table"
    ADDRESS = "an address"
    TYPE = "a type"
    GLOBAL = "a global"
    TABLE = "a table"


class Form(Enum):
    """How a number is written."""

    UNSIGNED = "five bytes"
    SIGNED = "five bytes with sign"
    WORD = "a word of 32 bits"


RELOCATIONS = {
    0: (Meaning.FUNCTION, Form.UNSIGNED),
    1: (Meaning.POINTER, Form.SIGNED),
    2: (Meaning.POINTER, Form.WORD),
    3: (Meaning.ADDRESS, Form.UNSIGNED),
    4: (Meaning.ADDRESS, Form.SIGNED),
    5: (Meaning.ADDRESS, Form.WORD),
    6: (Meaning.TYPE, Form.UNSIGNED),
    7: (Meaning.GLOBAL, Form.UNSIGNED),
    20: (Meaning.TABLE, Form.UNSIGNED),
}
"""By the number of their kind."""


class Reader:
    """Numbers, names and lists, one after another.

    >>> Reader(bytes([0xE5, 0x8E, 0x26])).number()
    624485
    """

    def __init__(self, content: bytes, at: int = 0) -> None:
        self.content = content
        self.at = at

    def byte(self) -> int:
        """The next byte."""
        if self.at >= len(self.content):
            raise FormatError("the WebAssembly object ends early", where=f"byte {self.at}")
        self.at += 1
        return self.content[self.at - 1]

    def number(self) -> int:
        """A number without sign."""
        found = shift = 0
        while (part := self.byte()) & 0x80:
            found |= (part & 0x7F) << shift
            shift += 7
        return found | part << shift

    def signed(self) -> int:
        """A number with sign."""
        begin, found = self.at, self.number()
        bits = 7 * (self.at - begin)
        return found - (1 << bits) if found >> bits - 1 & 1 else found

    def take(self, count: int) -> bytes:
        """So many bytes."""
        if count > len(self.content) - self.at:
            raise FormatError("the WebAssembly object ends early", where=f"byte {self.at}")
        self.at += count
        return self.content[self.at - count : self.at]

    def name(self) -> str:
        """A text, behind its length."""
        return self.take(self.number()).decode(errors="replace")

    def each(self) -> Iterator[int]:
        """The numbers of the items of a list, which the caller reads."""
        yield from range(self.number())

    @property
    def more(self) -> bool:
        """Whether anything follows."""
        return self.at < len(self.content)


@record
class Import:
    """What an object takes from outside, and for a function the number of its type."""

    kind: Kind | None
    """None for memory, which no symbol names."""
    name: str
    type: int = 0


@record
class Symbol:
    """A name: of a function, global or table by its number, or of bytes in a piece of data."""

    kind: Kind
    name: str
    index: int
    offset: int
    defined: bool
    shared: bool
    """Whether other objects may mean it."""


@record
class Relocation:
    """Where a number goes, what it is and how it is written, and of which symbol or type."""

    meaning: Meaning
    form: Form
    place: int
    index: int
    addend: int


@record
class Segment:
    """Data that lies in one piece: its bytes in the section, and what divides its address."""

    begin: int
    size: int
    alignment: int


class WasmObject:
    """An object file, read; raises a SardonyxError for what is not one or says more."""

    def __init__(self, content: bytes) -> None:
        if content[: len(MAGIC)] != MAGIC:
            raise FormatError("this is not a WebAssembly object", hint="compile for wasm32")
        self.types: list[bytes] = []
        self.imports: list[Import] = []
        self.functions: list[int] = []
        """The number of each own function's type."""
        self.code = self.data = b""
        self.bodies: list[tuple[int, int]] = []
        """Where each function, with its length before it, begins and ends in the code."""
        self.segments: list[Segment] = []
        self.symbols: list[Symbol] = []
        self.relocations: dict[str, list[Relocation]] = {}
        """By the section they are in, CODE or DATA."""
        self._whole = False
        reader = Reader(content, len(MAGIC))
        while reader.more:
            number = reader.byte()
            self._read_section(number, Reader(reader.take(reader.number())))
        if len(self.bodies) != len(self.functions) or not self._whole:
            raise FormatError("the WebAssembly object lacks sections", hint="compile it again")

    @property
    def outside(self) -> list[Import]:
        """The functions that it takes from outside; they have the first numbers."""
        return [item for item in self.imports if item.kind is Kind.FUNCTION]

    def _read_section(self, number: int, reader: Reader) -> None:
        match number:
            case 0:
                self._read_custom(reader)
            case 1:
                self.types = [_signature(reader) for _ in reader.each()]
            case 2:
                self.imports = [_import(reader) for _ in reader.each()]
            case 3:
                self.functions = [reader.number() for _ in reader.each()]
            case 10:
                self.code = reader.content
                self.bodies = [_body(reader) for _ in reader.each()]
            case 11:
                self.data = reader.content
                self.segments = [_segment(reader) for _ in reader.each()]
            case 9 | 12:
                pass  # a table and a number of pieces that stand for the linker's
            case _:
                raise UnsupportedError(
                    f"a WebAssembly object with a section {number} is not linked"
                )

    def _read_custom(self, reader: Reader) -> None:
        name = reader.name()
        if name == "linking":
            self._read_linking(reader)
        elif name.startswith("reloc."):
            reader.number()
            found = [_relocation(reader) for _ in reader.each()]
            self.relocations[name.removeprefix("reloc.")] = found
        elif name == _LAST:
            self._whole = True

    def _read_linking(self, reader: Reader) -> None:
        if (version := reader.number()) != _VERSION:
            raise UnsupportedError(f"version {version} of WebAssembly's linking is not known")
        while reader.more:
            kind = reader.byte()
            part = Reader(reader.take(reader.number()))
            if kind == _SYMBOLS:
                self.symbols = [self._symbol(part) for _ in part.each()]
            elif kind == _SEGMENTS:
                self.segments = [_aligned(part, self.segments, n) for n in part.each()]
            else:
                raise UnsupportedError(f"WebAssembly's linking information {kind} is not known")

    def _symbol(self, reader: Reader) -> Symbol:
        number, flags = reader.byte(), reader.number()
        if number not in set(Kind):
            raise UnsupportedError(f"WebAssembly symbols of the kind {number} are not linked")
        kind = Kind(number)
        defined, shared = not flags & _UNDEFINED, not flags & _LOCAL
        if kind is Kind.DATA:
            name = reader.name()
            index, offset = (reader.number(), reader.number()) if defined else (0, 0)
            if defined:
                reader.number()
            return Symbol(kind, name, index, offset, defined, shared)
        index = reader.number()
        if defined or flags & _NAMED:
            return Symbol(kind, reader.name(), index, 0, defined, shared)
        return Symbol(kind, self._imported(kind, index), index, 0, defined, shared)

    def _imported(self, kind: Kind, index: int) -> str:
        names = [item.name for item in self.imports if item.kind is kind]
        if index >= len(names):
            raise FormatError(f"a WebAssembly symbol names an import {index}, which is not there")
        return names[index]


def _signature(reader: Reader) -> bytes:
    begin = reader.at
    if reader.byte() != 0x60:
        raise UnsupportedError("a WebAssembly type that is not a function's is not linked")
    for _ in range(2):
        reader.take(reader.number())
    return reader.content[begin : reader.at]


def _import(reader: Reader) -> Import:
    reader.name()
    name, kind = reader.name(), reader.byte()
    match kind:
        case 0:
            return Import(Kind.FUNCTION, name, reader.number())
        case 1:
            reader.byte()
            _pass_limits(reader)
            return Import(Kind.TABLE, name)
        case 2:
            _pass_limits(reader)
            return Import(None, name)
        case 3:
            reader.take(2)
            return Import(Kind.GLOBAL, name)
        case _:
            raise UnsupportedError(f"a WebAssembly import of the kind {kind} is not linked")


def _pass_limits(reader: Reader) -> None:
    bounded = reader.byte() & 1
    reader.number()
    if bounded:
        reader.number()


def _body(reader: Reader) -> tuple[int, int]:
    begin = reader.at
    reader.take(reader.number())
    return begin, reader.at


def _segment(reader: Reader) -> Segment:
    if (flags := reader.number()) & (_PASSIVE | _ELSEWHERE):
        raise UnsupportedError(f"WebAssembly data with the flags {flags} is not linked")
    if reader.byte() != _CONSTANT:
        raise UnsupportedError("WebAssembly data whose place is computed is not linked")
    reader.signed()
    if reader.byte() != _END:
        raise UnsupportedError("WebAssembly data whose place is computed is not linked")
    count = reader.number()
    begin = reader.at
    reader.take(count)
    return Segment(begin, count, 1)


def _aligned(reader: Reader, segments: list[Segment], number: int) -> Segment:
    reader.name()
    power = reader.number()
    reader.number()
    if power > _MOST_ALIGNED or number >= len(segments):
        raise FormatError(f"WebAssembly data {number} is aligned to 2**{power} bytes or not there")
    return Segment(segments[number].begin, segments[number].size, 1 << power)


def _relocation(reader: Reader) -> Relocation:
    kind, place, index = reader.byte(), reader.number(), reader.number()
    if kind not in RELOCATIONS:
        raise UnsupportedError(f"WebAssembly relocations of the kind {kind} are not made")
    meaning, form = RELOCATIONS[kind]
    return Relocation(
        meaning, form, place, index, reader.signed() if meaning is Meaning.ADDRESS else 0
    )
