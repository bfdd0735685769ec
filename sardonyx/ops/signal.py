"""Signals: Fourier transforms, windows, and weights for the mel scale."""

from typing import Any

import numpy as np

from sardonyx.dims import Expression, Size
from sardonyx.dtypes import DataType
from sardonyx.errors import EvaluationError, InferenceError
from sardonyx.graph import Node, Value
from sardonyx.ops.allocate import count_up
from sardonyx.ops.build import Builder
from sardonyx.ops.fact import Fact, axis_of, require_room, tensor
from sardonyx.ops.operator import Operator, attribute_values
from sardonyx.ops.precision import Array, narrow, widen
from sardonyx.ops.signal_function import fourier, frames, mel_weights, weighted_cosines


def _known_size(fact: Fact | None) -> Size | None:
    """The only element of an integer tensor, where it is known."""
    found = None if fact is None else fact.scalar()
    return found if found is None or isinstance(found, Expression) else int(found)


def _number(array: Array) -> int:
    return int(array.reshape(-1)[0])


def transform(x: Array, length: int, axis: int, *, inverse: int, onesided: int) -> Array:
    """A discrete Fourier transform of numbers given, in their last axis, by one or two parts."""
    signal = x[..., 0] if x.shape[-1] == 1 else x[..., 0] + 1j * x[..., 1]
    if inverse and onesided:
        return np.fft.irfft(signal, n=length, axis=axis)[..., None]
    result = (np.fft.ifft if inverse else np.fft.fft)(signal, n=length, axis=axis)
    if onesided:
        result = result[(slice(None),) * axis + (slice(length // 2 + 1),)]
    return np.stack([result.real, result.imag], axis=-1)


class DFT(Operator):
    """The discrete Fourier transform along one axis, or its inverse."""

    expands = False
    signatures = (
        "17(input: T1, dft_length?: T2, axis: int = 1, inverse: int = 0, onesided: int = 0)"
        " -> output: T1; T1: floats; T2: int32 int64",
        "20(input: T1, dft_length?: T2, axis?: tensor(int64), inverse: int = 0,"
        " onesided: int = 0) -> output: T1; T1: floats; T2: int32 int64",
    )

    def infer(
        x: Fact, dft_length: Fact | None = None, axis: Fact | None = None, *,
        inverse: int, onesided: int,
    ) -> Fact:  # fmt: skip
        if x.shape is None:
            return tensor(x.dtype, None)
        rank, place = len(x.shape), -2 if axis is None else axis.scalar()
        if rank < 2:
            raise InferenceError(f"a signal has at least two axes, not {x}")
        last = 1 if inverse and onesided else 2
        if place is None and dft_length is None and not onesided:
            return tensor(x.dtype, (*x.shape[:-1], last))
        if place is None:
            return tensor(x.dtype, (*(None,) * (rank - 1), last))
        at = axis_of(int(place), rank)
        if at == rank - 1:
            raise InferenceError("the last axis holds parts of numbers, not a signal")
        size = x.shape[at]
        length = _known_size(dft_length)
        if dft_length is None and size is not None:
            length = 2 * (size - 1) if inverse and onesided else size
        if length is not None and onesided and not inverse:
            length = length // 2 + 1
        return tensor(x.dtype, (*x.shape[:at], length, *x.shape[at + 1 : -1], last))

    def reference(
        x: Array, dft_length: Array | None = None, axis: Array | None = None, *,
        inverse: int, onesided: int,
    ) -> Array:  # fmt: skip
        at = axis_of(-2 if axis is None else _number(axis), x.ndim)
        size = x.shape[at]
        length = 2 * (size - 1) if inverse and onesided else size
        if dft_length is not None:
            length = _number(dft_length)
        return narrow(transform(widen(x), length, at, inverse=inverse, onesided=onesided), x.dtype)

    def function(
        build: Builder, x: Value, dft_length: Value | None = None, axis: Value | int | None = None,
        *, inverse: int, onesided: int,
    ) -> Any:  # fmt: skip
        at: Any = (
            build.Reshape(axis, [1]) if isinstance(axis, Value) else [-2 if axis is None else axis]
        )
        return fourier(build, x, dft_length, at, inverse=inverse, onesided=onesided)

    def upgrade_17(node: Node, build: Builder) -> None:
        axis = np.asarray(node.attribute("axis", 1), np.int64)
        node.attributes.pop("axis", None)
        x, *rest = node.inputs
        node.set_inputs([x, rest[0] if rest else None, build.constant(axis)])

    def downgrade_20(node: Node, build: Builder) -> Any:
        axis = node.inputs[2] if len(node.inputs) > 2 else None
        known = build.known(axis)
        if axis is not None and known is None:
            inputs: Any = node.inputs
            return DFT.function(build, *inputs, **attribute_values(node, DFT.newest()))
        node.set_attribute("axis", -2 if known is None else _number(known))
        node.set_inputs(node.inputs[:2])
        return None


class STFT(Operator):
    """Fourier transforms of frames cut from a signal at equal steps."""

    expands = False
    signatures = (
        "17(signal: T1, frame_step: T2, window?: T1, frame_length?: T2, onesided: int = 1)"
        " -> output: T1; T1: floats; T2: int32 int64",
    )

    def infer(
        signal: Fact, frame_step: Fact, window: Fact | None = None,
        frame_length: Fact | None = None, *, onesided: int,
    ) -> Fact:  # fmt: skip
        if signal.shape is not None and len(signal.shape) != 3:
            raise InferenceError(f"a signal has three axes, not {signal}")
        batch, total, _ = signal.shape or (None, None, None)
        length, step = _known_size(frame_length), _known_size(frame_step)
        if isinstance(step, int) and step <= 0:
            raise InferenceError(f"frames cannot lie {step} apart")
        if frame_length is None and window is None:
            length = total
        elif frame_length is None and window is not None and window.shape is not None:
            length = window.shape[0]
        count = None
        if total is not None and length is not None and step:
            require_room(total - length, f"a frame of {length} is longer than {signal}")
            count = (total - length) // step + 1
        bins = length // 2 + 1 if length is not None and onesided else length
        return tensor(signal.dtype, (batch, count, bins, 2))

    def reference(
        signal: Array, frame_step: Array, window: Array | None = None,
        frame_length: Array | None = None, *, onesided: int,
    ) -> Array:  # fmt: skip
        length = signal.shape[1] if window is None else window.shape[0]
        if frame_length is not None:
            length = _number(frame_length)
        if _number(frame_step) <= 0:
            raise EvaluationError(
                f"frames cannot lie {_number(frame_step)} apart", hint="give a step above 0"
            )
        view = np.lib.stride_tricks.sliding_window_view(widen(signal), length, axis=1)
        cut = view[:, :: _number(frame_step)].swapaxes(2, 3)
        if window is not None:
            cut = cut * widen(window)[:, None]
        return narrow(transform(cut, length, 2, inverse=0, onesided=onesided), signal.dtype)

    def function(
        build: Builder, signal: Value, frame_step: Value, window: Value | None = None,
        frame_length: Value | None = None, *, onesided: int,
    ) -> Any:  # fmt: skip
        cut = frames(build, signal, frame_step, window, frame_length)
        return fourier(build, cut, None, [2], inverse=0, onesided=onesided)


class MelWeightMatrix(Operator):
    """Weights of linear frequency bins in triangular bands that are equally wide in mel."""

    signatures = (
        "17(num_mel_bins: T1, dft_length: T1, sample_rate: T1, lower_edge_hertz: T2,"
        " upper_edge_hertz: T2, output_datatype: int = 1) -> output: T3;"
        " T1: int32 int64; T2: floats; T3: numeric",
    )

    def infer(bands: Fact, dft_length: Fact, *edges: Fact, output_datatype: int) -> Fact:
        length = _known_size(dft_length)
        bins = None if length is None else length // 2 + 1
        return tensor(DataType(output_datatype), (bins, _known_size(bands)))

    def reference(
        bands: Array, dft_length: Array, sample_rate: Array, lower: Array, upper: Array, *,
        output_datatype: int,
    ) -> Array:  # fmt: skip
        count, length = _number(bands), _number(dft_length)
        low, high = (
            2595 * np.log10(1 + edge.reshape(-1)[0].astype(np.float64) / 700)
            for edge in (lower, upper)
        )
        mel = low + count_up(count + 2) * ((high - low) / (count + 2))
        hertz = 700 * (10 ** (mel / 2595) - 1)
        edges = np.floor((length + 1) * hertz / _number(sample_rate))
        left, peak, right = edges[:-2], edges[1:-1], edges[2:]
        bins = count_up(length // 2 + 1)[:, None]
        falling = (right - bins) / np.where(right == peak, 1, right - peak)
        rising = (bins - left) / np.where(peak == left, 1, peak - left)
        weights = np.select(
            [(bins >= peak) & (bins < right), bins == peak, (bins >= left) & (bins < peak)],
            [falling, np.ones_like(falling), rising],
        )
        return narrow(weights, DataType(output_datatype).numpy)

    def function(build: Builder, *inputs: Value, output_datatype: int) -> Any:
        return build.Cast(mel_weights(build, *inputs), to=output_datatype)


class _Window(Operator):
    """A weighted sum of cosines, as long as the input says."""

    def infer(size: Fact, output_datatype: int, periodic: int) -> Fact:
        return tensor(DataType(output_datatype), (_known_size(size),))


def _window(size: Array, periodic: int, output_datatype: int, weights: tuple[float, ...]) -> Array:
    count = _number(size)
    angles = count_up(count) * (2 * np.pi / np.float64(count if periodic else count - 1))
    total = sum(weight * np.cos(angles * step) for step, weight in enumerate(weights))
    exact = np.float64 if output_datatype == DataType.DOUBLE else np.float32
    return narrow(narrow(total, np.dtype(exact)), DataType(output_datatype).numpy)


_HANN = (0.5, -0.5)
_HAMMING = (25 / 46, -21 / 46)
_BLACKMAN = (0.42, -0.5, 0.08)


class HannWindow(_Window):
    """The Hann window: a raised cosine that ends at zero."""

    signatures = (
        "17(size: T1, output_datatype: int = 1, periodic: int = 1) -> output: T2;"
        " T1: int32 int64; T2: numeric",
    )

    def reference(size: Array, output_datatype: int, periodic: int) -> Array:
        return _window(size, periodic, output_datatype, _HANN)

    def function(build: Builder, size: Value, output_datatype: int, periodic: int) -> Any:
        return weighted_cosines(build, size, periodic, output_datatype, _HANN)


class HammingWindow(_Window):
    """The Hamming window: a raised cosine that ends above zero."""

    signatures = (
        "17(size: T1, output_datatype: int = 1, periodic: int = 1) -> output: T2;"
        " T1: int32 int64; T2: numeric",
    )

    def reference(size: Array, output_datatype: int, periodic: int) -> Array:
        return _window(size, periodic, output_datatype, _HAMMING)

    def function(build: Builder, size: Value, output_datatype: int, periodic: int) -> Any:
        return weighted_cosines(build, size, periodic, output_datatype, _HAMMING)


class BlackmanWindow(_Window):
    """The Blackman window: a sum of two cosines."""

    signatures = (
        "17(size: T1, output_datatype: int = 1, periodic: int = 1) -> output: T2;"
        " T1: int32 int64; T2: numeric",
    )

    def reference(size: Array, output_datatype: int, periodic: int) -> Array:
        return _window(size, periodic, output_datatype, _BLACKMAN)

    def function(build: Builder, size: Value, output_datatype: int, periodic: int) -> Any:
        return weighted_cosines(build, size, periodic, output_datatype, _BLACKMAN)
