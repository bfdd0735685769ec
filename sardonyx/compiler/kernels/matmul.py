"""Matrix products in register tiles.

m, n, k: rows, columns and depth of a product; mr, nr: rows and columns of a tile.
"""

from collections.abc import Callable
from dataclasses import dataclass

from sardonyx.compiler.forms import Contraction, Form
from sardonyx.compiler.fuse import Fusion, Group
from sardonyx.compiler.kernels.blocks import PANEL, blocked_kernel
from sardonyx.compiler.kernels.nest import parallel_kernel
from sardonyx.compiler.kernels.reader import (
    Call,
    Index,
    Packed,
    Reader,
    Scratch,
    aligned,
    broadcast_index,
    constant_array,
)
from sardonyx.compiler.kernels.tile import (
    ACCUMULATORS,
    Tile,
    accumulated,
    choose_tile,
    guarded,
    pack_columns,
    tile_statements,
)
from sardonyx.compiler.pages import let_go
from sardonyx.compiler.targets import Target
from sardonyx.dims import Size, ceil_divide, product, symbol
from sardonyx.dtypes import DataType
from sardonyx.loops.nodes import (
    Buffer,
    Kernel,
    Kind,
    Load,
    Loop,
    Register,
    Statement,
    Store,
    symbols,
)
from sardonyx.loops.rewrite import merge_axes

M, N, K = "%m", "%n", "%k"


@dataclass(frozen=True, slots=True)
class _Problem:
    form: Contraction
    tile: Tile
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
    problem = _Problem(form, choose_tile(rows, n, target), names, m, n, k)
    reader = Reader(fusion, group)
    calls: list[Call] = []
    constant = constant_array(form.right)
    if constant is not None:
        right = reader.packed(Packed(aligned(pack_columns(constant, problem.tile.nr))))
        let_go(constant)
    else:
        shape = (*form.right.shape[:-2], problem.panels, k, problem.tile.nr)
        right = reader.scratch(Scratch(shape, DataType.FLOAT))
        made = _pack_kernel(problem, reader, right)
        calls.append(Call(made, reader.places(made), product(right.shape)))
    made = _product_kernel(problem, group, reader, right, target)
    calls.append(Call(made, reader.places(made), product(form.shape) * k))
    return calls


def _pack_kernel(problem: _Problem, reader: Reader, right: Buffer) -> Kernel:
    form, nr = problem.form.right, problem.tile.nr
    names = [(f"%b{axis}", size) for axis, size in enumerate(form.shape[:-2])]
    batch = tuple(symbol(name) for name, _ in names)
    column = symbol(PANEL) * nr + symbol("%v")
    element = reader.value(form, (*batch, symbol(K), column))
    place = (*batch, symbol(PANEL), symbol(K), symbol("%v"))
    body = guarded(column, problem.n, problem.tile, Store(right, place, element))
    loops = (Loop(K, problem.k, (Loop("%v", nr, body, Kind.VECTOR),)),)
    return parallel_kernel([*names, (PANEL, problem.panels)], loops)


def _product_kernel(
    problem: _Problem, group: Group, reader: Reader, right: Buffer, target: Target
) -> Kernel:
    axes, gone = _merged_axes(problem, group, reader, right)
    packed = _right(problem, problem.form.right, right, 0)
    shared = not any(axes[-1][0] in symbols(index) for index in packed.indices) if axes else False
    row_name, rows = axes.pop() if shared else ("", 1)

    def one_tile(tile: Tile, row_at: Callable[[Size], Size]) -> list[Statement]:
        def at(row: Size) -> Index:
            """The batch and the row of a tile's row."""
            names = (*(name for name, _ in problem.batch), M)
            return tuple(row_at(row) if name == row_name else symbol(name) for name in names)

        return _one_tile(problem, tile, group, reader, right, at)

    in_block = _tiles_in_block(problem, target)
    return blocked_kernel(axes, gone, rows, problem.tile, problem.panels, in_block, one_tile)


def _tiles_in_block(problem: _Problem, target: Target) -> int:
    """How many tiles' rows of the left side stay in the second cache."""
    depth = problem.k if isinstance(problem.k, int) else 512
    return max(1, target.second_cache // 2 // max(4 * depth * problem.tile.mr, 1))


def _merged_axes(
    problem: _Problem, group: Group, reader: Reader, right: Buffer
) -> tuple[list[tuple[str, Size]], dict[str, Size]]:
    """Batch axes and rows, merged where left side, epilogue and result all lie that way."""
    form = problem.form
    m, n = symbol(M), symbol(N)
    reader.computed[form] = lambda index: accumulated(0, 0)
    target = reader.buffer(group.root)
    index = (*problem.index, m, n)
    place = broadcast_index(form.left, (*problem.index, m, symbol(K)), problem.left_shape)
    left = reader.value(form.left, place)
    probe: tuple[Statement, ...] = (
        Register(ACCUMULATORS, DataType.FLOAT, (1, 1), 0.0),
        Store(target, index, reader.value(group.root, index)),
        Store(target, index, left),
        Store(target, index, _right(problem, form.right, right, n)),
    )
    reader.forget()
    return merge_axes([*problem.batch, (M, problem.m)], probe)


def _right(problem: _Problem, form: Form, right: Buffer, column: Size) -> Load:
    index = (*problem.index, symbol(K), column)
    batch = broadcast_index(form, index, (*problem.left_shape[:-1], problem.n))[:-2]
    return Load(right, (*batch, symbol(PANEL), symbol(K), column))


def _one_tile(
    problem: _Problem, tile: Tile, group: Group, reader: Reader, right: Buffer,
    at: Callable[[Size], Index],
) -> list[Statement]:  # fmt: skip
    form = problem.form
    target = reader.buffer(group.root)

    def store(row: Size, column: Size) -> tuple[Statement, ...]:
        reader.forget()
        reader.computed[form] = lambda _: accumulated(row, column)
        place = symbol(PANEL) * tile.nr + column
        index = (*at(row), place)
        made = Store(target, index, reader.value(group.root, index))
        return guarded(place, problem.n, tile, made)

    def left(row: Size) -> Load:
        place = broadcast_index(form.left, (*at(row), symbol(K)), problem.left_shape)
        made = reader.value(form.left, place)
        assert isinstance(made, Load)
        return made

    steps = [(K, problem.k)]
    return tile_statements(
        tile, steps, left, lambda c: _right(problem, form.right, right, c), store
    )
