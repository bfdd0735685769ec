"""How far a loop may run before it looks whether the run is to stop.

A look is a load and a branch. Loops that are known to end soon never look; others look so seldom
that it costs nothing beside what they do, and so often that a run ends within milliseconds.
"""

from sardonyx.compiler.estimate import DEAR, dear
from sardonyx.dims import Atom, Size
from sardonyx.loops.nodes import Guard, Kind, Let, Loop, Statement, Store, Update, values_in

BUDGET = 1 << 18
"""Elementary operations, of one element or of a vector, that may pass between two looks."""
STRIP = 1 << 13
"""Operations of a strip of a loop with a small body: it is a piece of what loops around it do."""
SMALL = 1 << 8
"""Operations of a small body."""


class Strips:
    """Finds for the loops of a kernel, by their bodies, after how many iterations they look."""

    def __init__(self, lanes: int) -> None:
        self._lanes = lanes
        self._known: dict[int, int] = {}

    def every(self, extent: Size, body: tuple[Statement, ...], step: int = 1) -> int:
        """So many iterations, each of `step` elements; 0 where no look is needed."""
        each = 1 + self._total(body)
        most = largest(extent)
        if most is not None and -(-most // step) * each <= BUDGET:
            return 0
        return max(1, (STRIP if each <= SMALL else BUDGET) // each)

    def unseen(self, statement: Statement) -> int:
        """The most operations that a statement does between two looks."""
        known = self._known.get(id(statement))
        if known is None:
            known = self._known[id(statement)] = self._unseen(statement)
        return known

    def _total(self, body: tuple[Statement, ...]) -> int:
        return sum(map(self.unseen, body))

    def _unseen(self, statement: Statement) -> int:
        match statement:
            case Loop(_, extent, body, Kind.UNROLL | Kind.TURN) if isinstance(extent, int):
                return extent * self._total(body)
            case Loop(_, _, body, Kind.STEPS):
                return self._total(body)
            case Loop(_, extent, body, kind):
                step = self._lanes if kind is Kind.VECTOR else 1
                each = 1 + self._total(body)
                every = self.every(extent, body, step)
                most = largest(extent) if every == 0 else every * step
                assert most is not None
                return -(-most // step) * each
            case Guard(_, _, body):
                return self._total(body)
            case Let() | Update() | Store():
                # Where the target has no such function, lanes are computed one after another.
                lanes = self._lanes * DEAR
                return 1 + sum(lanes if dear(item) else 1 for item in values_in((statement,)))
        return 1


def largest(size: Size) -> int | None:
    """The most that a size can be; None where nothing bounds it.

    >>> from sardonyx.dims import symbol
    >>> largest(symbol("n") % 4 + 2), largest(symbol("n"))
    (5, None)
    """
    if isinstance(size, int):
        return max(size, 0)
    total = 0
    for product, factor in size.terms.items():
        most = 1 if not product else _bound(product[0]) if len(product) == 1 else None
        if most is None or (product and factor < 0):
            return None
        total += factor * most
    return max(total, 0)


def _bound(atom: Atom) -> int | None:
    """The most that an operation on sizes can be, where that is easily told."""
    if isinstance(atom, str):
        return None
    sign, left, right = atom
    if sign == "%" and isinstance(right, int) and right > 0:
        return right - 1
    if sign == "min":
        return min((most for most in map(largest, (left, right)) if most is not None), default=None)
    return None
