"""Checks of every access a kernel makes, for code that is looked at and not for code that is fast.

Behind the address of the word that stops a run, the arguments of a checked kernel have the end of
each memory, two slots in which the first access that leaves its memory is noted, and a byte to fill
memory with. Such an access is not made: the kernel ends, and says so as one without memory does.
"""

import math
from typing import Any

from sardonyx.compiler import emit_ir as ir
from sardonyx.compiler.emit_math import declare, suffix
from sardonyx.compiler.emit_values import I1, I8, I32, I64
from sardonyx.dims import Size
from sardonyx.loops.nodes import Buffer, Kernel, Local

POINTER = I8.as_pointer()


class Bounds:
    """Emits checks where an emitter (`access`) stands.

    `accesses` is what is accessed, as text, in the order of the numbers by which it is noted.
    """

    def __init__(self, access: Any, kernel: Kernel, stopped: ir.Block) -> None:
        self.access = access
        self.kernel = kernel
        self.stopped = stopped
        self.arguments = access.entry.function.args[0]
        self.accesses: list[str] = []
        self._numbers: dict[str, int] = {}
        count = len(kernel.memories)
        self._steps = count + len(kernel.parameters) + 2
        ends = self._steps + 2
        self._noted = ends + count
        self._rooms: dict[str, Any] = {
            name: access.b.sub(self._argument(ends + place), access.memories[name])
            for place, name in enumerate(kernel.memories)
        }
        self._pattern = access.b.trunc(self._argument(self._noted + 2), I8)

    def _slot(self, place: int) -> Any:
        return self.access.b.gep(self.arguments, [ir.Constant(I64, place)])

    def _argument(self, place: int) -> Any:
        return self.access.b.load(self._slot(place))

    def begin(self, local: Local) -> None:
        """From here on there is memory of the task's own; nobody may know what it holds."""
        b = self.access.b
        size = ir.Constant(I64, math.prod(local.shape) * local.dtype.numpy.itemsize)
        self._rooms[local.memory] = size
        types = [POINTER, I8, I64, I1]
        function = declare(b.module, "llvm.memset.p0.i64", ir.VoidType(), types)
        place = b.inttoptr(self.access.memories[local.memory], POINTER)
        b.call(function, [place, self._pattern, size, ir.Constant(I1, 0)])

    def along(self, what: str, buffer: Buffer, offset: Size, step: Size) -> None:
        """Check elements that begin at an offset and lie a step apart in the lanes there are."""
        access, lane = self.access, self.access.lane
        first = access.integer(offset)
        if lane is None or step == 0:
            self.each(what, buffer, first, None)
            return
        lanes = ir.Constant(ir.VectorType(I64, access.lanes), list(range(access.lanes)))
        further = access.b.mul(lanes, access.spread(access.integer(step)))
        places = access.b.add(access.spread(first), further)
        if step != 1 and lane.mask is not None:
            # Lanes without an element of their own touch the first lane's.
            places = access.b.select(lane.mask, places, access.spread(first))
            self.each(what, buffer, places, None)
            return
        self.each(what, buffer, places, lane.mask)

    def each(self, what: str, buffer: Buffer, places: Any, mask: Any) -> None:
        """Check elements by their numbers, those that a mask has; go on where all are inside."""
        b = self.access.b
        width = buffer.dtype.numpy.itemsize.bit_length() - 1
        count = b.ashr(self._rooms[buffer.memory], ir.Constant(I64, width))
        if isinstance(places.type, ir.VectorType):
            count = self.access.spread(count)
        outside = b.icmp_unsigned(">=", places, count)
        if mask is not None:
            outside = b.and_(outside, mask)
        some = self._bits(outside)
        wrong = b.icmp_unsigned("!=", some, ir.Constant(some.type, 0))
        left, inside = (b.function.append_basic_block(word) for word in ("outside", "inside"))
        b.cbranch(wrong, left, inside)
        b.position_at_end(left)
        self._note(self._number(what, buffer), places, some)
        b.position_at_end(inside)

    def _bits(self, outside: Any) -> Any:
        if not isinstance(outside.type, ir.VectorType):
            return outside
        return self.access.b.bitcast(outside, ir.IntType(outside.type.count))

    def _note(self, number: int, places: Any, some: Any) -> None:
        """Leave the number of the access and of its first element outside, and end the kernel."""
        b = self.access.b
        if isinstance(places.type, ir.VectorType):
            name = f"llvm.cttz.{suffix(some.type)}"
            count = b.compute(
                declare(b.module, name, some.type, [some.type, I1]), [some, ir.Constant(I1, 0)]
            )
            widen = b.trunc if some.type.width > I32.width else b.zext
            places = b.extract_element(places, widen(count, I32))
        b.store(places, self._slot(self._noted + 1))
        b.store(ir.Constant(I64, number + 1), self._slot(self._noted))
        b.store(ir.Constant(I64, -1), self._slot(self._steps))
        b.branch(self.stopped)

    def _number(self, what: str, buffer: Buffer) -> int:
        shape = ", ".join(map(str, buffer.shape))
        text = f"{what}, {buffer.memory} being {buffer.dtype.text}[{shape}]"
        if text not in self._numbers:
            self._numbers[text] = len(self.accesses)
            self.accesses.append(text)
        return self._numbers[text]
