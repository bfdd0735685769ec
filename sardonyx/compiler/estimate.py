"""How many elementary operations a kernel does for given sizes, at most and about."""

from collections.abc import Mapping

from sardonyx.compiler.sizes import Code
from sardonyx.dims import Size, maximum
from sardonyx.loops.nodes import (
    Binary,
    Guard,
    Kernel,
    Let,
    Loop,
    Pick,
    Statement,
    Store,
    Unary,
    Update,
    Value,
    substitute,
    symbols,
    values_in,
    walk,
)

CHEAP = frozenset(["neg", "abs", "not", "sqrt", "floor", "ceil", "rint", "reciprocal"])
DEAR = 16
"""Operations that a function such as exp counts as, or an element somewhere in memory."""


def dear(value: Value) -> bool:
    """Whether a value takes many times as long as a sum of two."""
    match value:
        case Pick() | Binary(name="pow" | "mod"):
            return True
        case Unary(name, _):
            return name not in CHEAP
    return False


def estimate(kernel: Kernel, code: Code) -> str:
    """The operations of all of a kernel's tasks and steps: a number, or a name in `code`.

    A loop that goes as far as numbers found in memory say counts as the longest of the others.
    """
    return _Estimate(kernel, code).total()


class _Estimate:
    def __init__(self, kernel: Kernel, code: Code) -> None:
        self.kernel = kernel
        self.code = code
        self.known = frozenset(kernel.parameters)
        counts = {
            code.count(item.extent)
            for item in walk(kernel.body)
            if isinstance(item, Loop) and symbols(item.extent) <= self.known
        }
        self.longest = code.named(f"max({', '.join(sorted(counts))}, 1)") if counts else "1"

    def total(self) -> str:
        return self.code.named(self.body(self.kernel.body, {}))

    def body(self, body: tuple[Statement, ...], bounds: Mapping[str, Size]) -> str:
        """What statements do, as source; `bounds` has the extents of the loops around them."""
        plain, terms = 0, []
        for statement in body:
            text = self.statement(statement, bounds)
            if text.isdecimal():
                plain += int(text)
            else:
                terms.append(text)
        return " + ".join([*terms, str(plain)]) if terms else str(plain)

    def statement(self, statement: Statement, bounds: Mapping[str, Size]) -> str:
        match statement:
            case Loop(index, extent, body):
                most = _most(extent, bounds)
                known = symbols(most) <= self.known
                count = self.code.count(most) if known else self.longest
                inner = self.body(body, {**bounds, index: most} if known else bounds)
                if count.isdecimal() and inner.isdecimal():
                    return str(int(count) * max(int(inner), 1))
                return f"{count}*({inner})"
            case Guard(_, _, body):
                return self.body(body, bounds)
            case Let() | Update() | Store():
                found = sum(map(dear, values_in((statement,))))
                return str(1 + DEAR * found)
        return "0"


def _most(extent: Size, bounds: Mapping[str, Size]) -> Size:
    """An extent where the variables of loops around it are what makes it longest."""
    for name in symbols(extent) & bounds.keys():
        ends = (substitute(extent, {name: end}) for end in (0, bounds[name]))
        extent = maximum(*ends)
    return extent
