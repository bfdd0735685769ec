"""What a lowering is given beside its inputs and attributes."""

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sardonyx.compiler.forms import Form, NotLowered, Trim
from sardonyx.dims import Size, is_nonnegative, is_small, minimum
from sardonyx.loops.nodes import symbols
from sardonyx.ops.fact import Fact
from sardonyx.record import record


class Agreement(NamedTuple):
    """Two sizes that a model needs to be equal; or, `repeats`, the left one may also be 1."""

    left: Size
    right: Size
    repeats: bool = False


@record
class Request:
    """What inference knows of a node's inputs and outputs."""

    inputs: tuple[Fact | None, ...]
    outputs: tuple[Fact, ...]
    constants: tuple[Any, ...]
    """The elements of each input that is a constant, else None."""
    agreements: list[Agreement]
    wanted: set[int]
    """Inputs whose contents the lowering asked for in vain."""
    bound: Collection[str]
    """Names of sizes that are known when the node runs."""

    def agree(self, left: Size, right: Size) -> Size:
        """The size two axes must share; checked at run time where it is only known then."""
        if left != right:
            if isinstance(left, int) and isinstance(right, int):
                raise NotLowered(f"sizes {left} and {right} do not agree")
            self.agreements.append(Agreement(left, right))
        return left if isinstance(left, int) else right

    def fit(self, size: Size, room: Size) -> None:
        """Need a size to be no larger than another one."""
        if is_nonnegative(room - size):
            return
        if isinstance(room, int) and isinstance(size, int):
            raise NotLowered(f"size {size} does not fit into {room}")
        self.agreements.append(Agreement(minimum(room - size, 0), 0))

    def shape(self, output: int = 0) -> tuple[Size, ...]:
        """The shape of an output; it must be known, if only by names."""
        shape = self.outputs[output].shape
        if shape is None or any(size is None for size in shape):
            raise NotLowered("the rank of its output is not known")
        return tuple(size for size in shape if size is not None)

    def told(self, *positions: int) -> tuple[Size, ...]:
        """The shape of the first output, which inputs at some positions tell if nothing else."""
        shape = self.outputs[0].shape
        sizes: Sequence[Size | None] = (None,) if shape is None else shape
        names = {name for size in sizes for name in _names(size)}
        if not names <= set(self.bound):
            for position in positions:
                if self.given(position):
                    self.constant(position, "what tells its shape")
        return self.shape()

    def sizes(self, position: int, what: str, *, far: bool = False) -> list[Size]:
        """The elements of an integer input, numbers or sizes that are known when the node runs.

        Numbers are small enough to compute with, unless the lowering bounds them itself (`far`).
        """
        fact = self.inputs[position]
        found = None if fact is None else fact.sizes()
        bound = set(self.bound)
        if found is None or any(size is None or not symbols(size) <= bound for size in found):
            found = tuple(int(item) for item in self.constant(position, what).reshape(-1))
        made = [size for size in found if size is not None]
        if not far and not all(map(is_small, made)):
            raise NotLowered(f"{what} has numbers beyond any size")
        return made

    def given(self, position: int) -> bool:
        """True where an optional input stands."""
        return position < len(self.inputs) and self.inputs[position] is not None

    def constant(self, position: int, what: str) -> NDArray[Any]:
        """The elements of an input that must be a constant, or fed before the program is made."""
        value = self.known(position)
        if value is None:
            self.wanted.add(position)
            raise NotLowered(f"{what} is not a constant")
        return value

    def integers(self, position: int, what: str, *, count: int | None = None) -> list[int]:
        """The elements of a constant list of whole numbers, as many as there must be."""
        array = self.constant(position, what)
        if array.ndim > 1 or array.dtype.kind not in "iu":
            raise NotLowered(f"{what} is {array.dtype}{list(array.shape)}, no list of integers")
        if count is not None and array.size != count:
            raise NotLowered(f"{what} has {array.size} elements, not {count}")
        return [int(item) for item in array.reshape(-1)]

    def known(self, position: int) -> NDArray[Any] | None:
        """The elements of an input where they are known; the lowering does without them too."""
        fact = self.inputs[position]
        value = None if fact is None else fact.constant
        if value is None:
            value = self.constants[position]
        return None if value is None else np.asarray(value)


def _names(size: Size | None) -> frozenset[str]:
    """The names a size depends on; one that nothing tells where it is not known."""
    return frozenset([""]) if size is None else symbols(size)


Lowering = Callable[..., Form | Trim | Sequence[Form | Trim]]
"""`(request, *inputs, **attributes)` -> a form for each output, or `NotLowered`."""
Lowerings = dict[tuple[str, str], Lowering]
