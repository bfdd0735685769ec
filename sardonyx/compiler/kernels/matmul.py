"""Matrix products in register tiles.

m, n, k: rows, columns and depth of a product; mr, nr: rows and columns of a tile.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from numpy.typing import NDArray

from sardonyx.compiler.constants import constant_array
from sardonyx.compiler.forms import Contraction, Form
from sardonyx.compiler.fuse import Fusion, Group
from sardonyx.compiler.kernels.blocks import PANEL, blocked_kernel
from sardonyx.compiler.kernels.nest import parallel_kernel
from sardonyx.compiler.kernels.reader import (
    Call,
    Index,
    Reader,
    Scratch,
    broadcast_index,
    pack,
)
from sardonyx.compiler.kernels.tile import (
    ACCUMULATORS,
    PAIRS,
    Arithmetic,
    Tile,
    accumulated,
    arithmetic_of,
    choose_tile,
    guarded,
    pack_columns,
    suits_pairs,
    tile_statements,
)
from sardonyx.compiler.kernels.words import BYTES, gathered, word_at, words_of
from sardonyx.compiler.targets import Target
from sardonyx.dims import Size, ceil_divide, product, remainder, symbol
from sardonyx.dtypes import DataType
from sardonyx.loops.nodes import (
    Buffer,
    Cast,
    Constant,
    Kernel,
    Kind,
    Load,
    Loop,
    Register,
    Statement,
    Store,
    Value,
    symbols,
)
from sardonyx.loops.rewrite import merge_axes
from sardonyx.record import record

M, N, K = "%m", "%n", "%k"
Left = Callable[[Index], Value]
"""A factor of the left side at an index of batch, row and depth."""


@record
class _Problem:
    """Of words, `k` is their number."""

    form: Contraction
    tile: Tile
    arithmetic: Arithmetic
    batch: tuple[tuple[str, Size], ...]
    m: Size
    n: Size
    k: Size

    @property
    def index(self) -> Index:
        return tuple(symbol(name) for name, _ in self.batch)

    @property
    def left_shape(self) -> tuple[Size, ...]:
        return (*(size for _, size in self.batch), self.m, self.k)

    @property
    def panels(self) -> Size:
        return ceil_divide(self.n, self.tile.nr)


def matmul_calls(fusion: Fusion, group: Group, target: Target) -> list[Call]:
    """A product with its epilogue; a right side that is not constant is packed first."""
    form = group.tile
    assert isinstance(form, Contraction)
    *batch, m, n = form.shape
    k = form.depth
    rows = product(form.shape[:-1]) if len(form.right.shape) == 2 else m
    names = tuple((f"%b{axis}", size) for axis, size in enumerate(batch))
    arithmetic = arithmetic_of(form.left.dtype, form.right.dtype, form.dtype)
    constant = constant_array(form.right)
    if constant is not None and suits_pairs(rows, n, form.dtype, target):
        arithmetic = PAIRS
    depth = ceil_divide(k, arithmetic.parts)
    tile = choose_tile(rows, n, target, form.dtype)
    problem = _Problem(form, tile, arithmetic, names, m, n, depth)
    reader = Reader(fusion, group)
    calls: list[Call] = []
    shape = (*form.right.shape[:-2], problem.panels, depth, tile.nr)
    kind = DataType.INT32 if arithmetic.words else form.right.dtype
    if constant is not None:
        order = partial(_packed, nr=tile.nr, arithmetic=arithmetic)
        right = reader.packed(pack(form.right, shape, kind, order))
    else:
        right = reader.scratch(Scratch(shape, kind))
        made = _pack_kernel(problem, reader, right)
        calls.append(Call(made, reader.places(made), product(right.shape)))
    packing, left = _left(problem, reader)
    made = _product_kernel(problem, group, reader, left, right, target)
    return [*calls, *packing, Call(made, reader.places(made), product(form.shape) * depth)]


def _packed(matrix: NDArray[Any], nr: int, arithmetic: Arithmetic) -> NDArray[Any]:
    """A constant right side in the order of its panels."""
    return pack_columns(arithmetic.pack(matrix), nr)


def _left(problem: _Problem, reader: Reader) -> tuple[list[Call], Left]:
    """How factors of the left side are read, and the call that brings them into words first."""
    form = problem.form.left

    def element(index: Index) -> Value:
        return reader.value(form, broadcast_index(form, index, problem.left_shape))

    narrow, parts = problem.arithmetic.narrow, problem.arithmetic.parts
    if narrow is None:
        return [], element
    index = (*problem.index, symbol(M), symbol(K))
    depth = problem.form.depth
    bytes_ = narrow is form.dtype and remainder(depth, BYTES) == 0
    if bytes_ and word_at(element(index), K) is not None:
        return [], lambda index: _word(element(index))
    *outer, _ = form.shape
    scratch = reader.scratch(Scratch((*outer, problem.k * parts), narrow))
    names = [(f"%b{axis}", size) for axis, size in enumerate(outer)]
    at = tuple(symbol(name) for name, _ in names)
    here, rest = symbol(K), symbol(K) + depth
    source = reader.value(form, (*at, here))
    fill = Store(scratch, (*at, here), source if form.dtype is narrow else Cast(source, narrow))
    clear = Store(scratch, (*at, rest), Constant(0, narrow))
    body = (Loop(K, depth, (fill,), Kind.VECTOR), Loop(K, problem.k * parts - depth, (clear,)))
    made = parallel_kernel(names, body)
    words = words_of(scratch)
    return [Call(made, reader.places(made), product(scratch.shape))], lambda index: Load(
        words, broadcast_index(form, index, problem.left_shape)
    )


def _word(element: Value) -> Load:
    made = word_at(element, K)
    assert made is not None
    return made


def _pack_kernel(problem: _Problem, reader: Reader, right: Buffer) -> Kernel:
    form, nr = problem.form.right, problem.tile.nr
    names = [(f"%b{axis}", size) for axis, size in enumerate(form.shape[:-2])]
    batch = tuple(symbol(name) for name, _ in names)
    column = symbol(PANEL) * nr + symbol("%v")

    def at(k: Size) -> Value:
        return reader.value(form, (*batch, k, column))

    words = problem.arithmetic.words
    element = gathered(at, symbol(K), problem.form.depth) if words else at(symbol(K))
    place = (*batch, symbol(PANEL), symbol(K), symbol("%v"))
    body = guarded(column, problem.n, problem.tile, Store(right, place, element))
    loops = (Loop(K, problem.k, (Loop("%v", nr, body, Kind.VECTOR),)),)
    return parallel_kernel([*names, (PANEL, problem.panels)], loops)


def _product_kernel(
    problem: _Problem, group: Group, reader: Reader, left: Left, right: Buffer, target: Target
) -> Kernel:
    axes, gone = _merged_axes(problem, group, reader, left, right)
    packed = _right(problem, problem.form.right, right, 0)
    shared = not any(axes[-1][0] in symbols(index) for index in packed.indices) if axes else False
    row_name, rows = axes.pop() if shared else ("", 1)

    def one_tile(tile: Tile, row_at: Callable[[Size], Size]) -> list[Statement]:
        def at(row: Size) -> Index:
            """The batch and the row of a tile's row."""
            names = (*(name for name, _ in problem.batch), M)
            return tuple(row_at(row) if name == row_name else symbol(name) for name in names)

        return _one_tile(problem, tile, group, reader, left, right, at)

    in_block = _tiles_in_block(problem, target)
    return blocked_kernel(axes, gone, rows, problem.tile, problem.panels, in_block, one_tile)


def _tiles_in_block(problem: _Problem, target: Target) -> int:
    """How many tiles' rows of the left side stay in the second cache."""
    depth = problem.k if isinstance(problem.k, int) else 512
    return max(1, target.second_cache // 2 // max(4 * depth * problem.tile.mr, 1))


def _merged_axes(
    problem: _Problem, group: Group, reader: Reader, left: Left, right: Buffer
) -> tuple[list[tuple[str, Size]], dict[str, Size]]:
    """Batch axes and rows, merged where left side, epilogue and result all lie that way."""
    form = problem.form
    m, n = symbol(M), symbol(N)
    reader.computed[form] = lambda index: accumulated(0, 0, form.dtype)
    target = reader.buffer(group.root)
    index = (*problem.index, m, n)
    probe: tuple[Statement, ...] = (
        Register(ACCUMULATORS, form.dtype, (1, 1), 0),
        Store(target, index, reader.value(group.root, index)),
        Store(target, index, left((*problem.index, m, symbol(K)))),
        Store(target, index, _right(problem, form.right, right, n)),
    )
    reader.forget()
    return merge_axes([*problem.batch, (M, problem.m)], probe)


def _right(problem: _Problem, form: Form, right: Buffer, column: Size) -> Load:
    index = (*problem.index, symbol(K), column)
    batch = broadcast_index(form, index, (*problem.left_shape[:-1], problem.n))[:-2]
    return Load(right, (*batch, symbol(PANEL), symbol(K), column))


def _one_tile(
    problem: _Problem, tile: Tile, group: Group, reader: Reader, left: Left, right: Buffer,
    at: Callable[[Size], Index],
) -> list[Statement]:  # fmt: skip
    form = problem.form
    target = reader.buffer(group.root)

    def store(row: Size, column: Size) -> tuple[Statement, ...]:
        reader.forget()
        reader.computed[form] = lambda _: accumulated(row, column, form.dtype)
        place = symbol(PANEL) * tile.nr + column
        index = (*at(row), place)
        made = Store(target, index, reader.value(group.root, index))
        return guarded(place, problem.n, tile, made)

    return tile_statements(
        tile,
        [(K, problem.k)],
        lambda row: left((*at(row), symbol(K))),
        lambda column: _right(problem, form.right, right, column),
        store,
        problem.arithmetic,
    )
