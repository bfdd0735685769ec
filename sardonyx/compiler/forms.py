"""What operators become before they are kernels: a few forms, which fusion knows by kind alone.

- `View`, `Reshape`: the same elements at other indices; no work.
- `Map`: one function of elements, under broadcasting.
- `Fold`: a reduction along axes, which stay with size 1.
- `Contraction`, `Convolution`: sums of products in register tiles, with a pointwise epilogue.
- `Iota`, `Take`: an index as a number, and elements at indices that are computed.
- `Gather`, `Join`, `Window`: programs of their own; `Result`: what a routine of an operator makes.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Any

from numpy.typing import NDArray

from sardonyx import graph
from sardonyx.dims import Expression, Size, broadcast, minimum
from sardonyx.dtypes import DataType, from_numpy
from sardonyx.errors import SardonyxError
from sardonyx.loops.nodes import RELATIONS, Buffer, Kernel
from sardonyx.ops.fact import axis_of
from sardonyx.record import entity, record

EXPENSIVE = frozenset({
    "exp", "log", "tanh", "erf", "sigmoid", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
    "cosh", "asinh", "acosh", "atanh", "pow", "mod",
})  # fmt: skip
"""Functions worth computing only once."""


class NotLowered(SardonyxError):  # noqa: N818 - not an error: the reference takes over
    """An operator has no native form here; the message says why."""


@entity
class Form:
    """A tensor to be computed. Arithmetic on forms makes more of them, under broadcasting."""

    shape: tuple[Size, ...]
    dtype: DataType

    @property
    def sources(self) -> tuple["Form", ...]:
        """The forms this one is computed from."""
        return ()

    def __add__(self, other: "Operand") -> "Form":
        return binary("add", self, other)

    def __radd__(self, other: "Operand") -> "Form":
        return binary("add", other, self)

    def __sub__(self, other: "Operand") -> "Form":
        return binary("sub", self, other)

    def __rsub__(self, other: "Operand") -> "Form":
        return binary("sub", other, self)

    def __mul__(self, other: "Operand") -> "Form":
        return binary("mul", self, other)

    def __rmul__(self, other: "Operand") -> "Form":
        return binary("mul", other, self)

    def __truediv__(self, other: "Operand") -> "Form":
        return binary("div", self, other)

    def __rtruediv__(self, other: "Operand") -> "Form":
        return binary("div", other, self)

    def __neg__(self) -> "Form":
        return unary("neg", self)


Operand = Form | int | float


@entity
class Source(Form):
    """A value that is already there: an input, a constant, or what a fallback made."""

    value: graph.Value
    constant: NDArray[Any] | None = None
    origin: "Form | None" = None
    """What a constant was computed from, where that takes less memory."""


@entity
class Number(Form):
    """One number, a constant or a size that is known when the program runs."""

    number: float | int | bool | Expression


@record
class Axis:
    """Where an axis of a view's source is read: `start + step * index[axis]`, or at `start`."""

    axis: int | None
    start: Size = 0
    step: Size = 1


@entity
class View(Form):
    """Elements of a source at indices that are affine in this form's own."""

    source: Form
    axes: tuple[Axis, ...]

    @property
    def sources(self) -> tuple[Form, ...]:
        return (self.source,)


@entity
class Reshape(Form):
    """The elements of a source, in the same order, in another shape."""

    source: Form

    @property
    def sources(self) -> tuple[Form, ...]:
        return (self.source,)


@entity
class Map(Form):
    """A function of the kernel language, `select`, `cast` or `bits`, of elements."""

    name: str
    arguments: tuple[Form, ...]

    @property
    def sources(self) -> tuple[Form, ...]:
        return self.arguments


@entity
class Scaled(Map):
    """A map that is `(level - zero) * scale`, of a byte and an int32 or no zero."""

    level: Form
    scale: Form
    zero: Form | None


@entity
class Iota(Form):
    """The index along an axis, as an int64."""

    axis: int


@entity
class Take(Form):
    """Elements of a source at computed indices, an int64 form for each of its axes.

    An element is 0 where one of its indices lies outside; `checked`, that is an error.
    """

    source: Form
    indices: tuple[Form, ...]
    checked: bool = False

    @property
    def sources(self) -> tuple[Form, ...]:
        return (self.source, *self.indices)


@record
class Room:
    """Memory that a routine fills: one of its results, or only for itself."""

    shape: tuple[Size, ...]
    dtype: DataType


@record
class Memories:
    """What a routine works on: its arguments, its results, its scratch, and a report.

    An index that lies outside of what it should stores 1 to `report[0]`, which is an error. Vectors
    of the target have `lanes` lanes of 32 bits.
    """

    arguments: tuple[Buffer, ...]
    results: tuple[Buffer, ...]
    scratch: tuple[Buffer, ...]
    report: Buffer
    lanes: int


@entity
class Routine:
    """Kernels of an operator's own, over arguments in memory.

    `write(memories)` returns kernels that run one after another; each, or each of its steps, is
    `work` elementary operations or so, by which threads are given to it.
    """

    arguments: tuple[Form, ...]
    results: tuple[Room, ...]
    write: Callable[[Memories], Sequence[Kernel]]
    work: Size
    scratch: tuple[Room, ...] = ()


@entity
class Result(Form):
    """One of the tensors that a routine makes."""

    routine: Routine
    number: int

    @property
    def sources(self) -> tuple[Form, ...]:
        return self.routine.arguments


@entity
class Fold(Form):
    """Elements combined along axes; an empty sum is `initial`."""

    combine: str
    initial: float | int
    argument: Form
    axes: tuple[int, ...]

    @property
    def sources(self) -> tuple[Form, ...]:
        return (self.argument,)


@entity
class Contraction(Form):
    """Matrix products: [batch..., M, K] by [batch..., K, N]; batch axes of size 1 are repeated."""

    left: Form
    right: Form
    depth: Size

    @property
    def sources(self) -> tuple[Form, ...]:
        return self.left, self.right


@entity
class Convolution(Form):
    """Sliding products over spatial axes: [N, C, ...] by [M, C / groups, ...]."""

    image: Form
    weights: Form
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[int, ...]
    """At the beginning of all axes, then at the end; less than 0 where the image is cut."""
    groups: int
    spreads: tuple[int, ...] = ()
    """How far apart the image's elements are taken to lie, with 0 between; none: side by side."""
    zero: Form | None = None
    """An int32 that is taken off the image's elements first."""
    even: bool = False
    """Whether weights are known and of about one size at each tap: `winograd_filters.is_even`."""

    @property
    def sources(self) -> tuple[Form, ...]:
        return (self.image, self.weights, *(() if self.zero is None else (self.zero,)))


@entity
class Window(Form):
    """Elements combined in a window that slides over spatial axes; outside lies `initial`."""

    combine: str
    initial: float | int
    image: Form
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    begins: tuple[int, ...]

    @property
    def sources(self) -> tuple[Form, ...]:
        return (self.image,)


@entity
class Gather(Form):
    """Slices of a table along an axis, chosen by indices; negative ones count from the end."""

    table: Form
    indices: Form
    axis: int

    @property
    def sources(self) -> tuple[Form, ...]:
        return self.table, self.indices


@entity
class Join(Form):
    """Parts one after another along an axis."""

    parts: tuple[Form, ...]
    axis: int

    @property
    def sources(self) -> tuple[Form, ...]:
        return self.parts


@entity
class Trim:
    """A tensor whose size along an axis only a run tells: the first `count[0]` of `whole`."""

    whole: Form
    count: Form
    axis: int


def number(value: float | int | Expression, dtype: DataType) -> Number:
    """A number as a form."""
    return Number((), dtype, value)


def constant(array: NDArray[Any]) -> Source:
    """An array as a form."""
    return Source(array.shape, from_numpy(array.dtype), graph.Value(), array)


def broadcast_shapes(*shapes: tuple[Size, ...]) -> tuple[Size, ...]:
    """The shape of forms together; whether an axis is repeated may be known only at run time."""
    rank = max(map(len, shapes))
    result: list[Size] = []
    for axis in range(-rank, 0):
        size: Size = 1
        for shape in shapes:
            if len(shape) >= -axis:
                together = broadcast(size, shape[axis])
                if together is None:
                    raise NotLowered(f"sizes {size} and {shape[axis]} do not broadcast")
                size = together
        result.append(size)
    return tuple(result)


def unary(name: str, x: Form) -> Map:
    """A function of each element."""
    return Map(x.shape, x.dtype, name, (x,))


def binary(name: str, left: Operand, right: Operand) -> Map:
    """A function of pairs of elements; plain numbers take the other side's type."""
    if not isinstance(left, Form):
        assert isinstance(right, Form)
        left = number(left, right.dtype)
    if not isinstance(right, Form):
        right = number(right, left.dtype)
    if left.dtype is not right.dtype:
        raise NotLowered(f"{name} of {left.dtype.text} and {right.dtype.text}")
    dtype = DataType.BOOL if name in RELATIONS else left.dtype
    return Map(broadcast_shapes(left.shape, right.shape), dtype, name, (left, right))


def select(condition: Form, then: Operand, other: Operand) -> Map:
    """`then` where the condition holds, else `other`."""
    dtype = next(item.dtype for item in (then, other) if isinstance(item, Form))
    sides = [item if isinstance(item, Form) else number(item, dtype) for item in (then, other)]
    shape = broadcast_shapes(condition.shape, *(item.shape for item in sides))
    return Map(shape, dtype, "select", (condition, *sides))


def cast(x: Form, dtype: DataType) -> Form:
    """Elements as another type."""
    return x if x.dtype is dtype else Map(x.shape, dtype, "cast", (x,))


def bits(x: Form, dtype: DataType) -> Form:
    """The bits of elements as another type of the same width."""
    return x if x.dtype is dtype else Map(x.shape, dtype, "bits", (x,))


def fold(combine: str, x: Form, axes: Sequence[int], initial: float | int) -> Form:
    """A reduction; axes stay with size 1."""
    kept = tuple(sorted({axis_of(axis, len(x.shape)) for axis in axes}))
    if not kept:
        return x
    shape = tuple(1 if axis in kept else size for axis, size in enumerate(x.shape))
    return Fold(shape, x.dtype, combine, initial, x, kept)


def count(x: Form, axes: Sequence[int]) -> Form:
    """How many elements a reduction along axes takes together, in the type of `x`."""
    total: Size = 1
    for axis in {axis_of(axis, len(x.shape)) for axis in axes}:
        total = total * x.shape[axis]
    if isinstance(total, int):
        return number(float(total) if x.dtype.is_float else total, x.dtype)
    return cast(number(total, DataType.INT64), x.dtype)


def iota(shape: Sequence[Size], axis: int) -> Iota:
    """The index along an axis of a shape."""
    return Iota(tuple(shape), DataType.INT64, axis_of(axis, len(shape)))


def take(source: Form, indices: Sequence[Operand], *, checked: bool = False) -> Form:
    """Elements at indices, one form or number for each axis of the source, broadcast together."""
    forms = [item if isinstance(item, Form) else number(item, DataType.INT64) for item in indices]
    places = tuple(cast(item, DataType.INT64) for item in forms)
    shape = broadcast_shapes(*(item.shape for item in places)) if places else ()
    return Take(shape, source.dtype, source, places, checked)


def results(routine: Routine) -> tuple[Result, ...]:
    """Every tensor that a routine makes."""
    return tuple(
        Result(room.shape, room.dtype, routine, place) for place, room in enumerate(routine.results)
    )


def transpose(x: Form, order: Sequence[int]) -> Form:
    """Axes in another order."""
    if list(order) == list(range(len(x.shape))):
        return x
    axes = tuple(Axis(list(order).index(axis)) for axis in range(len(x.shape)))
    return View(tuple(x.shape[axis] for axis in order), x.dtype, x, axes)


def squeeze(x: Form, axes: Sequence[int]) -> Form:
    """Without axes of size 1."""
    gone = {axis_of(axis, len(x.shape)) for axis in axes}
    if any(x.shape[axis] != 1 for axis in gone):
        raise NotLowered("an axis to remove may not have size 1")
    kept = [axis for axis in range(len(x.shape)) if axis not in gone]
    places = tuple(Axis(kept.index(axis) if axis in kept else None) for axis in range(len(x.shape)))
    return View(tuple(x.shape[axis] for axis in kept), x.dtype, x, places) if gone else x


def unsqueeze(x: Form, axes: Sequence[int]) -> Form:
    """With more axes of size 1, at the places they have afterwards."""
    rank = len(x.shape) + len(axes)
    added = {axis_of(axis, rank) for axis in axes}
    kept = [axis for axis in range(rank) if axis not in added]
    shape: list[Size] = [1] * rank
    for axis, size in zip(kept, x.shape, strict=True):
        shape[axis] = size
    return View(tuple(shape), x.dtype, x, tuple(map(Axis, kept))) if added else x


def reshape(x: Form, shape: Sequence[Size]) -> Form:
    """The same elements in another shape; a view where only axes of size 1 come or go."""
    shape = tuple(shape)
    if x.shape == shape:
        return x
    kept = [size for size in shape if size != 1]
    if kept == [size for size in x.shape if size != 1]:
        places = iter([axis for axis, size in enumerate(shape) if size != 1])
        axes = tuple(Axis(None if size == 1 else next(places)) for size in x.shape)
        return View(shape, x.dtype, x, axes)
    if isinstance(x, Reshape):
        return reshape(x.source, shape)
    return Reshape(shape, x.dtype, x)


def expand(x: Form, shape: Sequence[Size]) -> Form:
    """Axes of size 1 repeated."""
    if x.shape == tuple(shape):
        return x
    missing = len(shape) - len(x.shape)
    broadcast_shapes(x.shape, tuple(shape))
    axes = tuple(
        Axis(None if size == 1 else axis + missing, 0, repeated(size, shape[axis + missing]))
        for axis, size in enumerate(x.shape)
    )
    return View(tuple(shape), x.dtype, x, axes)


def repeated(size: Size, result: Size) -> Size:
    """How far an axis moves for each step along the axis it is broadcast to: 0 or 1."""
    return 1 if size == result else minimum(size - 1, 1)


def topological(outputs: Sequence[Form], known: Collection[Form] = ()) -> list[Form]:
    """Every form that outputs depend on, each behind its sources; not beyond `known` ones."""
    order: dict[Form, None] = {}
    waiting = [form for form in reversed(outputs) if form not in known]
    while waiting:
        form = waiting[-1]
        missing = [source for source in form.sources if source not in order]
        missing = [source for source in missing if source not in known]
        if form not in order and missing:
            waiting.extend(reversed(missing))
            continue
        waiting.pop()
        order.setdefault(form)
    return list(order)
