"""How large the numbers get that kernels compute indices with: none may leave 64 bits.

Kernels compute sizes anew from their parameters, and do not look whether a sum fits. So a bound of
every such number is found when a kernel is made, a polynomial of the sizes that arrays tell, with
factors above zero; the plan for given sizes compares it with what 64 bits hold. As long as no size
is above a limit, which is found here as well, not even that needs to be computed.
"""

from collections.abc import Callable, Mapping, Sequence

from sardonyx.compiler.limits import LARGEST_SIZE, MOST, Terms
from sardonyx.dims import LARGEST_NUMBER, Atom, Expression, Operation, Size
from sardonyx.dtypes import DataType
from sardonyx.loops.nodes import (
    Binary,
    Buffer,
    Cast,
    Constant,
    Guard,
    Kernel,
    Let,
    Load,
    Loop,
    Pick,
    Read,
    Select,
    Statement,
    Store,
    Update,
    Value,
    Whole,
    dtype_of,
    operands,
    symbols,
)

Bound = dict[tuple[str, ...], float]
"""Factors above 0 of products of names: the most that something can be."""
Range = tuple[Bound, Bound]
"""How far below 0 and how far above it a number may lie."""
SMALL = 1 << 12
"""A number that is a better bound than a size that only a run tells."""
DEEPEST = 32
"""Operations of a value that are looked through for its bound."""
_NARROW = {
    DataType.BOOL: 1, DataType.INT8: 1 << 7, DataType.UINT8: 1 << 8, DataType.INT16: 1 << 15,
    DataType.UINT16: 1 << 16, DataType.INT32: 1 << 31, DataType.UINT32: 1 << 32,
}  # fmt: skip


class Bounds:
    """Collects the largest factor of every product that kernels' numbers depend on."""

    def __init__(self, derived: Mapping[str, Size]) -> None:
        """`derived` are names of sizes that are computed of others."""
        self.most: Bound = {}
        self._own: Bound = {}
        """Of the kernel that is looked at, by all names."""
        self._derived = derived
        self._names: dict[str, Bound] = {}
        self._seen: dict[int, Kernel] = {}
        self._operations: dict[str, Bound] = {}
        """Bounds of operations on single sizes, which count as names of their own."""
        self._scope: dict[str, Range] = {}
        self._sizes: dict[Size, Range] = {}
        self._places: dict[tuple[Size, Size], Bound] = {}
        """What was found of sizes and of their products, while names mean the same."""

    def add(self, kernel: Kernel) -> None:
        """Take in what a kernel computes; the same one counts once."""
        if id(kernel) not in self._seen:
            self._seen[id(kernel)] = kernel
            self._scope.clear()
            self._forget()
            self._body(kernel.body)
            self._close()

    def limit(self) -> int:
        """A size up to which no number leaves 64 bits, if no other size is above it either; -1
        where there is none.

        >>> from sardonyx.dims import symbol
        >>> bounds = Bounds({})
        >>> _ = bounds.note(symbol("n") * symbol("m") * 4)
        >>> bounds.limit() == 2**29
        True
        """
        self._close()
        for power in range(LARGEST_SIZE.bit_length() - 1, -1, -1):
            if sum(_scaled(factor, power * len(names))
                   for names, factor in self.most.items()) < MOST:  # fmt: skip
                return 1 << power
        return -1

    def terms(self, names: Sequence[str]) -> Terms:
        """The bound, with the places of names in a list."""
        return tuple(
            (factor, tuple(names.index(name) for name in product))
            for product, factor in self.most.items()
        )

    def note(self, size: Size) -> Range:
        """The range of a size by all names, which is remembered."""
        found = self._sizes.get(size)
        if found is None:
            found = self._sizes[size] = self._size(size)
            self._remember(_reach(found))
        return found

    def _bind(self, name: str, found: Range) -> None:
        if self._scope.get(name, found) != found:
            self._forget()
        self._scope[name] = found

    def _forget(self) -> None:
        self._sizes.clear()
        self._places.clear()

    def _remember(self, bound: Bound) -> None:
        for product, factor in bound.items():
            if factor > self._own.get(product, 0.0):
                self._own[product] = factor

    def _close(self) -> None:
        """Say what was found of a kernel by sizes that arrays tell alone."""
        own, self._own = self._own, {}
        self.most = _larger(self.most, self._by_told(own))
        self._own = {}

    def _by_told(self, bound: Bound) -> Bound:
        total: Bound = {}
        for product, factor in bound.items():
            term: Bound = {(): factor}
            for name in product:
                term = _product(term, self._told(name))
            total = _sum(total, term)
        return total

    def _told(self, name: str) -> Bound:
        """A bound of a parameter by sizes that arrays tell."""
        if name not in self._names:
            size = self._derived.get(name)
            found = self._operations.get(name)
            if size is not None:
                found = _reach(self._size(size))
            self._names[name] = {(name,): 1.0} if found is None else self._by_told(found)
        return self._names[name]

    def _body(self, body: tuple[Statement, ...]) -> None:
        for statement in body:
            match statement:
                case Loop(index, extent, inner):
                    most = self.note(extent)[1]
                    last = _number(extent - 1)[1] if isinstance(extent, int) else most
                    self._bind(index, ({}, last))
                    self._body(inner)
                case Guard(low, high, inner):
                    self._remember(_sum(_reach(self.note(low)), _reach(self.note(high))))
                    self._body(inner)
                case Let(name, value):
                    self._values(value)
                    below, above = self._range(value, DEEPEST)
                    if below is None or above is None:
                        below, above = _OF_ELEMENTS
                    self._bind(name, (below, above))
                case Update(_, _, value, indices):
                    self._values(value)
                    for place in indices:
                        self.note(place)
                case Store(buffer, indices, value):
                    self._access(buffer, indices)
                    self._values(value)

    def _values(self, value: Value) -> None:
        """Take in the sizes of a value and of all it is made of."""
        seen = {id(value)}
        waiting = [value]
        while waiting:
            item = waiting.pop()
            match item:
                case Whole(size):
                    self.note(size)
                case Load(buffer, indices):
                    self._access(buffer, indices)
                case Pick(buffer):
                    self._access(buffer, buffer.shape)
                case Read(_, _, indices):
                    for index in indices:
                        self.note(index)
            for part in operands(item):
                if id(part) not in seen:
                    seen.add(id(part))
                    waiting.append(part)

    def _access(self, buffer: Buffer, indices: tuple[Size, ...]) -> None:
        """An element's place in its memory, in bytes."""
        total: Bound = {}
        for pair in zip(indices, buffer.strides, strict=True):
            found = self._places.get(pair)
            if found is None:
                found = self._places[pair] = _product(*map(_reach, map(self.note, pair)))
            total = _sum(total, found) if total else found
        self._remember(_times(total, buffer.dtype.numpy.itemsize))

    def _size(self, size: Size) -> Range:
        if isinstance(size, int):
            return _number(size)
        below: Bound = {}
        above: Bound = {}
        for atoms, factor in size.terms.items():
            term = _number(factor)
            for atom in atoms:
                term = _multiplied(term, self._atom(atom))
            below, above = _sum(below, term[0]), _sum(above, term[1])
        return below, above

    def _atom(self, atom: Atom) -> Range:
        if isinstance(atom, str):
            return self._scope.get(atom, ({}, {(atom,): 1.0}))
        found = self._operation(atom)
        fixed = self._scope.keys().isdisjoint(symbols(atom[1]) | symbols(atom[2]))
        single = not found[0] and all(len(product) < 2 for product in found[1])
        if atom[0] not in ("//", "broadcast") or not fixed or not single:
            return found
        self._operations[str(atom)] = found[1]
        return {}, {(str(atom),): 1.0}

    def _operation(self, atom: Operation) -> Range:
        sign, left, right = atom
        a, b = self.note(left), self.note(right)
        match sign:
            case "//" if isinstance(right, int) and right:
                below, above = a if right > 0 else a[::-1]
                less = _sum(_times(below, 1 / abs(right)), {(): 1.0}) if below else {}
                return less, _times(above, 1 / abs(right))
            case "//":
                return self._divided(a, right) if not b[0] else (_reach(a), _reach(a))
            case "%":
                return b
            case "min":
                return _larger(a[0], b[0]), _smaller(a[1], b[1])
            case "max":
                return _smaller(a[0], b[0]), _larger(a[1], b[1])
        return _larger(a[0], b[0]), _larger(a[1], b[1])

    def _divided(self, left: Range, right: Size) -> Range:
        """What lies in a range, divided by a size that is not below zero."""
        terms = right.terms if isinstance(right, Expression) else {}
        by = next(iter(terms)) if len(terms) == 1 else ()
        names = [str(atom) for atom in by if atom not in self._scope]
        if len(names) < len(by):
            return left
        below, above = (_quotient(side, names) for side in left)
        return _sum(below, {(): 1.0}) if below else below, above

    def _range(self, value: Value, depth: int) -> tuple[Bound | None, Bound | None]:
        """How far below and above 0 an integer may lie; None where only elements tell."""
        match value:
            case Whole(size):
                return self._size(size)
            case Constant(number):
                return _number(int(number))
            case Cast(operand) if dtype_of(operand) in _NARROW:
                most: Bound = {(): float(_NARROW[dtype_of(operand)])}
                return most, most
            case Binary(name, left, right) if depth and name in ("add", "sub", "min", "max"):
                a = self._range(left, depth - 1)
                b = self._range(right, depth - 1)
                return _combined(name, a, b[::-1] if name == "sub" else b)
            case Select(_, then, other) if depth:
                a = self._range(then, depth - 1)
                b = self._range(other, depth - 1)
                return _both(_larger, a[0], b[0]), _both(_larger, a[1], b[1])
        return None, None


_OF_ELEMENTS: Range = ({}, {})
"""Of an integer that only elements tell: kernels hold it inside of an array before it is an index,
and places in arrays are bounded by the sizes of these."""


def _combined(
    name: str, a: tuple[Bound | None, Bound | None], b: tuple[Bound | None, Bound | None]
) -> tuple[Bound | None, Bound | None]:
    match name:
        case "min":
            return _both(_larger, a[0], b[0]), _one(a[1], b[1])
        case "max":
            return _one(a[0], b[0]), _both(_larger, a[1], b[1])
    return _both(_sum, a[0], b[0]), _both(_sum, a[1], b[1])


def _number(number: int) -> Range:
    size: Bound = {(): float(min(abs(number), LARGEST_NUMBER**4))}
    return ({}, {}) if not number else ({}, size) if number > 0 else (size, {})


def _scaled(factor: float, power: int) -> float:
    return factor * 2.0 ** min(power, 512)


def _reach(found: Range) -> Bound:
    """How far from 0 a number may lie, to either side."""
    return _larger(*found)


def _sum(left: Bound, right: Bound) -> Bound:
    made = dict(left)
    for product, factor in right.items():
        made[product] = made.get(product, 0.0) + factor
    return made


def _larger(left: Bound, right: Bound) -> Bound:
    """What is above both."""
    if not left or not right:
        return left or right
    made = dict(left)
    for product, factor in right.items():
        made[product] = max(made.get(product, 0.0), factor)
    return made


def _smaller(left: Bound, right: Bound) -> Bound:
    """The one of two bounds that is likely the better one: both hold."""
    if not left or not right:
        return {}
    alone = [bound for bound in (left, right) if bound.keys() == {()}]
    if not alone or alone[0][()] < SMALL:
        return alone[0] if alone else min(left, right, key=len)
    return right if alone[0] is left else left


def _multiplied(left: Range, right: Range) -> Range:
    return (
        _larger(_product(left[1], right[0]), _product(left[0], right[1])),
        _larger(_product(left[1], right[1]), _product(left[0], right[0])),
    )


def _product(left: Bound, right: Bound) -> Bound:
    made: Bound = {}
    for a, x in left.items():
        for b, y in right.items():
            names = tuple(sorted(a + b)) if a and b else a or b
            made[names] = made.get(names, 0.0) + x * y
    return made


def _quotient(bound: Bound, names: Sequence[str]) -> Bound:
    """A bound divided by a product; where that is no factor, by 1, which it is at least."""
    made: Bound = {}
    for product, factor in bound.items():
        rest = list(product)
        for name in names:
            if name not in rest:
                rest = list(product)
                break
            rest.remove(name)
        made[tuple(rest)] = made.get(tuple(rest), 0.0) + factor
    return made


def _times(bound: Bound, factor: float) -> Bound:
    return {product: own * factor for product, own in bound.items()}


def _both(
    join: Callable[[Bound, Bound], Bound], left: Bound | None, right: Bound | None
) -> Bound | None:
    return None if left is None or right is None else join(left, right)


def _one(left: Bound | None, right: Bound | None) -> Bound | None:
    """A bound of what is closer to 0 than either."""
    if left is None or right is None:
        return right if left is None else left
    return _smaller(left, right)
