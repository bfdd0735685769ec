"""How a kernel gets at elements: loads from memory, or values computed in place."""

from collections.abc import Callable, Hashable, Mapping
from functools import partial
from typing import Any

from numpy.typing import NDArray

from sardonyx.compiler.constants import constant_array
from sardonyx.compiler.forms import (
    Axis,
    Form,
    Iota,
    Map,
    Number,
    Reshape,
    Source,
    Take,
    View,
    repeated,
    topological,
)
from sardonyx.compiler.fuse import Fusion, Group
from sardonyx.dims import LARGEST_ELEMENT, Expression, Size, is_small
from sardonyx.dtypes import DataType, from_numpy
from sardonyx.format.pages import let_go
from sardonyx.loops.build import dense, dense_strides
from sardonyx.loops.nodes import (
    FLOAT_UNARY,
    Binary,
    Bits,
    Buffer,
    Cast,
    Constant,
    Kernel,
    Load,
    Pick,
    Select,
    Unary,
    Value,
    Whole,
)
from sardonyx.record import entity

Index = tuple[Size, ...]


@entity
class Scratch:
    """Memory that only one group uses, while it runs."""

    shape: tuple[Size, ...]
    dtype: DataType


@entity
class Packed:
    """Constants in the order in which a kernel reads them: made when they are written down.

    Those that are made of the constant form `source` are the same where `key` is.
    """

    shape: tuple[Size, ...]
    dtype: DataType
    make: Callable[[], NDArray[Any]]
    source: Form | None = None
    packing: "partial[NDArray[Any]] | None" = None
    key: Hashable = None

    @staticmethod
    def of(array: NDArray[Any]) -> "Packed":
        """An array that is in order."""
        return Packed(array.shape, from_numpy(array.dtype), lambda: array)


def pack(
    source: Form, shape: tuple[Size, ...], dtype: DataType, packing: "partial[NDArray[Any]]"
) -> Packed:
    """What kernels read in the place of a constant; the memory it came from is let go."""
    array = constant_array(source)
    assert array is not None

    def make() -> NDArray[Any]:
        packed = packing(array)
        let_go(array)
        return packed

    key = (id(array), packing.func, *packing.args, *packing.keywords.items())
    return Packed(shape, dtype, make, source, packing, key)


@entity
class Status:
    """A number that kernels set where they meet what the model does not allow."""


STATUS = Status()
Place = Form | Scratch | Packed | Status


@entity
class Call:
    """One run of a kernel on places in memory, in the order of its memories."""

    kernel: Kernel
    places: tuple[Place, ...]
    work: Size
    """About how many elementary operations it is, or each step, to decide whether threads pay."""


class Reader:
    """Elements of forms, as one group's kernels see them."""

    def __init__(self, fusion: Fusion, group: Group) -> None:
        self.fusion = fusion
        self.group = group
        self.names: dict[Place, str] = {}
        self.computed: dict[Form, Callable[[Index], Value]] = {}
        """Members whose elements a kernel has at hand: registers, or kept in memory."""
        self._known: dict[tuple[Form, Index], Value] = {}

    def memory(self, place: Place) -> str:
        """The name of a place in this group's kernels."""
        return self.names.setdefault(place, f"m{len(self.names)}")

    def places(self, kernel: Kernel) -> tuple[Place, ...]:
        """The places of a kernel's memories."""
        by_name = {name: place for place, name in self.names.items()}
        return tuple(by_name[name] for name in kernel.memories)

    def buffer(self, form: Form) -> Buffer:
        """Where a stored form lies."""
        strides = dense_strides(form.shape, self.fusion.order.get(form))
        return Buffer(self.memory(form), form.dtype, form.shape, strides)

    def scratch(self, place: Scratch) -> Buffer:
        """Memory of this group's own."""
        return dense(self.memory(place), place.dtype, place.shape)

    def packed(self, place: Packed) -> Buffer:
        """Constants of this group's own."""
        return dense(self.memory(place), place.dtype, place.shape)

    def value(self, form: Form, index: Index) -> Value:
        """The element of a form at an index."""
        waiting = [(form, index)]
        while waiting:
            key = waiting[-1]
            needs = [] if key in self._known else self._needs(*key)
            missing = [item for item in needs if item not in self._known]
            if missing:
                waiting.extend(missing)
                continue
            waiting.pop()
            if key not in self._known:
                self._known[key] = self._value(*key, [self._known[item] for item in needs])
        return self._known[form, index]

    def forget(self) -> None:
        """Compute everything anew from here on: registers have changed."""
        self._known.clear()

    def _needs(self, form: Form, index: Index) -> list[tuple[Form, Index]]:
        """The elements an element is computed from; none for what is loaded."""
        stored = form in self.fusion.roots and form is not self.group.root
        if form in self.computed or stored:
            return []
        match form:
            case View(source=source, axes=axes):
                inner = tuple(
                    item.start if item.axis is None else item.start + index[item.axis] * item.step
                    for item in axes
                )
                return [(source, inner)]
            case Map(arguments=items) | Take(indices=items):
                return [(item, broadcast_index(item, index, form.shape)) for item in items]
        return []

    def _value(self, form: Form, index: Index, parts: list[Value]) -> Value:
        if form in self.computed:
            return self.computed[form](index)
        stored = form in self.fusion.roots and form is not self.group.root
        match form:
            case Number(_, dtype, number):
                return Whole(number) if isinstance(number, Expression) else Constant(number, dtype)
            case Source(_, dtype, _, constant) if constant is not None and constant.size == 1:
                return Constant(constant.reshape(-1)[0].item(), dtype)
            case Source():
                turned = self.fusion.turned.get(form)
                if (
                    turned is None
                    or self.group.root not in self.fusion.order
                    or self.group.root is turned
                ):
                    return Load(self.buffer(form), index)
                return Load(self.buffer(turned), index)
            case _ if stored:
                return Load(self.buffer(form), index)
            case View():
                return parts[0]
            case Reshape():
                return Load(self.reshaped(form), index)
            case Iota(axis=axis):
                return Whole(index[axis])
            case Take(source=source, checked=checked):
                return self.picked(source, parts, checked)
            case Map(name=name):
                return _apply(name, form.dtype, parts)
        raise AssertionError(f"{type(form).__name__} cannot be computed in place")

    def picked(self, form: Form, indices: list[Value], checked: bool) -> Value:
        """An element of a form in memory at computed indices, through views of it.

        An index must lie inside of the view, not only of what is behind it: axes that a view does
        not hand on as they are stay axes of the buffer, which do not move.
        """
        bounds: list[tuple[Value, Size]] = []
        while isinstance(form, View) and form not in self.fusion.roots:
            whole = {
                axis.axis
                for axis, size in zip(form.axes, form.source.shape, strict=True)
                if axis.axis is not None
                and axis == Axis(axis.axis)
                and form.shape[axis.axis] == size
            }
            bounds += [
                (index, form.shape[axis]) for axis, index in enumerate(indices) if axis not in whole
            ]
            indices = [
                _affine(Whole(0) if axis.axis is None else indices[axis.axis], axis)
                for axis in form.axes
            ]
            form = form.source
        buffer = self.stored(form)
        if bounds:
            shape = (*buffer.shape, *(size for _, size in bounds))
            strides = (*buffer.strides, *(0 for _ in bounds))
            buffer = Buffer(buffer.memory, buffer.dtype, shape, strides)
            indices = [*indices, *(index for index, _ in bounds)]
        return Pick(buffer, tuple(indices), self.report() if checked else None)

    def report(self) -> Buffer:
        """Where an index that lies outside is reported."""
        return dense(self.memory(STATUS), DataType.INT64, (1,))

    def stored(self, form: Form) -> Buffer:
        """The memory of a form, or of what it reshapes."""
        return self.reshaped(form) if isinstance(form, Reshape) else self.buffer(form)

    def reshaped(self, form: Reshape) -> Buffer:
        """The memory of what a reshape takes, seen in its shape."""
        strides = self.fusion.strides(form)
        assert strides is not None
        memory = self.memory(self.fusion.storage(form.source))
        return Buffer(memory, form.dtype, form.shape, strides)


def broadcast_index(form: Form, index: Index, shape: tuple[Size, ...]) -> Index:
    """Where a form is read for an element of something of a shape that it is broadcast to."""
    missing = len(index) - len(form.shape)
    triples = zip(form.shape, index[missing:], shape[missing:], strict=True)
    return tuple(0 if size == 1 else at * repeated(size, whole) for size, at, whole in triples)


def _affine(index: Value, axis: Axis) -> Value:
    if axis.step != 1:
        index = Binary("mul", index, Whole(axis.step))
    return index if axis.start == 0 else Binary("add", index, Whole(axis.start))


def _apply(name: str, dtype: DataType, parts: list[Value]) -> Value:
    match name:
        case "select":
            return Select(*parts)
        case "cast":
            return Cast(parts[0], dtype)
        case "bits":
            return Bits(parts[0], dtype)
        case _ if name in FLOAT_UNARY or name == "not":
            return Unary(name, parts[0])
        case "add" | "sub" | "mul" if dtype is DataType.INT64:
            return _whole(name, *parts) or Binary(name, *parts)
        case _:
            return Binary(name, *parts)


def _whole(name: str, left: Value, right: Value) -> Value | None:
    """Arithmetic on indices and sizes as one size, so that its steps stay known.

    Elements wrap around where sizes must not, so large numbers stay elements.
    """
    a, b = _size(left), _size(right)
    if a is None or b is None:
        return None
    made: Size
    match name:
        case "add":
            made = a + b
        case "sub":
            made = a - b
        case _ if isinstance(a, int) or isinstance(b, int):
            made = a * b
        case _:
            return None
    return Whole(made) if all(is_small(size, LARGEST_ELEMENT) for size in (a, b, made)) else None


def _size(value: Value) -> Size | None:
    if isinstance(value, Whole):
        return value.size
    return int(value.value) if isinstance(value, Constant) else None


def inlined(form: Form, elements: Mapping[Form, Value]) -> Value:
    """The value of a form of maps and numbers, with a value for each form that it begins with."""
    made = dict(elements)
    for item in topological([form], elements):
        match item:
            case Number(_, dtype, number):
                made[item] = Constant(number, dtype)  # type: ignore[arg-type]
            case Map(name=name, arguments=arguments):
                made[item] = _apply(name, item.dtype, [made[part] for part in arguments])
    return made[form]
