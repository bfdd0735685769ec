"""LLVM's language as text, written while it is built: what the emitting modules call.

The names and calls are those of `llvmlite.ir`, of which this is the part that kernels need. An
instruction becomes a line at once, and one that stands already in a block that is always passed
before is not written again: that keeps modules short, and so everything that reads them fast. One
whose operands do not change in a loop is written before the loop, so that LLVM need not move it.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from sardonyx.compiler.emit_types import (
    BrainType,
    Constant,
    DoubleType,
    FloatType,
    FunctionType,
    HalfType,
    IntType,
    PointerType,
    Type,
    Undefined,
    Value,
    VectorType,
    VoidType,
)

__all__ = [
    "Block", "BrainType", "Constant", "DoubleType", "FloatType", "Function", "FunctionType",
    "HalfType", "IRBuilder", "IntType", "Module", "Phi", "PointerType", "Type", "Undefined",
    "Value", "VectorType", "VoidType",
]  # fmt: skip

_INTEGER_RELATIONS = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}
_FLOAT_RELATIONS = _INTEGER_RELATIONS | {"uno": "no", "ord": "rd"}


class Phi(Value):
    """A value that depends on the block control comes from."""

    __slots__ = ("incoming",)

    def __init__(self, type_: Any, text: str, block: "Block") -> None:
        super().__init__(type_, text, block)
        self.incoming: list[tuple[Value, Block]] = []

    def add_incoming(self, value: Value, block: "Block") -> None:
        """What it is where control comes from a block."""
        self.incoming.append((value, block))

    def line(self) -> str:
        """The instruction."""
        pairs = ", ".join(f"[{value.text}, %{block.name}]" for value, block in self.incoming)
        return f"{self.text} = phi {self.type.text} {pairs}"


class Block:
    """Instructions that run one after another.

    `dominator` is the last block that every way here goes through. It is right once all ways are
    there but those back from blocks behind this one: branch to a block before you fill it. `loops`
    counts the loops around it; a block that begins with a phi begins one.
    """

    __slots__ = (
        "depth", "dominator", "end", "entered", "function", "known", "lines", "loops", "name",
        "phis",
    )  # fmt: skip

    def __init__(self, function: "Function", name: str) -> None:
        self.function = function
        self.name = name
        self.phis: list[Phi] = []
        self.lines: list[str] = []
        self.end = ""
        self.known: dict[str, Value] = {}
        self.dominator: Block | None = None
        self.entered = False
        self.depth = 0
        self.loops = 0

    def enter_from(self, block: "Block") -> None:
        """Note a way here."""
        self.loops = min(self.loops, block.loops) if self.entered else block.loops
        self.dominator = _nearest(self.dominator, block) if self.entered else block
        self.entered = True
        self.depth = 0 if self.dominator is None else self.dominator.depth + 1

    def text(self) -> str:
        """The block, a line for each instruction."""
        phis = (phi.line() for phi in self.phis)
        return "\n ".join([f"{self.name}:", *phis, *self.lines, self.end])


def _nearest(left: Block | None, right: Block | None) -> Block | None:
    """The nearest block that dominates both."""
    while left is not right and left is not None and right is not None:
        if left.depth >= right.depth:
            left = left.dominator
        else:
            right = right.dominator
    return left if left is right else None


class Function(Value):
    """A function of a module: declared, and defined once it has blocks."""

    def __init__(self, module: "Module", type_: FunctionType, name: str) -> None:
        super().__init__(type_.as_pointer(), f'@"{name}"')
        self.module = module
        self.signature = type_
        self.linkage = ""
        self.attributes: set[str] = set()
        self.args = tuple(Value(item, f"%a{number}") for number, item in enumerate(type_.arguments))
        self.blocks: list[Block] = []
        self.values = 0
        self.accesses: tuple[str, ...] = ()
        """What a function checks before it touches it."""
        module.globals[name] = self

    def append_basic_block(self, name: str) -> Block:
        """A block, empty as yet."""
        block = Block(self, f"{name}{len(self.blocks)}")
        self.blocks.append(block)
        return block

    def full_text(self) -> str:
        """The declaration or definition."""
        result = self.signature.result.text
        if not self.blocks:
            types = ", ".join(item.text for item in self.signature.arguments)
            return f"declare {result} {self.text}({types})"
        head = " ".join(filter(None, ("define", self.linkage, result)))
        attributes = "".join(f" {item}" for item in sorted(self.attributes))
        arguments = ", ".join(map(str, self.args))
        blocks = "\n".join(block.text() for block in self.blocks)
        return f"{head} {self.text}({arguments}){attributes} {{\n{blocks}\n}}"


class Module:
    """Functions by name, and of their target: its lanes, machine and sums of products."""

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.lanes = 0
        self.machine = self.dots = self.pairs = ""
        self.globals: dict[str, Function] = {}

    def __str__(self) -> str:
        functions = "\n\n".join(item.full_text() for item in self.globals.values())
        return f'target triple = "unknown-unknown-unknown"\n\n{functions}\n'


class IRBuilder:
    """Writes instructions at the end of a block."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.function = block.function
        self.module = block.function.module

    def position_at_end(self, block: Block) -> None:
        """Go on in another block."""
        self.block = block

    def _new(self, type_: Any, instruction: str, block: Block | None = None) -> Value:
        """A value that an instruction makes each time it runs; at the end of this block or one."""
        block = block or self.block
        function = self.function
        function.values += 1
        name = f"%v{function.values}"
        block.lines.append(f"{name} = {instruction}")
        return Value(type_, name, block)

    def _pure(self, type_: Any, instruction: str, *operands: Value, stays: bool = False) -> Value:
        """A value that depends on operands alone: what there is already is taken.

        It is made before loops that do not change it, even if they would not need it, or `stays`.
        """
        least = 0
        for item in operands:
            if item.block is not None and item.block.depth > least:
                least = item.block.depth
        block: Block | None = self.block
        home = self.block
        while block is not None and block.depth >= least:
            found = block.known.get(instruction)
            if found is not None:
                return found
            if block.loops < home.loops and not stays:
                home = block
            block = block.dominator
        made = home.known[instruction] = self._new(type_, instruction, home)
        return made

    def _divide(self, name: str, left: Value, right: Value) -> Value:
        """A quotient or remainder; not made where it is not needed, if it might not exist."""
        text = f"{name} {left.type.text} {left.text}, {right.text}"
        safe = isinstance(right, Constant) and right.constant not in (0, -1)
        return self._pure(left.type, text, left, right, stays=not safe)

    def _binary(self, name: str, left: Value, right: Value, flags: Iterable[str] = ()) -> Value:
        head = " ".join((name, *flags)) if flags else name
        text = f"{head} {left.type.text} {left.text}, {right.text}"
        return self._pure(left.type, text, left, right)

    def add(self, left: Value, right: Value, flags: Iterable[str] = ()) -> Value:
        """left + right."""
        return self._binary("add", left, right, flags)

    def sub(self, left: Value, right: Value, flags: Iterable[str] = ()) -> Value:
        """left - right."""
        return self._binary("sub", left, right, flags)

    def mul(self, left: Value, right: Value, flags: Iterable[str] = ()) -> Value:
        """left * right."""
        return self._binary("mul", left, right, flags)

    def sdiv(self, left: Value, right: Value) -> Value:
        """The quotient of signed numbers, towards 0."""
        return self._divide("sdiv", left, right)

    def udiv(self, left: Value, right: Value) -> Value:
        """The quotient of unsigned numbers."""
        return self._divide("udiv", left, right)

    def srem(self, left: Value, right: Value) -> Value:
        """The remainder of signed numbers."""
        return self._divide("srem", left, right)

    def urem(self, left: Value, right: Value) -> Value:
        """The remainder of unsigned numbers."""
        return self._divide("urem", left, right)

    def and_(self, left: Value, right: Value) -> Value:
        """Bits that both have."""
        return self._binary("and", left, right)

    def or_(self, left: Value, right: Value) -> Value:
        """Bits that one has."""
        return self._binary("or", left, right)

    def xor(self, left: Value, right: Value) -> Value:
        """Bits in which they differ."""
        return self._binary("xor", left, right)

    def not_(self, value: Value) -> Value:
        """Every bit the other way."""
        lanes = value.type.count if isinstance(value.type, VectorType) else 0
        return self.xor(value, Constant(value.type, [-1] * lanes if lanes else -1))

    def shl(self, left: Value, right: Value) -> Value:
        """Bits moved up."""
        return self._binary("shl", left, right)

    def lshr(self, left: Value, right: Value) -> Value:
        """Bits moved down, with zeros behind them."""
        return self._binary("lshr", left, right)

    def ashr(self, left: Value, right: Value) -> Value:
        """Bits moved down, with the sign behind them."""
        return self._binary("ashr", left, right)

    def fadd(self, left: Value, right: Value) -> Value:
        """left + right of floats."""
        return self._binary("fadd", left, right)

    def fsub(self, left: Value, right: Value) -> Value:
        """left - right of floats."""
        return self._binary("fsub", left, right)

    def fmul(self, left: Value, right: Value) -> Value:
        """left * right of floats."""
        return self._binary("fmul", left, right)

    def fdiv(self, left: Value, right: Value) -> Value:
        """left / right of floats."""
        return self._binary("fdiv", left, right)

    def frem(self, left: Value, right: Value) -> Value:
        """The remainder of floats, with the sign of the left."""
        return self._binary("frem", left, right)

    def fneg(self, value: Value) -> Value:
        """-value."""
        return self._pure(value.type, f"fneg {value}", value)

    def _compare(self, name: str, left: Value, right: Value) -> Value:
        bit = IntType(1)
        lanes = left.type.count if isinstance(left.type, VectorType) else 0
        type_ = VectorType(bit, lanes) if lanes else bit
        return self._pure(type_, f"{name} {left}, {right.text}", left, right)

    def icmp_signed(self, relation: str, left: Value, right: Value) -> Value:
        """Whether a relation of signed numbers holds."""
        sign = "" if relation in ("==", "!=") else "s"
        return self._compare(f"icmp {sign}{_INTEGER_RELATIONS[relation]}", left, right)

    def icmp_unsigned(self, relation: str, left: Value, right: Value) -> Value:
        """Whether a relation of unsigned numbers holds."""
        sign = "" if relation in ("==", "!=") else "u"
        return self._compare(f"icmp {sign}{_INTEGER_RELATIONS[relation]}", left, right)

    def fcmp_ordered(self, relation: str, left: Value, right: Value) -> Value:
        """Whether a relation of floats holds and none is a NaN."""
        return self._compare(f"fcmp o{_FLOAT_RELATIONS[relation]}", left, right)

    def fcmp_unordered(self, relation: str, left: Value, right: Value) -> Value:
        """Whether a relation of floats holds or one is a NaN."""
        return self._compare(f"fcmp u{_FLOAT_RELATIONS[relation]}", left, right)

    def select(self, condition: Value, then: Value, other: Value) -> Value:
        """`then` where a condition holds, else `other`."""
        text = f"select {condition}, {then}, {other}"
        return self._pure(then.type, text, condition, then, other)

    def _cast(self, name: str, value: Value, type_: Any) -> Value:
        if value.type == type_:
            return value
        return self._pure(type_, f"{name} {value} to {type_.text}", value)

    def trunc(self, value: Value, type_: Any) -> Value:
        """The lower bits."""
        return self._cast("trunc", value, type_)

    def zext(self, value: Value, type_: Any) -> Value:
        """More bits, zeros above."""
        return self._cast("zext", value, type_)

    def sext(self, value: Value, type_: Any) -> Value:
        """More bits, the sign above."""
        return self._cast("sext", value, type_)

    def fptrunc(self, value: Value, type_: Any) -> Value:
        """A narrower float."""
        return self._cast("fptrunc", value, type_)

    def fpext(self, value: Value, type_: Any) -> Value:
        """A wider float."""
        return self._cast("fpext", value, type_)

    def sitofp(self, value: Value, type_: Any) -> Value:
        """A signed number as a float."""
        return self._cast("sitofp", value, type_)

    def uitofp(self, value: Value, type_: Any) -> Value:
        """An unsigned number as a float."""
        return self._cast("uitofp", value, type_)

    def ptrtoint(self, value: Value, type_: Any) -> Value:
        """An address as a number."""
        return self._cast("ptrtoint", value, type_)

    def inttoptr(self, value: Value, type_: Any) -> Value:
        """A number as an address."""
        made = self._pure(type_, f"inttoptr {value} to {type_.text}", value)
        return Value(type_, made.text, made.block)

    def bitcast(self, value: Value, type_: Any) -> Value:
        """The same bits as another type."""
        if isinstance(type_, PointerType):
            return Value(type_, value.text, value.block)
        return self._cast("bitcast", value, type_)

    def insert_element(self, vector: Value, value: Value, index: Value) -> Value:
        """A vector with one element replaced."""
        text = f"insertelement {vector}, {value}, {index}"
        return self._pure(vector.type, text, vector, value, index)

    def extract_element(self, vector: Value, index: Value) -> Value:
        """One element of a vector."""
        text = f"extractelement {vector}, {index}"
        return self._pure(vector.type.element, text, vector, index)

    def shuffle_vector(self, left: Value, right: Value, order: Value) -> Value:
        """Elements of two vectors, by their numbers."""
        type_ = VectorType(left.type.element, order.type.count)
        return self._pure(type_, f"shufflevector {left}, {right}, {order}", left, right)

    def gep(self, pointer: Value, indices: Sequence[Value]) -> Value:
        """The address so many elements on."""
        (index,) = indices
        text = f"getelementptr {pointer.type.pointee.text}, {pointer}, {index}"
        return self._pure(pointer.type, text, pointer, index)

    def alloca(self, type_: Any) -> Value:
        """Room for a value on the stack."""
        return self._new(PointerType(type_), f"alloca {type_.text}")

    def load(self, pointer: Value, align: int | None = None) -> Value:
        """The value at an address."""
        type_ = pointer.type.pointee
        where = "" if align is None else f", align {align}"
        return self._new(type_, f"load {type_.text}, {pointer}{where}")

    def look(self, pointer: Value) -> Value:
        """The value at an address that others may change at any time."""
        type_ = pointer.type.pointee
        return self._new(type_, f"load volatile {type_.text}, {pointer}")

    def store(self, value: Value, pointer: Value, align: int | None = None) -> None:
        """Put a value at an address."""
        where = "" if align is None else f", align {align}"
        self.block.lines.append(f"store {value}, {pointer}{where}")

    def phi(self, type_: Any) -> Phi:
        """A value that depends on where control comes from: the block begins a loop."""
        self.function.values += 1
        made = Phi(type_, f"%v{self.function.values}", self.block)
        self.block.loops += not self.block.phis
        self.block.phis.append(made)
        return made

    def call(self, function: Value, arguments: Sequence[Value]) -> Value:
        """Call a function, by its name or its address."""
        result = function.type.pointee.result
        given = ", ".join(map(str, arguments))
        instruction = f"call {result.text} {function.text}({given})"
        if isinstance(result, VoidType):
            self.block.lines.append(instruction)
            return Value(result, "")
        return self._new(result, instruction)

    def compute(self, function: Value, arguments: Sequence[Value]) -> Value:
        """Call a function that does nothing but compute a value of its arguments."""
        result = function.type.pointee.result
        given = ", ".join(map(str, arguments))
        return self._pure(result, f"call {result.text} {function.text}({given})", *arguments)

    def branch(self, target: Block) -> None:
        """Go on in a block."""
        target.enter_from(self.block)
        self.block.end = f"br label %{target.name}"

    def cbranch(self, condition: Value, then: Block, other: Block) -> None:
        """Go on in one block where a condition holds, in another where it does not."""
        then.enter_from(self.block)
        other.enter_from(self.block)
        self.block.end = f"br {condition}, label %{then.name}, label %{other.name}"

    def ret(self, value: Value) -> None:
        """Return a value."""
        self.block.end = f"ret {value}"

    def ret_void(self) -> None:
        """Return."""
        self.block.end = "ret void"
