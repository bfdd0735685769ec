"""Loops around a body: axes merged where memory allows it, the outer ones shared among threads."""

from collections.abc import Sequence

from sardonyx.dims import Size, ceil_divide, minimum, product, symbol
from sardonyx.loops.build import kernel, nest
from sardonyx.loops.nodes import Kernel, Kind, Let, Loop, Statement, Whole
from sardonyx.loops.rewrite import flattened

CHUNK = 8192
"""Elements of a flat loop that one thread takes at a time."""
PARALLEL = "%task"


def tasks(extents: Sequence[tuple[str, Size]], index: Size) -> list[Statement]:
    """Statements that take the number of a task apart into indices, the last one fastest."""
    made: list[Statement] = []
    rest = index
    for position, (name, extent) in reversed(list(enumerate(extents))):
        made.append(Let(name, Whole(rest if position == 0 else rest % extent)))
        rest = rest // extent
    return made[::-1]


def parallel_kernel(
    outer: Sequence[tuple[str, Size]],
    body: Sequence[Statement],
    gone: dict[str, Size] | None = None,
) -> Kernel:
    """A kernel whose tasks are the iterations over outer axes."""
    total = product([extent for _, extent in outer])
    inner = flattened(tuple(body), gone or {})
    statements = (*tasks(outer, symbol(PARALLEL)), *inner)
    return kernel([Loop(PARALLEL, total, statements, Kind.PARALLEL)])


def pointwise_kernel(
    axes: Sequence[tuple[str, Size]], body: tuple[Statement, ...], gone: dict[str, Size]
) -> Kernel:
    """A kernel over axes, the innermost in vectors; one long axis is cut into chunks."""
    if not axes:
        return kernel([Loop("%v", 1, flattened(body, gone), Kind.SERIAL)])
    (name, extent), outer = axes[-1], axes[:-1]
    if outer:
        inner: tuple[Statement, ...] = (Loop(name, extent, body, Kind.VECTOR),)
        return parallel_kernel(outer, inner, gone)
    if isinstance(extent, int) and extent <= CHUNK:
        return kernel(nest([], flattened((Loop(name, extent, body, Kind.VECTOR),), gone)))
    start = symbol(PARALLEL) * CHUNK
    moved = flattened(body, gone | {name: symbol("%at") + start})
    here = minimum(CHUNK, extent - start)
    chunk = Loop("%at", here, moved, Kind.VECTOR)
    return kernel([Loop(PARALLEL, ceil_divide(extent, CHUNK), (chunk,), Kind.PARALLEL)])
