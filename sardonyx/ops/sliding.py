"""Windows that slide over the spatial axes of images: what convolutions and pools share."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sardonyx.dims import Size, ceil_divide
from sardonyx.errors import InferenceError
from sardonyx.graph import Node
from sardonyx.ops.fact import Fact, Sizes, require_room
from sardonyx.ops.precision import Array
from sardonyx.record import record

Ints = Sequence[int]
AUTO_PADS = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID", "")


@record
class Sliding:
    """Where windows stand, axis by axis.

    `pads` are those before and behind each axis as asked for; `overhang` is what the last window
    reaches beyond them where the number of windows was rounded up.
    """

    sizes: tuple[int, ...]
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[tuple[int, int], ...]
    overhang: tuple[int, ...]
    outputs: tuple[int, ...]

    def pad(self, x: Array, fill: Any = 0) -> Array:
        """An image with its spatial axes padded so far that every window lies within."""
        widths = [
            (begin, end + over) for (begin, end), over in zip(self.pads, self.overhang, strict=True)
        ]
        if not any(map(any, widths)):
            return x
        return np.pad(x, [(0, 0)] * (x.ndim - len(widths)) + widths, constant_values=fill)

    def windows(self, padded: Array) -> Array:
        """A read-only view of a padded image: [..., outputs..., kernel...]."""
        lead = padded.ndim - len(self.kernel)
        steps = padded.strides[lead:]
        return np.lib.stride_tricks.as_strided(
            padded,
            (*padded.shape[:lead], *self.outputs, *self.kernel),
            (
                *padded.strides[:lead],
                *(step * stride for step, stride in zip(steps, self.strides, strict=True)),
                *(step * dilation for step, dilation in zip(steps, self.dilations, strict=True)),
            ),
            writeable=False,
        )

    def positions(self, axis: int) -> Array:
        """Where the taps of each window read along an axis of the image: [outputs, kernel]."""
        starts = np.arange(self.outputs[axis]) * self.strides[axis] - self.pads[axis][0]
        return starts[:, None] + np.arange(self.kernel[axis]) * self.dilations[axis]


def slide(
    sizes: Ints, kernel: Ints, *, strides: Ints | None = None, dilations: Ints | None = None,
    pads: Ints | None = None, auto_pad: str = "NOTSET", ceil_mode: int = 0,
) -> Sliding:  # fmt: skip
    """Windows of a kernel on axes of known sizes.

    >>> slide((5,), (3,), strides=(2,), auto_pad="SAME_UPPER").pads
    ((1, 1),)
    """
    rank = len(sizes)
    kernel = per_axis(kernel, rank, "kernel_shape")
    strides = per_axis(strides, rank, "strides")
    dilations = per_axis(dilations, rank, "dilations")
    counts: Any = output_sizes(
        tuple(sizes), kernel, strides=strides, dilations=dilations, pads=pads, auto_pad=auto_pad,
        ceil_mode=ceil_mode,
    )  # fmt: skip
    outputs = tuple(map(int, counts))
    reach = [dilation * (k - 1) + 1 for k, dilation in zip(kernel, dilations, strict=True)]
    needed = [
        (output - 1) * stride + taps
        for output, stride, taps in zip(outputs, strides, reach, strict=True)
    ]
    if auto_pad.startswith("SAME"):
        missing = [max(need - size, 0) for need, size in zip(needed, sizes, strict=True)]
        chosen = tuple(_split(total, auto_pad) for total in missing)
    elif auto_pad == "VALID":
        chosen = ((0, 0),) * rank
    else:
        chosen = pad_pairs(pads, rank)
    overhang = tuple(
        max(need - size - begin - end, 0)
        for need, size, (begin, end) in zip(needed, sizes, chosen, strict=True)
    )
    strides, dilations = _taken_steps(strides, outputs), _taken_steps(dilations, kernel)
    return Sliding(tuple(sizes), kernel, strides, dilations, chosen, overhang, outputs)


def _taken_steps(steps: Ints, counts: Ints) -> tuple[int, ...]:
    """Steps from one of several to the next; one that nobody takes may be of any length."""
    return tuple(step if count > 1 else 1 for step, count in zip(steps, counts, strict=True))


def _split(total: int, auto_pad: str) -> tuple[int, int]:
    half = total // 2
    return (half, total - half) if auto_pad == "SAME_UPPER" else (total - half, half)


def output_sizes(
    sizes: Sizes, kernel: Sizes, *, strides: Ints | None = None, dilations: Ints | None = None,
    pads: Ints | None = None, auto_pad: str = "NOTSET", ceil_mode: int = 0,
) -> Sizes:  # fmt: skip
    """How many windows fit on each axis; None where a size or the kernel is unknown.

    >>> from sardonyx.dims import symbol
    >>> output_sizes((symbol("h"), 7), (3, 3), strides=(2, 2), pads=(1, 1, 1, 1))
    ((h-1)//2+1, 4)
    """
    rank = len(sizes)
    if auto_pad not in AUTO_PADS:
        raise InferenceError(f"auto_pad is '{auto_pad}', which is not known")
    require_kernel(kernel, rank)
    strides, dilations = per_axis(strides, rank, "strides"), per_axis(dilations, rank, "dilations")
    pairs = pad_pairs(None if auto_pad not in ("NOTSET", "") else pads, rank)
    result: list[Size | None] = []
    for axis, (size, taps) in enumerate(zip(sizes, kernel, strict=True)):
        stride, (begin, end) = strides[axis], pairs[axis]
        if size is not None and auto_pad.startswith("SAME"):
            result.append(ceil_divide(size, stride))
        elif size is None or taps is None:
            result.append(None)
        else:
            reach = (taps - 1) * dilations[axis] + 1
            if ceil_mode and auto_pad != "VALID" and isinstance(reach, int):
                end = ceil_pad(end, stride, reach)
            room = size + (begin + end) - reach
            require_room(room, f"a kernel that reaches over {reach} does not fit size {size}")
            result.append(room // stride + 1)
    return tuple(result)


def require_kernel(kernel: Sizes, rank: int) -> None:
    """Refuse a kernel with other axes than the image, or with one that is known to be empty."""
    if len(kernel) != rank:
        raise InferenceError(f"kernel_shape has {len(kernel)} axes, the image {rank}")
    if any(isinstance(taps, int) and taps < 1 for taps in kernel):
        raise InferenceError(f"kernel_shape must be {rank} positive numbers, not {list(kernel)}")


def ceil_pad(end: int, stride: int, reach: int) -> int:
    """The padding behind an axis with which rounding down gives as many windows as rounding up."""
    return min(end + stride - 1, reach - 1)


def per_axis(values: Ints | None, rank: int, what: str) -> tuple[int, ...]:
    """One positive number an axis; ones where none are given."""
    if not values:
        return (1,) * rank
    if len(values) != rank or min(values) < 1:
        raise InferenceError(f"{what} must be {rank} positive numbers, not {list(values)}")
    return tuple(values)


def pad_pairs(pads: Ints | None, rank: int) -> tuple[tuple[int, int], ...]:
    """ONNX's list (all before, then all behind) as pairs; zeros where none are given."""
    if not pads:
        return ((0, 0),) * rank
    if len(pads) != 2 * rank:
        raise InferenceError(f"pads must be {2 * rank} numbers, not {list(pads)}")
    if min(pads) < 0:
        raise InferenceError(f"pads cannot be negative, and are {list(pads)}")
    return tuple(zip(pads[:rank], pads[rank:], strict=True))


def kernel_sizes(weights: Fact, kernel_shape: Ints | None, rank: int) -> Sizes:
    """A kernel's sizes, from the attribute or else from the weights' spatial axes."""
    found = (None,) * rank if weights.shape is None else weights.shape[2:]
    if not kernel_shape:
        return found
    if len(found) == len(kernel_shape):
        for given, size in zip(kernel_shape, found, strict=True):
            if isinstance(size, int) and size != given:
                raise InferenceError(f"kernel_shape is {list(kernel_shape)}, the weights {weights}")
    return tuple(kernel_shape)


def is_image(x: Fact) -> bool:
    """True where the rank is known and allows for spatial axes; an error where it forbids them."""
    if x.shape is not None and len(x.shape) < 3:
        raise InferenceError(f"an image needs a batch, channels and spatial axes, not {x}")
    return x.shape is not None


def drop_trivial(node: Node, name: str, value: int = 1) -> bool:
    """Remove an attribute whose elements all are `value`; False where one is something else."""
    given = node.attribute(name)
    if given is not None and any(item != value for item in given):
        return False
    node.attributes.pop(name, None)
    return True
