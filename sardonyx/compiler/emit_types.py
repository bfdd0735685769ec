"""Types and constants of LLVM's language, as text."""

import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from llvmlite.binding import llvm_version_info

Undefined: Any = type("Undefined", (), {"__repr__": lambda self: "Undefined"})()
"""The contents of a constant that do not matter."""


_ZERO = struct.pack("<d", 0.0)
SPLATS = llvm_version_info[0] >= 19
"""Whether LLVM reads a vector of equal numbers as one of them."""


class Type:
    """A type; equal ones have equal texts."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Type) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __str__(self) -> str:
        return self.text

    def as_pointer(self) -> "PointerType":
        """The type of an address at which there is a value of this type."""
        return PointerType(self)


class VoidType(Type):
    """No value."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("void")


class IntType(Type):
    """Whole numbers of so many bits."""

    __slots__ = ("width",)

    def __init__(self, width: int) -> None:
        super().__init__(f"i{width}")
        self.width = width


class HalfType(Type):
    """float16."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("half")


class BrainType(Type):
    """bfloat16, which only a processor's own instructions take."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("bfloat")


class FloatType(Type):
    """float32."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("float")


class DoubleType(Type):
    """float64."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("double")


class VectorType(Type):
    """So many values of one type."""

    __slots__ = ("count", "element")

    def __init__(self, element: Type, count: int) -> None:
        super().__init__(f"<{count} x {element.text}>")
        self.element = element
        self.count = count


class PointerType(Type):
    """An address; LLVM does not ask of what, the builder does."""

    __slots__ = ("pointee",)

    def __init__(self, pointee: Type) -> None:
        super().__init__("ptr")
        self.pointee = pointee


class FunctionType(Type):
    """What a function takes and returns."""

    __slots__ = ("arguments", "result")

    def __init__(self, result: Type, arguments: Sequence[Type]) -> None:
        super().__init__(f"{result.text} ({', '.join(item.text for item in arguments)})")
        self.result = result
        self.arguments = tuple(arguments)


class Value:
    """Something an instruction can take: its type, and its name or the constant itself.

    `block` is where it is made, None for what is there from the beginning.
    """

    __slots__ = ("block", "text", "type")

    def __init__(self, type_: Any, text: str, block: Any = None) -> None:
        self.type = type_
        self.text = text
        self.block = block

    def __str__(self) -> str:
        return f"{self.type.text} {self.text}"


class Constant(Value):
    """A constant: a number, a list of them for a vector, None for zeros, or `Undefined`."""

    __slots__ = ("constant",)

    def __init__(self, type_: Any, constant: Any) -> None:
        self.type = type_
        self.block = None
        self.constant = constant
        if constant.__class__ is int and type_.__class__ is IntType:
            self.text = str(constant)
        elif constant is None:
            self.text = "zeroinitializer"
        elif constant is Undefined:
            self.text = "undef"
        elif isinstance(constant, list):
            self.text = _vector_text(type_.element, tuple(map(_exact, constant)))
        else:
            self.text = _number_text(type_, _exact(constant))


def _exact(number: Any) -> Any:
    """A number as a key: bits for floats, so that -0.0 is not 0.0 and a NaN is itself."""
    return struct.pack("<d", number) if isinstance(number, float) else int(number)


@lru_cache(maxsize=1 << 12)
def _number_text(type_: Type, exact: bytes | int) -> str:
    if isinstance(type_, IntType):
        return str(exact if isinstance(exact, int) else int(struct.unpack("<d", exact)[0]))
    number = float(exact) if isinstance(exact, int) else struct.unpack("<d", exact)[0]
    if isinstance(type_, HalfType):
        return f"0xH{struct.unpack('<H', struct.pack('<e', number))[0]:04X}"
    if isinstance(type_, FloatType):
        number = struct.unpack("<f", struct.pack("<f", number))[0]
    return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"


@lru_cache(maxsize=1 << 12)
def _vector_text(element: Type, exact: tuple[bytes | int, ...]) -> str:
    if all(item in (0, _ZERO) for item in exact):
        return "zeroinitializer"
    if SPLATS and exact.count(exact[0]) == len(exact):
        return f"splat ({element.text} {_number_text(element, exact[0])})"
    return f"<{', '.join(f'{element.text} {_number_text(element, item)}' for item in exact)}>"
