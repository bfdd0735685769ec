"""A whole program in machine code: its kernels, and the order they run in.

A segment fills a frame (addresses and sizes for every call) and then runs its calls. A call's slots
in the frame: its arguments, the number of its tasks, and into how many pieces threads cut them.
Which thread takes a piece does not change what it computes, so results do not depend on threads.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from llvmlite import ir

from sardonyx.compiler.emit_engine import Engine
from sardonyx.compiler.emit_loops import emit_kernel
from sardonyx.compiler.targets import Target
from sardonyx.loops import Kernel
from sardonyx.loops.verify import verify

I8, I32, I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
POINTER = I64.as_pointer()
KERNEL = ir.FunctionType(ir.VoidType(), [POINTER, I64, I64])
DISPATCH = ir.FunctionType(ir.VoidType(), [POINTER, KERNEL.as_pointer(), POINTER, I64, I64])


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
        functions.append(
            emit_kernel(module, f"kernel{number}", kernel, target.lanes, dots=target.dots)
        )
    share = _emit_share(module)
    for number, calls in enumerate(segments):
        _emit_segment(module, f"segment{number}", calls, functions, share)
    return Engine(module, target)


def _emit_share(module: ir.Module) -> Any:
    """`void share(team, kernel, arguments, tasks, pieces)`: alone, or by the team's `dispatch`."""
    function = ir.Function(module, DISPATCH, "share")
    function.linkage = "internal"
    function.attributes.add("noinline")
    team, kernel, arguments, tasks, pieces = function.args
    entry, alone, together = (
        function.append_basic_block(word) for word in ("entry", "alone", "together")
    )
    b = ir.IRBuilder(entry)
    b.cbranch(b.icmp_signed("<", pieces, ir.Constant(I64, 2)), alone, together)
    b.position_at_end(alone)
    b.call(kernel, [arguments, ir.Constant(I64, 0), tasks])
    b.ret_void()
    b.position_at_end(together)
    b.call(b.inttoptr(b.load(team), DISPATCH.as_pointer()), function.args)
    b.ret_void()
    return function


def _emit_segment(
    module: ir.Module, name: str, calls: Sequence[EmittedCall], functions: list[Any], share: Any
) -> None:
    """`void segment(team, frame, addresses, sources, offsets, slots)`."""
    signature = ir.FunctionType(ir.VoidType(), [POINTER] * 5 + [I64])
    function = ir.Function(module, signature, name)
    team, frame, addresses, sources, offsets, slots = function.args
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
        tasks, pieces = (
            b.load(b.gep(frame, [ir.Constant(I64, call.start + call.slots - back)]))
            for back in (2, 1)
        )
        b.call(share, [team, functions[call.kernel], arguments, tasks, pieces])
    b.ret_void()
