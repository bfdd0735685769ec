# mypy: disable-error-code="misc, no-any-return"
"""Operators that run graphs: one of two, or one again and again."""

from collections.abc import Callable
from typing import Any

import numpy as np

from sardonyx.dims import Expression, Size, maximum
from sardonyx.dtypes import DataType, from_numpy
from sardonyx.errors import ConversionError, EvaluationError, InferenceError
from sardonyx.graph import Graph, Node, OptionalType, Tensor, TensorType, Value
from sardonyx.ops.build import Builder
from sardonyx.ops.element_type import element_type
from sardonyx.ops.evaluate import Context
from sardonyx.ops.fact import Fact, axis_of, join, same_size, tensor
from sardonyx.ops.infer import InferContext
from sardonyx.ops.operator import Operator, as_outputs
from sardonyx.ops.precision import Array
from sardonyx.ops.work import NODE_WORK, require_work

_TENSORS = {
    16: "all",
    19: "all float8s",
    21: "all float8s int4s",
    23: "all float8s int4s float4e2m1",
    24: "all float8s int4s float4e2m1 float8e8m0",
    25: "all float8s int4s int2s float4e2m1 float8e8m0",
}
_VALUES = {
    since: f"{types} seq({types}) optional({types}) optional(seq(all))"
    for since, types in _TENSORS.items()
}
_IF = "(cond: B, else_branch: graph, then_branch: graph) -> outputs+: each V; B: bool; V: "
_LOOP = (
    "(M?: I, cond?: B, v_initial*: each V, body: graph) -> v_final_and_scan_outputs+: each V; "
    "I: int64; B: bool; V: "
)
_SCAN = (
    "(initial_state_and_scan_inputs+: each V, body: graph, num_scan_inputs: int, "
    "scan_input_axes?: ints, scan_input_directions?: ints, scan_output_axes?: ints, "
    "scan_output_directions?: ints) -> final_state_and_scan_outputs+: each V; V: "
)


class If(Operator):
    """The outputs of one of two graphs, as a condition says."""

    signatures = (
        f"1{_IF}all15",
        f"11{_IF}all15",
        f"13{_IF}all15 seq(all15)",
        *(f"{since}{_IF}{types}" for since, types in _VALUES.items()),
    )

    def infer(
        condition: Fact, then_branch: Graph, else_branch: Graph, context: InferContext
    ) -> tuple[Fact, ...]:
        then, otherwise = context.infer(then_branch, []), context.infer(else_branch, [])
        if len(then) != len(otherwise):
            raise InferenceError(f"the branches have {len(then)} and {len(otherwise)} outputs")
        for left, right in zip(then, otherwise, strict=True):
            if left.dtype and right.dtype and left.dtype != right.dtype:
                raise InferenceError(f"the branches give {left} and {right}")
        known = condition.constant
        if known is not None and known.size == 1:
            return tuple(then if known.reshape(-1)[0] else otherwise)
        return tuple(join(left, right) for left, right in zip(then, otherwise, strict=True))

    def reference(
        condition: Array, then_branch: Graph, else_branch: Graph, context: Context
    ) -> tuple[Any, ...]:
        if condition.size != 1:
            raise EvaluationError(f"the condition has {condition.size} elements, not one")
        return tuple(context.run(then_branch if condition.reshape(-1)[0] else else_branch, []))


def _settle(
    states: list[Fact], step: Callable[[list[Fact]], list[Fact]]
) -> tuple[list[Fact], list[Fact]]:
    """Facts of states that hold before every round, and what the last round of inference gave."""
    states = [fact.with_value(None) for fact in states]
    while True:
        results = step(states)
        wider = [_widened(before, after) for before, after in zip(states, results, strict=False)]
        if all(_same(before, after) for before, after in zip(states, wider, strict=True)):
            return wider, results
        states = wider


def _widened(before: Fact, after: Fact) -> Fact:
    """What holds of a state whatever the number of rounds; an optional one may become filled."""
    if isinstance(before.type, OptionalType) and not isinstance(after.type, OptionalType):
        return before
    return join(before, after)


def _same(left: Fact, right: Fact) -> bool:
    return (left.type, left.dtype, left.shape) == (right.type, right.dtype, right.shape)


def _stacked(items: list[Array], axis: int = 0) -> Array:
    """What every round gave for an output, along a new dimension."""
    return np.stack(items, axis)


def _unfilled(result: Value, fact: Fact, axis: int = 0) -> Array:
    """What an output is where no round was run: of the sizes that a round would have given it."""
    kind = fact.dtype or element_type(result)
    if kind is None:
        raise EvaluationError(f"no round was run, and the type of '{result.name}' is not declared")
    declared = result.type.shape if isinstance(result.type, TensorType) else None
    sizes = fact.shape if fact.shape is not None else declared or ()
    if declared is not None and len(declared) == len(sizes):
        pairs = zip(sizes, declared, strict=True)
        sizes = tuple(size if isinstance(size, int) else other for size, other in pairs)
    shape = [size if isinstance(size, int) and size > 0 else 0 for size in sizes]
    shape.insert(axis if axis >= 0 else axis + len(shape) + 1, 0)
    return np.zeros(shape, kind.numpy)


def _before(item: Any) -> Fact:
    """What is known of a state before the first round, whatever it becomes."""
    return tensor(from_numpy(item.dtype), item.shape) if isinstance(item, np.ndarray) else Fact()


class Loop(Operator):
    """A graph run as often as a count or a condition says, with states carried from round to round.

    The body takes the round's number, the condition and the states; it gives a condition, the
    states, and values that are stacked over all rounds. Without a condition among the inputs, the
    one the body gives is ignored.
    """

    signatures = (
        f"1{_LOOP.replace('v_initial*', 'v_initial+')}all15",
        f"11{_LOOP}all15",
        f"13{_LOOP}all15 seq(all15)",
        *(f"{since}{_LOOP}{types}" for since, types in _VALUES.items()),
    )

    def infer(
        count: Fact | None = None, condition: Fact | None = None, *initial: Fact,
        body: Graph, context: InferContext,
    ) -> tuple[Fact, ...]:  # fmt: skip
        number = tensor(DataType.INT64, _scalar_shape(body, 0))
        going = tensor(DataType.BOOL, _scalar_shape(body, 1))
        always = condition is None
        if condition is not None and condition.constant is not None and condition.constant.all():
            going = going.with_value(np.full(_scalar_shape(body, 1), True))
            always = True

        def step(states: list[Fact]) -> list[Fact]:
            nonlocal always
            results = context.infer(body, [number, going, *states])
            stays = results[0].constant
            always = always and (condition is None or (stays is not None and bool(stays.all())))
            return results[1:]

        states, results = _settle(list(initial), step)
        limit = None if count is None else count.scalar()
        rounds: Size | None = None
        if always and limit is not None:
            rounds = maximum(limit if isinstance(limit, Expression) else int(limit), 0)
        scanned = [_with_rounds(fact, rounds, 0) for fact in results[len(initial) :]]
        final = [
            result if isinstance(state.type, OptionalType) else state
            for state, result in zip(states, results, strict=False)
        ]
        return (*final, *scanned)

    def reference(
        count: Array | None = None, condition: Array | None = None, *initial: Any,
        body: Graph, context: Context,
    ) -> tuple[Any, ...]:  # fmt: skip
        if count is None and condition is None:
            raise EvaluationError("a loop without a count and a condition never ends")
        limit = None if count is None else int(count.reshape(-1)[0])
        each = _round_work(body)
        if limit is not None and (condition is None or _goes_on(body)):
            require_work("the loop", limit * each, context.work_limit)
        going = True if condition is None else bool(condition.reshape(-1)[0])
        states = list(initial)
        collected: list[list[Array]] = [[] for _ in body.outputs[1 + len(states) :]]
        done = 0
        while going and (limit is None or done < limit):
            require_work("the loop", (done + 1) * each, context.work_limit)
            number = np.array(done, np.int64).reshape(_scalar_shape(body, 0))
            still = np.array(going).reshape(_scalar_shape(body, 1))
            results = context.run(body, [number, still, *states])
            if condition is not None:
                going = bool(results[0].reshape(-1)[0])
            states = results[1 : 1 + len(states)]
            for items, item in zip(collected, results[1 + len(states) :], strict=True):
                items.append(item)
            done += 1
        if done or not collected:
            return (*states, *map(_stacked, collected))
        given = [tensor(kind, _scalar_shape(body, place)) for place, kind in _COUNTED]
        facts = context.infer(body, [*given, *map(_before, states)])
        rows = list(zip(body.outputs, facts, strict=True))[1 + len(states) :]
        return (*states, *[_unfilled(*row) for row in rows])


_COUNTED = ((0, DataType.INT64), (1, DataType.BOOL))
"""What a loop's body takes before its states: the round, and whether it goes on."""


def _round_work(body: Graph) -> int:
    """What a round takes at least: its nodes, and those of loops inside with a known count."""
    inside = sum(map(_loop_work, body.nodes))
    return inside + (1 + len(body.nodes)) * NODE_WORK


def _loop_work(node: Node) -> int:
    """What a loop takes, where a constant alone says how often it runs."""
    count, condition = (*node.inputs, None, None)[:2]
    body, times = node.attribute("body", None), _constant(count)
    if node.op_type != "Loop" or times is None or not isinstance(body, Graph):
        return 0
    certain = condition is None or _goes_on(body)
    return max(int(times.reshape(-1)[0]), 0) * _round_work(body) if certain else 0


def _goes_on(body: Graph) -> bool:
    """Whether a body's condition never ends its loop: it is the one it was given, or is true."""
    given = body.inputs[1] if len(body.inputs) > 1 else None
    still = body.outputs[0] if body.outputs else None
    while still is not None and still.producer is not None:
        if still.producer.op_type != "Identity":
            break
        still = still.producer.inputs[0]
    known = _constant(still)
    return still is given if known is None else bool(known.all())


def _constant(value: Value | None) -> Array | None:
    """What a value always is, where that is said right there."""
    if value is None:
        return None
    tensor = value.tensor
    if tensor is None and value.producer is not None and value.producer.op_type == "Constant":
        tensor = value.producer.attribute("value")
    found = tensor.numpy() if isinstance(tensor, Tensor) else None
    return found if found is not None and found.size == 1 else None


def _scalar_shape(body: Graph, position: int) -> tuple[int, ...]:
    """The shape a body wants a single number in: () or (1,), as it declares."""
    declared = body.inputs[position].type if position < len(body.inputs) else None
    return (1,) if isinstance(declared, TensorType) and len(declared.shape or ()) == 1 else ()


def _with_rounds(fact: Fact, rounds: Size | None, axis: int) -> Fact:
    """The fact of a value that is stacked over all rounds along `axis`."""
    if fact.shape is None:
        return tensor(fact.dtype, None)
    place = axis_of(axis, len(fact.shape) + 1)
    return tensor(fact.dtype, (*fact.shape[:place], rounds, *fact.shape[place:]))


class Scan(Operator):
    """A graph run for each position along a dimension of its inputs, with states carried along."""

    signatures = (
        "8(sequence_lens?: I, initial_state_and_scan_inputs+: each V, body: graph, "
        "directions?: ints, num_scan_inputs: int) -> final_state_and_scan_outputs+: each V; "
        "I: int64; V: all15",
        f"9{_SCAN}all15",
        f"11{_SCAN}all15",
        *(f"{since}{_SCAN}{types}" for since, types in _TENSORS.items()),
    )

    def infer(*inputs: Fact, body: Graph, context: InferContext, **how: Any) -> tuple[Fact, ...]:
        plan = _Plan(len(inputs), len(body.outputs), **how)
        rounds: Size | None = None
        slices = []
        for fact, axis in zip(inputs[plan.states :], plan.input_axes, strict=True):
            if fact.shape is None:
                slices.append(tensor(fact.dtype, None))
                continue
            place = axis_of(axis, len(fact.shape))
            rounds = same_size(rounds, fact.shape[place], "scanned inputs have different lengths")
            slices.append(tensor(fact.dtype, fact.shape[:place] + fact.shape[place + 1 :]))
        states, results = _settle(
            list(inputs[: plan.states]), lambda states: context.infer(body, [*states, *slices])
        )
        pairs = zip(results[plan.states :], plan.output_axes, strict=True)
        return (*states, *(_with_rounds(fact, rounds, axis) for fact, axis in pairs))

    def reference(*inputs: Array, body: Graph, context: Context, **how: Any) -> tuple[Array, ...]:
        plan = _Plan(len(inputs), len(body.outputs), **how)
        states = list(inputs[: plan.states])
        moved = [
            np.flip(np.moveaxis(item, axis, 0), 0) if backward else np.moveaxis(item, axis, 0)
            for item, axis, backward in zip(
                inputs[plan.states :], plan.input_axes, plan.input_directions, strict=True
            )
        ]
        lengths = {len(item) for item in moved}
        if len(lengths) != 1:
            raise EvaluationError(f"scanned inputs have the lengths {sorted(lengths)}")
        collected: list[list[Array]] = [[] for _ in plan.output_axes]
        rounds = lengths.pop()
        for index in range(rounds):
            results = context.run(body, [*states, *(item[index, ...] for item in moved)])
            states = results[: plan.states]
            for items, item in zip(collected, results[plan.states :], strict=True):
                items.append(item)
        if rounds == 0:
            slices = [tensor(from_numpy(item.dtype), item.shape[1:]) for item in moved]
            facts = context.infer(body, [*map(_before, states), *slices])
            pairs = list(zip(body.outputs, facts, strict=True))[plan.states :]
            axes = plan.output_axes
            empty = [_unfilled(*pair, axis) for pair, axis in zip(pairs, axes, strict=True)]
            return (*states, *empty)
        ways = zip(collected, plan.output_directions, plan.output_axes, strict=True)
        made = [_stacked(items[::-1] if back else items, axis) for items, back, axis in ways]
        return (*states, *made)

    def upgrade_8(node: Node, build: Builder) -> tuple[Value, ...]:
        """The batch becomes a scan of its own, over samples, around the one over time."""
        return _scan_batches(node, build)

    def downgrade_9(node: Node, build: Builder) -> None:
        raise ConversionError("before opset 9 every scan is over a batch of sequences")


class _Plan:
    """How the inputs and outputs of a scan divide into states and scanned values."""

    def __init__(
        self, inputs: int, outputs: int, num_scan_inputs: int,
        scan_input_axes: tuple[int, ...] | None, scan_input_directions: tuple[int, ...] | None,
        scan_output_axes: tuple[int, ...] | None, scan_output_directions: tuple[int, ...] | None,
    ) -> None:  # fmt: skip
        self.states = inputs - num_scan_inputs
        scanned = outputs - self.states
        if self.states < 0 or scanned < 0 or num_scan_inputs < 1:
            raise InferenceError(f"{num_scan_inputs} scanned inputs do not fit {inputs} inputs")
        self.input_axes = scan_input_axes or (0,) * num_scan_inputs
        self.input_directions = scan_input_directions or (0,) * num_scan_inputs
        self.output_axes = scan_output_axes or (0,) * scanned
        self.output_directions = scan_output_directions or (0,) * scanned


def _scan_batches(node: Node, build: Builder) -> tuple[Value, ...]:
    lengths, *inputs = node.inputs
    count = node.attribute("num_scan_inputs")
    states = len(inputs) - count
    body = node.attributes.pop("body").value
    outer = build.inside("samples")
    samples = [outer.input("sample") for _ in inputs]
    scanned = samples[states:]
    total = None
    if lengths is not None:
        total = outer.Gather(outer.Shape(scanned[0]), [0])
        length = outer.Reshape(outer.input("length"), [1])
        ones = outer.ConstantOfShape(length, value=Tensor(np.ones(1, np.int64)))
        steps = outer.Reshape(outer.NonZero(ones), [-1])
        scanned = [outer.Gather(item, steps) for item in scanned]
    results = as_outputs(
        outer.Scan(
            *samples[:states], *scanned, body=body, num_scan_inputs=count,
            scan_input_directions=node.attribute("directions"), outputs=len(node.outputs),
        )
    )  # fmt: skip
    if total is not None:
        ends = [
            _filled_up(outer, item, body.outputs[states + index], total)
            for index, item in enumerate(results[states:])
        ]
        results = (*results[:states], *ends)
    outer.graph.outputs.extend(results)
    given = inputs if lengths is None else [*inputs, lengths]
    return as_outputs(
        build.Scan(*given, body=outer.graph, num_scan_inputs=len(given), outputs=len(node.outputs))
    )


def _filled_up(build: Builder, item: Value, result: Value, total: Value) -> Value:
    """A tensor with zeros behind its first dimension, up to a size."""
    kind = element_type(result)
    if kind is None:
        raise ConversionError(f"the type of '{result.name}' is not declared in the body")
    shape = build.Shape(item)
    missing = build.Sub(total, build.Slice(shape, starts=[0], ends=[1]))
    inner = build.Slice(shape, starts=[1], ends=[_MANY])
    sizes = build.Concat(missing, inner, axis=0)
    zeros = build.ConstantOfShape(sizes, value=Tensor(np.zeros(1, kind.numpy)))
    return build.Concat(item, zeros, axis=0)


_MANY = 2**31 - 1
