"""Rewrite rules: a pattern of operators, a check, and what takes its place.

A pattern is written by calling operators on placeholders. Each placeholder is a parameter of
`pattern`; one with the default None stands for an input that may be absent. A plain number stands
for a constant of that value, a keyword for an attribute of that value, `outputs=2` for an operator
with two results, and `op.either("Add", "Sub")(x, y)` for any of several operators. `.named("conv")`
lets `check` and `replace` have the node that was matched.
"""

from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from inspect import signature
from logging import getLogger
from typing import Any, ClassVar, NamedTuple

import numpy as np

from sardonyx.graph import Node, Value
from sardonyx.ops.build import Builder
from sardonyx.passes.operand import Operand
from sardonyx.passes.remove_dead import drop_constants
from sardonyx.passes.unit import UNKNOWN, Unit, drop_unused, label_of, record_origin, refers
from sardonyx.record import entity, record

_log = getLogger("sardonyx.passes")

COMMUTATIVE = frozenset(
    ("Add", "And", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Equal", "Max", "Mean", "Min", "Mul",
     "Or", "Sum", "Xor")
)  # fmt: skip
"""Operators whose two inputs may change places."""


class Because(str):
    """A reason why a rule that matched does not apply; counts as false."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return False


def because(reason: str) -> Any:
    """What `check` returns where a rule does not apply.

    >>> bool(because("the weights are not constant"))
    False
    """
    return Because(reason)


@record
class Placeholder:
    """Stands for any value; the same one twice for the same value."""

    name: str
    optional: bool = False


@entity
class Call:
    """Stands for a node."""

    op_types: tuple[str, ...]
    domain: str
    inputs: tuple[Any, ...]
    attributes: dict[str, Any]
    outputs: int = 1
    label: str = ""


@entity
class Result:
    """Stands for one result of a node."""

    call: Call
    index: int

    def named(self, label: str) -> "Result":
        """The same, with a name by which `check` and `replace` get the node."""
        object.__setattr__(self.call, "label", label)
        return self


class PatternBuilder:
    """The `op` of a pattern: operators called on it make patterns."""

    def __getattr__(self, op_type: str) -> Callable[..., Any]:
        return self.either(op_type)

    def either(self, *op_types: str) -> Callable[..., Any]:
        """Any one of several operators."""

        def call(*inputs: Any, outputs: int = 1, domain: str = "", **attributes: Any) -> Any:
            made = Call(op_types, domain, inputs, attributes, outputs)
            results = tuple(Result(made, index) for index in range(outputs))
            return results[0] if outputs == 1 else results

        return call


class Rule:
    """Root of all rules; a subclass has the static hooks `pattern`, `check` and `replace`.

    - `pattern(op, x, ...)` -> what to look for, ending in the node that is replaced
    - `check(x, ...)` -> True, or `because(...)`; takes any of the placeholders and named nodes
    - `replace(op, x, ...)` -> what takes the place of the outputs; None to leave all as it is

    Both may take `unit` too. Values between the matched nodes must have no other users, unless
    `shared` is set: then nodes that are still used stay.
    """

    shared: ClassVar[bool] = False
    since: ClassVar[int] = 7
    """The first opset at which the rule holds; before 7 arithmetic did not broadcast."""

    def __init_subclass__(cls) -> None:
        for key in ("pattern", "check", "replace"):
            if key in cls.__dict__ and not isinstance(cls.__dict__[key], staticmethod):
                setattr(cls, key, staticmethod(cls.__dict__[key]))

    pattern: ClassVar[Callable[..., Any]]
    check: ClassVar[Callable[..., Any]] = staticmethod(lambda: True)
    replace: ClassVar[Callable[..., Any]]


class Match(NamedTuple):
    """What placeholders and names stand for, and the nodes that were matched, root first."""

    values: dict[str, Value | None]
    nodes: dict[Call, Node]

    def with_value(self, name: str, value: Value | None) -> "Match":
        """One more placeholder bound."""
        return Match(self.values | {name: value}, self.nodes)

    def with_node(self, call: Call, node: Node) -> "Match":
        """One more node matched."""
        return Match(self.values, self.nodes | {call: node})


class RuleBuilder(Builder):
    """Makes nodes as a unit's opset wants them; operands and arrays are inputs.

    A keyword that is an input in this version becomes a constant: `op.Squeeze(x, axes=[0])`.
    """

    def __init__(self, unit: Unit, root: Node) -> None:
        graph = root.graph
        assert graph is not None
        super().__init__(graph, unit.opset, root, unit.names, constants_as_nodes=unit.is_function)
        self.unit = unit

    def node(
        self, op_type: str, inputs: tuple[Any, ...], outputs: int, domain: str,
        attributes: dict[str, Any],
    ) -> Any:  # fmt: skip
        """Make one node."""
        given = [item.value if isinstance(item, Operand) else item for item in inputs]
        operator = None if domain else self.unit.catalog.get(("", op_type))
        version = None if operator is None else operator.at(self.opset)
        self.unit.op_types.add(op_type)
        kept = dict(attributes)
        for position, formal in enumerate(version.inputs if version else ()):
            if kept.get(formal.name) is not None:
                given += [None] * (position + 1 - len(given))
                given[position] = kept.pop(formal.name)
        return super().node(op_type, tuple(given), outputs, domain, kept)


Pattern = tuple[tuple[Result, ...], Call]


@cache
def pattern_of(hook: Callable[..., Any]) -> Pattern:
    """A rule's pattern: its results, and the node they belong to."""
    names = list(signature(hook).parameters.values())[1:]
    made = hook(PatternBuilder(), *[Placeholder(item.name, item.default is None) for item in names])
    results = made if isinstance(made, tuple) else (made,)
    return results, results[0].call


@cache
def needed_operators(hook: Callable[..., Any]) -> tuple[frozenset[str], ...]:
    """The operators a pattern is made of: of each set one must be there for it to fit."""
    found: dict[Call, None] = {}
    waiting: list[Any] = [pattern_of(hook)[1]]
    while waiting:
        item = waiting.pop()
        if isinstance(item, Call) and item not in found:
            found[item] = None
            waiting.extend(item.inputs)
        elif isinstance(item, Result):
            waiting.append(item.call)
    return tuple(frozenset(call.op_types) for call in found)


@lru_cache(maxsize=256)
def index_rules(rules: tuple[type[Rule], ...]) -> dict[tuple[str, str], list[type[Rule]]]:
    """Rules by the domain and name of the operator they end in."""
    found: dict[tuple[str, str], list[type[Rule]]] = {}
    for rule in rules:
        root = pattern_of(rule.pattern)[1]
        for name in root.op_types:
            found.setdefault((root.domain, name), []).append(rule)
    return found


def apply_rules(unit: Unit, *rules: type[Rule]) -> int:
    """Apply rules everywhere until none fits; returns how often one did."""
    wanted = tuple(rule for rule in rules if rule.since <= unit.opset and _may_fit(unit, rule))
    if not wanted:
        return 0
    index = index_rules(wanted)
    names = {name for _, name in index}
    waiting = {node: None for node in unit.nodes() if node.op_type in names}
    count = 0
    while waiting:
        node = next(iter(waiting))
        del waiting[node]
        if node.graph is None:
            continue
        domain = "" if node.domain == "ai.onnx" else node.domain
        for rule in index.get((domain, node.op_type), ()):
            touched = apply_rule(unit, rule, node)
            if touched is not None:
                release_constants(unit)
                count += 1
                waiting.update(dict.fromkeys(item for item in touched if item.graph is not None))
                break
    return count


def release_constants(unit: Unit) -> None:
    """Let go of constants that have lost their readers, once they take much memory."""
    if unit.unread_bytes > unit.slack:
        unit.unread_bytes = 0
        for part in unit.graph.walk():
            drop_constants(part)


def _may_fit(unit: Unit, rule: type[Rule]) -> bool:
    """True where the operators of a rule's pattern are all there."""
    present = unit.op_types
    return not any(names.isdisjoint(present) for names in needed_operators(rule.pattern))


def apply_rule(unit: Unit, rule: type[Rule], node: Node) -> list[Node] | None:
    """Apply a rule at a node; returns nodes to look at again, or None where it does not fit."""
    results, root = pattern_of(rule.pattern)
    for match in _match_node(unit, root, node, Match({}, {})):
        if not rule.shared and not _closed(match, root):
            continue
        arguments = _arguments(unit, match)
        if not _attempt(unit, rule, rule.check, node, arguments):
            continue
        build = RuleBuilder(unit, node)
        made = _attempt(unit, rule, rule.replace, node, arguments | {"op": build})
        if made is None or isinstance(made, Because):
            drop_unused(build.made)
            continue
        values = made if isinstance(made, tuple) else (made,)
        return _put(unit, match, node, results, values, build.made)
    return None


def _attempt(
    unit: Unit, rule: type[Rule], hook: Callable[..., Any], node: Node, arguments: dict[str, Any]
) -> Any:
    """What a rule's hook says; one that fails, as on a node that breaks ONNX's rules, says no."""
    try:
        answer = _call(hook, arguments)
    except Exception as error:  # noqa: BLE001 - whoever runs the node says what is wrong with it
        answer = Because(f"it failed: {type(error).__name__}: {error}")
        step = rule.__module__.rpartition(".")[2]
        _log.warning("%s leaves node '%s' (%s) as it is: %s: %s",
                     step, label_of(node), node.op_type, rule.__name__, answer)  # fmt: skip
    if isinstance(answer, Because):
        reason = f"{rule.__name__}: {answer}"
        unit.reasons[reason] = unit.reasons.get(reason, 0) + 1
    return answer


def _arguments(unit: Unit, match: Match) -> dict[str, Any]:
    arguments: dict[str, Any] = {
        name: None if value is None else Operand(value, unit)
        for name, value in match.values.items()
    }
    arguments |= {call.label: node for call, node in match.nodes.items() if call.label}
    return arguments | {"unit": unit}


@cache
def _parameters(hook: Callable[..., Any]) -> tuple[str, ...]:
    return tuple(signature(hook).parameters)


def _call(hook: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    return hook(**{name: arguments[name] for name in _parameters(hook)})


def _match_node(unit: Unit, call: Call, node: Node, match: Match) -> Iterator[Match]:
    """Every way in which a node and what it reads fit a pattern."""
    if node.op_type not in call.op_types:
        return
    known = match.nodes.get(call)
    if known is not None:
        if known is node:
            yield match
        return
    domain = "" if node.domain == "ai.onnx" else node.domain
    if domain != call.domain or refers(node):
        return
    if len(node.outputs) > call.outputs and any(
        output.uses for output in node.outputs[call.outputs :]
    ):
        return
    if len(node.inputs) > len(call.inputs) and any(node.inputs[len(call.inputs) :]):
        return
    for key, want in call.attributes.items():
        if not _equal(unit.parameter(node, key), want):
            return
    inputs = node.inputs + (None,) * (len(call.inputs) - len(node.inputs))
    orders = [inputs]
    if node.op_type in COMMUTATIVE and len(call.inputs) == len(node.inputs) == 2:
        orders.append(inputs[::-1])
    for order in orders:
        yield from _match_inputs(unit, call.inputs, order, match.with_node(call, node))


def _match_inputs(
    unit: Unit, patterns: tuple[Any, ...], values: tuple[Value | None, ...], match: Match
) -> Iterator[Match]:
    if not patterns:
        yield match
        return
    for found in _match_value(unit, patterns[0], values[0], match):
        yield from _match_inputs(unit, patterns[1:], values[1:], found)


def _match_value(unit: Unit, pattern: Any, value: Value | None, match: Match) -> Iterator[Match]:
    match pattern:
        case None:
            if value is None:
                yield match
        case Placeholder():
            if pattern.name in match.values:
                if match.values[pattern.name] is value:
                    yield match
            elif value is not None or pattern.optional:
                yield match.with_value(pattern.name, value)
        case Result():
            maker = None if value is None else value.producer
            if maker is None or maker.op_type not in pattern.call.op_types:
                return
            root = next(iter(match.nodes.values()))
            if maker.graph is not root.graph:
                return
            if pattern.index < len(maker.outputs) and maker.outputs[pattern.index] is value:
                yield from _match_node(unit, pattern.call, maker, match)
        case _:
            if value is not None and _equal(unit.array(value), pattern):
                yield match


def _equal(found: Any, wanted: Any) -> bool:
    """True where an attribute or a constant of one element is what a pattern wants."""
    if found is None or found is UNKNOWN:
        return found is wanted
    if isinstance(found, str) or isinstance(wanted, str):
        return bool(found == wanted)
    array, expected = np.asarray(found), np.asarray(wanted)
    if expected.ndim == 0 and array.size != 1:
        return False
    if expected.ndim and array.shape != expected.shape:
        return False
    if array.dtype.kind in "iub" and expected.dtype.kind in "iub":
        return bool((array == expected).all())
    tolerance = 1e-3 if array.dtype.itemsize < 4 else 1e-6
    return bool(np.allclose(array.astype(np.float64), expected, rtol=tolerance, atol=0))


def _closed(match: Match, root: Call) -> bool:
    """True where nothing outside reads what lies between the matched nodes."""
    inside = set(match.nodes.values())
    return all(
        user in inside
        for call, node in match.nodes.items()
        if call is not root
        for output in node.outputs
        for user, _ in output.uses
    )


def _put(
    unit: Unit, match: Match, root: Node, results: tuple[Result, ...], values: tuple[Any, ...],
    made: list[Node],
) -> list[Node]:  # fmt: skip
    """Let the new values take the place of the root's outputs; returns nodes worth another look."""
    touched: list[Node] = list(made)
    for result, item in zip(results, values, strict=True):
        old, new = root.outputs[result.index], item.value if isinstance(item, Operand) else item
        touched += old.users
        unit.substitute(old, new)
        if old.is_output and old.producer is root and len(root.outputs) == 1:
            root.set_inputs([new])
            root.op_type, root.domain, root.attributes = "Identity", "", {}
        if new.producer is not None:
            touched.append(new.producer)
        touched += (new if new.uses else old).users
    record_origin(unit, made, match.nodes.values())
    touched += drop_unused(match.nodes.values())
    for value in match.values.values():
        unit.count_unread(value)
    return touched
