"""What slides over the spatial axes of images: convolutions and pooling windows."""

import itertools
import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sardonyx.compiler.constants import constant_array
from sardonyx.compiler.forms import (
    Axis,
    Convolution,
    Form,
    Join,
    NotLowered,
    Source,
    View,
    Window,
    binary,
    constant,
    expand,
    iota,
    number,
    reshape,
    select,
    squeeze,
    take,
    transpose,
    unary,
    unsqueeze,
)
from sardonyx.compiler.kernels.winograd_filters import is_even
from sardonyx.compiler.lowerings.contraction import matrix_product
from sardonyx.compiler.lowerings.peaks import peaks
from sardonyx.compiler.lowerings.pointwise import power_of
from sardonyx.compiler.lowerings.request import Lowerings, Request
from sardonyx.dims import Size, ceil_divide
from sardonyx.dtypes import DataType
from sardonyx.ops.convolution import spread_sizes
from sardonyx.ops.sliding import pad_pairs, per_axis

Ints = tuple[int, ...]
MOST_OVERLAPS = 64
"""Blocks that are added up for one element of a transposed convolution."""


def convolved(
    request: Request, image: Form, weights: Form, zero: Form | None = None, *, auto_pad: str,
    dilations: Ints | None, group: int, pads: Ints | None, strides: Ints | None,
) -> Form:  # fmt: skip
    """Sliding products of numbers of one type, or of bytes less a zero point in int32."""
    kernel = _kernel(image, weights)
    dtype = image.dtype if weights.dtype is image.dtype else DataType.INT32
    steps, spread = _steps(strides, dilations, len(kernel))
    begins, ends = _pads(
        auto_pad, pads, image.shape[2:], request.shape()[2:], kernel, steps, spread
    )
    if len(kernel) == 1 and group > 1:
        wide = Convolution(
            (*request.shape()[:2], 1, request.shape()[2]), dtype, unsqueeze(image, [2]),
            _with_axis(weights), (1, *steps), (1, *spread), (0, *begins, 0, *ends), group, (), zero,
        )  # fmt: skip
        return squeeze(wide, [2])
    known = constant_array(weights) if dtype is DataType.FLOAT else None
    return Convolution(
        request.shape(), dtype, image, weights, steps, spread, (*begins, *ends), group, (), zero,
        even=known is not None and is_even(known),
    )  # fmt: skip


def transposed_convolution(
    request: Request, image: Form, weights: Form, bias: Form | None = None, *,
    auto_pad: str, dilations: Ints | None, group: int, kernel_shape: Ints | None,
    output_padding: Ints | None, output_shape: Ints | None, pads: Ints | None, strides: Ints | None,
) -> Form:  # fmt: skip
    """Each element spreads a filter: a convolution of the image with 0 between its elements."""
    kernel = _kernel(image, weights)
    shape, sizes, rank = request.shape(), image.shape[2:], len(kernel)
    steps, spread = _steps(strides, dilations, rank)
    fixed = bool(output_shape) or auto_pad.startswith("SAME")
    if fixed and not all(isinstance(size, int) for size in sizes):
        raise NotLowered("how much is cut off is only known later")
    _, cut = spread_sizes(
        sizes, kernel, strides=strides, dilations=dilations, pads=pads,
        output_padding=output_padding, output_shape=output_shape, auto_pad=auto_pad,
    )  # fmt: skip
    apart = shape[2:] == tuple(size * step for size, step in zip(sizes, steps, strict=True))
    if apart and kernel == steps and group == 1 and not any(cut) and {*spread} == {1}:
        return biased(_blocks(request, image, weights, shape), bias)
    reaches = [range(-(-size // step)) for size, step in zip(kernel, steps, strict=True)]
    few = math.prod(map(len, reaches)) <= MOST_OVERLAPS and min(cut) >= 0
    finite = _are_finite(weights)
    simple = group in (1, shape[1]) and {*spread} == {1} and (math.prod(steps) > 1 or not finite)
    if few and simple and (group == 1 or weights.shape[0] == group):
        return biased(_overlapped(request, image, weights, group, steps, cut, reaches), bias)
    if not finite:
        raise NotLowered("weights that may be infinite meet zeros between pixels")
    begins, ends = [], []
    for axis in range(rank):
        reach = (kernel[axis] - 1) * spread[axis]
        begin = reach - cut[axis]
        end = shape[2 + axis] + reach - ((sizes[axis] - 1) * steps[axis] + 1) - begin
        if not isinstance(end, int):
            raise NotLowered("how far its result reaches is only known later")
        begins.append(begin)
        ends.append(end)
    result = Convolution(
        shape, image.dtype, image, _turned_filters(weights, group), (1,) * rank, spread,
        (*begins, *ends), group, steps,
    )  # fmt: skip
    return biased(result, bias)


def _are_finite(weights: Form) -> bool:
    """Whether weights are known, and known to give 0 by what lies between and around pixels."""
    known = constant_array(weights)
    return known is not None and bool(np.isfinite(known).all())


def _kernel(image: Form, weights: Form) -> Ints:
    """The sizes of a filter; all of the weights' must be known."""
    narrow = image.dtype is DataType.UINT8 and weights.dtype in (DataType.INT8, DataType.INT16)
    if not narrow and (image.dtype is not weights.dtype or image.dtype.bits < 32):
        types = f"{image.dtype.text} and {weights.dtype.text}"
        raise NotLowered(f"convolutions of {types} have no native form")
    if len(image.shape) < 3:
        raise NotLowered("an image without spatial axes has no native form")
    sizes = tuple(size for size in weights.shape if isinstance(size, int))
    if len(sizes) < len(weights.shape):
        raise NotLowered("the sizes of its weights are only known later")
    return sizes[2:]


def _with_axis(weights: Form) -> Form:
    """Filters of one axis as filters of two."""
    if isinstance(weights, Source) and weights.constant is not None:
        return constant(weights.constant[:, :, None])
    return unsqueeze(weights, [2])


def _turned_filters(weights: Form, group: int) -> Form:
    """[C, M / groups, ...] -> [M, C / groups, ...], every filter from its end."""
    if isinstance(weights, Source) and weights.constant is not None:
        return constant(_turned_array(weights.constant, group))
    channels, columns, *kernel = weights.shape
    parts = reshape(weights, (group, channels // group, columns, *kernel))
    places = [Axis(0), Axis(2), Axis(1)]
    places += [Axis(3 + axis, size - 1, -1) for axis, size in enumerate(kernel)]
    shape = (group, columns, channels // group, *kernel)
    turned = View(shape, weights.dtype, parts, tuple(places))
    return reshape(turned, (group * columns, channels // group, *kernel))


def _turned_array(array: NDArray[Any], group: int) -> NDArray[Any]:
    channels, columns, *kernel = array.shape
    parts = array.reshape(group, channels // group, columns, *kernel).swapaxes(1, 2)
    turned = np.flip(parts, tuple(range(3, parts.ndim)))
    return np.ascontiguousarray(turned.reshape(group * columns, -1, *kernel))


def _blocks(request: Request, image: Form, weights: Form, shape: tuple[Size, ...]) -> Form:
    """Filters that do not overlap: matrix products give a block for each element.

    There is one for each row of a filter, so that results lie as pixels of the image do: with
    channels last, [N, H, kh, W, kw, M] is an image of H * kh by W * kw.
    """
    rank = len(image.shape) - 2
    channels, columns, *kernel = weights.shape
    pixels = transpose(image, (0, *range(2, rank + 2), 1))
    rows = [2 * axis for axis in range(1, rank)]
    turned = transpose(weights, (*range(2, rank + 1), 0, rank + 1, 1))
    filters = reshape(turned, (*kernel[:-1], channels, kernel[-1] * columns))
    between = [axis for axis in range(2 * rank - 1) if axis not in rows]
    made = matrix_product(request, unsqueeze(pixels, rows), unsqueeze(filters, between))
    return transpose(
        reshape(made, (shape[0], *shape[2:], columns)), (0, rank + 1, *range(1, rank + 1))
    )


def _overlapped(
    request: Request, image: Form, weights: Form, group: int, steps: Ints, cut: Sequence[int],
    reaches: Sequence[range],
) -> Form:  # fmt: skip
    """Each element gives a block of the result; blocks that overlap are added.

    The result's places along an axis are taken apart into whole steps and what is left, so that a
    block's element lies at the same distance for all of them; channels lie side by side.
    """
    shape = request.shape()
    block = _block_of(request, image, weights, group, steps)
    counts = [
        ceil_divide(size + begin, step)
        for size, begin, step in zip(shape[2:], cut, steps, strict=True)
    ]
    pairs = [size for pair in zip(counts, steps, strict=True) for size in pair]
    spread = (shape[0], *pairs, shape[1])
    first, *places, channel = (iota(spread, axis) for axis in range(len(spread)))
    total: Form | None = None
    for back in itertools.product(*reaches):
        met = [place - more for place, more in zip(places[::2], back, strict=True)]
        taps = [
            place + more * step for place, more, step in zip(places[1::2], back, steps, strict=True)
        ]
        term = block([first, *met], taps, channel)
        total = term if total is None else total + term
    assert total is not None
    sizes = [count * step for count, step in zip(counts, steps, strict=True)]
    whole = reshape(total, (shape[0], *sizes, shape[1]))
    axes = (Axis(0), *(Axis(2 + axis, begin) for axis, begin in enumerate(cut)), Axis(1))
    return View(shape, image.dtype, whole, axes)


def _block_of(
    request: Request, image: Form, weights: Form, group: int, steps: Ints
) -> Callable[[list[Form], list[Form], Form], Form]:
    """What an element adds to the result, for its place, a tap of the filter and a channel.

    Where channels are filtered each for itself that is a product; else a matrix product gives it.
    """
    rank = len(image.shape) - 2
    channels, columns, *kernel = weights.shape
    pixels = transpose(image, (0, *range(2, rank + 2), 1))
    if group > 1:
        copy = Join(pixels.shape, image.dtype, (pixels,), 0)
        filters = squeeze(_channels_last(weights, 0), [0])
        finite = _are_finite(weights)

        def multiplied(place: list[Form], tap: list[Form], channel: Form) -> Form:
            """A product, or 0 where a place or a tap lies outside: the other may be infinite."""
            found = take(copy, [*place, channel]) * take(filters, [*tap, channel])
            inside: list[Form] = [
                binary("lt", at, size)
                for at, size, step in zip(tap, kernel, steps, strict=True)
                if isinstance(size, int) and size % step
            ]
            if not finite:
                for at, size in zip(place[1:], pixels.shape[1:], strict=False):
                    inside.append(binary("ge", at, 0))
                    inside.append(binary("lt", at, number(size, DataType.INT64)))
            return select(reduce(_both, inside), found, 0) if inside else found

        return multiplied
    flat = reshape(_channels_last(weights), (channels, math.prod((*kernel, columns))))
    blocks = reshape(matrix_product(request, pixels, flat), (*pixels.shape[:-1], *kernel, columns))
    return lambda place, tap, channel: take(blocks, [*place, *tap, channel])


def _both(left: Form, right: Form) -> Form:
    return binary("and", left, right)


def _channels_last(weights: Form, axis: int = 1) -> Form:
    """[C, M, ...] with one of the channels behind all other axes."""
    if isinstance(weights, Source) and weights.constant is not None:
        return constant(np.ascontiguousarray(np.moveaxis(weights.constant, axis, -1)))
    rest = [other for other in range(len(weights.shape)) if other != axis]
    return transpose(weights, (*rest, axis))


def biased(result: Form, bias: Form | None) -> Form:
    if bias is None:
        return result
    return result + reshape(bias, (bias.shape[0], *(1,) * (len(result.shape) - 2)))


def max_pool(
    request: Request, image: Form, *, auto_pad: str, ceil_mode: int, dilations: Ints | None,
    kernel_shape: Ints, pads: Ints | None, storage_order: int, strides: Ints | None,
) -> Form | tuple[Form, ...]:  # fmt: skip
    """The largest element in a window, and where it lies."""
    lowest = -math.inf if image.dtype.is_float else int(np.iinfo(image.dtype.numpy).min)
    window, _, _ = _window(
        request, image, "max", lowest, auto_pad=auto_pad, dilations=dilations,
        kernel_shape=kernel_shape, pads=pads, strides=strides,
    )  # fmt: skip
    return window if len(request.outputs) < 2 else peaks(window, bool(storage_order))


def average_pool(
    request: Request, image: Form, *, auto_pad: str, ceil_mode: int, count_include_pad: int,
    dilations: Ints | None, kernel_shape: Ints, pads: Ints | None, strides: Ints | None,
) -> Form:  # fmt: skip
    """The mean of a window; padding counts only on demand."""
    total, begins, ends = _window(
        request, image, "add", 0.0, auto_pad=auto_pad, dilations=dilations,
        kernel_shape=kernel_shape, pads=pads, strides=strides,
    )  # fmt: skip
    whole = not any((*begins, *ends)) or bool(count_include_pad)
    if whole and not ceil_mode:
        return total / float(math.prod(kernel_shape))
    sizes = list(image.shape[2:])
    if count_include_pad:
        sizes = [size + b + e for size, b, e in zip(sizes, begins, ends, strict=True)]
        begins = (0,) * len(begins)
    ones = expand(number(1.0, image.dtype), (1, 1, *sizes))
    counts = Window(
        (1, 1, *total.shape[2:]), image.dtype, "add", 0.0, ones, total.kernel, total.strides,
        total.dilations, begins,
    )  # fmt: skip
    return total / counts


def lp_pool(
    request: Request, image: Form, *, auto_pad: str, ceil_mode: int, dilations: Ints | None,
    kernel_shape: Ints, p: int, pads: Ints | None, strides: Ints | None,
) -> Form:  # fmt: skip
    """The p-norm of a window."""
    if p == 0:
        raise NotLowered("there is no norm of the power 0")
    size = unary("abs", image)
    raised = size if p == 1 else image * image if p == 2 else power_of(size, _power(image, p))
    total, _, _ = _window(
        request, raised, "add", 0.0, auto_pad=auto_pad, dilations=dilations,
        kernel_shape=kernel_shape, pads=pads, strides=strides,
    )  # fmt: skip
    if p in (1, 2):
        return total if p == 1 else unary("sqrt", total)
    return power_of(total, _power(image, 1 / p))


def _power(image: Form, value: float) -> Form:
    return number(float(value), image.dtype)


def _window(
    request: Request, image: Form, combine: str, initial: float, *, auto_pad: str,
    dilations: Ints | None, kernel_shape: Ints, pads: Ints | None, strides: Ints | None,
) -> tuple[Window, Ints, Ints]:  # fmt: skip
    """A window, and how much padding lies before and behind each axis."""
    rank, shape = len(kernel_shape), request.shape()
    kernel = per_axis(kernel_shape, rank, "kernel_shape")
    steps, spread = _steps(strides, dilations, rank)
    begins, ends = _pads(auto_pad, pads, image.shape[2:], shape[2:], kernel, steps, spread)
    made = Window(shape, image.dtype, combine, initial, image, kernel, steps, spread, begins)
    return made, begins, ends


def _steps(strides: Ints | None, dilations: Ints | None, rank: int) -> tuple[Ints, Ints]:
    """How far apart windows are, and elements in them."""
    return per_axis(strides, rank, "strides"), per_axis(dilations, rank, "dilations")


def _pads(
    auto_pad: str, pads: Ints | None, sizes: tuple[Size, ...], results: tuple[Size, ...],
    kernel: tuple[int, ...], strides: Ints, dilations: Ints,
) -> tuple[Ints, Ints]:  # fmt: skip
    """How much lies before each axis and behind it."""
    rank = len(sizes)
    if len(kernel) != rank or len(results) != rank:
        raise NotLowered(f"a kernel of {len(kernel)} axes does not slide over {rank}")
    if auto_pad in ("NOTSET", "VALID"):
        pairs = pad_pairs(None if auto_pad == "VALID" else pads, rank)
        return tuple(begin for begin, _ in pairs), tuple(end for _, end in pairs)
    totals = []
    for axis in range(rank):
        reach = (results[axis] - 1) * strides[axis] + (kernel[axis] - 1) * dilations[axis] + 1
        total = reach - sizes[axis]
        if not isinstance(total, int):
            raise NotLowered("how much padding there is is only known later")
        totals.append(max(total, 0))
    small, large = tuple(total // 2 for total in totals), tuple(-(-total // 2) for total in totals)
    return (small, large) if auto_pad == "SAME_UPPER" else (large, small)


LOWERINGS: Lowerings = {
    ("", "ConvTranspose"): transposed_convolution,
    ("", "MaxPool"): max_pool,
    ("", "AveragePool"): average_pool,
    ("", "LpPool"): lp_pool,
}
