"""Whether a kernel is well formed: names bound, ranks and types fitting, loops in their place, no
index that is sure to leave its array."""

from sardonyx.dims import Size
from sardonyx.dtypes import DataType
from sardonyx.errors import SardonyxError
from sardonyx.loops.bounds import wrong_accesses
from sardonyx.loops.nodes import (
    ARITHMETIC,
    COMBINERS,
    FLOAT_UNARY,
    LOGIC,
    RELATIONS,
    SHIFTS,
    STORED,
    Binary,
    Bits,
    Buffer,
    Cast,
    Constant,
    Dot,
    Guard,
    Kernel,
    Kind,
    Let,
    Load,
    Local,
    Loop,
    Pick,
    Read,
    Register,
    Select,
    Statement,
    Store,
    Unary,
    Update,
    Value,
    Whole,
    dtype_of,
    operands,
    symbols,
)
from sardonyx.loops.show import value_text


class KernelError(SardonyxError):
    """A kernel breaks a rule of the kernel language: a bug in what made it."""


def verify(kernel: Kernel) -> None:
    """Raise `KernelError` at the first broken rule."""
    _Scope(set(kernel.memories), set(kernel.parameters), {}).body(kernel.body, Kind.PARALLEL)
    for wrong in wrong_accesses(kernel):
        raise KernelError(f"malformed kernel: index {wrong}")


_INSIDE = {Kind.PARALLEL: Kind.SERIAL, Kind.STEPS: Kind.PARALLEL}
"""What kind of loop is around the body of one, where it is not its own."""


class _Scope:
    def __init__(self, memories: set[str], names: set[str], registers: dict[str, Register]) -> None:
        self.memories = memories
        self.names = names
        self.registers = registers

    def body(self, body: tuple[Statement, ...], around: Kind) -> None:
        inner = _Scope(set(self.memories), set(self.names), dict(self.registers))
        for statement in body:
            inner.statement(statement, around, alone=len(body) == 1)

    def statement(self, statement: Statement, around: Kind, alone: bool) -> None:
        match statement:
            case Loop(index, extent, body, kind):
                self.sizes(extent)
                _require(
                    index.startswith("%") and index not in self.names, f"loop variable {index}"
                )
                _require(around is not Kind.VECTOR, f"a loop over {index} inside a vector loop")
                if kind is Kind.UNROLL:
                    _require(isinstance(extent, int), f"unrolled loop over {index} of {extent}")
                if kind is Kind.TURN:
                    _require(_is_square_copy(extent, body), f"turning loop over {index}")
                if kind is Kind.PARALLEL:
                    _require(
                        around is Kind.PARALLEL and alone, f"parallel loop {index} not outermost"
                    )
                if kind is Kind.STEPS:
                    outermost = around is Kind.PARALLEL and alone
                    _require(outermost and _is_parallel(index, body), f"loop of steps {index}")
                inner = _Scope(self.memories, self.names | {index}, self.registers)
                inner.body(body, _INSIDE.get(kind, kind))
            case Guard(left, right, body):
                self.sizes(left, right)
                self.body(body, Kind.SERIAL if around is Kind.PARALLEL else around)
            case Let(name, value):
                _require(name.startswith("%"), f"name {name}")
                _require(self.value(value) is DataType.INT64, f"{name} is not an int64")
                self.names.add(name)
            case Register(name, _, shape, _, lanes):
                _require(not lanes or len(shape) > 0, f"register {name} has no axis for lanes")
                self.registers[name] = statement
            case Local(name):
                _require(name not in self.memories, f"memory {name} stands twice")
                self.memories.add(name)
            case Update(name, combine, value, indices):
                _require(combine in COMBINERS, f"combiner {combine}")
                self.read(name, indices, self.value(value))
                single = around is Kind.VECTOR and not self.registers[name].lanes
                _require(combine != "set" or not single, f"register {name} set by many lanes")
            case Store(buffer, indices, value):
                self.access(buffer, indices)
                _require(self.value(value) is buffer.dtype, f"{buffer.memory} takes another type")

    def sizes(self, *sizes: Size) -> None:
        for size in sizes:
            unknown = symbols(size) - self.names
            _require(not unknown, f"{size} has the unbound {', '.join(sorted(unknown))}")

    def access(self, buffer: Buffer, indices: tuple[Size, ...]) -> None:
        _require(buffer.memory in self.memories, f"memory {buffer.memory} is not the kernel's")
        _require(
            len(indices) == len(buffer.shape) == len(buffer.strides),
            f"{len(indices)} indices into {buffer.memory} of rank {len(buffer.shape)}",
        )
        self.sizes(*indices, *buffer.strides)

    def read(self, name: str, indices: tuple[Size, ...], dtype: DataType) -> None:
        register = self.registers.get(name)
        _require(register is not None, f"register {name} is not declared")
        assert register is not None
        _require(register.dtype is dtype, f"register {name} holds {register.dtype.text}")
        _require(len(indices) == len(register.shape), f"indices of register {name}")
        self.sizes(*indices)

    def value(self, value: Value) -> DataType:
        """The type of a value, each shared part checked once."""
        types: dict[int, DataType] = {}
        waiting = [value]
        while waiting:
            item = waiting[-1]
            missing = [part for part in operands(item) if id(part) not in types]
            if missing:
                waiting.extend(missing)
                continue
            waiting.pop()
            types[id(item)] = self.single(item, [types[id(part)] for part in operands(item)])
        return types[id(value)]

    def single(self, value: Value, types: list[DataType]) -> DataType:
        match value:
            case Whole(size):
                self.sizes(size)
            case Load(buffer, indices):
                self.access(buffer, indices)
            case Pick(buffer, indices, report):
                self.access(buffer, (0,) * len(indices))
                self.sizes(*buffer.shape)
                _require(set(types) <= {DataType.INT64}, f"indices of {buffer.memory}")
                if report is not None:
                    self.access(report, (0,))
                return buffer.dtype
            case Read(name, dtype, indices):
                self.read(name, indices, dtype)
            case Unary(name, _):
                _require(types[0] not in STORED, f"{name} of {types[0].text}")
                known = name in FLOAT_UNARY and (types[0].is_float or name in ("neg", "abs"))
                bits = types[0] is DataType.BOOL or types[0].is_integer
                _require(known or (name == "not" and bits), f"{name} of {types[0].text}")
            case Binary(name, _, _):
                _require(types[0] is types[1], f"{name} of {types[0].text} and {types[1].text}")
                _require(types[0] not in STORED, f"{name} of {types[0].text}")
                _require(name in _allowed(types[0]), f"{name} of {types[0].text}")
                return DataType.BOOL if name in RELATIONS else types[0]
            case Select():
                _require(types[0] is DataType.BOOL, f"the condition of {value_text(value)[:60]}")
                _require(types[1] is types[2], "the two sides of a choice")
                return types[1]
            case Dot():
                _require(set(types) == {DataType.INT32}, "products of words of other types")
                summed = value.dtype in (DataType.INT32, DataType.FLOAT)
                _require(summed, f"products of words as {value.dtype.text}")
                return value.dtype
            case Bits(_, dtype):
                sizes = (types[0].numpy.itemsize, dtype.numpy.itemsize)
                _require(sizes[0] == sizes[1], f"bits of {types[0].text} as {dtype.text}")
                return dtype
            case Constant() | Cast():
                return value.dtype
        return types[0] if types else dtype_of(value)


def _allowed(dtype: DataType) -> frozenset[str]:
    """Functions of two values of a type."""
    if dtype is DataType.BOOL:
        return LOGIC | RELATIONS
    if dtype.is_float:
        return ARITHMETIC | RELATIONS | {"pow"}
    return ARITHMETIC | RELATIONS | LOGIC | SHIFTS


def _is_parallel(index: str, body: tuple[Statement, ...]) -> bool:
    """True for a parallel loop of as many tasks in every step."""
    match body:
        case (Loop(_, tasks, _, Kind.PARALLEL),):
            return index not in symbols(tasks)
    return False


def _is_square_copy(extent: Size, body: tuple[Statement, ...]) -> bool:
    """True for a vector loop over one store of one load."""
    match body:
        case (Loop(_, inner, (Store(_, _, Load()),), Kind.VECTOR),):
            return isinstance(extent, int) and inner == extent
    return False


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise KernelError(f"malformed kernel: {what}")
