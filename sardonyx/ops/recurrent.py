# mypy: disable-error-code="misc"
"""Recurrent layers: RNN, GRU and LSTM, over time steps, batches and directions."""

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

from sardonyx.dims import floor_divide
from sardonyx.errors import EvaluationError, InferenceError
from sardonyx.graph import Node, Value
from sardonyx.ops.build import Builder
from sardonyx.ops.fact import Fact, Sizes, same_size, tensor
from sardonyx.ops.operator import Operator
from sardonyx.ops.precision import Array, widen
from sardonyx.record import record

States = tuple[Array, ...]
Activation = Callable[[Array], Array]
Choice = tuple[str, float, float]
"""An activation's name in lower case, and its alpha and beta, 0 where it takes none."""
Step = Callable[[Array, States], States]
"""One step in time: an input's part of the gates, and the states before -> the states after."""


def _softplus(x: Array, alpha: float, beta: float) -> Array:
    return np.logaddexp(x, np.zeros((), x.dtype))


def _sigmoid(x: Array, alpha: float, beta: float) -> Array:
    return 1 / (1 + np.exp(-x))


_ACTIVATIONS: dict[
    str, tuple[Callable[[Array, float, float], Array], float | None, float | None]
] = {
    "relu": (lambda x, alpha, beta: np.maximum(x, 0), None, None),
    "tanh": (lambda x, alpha, beta: np.tanh(x), None, None),
    "sigmoid": (_sigmoid, None, None),
    "affine": (lambda x, alpha, beta: alpha * x + beta, 1.0, 0.0),
    "leakyrelu": (lambda x, alpha, beta: np.where(x >= 0, x, alpha * x), 0.01, None),
    "thresholdedrelu": (lambda x, alpha, beta: np.where(x >= alpha, x, 0), 1.0, None),
    "scaledtanh": (lambda x, alpha, beta: alpha * np.tanh(beta * x), 1.0, 1.0),
    "hardsigmoid": (lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1), 0.2, 0.5),
    "elu": (lambda x, alpha, beta: np.where(x >= 0, x, alpha * np.expm1(x)), 1.0, None),
    "softsign": (lambda x, alpha, beta: x / (1 + np.abs(x)), None, None),
    "softplus": (_softplus, None, None),
}
"""By name in lower case: a function of x, alpha, beta, and defaults of those that it takes."""


@record
class Options:
    """The attributes that all recurrent layers share."""

    activation_alpha: tuple[float, ...] | None
    activation_beta: tuple[float, ...] | None
    activations: tuple[str, ...] | None
    clip: float | None
    direction: str
    hidden_size: int | None
    layout: int

    @property
    def directions(self) -> int:
        """How many directions the layer runs in."""
        if self.direction not in ("forward", "reverse", "bidirectional"):
            raise InferenceError(
                f"direction '{self.direction}' is none of forward, reverse, bidirectional"
            )
        return 2 if self.direction == "bidirectional" else 1

    def activation_choices(self, default: tuple[str, ...]) -> list[tuple[Choice, ...]]:
        """The choices of each direction; alphas and betas are given out in the order of names."""
        names = self.activations or default * self.directions
        if len(names) < len(default) * self.directions:
            raise EvaluationError(
                f"{len(names)} activations where {len(default) * self.directions} are needed"
            )
        alphas, betas = iter(self.activation_alpha or ()), iter(self.activation_beta or ())
        made = [_choice(name, alphas, betas) for name in names]
        count = len(default)
        return [tuple(made[i * count : (i + 1) * count]) for i in range(self.directions)]

    def activation_functions(self, default: tuple[str, ...]) -> list[tuple[Activation, ...]]:
        """The functions of each direction."""
        choices = self.activation_choices(default)
        return [tuple(map(_activation, direction)) for direction in choices]

    def clipped(self, x: Array) -> Array:
        """What an activation is fed."""
        return x if self.clip is None else np.clip(x, -self.clip, self.clip)


def _choice(name: str, alphas: Iterator[float], betas: Iterator[float]) -> Choice:
    if name.lower() not in _ACTIVATIONS:
        raise EvaluationError(
            f"activation '{name}' is not known", hint=f"use one of {list(_ACTIVATIONS)}"
        )
    _, default_alpha, default_beta = _ACTIVATIONS[name.lower()]
    alpha = 0.0 if default_alpha is None else next(alphas, default_alpha)
    beta = 0.0 if default_beta is None else next(betas, default_beta)
    return name.lower(), alpha, beta


def _activation(choice: Choice) -> Activation:
    name, alpha, beta = choice
    function, _, _ = _ACTIVATIONS[name]
    return lambda x: function(x, alpha, beta).astype(x.dtype, copy=False)


def _infer(
    gates: int,
    states: int,
    options: Options,
    x: Fact,
    w: Fact,
    r: Fact,
    initial: Fact | None = None,
) -> tuple[Fact, ...]:
    """The facts of Y and of `states` last states."""
    for fact, name in ((x, "X"), (w, "W"), (r, "R")):
        if fact.rank not in (None, 3):
            raise InferenceError(f"{name} has rank {fact.rank}, expected 3")
    x_shape: Sizes = x.shape or (None,) * 3
    w_shape: Sizes = w.shape or (None,) * 3
    r_shape: Sizes = r.shape or (None,) * 3
    directions = options.directions
    same_size(w_shape[0], directions, f"directions of W for '{options.direction}'")
    same_size(r_shape[0], directions, f"directions of R for '{options.direction}'")
    same_size(x_shape[2], w_shape[2], "input size of X and W")
    hidden = same_size(r_shape[2], options.hidden_size, "hidden size of R and hidden_size")
    rows = same_size(w_shape[1], r_shape[1], "rows of W and R")
    if rows is not None:
        hidden = same_size(hidden, floor_divide(rows, gates), f"hidden size, {gates} gates in W")
    steps, batch = x_shape[:2] if not options.layout else (x_shape[1], x_shape[0])
    if initial is not None and initial.rank == 3:
        assert initial.shape is not None
        batch = same_size(
            batch, initial.shape[0 if options.layout else 1], "batch size of initial_h"
        )
    if options.layout:
        y: Sizes = (batch, steps, directions, hidden)
        last: Sizes = (batch, directions, hidden)
    else:
        y, last = (steps, directions, batch, hidden), (directions, batch, hidden)
    dtype = x.dtype or w.dtype or r.dtype
    return tensor(dtype, y), *(tensor(dtype, last) for _ in range(states))


def _run(
    options: Options, steps: list[Step], x: Array, w: Array, bias: Array,
    lengths: Array | None, initial: list[Array | None], hidden: int,
) -> tuple[Array, ...]:  # fmt: skip
    """Run every direction: Y and the last of each state, in X's type.

    A step behind the end of its sequence leaves the states alone and puts zeros into Y; a sequence
    without steps ends with zeros.
    """
    dtype = x.dtype
    if options.layout:
        x = x.swapaxes(0, 1)
    x = widen(x)
    count, batch, _ = x.shape
    ends = np.full(batch, count) if lengths is None else lengths.astype(np.int64)
    if ends.shape != (batch,) or (ends > count).any() or (ends < 0).any():
        raise EvaluationError(
            f"sequence_lens do not fit {batch} sequences of at most {count} steps"
        )
    time = np.arange(count)[:, None]
    backward = np.where(time < ends, ends - 1 - time, time)[..., None]
    results: list[list[Array]] = []
    for index, step in enumerate(steps):
        reversed_ = options.direction == "reverse" or index == 1
        along = np.take_along_axis(x, backward, 0) if reversed_ else x
        gates = along @ widen(w[index]).T + bias[index]
        states = [_initial(item, index, batch, hidden, x.dtype, options.layout) for item in initial]
        y, states = _sweep(step, gates, states, ends)
        y = np.take_along_axis(y, backward, 0) if reversed_ else y
        results.append([y, *(np.where(ends[:, None] > 0, state, 0) for state in states)])
    ys, *lasts = zip(*results, strict=True)
    axes = (2, 1) if options.layout else (1, 0)
    stacked = np.stack([y.swapaxes(0, 1) for y in ys] if options.layout else ys, axes[0])
    return stacked.astype(dtype), *(np.stack(last, axes[1]).astype(dtype) for last in lasts)


def _sweep(step: Step, gates: Array, states: list[Array], ends: Array) -> tuple[Array, list[Array]]:
    count, batch, _ = gates.shape
    y = np.zeros((count, batch, states[0].shape[-1]), gates.dtype)
    for time in range(count):
        alive = (time < ends)[:, None]
        after = step(gates[time], tuple(states))
        states = [np.where(alive, new, old) for new, old in zip(after, states, strict=True)]
        y[time] = np.where(alive, states[0], 0)
    return y, states


def _initial(
    given: Array | None, index: int, batch: int, hidden: int, dtype: np.dtype[Any], layout: int
) -> Array:
    if given is None:
        return np.zeros((batch, hidden), dtype)
    return widen(given[:, index] if layout else given[index])


def _biases(b: Array | None, w: Array) -> tuple[Array, Array]:
    """The input's and the recurrence's biases, each [directions, gates * hidden]."""
    count = w.shape[1]
    b = np.zeros((w.shape[0], 2 * count), w.dtype) if b is None else b
    return widen(b[:, :count]), widen(b[:, count:])


def _drop_output_sequence(node: Node, build: Builder) -> None:
    node.attributes.pop("output_sequence", None)


def _state_output_sequence(node: Node, build: Builder) -> None:
    node.set_attribute("output_sequence", int(bool(node.outputs and node.outputs[0].name)))


def _drop_layout(node: Node, build: Builder) -> tuple[Value, ...] | None:
    """Batch-first layout said by transposing what goes in and comes out."""
    layout = node.attributes.pop("layout", None)
    if layout is None or not layout.value:
        return None
    inputs = list(node.inputs)
    for position in (0, 5, 6):
        if position < len(inputs) and inputs[position] is not None:
            inputs[position] = build.Transpose(inputs[position], perm=[1, 0, 2])
    attributes = {name: item.value for name, item in node.attributes.items()}
    made = build.node(node.op_type, tuple(inputs), len(node.outputs), "", attributes)
    made = made if isinstance(made, tuple) else (made,)
    perms = ([2, 0, 1, 3], [1, 0, 2], [1, 0, 2])
    return tuple(
        build.Transpose(new, perm=perm) if old.name or old.uses else new
        for old, new, perm in zip(node.outputs, made, perms, strict=False)
    )


class _Recurrent(Operator):
    """What the three layers' versions have in common."""

    downgrade_14: ClassVar[Any] = _drop_layout
    downgrade_7: ClassVar[Any] = _state_output_sequence


class RNN(_Recurrent):
    """A layer with one gate: H = f(X W' + H R' + biases)."""

    signatures = (
        "1(X: T, W: T, R: T, B?: T, sequence_lens?: T1, initial_h?: T, activation_alpha?: floats, "
        "activation_beta?: floats, activations: strings = ['Tanh', 'Tanh'], clip?: float, "
        "direction: string = 'forward', hidden_size?: int, output_sequence: int = 0) "
        "-> (Y?: T, Y_h?: T); T: floats3; T1: int32",
        "7(X: T, W: T, R: T, B?: T, sequence_lens?: T1, initial_h?: T, activation_alpha?: floats, "
        "activation_beta?: floats, activations: strings = ['Tanh', 'Tanh'], clip?: float, "
        "direction: string = 'forward', hidden_size?: int) "
        "-> (Y?: T, Y_h?: T); T: floats3; T1: int32",
        "14(X: T, W: T, R: T, B?: T, sequence_lens?: T1, initial_h?: T, activation_alpha?: floats, "
        "activation_beta?: floats, activations: strings = ['Tanh', 'Tanh'], clip?: float, "
        "direction: string = 'forward', hidden_size?: int, layout: int = 0) "
        "-> (Y?: T, Y_h?: T); T: floats3; T1: int32",
        "22(X: T, W: T, R: T, B?: T, sequence_lens?: T1, initial_h?: T, activation_alpha?: floats, "
        "activation_beta?: floats, activations: strings = ['Tanh', 'Tanh'], clip?: float, "
        "direction: string = 'forward', hidden_size?: int, layout: int = 0) "
        "-> (Y?: T, Y_h?: T); T: floats; T1: int32",
    )

    def infer(
        x: Fact, w: Fact, r: Fact, b: Fact | None = None, lengths: Fact | None = None,
        initial_h: Fact | None = None, **options: Any,
    ) -> tuple[Fact, ...]:  # fmt: skip
        return _infer(1, 1, Options(**options), x, w, r, initial_h)

    def reference(
        x: Array, w: Array, r: Array, b: Array | None = None, lengths: Array | None = None,
        initial_h: Array | None = None, **options: Any,
    ) -> tuple[Array, ...]:  # fmt: skip
        settings, hidden = Options(**options), r.shape[-1]
        input_bias, recurrence_bias = _biases(b, w)
        bias = input_bias + recurrence_bias

        def cell(index: int, activation: Activation) -> Step:
            weights = widen(r[index]).T
            return lambda gate, states: (activation(settings.clipped(gate + states[0] @ weights)),)

        functions = settings.activation_functions(("Tanh",))
        steps = [cell(index, *item) for index, item in enumerate(functions)]
        return _run(settings, steps, x, w, bias, lengths, [initial_h], hidden)

    upgrade_1 = _drop_output_sequence


class GRU(_Recurrent):
    """A layer with update, reset and hidden gates: H = (1 - z) h + z H."""

    signatures = (
        "1(X: T, W: T, R: T, B?: T, sequence_lens?: T1, initial_h?: T, activation_alpha?: floats, "
        "activation_beta?: floats, activations?: strings, clip?: float, "
        "direction: string = 'foward', hidden_size?: int, output_sequence: int = 0) "
        "-> (Y?: T, Y_h: T); T: floats3; T1: int32",
        "3(X: T, W: T, R: T, B?: T, sequence_lens?: T1, initial_h?: T, activation_alpha?: floats, "
        "activation_beta?: floats, activations?: strings, clip?: float, "
        "direction: string = 'forward', hidden_size?: int, linear_before_reset: int = 0, "
        "output_sequence: int = 0) -> (Y?: T, Y_h?: T); T: floats3; T1: int32",
        "7(X: T, W: T, R: T, B?: T, sequence_lens?: T1, initial_h?: T, activation_alpha?: floats, "
        "activation_beta?: floats, activations?: strings, clip?: float, "
        "direction: string = 'forward', hidden_size?: int, linear_before_reset: int = 0) "
        "-> (Y?: T, Y_h?: T); T: floats3; T1: int32",
        "14(X: T, W: T, R: T, B?: T, sequence_lens?: T1, initial_h?: T, activation_alpha?: floats, "
        "activation_beta?: floats, activations?: strings, clip?: float, "
        "direction: string = 'forward', hidden_size?: int, layout: int = 0, "
        "linear_before_reset: int = 0) -> (Y?: T, Y_h?: T); T: floats3; T1: int32",
        "22(X: T, W: T, R: T, B?: T, sequence_lens?: T1, initial_h?: T, activation_alpha?: floats, "
        "activation_beta?: floats, activations?: strings, clip?: float, "
        "direction: string = 'forward', hidden_size?: int, layout: int = 0, "
        "linear_before_reset: int = 0) -> (Y?: T, Y_h?: T); T: floats; T1: int32",
    )

    def infer(
        x: Fact, w: Fact, r: Fact, b: Fact | None = None, lengths: Fact | None = None,
        initial_h: Fact | None = None, *, linear_before_reset: int, **options: Any,
    ) -> tuple[Fact, ...]:  # fmt: skip
        return _infer(3, 1, Options(**options), x, w, r, initial_h)

    def reference(
        x: Array, w: Array, r: Array, b: Array | None = None, lengths: Array | None = None,
        initial_h: Array | None = None, *, linear_before_reset: int, **options: Any,
    ) -> tuple[Array, ...]:  # fmt: skip
        settings, hidden = Options(**options), r.shape[-1]
        input_bias, recurrence_bias = _biases(b, w)

        def cell(index: int, f: Activation, g: Activation) -> Step:
            weights = widen(r[index]).T
            both, own = weights[:, : 2 * hidden], weights[:, 2 * hidden :]
            biases = recurrence_bias[index]

            def step(gate: Array, states: States) -> States:
                (h,) = states
                zr = gate[:, : 2 * hidden] + h @ both + biases[: 2 * hidden]
                zr = f(settings.clipped(zr))
                z, reset = zr[:, :hidden], zr[:, hidden:]
                if linear_before_reset:
                    recurrence = reset * (h @ own + biases[2 * hidden :])
                else:
                    recurrence = (reset * h) @ own + biases[2 * hidden :]
                new = g(settings.clipped(gate[:, 2 * hidden :] + recurrence))
                return ((1 - z) * new + z * h,)

            return step

        functions = settings.activation_functions(("Sigmoid", "Tanh"))
        steps = [cell(index, *item) for index, item in enumerate(functions)]
        return _run(settings, steps, x, w, input_bias, lengths, [initial_h], hidden)

    def upgrade_1(node: Node, build: Builder) -> None:
        if node.attribute("direction") == "foward":
            node.set_attribute("direction", "forward")

    upgrade_3 = _drop_output_sequence


class LSTM(_Recurrent):
    """A layer with input, output, forget and cell gates, and a cell state beside the hidden one."""

    signatures = (
        "1(X: T, W: T, R: T, B?: T, sequence_lens?: T1, initial_h?: T, initial_c?: T, P?: T, "
        "activation_alpha?: floats, activation_beta?: floats, activations?: strings, "
        "clip?: float, direction: string = 'forward', hidden_size?: int, input_forget: int = 0, "
        "output_sequence: int = 0) -> (Y?: T, Y_h?: T, Y_c?: T); T: floats3; T1: int32",
        "7(X: T, W: T, R: T, B?: T, sequence_lens?: T1, initial_h?: T, initial_c?: T, P?: T, "
        "activation_alpha?: floats, activation_beta?: floats, activations?: strings, "
        "clip?: float, direction: string = 'forward', hidden_size?: int, input_forget: int = 0) "
        "-> (Y?: T, Y_h?: T, Y_c?: T); T: floats3; T1: int32",
        "14(X: T, W: T, R: T, B?: T, sequence_lens?: T1, initial_h?: T, initial_c?: T, P?: T, "
        "activation_alpha?: floats, activation_beta?: floats, activations?: strings, "
        "clip?: float, direction: string = 'forward', hidden_size?: int, input_forget: int = 0, "
        "layout: int = 0) -> (Y?: T, Y_h?: T, Y_c?: T); T: floats3; T1: int32",
        "22(X: T, W: T, R: T, B?: T, sequence_lens?: T1, initial_h?: T, initial_c?: T, P?: T, "
        "activation_alpha?: floats, activation_beta?: floats, activations?: strings, "
        "clip?: float, direction: string = 'forward', hidden_size?: int, input_forget: int = 0, "
        "layout: int = 0) -> (Y?: T, Y_h?: T, Y_c?: T); T: floats; T1: int32",
    )

    def infer(
        x: Fact, w: Fact, r: Fact, b: Fact | None = None, lengths: Fact | None = None,
        initial_h: Fact | None = None, initial_c: Fact | None = None, p: Fact | None = None,
        *, input_forget: int, **options: Any,
    ) -> tuple[Fact, ...]:  # fmt: skip
        return _infer(4, 2, Options(**options), x, w, r, initial_h or initial_c)

    def reference(
        x: Array, w: Array, r: Array, b: Array | None = None, lengths: Array | None = None,
        initial_h: Array | None = None, initial_c: Array | None = None, p: Array | None = None,
        *, input_forget: int, **options: Any,
    ) -> tuple[Array, ...]:  # fmt: skip
        settings, hidden = Options(**options), r.shape[-1]
        input_bias, recurrence_bias = _biases(b, w)
        bias = input_bias + recurrence_bias

        def cell(index: int, f: Activation, g: Activation, h: Activation) -> Step:
            weights = widen(r[index]).T
            peepholes = np.split(widen(np.zeros(3 * hidden, r.dtype) if p is None else p[index]), 3)
            peep_input, peep_output, peep_forget = peepholes

            def step(gate: Array, states: States) -> States:
                before = states[1]
                i, o, forget, c = np.split(gate + states[0] @ weights, 4, axis=1)
                i = f(settings.clipped(i + peep_input * before))
                if input_forget:
                    forget = 1 - i
                else:
                    forget = f(settings.clipped(forget + peep_forget * before))
                after = forget * before + i * g(settings.clipped(c))
                o = f(settings.clipped(o + peep_output * after))
                return o * h(after), after

            return step

        functions = settings.activation_functions(("Sigmoid", "Tanh", "Tanh"))
        steps = [cell(index, *item) for index, item in enumerate(functions)]
        return _run(settings, steps, x, w, bias, lengths, [initial_h, initial_c], hidden)

    upgrade_1 = _drop_output_sequence
