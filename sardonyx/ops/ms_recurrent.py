# mypy: disable-error-code="misc, no-any-return"
"""LSTM whose weights are quantized, and whose inputs are on the way."""

from typing import Any

import numpy as np

from sardonyx.errors import EvaluationError
from sardonyx.ops.fact import Fact, tensor
from sardonyx.ops.ms_arithmetic import dequantize
from sardonyx.ops.ms_product import quantize_by_range
from sardonyx.ops.operator import Operator
from sardonyx.ops.precision import Array
from sardonyx.ops.recurrent import LSTM


def _swapped(fact: Fact) -> Fact:
    if fact.shape is None or len(fact.shape) != 3:
        return fact
    return tensor(fact.dtype, (fact.shape[0], fact.shape[2], fact.shape[1]))


def _weights(codes: Array, scale: Array, zero: Array) -> Array:
    """Quantized [directions, inputs, gates] as floats [directions, gates, inputs]."""
    shape = (len(codes), 1, -1)
    return dequantize(codes, scale.reshape(shape), zero.reshape(shape)).swapaxes(1, 2)


def _as_quantized(x: Array) -> Array:
    """What is left of `x` when it is quantized by its range."""
    return dequantize(*quantize_by_range(x))


class DynamicQuantizeLSTM(Operator):
    """LSTM with weights of 8 bits; inputs and hidden states are quantized by their range."""

    domain = "com.microsoft"
    signatures = (
        "1(X: T, W: T2, R: T2, B?: T, sequence_lens?: T1, initial_h?: T, initial_c?: T, P?: T,"
        " W_scale: T, W_zero_point: T2, R_scale: T, R_zero_point: T2, activation_alpha?: floats,"
        " activation_beta?: floats, activations?: strings, clip?: float,"
        " direction: string = 'forward', hidden_size?: int, input_forget: int = 0)"
        " -> (Y?: T, Y_h?: T, Y_c?: T); T: float; T1: int32; T2: int8 uint8",
    )

    def infer(x: Fact, w: Fact, r: Fact, *rest: Fact | None, **options: Any) -> tuple[Fact, ...]:
        made: tuple[Fact, ...] = LSTM.infer(
            x, _swapped(w), _swapped(r), *rest[:5], layout=0, **options
        )
        return tuple(tensor(x.dtype, fact.shape) for fact in made)

    def reference(
        x: Array, w: Array, r: Array, b: Array | None, lengths: Array | None,
        initial_h: Array | None, initial_c: Array | None, p: Array | None, w_scale: Array,
        w_zero: Array, r_scale: Array, r_zero: Array, *, direction: str, **options: Any,
    ) -> tuple[Array, ...]:  # fmt: skip
        inputs, recurrence = _weights(w, w_scale, w_zero), _weights(r, r_scale, r_zero)
        count, batch, _ = x.shape
        ends = np.full(batch, count) if lengths is None else lengths.astype(np.int64)
        if ends.shape != (batch,) or (ends > count).any() or (ends < 0).any():
            raise EvaluationError(f"sequence_lens do not fit {batch} sequences of {count} steps")
        content = _as_quantized(x)
        results = []
        for index in range(len(w)):
            own = slice(index, index + 1)
            parameters = (inputs[own], recurrence[own], None if b is None else b[own])
            states = [None if item is None else item[own] for item in (initial_h, initial_c)]
            backward = direction == "reverse" or index == 1
            attributes = options | _own_options(options, index, len(w))
            results.append(
                _sweep(content, parameters, states, None if p is None else p[own], ends,
                       backward=backward, options=attributes)
            )  # fmt: skip
        ys, hs, cs = zip(*results, strict=True)
        return np.stack(ys, 1), np.concatenate(hs), np.concatenate(cs)


def _own_options(options: dict[str, Any], index: int, directions: int) -> dict[str, Any]:
    """The activations of one direction; alphas and betas go with them in equal shares."""
    names = ("activations", "activation_alpha", "activation_beta")
    chosen = {}
    for name in names:
        given = options[name]
        share = len(given) // directions if given else 0
        chosen[name] = given[index * share : (index + 1) * share] if share else given
    return chosen


def _sweep(
    x: Array, parameters: tuple[Array, Array, Array | None], states: list[Array | None],
    p: Array | None, ends: Array, *, backward: bool, options: dict[str, Any],
) -> tuple[Array, Array, Array]:  # fmt: skip
    """One direction, step by step; a step takes hidden states as their quantization leaves them."""
    count, batch, _ = x.shape
    hidden = parameters[1].shape[-1]
    zeros = np.zeros((1, batch, hidden), np.float32)
    h, c = (zeros if item is None else item for item in states)
    y = np.zeros((count, batch, hidden), np.float32)
    rows = np.arange(batch)
    for time in range(count):
        alive = time < ends
        at = np.where(alive, ends - 1 - time, time) if backward else np.full(batch, time)
        _, new_h, new_c = LSTM.reference(
            x[at, rows][None], *parameters, None, _as_quantized(h), c, p,
            direction="forward", layout=0, **options,
        )  # fmt: skip
        h, c = np.where(alive[:, None], new_h, h), np.where(alive[:, None], new_c, c)
        y[at[alive], rows[alive]] = new_h[0, alive]
    ended = (ends > 0)[:, None]
    return y, np.where(ended, h, 0), np.where(ended, c, 0)
