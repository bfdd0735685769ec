"""Products by constant weights of a few bits, which are read as they are: bytes of several codes.

With a scale s and a zero point z for each block of a row's weights w, and inputs x:
sum(x * (w - z) * s) = sum over blocks of s * (sum(x * w) - z * sum(x)).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sardonyx.compiler.forms import (
    Form,
    Memories,
    NotLowered,
    Room,
    Routine,
    constant,
    reshape,
    results,
)
from sardonyx.compiler.kernels.nest import parallel_kernel
from sardonyx.compiler.lowerings.request import Lowerings, Request
from sardonyx.dims import Size, minimum, product, symbol
from sardonyx.dtypes import DataType, unpack
from sardonyx.loops.build import constant as number
from sardonyx.loops.build import dense, nest
from sardonyx.loops.nodes import (
    Binary,
    Cast,
    Guard,
    Kernel,
    Kind,
    Load,
    Local,
    Loop,
    Read,
    Register,
    Statement,
    Store,
    Update,
    Value,
)
from sardonyx.record import record

FLOAT, INT32 = DataType.FLOAT, DataType.INT32
PANEL = 32
"""Columns of a result that a task computes side by side."""
PLACE, ROW, BLOCK, BYTE, K = (symbol(f"%{name}") for name in ("panel", "row", "block", "byte", "k"))
MANY_ROWS = 4
"""Rows from which on weights are computed first."""
DEPTH = 256
"""Weights of a column that are computed at once, about."""
CHUNK, VECTOR, LANE = symbol("%chunk"), symbol("%vector"), symbol("%lane")


@record
class _Problem:
    rows: Size
    columns: int
    depth: int
    bits: int
    block: int

    @property
    def blocks(self) -> int:
        return -(-self.depth // self.block)

    @property
    def codes(self) -> int:
        """In a byte."""
        return 8 // self.bits

    @property
    def whole(self) -> bool:
        """Whether the last block is a whole one."""
        return self.depth % self.block == 0


def matmul_bits(
    request: Request, a: Form, b: Form, scales: Form, zeros: Form | None = None,
    groups: Form | None = None, bias: Form | None = None, *, K: int, N: int, accuracy_level: int,
    bits: int, block_size: int, weight_prepacked: int,
) -> Form:  # fmt: skip
    """A * B' for weights B of 2, 4 or 8 bits, with a scale and zero point for each block."""
    if weight_prepacked or groups is not None:
        raise NotLowered("weights in a device's own layout or order have no native form")
    if bits not in (2, 4, 8) or block_size < 1 or block_size * bits % 8:
        raise NotLowered(f"blocks of {block_size} weights of {bits} bits have no native form")
    problem = _Problem(product(a.shape[:-1]), N, K, bits, block_size)
    tables = [_panels(request, 1, N, problem.blocks * block_size * bits // 8)]
    tables.append(_panels(request, 2, N, problem.blocks))
    if zeros is not None:
        tables.append(_zero_panels(request, problem))

    def write(memories: Memories) -> Sequence[Kernel]:
        return [_summed(problem, memories), _multiplied(problem, memories)]

    scratch = [Room((problem.rows, problem.blocks), FLOAT)]
    if not problem.whole:
        scratch.append(Room((problem.rows, problem.blocks * block_size), FLOAT))
    arguments = (reshape(a, (problem.rows, K)), *map(constant, tables))
    room = Room((problem.rows, N), FLOAT)
    work = problem.rows * N * K
    (made,) = results(Routine(arguments, (room,), write, work, tuple(scratch)))
    result = reshape(made, (*a.shape[:-1], N))
    return result if bias is None else result + bias


def _panels(request: Request, position: int, columns: int, depth: int) -> NDArray[Any]:
    """A constant with `depth` elements for each column: [panels, depth, PANEL]."""
    array = request.known(position)
    if array is None:
        raise NotLowered("only constant weights have a native form")
    if array.size != columns * depth:
        raise NotLowered(f"{array.size} elements are not {columns} times {depth}")
    return _side_by_side(array.reshape(columns, depth))


def _zero_panels(request: Request, problem: _Problem) -> NDArray[Any]:
    """Zero points, unpacked where they are codes too."""
    array = request.known(3)
    if array is None or array.dtype != np.uint8 or problem.bits == 8:
        return _panels(request, 3, problem.columns, problem.blocks)
    width = -(-problem.blocks // problem.codes)
    if array.size != problem.columns * width:
        raise NotLowered(f"{array.size} bytes of zero points do not fit the blocks")
    codes = unpack(
        np.ascontiguousarray(array).reshape(-1), problem.bits, array.size * problem.codes
    )
    rows = codes.astype(np.uint8).reshape(problem.columns, -1)
    return _side_by_side(rows[:, : problem.blocks])


def _side_by_side(matrix: NDArray[Any]) -> NDArray[Any]:
    """[columns, depth] -> [panels, depth, PANEL], with zeros behind the last column."""
    columns, depth = matrix.shape
    panels = -(-columns // PANEL)
    padded = np.zeros((panels * PANEL, depth), matrix.dtype)
    padded[:columns] = matrix
    return np.ascontiguousarray(padded.reshape(panels, PANEL, depth).swapaxes(1, 2))


def _summed(problem: _Problem, memories: Memories) -> Kernel:
    """What the inputs of each block add up to, and the inputs with zeros behind the last one."""
    inputs, (sums, *padded) = memories.arguments[0], memories.scratch
    first = BLOCK * problem.block
    here = minimum(problem.block, problem.depth - first)
    add = Update("sum", "add", Load(inputs, (ROW, first + K)))
    body: list[Statement] = [
        Register("sum", FLOAT, (), 0.0),
        Loop("%k", here, (add,), Kind.VECTOR),
        Store(sums, (ROW, BLOCK), Read("sum", FLOAT)),
    ]
    made: list[Statement] = [Loop("%block", problem.blocks, tuple(body))]
    if padded:
        rest = problem.blocks * problem.block - problem.depth
        kept = Store(padded[0], (ROW, K), Load(inputs, (ROW, K)))
        clear = Store(padded[0], (ROW, problem.depth + K), number(0.0, FLOAT))
        made.append(Loop("%k", problem.depth, (kept,), Kind.VECTOR))
        made.append(Loop("%k", rest, (clear,)))
    return parallel_kernel([("%row", problem.rows)], made)


def _multiplied(problem: _Problem, memories: Memories) -> Kernel:
    """A task for each panel: its columns of all rows."""
    writer = _Writer(problem, memories)
    few, many = writer.few(), writer.many()
    body: Sequence[Statement] = (*writer.memory, Guard(problem.rows, MANY_ROWS, few),
                                 Guard(MANY_ROWS - 1, problem.rows, many))  # fmt: skip
    if isinstance(problem.rows, int):
        body = few if problem.rows < MANY_ROWS else (*writer.memory, *many)
    return parallel_kernel([("%panel", writer.codes.shape[0])], body)


class _Writer:
    """The statements of one panel: by the codes themselves for few rows, and for many by weights
    that are computed once for all of them, some at a time."""

    def __init__(self, problem: _Problem, memories: Memories) -> None:
        self.problem, self.lanes = problem, memories.lanes
        inputs, self.codes, self.scales, *self.zeros = memories.arguments
        self.sums, *padded = memories.scratch
        self.left = padded[0] if padded else inputs
        (self.result,) = memories.results
        self.column = VECTOR * self.lanes + LANE
        self.bytes = problem.block // problem.codes
        self.together = max(1, DEPTH // problem.block)
        self.weights = dense("own", FLOAT, (self.together * problem.block, PANEL))

    @property
    def memory(self) -> tuple[Statement, ...]:
        """Memory of a task's own, for many rows."""
        return (Local("own", FLOAT, (self.together * self.problem.block, PANEL)),)

    def over(self, *body: Statement, rows: int = 1) -> tuple[Statement, ...]:
        """The body for every vector of a panel, for some rows."""
        vector = (Loop("%lane", self.lanes, body, Kind.VECTOR),)
        return nest([("%part", rows), ("%vector", PANEL // self.lanes)], vector, Kind.UNROLL)

    def stored(self, row: Size, value: Value) -> Statement:
        """A statement that stores an element of the result, if it is there."""
        place = PLACE * PANEL + self.column
        store = Store(self.result, (row, place), value)
        ragged = self.problem.columns % PANEL
        return Guard(place, self.problem.columns, (store,)) if ragged else store

    def few(self) -> tuple[Statement, ...]:
        """Each row by itself: codes times inputs, then the scale of their block."""
        problem, column = self.problem, self.column
        parts = [f"part{place}" for place in range(problem.codes)]
        byte = Cast(Load(self.codes, (PLACE, BLOCK * self.bytes + BYTE, column)), INT32)
        first = BLOCK * problem.block + BYTE * problem.codes
        products = [
            Update(name, "add", Binary("mul", Load(self.left, (ROW, first + place)),
                                       _code(byte, place, problem.bits)), (column,))
            for place, name in enumerate(parts)
        ]  # fmt: skip
        level: Value = Read(parts[0], FLOAT, (column,))
        for name in parts[1:]:
            level = Binary("add", level, Read(name, FLOAT, (column,)))
        moved = Binary("mul", self.zero(BLOCK), Load(self.sums, (ROW, BLOCK)))
        scaled = Binary("mul", self.scale(BLOCK), Binary("sub", level, moved))
        block: list[Statement] = [
            *(Register(name, FLOAT, (PANEL,), 0.0, lanes=True) for name in parts),
            Loop("%byte", self.bytes, self.over(*products)),
            *self.over(Update("total", "add", scaled, (column,))),
        ]
        row = (
            Register("total", FLOAT, (PANEL,), 0.0, lanes=True),
            Loop("%block", problem.blocks, tuple(block)),
            *self.over(self.stored(ROW, Read("total", FLOAT, (column,)))),
        )
        return (Loop("%row", problem.rows, row),)

    def many(self) -> tuple[Statement, ...]:
        """Weights of some blocks, then their products with the rows, in register tiles."""
        problem, column = self.problem, self.column
        here = minimum(self.together, problem.blocks - CHUNK * self.together)
        block = CHUNK * self.together + BLOCK
        byte = Cast(Load(self.codes, (PLACE, block * self.bytes + BYTE, column)), INT32)
        fill = [
            Store(self.weights, (BLOCK * problem.block + BYTE * problem.codes + place, column),
                  Binary("mul", self.scale(block),
                         Binary("sub", _code(byte, place, problem.bits), self.zero(block))))
            for place in range(problem.codes)
        ]  # fmt: skip
        body: list[Statement] = [*nest([("%block", here), ("%byte", self.bytes)], self.over(*fill))]
        done: Size = 0
        for height in self.heights():
            count = (problem.rows - done) // height
            row = done + ROW * height + symbol("%part")
            body.append(Loop("%row", count, self.tile(row, height, here * problem.block)))
            done = done + count * height
        chunks = -(-problem.blocks // self.together)
        clear = (Loop("%row", problem.rows, self.over(self.stored(ROW, number(0.0, FLOAT)))),)
        return (*clear, Loop("%chunk", chunks, tuple(body)))

    def heights(self) -> tuple[int, ...]:
        """Rows of tiles, the highest first; each takes what those before leave."""
        most = (24 if self.lanes >= 16 else 12) * self.lanes // PANEL
        return tuple(dict.fromkeys((max(most, 1), max(most // 3, 1), 1)))

    def tile(self, row: Size, height: int, depth: Size) -> tuple[Statement, ...]:
        """Rows of a panel, to which the products of some weights are added."""
        place, column = (symbol("%part"), self.column), self.column
        factor = Load(self.left, (row, CHUNK * (self.together * self.problem.block) + K))
        multiplied = Binary("mul", factor, Load(self.weights, (K, column)))
        before = Load(self.result, (row, PLACE * PANEL + column))
        total = Binary("add", before, Read("tile", FLOAT, place))
        return (
            Register("tile", FLOAT, (height, PANEL), 0.0, lanes=True),
            Loop("%k", depth, self.over(Update("tile", "add", multiplied, place), rows=height)),
            *self.over(self.stored(row, total), rows=height),
        )

    def scale(self, block: Size) -> Value:
        """The scale of a block."""
        return _float(Load(self.scales, (PLACE, block, self.column)))

    def zero(self, block: Size) -> Value:
        """The zero point of a block."""
        if not self.zeros:
            return number(float(1 << (self.problem.bits - 1)), FLOAT)
        return _float(Load(self.zeros[0], (PLACE, block, self.column)))


def _code(byte: Value, place: int, bits: int) -> Value:
    """One of the codes in a byte, the lowest bits first."""
    if place:
        byte = Binary("shr", byte, number(place * bits, INT32))
    if (place + 1) * bits < 8:
        byte = Binary("and", byte, number((1 << bits) - 1, INT32))
    return Cast(byte, FLOAT)


def _float(value: Load) -> Value:
    return value if value.buffer.dtype is FLOAT else Cast(value, FLOAT)


LOWERINGS: Lowerings = {("com.microsoft", "MatMulNBits"): matmul_bits}
