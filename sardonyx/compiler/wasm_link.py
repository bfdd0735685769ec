"""WebAssembly objects to one module, without another tool.

Memory begins with the stack, which grows down, so that too much of it is an error of the machine
and not of its neighbours; then lie the objects' data, then what the caller wants there, then free
memory. The module owns its memory and exports it. Functions that are called by their address have
one in the table, from 1 on.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from sardonyx.compiler.wasm_object import (
    MAGIC,
    Form,
    Kind,
    Meaning,
    Relocation,
    Symbol,
    WasmObject,
)
from sardonyx.errors import FormatError, UnsupportedError

STACK = 1 << 16
"""Bytes of the stack."""
PAGE = 1 << 16
LARGEST = 1 << 32
"""Bytes of memory that addresses of 32 bits reach."""
MEMORY = "memory"
HEAP = "__heap_base"
"""The symbol whose address is where free memory begins."""
_STACK_POINTER = "__stack_pointer"
_TABLE = "__indirect_function_table"
_I32, _FUNCTIONS = 0x7F, 0x70
_I32_CONST, _END = 0x41, 0x0B
_VARIABLE = 1

Item = TypeVar("Item")
Imports = Mapping[str, tuple[str, str]]
"""By the name of a function that no object has, the module and name it is taken from."""


class Joined:
    """Objects whose functions and data have their numbers and addresses.

    `entries` are functions that the table has from 1 on, in this order.
    """

    def __init__(
        self, objects: Sequence[bytes], imports: Imports, entries: Sequence[str] = ()
    ) -> None:
        self._objects = [WasmObject(content) for content in objects]
        self._types: dict[bytes, int] = {}
        self._imports: dict[str, int] = {}
        """The type of each function from outside, in the order of their numbers."""
        self._sources = imports
        shared = [item for part in self._objects for item in part.symbols if item.shared]
        self._defined = {item.name for item in shared if item.defined}
        for part in self._objects:
            self._note_imports(part)
        self._functions: list[int] = []
        """The type of each own function."""
        self._numbers: dict[str, int] = {}
        """Of the functions that all objects know."""
        self._firsts = [self._number_functions(part) for part in self._objects]
        self.end = STACK
        """Where the objects' data ends."""
        self._addresses: dict[str, int] = {}
        self._places = [self._place_data(part) for part in self._objects]
        self._table: dict[int, int] = {}
        for name in entries:
            self._entry(self._function(name))

    def _note_imports(self, part: WasmObject) -> None:
        for item in part.outside:
            if item.name in self._defined:
                continue
            if item.name not in self._sources:
                raise UnsupportedError(f"nothing gives WebAssembly the function '{item.name}'")
            self._imports[item.name] = self._type(part, item.type)

    def _type(self, part: WasmObject, number: int) -> int:
        if number >= len(part.types):
            raise FormatError(f"a WebAssembly object has no type {number}")
        return self._types.setdefault(part.types[number], len(self._types))

    def _number_functions(self, part: WasmObject) -> int:
        """Give numbers to the functions of an object; that of the first."""
        first = len(self._imports) + len(self._functions)
        self._functions += [self._type(part, number) for number in part.functions]
        for item in part.symbols:
            if item.kind is not Kind.FUNCTION or not item.defined or not item.shared:
                continue
            if item.name in self._numbers:
                raise UnsupportedError(f"two WebAssembly objects have the function '{item.name}'")
            self._numbers[item.name] = first + _own_number(part, item)
        self._numbers |= {name: number for number, name in enumerate(self._imports)}
        return first

    def _place_data(self, part: WasmObject) -> list[int]:
        """Give addresses to the data of an object."""
        places = []
        for segment in part.segments:
            places.append(-(-self.end // segment.alignment) * segment.alignment)
            self.end = places[-1] + segment.size
        for item in part.symbols:
            if item.kind is Kind.DATA and item.defined and item.shared:
                self._addresses[item.name] = _at(places, item.index, "data") + item.offset
        return places

    def _function(self, name: str) -> int:
        if name not in self._numbers:
            raise UnsupportedError(f"no WebAssembly object has the function '{name}'")
        return self._numbers[name]

    def _entry(self, function: int) -> int:
        """The place of a function in the table."""
        return self._table.setdefault(function, 1 + len(self._table))

    def module(
        self, exports: Sequence[str], data: Iterable[tuple[int, bytes]] = (), end: int = 0,
        notes: Mapping[str, bytes] | None = None,
    ) -> bytes:  # fmt: skip
        """The module: these functions are exported, data lies at its addresses, memory up to `end`.

        Notes are custom sections, by name. Memory is free from `end` on, which may grow.
        """
        end = max(end, self.end)
        check_memory(end)
        self._addresses[HEAP] = end
        codes = [self._patched(number, "CODE") for number in range(len(self._objects))]
        pieces = [*self._segments(), *data]
        bodies = [
            code[begin:stop]
            for part, code in zip(self._objects, codes, strict=True)
            for begin, stop in part.bodies
        ]
        size = 1 + len(self._table)
        sections = [
            (1, vector(self._types)),
            (2, vector(self._import(*item) for item in self._imports.items())),
            (3, vector(map(unsigned, self._functions))),
            (4, vector([bytes([_FUNCTIONS, 1]) + unsigned(size) * 2])),
            (5, vector([b"\0" + unsigned(-(-end // PAGE))])),
            (6, vector([bytes([_I32, _VARIABLE, _I32_CONST]) + signed(STACK) + bytes([_END])])),
            (7, vector(self._exports(exports))),
            (9, vector([_offset(1) + vector(map(unsigned, self._table))])),
            (10, vector(bodies)),
            (11, vector(_offset(at) + sized(content) for at, content in pieces)),
        ]
        sections += [(0, sized(name.encode()) + note) for name, note in (notes or {}).items()]
        return MAGIC + b"".join(bytes([number]) + sized(content) for number, content in sections)

    def _import(self, name: str, type_: int) -> bytes:
        module, field = self._sources[name]
        return sized(module.encode()) + sized(field.encode()) + b"\0" + unsigned(type_)

    def _exports(self, names: Sequence[str]) -> list[bytes]:
        functions = [
            sized(name.encode()) + b"\0" + unsigned(self._function(name)) for name in names
        ]
        return [sized(MEMORY.encode()) + b"\x02\0", *functions]

    def _segments(self) -> list[tuple[int, bytes]]:
        found = []
        for number, part in enumerate(self._objects):
            content = self._patched(number, "DATA")
            for segment, at in zip(part.segments, self._places[number], strict=True):
                found.append((at, content[segment.begin : segment.begin + segment.size]))
        return found

    def _patched(self, number: int, section: str) -> bytes:
        """A section of an object with all its numbers in it."""
        part = self._objects[number]
        content = bytearray(part.code if section == "CODE" else part.data)
        for item in part.relocations.get(section, []):
            value = self._value(number, item)
            written = _written(item.form, value)
            if item.place + len(written) > len(content):
                raise FormatError(f"a WebAssembly relocation lies at {item.place}, outside")
            content[item.place : item.place + len(written)] = written
        return bytes(content)

    def _value(self, number: int, item: Relocation) -> int:
        part = self._objects[number]
        if item.meaning is Meaning.TYPE:
            return self._type(part, item.index)
        symbol = _at(part.symbols, item.index, "symbol")
        match item.meaning:
            case Meaning.FUNCTION | Meaning.POINTER if symbol.kind is Kind.FUNCTION:
                if symbol.defined:
                    function = self._firsts[number] + _own_number(part, symbol)
                else:
                    function = self._function(symbol.name)
                return self._entry(function) if item.meaning is Meaning.POINTER else function
            case Meaning.ADDRESS if symbol.kind is Kind.DATA:
                return self._address(number, symbol) + item.addend
            case Meaning.GLOBAL if symbol.name == _STACK_POINTER:
                return 0
            case Meaning.TABLE if symbol.name == _TABLE:
                return 0
        raise UnsupportedError(
            f"'{symbol.name}' is not what WebAssembly needs: {item.meaning.value}"
        )

    def _address(self, number: int, symbol: Symbol) -> int:
        if symbol.defined:
            return _at(self._places[number], symbol.index, "data") + symbol.offset
        if symbol.name not in self._addresses:
            raise UnsupportedError(f"no WebAssembly object has the data '{symbol.name}'")
        return self._addresses[symbol.name]


def check_memory(end: int) -> None:
    """Raise an error where so many bytes of memory cannot be."""
    if end > LARGEST:
        raise UnsupportedError(
            f"the program needs {end} bytes of memory, and WebAssembly has {LARGEST} at most",
            hint="give the inputs smaller shapes, or use a smaller model",
        )


def _at(items: Sequence[Item], number: int, what: str) -> Item:
    if number >= len(items):
        raise FormatError(f"a WebAssembly object has no {what} {number}")
    return items[number]


def _own_number(part: WasmObject, symbol: Symbol) -> int:
    """The number of a function among those that an object defines."""
    number = symbol.index - len(part.outside)
    if not 0 <= number < len(part.functions):
        raise FormatError(f"a WebAssembly object does not have its function '{symbol.name}'")
    return number


def _written(form: Form, value: int) -> bytes:
    """A number in the room that an object has for it."""
    if form is Form.WORD:
        return (value % LARGEST).to_bytes(4, "little")
    bits = value if form is Form.SIGNED else value % LARGEST
    if form is Form.SIGNED and bits >= LARGEST // 2:
        bits -= LARGEST
    parts = [bits >> shift & 0x7F for shift in range(0, 35, 7)]
    return bytes([*(part | 0x80 for part in parts[:-1]), parts[-1]])


def _offset(address: int) -> bytes:
    """The head of a piece of the table or of memory: where it begins."""
    return bytes([0, _I32_CONST]) + signed(address) + bytes([_END])


def unsigned(value: int) -> bytes:
    """A number without sign, seven bits in a byte.

    >>> unsigned(624485).hex()
    'e58e26'
    """
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(parts) + bytes([value])


def signed(value: int) -> bytes:
    """A number of 32 bits, as its sign has it.

    >>> signed(-123456).hex(), signed(64).hex()
    ('c0bb78', 'c000')
    """
    value = (value + LARGEST // 2) % LARGEST - LARGEST // 2
    parts = bytearray()
    while not -0x40 <= value < 0x40:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(parts) + bytes([value & 0x7F])


def sized(content: bytes) -> bytes:
    """Bytes behind their number."""
    return unsigned(len(content)) + content


def vector(items: Iterable[bytes]) -> bytes:
    """A list, behind the number of its items."""
    parts = list(items)
    return unsigned(len(parts)) + b"".join(parts)
