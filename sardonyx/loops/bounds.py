"""Whether the indices of a kernel stay inside of its arrays, by reasoning about sizes.

Loops say in which range their variables lie, guards and loops that run say which sizes are not
below zero, and parameters are sizes. What follows from that is proven; what is outside in the first
or last iteration of loops without a guard around is wrong; about the rest nothing is said.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from enum import Enum
from typing import Any

from sardonyx.dims import (
    Expression,
    Size,
    is_nonnegative,
    maximum,
    minimum,
    symbol,
)
from sardonyx.dtypes import DataType
from sardonyx.loops.nodes import (
    Binary,
    Cast,
    Constant,
    Guard,
    Kernel,
    Let,
    Load,
    Local,
    Loop,
    Read,
    Register,
    Statement,
    Store,
    Update,
    Value,
    Whole,
    dtype_of,
    operands,
    substitute,
    symbols,
)
from sardonyx.loops.proof import Proof, Range, Scope, operations
from sardonyx.record import record


class Verdict(Enum):
    """What is known of an access."""

    INSIDE = "inside"
    UNKNOWN = "unknown"
    OUTSIDE = "outside"


@record
class Judged:
    """An index of an access, the extent it must stay below, and what is known about that."""

    memory: str
    index: Size
    extent: Size
    verdict: Verdict

    def __str__(self) -> str:
        return f"{self.memory}: {self.index} of {self.extent} is {self.verdict.value}"


def judge(kernel: Kernel) -> Iterator[Judged]:
    """Every index of every load, store and register of a kernel."""
    yield from _Judge({}).body(kernel.body, Scope())


def wrong_accesses(kernel: Kernel) -> Iterator[Judged]:
    """Indices that are outside whenever their loops run."""
    yield from _Judge({}, prove=False).body(kernel.body, Scope())


class _Judge:
    def __init__(self, shapes: dict[str, tuple[int, ...]], *, prove: bool = True) -> None:
        self.shapes = shapes
        """Of registers."""
        self.prove = prove

    def body(self, body: tuple[Statement, ...], scope: Scope) -> Iterator[Judged]:
        for statement in body:
            match statement:
                case Loop(index, extent, inner):
                    extent = scope.size(extent)
                    if isinstance(extent, int) and extent < 1:
                        continue
                    facts = (*scope.facts, *_runs(extent))
                    ranges = (*scope.ranges, Range(index, 0, extent - 1))
                    same = symbols(extent).isdisjoint(scope.bound)
                    inside = replace(
                        scope, ranges=ranges, facts=facts, partial=scope.partial or not same
                    )
                    yield from self.body(inner, inside)
                case Guard(left, right, inner):
                    facts = (*scope.facts, scope.size(right - left - 1))
                    yield from self.body(inner, replace(scope, facts=facts, partial=True))
                case Let(name, Whole(size)):
                    scope = replace(scope, named={**scope.named, name: scope.size(size)})
                case Let(name, value):
                    yield from self.value(value, scope)
                    scope = _named(name, _limits(value, scope), scope)
                case Register(name, _, shape):
                    self.shapes[name] = shape
                case Update(name, _, value, indices):
                    yield from self.value(value, scope)
                    yield from self.access(name, indices, self.shapes[name], scope)
                case Store(buffer, indices, value):
                    yield from self.value(value, scope)
                    yield from self.access(buffer.memory, indices, buffer.shape, scope)
                case Local():
                    pass

    def value(self, value: Value, scope: Scope) -> Iterator[Judged]:
        seen: set[int] = set()
        waiting = [value]
        while waiting:
            item = waiting.pop()
            if id(item) in seen:
                continue
            seen.add(id(item))
            waiting.extend(operands(item))
            match item:
                case Load(buffer, indices):
                    yield from self.access(buffer.memory, indices, buffer.shape, scope)
                case Read(name, _, indices):
                    yield from self.access(name, indices, self.shapes[name], scope)

    def access(
        self, memory: str, indices: tuple[Size, ...], shape: tuple[Size, ...], scope: Scope
    ) -> Iterator[Judged]:
        for index, extent in zip(indices, shape, strict=True):
            if index == 0 and not self.prove:
                continue
            verdict = self.verdict(scope.size(index), scope.size(extent), scope)
            if self.prove or verdict is Verdict.OUTSIDE:
                yield Judged(memory, index, extent, verdict)

    def verdict(self, index: Size, extent: Size, scope: Scope) -> Verdict:
        sides = (index, extent - 1 - index)
        if not scope.partial and any(_is_surely_negative(side, scope) for side in sides):
            return Verdict.OUTSIDE
        if self.prove and all(Proof(scope).holds(side) for side in sides):
            return Verdict.INSIDE
        return Verdict.UNKNOWN


def _runs(extent: Size) -> Iterator[Size]:
    """What is not below zero where a loop of an extent runs."""
    if isinstance(extent, int):
        return
    yield extent - 1
    for atom in operations(extent):
        sign, left, right = atom
        rest = extent - Expression({(atom,): 1})
        if sign == "//" and isinstance(right, int) and isinstance(rest, int) and right > 0:
            yield left - right * (1 - rest)
    if len(extent.terms) == 1:
        ((product, _),) = extent.terms.items()
        yield from (Expression({(atom,): 1}) - 1 for atom in product if len(product) > 1)


Limits = tuple[Size | None, Size | None]
"""What a value is at least and at most, where that is known."""


def _named(name: str, limits: Limits, scope: Scope) -> Scope:
    """A scope with one more name, of which so much is known."""
    low, high = limits
    if low is not None and high is not None:
        return replace(scope, ranges=(*scope.ranges, Range(name, low, high, loop=False)))
    facts = scope.facts
    if low is not None:
        facts = (*facts, symbol(name) - low)
    if high is not None:
        facts = (*facts, high - symbol(name))
    return replace(scope, facts=facts, unknown=scope.unknown | {name})


def _limits(value: Value, scope: Scope) -> Limits:
    """Of an integer that is clipped, or of a float that is clipped before it becomes one."""
    match value:
        case Constant(number) if abs(number) < 2**63:  # a NaN is not
            return int(number), int(number)
        case Whole(size):
            return (scope.size(size),) * 2
        case Cast(operand, dtype) if dtype is DataType.INT64 and not dtype_of(operand).is_float:
            return (0, 1) if dtype_of(operand) is DataType.BOOL else (None, None)
        case Cast(operand):
            low, _ = _limits(operand, scope)
            return (None if low is None else minimum(low, 0)), None  # a NaN becomes 0
        case Binary("min", left, right):
            (a, b), (c, d) = _limits(left, scope), _limits(right, scope)
            return _both(minimum, a, c), _any(minimum, b, d)
        case Binary("max", left, right):
            (a, b), (c, d) = _limits(left, scope), _limits(right, scope)
            return _any(maximum, a, c), _both(maximum, b, d)
    return None, None


def _both(choose: Callable[[Size, Size], Size], left: Size | None, right: Size | None) -> Any:
    return None if left is None or right is None else choose(left, right)


def _any(choose: Callable[[Size, Size], Size], left: Size | None, right: Size | None) -> Any:
    return right if left is None else left if right is None else choose(left, right)


def _is_surely_negative(size: Size, scope: Scope) -> bool:
    """True where a size is below zero in an iteration that runs whenever the loops do."""
    for item in reversed(scope.ranges):
        if item.name not in symbols(size):
            continue
        assert isinstance(size, Expression)
        growth = size.growth(item.name)
        if not item.loop or growth is None:
            return False
        if not is_nonnegative(growth) and not is_nonnegative(-growth):
            return False
        size = substitute(size, {item.name: item.low if is_nonnegative(growth) else item.high})
    if not scope.unknown.isdisjoint(symbols(size)):
        return False
    below = -size - 1
    known = (fact for fact in scope.facts if scope.bound.isdisjoint(symbols(fact)))
    return is_nonnegative(below) or any(is_nonnegative(below - fact) for fact in known)
