"""Kernels of maps and folds: element by element, or row by row in stages."""

from functools import partial

from sardonyx.compiler.forms import EXPENSIVE, Fold, Form, Map
from sardonyx.compiler.fuse import Fusion, Group
from sardonyx.compiler.kernels.nest import parallel_kernel, pointwise_kernel
from sardonyx.compiler.kernels.reader import Call, Reader, broadcast_index
from sardonyx.compiler.kernels.turn import turn_kernel
from sardonyx.compiler.targets import Target
from sardonyx.dims import Size, ceil_divide, product, symbol
from sardonyx.loops.build import nest
from sardonyx.loops.nodes import Guard, Kind, Load, Loop, Read, Register, Statement, Store, Update
from sardonyx.loops.rewrite import merge_axes
from sardonyx.record import record

BLOCK, LANE = "%block", "%lane"


def pointwise_calls(fusion: Fusion, group: Group, target: Target) -> list[Call]:
    """A group without reductions or products: one nest of loops."""
    reader, root = Reader(fusion, group), group.root
    names = [f"%i{axis}" for axis in range(len(root.shape))]
    index = tuple(map(symbol, names))
    body = (Store(reader.buffer(root), index, reader.value(root, index)),)
    order = fusion.order.get(root, tuple(range(len(root.shape))))
    axes, gone = merge_axes([(names[axis], root.shape[axis]) for axis in order], body)
    made = turn_kernel(axes, body, gone, target.lanes) or pointwise_kernel(axes, body, gone)
    return [Call(made, reader.places(made), product(root.shape) * len(group.members))]


def row_calls(fusion: Fusion, group: Group, target: Target) -> list[Call]:
    """A group with reductions along some axes: row by row, a stage for each, then the result.

    Vectors lie along the reduced axes, or across rows where those lie side by side in memory.
    """
    assert group.space is not None and group.axes is not None
    space, axes = group.space, group.axes
    reader = Reader(fusion, group)
    order = fusion.order.get(group.root, tuple(range(len(space))))
    names = [f"%i{axis}" for axis in range(len(space))]
    inner = [(names[axis], space[axis]) for axis in order if axis in axes]
    outer = [(names[axis], space[axis]) for axis in order if axis not in axes]
    if order[-1] in axes:
        rows = _Rows(tuple(map(symbol, names)), inner)
    else:
        last, lanes = order[-1], target.lanes
        outer[-1] = (BLOCK, ceil_divide(space[last], lanes))
        place = symbol(BLOCK) * lanes + symbol(LANE)
        index = tuple(place if axis == last else symbol(name) for axis, name in enumerate(names))
        rows = _Rows(index, inner, lanes, place, space[last])
    made = parallel_kernel(outer, _stages(group, reader, rows))
    return [Call(made, reader.places(made), product(space) * 4 * len(group.members))]


@record
class _Rows:
    """How a row is walked: the index of an element, the reduced axes, and the lanes across rows."""

    index: tuple[Size, ...]
    inner: list[tuple[str, Size]]
    lanes: int = 0
    place: Size = 0
    extent: Size = 0

    @property
    def at(self) -> tuple[Size, ...]:
        """The index of this row's accumulator in its register."""
        return (symbol(LANE),) if self.lanes else ()

    def register(self, name: str, fold: Fold) -> Register:
        """An accumulator for this row, or one for each row across lanes."""
        shape = (self.lanes,) if self.lanes else ()
        return Register(name, fold.dtype, shape, fold.initial, lanes=bool(self.lanes))

    def along(self, *body: Statement) -> tuple[Statement, ...]:
        """The body for every element of a row."""
        if self.lanes:
            return nest(self.inner, self.once(*body))
        *outer, (name, extent) = self.inner
        return nest(outer, (Loop(name, extent, body, Kind.VECTOR),))

    def once(self, *body: Statement) -> tuple[Statement, ...]:
        """The body once a row."""
        if not self.lanes:
            return body
        return (Loop(LANE, self.lanes, (Guard(self.place, self.extent, body),), Kind.VECTOR),)


def _stages(group: Group, reader: Reader, rows: _Rows) -> list[Statement]:
    folds = [form for form in reversed(group.members) if isinstance(form, Fold)]
    members = set(group.members)
    folds.sort(key=lambda form: _depth(form, members))
    root, index = group.root, rows.index
    full = root.shape == group.space
    target = reader.buffer(root)
    kept = _kept(group, folds) if full else None
    statements: list[Statement] = []
    for number, fold in enumerate(folds):
        result = Read(f"r{number}", fold.dtype, rows.at)
        stage: list[Statement] = []
        if kept is not None and kept in _below(fold.argument, members):
            stage.append(Store(target, index, reader.value(kept, index)))
            reader.computed[kept] = lambda at: Load(target, at)
            reader.forget()
            kept = None
        value = reader.value(fold.argument, index)
        stage.append(Update(result.register, fold.combine, value, rows.at))
        statements += [rows.register(result.register, fold), *rows.along(*stage)]
        reader.computed[fold] = partial(_already, result)
        reader.forget()
    if full:
        return [*statements, *rows.along(Store(target, index, reader.value(root, index)))]
    assert group.space is not None
    at = broadcast_index(root, index, group.space)
    return [*statements, *rows.once(Store(target, at, reader.value(root, at)))]


def _already(result: Read, index: tuple[Size, ...]) -> Read:
    return result


def _depth(fold: Fold, members: set[Form]) -> int:
    """How many reductions a reduction waits for."""
    below = [item for item in _below(fold.argument, members) if isinstance(item, Fold)]
    return max((_depth(item, members) + 1 for item in below if item in members), default=0)


def _below(form: Form, members: set[Form]) -> dict[Form, None]:
    """What a form is computed from inside the group, down to reductions."""
    found: dict[Form, None] = {}
    waiting = [form]
    while waiting:
        item = waiting.pop()
        if item not in found:
            found[item] = None
            if isinstance(item, Map) and item in members:
                waiting.extend(item.arguments)
    return found


def _kept(group: Group, folds: list[Fold]) -> Form | None:
    """An expensive member that several stages need: computed once, into the result's memory."""
    members = set(group.members)
    stages = [_below(form, members) for form in (*(fold.argument for fold in folds), group.root)]
    for form in reversed(group.members):
        if isinstance(form, Map) and form.name in EXPENSIVE and form is not group.root:
            same = form.shape == group.space and form.dtype is group.root.dtype
            if same and sum(form in stage for stage in stages) > 1:
                return form
    return None
