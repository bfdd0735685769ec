"""Long lists of attributes, kept as they are stored until somebody wants their items."""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from sardonyx.record import record

_PART = 1 << 12
"""Items that are Python's own at a time, while all of them are gone through."""


class Stored(Protocol):
    """Where items are, and how to get at them; equal ones have equal hashes."""

    @property
    def count(self) -> int:
        """How many there are."""
        ...

    @property
    def item(self) -> type[int] | type[float] | type[bytes] | type[str]:
        """What they are."""
        ...

    def array(self) -> NDArray[Any]:
        """All of them: int64, float64, or objects."""
        ...


@record
class StoredText:
    """Stored bytes as text."""

    stored: Stored
    item: ClassVar[type[str]] = str

    @property
    def count(self) -> int:
        """How many strings there are."""
        return self.stored.count

    def array(self) -> NDArray[Any]:
        """All of them, equal ones once in memory."""
        known: dict[bytes, str] = {}
        found = self.stored.array()
        for place, content in enumerate(found):
            if content not in known:
                known[content] = str(content, "utf-8", "surrogateescape")
            found[place] = known[content]
        return found


class StoredList(Sequence[Any]):
    """An immutable list that takes no more memory than it does where it is stored.

    It is equal to the tuple of the same items, and can be used in its place.
    """

    __slots__ = ("_array", "stored")

    def __init__(self, stored: Stored) -> None:
        self.stored = stored
        self._array: NDArray[Any] | None = None

    def __len__(self) -> int:
        return self.stored.count

    def __getitem__(self, key: Any) -> Any:
        if self._array is None:
            self._array = self.stored.array()
        if isinstance(key, slice):
            return tuple(self._array[key].tolist())
        return self.stored.item(self._array[key])

    def __iter__(self) -> Iterator[Any]:
        array = np.asarray(self)
        for start in range(0, len(array), _PART):
            yield from array[start : start + _PART].tolist()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        array = self.stored.array() if self._array is None else self._array
        if copy and array is self._array:
            array = array.copy()
        return array if dtype is None else array.astype(dtype, copy=False)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, tuple | StoredList):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __add__(self, other: Any) -> tuple[Any, ...]:
        return (*self, *other) if isinstance(other, tuple | StoredList) else NotImplemented

    def __radd__(self, other: Any) -> tuple[Any, ...]:
        return (*other, *self) if isinstance(other, tuple | StoredList) else NotImplemented

    def __copy__(self) -> "StoredList":
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "StoredList":
        return self

    def __reduce__(self) -> Any:
        return tuple, (list(self),)

    def __repr__(self) -> str:
        return repr(tuple(self))
