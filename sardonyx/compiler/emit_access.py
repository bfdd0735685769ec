"""Sizes and memory in machine code: where elements lie, loads and stores of one or of a vector."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from sardonyx.compiler import emit_ir as ir
from sardonyx.compiler.emit_bounds import Bounds
from sardonyx.compiler.emit_math import declare, splat, suffix
from sardonyx.compiler.emit_values import I1, I8, I32, I64, memory_type
from sardonyx.dims import Atom, Expression, Operation, Product, Size
from sardonyx.dtypes import DataType
from sardonyx.loops.nodes import Buffer, Value, Whole, substitute, symbols
from sardonyx.loops.show import access_text

GATHERING_LANES = 16
"""Lanes of targets that gather elements in one instruction faster than one after another."""


@dataclass(slots=True)
class Lane:
    """The vector loop that is being emitted: its variable, where this vector begins, its mask."""

    name: str
    start: Any
    mask: Any = None
    copy: int = 0
    partial: dict[tuple[str, int], Any] = field(default_factory=dict)


class Access:
    """Emits sizes, loads and stores where a builder stands.

    `names` holds loop variables, named integers and parameters in the order in which they were
    bound; `fixed` the variables of unrolled loops; `lane` the vector loop around this place.
    """

    b: ir.IRBuilder
    entry: ir.Block

    def __init__(self, lanes: int, parameters: tuple[str, ...]) -> None:
        self.lanes = lanes
        self.parameters = frozenset(parameters)
        self.sizes: dict[Operation, Any] = {}
        """Operations that are computed already where the kernel begins."""
        self.names: dict[str, Any] = {}
        self.fixed: dict[str, Size] = {}
        self.memories: dict[str, Any] = {}
        self.lane: Lane | None = None
        self._block: Any = None
        self._loads: dict[Any, Any] = {}
        self.nothing: dict[Any, Any] = {}
        """For each type a place that holds 0, read where an element lies outside."""
        self.bounds: Bounds | None = None
        """Checks every access, where that was asked for."""
        self.flags: tuple[str, ...] = ("nsw",)

    def slot(self, type_: Any) -> Any:
        """A place for a value that LLVM will keep in a register."""
        here = self.b.block
        self.b.position_at_end(self.entry)
        slot = self.b.alloca(type_)
        self.b.position_at_end(here)
        return slot

    def spread(self, value: Any) -> Any:
        """A value in every lane."""
        if isinstance(value.type, ir.VectorType):
            return value
        type_ = ir.VectorType(value.type, self.lanes)
        if isinstance(value, ir.Constant):
            return ir.Constant(type_, [value.constant] * self.lanes)
        nothing = ir.Constant(type_, ir.Undefined)
        first = self.b.insert_element(nothing, value, ir.Constant(I32, 0))
        zeros = ir.Constant(ir.VectorType(I32, self.lanes), [0] * self.lanes)
        return self.b.shuffle_vector(first, nothing, zeros)

    def lane_step(self, size: Size) -> Size:
        """By how much a size grows from one lane to the next."""
        assert self.lane is not None
        return _growth(size, self.lane.name)

    def offset(self, buffer: Buffer, indices: tuple[Size, ...]) -> Size:
        """How many elements lie before an element."""
        offset: Size = 0
        for index, stride in zip(indices, buffer.strides, strict=True):
            offset = offset + substitute(index, self.fixed) * stride
        return offset

    def address(self, buffer: Buffer, offset: Size) -> tuple[Any, Size]:
        """Where an element is, and how far apart the elements of a vector lie."""
        step = self.lane_step(offset) if self.lane is not None else 0
        pointer = memory_type(buffer.dtype).as_pointer()
        constant = _constant_part(offset)
        begin, rest = self.split(buffer, offset - constant)
        place = self.b.gep(self.b.inttoptr(begin, pointer), [self.integer(rest)])
        if constant:
            place = self.b.gep(place, [ir.Constant(I64, constant)])
        return place, step

    def split(self, buffer: Buffer, offset: Size) -> tuple[Any, Size]:
        """An address as a number, of all that the name bound last does not change, and the rest.

        LLVM takes the number as it is; of one sum it would try every way to share its parts.
        """
        begin = self.memories[buffer.memory]
        if not isinstance(offset, Expression) or not self.names:
            return begin, offset
        last = next(reversed(self.names))
        still = {product: factor for product, factor in offset.terms.items()
                 if not any(last in _names(atom) for atom in product)}  # fmt: skip
        if not still or len(still) == len(offset.terms):
            return begin, offset
        part = Expression(still)
        width = ir.Constant(I64, buffer.dtype.numpy.itemsize)
        return self.b.add(begin, self.b.mul(self.integer(part), width)), offset - part

    def load(self, buffer: Buffer, indices: tuple[Size, ...]) -> Any:
        """An element, or a vector of them; one that no store came after is not loaded again."""
        offset, lane = self.offset(buffer, indices), self.lane
        if self._block is not self.b.block:
            self._block = self.b.block
            self._loads.clear()
        meant = tuple(self.names[name].text for name in sorted(symbols(offset)))
        lanes = None if lane is None else (lane.name, lane.mask and lane.mask.text)
        key = (buffer.memory, buffer.dtype, lanes, offset, meant)
        if key not in self._loads:
            if self.bounds is not None:
                self.check(f"reads {access_text(buffer, indices)}", buffer, offset)
            self._loads[key] = self._load(buffer, offset)
        return self._loads[key]

    def check(self, what: str, buffer: Buffer, offset: Size) -> None:
        """Emit a check of an element, or of a vector of them, where checks were asked for."""
        if self.bounds is not None:
            step = self.lane_step(offset) if self.lane is not None else 0
            self.bounds.along(what, buffer, offset, step)

    def _load(self, buffer: Buffer, offset: Size) -> Any:
        place, step = self.address(buffer, offset)
        align = buffer.dtype.numpy.itemsize
        if step == 0:
            value = self.b.load(place, align=align)
        elif step == 1:
            value = self.load_vector(place, align)
        else:
            value = self.load_apart(place, step, align)
        if buffer.dtype is DataType.BOOL:
            return self.b.icmp_unsigned("!=", value, splat(value.type, 0))
        return value

    def load_vector(self, place: Any, align: int) -> Any:
        assert self.lane is not None
        type_ = ir.VectorType(place.type.pointee, self.lanes)
        pointer = self.b.bitcast(place, type_.as_pointer())
        if self.lane.mask is None:
            return self.b.load(pointer, align=align)
        name = f"llvm.masked.load.{suffix(type_)}.p0"
        mask = ir.VectorType(I1, self.lanes)
        function = declare(self.b.module, name, type_, [type_.as_pointer(), I32, mask, type_])
        nothing = ir.Constant(type_, None)
        return self.b.call(function, [pointer, ir.Constant(I32, align), self.lane.mask, nothing])

    def load_apart(self, place: Any, step: Size, align: int) -> Any:
        type_ = ir.VectorType(place.type.pointee, self.lanes)
        vector: Any = ir.Constant(type_, ir.Undefined)
        for number, part in enumerate(self.apart(place, step)):
            element = self.b.load(part, align=align)
            vector = self.b.insert_element(vector, element, ir.Constant(I32, number))
        return vector

    def apart(self, place: Any, step: Size) -> Iterator[Any]:
        """The place of each lane's element; a lane without one gets the first lane's."""
        assert self.lane is not None
        distance = self.integer(step)
        for number in range(self.lanes):
            offset = self.b.mul(distance, ir.Constant(I64, number))
            if self.lane.mask is not None:
                active = self.b.extract_element(self.lane.mask, ir.Constant(I32, number))
                offset = self.b.select(active, offset, ir.Constant(I64, 0))
            yield self.b.gep(place, [offset])

    def pick(self, buffer: Buffer, indices: list[Any], report: Buffer | None) -> Any:
        """Elements at computed indices; where one lies outside, nothing is read and 0 is it."""
        offset: Any = ir.Constant(I64, 0)
        inside: Any = ir.Constant(I1, 1)
        if any(isinstance(index.type, ir.VectorType) for index in indices):
            offset, inside = self.spread(offset), self.spread(inside)
        for index, extent, stride in zip(indices, buffer.shape, buffer.strides, strict=True):
            bound, step = self.integer(extent), self.integer(stride)
            if isinstance(offset.type, ir.VectorType):
                bound, step = self.spread(bound), self.spread(step)
            inside = self.b.and_(inside, self.b.icmp_unsigned("<", index, bound))
            offset = self.b.add(offset, self.b.mul(index, step))
        if report is not None:
            self.report_outside(inside, report)
        if self.bounds is not None:
            mask = self._active(inside)
            self.bounds.each(f"picks of {buffer.memory}", buffer, offset, mask)
        base = self.b.inttoptr(self.memories[buffer.memory], memory_type(buffer.dtype).as_pointer())
        if isinstance(offset.type, ir.VectorType):
            value = self.pick_vector(base, offset, inside)
        else:
            value = self.pick_one(base, offset, inside)
        if buffer.dtype is DataType.BOOL:
            return self.b.icmp_unsigned("!=", value, splat(value.type, 0))
        return value

    def row(
        self, buffer: Buffer, indices: tuple[Value, ...], parts: list[Any]
    ) -> tuple[list[Any], int] | None:
        """Indices of the first lane, and the axis along which the others lie side by side.

        None where lanes do not lie side by side.
        """
        along = [n for n, part in enumerate(parts) if isinstance(part.type, ir.VectorType)]
        if self.lane is None or len(along) != 1:
            return None
        place = indices[along[0]]
        if not isinstance(place, Whole) or buffer.strides[along[0]] != 1:
            return None
        size = substitute(place.size, self.fixed)
        if self.lane_step(size) != 1:
            return None
        return [
            self.integer(size) if n == along[0] else part for n, part in enumerate(parts)
        ], along[0]

    def pick_row(self, buffer: Buffer, starts: list[Any], axis: int) -> Any:
        """Elements side by side, of which those outside are 0."""
        assert self.lane is not None
        offset: Any = ir.Constant(I64, 0)
        inside: Any = ir.Constant(I1, 1)
        lanes = ir.Constant(ir.VectorType(I64, self.lanes), list(range(self.lanes)))
        mask = self.lane.mask
        for number, start in enumerate(starts):
            bound = self.integer(buffer.shape[number])
            offset = self.b.add(offset, self.b.mul(start, self.integer(buffer.strides[number])))
            if number == axis:
                places = self.b.add(self.spread(start), lanes)
                here = self.b.icmp_unsigned("<", places, self.spread(bound))
                mask = here if mask is None else self.b.and_(mask, here)
            else:
                inside = self.b.and_(inside, self.b.icmp_unsigned("<", start, bound))
        mask = self.b.and_(mask, self.spread(inside))
        base = self.b.inttoptr(self.memories[buffer.memory], memory_type(buffer.dtype).as_pointer())
        if self.bounds is not None:
            places = self.b.add(self.spread(offset), lanes)
            self.bounds.each(f"picks a row of {buffer.memory}", buffer, places, mask)
        before, self.lane.mask = self.lane.mask, mask
        value = self.load_vector(self.b.gep(base, [offset]), buffer.dtype.numpy.itemsize)
        self.lane.mask = before
        if buffer.dtype is DataType.BOOL:
            return self.b.icmp_unsigned("!=", value, splat(value.type, 0))
        return value

    def _active(self, inside: Any) -> Any:
        """A mask without the lanes that do not count."""
        if (
            self.lane is None
            or self.lane.mask is None
            or not isinstance(inside.type, ir.VectorType)
        ):
            return inside
        return self.b.and_(inside, self.lane.mask)

    def pick_one(self, base: Any, offset: Any, inside: Any) -> Any:
        """An element, read from a place that holds 0 where it lies outside."""
        type_ = base.type.pointee
        if type_ not in self.nothing:
            self.nothing[type_] = slot = self.slot(type_)
            ir.IRBuilder(self.entry).store(ir.Constant(type_, None), slot)
        place = self.b.select(inside, self.b.gep(base, [offset]), self.nothing[type_])
        return self.b.load(place)

    def pick_vector(self, base: Any, offset: Any, inside: Any) -> Any:
        inside = self._active(inside)
        size = {"float": 4, "double": 8, "i32": 4, "i64": 8}.get(str(base.type.pointee))
        if size is not None and self.lanes >= GATHERING_LANES:
            return self.gather(base, offset, inside, size)
        vector: Any = ir.Constant(ir.VectorType(base.type.pointee, self.lanes), ir.Undefined)
        for number in range(self.lanes):
            at = ir.Constant(I32, number)
            one = self.pick_one(
                base, self.b.extract_element(offset, at), self.b.extract_element(inside, at)
            )
            vector = self.b.insert_element(vector, one, at)
        return vector

    def gather(self, base: Any, offset: Any, inside: Any, size: int) -> Any:
        """Elements at as many places, by one instruction where the target has it."""
        start = self.spread(self.b.ptrtoint(base, I64))
        bytes_each = self.spread(ir.Constant(I64, size))
        places = self.b.add(start, self.b.mul(offset, bytes_each))
        pointers = self.b.inttoptr(places, ir.VectorType(base.type, self.lanes))
        type_ = ir.VectorType(base.type.pointee, self.lanes)
        name = f"llvm.masked.gather.{suffix(type_)}.v{self.lanes}p0"
        types = [pointers.type, I32, inside.type, type_]
        function = declare(self.b.module, name, type_, types)
        nothing = ir.Constant(type_, None)
        return self.b.call(function, [pointers, ir.Constant(I32, size), inside, nothing])

    def report_outside(self, inside: Any, report: Buffer) -> None:
        """Set a report to 1 where some lane that counts lies outside."""
        outside = self.b.not_(inside)
        if isinstance(outside.type, ir.VectorType):
            if self.lane is not None and self.lane.mask is not None:
                outside = self.b.and_(outside, self.lane.mask)
            bits = ir.IntType(self.lanes)
            whole = self.b.bitcast(outside, bits)
            outside = self.b.icmp_unsigned("!=", whole, ir.Constant(bits, 0))
        if self.bounds is not None:
            self.bounds.each(f"reports to {report.memory}", report, ir.Constant(I64, 0), None)
        place = self.b.inttoptr(self.memories[report.memory], I64.as_pointer())
        nowhere = self.slot(I64)
        self.b.store(ir.Constant(I64, 1), self.b.select(outside, place, nowhere))

    def store(self, buffer: Buffer, indices: tuple[Size, ...], value: Any) -> None:
        offset = self.offset(buffer, indices)
        if self.bounds is not None:
            self.check(f"writes {access_text(buffer, indices)}", buffer, offset)
        place, step = self.address(buffer, offset)
        align = buffer.dtype.numpy.itemsize
        self._loads.clear()
        if self.lane is not None:
            value = self.spread(value)
        if buffer.dtype is DataType.BOOL:
            wide = I8 if self.lane is None else ir.VectorType(I8, self.lanes)
            value = self.b.zext(value, wide)
        if self.lane is None:
            self.b.store(value, place, align=align)
        elif step == 1:
            self.store_vector(place, value, align)
        else:
            self.store_apart(place, step, value, align)

    def store_vector(self, place: Any, value: Any, align: int) -> None:
        assert self.lane is not None
        pointer = self.b.bitcast(place, value.type.as_pointer())
        if self.lane.mask is None:
            self.b.store(value, pointer, align=align)
            return
        name = f"llvm.masked.store.{suffix(value.type)}.p0"
        mask = self.lane.mask
        if align < I32.width // 8:
            # LLVM writes four bytes where it knows a narrowing store's mask to be a single lane.
            begin = self.entry.function.args[1]
            known = self.b.icmp_signed(">=", begin, ir.Constant(I64, 0))
            mask = self.b.and_(mask, self.spread(known))
        arguments = [value.type, pointer.type, I32, mask.type]
        function = declare(self.b.module, name, ir.VoidType(), arguments)
        self.b.call(function, [value, pointer, ir.Constant(I32, align), mask])

    def store_apart(self, place: Any, step: Size, value: Any, align: int) -> None:
        """Lanes from the last to the first, so that the first lane's own value stays."""
        for number, part in reversed(list(enumerate(self.apart(place, step)))):
            self.b.store(self.b.extract_element(value, ir.Constant(I32, number)), part, align=align)

    def integer(self, size: Size) -> Any:
        """A size in machine code; terms of outer names first, so that loops can share sums."""
        size = substitute(size, self.fixed)
        if isinstance(size, int):
            return ir.Constant(I64, size)
        if len(size.terms) == 1:
            ((product, factor),) = size.terms.items()
            if len(product) == 1:
                return self.product(product, factor, {})
        order = {name: position for position, name in enumerate(self.names, 1)}
        total: Any = None
        for product, factor in sorted(size.terms.items(), key=lambda term: _depth(term[0], order)):
            term = self.product(product, factor, order)
            total = term if total is None else self.b.add(total, term, flags=self.flags)
        return total

    def product(self, product: Product, factor: int, order: dict[str, int]) -> Any:
        value: Any = None if factor == 1 and product else ir.Constant(I64, factor)
        if len(product) > 1:
            product = tuple(sorted(product, key=lambda atom: _depth((atom,), order)))
        for atom in product:
            part = self.names[atom] if isinstance(atom, str) else self.operation(atom)
            value = part if value is None else self.b.mul(value, part, flags=self.flags)
        return value

    def operation(self, operation: Operation) -> Any:
        """An operation on sizes; one on parameters alone is computed once, at the beginning."""
        known = self.sizes.get(operation)
        if known is not None:
            return known
        if not _is_safe(operation, self.parameters):
            return self.compute(operation)
        here = self.b.block
        self.b.position_at_end(self.entry)
        self.sizes[operation] = made = self.compute(operation)
        self.b.position_at_end(here)
        return made

    def compute(self, operation: Operation) -> Any:
        sign, left, right = operation
        a, c = self.integer(left), self.integer(right)
        match sign:
            case "//" | "%" if right == 0:
                return c
            case "//":
                return self.floor_divide(a, c)
            case "%":
                rest = self.b.sub(a, self.b.mul(self.floor_divide(a, c), c))
                return rest if isinstance(right, int) else self.unless_zero(c, rest)
            case "min" | "max":
                order = "<" if sign == "min" else ">"
                return self.b.select(self.b.icmp_signed(order, a, c), a, c)
            case _:
                one = ir.Constant(I64, 1)
                return self.b.select(self.b.icmp_signed("==", a, one), c, a)

    def floor_divide(self, left: Any, right: Any) -> Any:
        """The quotient, rounded down; 0 by zero, as sizes have it everywhere."""
        known = isinstance(right, ir.Constant)
        if known and right.constant > 0:
            shift = right.constant.bit_length() - 1
            if right.constant == 1 << shift:
                return self.b.ashr(left, ir.Constant(I64, shift))
        zero = ir.Constant(I64, 0)
        by = right
        if not known:
            by = self.b.select(self.b.icmp_signed("==", right, zero), ir.Constant(I64, 1), right)
        quotient = self.b.sdiv(left, by)
        inexact = self.b.icmp_signed("!=", self.b.mul(quotient, by), left)
        negative = self.b.icmp_signed("<", self.b.xor(left, by), zero)
        whole = self.b.sub(quotient, self.b.zext(self.b.and_(inexact, negative), I64))
        return whole if known else self.unless_zero(right, whole)

    def unless_zero(self, divisor: Any, value: Any) -> Any:
        zero = ir.Constant(I64, 0)
        return self.b.select(self.b.icmp_signed("==", divisor, zero), zero, value)


def _growth(size: Size, name: str) -> Size:
    """By how much a size grows with a name."""
    if name not in symbols(size):
        return 0
    assert isinstance(size, Expression)
    step = size.growth(name)
    if step is None:
        step = size.substitute({name: 1}) - size.substitute({name: 0})
        assert name not in symbols(step)
    return step


def _constant_part(size: Size) -> int:
    return size if isinstance(size, int) else size.terms.get((), 0)


def _depth(product: Product, order: dict[str, int]) -> int:
    """How late the last name of a product was bound."""
    found = 0
    for atom in product:
        if isinstance(atom, str):
            found = max(found, order[atom])
        else:
            found = max(found, *(order[name] for name in _names(atom)))
    return found


def _names(atom: Atom) -> Collection[str]:
    return (atom,) if isinstance(atom, str) else symbols(atom[1]) | symbols(atom[2])


def _is_safe(operation: Operation, parameters: frozenset[str]) -> bool:
    """True where an operation depends on parameters alone and cannot divide by zero."""
    sign, *operands = operation
    if sign in ("//", "%") and not isinstance(operands[1], int):
        return False
    sizes = [item for item in operands if isinstance(item, Expression)]
    atoms = {atom for size in sizes for product in size.terms for atom in product}
    return all(
        atom in parameters if isinstance(atom, str) else _is_safe(atom, parameters)
        for atom in atoms
    )
