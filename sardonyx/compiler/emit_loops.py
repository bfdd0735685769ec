"""Kernels as LLVM functions: `void kernel(i64* arguments, i64 begin, i64 end, i64 step)`.

The arguments are the addresses of the memories, then the parameters. `begin` and `end` bound the
parallel loop, `step` is the number of the step, where there are any. A vector loop runs whole
vectors, then one masked vector for what is left. A loop that may take long looks now and then at
the word that stops the run, whose address lies behind the numbers of tasks, pieces and steps.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sardonyx.compiler import emit_ir as ir
from sardonyx.compiler.emit_access import Access, Lane
from sardonyx.compiler.emit_bounds import Bounds
from sardonyx.compiler.emit_dot import emit_dot, emit_pairs
from sardonyx.compiler.emit_math import intrinsic, like, splat
from sardonyx.compiler.emit_memory import take_memory
from sardonyx.compiler.emit_values import (
    F32,
    I32,
    I64,
    TYPES,
    constant,
    emit_binary,
    emit_bits,
    emit_cast,
    emit_unary,
    is_float,
    neutral,
    transposed,
)
from sardonyx.compiler.processors import MACHINE
from sardonyx.compiler.strips import Strips
from sardonyx.compiler.targets import ACCESSES, Target
from sardonyx.dims import Size
from sardonyx.dtypes import DataType
from sardonyx.loops.nodes import (
    Binary,
    Bits,
    Cast,
    Constant,
    Dot,
    Guard,
    Kernel,
    Kind,
    Let,
    Load,
    Local,
    Loop,
    Pick,
    Read,
    Register,
    Select,
    Statement,
    Store,
    Unary,
    Update,
    Value,
    Whole,
    dtype_of,
    operands,
    substitute,
    symbols,
    walk,
)

REDUCTION_COPIES = 4
"""Vectors a reduction takes at once, each with an accumulator of its own."""
FEW_COPIES = 4
"""Places up to which a long function stands in each of them, without a call."""
STOP_SLOT = 3
"""Which slot behind a call's arguments has the address of the word that stops the run."""


def emit_kernel(module: ir.Module, name: str, kernel: Kernel, target: Target) -> ir.Function:
    """Define a function in a module, which remembers what its target has."""
    lanes = module.lanes = target.lanes
    module.machine = target.machine or MACHINE
    module.dots, module.pairs = target.dots, target.pairs
    signature = ir.FunctionType(ir.VoidType(), [I64.as_pointer(), I64, I64, I64])
    function = ir.Function(module, signature, name)
    if lanes > 4:
        function.attributes.add('"stackrealign"')  # vectors kept in memory cross no cache line
    emitter = _Emitter(function, kernel, lanes)
    emitter.run(checked=target.checked == ACCESSES)
    if emitter.bounds is not None:
        function.accesses = tuple(emitter.bounds.accesses)
    return function


class _Emitter(Access):
    def __init__(self, function: ir.Function, kernel: Kernel, lanes: int) -> None:
        super().__init__(lanes, kernel.parameters)
        self.function = function
        self.kernel = kernel
        self.entry = function.append_basic_block("entry")
        self.b = ir.IRBuilder(self.entry)
        self.registers: dict[str, Register] = {}
        self.slots: dict[tuple[str, tuple[int, ...]], Any] = {}
        self.copies = 1
        """How often the place that is being emitted stands in the kernel, by unrolled loops."""
        self.strips = Strips(lanes)
        self.stop: Any = None
        """Where the word that stops the run lies, once a loop looks at it."""
        self.stopped: ir.Block | None = None

    def run(self, *, checked: bool) -> None:
        arguments = self.function.args[0]
        count = len(self.kernel.memories)
        for position, name in enumerate(self.kernel.memories + self.kernel.parameters):
            value = self.b.load(self.b.gep(arguments, [ir.Constant(I64, position)]))
            (self.memories if position < count else self.names)[name] = value
        if self.kernel.steps is not None:
            self.names[self.kernel.steps.index] = self.function.args[3]
        body = self.function.append_basic_block("body")
        taken = take_memory(self.b, self.function, self.kernel, body)
        self.memories |= {} if taken is None else taken.places
        self.b.position_at_end(body)
        stopped = self.check_accesses() if checked else None
        self.body(self.kernel.body)
        if stopped is not None:
            self.b.branch(stopped)
            self.b.position_at_end(stopped)
        if taken is not None:
            taken.give_back(self.b)
        self.b.ret_void()
        if self.stopped is not None:
            self.b.position_at_end(self.stopped)
            if taken is not None:
                taken.give_back(self.b)
            self.b.ret_void()

    def check_accesses(self) -> ir.Block:
        """From here on accesses are checked; where control goes on after one that must not be."""
        stopped = self.function.append_basic_block("stopped")
        self.bounds = Bounds(self, self.kernel, stopped)
        self.flags = ()
        return stopped

    def body(self, body: tuple[Statement, ...]) -> None:
        for statement in body:
            self.statement(statement)

    def statement(self, statement: Statement) -> None:
        match statement:
            case Loop(index, extent, body, kind):
                self.loop(index, substitute(extent, self.fixed), body, kind)
            case Guard(left, right, body):
                self.guard(substitute(left, self.fixed), substitute(right, self.fixed), body)
            case Let(name, value):
                self.names[name] = self.value(value)
            case Register():
                self.register(statement)
            case Local():
                if self.bounds is not None:
                    self.bounds.begin(statement)
            case Update():
                self.update(statement)
            case Store(buffer, indices, value):
                self.store(buffer, indices, self.value(value))

    def loop(self, index: str, extent: Size, body: tuple[Statement, ...], kind: Kind) -> None:
        match kind:
            case Kind.UNROLL:
                assert isinstance(extent, int)
                copies, self.copies = self.copies, self.copies * extent
                for position in range(extent):
                    self.fixed[index] = position
                    self.body(body)
                del self.fixed[index]
                self.copies = copies
            case Kind.VECTOR:
                self.vector_loop(index, extent, body)
            case Kind.TURN:
                self.turn(index, body)
            case Kind.STEPS:
                self.body(body)
            case Kind.PARALLEL:
                begin, end = self.function.args[1:3]
                every = self.strips.every(extent, body)
                if every:  # a piece of a run that was stopped does not begin
                    inside = self.function.append_basic_block("going")
                    self.look(inside)
                    self.b.position_at_end(inside)
                self.counted(index, begin, end, 1, lambda: self.task(index, body), every)
            case Kind.SERIAL if extent == 1:
                self.fixed[index] = 0
                self.body(body)
                del self.fixed[index]
            case Kind.SERIAL:
                zero, every = ir.Constant(I64, 0), self.strips.every(extent, body)
                self.counted(index, zero, self.integer(extent), 1, lambda: self.body(body), every)

    def counted(
        self, index: str, begin: Any, end: Any, step: int, body: Callable[[], None], every: int = 0
    ) -> None:
        """A loop in machine code; the variable is known by its name inside.

        It looks whether the run is to stop: never, before each iteration, or after `every` so many.
        """
        before = self.b.block
        head, after = (self.function.append_basic_block(word) for word in ("loop", "after"))
        self.b.cbranch(self.b.icmp_signed("<", begin, end), head, after)
        self.b.position_at_end(head)
        if every < 2:
            self.iterate(index, begin, end, step, body, before, after, looks=every == 1)
        else:
            self.in_strips(index, begin, end, step, body, before, after, every)
        self.b.position_at_end(after)

    def in_strips(
        self, index: str, begin: Any, end: Any, step: int, body: Callable[[], None],
        before: ir.Block, after: ir.Block, every: int,
    ) -> None:  # fmt: skip
        """A loop around a loop of `every` iterations, which looks between them."""
        head = self.b.block
        inner, between, look = map(self.function.append_basic_block, ("loop", "strip", "look"))
        first = self.b.phi(I64)
        first.add_incoming(begin, before)
        room = ir.Constant(I64, every * step)
        few = self.b.icmp_signed("<", self.b.sub(end, first), room)
        last = self.b.select(few, end, self.b.add(first, room))
        self.b.branch(inner)
        self.b.position_at_end(inner)
        self.iterate(index, first, last, step, body, head, between, looks=False)
        self.b.position_at_end(between)
        self.b.cbranch(self.b.icmp_signed("<", last, end), look, after)
        self.b.position_at_end(look)
        first.add_incoming(last, look)
        self.look(head)

    def iterate(
        self, index: str, begin: Any, end: Any, step: int, body: Callable[[], None],
        before: ir.Block, after: ir.Block, *, looks: bool,
    ) -> None:  # fmt: skip
        """A loop that begins in this block and is run at least once."""
        head = self.b.block
        variable = self.b.phi(I64)
        variable.add_incoming(begin, before)
        self.names[index] = variable
        if looks:
            inside = self.function.append_basic_block("going")
            self.look(inside)
            self.b.position_at_end(inside)
        body()
        del self.names[index]
        following = self.b.add(variable, ir.Constant(I64, step), flags=("nsw",))
        variable.add_incoming(following, self.b.block)
        self.b.cbranch(self.b.icmp_signed("<", following, end), head, after)

    def look(self, going: ir.Block) -> None:
        """Go on in a block, or end the kernel where the run is to stop."""
        if self.stopped is None:
            here = self.b.block
            self.b.position_at_end(self.entry)
            place = len(self.kernel.memories) + len(self.kernel.parameters) + STOP_SLOT
            word = self.b.load(self.b.gep(self.function.args[0], [ir.Constant(I64, place)]))
            self.stop = self.b.inttoptr(word, I64.as_pointer())
            self.b.position_at_end(here)
            self.stopped = self.function.append_basic_block("stopped")
        told = self.b.look(self.stop)
        zero = ir.Constant(I64, 0)
        self.b.cbranch(self.b.icmp_signed("==", told, zero), going, self.stopped)

    def task(self, index: str, body: tuple[Statement, ...]) -> None:
        """One task; every other step takes them backwards, as the last ones are in the cache."""
        if self.kernel.steps is not None:
            begin, end = self.function.args[1:3]
            number, one = self.names[index], ir.Constant(I64, 1)
            last = self.b.sub(self.b.add(begin, end), one)
            odd = self.b.and_(self.names[self.kernel.steps.index], one)
            back = self.b.icmp_signed("==", odd, one)
            self.names[index] = self.b.select(back, self.b.sub(last, number), number)
        self.body(body)

    def turn(self, index: str, body: tuple[Statement, ...]) -> None:
        """A square of elements: rows are loaded, turned in registers, and stored as columns."""
        match body:
            case (Loop(inner, extent, (Store(buffer, indices, Load(source, places)),)),):
                assert extent == self.lanes
            case _:
                raise AssertionError("a turning loop copies a square")
        zero = ir.Constant(I64, 0)
        rows = []
        for position in range(self.lanes):
            self.fixed[index] = position
            self.lane, self.names[inner] = Lane(inner, zero), zero
            rows.append(self.load(source, places))
        del self.fixed[index], self.names[inner]
        for position, column in enumerate(transposed(self.b, rows)):
            self.fixed[inner] = position
            self.lane, self.names[index] = Lane(index, zero), zero
            self.store(buffer, indices, column)
        del self.fixed[inner], self.names[index]
        self.lane = None

    def vector_loop(self, index: str, extent: Size, body: tuple[Statement, ...]) -> None:
        updates = {
            item.register: item.combine
            for item in walk(body)
            if isinstance(item, Update) and not self.registers[item.register].lanes
        }
        every = self.strips.every(extent, body, self.lanes)
        copies = REDUCTION_COPIES if updates and not _short(extent, self.lanes) else 1
        self.lane = lane = Lane(index, None)
        for name, combine in updates.items():
            type_ = ir.VectorType(TYPES[self.registers[name].dtype], self.lanes)
            for copy in range(copies):
                slot = self.slot(type_)
                self.b.store(splat(type_, neutral(combine, self.registers[name].dtype)), slot)
                lane.partial[name, copy] = slot
        self.whole_vectors(index, extent, body, copies, every)
        self.last_vector(index, extent, body)
        self.lane = None
        for name, combine in updates.items():
            self.gather_partial(name, combine, [lane.partial[name, copy] for copy in range(copies)])

    def whole_vectors(
        self, index: str, extent: Size, body: tuple[Statement, ...], copies: int, every: int
    ) -> None:
        assert self.lane is not None
        if isinstance(extent, int) and extent < 2 * self.lanes:
            if extent >= self.lanes:
                self.vector_body(index, ir.Constant(I64, 0), body)
            return
        total = self.integer(extent)
        done: Any = ir.Constant(I64, 0)
        for count in (copies, 1) if copies > 1 else (1,):
            step = count * self.lanes
            end = self.b.sub(total, self.b.srem(total, ir.Constant(I64, step)))

            def several(count: int = count) -> None:
                start = self.names[index]
                for copy in range(count):
                    assert self.lane is not None
                    self.lane.copy = copy
                    at = self.b.add(start, ir.Constant(I64, copy * self.lanes))
                    self.vector_body(index, at, body)
                self.names[index] = start

            self.counted(index, done, end, step, several, every)
            done, every = end, 0
        self.lane.copy = 0

    def last_vector(self, index: str, extent: Size, body: tuple[Statement, ...]) -> None:
        assert self.lane is not None
        if isinstance(extent, int) and extent % self.lanes == 0:
            return
        total = self.integer(extent)
        left = self.b.srem(total, ir.Constant(I64, self.lanes))
        start = self.b.sub(total, left)
        with self.branch(self.b.icmp_signed(">", left, ir.Constant(I64, 0))):
            self.lane.mask = self.below(left)
            self.vector_body(index, start, body)
            self.lane.mask = None

    def vector_body(self, index: str, start: Any, body: tuple[Statement, ...]) -> None:
        assert self.lane is not None
        self.names[index] = self.lane.start = start
        self.body(body)
        self.names.pop(index, None)

    def below(self, bound: Any) -> Any:
        """The mask of lanes whose number is less than `bound`."""
        numbers = ir.Constant(ir.VectorType(I64, self.lanes), list(range(self.lanes)))
        return self.b.icmp_signed("<", numbers, self.spread(bound))

    @contextmanager
    def branch(self, condition: Any) -> Iterator[None]:
        inside, after = (self.function.append_basic_block(word) for word in ("then", "after"))
        self.b.cbranch(condition, inside, after)
        self.b.position_at_end(inside)
        yield
        self.b.branch(after)
        self.b.position_at_end(after)

    def guard(self, left: Size, right: Size, body: tuple[Statement, ...]) -> None:
        lane = self.lane
        if lane is None or not self.is_along_lanes(left):
            self.plain_guard(left, right, body)
            return
        room = self.b.sub(self.integer(right), self.integer(left))
        with self.branch(self.b.icmp_signed(">", room, ir.Constant(I64, 0))):
            assert self.lane_step(left) == 1
            before = lane.mask
            mask = self.below(room)
            lane.mask = mask if before is None else self.b.and_(before, mask)
            self.body(body)
            lane.mask = before

    def plain_guard(self, left: Size, right: Size, body: tuple[Statement, ...]) -> None:
        """A guard that holds for all lanes or none; with those right inside it, one branch."""
        condition: Any = None
        while True:
            if isinstance(left, int) and isinstance(right, int):
                if left >= right:
                    return
            else:
                here = self.b.icmp_signed("<", self.integer(left), self.integer(right))
                condition = here if condition is None else self.b.and_(condition, here)
            match body:
                case (Guard(low, high, inner),) if not self.is_along_lanes(low):
                    left, right = substitute(low, self.fixed), substitute(high, self.fixed)
                    body = inner
                case _:
                    break
        if condition is None:
            self.body(body)
            return
        with self.branch(condition):
            self.body(body)

    def is_along_lanes(self, size: Size) -> bool:
        """True where a size differs from lane to lane."""
        return self.lane is not None and self.lane.name in symbols(size)

    def register(self, register: Register) -> None:
        self.registers[register.name] = register
        type_ = TYPES[register.dtype]
        counts = list(register.shape)
        if register.lanes:
            type_ = ir.VectorType(type_, self.lanes)
            assert counts[-1] % self.lanes == 0
            counts[-1] //= self.lanes
        for position in _positions(counts):
            key = (register.name, position)
            if key not in self.slots:
                self.slots[key] = self.slot(type_)
            self.b.store(splat(type_, register.initial), self.slots[key])

    def place(self, name: str, indices: tuple[Size, ...]) -> Any:
        """The slot of a register's element, or of a vector of them."""
        at = [substitute(index, self.fixed) for index in indices]
        if self.registers[name].lanes:
            assert self.lane is not None and self.lane_step(at[-1]) == 1
            first = substitute(at[-1], {self.lane.name: 0})
            assert isinstance(first, int) and first % self.lanes == 0
            at[-1] = first // self.lanes
        assert all(isinstance(index, int) for index in at), "registers need constant indices"
        return self.slots[name, tuple(at)]  # type: ignore[arg-type]

    def update(self, update: Update) -> None:
        register = self.registers[update.register]
        if self.lane is None or register.lanes:
            slot = self.place(update.register, update.indices)
        else:
            slot = self.lane.partial[update.register, self.lane.copy]
        old = self.b.load(slot)
        fused = update.value if update.combine == "add" and is_float(old.type) else None
        if isinstance(fused, Binary) and fused.name == "mul":
            factors = [
                self.widened(self.value(part), old.type) for part in (fused.left, fused.right)
            ]
            result = intrinsic(self.b, "llvm.fmuladd", *factors, old)
        elif isinstance(update.value, Dot) and update.combine == "add":
            left, right = (
                self.widened(self.value(part), old.type) for part in operands(update.value)
            )
            emit = emit_pairs if register.dtype is DataType.FLOAT else emit_dot
            result = emit(self.b, left, right, old)
        else:
            result = value = self.widened(self.value(update.value), old.type)
            if update.combine != "set":
                result = emit_binary(self.b, update.combine, register.dtype, old, value)
        if self.lane is not None and self.lane.mask is not None:
            result = self.b.select(self.lane.mask, result, old)
        self.b.store(result, slot)

    def gather_partial(self, name: str, combine: str, slots: list[Any]) -> None:
        """Combine lanes, in an order that does not depend on anything, into the register."""
        dtype = self.registers[name].dtype
        vectors = [self.b.load(slot) for slot in slots]
        while len(vectors) > 1:
            pairs = zip(vectors[::2], vectors[1::2], strict=True)
            vectors = [emit_binary(self.b, combine, dtype, *pair) for pair in pairs]
        vector, width = vectors[0], self.lanes
        while width > 1:
            width //= 2
            order = ir.Constant(ir.VectorType(I32, width), list(range(width, 2 * width)))
            lower = ir.Constant(ir.VectorType(I32, width), list(range(width)))
            nothing = ir.Constant(vector.type, ir.Undefined)
            halves = (self.b.shuffle_vector(vector, nothing, part) for part in (lower, order))
            vector = emit_binary(self.b, combine, dtype, *halves)
        last = self.b.extract_element(vector, ir.Constant(I32, 0))
        slot = self.slots[name, ()]
        self.b.store(emit_binary(self.b, combine, dtype, self.b.load(slot), last), slot)

    def value(self, value: Value) -> Any:
        """A value; shared parts are computed once, long chains without recursion."""
        known: dict[int, Any] = {}
        waiting = [value]
        while waiting:
            item = waiting[-1]
            missing = [part for part in operands(item) if id(part) not in known]
            if missing:
                waiting.extend(missing)
                continue
            waiting.pop()
            if id(item) not in known:
                known[id(item)] = self.apply(item, [known[id(part)] for part in operands(item)])
        return known[id(value)]

    def apply(self, value: Value, parts: list[Any]) -> Any:
        if any(isinstance(part.type, ir.VectorType) for part in parts):
            parts = [self.spread(part) for part in parts]
        match value:
            case Constant(number, dtype):
                return constant(dtype, number)
            case Whole(size):
                return self.whole(size)
            case Load(buffer, indices):
                return self.load(buffer, indices)
            case Pick(buffer, indices, report):
                row = self.row(buffer, indices, parts)
                if row is not None and report is None:
                    return self.pick_row(buffer, *row)
                return self.pick(buffer, parts, report)
            case Read(register, _, indices):
                return self.b.load(self.place(register, indices))
            case Unary(name, operand):
                apart = self.copies > FEW_COPIES
                return emit_unary(self.b, name, dtype_of(operand), parts[0], apart=apart)
            case Binary(name, left, _):
                return self.binary(name, dtype_of(left), parts)
            case Select():
                return self.b.select(*parts)
            case Cast(operand, dtype):
                return emit_cast(self.b, dtype_of(operand), dtype, parts[0])
            case Bits(operand, dtype):
                return emit_bits(self.b, dtype_of(operand), dtype, parts[0])
            case Dot(dtype=DataType.FLOAT):
                return emit_pairs(self.b, parts[0], parts[1], splat(like(parts[0].type, F32), 0.0))
            case Dot():
                return emit_dot(self.b, parts[0], parts[1], splat(parts[0].type, 0))

    def binary(self, name: str, dtype: DataType, parts: list[Any]) -> Any:
        return emit_binary(self.b, name, dtype, *parts)

    def whole(self, size: Size) -> Any:
        size = substitute(size, self.fixed)
        start = self.integer(size)
        if self.lane is None or self.lane.name not in symbols(size):
            return start
        step = self.lane_step(size)
        numbers = ir.Constant(ir.VectorType(I64, self.lanes), list(range(self.lanes)))
        steps = self.b.mul(numbers, self.spread(self.integer(step)))
        return self.b.add(self.spread(start), steps)

    def widened(self, value: Any, type_: Any) -> Any:
        return self.spread(value) if isinstance(type_, ir.VectorType) else value


def _short(extent: Size, lanes: int) -> bool:
    return isinstance(extent, int) and extent < 2 * REDUCTION_COPIES * lanes


def _positions(counts: list[int]) -> Iterator[tuple[int, ...]]:
    if not counts:
        yield ()
        return
    for first in range(counts[0]):
        for rest in _positions(counts[1:]):
            yield (first, *rest)
