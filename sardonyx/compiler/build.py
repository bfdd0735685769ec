"""Forms to steps: groups as calls of kernels, in segments between nodes that run in NumPy."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Generic, TypeVar

from sardonyx.compiler.alike import Workshop
from sardonyx.compiler.forms import (
    Contraction,
    Convolution,
    Form,
    Gather,
    Join,
    Number,
    Result,
    Source,
    View,
    Window,
)
from sardonyx.compiler.fuse import Fusion, Group, fuse
from sardonyx.compiler.image import Row
from sardonyx.compiler.kernels.attention import attention_calls
from sardonyx.compiler.kernels.convolution import convolution_calls
from sardonyx.compiler.kernels.copies import gather_calls, join_calls, window_calls
from sardonyx.compiler.kernels.matmul import matmul_calls
from sardonyx.compiler.kernels.reader import Call
from sardonyx.compiler.kernels.routine import routine_calls
from sardonyx.compiler.kernels.rows import pointwise_calls, row_calls
from sardonyx.compiler.lower import Cut, Lowered, size_names
from sardonyx.compiler.reference import read_values
from sardonyx.compiler.targets import Target
from sardonyx.compiler.waves import Wave, find_waves
from sardonyx.dims import Expression
from sardonyx.dtypes import DataType
from sardonyx.errors import GraphError, UnsupportedError
from sardonyx.graph import Graph, Node, Value
from sardonyx.loops import Kernel


@dataclass(eq=False)
class Step:
    """Calls that run one after another without anything between them."""

    calls: list[Call] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    """The name of the kernel each call belongs to."""
    inputs: list[Form] = field(default_factory=list)
    outputs: list[Form] = field(default_factory=list)
    order: dict[Form, tuple[int, ...]] = field(default_factory=dict)
    groups: list[Group] = field(default_factory=list)
    waves: list[Wave] = field(default_factory=list)


@dataclass(eq=False)
class Built:
    """Steps in order, the form that holds each value kept, and what was computed together."""

    steps: list[Step | Node | Cut]
    stored: dict[Value, Form]
    fusion: Fusion

    def explain(self, graph: Graph, lowered: Lowered) -> Iterator[Row]:
        """What became of each node."""
        where: dict[Node, Group] = {}
        for group in self.fusion.groups:
            for member in group.members:
                if member in lowered.made_by:
                    where.setdefault(lowered.made_by[member], group)
        together: dict[Group, list[str]] = {}
        for node, group in where.items():
            together.setdefault(group, []).append(node.where())
        for node in graph.nodes:
            kernel, reason = "view", ""
            others: tuple[str, ...] = ()
            if node in lowered.reasons:
                kernel, reason = "reference", lowered.reasons[node]
                if any(node.subgraphs):
                    kernel, reason = "subgraphs", ""
                if node not in self.steps:
                    kernel = "not needed"
            elif node in lowered.folded:
                kernel = "constant"
            elif node in where:
                group = where[node]
                kernel = kernel_name(self.fusion, group)
                others = tuple(name for name in together[group] if name != node.where())
            yield node.where(), node.op_type, kernel, others, reason


def kernel_kind(group: Group) -> str:
    """The kind of kernel a group becomes, in a word."""
    if group.attention is not None:
        return "attention"
    if group.tile is not None:
        return type(group.tile).__name__.lower()
    if group.axes is not None:
        return "rows"
    return type(group.root).__name__.lower()


def kernel_name(fusion: Fusion, group: Group) -> str:
    """A kernel's kind and number."""
    return f"{kernel_kind(group)} {fusion.groups.index(group)}"


def group_calls(fusion: Fusion, group: Group, target: Target) -> list[Call]:
    """A group as calls of kernels."""
    if group.attention is not None:
        return attention_calls(fusion, group, group.attention, target)
    if isinstance(group.tile, Contraction):
        return matmul_calls(fusion, group, target)
    if isinstance(group.tile, Convolution):
        return convolution_calls(fusion, group, target)
    if group.axes is not None:
        return row_calls(fusion, group, target)
    match group.root:
        case Gather():
            return gather_calls(fusion, group)
        case Join():
            return join_calls(fusion, group)
        case Result():
            return routine_calls(fusion, group, target)
        case Window():
            return window_calls(fusion, group, target)
    return pointwise_calls(fusion, group, target)


def build_steps(
    graph: Graph,
    lowered: Lowered,
    target: Target,
    seen: Callable[[Kernel], object] = lambda kernel: None,
) -> Built:
    """Everything that must run for a graph's outputs, in order; `seen` is told of each kernel."""
    between = needed_between(graph, lowered)
    kept = _kept_values(graph, lowered, between)
    fusion = fuse([lowered.forms[value] for value in kept])
    stored = {
        value: fusion.stored.get(lowered.forms[value], lowered.forms[value]) for value in kept
    }
    stored |= {value: form for value, form in lowered.forms.items() if isinstance(form, Source)}
    calls = {}
    workshop = Workshop(fusion, lambda group: group_calls(fusion, group, target))
    for group in fusion.groups:
        calls[group] = workshop.calls(group)
        for call in calls[group]:
            seen(call.kernel)
    steps = _schedule(graph, lowered, fusion, calls, between, stored)
    _connect(steps, set(stored.values()))
    for step in steps:
        if isinstance(step, Step):
            several = [(group, calls[group]) for group in step.groups]
            step.waves = find_waves(fusion, several, [*step.inputs, *step.outputs], target)
    return Built(steps, stored, fusion)


Item = TypeVar("Item", bound=Hashable)
_NOTHING = Source((), DataType.FLOAT, Value())


def _needs(step: Node | Cut) -> list[Value]:
    return [step.whole, step.count] if isinstance(step, Cut) else read_values(step)


def _made_values(step: Node | Cut) -> Sequence[Value]:
    return (step.output,) if isinstance(step, Cut) else step.outputs


def needed_between(graph: Graph, lowered: Lowered) -> list[Node | Cut]:
    """What runs between kernels, if outputs depend on it: nodes without a native form, and cuts."""
    needed: set[Node | Cut] = set()
    seen: set[Form | Value] = set()
    waiting: list[Form | Value] = [*graph.outputs, *lowered.believed]
    while waiting:
        item = waiting.pop()
        if item in seen:
            continue
        seen.add(item)
        if isinstance(item, Form):
            waiting.extend([item.value] if isinstance(item, Source) else item.sources)
            waiting.extend(lowered.bound[name] for name in _told(item, lowered))
            continue
        node = item.producer
        step: Node | Cut | None = lowered.cuts.get(item)
        if step is None and node is not None and node in lowered.reasons:
            step = node
        if step is not None and step not in needed:
            needed.add(step)
            waiting.extend(_needs(step))
        if step is None and item in lowered.forms and item not in lowered.constants:
            waiting.append(lowered.forms[item])
    order: list[Node | Cut] = []
    for node in graph.nodes:
        cuts = (lowered.cuts.get(value) for value in node.outputs)
        order += [step for step in (node, *cuts) if step is not None and step in needed]
    return order


def _names(form: Form) -> set[str]:
    """The names of sizes that a form depends on."""
    sizes = list(form.shape)
    match form:
        case Number(number=Expression() as number):
            sizes.append(number)
        case View(axes=axes):
            sizes += [size for axis in axes for size in (axis.start, axis.step)]
    return size_names(tuple(sizes))


def _told(form: Form, lowered: Lowered) -> set[str]:
    """The names of sizes that a form depends on and that values tell."""
    return lowered.definitions.told(_names(form)) & lowered.bound.keys()


def _kept_values(graph: Graph, lowered: Lowered, between: list[Node | Cut]) -> list[Value]:
    """Values that must be in memory as arrays: outputs, and what is read between kernels."""
    wanted = dict.fromkeys(graph.outputs)
    for step in between:
        wanted.update(dict.fromkeys(_needs(step)))
    return [
        value
        for value in wanted
        if value not in lowered.constants
        and not isinstance(lowered.forms.get(value, _NOTHING), Source)
    ]  # fmt: skip


class _Queue(Generic[Item]):
    """What waits for others, and becomes ready in the order in which it was added."""

    def __init__(self, made: set[Form | Value]) -> None:
        self._made = made
        self._left: dict[Item, int] = {}
        self._ranks: dict[Item, int] = {}
        self._waiters: dict[Form | Value, list[list[Item]]] = {}
        self._ready: list[tuple[int, Item]] = []

    def add(self, item: Item, needs: Iterable[tuple[Form | Value, ...]]) -> None:
        """Let an item wait until of each of its needs one alternative is made."""
        self._ranks[item] = len(self._ranks)
        missing = [ways for ways in needs if self._made.isdisjoint(ways)]
        self._left[item] = len(missing)
        for ways in missing:
            need = [item]
            for way in ways:
                self._waiters.setdefault(way, []).append(need)
        if not missing:
            heappush(self._ready, (self._ranks[item], item))

    def tell(self, values: Iterable[Form | Value]) -> None:
        """Say that these are made now."""
        for value in values:
            for need in self._waiters.pop(value, ()):
                if not need:
                    continue
                item = need.pop()
                self._left[item] -= 1
                if not self._left[item]:
                    heappush(self._ready, (self._ranks[item], item))

    def take(self) -> Iterator[Item]:
        """What is ready, also what becomes so meanwhile."""
        while self._ready:
            _, item = heappop(self._ready)
            del self._left[item]
            yield item

    def __len__(self) -> int:
        return len(self._left)

    @property
    def left(self) -> list[Item]:
        """What still waits."""
        return list(self._left)


def _schedule(
    graph: Graph, lowered: Lowered, fusion: Fusion, calls: dict[Group, list[Call]],
    between: list[Node | Cut], stored: dict[Value, Form],
) -> list[Step | Node | Cut]:  # fmt: skip
    """As much as possible runs in one step before anything else does."""
    made: set[Form | Value] = {*graph.inputs, *graph.initializers, *lowered.constants}
    groups: _Queue[Group] = _Queue(made)
    others: _Queue[Node | Cut] = _Queue(made)
    for group in fusion.groups:
        names = _sizes(group, calls[group], lowered)
        groups.add(group, [*((lowered.bound[name],) for name in names), *_read(group, calls)])
    for other in between:
        others.add(other, [_ways(value, lowered, stored) for value in _needs(other)])

    def make(values: Iterable[Form | Value]) -> None:
        fresh = [value for value in values if value not in made]
        made.update(fresh)
        groups.tell(fresh)
        others.tell(fresh)

    steps: list[Step | Node | Cut] = []
    while groups or others:
        left = len(groups) + len(others)
        step = Step(order=fusion.order)
        for group in groups.take():
            step.calls += calls[group]
            step.groups.append(group)
            step.names += [kernel_name(fusion, group)] * len(calls[group])
            make(group.results)
        if step.calls:
            steps.append(step)
        for other in others.take():
            steps.append(other)
            make(_made_values(other))
        if len(groups) + len(others) == left:
            raise _unmade(groups.left, calls, others.left, made)
    return steps


def _unmade(
    groups: list[Group], calls: dict[Group, list[Call]], between: list[Node | Cut],
    made: set[Form | Value],
) -> GraphError:  # fmt: skip
    """Why nothing that is left can run: it waits for a value that nothing makes, or for itself."""
    places = [place for group in groups for call in calls[group] for place in call.places]
    read = [place.value for place in places if isinstance(place, Source)]
    read += [value for step in between for value in _needs(step)]
    for value in read:
        if value is not None and value not in made and value.producer is None:
            return GraphError(
                f"'{value.name}' is used but nothing makes it", hint="check the model"
            )
    return GraphError("the graph has a cycle", hint="check the model")


def _sizes(group: Group, calls: list[Call], lowered: Lowered) -> set[str]:
    """The names of sizes that must be known before a group can run."""
    names = {name for call in calls for name in call.kernel.parameters}
    names |= {name for form in group.results for name in size_names(form.shape)}
    names = lowered.definitions.told(names)
    if names - lowered.bound.keys():
        raise UnsupportedError(
            f"the sizes of a {kernel_kind(group)} kernel are too long an expression to compile",
            hint="run the model with the ReferenceExecutionProvider, or fix its dynamic sizes",
        )
    return names


def _ways(value: Value, lowered: Lowered, stored: dict[Value, Form]) -> tuple[Form | Value, ...]:
    """What any one of has to be made before a value can be read."""
    form = lowered.forms.get(value)
    ways = (value, form.value if isinstance(form, Source) else None, stored.get(value))
    return tuple(way for way in ways if way is not None)


def _read(group: Group, calls: dict[Group, list[Call]]) -> Iterator[tuple[Form | Value, ...]]:
    """What has to be made before a group can run, beside sizes."""
    own = set(group.results)
    for call in calls[group]:
        for place in call.places:
            if isinstance(place, Source):
                if place.constant is None:
                    yield (place.value,)
            elif isinstance(place, Form) and place not in own:
                yield (place,)


def _connect(steps: list[Step | Node | Cut], kept: set[Form]) -> None:
    """What each step takes from outside, and what it leaves for others."""
    made_in: dict[Form, Step] = {}
    for step in steps:
        if not isinstance(step, Step):
            continue
        for call in step.calls:
            for place in call.places:
                if isinstance(place, Form) and not isinstance(place, Source):
                    made_in.setdefault(place, step)
    for step in steps:
        if not isinstance(step, Step):
            continue
        places = dict.fromkeys(
            place for call in step.calls for place in call.places if isinstance(place, Form)
        )
        for place in places:
            if isinstance(place, Source):
                if place.constant is None:
                    step.inputs.append(place)
            elif made_in[place] is not step:
                step.inputs.append(place)
                if place not in made_in[place].outputs:
                    made_in[place].outputs.append(place)
        step.outputs += [form for form in places if form in kept and made_in.get(form) is step
                         and form not in step.outputs]  # fmt: skip
