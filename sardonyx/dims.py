"""Symbolic dimensions: whole-number expressions over named sizes, kept in one normal form.

An expression is a sum of products of atoms. An atom is a name, or an operation that a polynomial
cannot say: floor division, remainder, minimum, maximum, broadcast.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache, reduce
from typing import Union

Atom = Union[str, "Operation"]
Product = tuple[Atom, ...]
Size = Union[int, "Expression"]
"""A known or symbolic size. Unknown sizes are None and never enter an expression."""


HIDDEN = "_unknown"
"""What names of sizes begin with that no model gave."""
LARGEST_EXPRESSION = 500
"""An expression with more atoms than this, all levels counted, becomes one size of its own."""


class Operation(tuple[str, Size, Size]):
    """An atom such as `n // 2`: the operation's sign and its two operands."""

    __slots__ = ()

    def __str__(self) -> str:
        return _operation_text(self)


@lru_cache(maxsize=1 << 16)
def _operation_text(operation: Operation) -> str:
    sign, left, right = operation
    if sign in ("//", "%"):
        return f"{_parenthesized(left)}{sign}{_parenthesized(right)}"
    return f"{sign}({left}, {right})"


class Expression:
    """A symbolic size; made by `symbol` and arithmetic.

    >>> n = symbol("n")
    >>> print((n + 1) * 2 - n, (n * 4) // 2, n - n)
    n+2 2*n 0
    """

    __slots__ = ("_hash", "_text", "atoms", "terms")

    def __init__(self, terms: Mapping[Product, int]) -> None:
        self._text: str | None = None
        self.atoms = sum(_count(atom) for product in terms for atom in product)
        self.terms = dict(sorted(terms.items(), key=lambda item: [str(atom) for atom in item[0]]))
        self._hash = hash(tuple(self.terms.items()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expression) and self.terms == other.terms

    def __hash__(self) -> int:
        return self._hash

    def __add__(self, other: Size) -> Size:
        if not isinstance(other, _SIZES):
            return NotImplemented
        terms = dict(self.terms)
        for product, factor in _terms(other).items():
            terms[product] = terms.get(product, 0) + factor
        return _expression(terms)

    __radd__ = __add__

    def __neg__(self) -> Size:
        return self * -1

    def __sub__(self, other: Size) -> Size:
        return self + -other if isinstance(other, _SIZES) else NotImplemented

    def __rsub__(self, other: Size) -> Size:
        return -self + other

    def __mul__(self, other: Size) -> Size:
        if not isinstance(other, _SIZES):
            return NotImplemented
        terms: dict[Product, int] = {}
        for left, a in self.terms.items():
            for right, b in _terms(other).items():
                product = tuple(sorted(left + right, key=str))
                terms[product] = terms.get(product, 0) + a * b
        return _expression(terms)

    __rmul__ = __mul__

    def __floordiv__(self, other: Size) -> Size:
        return floor_divide(self, other)

    def __rfloordiv__(self, other: Size) -> Size:
        return floor_divide(other, self)

    def __mod__(self, other: Size) -> Size:
        return remainder(self, other)

    def __rmod__(self, other: Size) -> Size:
        return remainder(other, self)

    @property
    def symbols(self) -> frozenset[str]:
        """The names this expression depends on."""
        found: set[str] = set()
        for product in self.terms:
            for atom in product:
                if isinstance(atom, str):
                    found.add(atom)
                else:
                    for operand in atom[1:]:
                        found |= operand.symbols if isinstance(operand, Expression) else set()
        return frozenset(found)

    def substitute(self, sizes: Mapping[str, Size]) -> Size:
        """The expression with names replaced; a number where all of them are numbers.

        >>> (symbol("n") * 2 + 1).substitute({"n": 5})
        11
        """
        total: Size = 0
        for product, factor in self.terms.items():
            value: Size = factor
            for atom in product:
                value = value * _substitute(atom, sizes)
            total = total + value
        return total

    def __str__(self) -> str:
        if self._text is None:
            self._text = self._written()
        return self._text

    def _written(self) -> str:
        pieces = []
        for product, factor in self.terms.items():
            magnitude = abs(factor)
            alone = len(product) == 1 and magnitude == 1
            names = "*".join(
                f"({atom})" if isinstance(atom, Operation) and not alone else str(atom)
                for atom in product
            )
            body = (
                names
                if magnitude == 1 and names
                else f"{magnitude}*{names}"
                if names
                else str(magnitude)
            )
            pieces.append(("-" if factor < 0 else "+", body))
        pieces.sort(key=lambda piece: (piece[0] == "-", piece[1].isdigit()))
        text = "".join(sign + body for sign, body in pieces)
        return text.removeprefix("+")

    __repr__ = __str__


_SIZES = (int, Expression)


def symbol(name: str) -> Expression:
    """The size called `name`."""
    return Expression({(name,): 1})


def floor_divide(left: Size, right: Size) -> Size:
    """`left // right`; divides exactly where every term allows it."""
    if isinstance(left, int) and isinstance(right, int):
        return left // right if right else 0
    if right == 1:
        return left
    if left == right:
        return 1
    exact = _divide_terms(left, right)
    if exact is not None:
        return exact
    return _expression({(Operation(("//", left, right)),): 1})


def remainder(left: Size, right: Size) -> Size:
    """`left % right`."""
    if isinstance(left, int) and isinstance(right, int):
        return left % right if right else 0
    if right in (1, left) or _divide_terms(left, right) is not None:
        return 0
    return _expression({(Operation(("%", left, right)),): 1})


def ceil_divide(left: Size, right: Size) -> Size:
    """`left / right`, rounded up."""
    if isinstance(left, int) and isinstance(right, int):
        return -(-left // right) if right else 0
    exact = _divide_terms(left, right)
    return exact if exact is not None else floor_divide(left + right - 1, right)


def minimum(left: Size, right: Size) -> Size:
    """The smaller of two sizes."""
    return _extreme("min", min, left, right)


def maximum(left: Size, right: Size) -> Size:
    """The larger of two sizes."""
    return _extreme("max", max, left, right)


def broadcast(left: Size, right: Size) -> Size | None:
    """The size two dimensions have together under broadcasting; None where they do not fit.

    >>> broadcast(1, symbol("n")), broadcast(3, symbol("n")), broadcast(2, 3)
    (n, 3, None)
    """
    if right in (left, 1):
        return left
    if left == 1:
        return right
    if isinstance(left, int):
        return None if isinstance(right, int) else left
    if isinstance(right, int):
        return right
    for smaller, other in ((left, right), (right, left)):
        if _holds("min", smaller, other):
            return other
        if _holds("broadcast", smaller, other):
            return smaller
    first, second = sorted((left, right), key=str)
    return _expression({(Operation(("broadcast", first, second)),): 1})


def _holds(sign: str, size: Expression, other: Expression) -> bool:
    """True where `size` is one operation of that sign with `other` as an operand."""
    ((atoms, factor), *more) = size.terms.items()
    if more or factor != 1 or len(atoms) != 1 or isinstance(atoms[0], str):
        return False
    return atoms[0][0] == sign and other in atoms[0][1:]


def is_nonnegative(size: Size) -> bool:
    """True where a size cannot be below zero, whatever its names stand for.

    >>> n = symbol("n")
    >>> is_nonnegative(n * 2 + 1), is_nonnegative(n - 1)
    (True, False)
    """
    if isinstance(size, int):
        return size >= 0
    return all(
        factor >= 0 and all(map(_atom_is_nonnegative, atoms))
        for atoms, factor in size.terms.items()
    )


def _atom_is_nonnegative(atom: Atom) -> bool:
    if isinstance(atom, str):
        return True
    sign, left, right = atom
    if sign == "max":
        return is_nonnegative(left) or is_nonnegative(right)
    return is_nonnegative(left) and is_nonnegative(right)


def product(sizes: "tuple[Size, ...] | list[Size]") -> Size:
    """All sizes multiplied."""
    return reduce(lambda left, right: left * right, sizes, 1)


def _extreme(sign: str, choose: Callable[[int, int], int], left: Size, right: Size) -> Size:
    if isinstance(left, int) and isinstance(right, int):
        return choose(left, right)
    difference = left - right
    if isinstance(difference, int):
        return left if choose(difference, 0) == difference else right
    if is_nonnegative(difference):
        return left if sign == "max" else right
    if is_nonnegative(-difference):
        return right if sign == "max" else left
    first, second = sorted((left, right), key=str)
    return _expression({(Operation((sign, first, second)),): 1})


def _divide_terms(left: Size, right: Size) -> Size | None:
    """`left / right` where `right` is one product that divides every term of `left`."""
    divisor = _terms(right)
    if len(divisor) != 1 or isinstance(left, int):
        return None
    ((wanted, by),) = divisor.items()
    if by == 0:
        return None
    terms: dict[Product, int] = {}
    for atoms, factor in left.terms.items():
        rest = list(atoms)
        for atom in wanted:
            if atom not in rest:
                return None
            rest.remove(atom)
        if factor % by:
            return None
        terms[tuple(rest)] = factor // by
    return _expression(terms)


def _terms(size: Size) -> dict[Product, int]:
    return size.terms if isinstance(size, Expression) else {(): size}


def _expression(terms: dict[Product, int]) -> Size:
    kept = {atoms: factor for atoms, factor in terms.items() if factor}
    if not kept:
        return 0
    if len(kept) == 1 and () in kept:
        return kept[()]
    made = Expression(kept)
    return made if made.atoms <= LARGEST_EXPRESSION else symbol(f"{HIDDEN}_{hash(made):x}")


def _count(atom: Atom) -> int:
    """How many atoms an atom holds, itself counted."""
    if isinstance(atom, str):
        return 1
    return 1 + sum(item.atoms for item in atom[1:] if isinstance(item, Expression))


def _substitute(atom: Atom, sizes: Mapping[str, Size]) -> Size:
    if isinstance(atom, str):
        return sizes.get(atom, symbol(atom))
    sign, left, right = atom
    left = left.substitute(sizes) if isinstance(left, Expression) else left
    right = right.substitute(sizes) if isinstance(right, Expression) else right
    result = _OPERATIONS[sign](left, right)
    return 1 if result is None else result


_OPERATIONS: dict[str, Callable[[Size, Size], Size | None]] = {
    "//": floor_divide,
    "%": remainder,
    "min": minimum,
    "max": maximum,
    "broadcast": broadcast,
}


def _parenthesized(size: Size) -> str:
    text = str(size)
    return text if text.isidentifier() or text.isdigit() else f"({text})"
