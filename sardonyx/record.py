"""Records: dataclasses of the package's inside, which it defines and makes by the thousand.

`dataclass(frozen=True)` compiles six methods for each class whenever it is imported, and makes an
object in three times the time that plain assignments take. A record's fields are as final, but it
is the type checker that sees to that.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Generic, TypeVar, dataclass_transform, overload

Class = TypeVar("Class", bound=type)
Owner = TypeVar("Owner")
Found = TypeVar("Found")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(made: Class) -> Class:
    """A dataclass of final fields, equal by what these hold, and hashable.

    >>> @record
    ... class Point:
    ...     x: int
    ...     y: int = 0
    >>> Point(1), Point(1) == Point(1, 0), len({Point(2), Point(2), Point(3)})
    (Point(x=1, y=0), True, 2)
    """
    own: Any = dataclass(repr=False, eq=False, slots=True)(made)
    names = [item.name for item in vars(own)["__dataclass_fields__"].values() if item.compare]
    content = _content(names)

    def equal(self: Any, other: object) -> Any:
        if self is other:
            return True
        return content(self) == content(other) if type(self) is type(other) else NotImplemented

    _give(own, "__eq__", equal)
    _give(own, "__hash__", lambda self: hash(content(self)))
    _give(own, "__repr__", _text)
    return own  # type: ignore[no-any-return]


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
def entity(made: Class) -> Class:
    """A dataclass of final fields that is equal to itself alone.

    >>> @entity
    ... class Room:
    ...     size: int
    >>> Room(5), Room(5) == Room(5)
    (Room(size=5), False)
    """
    own: Any = dataclass(repr=False, eq=False)(made)
    _give(own, "__repr__", _text)
    return own  # type: ignore[no-any-return]


class once(Generic[Owner, Found]):  # noqa: N801 - used as `property` is
    """A property that is computed when it is first asked for, and kept.

    Several threads may compute it at the same time, and all get what came first: no lock is held,
    which a child made by `fork` meanwhile could never have.

    >>> class Square:
    ...     @once
    ...     def area(self) -> int:
    ...         print("computed")
    ...         return 4
    >>> square = Square()
    >>> square.area + square.area
    computed
    8
    """

    def __init__(self, compute: Callable[[Owner], Found]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, item: None, owner: type) -> "once[Owner, Found]": ...

    @overload
    def __get__(self, item: Owner, owner: type) -> Found: ...

    def __get__(self, item: Any, owner: type) -> Any:
        if item is None:
            return self
        return vars(item).setdefault(self._name, self._compute(item))


def _give(made: type, name: str, method: Callable[..., Any]) -> None:
    if name not in vars(made) or (name == "__hash__" and vars(made)[name] is None):
        setattr(made, name, method)


def _content(names: list[str]) -> Callable[[Any], Any]:
    """What objects hold under names, as a tuple."""
    if len(names) == 1:
        (single,) = map(attrgetter, names)
        return lambda item: (single(item),)
    return attrgetter(*names) if names else lambda _: ()


def _text(self: Any) -> str:
    shown = (item.name for item in self.__dataclass_fields__.values() if item.repr)
    parts = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
    return f"{type(self).__qualname__}({parts})"
