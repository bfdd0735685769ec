"""How many elementary operations a kernel does for given sizes, at most."""

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
    Whole,
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


def estimate(kernel: Kernel, code: Code) -> tuple[str, bool]:
    """The most operations of all of a kernel's tasks and steps, a number or a name in `code`.

    It may be many times too much, since of code for small and large sizes only one runs. True where
    a loop goes as far as numbers found in memory say: it counts as the longest of the others.
    """
    plain = [item.extent for item in walk(kernel.body) if isinstance(item, Loop)]
    known = frozenset(kernel.parameters)
    counts = sorted({code.count(size) for size in plain if symbols(size) <= known})
    longest = code.named(f"max({', '.join(counts)}, 1)") if counts else "1"
    made = _Estimate(known, code, longest)
    return code.named(made.body(kernel.body, {}, {})), made.varies


Bounds = dict[str, Size]
"""For variables of loops the extents, for other names what they are at most."""


class _Estimate:
    def __init__(self, known: frozenset[str], code: Code, unknown: str) -> None:
        self.known = known
        self.code = code
        self.unknown = unknown
        self.varies = False

    def body(self, body: tuple[Statement, ...], bounds: Bounds, names: Bounds) -> str:
        """What statements do, as source; `names` has those that stand for a size."""
        plain, terms, bounds, names = 0, [], dict(bounds), dict(names)
        for statement in body:
            text = self.statement(statement, bounds, names)
            if text.isdecimal():
                plain += int(text)
            else:
                terms.append(text)
        return " + ".join([*terms, str(plain)]) if terms else str(plain)

    def statement(self, statement: Statement, bounds: Bounds, names: Bounds) -> str:
        match statement:
            case Loop(index, extent, body):
                most = _most(substitute(extent, names), bounds)
                known = symbols(most) <= self.known
                self.varies |= not known
                count = self.code.count(most) if known else self.unknown
                inner = self.body(body, {**bounds, index: most} if known else bounds, names)
                if count.isdecimal() and inner.isdecimal():
                    return str(int(count) * max(int(inner), 1))
                return f"{count}*({inner})"
            case Guard(_, _, body):
                return self.body(body, bounds, names)
            case Let(name, Whole(size)):
                names[name] = substitute(size, names)
                return "1"
            case Let(name, Binary("min", left, right)):
                ends = [_most(substitute(item.size, names), bounds)
                        for item in (left, right) if isinstance(item, Whole)]  # fmt: skip
                sure = [end for end in ends if symbols(end) <= self.known]
                if sure:
                    bounds[name] = sure[0]
        if isinstance(statement, Let | Update | Store):
            return str(1 + DEAR * sum(map(dear, values_in((statement,)))))
        return "0"


def _most(extent: Size, bounds: Bounds) -> Size:
    """An extent where the names that it depends on are what makes it longest."""
    for name in symbols(extent) & bounds.keys():
        ends = (substitute(extent, {name: end}) for end in (0, bounds[name]))
        extent = maximum(*ends)
    return extent
