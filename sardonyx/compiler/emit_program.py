"""A whole program in machine code: its kernels, the order they run in, and the threads that help.

A segment fills a frame (addresses and sizes for every call) and then runs its calls. A call's slots
in the frame: its arguments, the number of its tasks, and into how many pieces threads cut them.
Which thread takes a piece does not change what it computes, so results do not depend on threads.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sardonyx.compiler import emit_ir as ir
from sardonyx.compiler.emit_engine import Engine
from sardonyx.compiler.emit_loops import emit_kernel
from sardonyx.compiler.emit_pool import POOL
from sardonyx.compiler.targets import Target
from sardonyx.loops import Kernel
from sardonyx.loops.verify import verify

I8, I32, I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
POINTER = I64.as_pointer()
KERNEL = ir.FunctionType(ir.VoidType(), [POINTER, I64, I64])


@dataclass(frozen=True, slots=True)
class EmittedCall:
    """A kernel by its number, and where its slots begin in the frame."""

    kernel: int
    start: int
    slots: int


def emit_program(
    kernels: Sequence[Kernel], segments: Sequence[Sequence[EmittedCall]], target: Target
) -> Engine:
    """Compile kernels and segments (`segment0`, ...) into one module."""
    module = ir.Module("program")
    functions = []
    for number, kernel in enumerate(kernels):
        verify(kernel)
        functions.append(emit_kernel(module, f"kernel{number}", kernel, target.lanes))
    dispatch = ir.Function(
        module,
        ir.FunctionType(ir.VoidType(), [POINTER, KERNEL.as_pointer(), POINTER, I64, I64]),
        "dispatch",
    )
    for number, calls in enumerate(segments):
        _emit_segment(module, f"segment{number}", calls, functions, dispatch)
    declared = 'declare void @"dispatch"'
    lines = [line for line in str(module).splitlines() if not line.startswith(declared)]
    return Engine("\n".join(lines) + POOL, target)


def _emit_segment(
    module: ir.Module, name: str, calls: Sequence[EmittedCall], functions: list[Any], dispatch: Any
) -> None:
    """`void segment(pool, frame, addresses, sources, offsets, slots)`."""
    signature = ir.FunctionType(ir.VoidType(), [POINTER] * 5 + [I64])
    function = ir.Function(module, signature, name)
    pool, frame, addresses, sources, offsets, slots = function.args
    entry, fill, run = (function.append_basic_block(word) for word in ("entry", "fill", "run"))
    b = ir.IRBuilder(entry)
    zero = ir.Constant(I64, 0)
    b.cbranch(b.icmp_signed("<", zero, slots), fill, run)
    b.position_at_end(fill)
    slot = b.phi(I64)
    slot.add_incoming(zero, entry)
    base = b.load(b.gep(addresses, [b.load(b.gep(sources, [slot]))]))
    b.store(b.add(base, b.load(b.gep(offsets, [slot]))), b.gep(frame, [slot]))
    following = b.add(slot, ir.Constant(I64, 1))
    slot.add_incoming(following, fill)
    b.cbranch(b.icmp_signed("<", following, slots), fill, run)
    b.position_at_end(run)
    for call in calls:
        arguments = b.gep(frame, [ir.Constant(I64, call.start)])
        count, threads = (
            b.load(b.gep(frame, [ir.Constant(I64, call.start + call.slots - back)]))
            for back in (2, 1)
        )
        b.call(dispatch, [pool, functions[call.kernel], arguments, count, threads])
    b.ret_void()
