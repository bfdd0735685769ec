"""Kernels as text."""

from collections.abc import Iterator

from sardonyx.dims import Size
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
    buffers_in,
    operands,
)

_SIGNS = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "eq": "==", "ne": "!=", "and": "&", "or": "|", "xor": "^", "mod": "%", "shl": "<<",
    "shr": ">>",
}  # fmt: skip


LONGEST = 120
"""Letters of a part of a value beyond which it gets a line of its own."""


def kernel_text(kernel: Kernel) -> str:
    """A kernel, one statement a line.

    >>> from sardonyx.loops.build import constant, dense, kernel, variable
    >>> from sardonyx.dtypes import DataType
    >>> name, i = variable("i")
    >>> x, y = (dense(name, DataType.FLOAT, (4,)) for name in "xy")
    >>> body = Store(y, (i,), Binary("mul", Load(x, (i,)), constant(2.0)))
    >>> print(kernel_text(kernel([Loop(name, 4, (body,))])))
    kernel(x, y)
      x: float[4] strides [1]
      y: float[4] strides [1]
      for %i in 4:
        y[%i] = (x[%i] * 2.0)
    """
    lines = [f"kernel({', '.join(kernel.memories + kernel.parameters)})"]
    described = dict.fromkeys(buffers_in(kernel.body))
    lines += sorted(f"  {_describe(buffer)}" for buffer in described)
    _write(kernel.body, "  ", lines)
    return "\n".join(lines)


def _describe(buffer: Buffer) -> str:
    shape, strides = _sizes(buffer.shape), _sizes(buffer.strides)
    return f"{buffer.memory}: {buffer.dtype.text}{shape} strides {strides}"


def _write(body: tuple[Statement, ...], indent: str, lines: list[str]) -> None:
    """Add the lines of statements."""
    for statement in body:
        match statement:
            case Loop(index, extent, inner, kind):
                lines.append(f"{indent}{kind.value} {index} in {extent}:")
                _write(inner, indent + "  ", lines)
            case Guard(left, right, inner):
                lines.append(f"{indent}if {left} < {right}:")
                _write(inner, indent + "  ", lines)
            case Let(name, value):
                lines += _with_value(indent, f"{name} := ", value)
            case Register(name, dtype, shape, initial, lanes):
                spread = " across lanes" if lanes else ""
                kind_ = f"{dtype.text}{list(shape)}{spread}"
                lines.append(f"{indent}register {name}: {kind_} = {initial}")
            case Local(name, dtype, shape):
                lines.append(f"{indent}local {name}: {dtype.text}{list(shape)}")
            case Update(name, combine, value, indices):
                lines += _with_value(indent, f"{name}{_sizes(indices)} {combine}= ", value)
            case Store(buffer, indices, value):
                lines += _with_value(indent, f"{buffer.memory}{_sizes(indices)} = ", value)


def _with_value(indent: str, head: str, value: Value) -> Iterator[str]:
    """A statement's line; parts that its value needs more than once stand before it."""
    if not operands(value):
        yield indent + head + _text(value, [])
        return
    uses: dict[int, int] = {}
    order: list[Value] = []
    waiting: list[tuple[Value, bool]] = [(value, False)]
    while waiting:
        item, ready = waiting.pop()
        if ready:
            order.append(item)
            continue
        uses[id(item)] = uses.get(id(item), 0) + 1
        if uses[id(item)] == 1:
            waiting.append((item, True))
            waiting.extend((part, False) for part in reversed(operands(item)))
    texts: dict[int, str] = {}
    count = 0
    for item in order:
        text = _text(item, [texts[id(part)] for part in operands(item)])
        if operands(item) and item is not value and (uses[id(item)] > 1 or len(text) > LONGEST):
            yield f"{indent}t{count} = {text}"
            text = f"t{count}"
            count += 1
        texts[id(item)] = text
    yield indent + head + texts[id(value)]


def value_text(value: Value) -> str:
    """A value, with what it is computed from in lines before it."""
    return "; ".join(_with_value("", "", value))


def access_text(buffer: Buffer, indices: tuple[Size, ...]) -> str:
    """An element of a buffer."""
    return f"{buffer.memory}{_sizes(indices)}"


def _text(value: Value, parts: list[str]) -> str:
    match value:
        case Constant(number, dtype):
            return str(number) if dtype is DataType.FLOAT else f"{dtype.text} {number}"
        case Whole(size):
            return f"<{size}>"
        case Load(buffer, indices):
            return access_text(buffer, indices)
        case Pick(buffer, _, report):
            outside = "" if report is None else f" or {report.memory}"
            return f"{buffer.memory}[{', '.join(parts)}]{outside}"
        case Read(register, _, indices):
            return f"{register}{_sizes(indices)}"
        case Unary(name, _):
            return f"{name}({parts[0]})"
        case Binary(name, _, _) if name in _SIGNS:
            return f"({parts[0]} {_SIGNS[name]} {parts[1]})"
        case Binary(name, _, _):
            return f"{name}({', '.join(parts)})"
        case Select():
            return f"({parts[1]} if {parts[0]} else {parts[2]})"
        case Cast(_, dtype):
            return f"{dtype.text}({parts[0]})"
        case Bits(_, dtype):
            return f"{dtype.text}(bits {parts[0]})"
        case Dot(dtype=dtype):
            return f"{'dot' if dtype is DataType.INT32 else 'pairs'}({', '.join(parts)})"


def _sizes(sizes: tuple[Size, ...]) -> str:
    return "[" + ", ".join(map(str, sizes)) + "]"
