"""The kernel language: what a kernel reads, computes and writes, as immutable data.

Indices and extents are sizes of `sardonyx.dims`: polynomials over loop variables, named integers
and parameters. A name that no statement binds is a parameter of the kernel. Names of loop
variables begin with `%`, which no model's symbol does.
"""

from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

from sardonyx.dims import Expression, Size
from sardonyx.dtypes import DataType
from sardonyx.record import record

FLOAT_UNARY = frozenset({
    "neg", "abs", "sqrt", "rsqrt", "reciprocal", "exp", "log", "tanh", "erf", "sigmoid", "floor",
    "ceil", "rint", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh",
    "atanh",
})  # fmt: skip
"""Functions of one float."""
ARITHMETIC = frozenset(["add", "sub", "mul", "div", "mod", "min", "max"])
"""Functions of two numbers of one type; min and max pass NaN on; div of integers truncates, mod has
the sign of its left side, and both are 0 where an integer is divided by 0."""
RELATIONS = frozenset(["lt", "le", "gt", "ge", "eq", "ne"])
"""Comparisons, which give a bool."""
LOGIC = frozenset(["and", "or", "xor"])
"""Functions of two bools, or of the bits of two integers."""
SHIFTS = frozenset(["shl", "shr"])
"""Bits of an integer moved by another one of its type; beyond its width nothing is left."""
COMBINERS = frozenset(["add", "mul", "min", "max", "set"])
"""How a register may take in a value; `set` forgets what it held."""
STORED = frozenset({
    DataType.FLOAT16, DataType.BFLOAT16, DataType.FLOAT8E4M3FN, DataType.FLOAT8E4M3FNUZ,
    DataType.FLOAT8E5M2, DataType.FLOAT8E5M2FNUZ, DataType.FLOAT8E8M0, DataType.FLOAT4E2M1,
    DataType.INT4, DataType.UINT4, DataType.INT2, DataType.UINT2,
})  # fmt: skip
"""Element types that are only moved, chosen and cast; to compute with them, cast them first."""


@record
class Buffer:
    """Elements in memory, at `sum(index * stride)`; several may describe the same `memory`."""

    memory: str
    dtype: DataType
    shape: tuple[Size, ...]
    strides: tuple[Size, ...]


@record
class Constant:
    """A number or truth value."""

    value: float | int | bool
    dtype: DataType


@record
class Whole:
    """A size or loop variable as an int64 value."""

    size: Size


@record
class Load:
    """An element of a buffer."""

    buffer: Buffer
    indices: tuple[Size, ...]


@record
class Pick:
    """An element at indices that are computed, int64 values; 0 where one of them lies outside.

    `report` is a memory of one int64 that becomes 1 where an index lies outside.
    """

    buffer: Buffer
    indices: tuple["Value", ...]
    report: Buffer | None = None


@record
class Read:
    """What a register holds."""

    register: str
    dtype: DataType
    indices: tuple[Size, ...] = ()


@record
class Unary:
    """A function of one value: one of FLOAT_UNARY; `neg`, `abs`, `not` of integers; `not`."""

    name: str
    operand: "Value"


@record
class Binary:
    """A function of two values of one type: of ARITHMETIC, RELATIONS, LOGIC, SHIFTS; or `pow`."""

    name: str
    left: "Value"
    right: "Value"


@record
class Select:
    """`then` where the condition holds, else `other`; both are computed."""

    condition: "Value"
    then: "Value"
    other: "Value"


@record
class Cast:
    """A value as another element type; floats are truncated to integers."""

    operand: "Value"
    dtype: DataType


@record
class Bits:
    """The bits of a value as another element type that takes as many bytes."""

    operand: "Value"
    dtype: DataType


@record
class Dot:
    """The sum of the products of two int32's parts, as a `dtype`.

    INT32: four bytes, without sign, by four with sign; the sum is always exact. FLOAT: two bfloat16
    by two others, in float32.
    """

    left: "Value"
    right: "Value"
    dtype: DataType = DataType.INT32


Value = Constant | Whole | Load | Pick | Read | Unary | Binary | Select | Cast | Bits | Dot


class Kind(Enum):
    """How a loop runs: its meaning is the same for all."""

    SERIAL = "for"
    UNROLL = "unroll"
    VECTOR = "vector"
    PARALLEL = "parallel"
    STEPS = "steps"
    """Around the parallel loop: an iteration begins when all tasks of the one before are done."""
    TURN = "turn"
    """Around a vector loop of as many iterations, which copies an element: a square is turned."""


@record
class Loop:
    """The body for `index` from 0 to `extent` - 1."""

    index: str
    extent: Size
    body: tuple["Statement", ...]
    kind: Kind = Kind.SERIAL


@record
class Guard:
    """The body where `left < right`."""

    left: Size
    right: Size
    body: tuple["Statement", ...]


@record
class Let:
    """Gives an integer value a name that indices may use."""

    name: str
    value: Value


@record
class Register:
    """Accumulators that hold `initial` from here on; the last axis lies across lanes if `lanes`."""

    name: str
    dtype: DataType
    shape: tuple[int, ...]
    initial: float | int
    lanes: bool = False


@record
class Local:
    """Memory of a task's own from here on, without gaps; what it holds at first is not defined."""

    memory: str
    dtype: DataType
    shape: tuple[int, ...]


@record
class Update:
    """A register takes in a value: `register = combine(register, value)`."""

    register: str
    combine: str
    value: Value
    indices: tuple[Size, ...] = ()


@record
class Store:
    """Writes an element of a buffer."""

    buffer: Buffer
    indices: tuple[Size, ...]
    value: Value


Statement = Loop | Guard | Let | Register | Local | Update | Store


@record
class Kernel:
    """A function of memories and parameters.

    A parallel loop, if any, is its only statement, or the only one of a loop of steps that is.
    """

    memories: tuple[str, ...]
    parameters: tuple[str, ...]
    body: tuple[Statement, ...]

    @property
    def parallel(self) -> Loop | None:
        """The loop whose iterations may run on several threads."""
        return _only_loop(self.body if self.steps is None else self.steps.body, Kind.PARALLEL)

    @property
    def steps(self) -> Loop | None:
        """The loop whose iterations wait for each other, around the parallel one."""
        return _only_loop(self.body, Kind.STEPS)


def _only_loop(body: tuple[Statement, ...], kind: Kind) -> Loop | None:
    first = body[0] if len(body) == 1 else None
    return first if isinstance(first, Loop) and first.kind is kind else None


def dtype_of(value: Value) -> DataType:
    """The element type of a value.

    >>> dtype_of(Binary("lt", Constant(1, DataType.INT64), Whole(2)))
    <DataType.BOOL: 9>
    """
    while True:
        match value:
            case Constant() | Cast() | Bits() | Read() | Dot():
                return value.dtype
            case Whole():
                return DataType.INT64
            case Load() | Pick():
                return value.buffer.dtype
            case Binary() if value.name in RELATIONS:
                return DataType.BOOL
            case Unary():
                value = value.operand
            case Binary():
                value = value.left
            case Select():
                value = value.then


_OPERANDS: dict[type, Callable[[Any], tuple[Value, ...]]] = {
    Unary: lambda value: (value.operand,),
    Cast: lambda value: (value.operand,),
    Bits: lambda value: (value.operand,),
    Binary: lambda value: (value.left, value.right),
    Dot: lambda value: (value.left, value.right),
    Select: lambda value: (value.condition, value.then, value.other),
    Pick: lambda value: value.indices,
}


def operands(value: Value) -> tuple[Value, ...]:
    """The values a value is made of."""
    find = _OPERANDS.get(value.__class__)
    return find(value) if find is not None else ()


def symbols(size: Size) -> frozenset[str]:
    """The names a size depends on."""
    return size.symbols if isinstance(size, Expression) else frozenset()


def substitute(size: Size, names: dict[str, Size]) -> Size:
    """A size with names replaced."""
    return size if isinstance(size, int) or not names else size.substitute(names)


_NESTED = (Loop, Guard)
_WITH_VALUE = (Let, Update, Store)
_ACCESS = (Load, Pick)


def walk(body: tuple[Statement, ...]) -> Iterator[Statement]:
    """Every statement, outer before inner."""
    waiting = list(reversed(body))
    while waiting:
        statement = waiting.pop()
        yield statement
        if isinstance(statement, _NESTED):
            waiting.extend(reversed(statement.body))


def values_in(body: tuple[Statement, ...]) -> Iterator[Value]:
    """Every value, once for each place where it stands; shared parts of one value once."""
    for statement in walk(body):
        if isinstance(statement, _WITH_VALUE):
            first = operands(statement.value)
            if not first:
                yield statement.value
                continue
            seen: dict[int, Value] = {id(statement.value): statement.value}
            waiting = list(first)
            while waiting:
                value = waiting.pop()
                if id(value) not in seen:
                    seen[id(value)] = value
                    waiting.extend(operands(value))
            yield from seen.values()


def buffers_in(body: tuple[Statement, ...]) -> Iterator[Buffer]:
    """Every buffer that is read or written."""
    for value in values_in(body):
        if isinstance(value, _ACCESS):
            yield value.buffer
        if isinstance(value, Pick) and value.report is not None:
            yield value.report
    for statement in walk(body):
        if isinstance(statement, Store):
            yield statement.buffer


def sizes_in(body: tuple[Statement, ...]) -> Iterator[Size]:
    """Every index, extent and stride."""
    for statement in walk(body):
        match statement:
            case Loop():
                yield statement.extent
            case Guard():
                yield from (statement.left, statement.right)
            case Update():
                yield from statement.indices
            case Store():
                yield from (*statement.indices, *statement.buffer.strides)
    for value in values_in(body):
        match value:
            case Load():
                yield from (*value.indices, *value.buffer.strides)
            case Pick():
                yield from (*value.buffer.shape, *value.buffer.strides)
            case Read():
                yield from value.indices
            case Whole():
                yield value.size
