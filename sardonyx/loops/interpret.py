"""What a kernel means: one element after another, in NumPy's arithmetic."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sardonyx.dims import Expression, Size
from sardonyx.dtypes import DataType
from sardonyx.loops.nodes import (
    Binary,
    Bits,
    Buffer,
    Cast,
    Constant,
    Dot,
    Guard,
    Kernel,
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
    operands,
)

Number = Any


def _truncated(left: Number, right: Number) -> Number:
    if np.issubdtype(type(left), np.integer):
        quotient = abs(int(left)) // abs(int(right)) if right else 0
        return type(left)(quotient if (left < 0) == (right < 0) else -quotient)
    return left / right


def _remainder(left: Number, right: Number) -> Number:
    if np.issubdtype(type(left), np.integer):
        return type(left)(int(left) - int(right) * int(_truncated(left, right)) if right else 0)
    return np.fmod(left, right)


def _on_bits(logical: Callable[..., Number], bitwise: Callable[..., Number]) -> Any:
    def apply(*parts: Number) -> Number:
        return (logical if isinstance(parts[0], np.bool_ | bool) else bitwise)(*parts)

    return apply


UNARY: dict[str, Callable[[Number], Number]] = {
    "neg": np.negative, "abs": np.abs, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x),
    "reciprocal": lambda x: type(x)(1) / x, "exp": np.exp, "log": np.log, "tanh": np.tanh,
    "erf": lambda x: type(x)(math.erf(x)), "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "floor": np.floor, "ceil": np.ceil, "rint": np.rint, "sin": np.sin, "cos": np.cos,
    "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh,
    "cosh": np.cosh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "not": _on_bits(np.logical_not, np.invert),
}  # fmt: skip
BINARY: dict[str, Callable[[Number, Number], Number]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": _truncated,
    "min": np.minimum, "max": np.maximum, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal, "mod": _remainder, "pow": np.power,
    "and": _on_bits(np.logical_and, np.bitwise_and), "or": _on_bits(np.logical_or, np.bitwise_or),
    "xor": _on_bits(np.logical_xor, np.bitwise_xor), "shl": np.left_shift, "shr": np.right_shift,
    "set": lambda _, value: value,
}  # fmt: skip


def interpret(
    kernel: Kernel,
    memories: Mapping[str, NDArray[Any]],
    parameters: Mapping[str, int] | None = None,
) -> None:
    """Run a kernel on flat arrays, which it changes.

    >>> from sardonyx.loops.build import dense, kernel, variable
    >>> name, i = variable("i")
    >>> x = dense("x", DataType.FLOAT, (3,))
    >>> double = Store(x, (i,), Binary("add", Load(x, (i,)), Load(x, (i,))))
    >>> array = np.arange(3, dtype=np.float32)
    >>> interpret(kernel([Loop(name, 3, (double,))]), {"x": array})
    >>> array.tolist()
    [0.0, 2.0, 4.0]
    """
    flat = {name: array.reshape(-1) for name, array in memories.items()}
    for name, array in memories.items():
        assert flat[name].base is not None or array.ndim == 1, f"memory {name} is not contiguous"
    with np.errstate(all="ignore"):
        _Machine(flat, dict(parameters or {})).run(kernel.body)


class _Machine:
    def __init__(self, memories: dict[str, NDArray[Any]], names: dict[str, int]) -> None:
        self.memories = memories
        self.names = names
        self.registers: dict[str, NDArray[Any]] = {}

    def run(self, body: tuple[Statement, ...]) -> None:
        for statement in body:
            self.statement(statement)

    def statement(self, statement: Statement) -> None:
        match statement:
            case Loop(index, extent, body):
                for position in range(self.size(extent)):
                    self.names[index] = position
                    self.run(body)
            case Guard(left, right, body):
                if self.size(left) < self.size(right):
                    self.run(body)
            case Let(name, value):
                self.names[name] = int(self.value(value))
            case Register(name, dtype, shape, initial):
                self.registers[name] = np.full(shape, initial, dtype.numpy)
            case Local(name, dtype, shape):
                self.memories[name] = np.empty(math.prod(shape), dtype.numpy)
            case Update(name, combine, value, indices):
                at = tuple(map(self.size, indices))
                register = self.registers[name]
                register[at] = BINARY[combine](register[at], self.value(value))
            case Store(buffer, indices, value):
                self.elements(buffer)[self.offset(buffer, indices)] = self.value(value)

    def size(self, size: Size) -> int:
        value = size.substitute(self.names) if isinstance(size, Expression) else size
        assert isinstance(value, int), f"{size} has a name without a value"
        return value

    def elements(self, buffer: Buffer) -> NDArray[Any]:
        """Memory by the type that a buffer says its elements have."""
        memory, dtype = self.memories[buffer.memory], buffer.dtype.numpy
        return memory if memory.dtype == dtype else memory.view(dtype)

    def offset(self, buffer: Buffer, indices: tuple[Size, ...]) -> int:
        total = 0
        for index, extent, stride in zip(indices, buffer.shape, buffer.strides, strict=True):
            at = self.size(index)
            if not 0 <= at < self.size(extent):
                raise IndexError(f"index {at} of {buffer.memory} with the shape {buffer.shape}")
            total += at * self.size(stride)
        return total

    def pick(self, buffer: Buffer, indices: list[int], report: Buffer | None) -> Number:
        extents = [self.size(extent) for extent in buffer.shape]
        if all(0 <= at < extent for at, extent in zip(indices, extents, strict=True)):
            return self.elements(buffer)[self.offset(buffer, tuple(indices))]
        if report is not None:
            self.memories[report.memory][0] = 1
        return buffer.dtype.numpy.type(0)

    def value(self, value: Value) -> Number:
        """A value; long chains are computed without recursion."""
        known: dict[int, Number] = {}
        waiting = [value]
        while waiting:
            item = waiting[-1]
            missing = [part for part in operands(item) if id(part) not in known]
            if missing:
                waiting.extend(missing)
            else:
                known[id(item)] = self.apply(item, [known[id(part)] for part in operands(item)])
                waiting.pop()
        return known[id(value)]

    def apply(self, value: Value, parts: list[Number]) -> Number:
        match value:
            case Constant(number, dtype):
                return dtype.numpy.type(number)
            case Whole(size):
                return np.int64(self.size(size))
            case Load(buffer, indices):
                return self.elements(buffer)[self.offset(buffer, indices)]
            case Pick(buffer, _, report):
                return self.pick(buffer, [int(part) for part in parts], report)
            case Read(register, _, indices):
                return self.registers[register][tuple(map(self.size, indices))]
            case Unary(name, _):
                return UNARY[name](parts[0])
            case Binary(name, _, _):
                return BINARY[name](*parts)
            case Select():
                return parts[1] if parts[0] else parts[2]
            case Cast(_, dtype):
                return _cast(parts[0], dtype)
            case Bits(_, dtype):
                return np.asarray(parts[0]).view(dtype.numpy)[()]
            case Dot(dtype=dtype):
                return _dot(np.int32(parts[0]), np.int32(parts[1]), dtype)


def _dot(left: np.int32, right: np.int32, dtype: DataType) -> Number:
    """The parts of two words multiplied and added up."""
    kinds = (DataType.UINT8, DataType.INT8)
    if dtype is DataType.FLOAT:
        kinds = (DataType.BFLOAT16, DataType.BFLOAT16)
    words = zip((left, right), kinds, strict=True)
    parts = [np.frombuffer(word.tobytes(), kind.numpy).astype(dtype.numpy) for word, kind in words]
    total: Number = np.dot(*parts)
    return total


def _cast(number: Number, dtype: DataType) -> Number:
    return np.asarray(number).astype(dtype.numpy)[()]
