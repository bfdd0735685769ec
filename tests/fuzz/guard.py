"""Memory in which a kernel that reads or writes beside its arrays ends the process at once."""

import ctypes
import mmap
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sardonyx.compiler import link, segment
from sardonyx.compiler.checked import CheckedSegment
from sardonyx.compiler.emit_engine import compile_module
from sardonyx.compiler.engine import load_code
from sardonyx.compiler.host import host_target
from sardonyx.compiler.segment import Segment

END, BEGIN = "end", "begin"
SIDES = (END, BEGIN)
"""Which side of an array lies at a page that nobody may touch."""
_LIBC = ctypes.CDLL(None, use_errno=True)
_PAGE = mmap.PAGESIZE

_ALLOCATOR = f"""
declare ptr @mmap(ptr, i64, i32, i32, i32, i64)
declare i32 @munmap(ptr, i64)
declare i32 @mprotect(ptr, i64, i32)
@at_end = internal global i64 1

define void @put_at_end(i64 %yes) {{
 store i64 %yes, ptr @at_end
 ret void
}}

; A page with the length of all, a page nobody may touch, the memory, another such page. A kernel
; wants one cache line more than it uses and begins at the first line there is: one byte less puts
; the end of what it uses at the end of the memory.
define ptr @take(i64 %wanted) {{
entry:
 %size = sub i64 %wanted, 1
 %up = add i64 %size, {_PAGE - 1}
 %room = and i64 %up, -{_PAGE}
 %all = add i64 %room, {3 * _PAGE}
 %base = call ptr @mmap(ptr null, i64 %all, i32 3, i32 34, i32 -1, i64 0)
 %number = ptrtoint ptr %base to i64
 %failed = icmp eq i64 %number, -1
 br i1 %failed, label %none, label %some
none:
 ret ptr null
some:
 store i64 %all, ptr %base
 %before = getelementptr i8, ptr %base, i64 {_PAGE}
 %memory = getelementptr i8, ptr %before, i64 {_PAGE}
 %behind = getelementptr i8, ptr %memory, i64 %room
 %one = call i32 @mprotect(ptr %before, i64 {_PAGE}, i32 0)
 %two = call i32 @mprotect(ptr %behind, i64 {_PAGE}, i32 0)
 %which = load i64, ptr @at_end
 %left = sub i64 %room, %size
 %shift = mul i64 %left, %which
 %place = getelementptr i8, ptr %memory, i64 %shift
 ret ptr %place
}}

define void @give(ptr %place) {{
 %number = ptrtoint ptr %place to i64
 %page = and i64 %number, -{_PAGE}
 %first = sub i64 %page, {2 * _PAGE}
 %base = inttoptr i64 %first to ptr
 %all = load i64, ptr %base
 %done = call i32 @munmap(ptr %base, i64 %all)
 ret void
}}
"""
"""What kernels call for memory of a task's own, in the place of malloc and free."""


def guarded(shape: Any, dtype: Any, side: str = END) -> NDArray[Any]:
    """An array between two pages that nobody may touch, right at one of them."""
    kind = np.dtype(dtype)
    size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    room = -(-size // _PAGE) * _PAGE
    try:
        memory = mmap.mmap(-1, room + 2 * _PAGE)
    except (OSError, OverflowError) as error:
        raise MemoryError from error
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for page in (base, base + _PAGE + room):
        if _LIBC.mprotect(ctypes.c_void_p(page), _PAGE, 0):
            raise OSError(ctypes.get_errno(), "mprotect")
    begin = _PAGE + (room - size if side == END else 0)
    whole = np.frombuffer(memory, np.uint8, size, begin)
    return whole.view(kind).reshape(shape)


class Guards:
    """Lets native calls work on guarded copies of inputs, constants, results and memory.

    Programs must be made after this, and with `checked="memory"`, so that blocks that kernels use
    between each other are arrays as well.
    """

    def __init__(self, side: str = END) -> None:
        self.side = side
        self._code = load_code([compile_module(_ALLOCATOR, host_target())])
        self._own = {"malloc": self._code.address("take"), "free": self._code.address("give")}
        self._at_end = ctypes.CFUNCTYPE(None, ctypes.c_int64)(self._code.address("put_at_end"))
        self._address = link.process_address
        self.turn(side)

    def turn(self, side: str) -> None:
        """Put what is made from now on at the other side of its pages."""
        self.side = side
        self._at_end(side == END)

    def empty(self, shape: Any, dtype: Any) -> NDArray[Any]:
        """A guarded array of any content."""
        return guarded(shape, dtype, self.side)

    def copy(self, array: NDArray[Any]) -> NDArray[Any]:
        """A guarded copy."""
        made = self.empty(array.shape, array.dtype)
        made[...] = array
        return made

    def install(self) -> None:
        """Begin, until the process ends."""
        segment.np = _Numpy(self)  # type: ignore[attr-defined]
        link.process_address = self.address  # type: ignore[assignment]
        for kind in (Segment, CheckedSegment):
            kind._go = self.runner(kind._go)  # type: ignore[method-assign]

    def address(self, name: str) -> int:
        """Where a function is that kernels call."""
        return self._own.get(name) or self._address(name)

    def runner(self, go: Any) -> Any:
        """A run of a segment with guarded inputs and constants."""

        def guarded_go(
            called: Segment, plan: Any, arrays: Sequence[Any], *more: Any, **named: Any
        ) -> Any:
            kept = called._constants
            called._constants = [self.copy(array) for array in kept]
            called._free.clear()
            try:
                return go(called, plan, [self.copy(array) for array in arrays], *more, **named)
            finally:
                called._free.clear()
                called._constants = kept

        return guarded_go


class _Numpy:
    """NumPy, except that new arrays are guarded."""

    def __init__(self, guards: Guards) -> None:
        self.empty = guards.empty

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


def guard_segments(side: str = END) -> Guards:
    """Let native calls work on guarded copies of all that they touch."""
    guards = Guards(side)
    guards.install()
    return guards
