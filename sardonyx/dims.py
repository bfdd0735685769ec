"""Symbolic dimensions: whole-number expressions over named sizes, kept in one normal form.

An expression is a sum of products of atoms. An atom is a name, or an operation that a polynomial
cannot say: floor division, remainder, minimum, maximum, broadcast.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, reduce
from hashlib import blake2b
from typing import Union

Atom = Union[str, "Operation"]
Product = tuple[Atom, ...]
Size = Union[int, "Expression"]
"""A known or symbolic size. Unknown sizes are None and never enter an expression."""


HIDDEN = "_unknown"
"""What names of sizes begin with that no model gave."""
LARGEST_EXPRESSION = 500
"""An expression with more atoms than this, all levels counted, becomes one size of its own."""
LARGEST_NUMBER = 1 << 50
"""A number beyond this in an expression is no size, nor the distance of a position from one."""
LARGEST_ELEMENT = 1 << 31
"""A number up to which arithmetic on elements, which wraps around, is arithmetic on sizes."""
LARGEST_GROUPS = 12
"""Sizes under nested minima and maxima, beyond which these are left as they are."""


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

    __slots__ = ("_hash", "_symbols", "_text", "atoms", "terms")

    def __init__(self, terms: dict[Product, int]) -> None:
        self._text: str | None = None
        self._hash: int | None = None
        self._symbols: frozenset[str] | None = None
        self.terms = terms
        self.atoms = 0
        for product in terms:
            for atom in product:
                self.atoms += 1 if atom.__class__ is str else _count(atom)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Expression) and self.terms == other.terms

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self.terms.items()))
        return self._hash

    def __add__(self, other: Size) -> Size:
        if isinstance(other, Expression):
            terms = dict(self.terms)
            for product, factor in other.terms.items():
                terms[product] = terms.get(product, 0) + factor
            return _expression(terms)
        if not isinstance(other, int):
            return NotImplemented
        return _expression(self.terms | {(): self.terms.get((), 0) + other}) if other else self

    __radd__ = __add__

    def __neg__(self) -> Size:
        return self * -1

    def __sub__(self, other: Size) -> Size:
        if isinstance(other, Expression):
            terms = dict(self.terms)
            for product, factor in other.terms.items():
                terms[product] = terms.get(product, 0) - factor
            return _expression(terms)
        return self + -other if isinstance(other, int) else NotImplemented

    def __rsub__(self, other: Size) -> Size:
        return -self + other

    def __mul__(self, other: Size) -> Size:
        if isinstance(other, Expression):
            terms: dict[Product, int] = {}
            for left, a in self.terms.items():
                for right, b in other.terms.items():
                    product = _joined(left, right)
                    terms[product] = terms.get(product, 0) + a * b
            return _expression(terms)
        if not isinstance(other, int):
            return NotImplemented
        if other == 1:
            return self
        return Expression({key: a * other for key, a in self.terms.items()}) if other else 0

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
        if self._symbols is None:
            found: set[str] = set()
            for product in self.terms:
                for atom in product:
                    if isinstance(atom, str):
                        found.add(atom)
                    else:
                        found |= _operation_symbols(atom)
            self._symbols = frozenset(found)
        return self._symbols

    def substitute(self, sizes: Mapping[str, Size]) -> Size:
        """The expression with names replaced; a number where all of them are numbers.

        >>> (symbol("n") * 2 + 1).substitute({"n": 5})
        11
        """
        if self.symbols.isdisjoint(sizes):
            return self
        total: Size = 0
        kept: dict[Product, int] = {}
        for product, factor in self.terms.items():
            value: Size = factor
            rest = product
            for atom in product:
                found = sizes.get(atom) if isinstance(atom, str) else _substitute(atom, sizes)
                if found is not None:
                    value = value * found
                    place = rest.index(atom)
                    rest = rest[:place] + rest[place + 1 :]
            if isinstance(value, int):
                kept[rest] = kept.get(rest, 0) + value
            else:
                total = total + value * Expression({rest: 1}) if rest else total + value
        return total + _expression(kept)

    def growth(self, name: str) -> Size | None:
        """By how much the expression grows with a name; None where that is not one size.

        >>> n, m = symbol("n"), symbol("m")
        >>> print((n * m * 2 + n + 5).growth("n"), (n * n).growth("n"), (n // 2).growth("n"))
        2*m+1 None None
        """
        terms: dict[Product, int] = {}
        for product, factor in self.terms.items():
            if name in product:
                place = product.index(name)
                rest = product[:place] + product[place + 1 :]
                terms[rest] = factor
            else:
                rest = product
            for atom in rest:
                if atom == name if isinstance(atom, str) else name in _operation_symbols(atom):
                    return None
        return _expression(terms)

    def __str__(self) -> str:
        if self._text is None:
            self._text = self._written()
        return self._text

    def _written(self) -> str:
        pieces = []
        for product, factor in sorted(self.terms.items(), key=_texts):
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


def _operation_symbols(atom: Operation) -> frozenset[str]:
    _, left, right = atom
    found = left.symbols if isinstance(left, Expression) else frozenset()
    return found | right.symbols if isinstance(right, Expression) else found


def _texts(term: tuple[Product, int]) -> list[str]:
    return [str(atom) for atom in term[0]]


def _joined(left: Product, right: Product) -> Product:
    """Two products as one, atoms in the order of their texts."""
    if not left or not right:
        return left or right
    return tuple(sorted(left + right, key=str))


@lru_cache(maxsize=1 << 12)
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
    >>> n, m = symbol("n"), symbol("m")
    >>> broadcast(n, broadcast(m, broadcast(n, minimum(m, 5))))
    broadcast(m, n)
    """
    if right in (left, 1):
        return left
    if left == 1:
        return right
    if isinstance(left, int):
        return None if isinstance(right, int) else left
    if isinstance(right, int):
        return right
    parts = dict.fromkeys([*_operands(left, "broadcast"), *_operands(right, "broadcast")])
    return _nested("broadcast", [part for part in parts if not _clips(part, parts)])


def _clips(size: Size, others: Iterable[Size]) -> bool:
    """True where a size is the smaller of another one and something, and so 1 where they differ."""
    joined = _operands(size, "min")
    return len(joined) > 1 and any(other in joined for other in others)


def _operands(size: Size, sign: str) -> list[Size]:
    """What an operation joins, through all levels of it; a size itself where it is none such."""
    terms = _terms(size)
    if len(terms) == 1:
        ((atoms, factor),) = terms.items()
        if factor == 1 and len(atoms) == 1 and not isinstance(atoms[0], str):
            found, left, right = atoms[0]
            if found == sign:
                return _operands(left, sign) + _operands(right, sign)
    return [size]


def is_nonnegative(size: Size) -> bool:
    """True where a size cannot be below zero, whatever its names stand for.

    >>> n = symbol("n")
    >>> is_nonnegative(n * 2 + 1), is_nonnegative(n - 1)
    (True, False)
    """
    if isinstance(size, int):
        return size >= 0
    return all(
        factor >= 0 and all(map(is_nonnegative_atom, atoms)) for atoms, factor in size.terms.items()
    )


def is_nonnegative_atom(atom: Atom) -> bool:
    """True where one factor of a size cannot be below zero."""
    if isinstance(atom, str):
        return True
    sign, left, right = atom
    if sign == "max":
        return is_nonnegative(left) or is_nonnegative(right)
    return is_nonnegative(left) and is_nonnegative(right)


def is_small(size: Size, most: int = LARGEST_NUMBER) -> bool:
    """True where no number in a size is beyond `most`, so that it can be computed in 64 bits.

    >>> is_small(symbol("n") * 2 + 1), is_small(maximum(symbol("n") - 2**62, 0))
    (True, False)
    """
    if isinstance(size, int):
        return -most <= size <= most
    return all(
        -most <= factor <= most
        and all(isinstance(atom, str) or all(is_small(item, most) for item in atom[1:])
                for atom in atoms)
        for atoms, factor in size.terms.items()
    )  # fmt: skip


def product(sizes: "tuple[Size, ...] | list[Size]") -> Size:
    """All sizes multiplied."""
    return reduce(lambda left, right: left * right, sizes, 1)


Groups = tuple[tuple[Size, ...], ...]
"""The largest of the smallest size of each group."""


def _extreme(sign: str, choose: Callable[[int, int], int], left: Size, right: Size) -> Size:
    """The smaller or larger size; what is nested is written anew, so that it does not grow.

    Steps that clip again what is clipped already give the same size, not a longer one.
    """
    if isinstance(left, int) and isinstance(right, int):
        return choose(left, right)
    a, b = _groups(left), _groups(right)
    joined = _largest(a, b) if sign == "max" else _smallest(a, b)
    if sum(map(len, joined)) > LARGEST_GROUPS:
        first, second = sorted((left, right), key=str)
        return _expression({(Operation((sign, first, second)),): 1})
    return _nested("max", [_nested("min", group) for group in joined])


def _nested(sign: str, sizes: Iterable[Size]) -> Size:
    first, *rest = sorted(sizes, key=str)
    for size in rest:
        first = _expression({(Operation((sign, first, size)),): 1})
    return first


def _groups(size: Size) -> Groups:
    """A size with one minimum or maximum among its terms as the largest of smallest sizes."""
    found = [
        (atoms[0], factor)
        for atoms, factor in _terms(size).items()
        if len(atoms) == 1 and isinstance(atoms[0], Operation) and atoms[0][0] in ("min", "max")
    ]
    if len(found) != 1 or abs(found[0][1]) != 1:
        return ((size,),)
    ((operation, factor),) = found
    sign, left, right = operation
    rest = size - Expression({(operation,): factor})
    a, b = _groups(left * factor), _groups(right * factor)
    joined = _largest(a, b) if (sign == "max") == (factor == 1) else _smallest(a, b)
    return tuple(tuple(item + rest for item in group) for group in joined)


def _largest(left: Groups, right: Groups) -> Groups:
    kept: list[tuple[Size, ...]] = []
    for group in (*left, *right):
        if not any(_below(group, other) for other in kept):
            kept = [other for other in kept if not _below(other, group)] + [group]
    return tuple(kept)


def _smallest(left: Groups, right: Groups) -> Groups:
    joined: Groups = ()
    for a in left:
        for b in right:
            kept: list[Size] = []
            for size in (*a, *b):
                if not any(is_nonnegative(size - other) for other in kept):
                    kept = [other for other in kept if not is_nonnegative(other - size)] + [size]
            joined = _largest(joined, (tuple(kept),))
    return joined


def _below(left: tuple[Size, ...], right: tuple[Size, ...]) -> bool:
    """True where the smallest size on the left cannot be above the smallest one on the right."""
    return all(any(is_nonnegative(large - small) for small in left) for large in right)


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
    if 0 in terms.values():
        terms = {atoms: factor for atoms, factor in terms.items() if factor}
    if not terms:
        return 0
    if len(terms) == 1 and () in terms:
        return terms[()]
    made = Expression(terms)
    return made if made.atoms <= LARGEST_EXPRESSION else symbol(f"{HIDDEN}_{_digest(made)}")


def _digest(size: Expression) -> str:
    """A few letters that tell a long expression from others."""
    return blake2b(str(size).encode(), digest_size=8).hexdigest()


def _count(atom: Atom) -> int:
    """How many atoms an atom holds, itself counted."""
    if isinstance(atom, str):
        return 1
    return 1 + sum(item.atoms for item in atom[1:] if isinstance(item, Expression))


def _substitute(atom: Operation, sizes: Mapping[str, Size]) -> Size | None:
    """What an operation becomes; None where it stays as it is."""
    sign, left, right = atom
    left = left.substitute(sizes) if isinstance(left, Expression) else left
    right = right.substitute(sizes) if isinstance(right, Expression) else right
    if left is atom[1] and right is atom[2]:
        return None
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
