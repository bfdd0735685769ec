"""Which calls may run for a few images of a batch at a time, and for how many.

What one kernel leaves for the next is then still in a cache, where a whole batch would not be. Each
image of a result must depend on the same image of what it is computed from, and on nothing else
that has a batch; images lie one after another in memory.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from sardonyx.compiler.derive import QUOTIENT
from sardonyx.compiler.forms import Form, Source
from sardonyx.compiler.fuse import Fusion, Group
from sardonyx.compiler.kernels.reader import Call, Packed, Place, Scratch, Status
from sardonyx.compiler.separate import leading, separates
from sardonyx.compiler.targets import Target
from sardonyx.dims import Size, product, symbol
from sardonyx.loops.nodes import substitute, symbols
from sardonyx.record import entity, record

SHARE = 4
"""Times the second cache: what is assumed to stay in caches from one kernel to the next."""
FEW = 4
"""The part of the second cache up to which weights may be read again for every wave."""
BALANCE = 12
"""Operations for each byte that is moved, above which memory is not what a processor waits for."""


@entity
class Wave:
    """Calls from `first` up to `end` that run for at most `images` of a batch at a time."""

    first: int
    end: int
    images: int
    name: str
    """The size that counts the images."""
    strides: dict[Form, int]
    """Bytes of an image of what others made before, or read afterwards."""


@record
class _Weight:
    """Of a group: its calls, for one image bytes moved and operations, and bytes of constants."""

    first: int
    end: int
    moved: int
    work: int
    constants: int


def find_waves(
    fusion: Fusion, groups: Sequence[tuple[Group, Sequence[Call]]], kept: Iterable[Form],
    target: Target,
) -> list[Wave]:  # fmt: skip
    """The waves of a step: its groups in order, each with its calls; `kept` outlive the step."""
    name = _batch_name(groups)
    if name is None:
        return []
    outside = set(kept)
    spans: list[_Span] = []
    span = _Span(target)
    at = 0
    for group, calls in groups:
        weight = _weight(fusion, group, calls, name, at)
        at += len(calls)
        if weight is None or not span.takes(weight):
            spans.append(span)
            span = _Span(target)
            if weight is not None:
                span.takes(weight)
    calls = [call for _, several in groups for call in several]
    waves = [_wave(calls, span, name, outside) for span in [*spans, span] if span.groups]
    return [wave for wave in waves if wave is not None]


def _batch_name(groups: Sequence[tuple[Group, Sequence[Call]]]) -> str | None:
    """The first size that stands alone at the beginning of the shape of a place in memory.

    Nobody tells a quotient's name to a run, which cuts what it was told into waves.
    """
    for _, calls in groups:
        for call in calls:
            for place in call.places:
                if isinstance(place, Form) and place.shape:
                    names = symbols(place.shape[0])
                    (name,) = names if len(names) == 1 else ("",)
                    if name and place.shape[0] == symbol(name) and not QUOTIENT.fullmatch(name):
                        return name
    return None


class _Span:
    """Groups one after another that can share a number of images."""

    def __init__(self, target: Target) -> None:
        self._room = SHARE * target.second_cache
        self._few = target.second_cache // FEW
        self.groups: list[_Weight] = []
        self.images = self._room
        self.constants = 0
        self._least = 1

    def takes(self, weight: _Weight) -> bool:
        """Add a group, where its images fit and do not move less than its weights do."""
        moved = max(weight.moved, 1)
        most = min(self.images, max(self._room // moved, 1))
        needed = 1 if weight.constants <= self._few else -(-weight.constants // moved)
        least = max(self._least, needed)
        if least > most or self.constants + weight.constants > self._room:
            return False
        self.groups.append(weight)
        self._least, self.images = least, most
        self.constants += weight.constants
        return True


def _weight(
    fusion: Fusion, group: Group, calls: Sequence[Call], name: str, first: int
) -> _Weight | None:
    """What a group moves, if it can run for some images of a batch alone."""
    if not separates(fusion, group.root, name):
        return None
    moved = work = constants = 0
    for call in calls:
        if not {*call.kernel.parameters} <= {name}:
            return None
        operations = substitute(call.work, {name: 1})
        assert isinstance(operations, int)
        work += operations
        for place in call.places:
            held = isinstance(place, Source) and place.constant is not None
            if held or isinstance(place, Packed):
                constants += _bytes(place)
            elif isinstance(place, Form | Scratch):
                size = _image_bytes(place, name)
                ordered = fusion.order.get(place, (0,)) if isinstance(place, Form) else (0,)
                if size is None or ordered[0] != 0:
                    return None
                moved += size
    return _Weight(first, first + len(calls), moved, work, constants)


def _image_bytes(place: Form | Scratch, name: str) -> int | None:
    """Bytes of one image; 0 where there is no batch, None where it is not the first axis."""
    count = leading(place.shape, name)
    if count is None:
        return None
    return _bytes(place, {name: 1}) if count else 0


def _bytes(place: Place, sizes: Mapping[str, Size] = MappingProxyType({})) -> int:
    assert not isinstance(place, Status)
    size = substitute(product(place.shape), dict(sizes))
    assert isinstance(size, int)
    return size * place.dtype.numpy.itemsize


def _wave(calls: Sequence[Call], span: _Span, name: str, outside: set[Form]) -> Wave | None:
    """The wave of a span, if it waits for memory and keeps more in caches than it reads again."""
    if sum(item.work for item in span.groups) > BALANCE * sum(item.moved for item in span.groups):
        return None
    first, end = span.groups[0].first, span.groups[-1].end
    inside = {place for call in calls[first:end] for place in call.places}
    rest = {place for call in (*calls[:first], *calls[end:]) for place in call.places} | outside
    strides, kept = {}, 0
    for place in inside:
        if isinstance(place, Form):
            size = _image_bytes(place, name) or 0
            if place in rest or isinstance(place, Source):
                strides[place] = size
            else:
                kept += size
    if kept == 0 or kept * span.images < span.constants:
        return None
    return Wave(first, end, span.images, name, strides)
