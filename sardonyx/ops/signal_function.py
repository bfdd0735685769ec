"""Operators on signals written with operators that existed before them."""

from typing import Any

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.graph import Attribute, Value
from sardonyx.ops.build import Builder
from sardonyx.ops.element_type import element_type

_INT64, _DOUBLE = int(DataType.INT64), int(DataType.DOUBLE)


def _whole(build: Builder, number: Any) -> Any:
    """A number of any integer type and of one element as an int64 scalar."""
    return build.Reshape(build.Cast(number, to=_INT64), np.empty(0, np.int64))


def fourier(
    build: Builder, x: Value, dft_length: Value | None, axis: Any, *, inverse: int, onesided: int
) -> Any:
    """A discrete Fourier transform as products with matrices of cosines and sines.

    `axis` is a vector of one number, known or not.
    """
    kind = DataType.DOUBLE if element_type(x) == DataType.DOUBLE else DataType.FLOAT
    shape = build.Shape(x)
    before = build.Slice(shape, [0], axis)
    size = build.Squeeze(build.Gather(shape, axis, axis=0), [0])
    to_real = bool(inverse and onesided)
    if dft_length is not None:
        length = _whole(build, dft_length)
    else:
        length = build.Mul(build.Sub(size, 1), 2) if to_real else size
    half = build.Add(build.Div(length, 2), 1)
    rows = half if onesided and not inverse else length
    parts = _parts(build, build.Cast(x, to=int(kind)), before, size, half if to_real else length)
    used = build.Gather(build.Shape(parts), 1, axis=0)
    column = build.Unsqueeze(build.Range(0, rows, 1), [1])
    steps = build.Range(0, used, 1)
    turns = build.Mod(build.Mul(column, steps), length)
    circle = build.Div(np.float64(2 * np.pi), build.Cast(length, to=_DOUBLE))
    angles = build.Mul(build.Cast(turns, to=_DOUBLE), circle)
    cosines, sines = (build.Cast(part(angles), to=int(kind)) for part in (build.Cos, build.Sin))
    if to_real:
        twice = _mirrored(build, steps, length, kind)
        cosines, sines = build.Mul(cosines, twice), build.Mul(sines, twice)
    result = _rotated(build, parts, cosines, sines, inverse=inverse, to_real=to_real)
    if inverse:
        result = build.Div(result, build.Cast(length, to=int(kind)))
    after = build.Slice(shape, build.Add(axis, 1), [-1])
    count = build.Unsqueeze(rows, [0])
    full = build.Concat(before, count, after, [1 if to_real else 2], axis=0)
    return build.CastLike(build.Reshape(result, full), x)


def _typed(build: Builder, number: float, kind: DataType) -> Any:
    return build.constant(np.asarray(number, kind.numpy))


def _parts(build: Builder, x: Value, before: Any, size: Any, limit: Any) -> Any:
    """A signal as [before, time, behind, 2], cut to `limit` in time; real ones get zeros."""
    lead = build.ReduceProd(build.Concat([1], before, axis=0), keepdims=1)
    last = build.Slice(build.Shape(x), [-1], [np.iinfo(np.int64).max])
    split = build.Reshape(x, build.Concat(lead, build.Unsqueeze(size, [0]), [-1], last, axis=0))
    padded = build.Pad(split, [0, 0, 0, 0, 0, 0, 0, 1])
    ends = build.Concat(build.Unsqueeze(limit, [0]), [2], axis=0)
    return build.Slice(padded, [0, 0], ends, [1, 3])


def _mirrored(build: Builder, steps: Any, length: Any, kind: DataType) -> Any:
    """How often each bin of one half stands in a whole spectrum: twice, but at its ends once."""
    ends = build.Or(build.Equal(steps, 0), build.Equal(build.Mul(steps, 2), length))
    return build.Where(ends, _typed(build, 1, kind), _typed(build, 2, kind))


def _rotated(
    build: Builder, parts: Any, cosines: Any, sines: Any, *, inverse: int, to_real: bool
) -> Any:
    """Sums over time of numbers turned by angles, in parts: [before, rows, behind, parts]."""
    shape = build.Concat([0, 0], build.Shape(parts, start=2), axis=0)
    flat = build.Reshape(parts, [0, 0, -1])
    even = build.Reshape(build.MatMul(cosines, flat), shape)
    odd = build.Reshape(build.MatMul(sines, flat), shape)
    halves = [build.Slice(item, [part], [part + 1], [3]) for item in (even, odd) for part in (0, 1)]
    even_real, even_imaginary, odd_real, odd_imaginary = halves
    if inverse:
        real = build.Sub(even_real, odd_imaginary)
        return real if to_real else build.Concat(real, build.Add(even_imaginary, odd_real), axis=3)
    return build.Concat(
        build.Add(even_real, odd_imaginary), build.Sub(even_imaginary, odd_real), axis=3
    )


def frames(
    build: Builder, signal: Value, frame_step: Value, window: Value | None, length: Value | None
) -> Any:
    """Frames of a signal times a window: [batch, frames, length, parts]."""
    total = build.Gather(build.Shape(signal), 1, axis=0)
    taken = total if window is None else build.Gather(build.Shape(window), 0, axis=0)
    if length is not None:
        taken = _whole(build, length)
    step = _whole(build, frame_step)
    count = build.Add(build.Div(build.Sub(total, taken), step), 1)
    starts = build.Unsqueeze(build.Mul(build.Range(0, count, 1), step), [1])
    cut = build.Gather(signal, build.Add(starts, build.Range(0, taken, 1)), axis=1)
    return cut if window is None else build.Mul(cut, build.Unsqueeze(window, [1]))


def mel_weights(build: Builder, *inputs: Value) -> Any:
    """The matrix of triangular bands, in double."""
    bands, dft_length, sample_rate = (_whole(build, item) for item in inputs[:3])
    low, high = (_mel(build, edge) for edge in inputs[3:])
    count = build.Cast(build.Add(bands, 2), to=_DOUBLE)
    step = build.Div(build.Sub(high, low), count)
    numbers = build.Cast(build.Range(0, build.Add(bands, 2), 1), to=_DOUBLE)
    mel = build.Add(low, build.Mul(numbers, step))
    powers = build.Exp(build.Mul(mel, np.float64(np.log(10) / 2595)))
    hertz = build.Mul(build.Sub(powers, np.float64(1)), np.float64(700))
    scale = build.Cast(build.Add(dft_length, 1), to=_DOUBLE)
    rate = build.Cast(sample_rate, to=_DOUBLE)
    edges = build.Floor(build.Div(build.Mul(hertz, scale), rate))
    left, peak, right = (
        build.Slice(edges, [first], [end]) for first, end in ((0, -2), (1, -1), (2, 2**31))
    )
    even = build.Sub(dft_length, build.Mod(dft_length, 2))
    rows = build.Range(0, build.Add(build.Div(even, 2), 1), 1)
    bins = build.Unsqueeze(build.Cast(rows, to=_DOUBLE), [1])
    zero, one = np.float64(0), np.float64(1)
    rising = build.Div(build.Sub(bins, left), build.Max(build.Sub(peak, left), one))
    falling = build.Div(build.Sub(right, bins), build.Max(build.Sub(right, peak), one))
    before = build.Where(build.GreaterOrEqual(bins, left), rising, zero)
    after = build.Where(build.Less(bins, right), falling, zero)
    slopes = build.Where(build.Less(bins, peak), before, after)
    return build.Where(build.Equal(bins, peak), one, slopes)


def _mel(build: Builder, edge: Value) -> Any:
    hertz = build.Reshape(build.Cast(edge, to=_DOUBLE), np.empty(0, np.int64))
    share = build.Add(build.Div(hertz, np.float64(700)), np.float64(1))
    return build.Mul(build.Log(share), np.float64(2595 / np.log(10)))


def weighted_cosines(
    build: Builder, size: Value, periodic: int, output_datatype: int, weights: tuple[float, ...]
) -> Any:
    """A window: the sum of cosines of multiples of an angle that grows along it."""
    count = _whole(build, size)
    if isinstance(periodic, Attribute):
        whole = build.Cast(build.constant(periodic), to=int(DataType.BOOL))
        length = build.Where(whole, count, build.Sub(count, 1))
    else:
        length = count if periodic else build.Sub(count, 1)
    period = build.Cast(length, to=_DOUBLE)
    numbers = build.Cast(build.Range(0, count, 1), to=_DOUBLE)
    angles = build.Mul(numbers, build.Div(np.float64(2 * np.pi), period))
    total: Any = np.float64(weights[0])
    for step, weight in enumerate(weights[1:], 1):
        cosine = build.Cos(build.Mul(angles, np.float64(step)))
        total = build.Add(build.Mul(cosine, np.float64(weight)), total)
    if isinstance(output_datatype, Attribute) or output_datatype != DataType.DOUBLE:
        total = build.Cast(total, to=int(DataType.FLOAT))
    return build.Cast(total, to=output_datatype)
