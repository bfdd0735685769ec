"""Which forms are computed together: a table over kinds of forms, walked from results to sources.

A form is computed inside the group of its users where all of them lie in one group and that group
can take its kind; else it is the root of a group of its own, which is stored in memory.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from sardonyx.compiler.attend import Attention, find_attentions
from sardonyx.compiler.forms import (
    EXPENSIVE,
    Axis,
    Contraction,
    Convolution,
    Fold,
    Form,
    Iota,
    Join,
    Map,
    Number,
    Reshape,
    Result,
    Routine,
    Source,
    Take,
    View,
    topological,
)
from sardonyx.compiler.strides import Strides, lies_in_order, strides_of
from sardonyx.dims import Size, product
from sardonyx.loops.build import dense_strides

LARGEST_GROUP = 400
"""Forms in one kernel, so that no kernel takes long to compile."""


@dataclass(eq=False)
class Group:
    """Forms computed by one kernel, whose result is `root`.

    `space` and `axes` are the shape a reduction runs over and the axes it takes together; `tile` is
    the product of which the other members are the epilogue.
    """

    root: Form
    members: list[Form] = field(default_factory=list)
    space: tuple[Size, ...] | None = None
    axes: tuple[int, ...] | None = None
    tile: Contraction | Convolution | None = None
    attention: Attention | None = None
    """What the tile's left side is, where it is a softmax that is computed in the same kernel."""
    results: list[Form] = field(default_factory=list)
    """What the kernel leaves in memory: the root, and where a routine makes more, those."""

    def __post_init__(self) -> None:
        self.results = self.results or [self.root]


@dataclass(eq=False)
class Fusion:
    """Groups in the order in which they can run, and how their results lie in memory."""

    groups: list[Group]
    roots: dict[Form, Group]
    order: dict[Form, tuple[int, ...]]
    """The axes of a result from the outermost in memory, where that is not the usual order."""

    turned: dict[Form, Form]
    """Images from outside that convolutions read, and the copies that are channels-last."""
    stored: dict[Form, Form]
    """For forms that must be stored: the form that is, where a copy in the usual order is made."""

    def storage(self, form: Form) -> Form:
        """The form whose memory holds a form's elements."""
        while form not in self.roots and isinstance(form, Reshape | View):
            form = form.sources[0]
        return form

    def strides(self, form: Reshape) -> Strides | None:
        """How far apart a reshape's elements lie in the memory of what it takes."""
        place = self.storage(form.source)
        strides = dense_strides(place.shape, self.order.get(place))
        return strides_of(form, lambda item: strides if item is place else None)


def fuse(forced: Sequence[Form]) -> Fusion:
    """Group all forms that `forced` ones, which must be stored, are computed from."""
    walk = _Walk(topological(forced), forced)
    groups = walk.run()
    roots = {result: group for group in groups for result in group.results}
    fusion = Fusion(groups, roots, walk.order, {}, {})
    _choose_layouts(fusion)
    for form in dict.fromkeys(forced):
        if form in fusion.order:
            fusion.stored[form] = _copy(fusion, form, len(fusion.groups))
    _turn_images(fusion)
    return fusion


def _copy(fusion: Fusion, form: Form, position: int) -> Form:
    """A form that copies another one, computed at a position among the groups."""
    axes = tuple(Axis(axis) for axis in range(len(form.shape)))
    copy = View(form.shape, form.dtype, form, axes)
    fusion.roots[copy] = Group(copy, [copy])
    fusion.groups.insert(position, fusion.roots[copy])
    return copy


def _turn_images(fusion: Fusion) -> None:
    """Bring images from outside into the order that convolutions read, once for all of them."""
    for group in list(fusion.groups):
        image = group.tile.image if isinstance(group.tile, Convolution) else None
        if isinstance(image, Source) and image not in fusion.turned:
            fusion.turned[image] = copy = _copy(fusion, image, 0)
            fusion.order[copy] = channels_last(len(copy.shape))


class _Walk:
    def __init__(self, forms: list[Form], forced: Sequence[Form]) -> None:
        self.forms = forms
        self.forced = set(forced)
        self.users: dict[Form, list[Form]] = {form: [] for form in forms}
        for form in forms:
            for source in dict.fromkeys(form.sources):
                self.users[source].append(form)
        self.inside: dict[Form, set[Group]] = {}
        self.identity: dict[Form, bool] = {}
        self.read: dict[Form, bool] = {}
        """Views whose elements are read from memory, so that nothing can be computed in them."""
        self.order: dict[Form, tuple[int, ...]] = {}
        self.dense: set[Form] = set()
        self.routines: dict[Routine, Group] = {}
        found = find_attentions(forms, self.users, self.forced)
        self.attentions: dict[Form, Attention] = {item.result: item for item in found}
        self.within = {form: item for item in found for form in item.inner}

    def run(self) -> list[Group]:
        groups: list[Group] = []
        for form in reversed(self.forms):
            told = isinstance(form, Number) and form not in self.forced
            if told or isinstance(form, Source):
                continue
            group = self.place_result(form) if isinstance(form, Result) else self.place(form)
            if group in groups:
                groups.remove(group)
            if group is not None:
                groups.append(group)
        return groups[::-1]

    def place_result(self, form: Result) -> Group:
        """Put a result into the group of its routine, which runs before the first of them."""
        group = self.routines.get(form.routine)
        if group is None:
            group = self.routines[form.routine] = Group(form, [form])
        else:
            group.members.append(form)
            group.results.append(form)
        self.inside[form] = {group}
        self.identity[form] = True
        return group

    def place(self, form: Form) -> Group | None:
        """Put a form into a group of its users, or return a new one of which it is the root."""
        users = self.users[form]
        around = set().union(*(self.inside[user] for user in users)) if users else set()
        self.identity[form] = all(
            self.identity[user] and isinstance(user, Map | Fold) for user in users
        )
        if form in self.within:
            (group,) = around
            group.members.append(form)
            self.inside[form] = around
            return None
        if form not in self.forced:
            if isinstance(form, Reshape):
                self.inside[form] = around
                self.prepare_dense(form)
                return None
            if isinstance(form, View) and (form in self.dense or not self.moved(form)):
                self.inside[form] = around
                self.read[form] = any(self.reads(user, form) for user in users)
                return None
            computed = not any(self.reads(user, form) for user in users)
            if isinstance(form, Iota) and computed:
                self.inside[form] = around
                return None
            if len(around) == 1 and computed:
                (group,) = around
                if len(group.members) < LARGEST_GROUP and self.joins(form, group):
                    group.members.append(form)
                    self.inside[form] = around
                    return None
        group = Group(form, [form])
        if isinstance(form, Contraction | Convolution):
            group.tile = form
            group.attention = self.attentions.get(form)
        elif isinstance(form, Fold):
            group.space, group.axes = form.argument.shape, form.axes
        self.inside[form] = {group}
        self.identity[form] = True
        return group

    def reads(self, user: Form, form: Form) -> bool:
        """True where a user wants elements of a form from memory, not computed in their place."""
        if user in self.within and user in self.within[user].peeled:
            return True
        if isinstance(user, View) and user not in self.forced:
            return self.read.get(user, True)
        if isinstance(user, Take):
            return user.source is form
        return not isinstance(user, Map | Fold | Join | View)

    def moved(self, view: View) -> bool:
        """True where a view must be in memory by itself: something takes it as a whole."""
        return any(
            isinstance(user, Result) or (isinstance(user, Reshape) and not _strided(user))
            for user in self.users[view]
        )

    def joins(self, form: Form, group: Group) -> bool:
        """The table: which kinds of forms a group can take in."""
        match form:
            case Map() | Take():
                root = group.root
                parts = [part.shape for part in root.parts] if isinstance(root, Join) else []
                spaces = parts or [group.space or root.shape]
                same = product(form.shape) in map(product, spaces)
                return same or (isinstance(form, Map) and form.name not in EXPENSIVE)
            case Iota():
                return True
            case Fold():
                if not self.identity[form] or group.tile is not None:
                    return False
                if group.axes is not None:
                    return group.axes == form.axes and group.space == form.argument.shape
                if group.root.shape not in (form.argument.shape, form.shape):
                    return False
                if not isinstance(group.root, Map | Fold):
                    return False
                group.space, group.axes = form.argument.shape, form.axes
                return True
            case Contraction() if form in self.attentions:
                return False
            case Contraction() | Convolution():
                if not self.identity[form] or group.axes is not None or group.tile is not None:
                    return False
                if not isinstance(group.root, Map) or group.root.shape != form.shape:
                    return False
                group.tile = form
                return True
        return False

    def prepare_dense(self, form: Reshape) -> None:
        """See to it that what is reshaped lies in the order of its own axes.

        A transposition that only this one uses is done by the kernel that makes its source.
        """
        turned = form.source
        if not isinstance(turned, View) or turned in self.forced or len(self.users[turned]) > 1:
            return
        if _strided(form):
            return
        source, order = turned.source, permutation(turned)
        plain = isinstance(source, Contraction | Convolution | Map | Fold | Join)
        if order is None or not plain or source in self.forced or len(self.users[source]) > 1:
            return
        self.order[source] = order
        self.dense.add(turned)
        self.read[turned] = True


def channels_last(rank: int) -> tuple[int, ...]:
    """The order in memory of images between convolutions.

    >>> channels_last(4)
    (0, 2, 3, 1)
    """
    return (0, *range(2, rank), 1)


def permutation(view: View) -> tuple[int, ...] | None:
    """The order of axes where a view only changes that."""
    places = [axis.axis for axis in view.axes if axis == Axis(axis.axis)]
    if set(places) != set(range(len(view.shape))) or len(places) != len(view.axes):
        return None
    order = tuple(places.index(axis) for axis in range(len(places)))
    same = view.shape == tuple(view.source.shape[axis] for axis in order)
    return order if same else None


def _strided(form: Reshape) -> bool:
    """Whether a reshape of a view can be read where the view's source lies, in the usual order."""
    view = form.source
    if not isinstance(view, View):
        return False
    place = view.source.source if isinstance(view.source, Reshape) else view.source
    usual = dense_strides(place.shape)
    strides = strides_of(form, lambda item: usual if item is place else None)
    return strides is not None and not isinstance(place, View | Reshape)


def _choose_layouts(fusion: Fusion) -> None:
    """Images stay channels-last from a convolution to the next, through what lies between."""
    needs_usual = _reshaped_sources(fusion)
    convolved = {group.tile.image for group in fusion.groups if isinstance(group.tile, Convolution)}
    for group in fusion.groups:
        root = group.root
        plain = root in fusion.order or root in needs_usual or isinstance(root, Result)
        plain = plain or isinstance(group.tile, Contraction)
        if plain or len(root.shape) < 3:
            continue
        wanted = isinstance(group.tile, Convolution) or root in convolved
        if wanted or any(_is_last(fusion, form) for form in _images_read(fusion, root)):
            fusion.order[root] = channels_last(len(root.shape))


def _is_last(fusion: Fusion, form: Form) -> bool:
    """Whether an image in memory has its channels side by side."""
    if isinstance(form, Reshape):
        strides = fusion.strides(form)
        return strides is not None and strides[1] == 1 and form.shape[1] != 1
    return fusion.order.get(form) == channels_last(len(form.shape))


def _images_read(fusion: Fusion, root: Form) -> list[Form]:
    """Images in memory that a result is computed from, axis by axis in the order of its own."""
    found: list[Form] = []
    seen = {root}
    waiting = [root]
    while waiting:
        for source in waiting.pop().sources:
            order = permutation(source) if isinstance(source, View) else None
            turned = order is not None and order != tuple(range(len(source.shape)))
            if source in seen or turned or len(source.shape) != len(root.shape):
                continue
            seen.add(source)
            if source in fusion.roots or isinstance(source, Reshape):
                found.append(source)
            else:
                waiting.append(source)
    return found


def _reshaped_sources(fusion: Fusion) -> set[Form]:
    """What must lie in the usual order, since a reshape reads it so."""
    forms = topological([group.root for group in fusion.groups])
    users: dict[Form, list[Form]] = {}
    for form in forms:
        for source in form.sources:
            users.setdefault(source, []).append(form)
    reshapes = [form for form in forms if isinstance(form, Reshape)]
    return {
        fusion.storage(form.source)
        for form in reshapes
        if not _read_turned(fusion, form, users.get(form, []))
    }


def _read_turned(fusion: Fusion, form: Reshape, users: list[Form]) -> bool:
    """Whether all who read a reshape of an image take its channels last, one after another."""
    image = fusion.storage(form.source)
    if len(image.shape) < 3 or form in fusion.roots:
        return False
    last = dense_strides(image.shape, channels_last(len(image.shape)))

    def in_order(reader: Form) -> bool:
        strides = strides_of(reader, lambda item: last if item is image else None)
        return strides is not None and lies_in_order(reader.shape, strides)

    turned = [isinstance(user, View) and user not in fusion.roots for user in users]
    return in_order(form) or (all(turned) and all(map(in_order, users)))
