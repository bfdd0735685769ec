# mypy: disable-error-code="misc"
"""Attention with a state instead of a cache: a matrix for each head, updated at every position."""

from typing import Any

import numpy as np

from sardonyx.dims import Size, floor_divide
from sardonyx.dtypes import DataType
from sardonyx.errors import EvaluationError, InferenceError
from sardonyx.graph import Value
from sardonyx.ops.allocate import repeat
from sardonyx.ops.build import Builder
from sardonyx.ops.element_type import cast_like
from sardonyx.ops.fact import Fact, same_size, tensor
from sardonyx.ops.operator import Operator
from sardonyx.ops.precision import Array

_RULES = ("linear", "gated", "delta", "gated_delta")


def _check(rule: str, decay: object, beta: object, query_heads: int, heads: int) -> None:
    if rule not in _RULES:
        raise InferenceError(f"update_rule '{rule}' is none of {', '.join(_RULES)}")
    if query_heads <= 0 or heads <= 0 or query_heads % heads:
        raise InferenceError(f"{query_heads} query heads are no multiple of {heads} key heads")
    for name, given, wanted in (("decay", decay, "gated" in rule), ("beta", beta, "delta" in rule)):
        if (given is not None) != wanted:
            raise InferenceError(f"update_rule '{rule}' {'needs' if wanted else 'takes no'} {name}")


class LinearAttention(Operator):
    """o = scale q'S, where S decays and takes in the outer product of each key and value."""

    signatures = (
        "27(query: T, key: T, value: T, past_state?: S, decay?: T, beta?: T, "
        "chunk_size: int = 64, kv_num_heads: int, q_num_heads: int, scale: float = 0.0, "
        "update_rule: string = 'gated_delta') -> (output: T, present_state: S); "
        "T: bfloat16 float float16; S: bfloat16 float float16",
    )

    def infer(
        query: Fact, key: Fact, value: Fact, past: Fact | None = None, decay: Fact | None = None,
        beta: Fact | None = None, *,
        kv_num_heads: int, q_num_heads: int, update_rule: str, **_: Any,
    ) -> tuple[Fact, Fact]:  # fmt: skip
        _check(update_rule, decay, beta, q_num_heads, kv_num_heads)
        batch, length, key_size = _sizes(query, q_num_heads, "query")
        key_batch, key_length, size = _sizes(key, kv_num_heads, "key")
        value_batch, value_length, value_size = _sizes(value, kv_num_heads, "value")
        batch = same_size(
            same_size(batch, key_batch, "batch of key"), value_batch, "batch of value"
        )
        length = same_size(length, key_length, "length of query and key")
        length = same_size(length, value_length, "length of query and value")
        key_size = same_size(key_size, size, "head size of query and key")
        state = tensor(query.dtype, (batch, kv_num_heads, key_size, value_size))
        if past is not None:
            sizes = past.shape if past.rank == 4 and past.shape else (None,) * 4
            shape = tuple(
                same_size(a, b, "sizes of past_state")
                for a, b in zip(state.shape or (), sizes, strict=True)
            )
            state = tensor(past.dtype, shape)
            value_size = shape[3]
        width = None if value_size is None else value_size * q_num_heads
        return tensor(query.dtype, (batch, length, width)), state

    def reference(
        query: Array, key: Array, value: Array, past: Array | None = None,
        decay: Array | None = None, beta: Array | None = None, *,
        chunk_size: int, kv_num_heads: int, q_num_heads: int, scale: float, update_rule: str,
    ) -> tuple[Array, Array]:  # fmt: skip
        _check(update_rule, decay, beta, q_num_heads, kv_num_heads)
        q, k = _by_time(query, q_num_heads), _by_time(key, kv_num_heads)
        v = _by_time(value, kv_num_heads)
        steps, batch, _, key_size = q.shape
        shape = (batch, kv_num_heads, key_size, v.shape[3])
        state = np.zeros(shape, np.float32) if past is None else past.astype(np.float32)
        if state.shape != shape:
            raise EvaluationError(
                f"past_state has the shape {list(state.shape)}, not {list(shape)}"
            )
        decays = None if decay is None else np.exp(_by_time(decay, kv_num_heads))
        rates = None if beta is None else _by_time(beta, beta.shape[2])
        factor = np.float32(scale or key_size**-0.5)
        group = q_num_heads // kv_num_heads
        output = np.zeros((steps, batch, q_num_heads, v.shape[3]), np.float32)
        for time in range(steps):
            update = v[time]
            if decays is not None:
                state = state * decays[time][..., None]
            if rates is not None:
                kept = (k[time][..., None, :] @ state)[..., 0, :]
                update = rates[time] * (update - kept)
            state = state + k[time][..., None] * update[..., None, :]
            shared = repeat(state, group, 1)
            output[time] = factor * (q[time][..., None, :] @ shared)[..., 0, :]
        packed = output.transpose(1, 0, 2, 3).reshape(batch, steps, q_num_heads * v.shape[3])
        return packed.astype(query.dtype), state.astype(query.dtype if past is None else past.dtype)

    def function(
        build: Builder, query: Value, key: Value, value: Value, past: Value | None = None,
        decay: Value | None = None, beta: Value | None = None, *,
        chunk_size: int, kv_num_heads: int, q_num_heads: int, scale: float, update_rule: str,
    ) -> tuple[Value, Value]:  # fmt: skip
        group = q_num_heads // kv_num_heads
        q = _unpack(build, query, [0, 0, kv_num_heads, group, -1])
        k, v = (_unpack(build, x, [0, 0, kv_num_heads, -1]) for x in (key, value))
        given = [q, k, v]
        if decay is not None:
            given.append(build.Exp(_unpack(build, decay, [0, 0, kv_num_heads, -1])))
        if beta is not None:
            given.append(_unpack(build, beta, [0, 0, -1, 1]))
        if past is None:
            sizes = [build.Shape(k, end=1), build.Shape(k, start=2), build.Shape(v, start=3)]
            state = build.Expand(np.float32(0), build.Concat(*sizes, axis=0))
        else:
            state = build.Cast(past, to=int(DataType.FLOAT))
        body = _body(build.inside("step"), decay is not None, beta is not None)
        count = len(given)
        last, output = build.Scan(
            state, *given, body=body.graph, num_scan_inputs=count, scan_input_axes=[1] * count,
            scan_output_axes=[1], outputs=2,
        )  # fmt: skip
        if scale:
            output = build.Mul(output, np.float32(scale))
        else:
            size = build.Cast(build.Shape(k, start=3), to=int(DataType.FLOAT))
            output = build.Div(output, build.Sqrt(size))
        packed = build.Reshape(output, [0, 0, -1])
        return cast_like(build, packed, query), cast_like(build, last, past or query)


def _sizes(x: Fact, heads: int, name: str) -> tuple[Size | None, Size | None, Size | None]:
    """Batch, length and head size of a packed input, as far as they are known."""
    if x.shape is None:
        return None, None, None
    if x.rank != 3:
        raise InferenceError(f"{name} has rank {x.rank}, expected 3")
    batch, length, width = x.shape
    if isinstance(width, int) and width % heads:
        raise InferenceError(f"{name}'s last size {width} is no multiple of {heads} heads")
    return batch, length, None if width is None else floor_divide(width, heads)


def _by_time(x: Array, heads: int) -> Array:
    """[batch, length, heads * size] -> [length, batch, heads, size], in float32."""
    if x.ndim != 3 or x.shape[2] % heads:
        raise EvaluationError(f"an input of shape {list(x.shape)} has no {heads} heads")
    parts = x.reshape(*x.shape[:2], heads, x.shape[2] // heads)
    return parts.swapaxes(0, 1).astype(np.float32)


def _unpack(build: Builder, x: Value, shape: list[int]) -> Value:
    wide = build.Cast(x, to=int(DataType.FLOAT))
    return build.Reshape(wide, shape)  # type: ignore[no-any-return]


def _body(build: Builder, decays: bool, rates: bool) -> Builder:
    """One position: state, query, key, value, gates -> state, output."""
    names = ["state", "query", "key", "value", *["decay"] * decays, *["beta"] * rates]
    inputs = {name: build.input(name) for name in names}
    state, update = inputs["state"], inputs["value"]
    if decays:
        state = build.Mul(state, build.Unsqueeze(inputs["decay"], [3]))
    if rates:
        kept = build.Squeeze(build.MatMul(build.Unsqueeze(inputs["key"], [2]), state), [2])
        update = build.Mul(inputs["beta"], build.Sub(update, kept))
    outer = build.Mul(build.Unsqueeze(inputs["key"], [3]), build.Unsqueeze(update, [2]))
    state = build.Add(state, outer)
    build.graph.outputs.extend([state, build.MatMul(inputs["query"], state)])
    return build
