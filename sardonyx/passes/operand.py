"""A matched value, with what is known of it."""

from typing import Any

from numpy.typing import NDArray

from sardonyx.dtypes import DataType
from sardonyx.graph import Value
from sardonyx.ops.fact import Fact, Sizes
from sardonyx.passes.unit import Unit

_SMALL = 2**20
"""Constants of at most this many bytes may be copied."""


class Operand:
    """A matched value as `check` and `replace` see it."""

    __slots__ = ("unit", "value")

    def __init__(self, value: Value, unit: Unit) -> None:
        self.value = value
        self.unit = unit

    @property
    def fact(self) -> Fact:
        """What inference found."""
        return self.unit.fact(self.value)

    @property
    def shape(self) -> Sizes | None:
        """Sizes, where the rank is known."""
        return self.fact.shape

    @property
    def rank(self) -> int | None:
        """The number of dimensions, where it is known."""
        return self.fact.rank

    @property
    def dtype(self) -> DataType | None:
        """The element type, where it is known."""
        return self.fact.dtype

    @property
    def constant(self) -> bool:
        """True where the elements are known."""
        return self.unit.array(self.value) is not None

    @property
    def array(self) -> NDArray[Any]:
        """The elements of a constant."""
        found = self.unit.array(self.value)
        assert found is not None
        return found

    @property
    def alone(self) -> bool:
        """True where a changed copy of a constant would not make the model much larger."""
        tensor = self.value.tensor
        return tensor is None or len(self.value.uses) == 1 or tensor.nbytes <= _SMALL

    @property
    def scalar(self) -> Any:
        """The only element of a constant; None for anything else."""
        found = self.unit.array(self.value)
        return found.reshape(-1)[0] if found is not None and found.size == 1 else None
