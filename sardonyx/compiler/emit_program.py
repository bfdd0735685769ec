"""A program's kernels in machine code, and the function that runs a segment's calls.

A segment fills its frame (addresses and sizes for every call) and then runs its calls. Which thread
takes a piece of a call does not change what it computes, so results do not depend on threads.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from sys import getswitchinterval, setswitchinterval
from typing import Any, Self, TypeVar

from sardonyx.compiler import emit_ir as ir
from sardonyx.compiler.emit_engine import Compilation
from sardonyx.compiler.emit_loops import emit_kernel
from sardonyx.compiler.emit_pool import HOST, emit_pool
from sardonyx.compiler.image import STOP
from sardonyx.compiler.processors import MACHINE, available_processors
from sardonyx.compiler.targets import Target
from sardonyx.compiler.waiting import submit
from sardonyx.loops import Kernel
from sardonyx.loops.verify import verify

Made = TypeVar("Made")

_RUN = r"""
; %record: team, frame, addresses, bases, offsets, number of slots, calls, their number.
; A call: its kernel, its first slot, the slot with the number of its tasks; pieces and steps are
; behind that. One piece is run here, more are shared by the team's `dispatch`, which its record
; begins with. A kernel that has no memory leaves less than no steps: 1 is returned then, and 2
; where the word that stops the run is not 0: kernels end early then.
define i64 @run(ptr %record) {
entry:
 %p1 = getelementptr i64, ptr %record, i64 1
 %p2 = getelementptr i64, ptr %record, i64 2
 %p3 = getelementptr i64, ptr %record, i64 3
 %p4 = getelementptr i64, ptr %record, i64 4
 %p5 = getelementptr i64, ptr %record, i64 5
 %p6 = getelementptr i64, ptr %record, i64 6
 %p7 = getelementptr i64, ptr %record, i64 7
 %team = load ptr, ptr %record
 %frame = load ptr, ptr %p1
 %addresses = load ptr, ptr %p2
 %bases = load ptr, ptr %p3
 %offsets = load ptr, ptr %p4
 %slots = load i64, ptr %p5
 %calls = load ptr, ptr %p6
 %count = load i64, ptr %p7
 %to_stop = getelementptr i64, ptr %addresses, i64 STOP
 %stop = load ptr, ptr %to_stop
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
 %number = phi i64 [0, %ready], [%following, %succeed]
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
 %pn = getelementptr i64, ptr %pt, i64 2
 %tasks = load i64, ptr %pt
 %pieces = load i64, ptr %pp
 %steps = load i64, ptr %pn
 %one = icmp slt i64 %pieces, 2
 %none = icmp slt i64 %steps, 1
 br i1 %none, label %done, label %begin
begin:
 br i1 %one, label %alone, label %together
alone:
 %step = phi i64 [0, %begin], [%then, %alone]
 call void %kernel(ptr %arguments, i64 0, i64 %tasks, i64 %step)
 %then = add i64 %step, 1
 %others = icmp slt i64 %then, %steps
 %wanted = load volatile i64, ptr %stop
 %onwards = icmp eq i64 %wanted, 0
 %again = and i1 %others, %onwards
 br i1 %again, label %alone, label %done
together:
 %dispatch = load ptr, ptr %team
 call void %dispatch(
  ptr %team, ptr %kernel, ptr %arguments, i64 %tasks, i64 %pieces, i64 %steps, ptr %stop)
 br label %done
done:
 %after = load i64, ptr %pn
 %failed = icmp slt i64 %after, 0
 br i1 %failed, label %fail, label %look
fail:
 ret i64 1
look:
 %asked = load volatile i64, ptr %stop
 %going = icmp eq i64 %asked, 0
 br i1 %going, label %succeed, label %halt
halt:
 ret i64 2
succeed:
 %following = add i64 %number, 1
 %left = icmp slt i64 %following, %count
 br i1 %left, label %call, label %exit
exit:
 ret i64 0
}
""".replace("STOP", str(STOP))


VALUES_EACH = 1200
"""Values from which on a module is full, so that threads can share modules."""
SWITCHING = 0.0005
"""Seconds after which a thread that comes back from LLVM gets the interpreter."""


class Assembly:
    """Kernels on their way to machine code: LLVM works while more of them are added.

    One processor is left to the thread that adds them, which at last helps with what waits.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._pool = ThreadPoolExecutor(max(1, available_processors() - 1))
        self._module = ir.Module("program")
        self._tail = _RUN
        self._added = 0
        self.accesses: list[tuple[str, ...]] = []
        """What each kernel checks before it touches it, as text."""
        self._values = 0
        self._machines: list[Any] = []
        self._switching = getswitchinterval()
        self._waiting: list[tuple[Future[None], Compilation]] = []
        self._dialect = HOST if target.machine in ("", MACHINE) else None
        self._sharing = self._submit(lambda: emit_pool(self._dialect))

    def __enter__(self) -> Self:
        if self._switching > SWITCHING:
            setswitchinterval(SWITCHING)
        return self

    def __exit__(self, *problem: object) -> None:
        if self._switching > SWITCHING:
            setswitchinterval(self._switching)
        self._pool.shutdown(cancel_futures=True)
        for _, compilation in self._waiting:
            compilation.close()

    def add(self, kernel: Kernel) -> None:
        """Emit a kernel; the first is called `kernel0`, the next `kernel1`."""
        verify(kernel)
        made = emit_kernel(self._module, f"kernel{self._added}", kernel, self._target)
        self._added += 1
        self.accesses.append(made.accesses)
        self._values += made.values
        if self._values >= VALUES_EACH:
            self._start()

    def finish(self) -> list[bytes]:
        """Object code of all kernels and of `run`."""
        if self._module.globals or self._tail:
            self._start()
        for waiting, compilation in reversed(self._waiting):
            if waiting.cancel():
                compilation.run()
            else:
                waiting.result()
        return [compilation.result() for _, compilation in self._waiting]

    def sharing(self) -> bytes:
        """Object code of the functions that share work among threads; none for elsewhere."""
        return emit_pool(self._dialect) if self._sharing.cancel() else self._sharing.result()

    def _start(self) -> None:
        """Begin to compile what was added since the last time."""
        text, self._module, self._tail = str(self._module) + self._tail, ir.Module("program"), ""
        self._values = 0
        compilation = Compilation(text, self._target, self._machines)
        self._waiting.append((self._submit(compilation.run), compilation))

    def _submit(self, work: Callable[[], Made]) -> Future[Made]:
        return submit(self._pool, work)
