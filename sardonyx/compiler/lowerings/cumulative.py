"""Running sums and products along an axis, as routines."""

from collections.abc import Callable, Sequence

from sardonyx.compiler.forms import Form, Memories, Room, Routine, results
from sardonyx.compiler.kernels.nest import parallel_kernel
from sardonyx.compiler.lowerings.request import Lowering, Lowerings, Request
from sardonyx.dims import Size, product, symbol
from sardonyx.loops.nodes import Kernel, Load, Loop, Read, Register, Statement, Store, Update
from sardonyx.ops.fact import axis_of


def _running(combine: str, initial: int) -> Lowering:
    def lower(request: Request, x: Form, axis: Form, *, exclusive: int, reverse: int) -> Form:
        place = axis_of(request.integers(1, "the axis", count=1)[0], len(x.shape))
        write = _writer(combine, initial, place, bool(exclusive), bool(reverse))
        routine = Routine((x,), (Room(x.shape, x.dtype),), write, product(x.shape))
        return results(routine)[0]

    return lower


def _writer(
    combine: str, initial: int, axis: int, exclusive: bool, reverse: bool
) -> Callable[[Memories], Sequence[Kernel]]:
    def write(memories: Memories) -> Sequence[Kernel]:
        (source,), (target,) = memories.arguments, memories.results
        names = [f"%i{place}" for place in range(len(source.shape))]
        at = symbol(names[axis])
        place: Size = source.shape[axis] - 1 - at if reverse else at
        index = tuple(
            place if number == axis else symbol(name) for number, name in enumerate(names)
        )
        total = Read("total", source.dtype)
        take: Statement = Update("total", combine, Load(source, index))
        store: Statement = Store(target, index, total)
        body = (store, take) if exclusive else (take, store)
        along = Loop(names[axis], source.shape[axis], body)
        outer = [(name, size) for name, size in zip(names, source.shape, strict=True)]
        del outer[axis]
        return [parallel_kernel(outer, [Register("total", source.dtype, (), initial), along])]

    return write


LOWERINGS: Lowerings = {
    ("", "CumSum"): _running("add", 0),
    ("", "CumProd"): _running("mul", 1),
}
