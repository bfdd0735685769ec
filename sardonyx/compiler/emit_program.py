"""A program's kernels in machine code, and the function that runs a segment's calls.

A segment fills its frame (addresses and sizes for every call) and then runs its calls. Which thread
takes a piece of a call does not change what it computes, so results do not depend on threads.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from llvmlite import ir

from sardonyx.compiler.emit_engine import compile_module
from sardonyx.compiler.emit_loops import emit_kernel
from sardonyx.compiler.targets import Target
from sardonyx.compiler.threads import available_threads
from sardonyx.loops import Kernel
from sardonyx.loops.verify import verify

_RUN = r"""
; %record: dispatch, pool, frame, addresses, bases, offsets, number of slots, calls, their number.
; A call: its kernel, its first slot, the slot with the number of its tasks; pieces are behind that.
define void @run(ptr %record) {
entry:
 %p1 = getelementptr i64, ptr %record, i64 1
 %p2 = getelementptr i64, ptr %record, i64 2
 %p3 = getelementptr i64, ptr %record, i64 3
 %p4 = getelementptr i64, ptr %record, i64 4
 %p5 = getelementptr i64, ptr %record, i64 5
 %p6 = getelementptr i64, ptr %record, i64 6
 %p7 = getelementptr i64, ptr %record, i64 7
 %p8 = getelementptr i64, ptr %record, i64 8
 %dispatch = load ptr, ptr %record
 %pool = load ptr, ptr %p1
 %frame = load ptr, ptr %p2
 %addresses = load ptr, ptr %p3
 %bases = load ptr, ptr %p4
 %offsets = load ptr, ptr %p5
 %slots = load i64, ptr %p6
 %calls = load ptr, ptr %p7
 %count = load i64, ptr %p8
 %some = icmp sgt i64 %slots, 0
 br i1 %some, label %fill, label %ready
fill:
 %slot = phi i64 [0, %entry], [%next, %fill]
 %pb = getelementptr i64, ptr %bases, i64 %slot
 %po = getelementptr i64, ptr %offsets, i64 %slot
 %pf = getelementptr i64, ptr %frame, i64 %slot
 %which = load i64, ptr %pb
 %pa = getelementptr i64, ptr %addresses, i64 %which
 %base = load i64, ptr %pa
 %offset = load i64, ptr %po
 %sum = add i64 %base, %offset
 store i64 %sum, ptr %pf
 %next = add i64 %slot, 1
 %more = icmp slt i64 %next, %slots
 br i1 %more, label %fill, label %ready
ready:
 %any = icmp sgt i64 %count, 0
 br i1 %any, label %call, label %exit
call:
 %number = phi i64 [0, %ready], [%following, %call]
 %at = mul i64 %number, 3
 %pk = getelementptr i64, ptr %calls, i64 %at
 %ps = getelementptr i64, ptr %pk, i64 1
 %pl = getelementptr i64, ptr %pk, i64 2
 %kernel = load ptr, ptr %pk
 %start = load i64, ptr %ps
 %last = load i64, ptr %pl
 %arguments = getelementptr i64, ptr %frame, i64 %start
 %pt = getelementptr i64, ptr %frame, i64 %last
 %pp = getelementptr i64, ptr %pt, i64 1
 %tasks = load i64, ptr %pt
 %pieces = load i64, ptr %pp
 call void %dispatch(ptr %pool, ptr %kernel, ptr %arguments, i64 %tasks, i64 %pieces)
 %following = add i64 %number, 1
 %left = icmp slt i64 %following, %count
 br i1 %left, label %call, label %exit
exit:
 ret void
}
"""


KERNELS_EACH = 8
"""Kernels in one module, so that threads can share modules."""


def emit_objects(kernels: Sequence[Kernel], target: Target) -> list[bytes]:
    """Object code of kernels (`kernel0`, ...) and of `run`; LLVM works while more is emitted."""
    with ThreadPoolExecutor(available_threads()) as pool:
        waiting = [
            pool.submit(compile_module, text, target) for text in _emit_modules(kernels, target)
        ]
        return [item.result() for item in waiting]


def _emit_modules(kernels: Sequence[Kernel], target: Target) -> Iterator[str]:
    for start in range(0, max(len(kernels), 1), KERNELS_EACH):
        module = ir.Module("program")
        for number, kernel in enumerate(kernels[start : start + KERNELS_EACH], start):
            verify(kernel)
            emit_kernel(module, f"kernel{number}", kernel, target.lanes)
        yield str(module) + ("" if start else _RUN)
