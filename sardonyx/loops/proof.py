"""Proofs that sizes are not below zero, given between which sizes names lie and other facts."""

from collections.abc import Iterator, Mapping
from dataclasses import field

from sardonyx.dims import Atom, Expression, Operation, Product, Size, floor_divide, is_nonnegative
from sardonyx.loops.nodes import substitute, symbols
from sardonyx.record import record

MOST_STEPS = 400
"""Steps of a proof after which it is given up."""
DEEPEST = 12
"""Cases and facts that one proof may build upon."""


@record
class Range:
    """Between which sizes a name lies; a loop takes it to both of them."""

    name: str
    low: Size
    high: Size
    loop: bool = True


@record
class Scope:
    """Names with a range, the innermost last, and sizes that are not below zero at a place."""

    ranges: tuple[Range, ...] = ()
    facts: tuple[Size, ...] = ()
    partial: bool = False
    """Whether it is passed only in some of the iterations of the loops around it."""
    unknown: frozenset[str] = frozenset()
    """Names that may stand for anything."""
    named: Mapping[str, Size] = field(default_factory=dict)
    """What other names stand for."""

    @property
    def bound(self) -> frozenset[str]:
        """Names that are no parameters."""
        return self.unknown | {item.name for item in self.ranges}

    def size(self, size: Size) -> Size:
        """A size without the names that are known."""
        return substitute(size, self.named)  # type: ignore[arg-type]


class Proof:
    """That sizes are not below zero in a scope."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.steps = 0
        self.below = scope.unknown | {
            item.name for item in scope.ranges if not item.loop and not is_nonnegative(item.low)
        }
        """Names that may be below zero."""

    def holds(self, size: Size) -> bool:
        """Whether it can be shown."""
        return self.try_(size, self.scope.facts, DEEPEST)

    def try_(self, size: Size, facts: tuple[Size, ...], depth: int) -> bool:
        self.steps += 1
        if isinstance(size, int):
            return size >= 0
        if self.plain(size):
            return True
        if depth == 0 or self.steps > MOST_STEPS:
            return False
        for fact in facts:
            left = size - fact
            if self.plain(left):
                return True
        if self.without_operations(size, facts, depth - 1):
            return True
        joined = _joined_quotients(size, facts)
        return joined != size and self.try_(joined, facts, depth - 1)

    def plain(self, size: Size) -> bool:
        """True where all terms are of names that are not below zero, with no minus."""
        return is_nonnegative(size) and self.below.isdisjoint(symbols(size))

    def without_operations(self, size: Expression, facts: tuple[Size, ...], depth: int) -> bool:
        """By the operations in a size, one after another, then by its loops and facts."""
        for atom in operations(size):
            if atom[0] in ("min", "max", "broadcast"):
                return self.either(size, atom, facts, depth)
        for atom in operations(size):
            bounds = self.quotient_bounds(atom, facts, depth)
            growth = _growth(size, atom)
            if growth is None:
                continue
            if self.plain(growth) and bounds[0] is not None:
                return self.try_(_put(size, atom, bounds[0]), facts, depth)
            if self.plain(-growth) and bounds[1] is not None:
                return self.try_(_put(size, atom, bounds[1]), facts, depth)
        return self.by_facts(size, facts, depth) or self.without_loops(size, facts, depth)

    def either(
        self, size: Expression, atom: Operation, facts: tuple[Size, ...], depth: int
    ) -> bool:
        """By both cases of a minimum, maximum or broadcast."""
        sign, left, right = atom
        known = {"min": (right - left, left - right), "max": (left - right, right - left)}
        first, second = known.get(sign, (0, 0))
        return all(
            self.try_(_put(size, atom, chosen), (*_put_all(facts, atom, chosen), more), depth)
            for chosen, more in ((left, first), (right, second))
        )

    def quotient_bounds(
        self, atom: Operation, facts: tuple[Size, ...], depth: int
    ) -> tuple[Size | None, Size | None]:
        """Between which sizes a quotient or remainder by what is above zero lies."""
        sign, left, right = atom
        if depth < 1 or not self.try_(right - 1, facts, depth - 1):
            return None, None
        if sign == "%":
            return 0, right - 1
        most = self.greatest(left, facts, depth - 1)
        upper = None
        if most is not None:
            upper = _divided(most, right)
        return (0 if self.try_(left, facts, depth - 1) else None), upper

    def greatest(self, size: Size, facts: tuple[Size, ...], depth: int) -> Size | None:
        """What a size is at most, over all loops; None where that is not clear."""
        if isinstance(size, Expression):
            for atom in list(operations(size)):
                growth = _growth(size, atom) if isinstance(size, Expression) else None
                if growth is None or not self.plain(growth) or atom[0] not in ("//", "%"):
                    return None
                upper = self.quotient_bounds(atom, facts, depth)[1]
                if upper is None:
                    return None
                size = _put(size, atom, upper)
        for item in reversed(self.scope.ranges):
            if item.name in symbols(size):
                assert isinstance(size, Expression)
                growth = size.growth(item.name)
                if growth is None:
                    return None
                if not self.plain(growth) and not self.plain(-growth):
                    return None
                end = item.high if self.plain(growth) else item.low
                size = substitute(size, {item.name: end})
        return size

    def without_loops(self, size: Expression, facts: tuple[Size, ...], depth: int) -> bool:
        """By the ends of the innermost loop that a size depends on."""
        for item in reversed(self.scope.ranges):
            if item.name not in size.symbols:
                continue
            growth = size.growth(item.name)
            if growth is None:
                return False
            ends = [item.low, item.high]
            if self.plain(growth):
                ends = [item.low]
            elif self.plain(-growth):
                ends = [item.high]
            kept = tuple(fact for fact in facts if item.name not in symbols(fact))
            return all(self.try_(substitute(size, {item.name: end}), kept, depth) for end in ends)
        return False

    def by_facts(self, size: Expression, facts: tuple[Size, ...], depth: int) -> bool:
        """By a fact that, multiplied, takes away one of the terms."""
        for fact in reversed(facts):
            if isinstance(fact, int):
                continue
            for factor in _multiples(size, fact):
                left = size - fact * factor
                if isinstance(left, int):
                    if left >= 0:
                        return True
                elif self.try_(left, tuple(item for item in facts if item is not fact), depth - 4):
                    return True
        return False


def _multiples(size: Expression, fact: Expression) -> Iterator[Size]:
    """By what a fact is multiplied so that one of its terms is one of a size's."""
    found: dict[Size, None] = {}
    for product, factor in size.terms.items():
        for own, amount in fact.terms.items():
            if not own or factor * amount <= 0 or abs(factor) < abs(amount):
                continue
            rest = _without(product, own)
            if rest is not None:
                count = factor // amount
                found[Expression({rest: count}) if rest else count] = None
    yield from (item for item in found if is_nonnegative(item))


def _without(product: Product, part: Product) -> Product | None:
    rest = list(product)
    for atom in part:
        if atom not in rest:
            return None
        rest.remove(atom)
    return tuple(rest)


def operations(size: Expression) -> Iterator[Operation]:
    """The operations that a size is a sum of products of."""
    for product in size.terms:
        for atom in product:
            if isinstance(atom, Operation):
                yield atom


def _growth(size: Expression, atom: Atom) -> Size | None:
    """By how much a size grows with an atom; None where that is not one size."""
    terms: dict[Product, int] = {}
    for product, factor in size.terms.items():
        if product.count(atom) > 1:
            return None
        if atom in product:
            rest = _without(product, (atom,))
            assert rest is not None
            terms[rest] = factor
    total: Size = 0
    for rest, factor in terms.items():
        total = total + (Expression({rest: factor}) if rest else factor)
    return total


def _put(size: Size, atom: Atom, other: Size) -> Size:
    """A size with another in the place of an atom."""
    if isinstance(size, int):
        return size
    total: Size = 0
    for product, factor in size.terms.items():
        value: Size = factor
        for item in product:
            value = value * (other if item == atom else Expression({(item,): 1}))
        total = total + value
    return total


def _put_all(sizes: tuple[Size, ...], atom: Atom, other: Size) -> tuple[Size, ...]:
    return tuple(_put(size, atom, other) for size in sizes)


def _joined_quotients(size: Expression, facts: tuple[Size, ...]) -> Size:
    """A size with `a - a % b` in the place of `a // b * b`, where b is known to be above zero."""
    for atom in dict.fromkeys(operations(size)):
        sign, left, right = atom
        if sign != "//":
            continue
        divisor = right.terms if isinstance(right, Expression) else {(): right}
        if len(divisor) > 1:
            continue
        ((by, factor),) = divisor.items()
        if factor < 1 or (by and right - 1 not in facts):
            continue
        rest = Expression({(Operation(("%", left, right)),): 1})
        for product, count in size.terms.items():
            others = _without(product, (atom, *by))
            if others is not None and count % factor == 0:
                term = Expression({product: count})
                more: Size = count // factor
                if others:
                    more = Expression({others: count // factor})
                made = size - term + (left - rest) * more
                return _joined_quotients(made, facts) if isinstance(made, Expression) else made
    return size


def _divided(most: Size, right: Size) -> Size | None:
    """What a quotient is at most whose dividend is at most so much, as far as it is one size."""
    if isinstance(most, int) and isinstance(right, int):
        return most // right
    for more in (1, 0):
        whole = floor_divide(most + more, right)
        if whole * right == most + more:
            return whole - more
    terms = most.terms if isinstance(most, Expression) else {(): most}
    if isinstance(right, int):
        rest = {product: count for product, count in terms.items() if product}
        if all(count % right == 0 for count in rest.values()):
            whole = 0
            for product, count in rest.items():
                whole = whole + Expression({product: count // right})
            return whole + terms.get((), 0) // right
    return None
