"""What inference found for calls of functions, by what these were given."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sardonyx.dims import Expression, Size
from sardonyx.graph import Attribute, Function, Tensor
from sardonyx.ops.fact import Fact
from sardonyx.record import record

Signature = tuple[Hashable, ...]
_PLAIN = (int, float, str, bytes)


def call_signature(
    function: Function, facts: Sequence[Fact | None], attributes: Mapping[str, Attribute]
) -> Signature:
    """What a call's results depend on: equal signatures give equal facts."""
    given = tuple(None if fact is None else _of_fact(fact) for fact in facts)
    return (_Same(function), given, tuple(sorted(map(_of_attribute, attributes.items()))))


class _Same:
    """Something that equals only itself, kept so that nothing else takes its place."""

    __slots__ = ("thing",)

    def __init__(self, thing: Any) -> None:
        self.thing = thing

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.thing is self.thing

    def __hash__(self) -> int:
        return id(self.thing)


def _of_fact(fact: Fact) -> Hashable:
    value = fact.value
    if value is None:
        return (fact.type, fact.dtype, fact.shape, None)
    content = tuple(value.flat) if value.dtype == object else value.tobytes()
    return (fact.type, fact.dtype, fact.shape, (value.dtype.str, value.shape, content))


def _of_attribute(item: tuple[str, Attribute]) -> tuple[str, str, Any]:
    name, attribute = item
    kind = f"{int(attribute.type)} {attribute.reference}"
    value = attribute.value
    if isinstance(value, Tensor):
        return name, kind, (_Same(value.data), value.shape, value.element)
    if value is None or isinstance(value, _PLAIN):
        return name, kind, repr(value)
    plain = isinstance(value, tuple) and all(isinstance(part, _PLAIN) for part in value)
    return name, kind, repr(value) if plain else _Same(value)


@record
class Remembered:
    """The facts of a body's results, and which names inference made up for them."""

    results: list[Fact]
    names: frozenset[str]

    def renewed(self, fresh: Callable[[], Size]) -> list[Fact]:
        """The results of another call: what only a run tells has other names there."""
        if not self.names:
            return self.results
        sizes: dict[str, Size] = {}

        def renew(size: Any) -> Any:
            if not isinstance(size, Expression):
                return size
            for name in sorted(size.symbols & self.names):
                if name not in sizes:
                    sizes[name] = fresh()
            return size.substitute(sizes)

        return [_mapped(fact, renew) for fact in self.results]


def symbols_of(facts: Sequence[Fact]) -> set[str]:
    """The names in sizes and contents of facts."""
    found: set[str] = set()
    for fact in facts:
        items: list[Any] = [*(fact.shape or ())]
        if fact.value is not None and fact.value.dtype == object:
            items += fact.value.flat
        for item in items:
            if isinstance(item, Expression):
                found |= item.symbols
    return found


def _mapped(fact: Fact, change: Callable[[Any], Any]) -> Fact:
    """A fact with all its sizes changed."""
    if fact.shape is not None:
        fact = replace(fact, shape=tuple(map(change, fact.shape)))
    value = fact.value
    if value is None or value.dtype != object:
        return fact
    items = np.empty(value.size, object)
    items[:] = [change(item) for item in value.flat]
    return replace(fact, value=items.reshape(value.shape))
