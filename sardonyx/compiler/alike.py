"""Groups that are alike but for what they read: their kernels are built once.

The layers of a model repeat. Two groups whose forms are the same, with the same sizes, lying in
memory in the same way, have the same kernels; only the places in memory differ.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from sardonyx.compiler.attend import Attention
from sardonyx.compiler.forms import Axis, Form, Reshape, Source, View
from sardonyx.compiler.fuse import Fusion, Group
from sardonyx.compiler.kernels.reader import STATUS, Call, Packed, Place, Scratch, pack
from sardonyx.dims import Expression
from sardonyx.dtypes import DataType


@dataclass(eq=False)
class _Model:
    """What was built for the first of several groups that are alike."""

    forms: dict[Form, int]
    calls: list[Call]


class Workshop:
    """Builds the calls of groups by a function; those of a group like an earlier one from these."""

    def __init__(self, fusion: Fusion, build: Callable[[Group], list[Call]]) -> None:
        self._fusion = fusion
        self._build = build
        self._models: dict[Any, _Model] = {}

    def calls(self, group: Group) -> list[Call]:
        """The calls of kernels that compute a group."""
        try:
            forms, key = describe(self._fusion, group)
        except _NotDescribed:
            return self._build(group)
        model = self._models.get(key)
        if model is not None:
            return _replaced(model, list(forms))
        calls = self._build(group)
        places = {place for call in calls for place in call.places}
        if all(_can_be_replaced(place, forms) for place in places):
            self._models[key] = _Model(forms, calls)
        return calls


def _can_be_replaced(place: Place, forms: dict[Form, int]) -> bool:
    match place:
        case Packed(source=source):
            return source in forms
        case Form():
            return place in forms
    return True


def _replaced(model: _Model, forms: list[Form]) -> list[Call]:
    """The calls of a model on the places of another group."""
    made: dict[Place, Place] = {}

    def place(item: Place) -> Place:
        match item:
            case Form():
                return forms[model.forms[item]]
            case Packed(shape, dtype, _, Form() as source, packing) if packing is not None:
                return pack(forms[model.forms[source]], shape, dtype, packing)
            case Scratch(shape, dtype):
                return made.setdefault(item, Scratch(shape, dtype))
        assert item is STATUS
        return item

    return [replace(call, places=tuple(map(place, call.places))) for call in model.calls]


class _NotDescribed(Exception):  # noqa: N818 - not an error: such a group is built by itself
    """A group holds something of which nobody can say whether it is like another."""


def describe(fusion: Fusion, group: Group) -> tuple[dict[Form, int], Any]:
    """The forms that a group's kernels may see, with numbers, and all that these kernels depend on.

    Forms of other groups are described by how they lie in memory, constants by their types, unless
    they are single numbers, which kernels contain.
    """
    described = _Described(fusion, group)
    attention = described.part(group.attention)
    rows = described.rows()
    parts = (group.members, group.results, [group.tile] if group.tile else [])
    numbers = tuple(tuple(map(described.known, part)) for part in parts)
    sets = tuple(tuple(sorted(map(described.known, part))) for part in described.sets)
    shape = (group.space, group.axes, group.root in fusion.order)
    return described.numbers, (shape, numbers, sets, attention, rows)


class _Described:
    def __init__(self, fusion: Fusion, group: Group) -> None:
        self.fusion = fusion
        self.root = group.root
        self.numbers: dict[Form, int] = {}
        self.waiting: list[Form] = []
        self.sets: list[frozenset[Form]] = []
        self.number(group.root)

    def number(self, form: Form) -> int:
        if form not in self.numbers:
            self.numbers[form] = len(self.numbers)
            self.waiting.append(form)
        return self.numbers[form]

    def known(self, form: Form) -> int:
        if form not in self.numbers:
            raise _NotDescribed
        return self.numbers[form]

    def rows(self) -> tuple[Any, ...]:
        """What there is to say of every form, in the order of their numbers."""
        return tuple(map(self.row, self.waiting))

    def row(self, form: Form) -> tuple[Any, ...]:
        common = (form.__class__, form.shape, form.dtype, self.fusion.order.get(form))
        if isinstance(form, Source):
            return (*common, *self.source(form))
        made = form in self.fusion.roots and form is not self.root
        if made and not isinstance(form, Reshape | View):
            return (*common, made)
        names = form.__match_args__[len(Form.__match_args__) :]
        return (*common, made, *(self.part(getattr(form, name)) for name in names))

    def source(self, form: Source) -> tuple[Any, ...]:
        turned = self.fusion.turned.get(form)
        copy = None if turned is None else self.number(turned)
        constant = form.constant
        if constant is None:
            return (copy, "told")
        return (copy, constant.tobytes() if constant.size == 1 else "constant")

    def part(self, item: Any) -> Any:
        """One field of a form."""
        match item:
            case Form():
                return ("form", self.number(item))
            case None | Expression() | DataType() | str():
                return item
            case bool() | int() | float():
                return (item.__class__, repr(item))
            case tuple():
                return tuple(map(self.part, item))
            case frozenset():
                self.sets.append(item)
                return frozenset
            case Axis() | Attention():
                parts = (self.part(getattr(item, name)) for name in item.__match_args__)
                return (item.__class__, *parts)
        raise _NotDescribed
