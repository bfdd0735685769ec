"""Memory that a kernel's tasks keep to themselves: taken when a function begins, and given back."""

import math
from typing import Any

from sardonyx.compiler import emit_ir as ir
from sardonyx.compiler.emit_math import declare
from sardonyx.compiler.emit_values import I64
from sardonyx.loops.nodes import Kernel, Local, walk
from sardonyx.record import record

POINTER = ir.IntType(8).as_pointer()
LINE = 64
"""Bytes of a cache line."""
LARGEST = 1 << 62
"""Bytes that nobody has."""


@record
class Taken:
    """One block for all that a kernel keeps, and the address of each part."""

    block: Any
    places: dict[str, Any]

    def give_back(self, b: ir.IRBuilder) -> None:
        """Emit the end of a kernel."""
        b.call(declare(b.module, "free", ir.VoidType(), [POINTER]), [self.block])


def take_memory(b: ir.IRBuilder, function: ir.Function, kernel: Kernel, body: Any) -> Taken | None:
    """Emit the beginning of a kernel, which goes on at `body`; None where it keeps nothing.

    Tasks use the memory one after another. Without it the function only says so: behind the
    parameters lie the numbers of tasks, pieces and steps, and the last becomes less than none.
    """
    sizes: dict[str, int] = {}
    for item in walk(kernel.body):
        if isinstance(item, Local):
            size = math.prod(item.shape) * item.dtype.numpy.itemsize
            sizes[item.memory] = max(sizes.get(item.memory, 0), -(-size // LINE) * LINE)
    if not sizes:
        b.branch(body)
        return None
    allocate = declare(b.module, "malloc", POINTER, [I64])
    block = b.call(allocate, [ir.Constant(I64, min(sum(sizes.values()) + LINE, LARGEST))])
    address = b.ptrtoint(block, I64)
    place = b.and_(b.add(address, ir.Constant(I64, LINE - 1)), ir.Constant(I64, -LINE))
    places: dict[str, Any] = {}
    for name, size in sizes.items():
        places[name] = place
        place = b.add(place, ir.Constant(I64, min(size, LARGEST)))
    none = function.append_basic_block("none")
    b.cbranch(b.icmp_signed("==", address, ir.Constant(I64, 0)), none, body)
    b.position_at_end(none)
    steps = len(kernel.memories) + len(kernel.parameters) + 2
    b.store(ir.Constant(I64, -1), b.gep(function.args[0], [ir.Constant(I64, steps)]))
    b.ret_void()
    return Taken(block, places)
