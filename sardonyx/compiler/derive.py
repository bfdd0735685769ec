"""Names for quotients of sizes, so that sizes of the layers behind a stride stay short.

Behind a few strided layers an image's height would be `((h-2)//2-2)//2+1`, and its area the product
of two such sums. With a name for each quotient it is one name, which the program's plan computes.
"""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from sardonyx.dims import HIDDEN, Expression, Operation, Size, is_nonnegative_atom, product, symbol
from sardonyx.dtypes import DataType
from sardonyx.errors import InferenceError
from sardonyx.graph import Model, Node, Value
from sardonyx.loops.nodes import substitute, symbols
from sardonyx.ops.catalog import Catalog
from sardonyx.ops.fact import Fact, from_type
from sardonyx.ops.infer import Inference

QUOTIENT = re.compile(rf"{HIDDEN}_quotient\d{{6}}")
"""The names, which are in the order of their text."""


@dataclass(eq=False)
class Definitions:
    """Names with the sizes that they stand for, each of names that were there before it."""

    sizes: dict[str, Size] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    """Names that the model has given, which look like these."""
    _quotients: dict[Operation, Size] = field(default_factory=dict)

    def shape(self, size: Size) -> Size:
        """A size of a shape by names for its quotients.

        >>> n, definitions = symbol("n"), Definitions()
        >>> size = definitions.shape((n - 2) // 2 + 1)
        >>> print(size, definitions.shape(((n - 2) // 2) * 4 + 4), definitions.full(size))
        _unknown_quotient000000 4*_unknown_quotient000000 (n-2)//2+1
        """
        for operation in _quotients(size):
            if operation not in self._quotients:
                shift = _shift(size, operation)
                name = self._fresh()
                self.sizes[name] = Expression({(operation,): 1}) + shift
                self._quotients[operation] = symbol(name) - shift
        return self.content(size)

    def _fresh(self) -> str:
        number = len(self.sizes)
        while (name := f"{HIDDEN}_quotient{number:06}") in self.taken or name in self.sizes:
            number += 1
        return name

    def content(self, size: Size) -> Size:
        """A size by the names that there are."""
        if not isinstance(size, Expression) or self._quotients.keys().isdisjoint(_quotients(size)):
            return size
        total: Size = 0
        for atoms, factor in size.terms.items():
            parts = [
                self._quotients.get(atom) or Expression({(atom,): 1})
                if isinstance(atom, Operation)
                else symbol(atom)
                for atom in atoms
            ]
            total = total + product([factor, *parts])
        return total

    def one_level(self, size: Size) -> Size:
        """A size with the names in it replaced by what they stand for."""
        return substitute(size, self.sizes)

    def full(self, size: Size) -> Size:
        """A size by names of the model alone."""
        while not self.sizes.keys().isdisjoint(symbols(size)):
            size = substitute(size, self.sizes)
        return size

    def told(self, names: Iterable[str]) -> set[str]:
        """The names that must be told so that these are known."""
        found: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name in self.sizes:
                waiting.extend(symbols(self.sizes[name]))
            else:
                found.add(name)
        return found


class NamingInference(Inference):
    """Inference that gives quotients of sizes names."""

    trusting = False

    def __init__(
        self, model: Model, operators: Catalog, believing: Collection[DataType] = ()
    ) -> None:
        super().__init__(model, operators)
        self.definitions = Definitions()
        self.believed: dict[Node, None] = {}
        """Nodes of which only the model says what rank a result has: a run must check it."""
        self._believing = believing

    def _merged(self, fact: Fact, value: Value, where: str) -> Fact:
        said = from_type(value.declared)
        if fact.dtype and said.dtype and fact.dtype != said.dtype:
            raise InferenceError(
                f"'{value.name}' is declared as {said.dtype.text}, and is {fact.dtype.text}",
                where=where,
                hint="declare the element type that its node gives, or none",
            )
        fact, node = super()._merged(fact, value, where), value.producer
        unknown = fact.is_tensor and fact.shape is None and fact.dtype in self._believing
        if unknown and said.shape is not None and node and node.graph is self.model.graph:
            self.believed[node] = None
            sizes = tuple(size if isinstance(size, int) else None for size in said.shape)
            return replace(fact, shape=sizes)
        return fact

    def named(self, fact: Fact) -> Fact:
        """A fact with short sizes."""
        shape, value = fact.shape, fact.value
        given = {name for size in shape or () if isinstance(size, Expression)
                 for name in size.symbols - self.definitions.sizes.keys()}  # fmt: skip
        self.definitions.taken.update(filter(QUOTIENT.fullmatch, given))
        if shape is not None and any(isinstance(size, Expression) for size in shape):
            sizes = [None if size is None else self.definitions.shape(size) for size in shape]
            fact = replace(fact, shape=tuple(sizes))
        if value is not None and value.dtype == object:
            items = np.empty(value.size, object)
            items[:] = [
                self.definitions.content(item) if isinstance(item, Expression) else item
                for item in value.flat
            ]
            fact = replace(fact, value=items.reshape(value.shape))
        return super().named(fact)


def _quotients(size: Size) -> list[Operation]:
    """The quotients among the factors of a size's terms."""
    terms = size.terms if isinstance(size, Expression) else ()
    return [
        atom for atoms in terms for atom in atoms if isinstance(atom, Operation) and atom[0] == "//"
    ]


def _shift(size: Size, operation: Operation) -> int:
    """What to add to a quotient so that a size is a multiple of the sum; 0 if there is nothing.

    A quotient that cannot be below zero stays, since of a sum minus one that would not be known.
    """
    if is_nonnegative_atom(operation):
        return 0
    terms = dict(size.terms) if isinstance(size, Expression) else {}
    factor, rest = terms.pop((operation,), 0), terms.pop((), 0)
    return rest // factor if factor and not terms and rest % factor == 0 else 0
