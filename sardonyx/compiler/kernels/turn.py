"""Copies between two orders of axes, in square tiles that are turned in registers."""

from collections.abc import Sequence

from sardonyx.compiler.kernels.nest import parallel_kernel
from sardonyx.dims import Size, ceil_divide, symbol
from sardonyx.loops.nodes import Guard, Kernel, Kind, Load, Loop, Statement, Store
from sardonyx.loops.rewrite import flattened, offset, step

BLOCK, TILE, INNER, OUTER = "%block", "%tile", "%a", "%b"


def turn_kernel(
    axes: Sequence[tuple[str, Size]], body: tuple[Statement, ...], gone: dict[str, Size], lanes: int
) -> Kernel | None:
    """A kernel for a plain copy whose two sides are contiguous along different axes; else None."""
    (store,) = flattened(body, gone)
    if not isinstance(store, Store) or not isinstance(store.value, Load) or len(axes) < 2:
        return None
    target = offset(store.buffer, store.indices)
    source = offset(store.value.buffer, store.value.indices)
    along_target = [axis for axis in axes if step(target, axis[0]) == 1]
    along_source = [axis for axis in axes if step(source, axis[0]) == 1]
    if not along_target or not along_source or along_target[0] == along_source[0]:
        return None
    (name, size), (across, length) = along_target[0], along_source[0]
    if any(isinstance(extent, int) and extent < lanes for extent in (size, length)):
        return None
    start = symbol(BLOCK) * lanes

    def copy(at: Size, other: Size) -> Store:
        (made,) = flattened((store,), {name: at, across: other})
        assert isinstance(made, Store)
        return made

    def plain(other: Size) -> tuple[Statement, ...]:
        here = start + symbol(INNER)
        guarded = Guard(here, size, (copy(here, other),))
        return (Loop(INNER, lanes, (guarded,), Kind.VECTOR),)

    square = Loop(
        OUTER,
        lanes,
        (
            Loop(
                INNER,
                lanes,
                (copy(start + symbol(OUTER), symbol(TILE) * lanes + symbol(INNER)),),
                Kind.VECTOR,
            ),
        ),
        Kind.TURN,
    )
    whole = length // lanes
    rest = whole * lanes
    full: tuple[Statement, ...] = (
        Loop(TILE, whole, (square,)),
        Loop(TILE, length - rest, plain(symbol(TILE) + rest)),
    )
    partial = (Loop(TILE, length, plain(symbol(TILE))),)
    others = [axis for axis in axes if axis[0] not in (name, across)]
    statements = (Guard(start + lanes - 1, size, full), Guard(size, start + lanes, partial))
    return parallel_kernel([*others, (BLOCK, ceil_divide(size, lanes))], statements)
