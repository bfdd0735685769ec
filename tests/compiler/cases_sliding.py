"""Cases of convolutions and windows at the edges of their tiles."""

from typing import Any

import numpy as np

from tests.compiler.case import Case, normal


def conv(image: tuple[int, ...], weights: tuple[int, ...], **attributes: Any) -> Case:
    label = "x".join(map(str, (*image, *weights)))
    return Case("Conv", (normal(*image), normal(*weights)), attributes, fixed=(1,), label=label)


DEPTHWISE = [
    conv((1, 17, 9, 8), (17, 1, 3, 3), group=17, pads=[1, 1, 1, 1]),
    conv((2, 16, 7, 25), (16, 1, 5, 5), group=16, pads=[2, 2, 2, 2], strides=[1, 2]),
    conv((1, 3, 12, 2), (3, 1, 3, 7), group=3, pads=[0, 5, 2, 3], dilations=[2, 1]),
    conv((1, 33, 3, 9), (33, 1, 1, 3), group=33, pads=[0, 3, 0, 0], dilations=[1, 3]),
    conv((0, 5, 4, 4), (5, 1, 3, 3), group=5),
    conv((1, 16, 4, 1), (16, 1, 3, 1), group=16, pads=[1, 0, 1, 0]),
    conv((1, 5, 4, 31), (5, 1, 2, 4), group=5, pads=[0, 1, 0, 9], strides=[1, 3]),
]


def transposed(image: tuple[int, ...], weights: tuple[int, ...], **attributes: Any) -> Case:
    label = "x".join(map(str, (*image, *weights)))
    inputs = (normal(*image), normal(*weights))
    return Case("ConvTranspose", inputs, attributes, fixed=(1,), label=label)


GENERAL = [
    conv((2, 5, 20), (7, 5, 3), pads=[1, 1], strides=[2]),
    conv((1, 17, 33), (16, 17, 1)),
    conv((1, 65, 9), (17, 65, 2), strides=[2]),
    conv((2, 18, 15), (18, 1, 4), group=18, pads=[2, 1]),
    conv((2, 3, 5, 6, 7), (4, 3, 2, 3, 3), pads=[0, 1, 1, 1, 1, 0], strides=[1, 2, 1]),
    conv((1, 4, 3, 4, 5), (6, 2, 1, 1, 1), group=2, dilations=[1, 1, 1]),
    Case("Conv", (normal(2, 6, 7, 9), normal(20, 3, 3, 2)), {"group": 2, "pads": [1, 0, 0, 1]},
         label="fed weights", symbolic=False),
    Case("Conv", (normal(2, 6, 9), normal(18, 6, 3), normal(18)), label="fed weights and bias",
         symbolic=False),
    *(
        Case("ConvTranspose", (image, weights), attributes, label=f"fed weights {place}",
             symbolic=False)
        for place, (image, weights, attributes) in enumerate([
            (normal(1, 6, 5, 4), normal(6, 17, 3, 3), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
            (normal(1, 4, 7), normal(4, 3, 4), {"strides": [3], "pads": [3, 0]}),
            (normal(1, 2, 3, 3, 2), normal(2, 3, 2, 2, 2), {"strides": [2, 1, 2]}),
            (normal(1, 3, 4, 5).astype(np.float64), normal(3, 2, 3, 2).astype(np.float64), {}),
        ])
    ),
    conv((1, 16, 9, 11), (24, 16, 3, 3), pads=[1, 1, 1, 1]),
    transposed((2, 5, 4, 6), (5, 3, 2, 2), strides=[2, 2]),
    transposed((2, 18, 3, 5), (18, 1, 2, 3), strides=[2, 3]),
    transposed((1, 5, 4), (5, 3, 3), strides=[3]),
    transposed((1, 3, 2, 3, 2), (3, 17, 2, 1, 3), strides=[2, 1, 3]),
    transposed((1, 6, 5, 4), (6, 17, 3, 3), strides=[2, 2], pads=[1, 1, 1, 1],
               output_padding=[1, 1]),
    transposed((2, 4, 5, 5), (4, 3, 3, 3), group=2, dilations=[2, 1]),
    transposed((1, 4, 7), (4, 3, 4), strides=[3], pads=[3, 0]),
    *(
        transposed((2, 3, 5, 4), (3, columns, 4, 3), strides=[2, 2], pads=[1, 0, 1, 2])
        for columns in (1, 15, 16, 17)
    ),
    transposed((1, 3, 5, 4), (3, 2, 1, 2), strides=[2, 3], output_padding=[1, 2]),
    transposed((1, 3, 5, 4), (3, 2, 1, 2), strides=[2, 3], output_padding=[1, 1]),
    transposed((2, 4, 3, 5), (4, 3, 2, 3), strides=[2, 3], group=2),
    transposed((1, 4, 5, 5), (4, 1, 3, 3), strides=[2, 2], group=2),
    transposed((1, 4, 3, 5), (4, 2, 3, 2), strides=[2, 2], group=2, dilations=[1, 2]),
    transposed((1, 3, 5), (3, 2, 16), strides=[8], pads=[4, 4]),
    transposed((1, 2, 4, 5), (2, 3, 33, 4), strides=[1, 2]),
    transposed((0, 3, 5, 4), (3, 2, 3, 3), strides=[2, 2]),
    *(
        transposed((2, count, 5, 4), (count, 1, 4, 3), group=count, strides=[2, 2],
                   pads=[1, 0, 1, 2])
        for count in (2, 16, 17)
    ),
    transposed((1, 2, 3, 3, 2), (2, 3, 2, 2, 2), strides=[2, 1, 2]),
    Case("ConvTranspose", (normal(1, 4, 5, 5), normal(4, 3, 3, 3)),
         {"strides": [2, 2], "auto_pad": "SAME_UPPER"}, fixed=(1,), label="same", symbolic=False),
    Case("ConvTranspose", (normal(1, 4, 5, 5), normal(4, 3, 5, 5)), {"pads": [4, 4, 4, 3]},
         fixed=(1,), label="cut"),
]  # fmt: skip


def pool(name: str, image: tuple[int, ...], label: str, **attributes: Any) -> Case:
    return Case(name, (normal(*image),), attributes, label=label)


POOLS = [
    pool("MaxPool", (2, 17, 9), "line", kernel_shape=[3], strides=[2], pads=[1, 1]),
    pool("MaxPool", (1, 3, 5, 6, 7), "space", kernel_shape=[2, 3, 2], dilations=[1, 2, 1]),
    pool("MaxPool", (1, 16, 8, 9), "ceil", kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1),
    Case("MaxPool", (np.arange(-60, 60, dtype=np.int8).reshape(1, 3, 5, 8),),
         {"kernel_shape": [2, 2], "pads": [1, 1, 1, 1]}, label="int8"),
    pool("AveragePool", (1, 5, 9, 8), "edges", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
    pool("AveragePool", (1, 5, 9, 8), "ceil", kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1,
         pads=[1, 0, 0, 1]),
    pool("AveragePool", (1, 5, 9, 8), "ceil padded", kernel_shape=[3, 3], strides=[2, 2],
         ceil_mode=1, pads=[1, 1, 1, 1], count_include_pad=1),
    pool("AveragePool", (2, 17, 30), "line", kernel_shape=[4], strides=[3], dilations=[2]),
    pool("LpPool", (1, 5, 9, 8), "2", kernel_shape=[3, 2], pads=[1, 1, 0, 0]),
    pool("LpPool", (1, 5, 9, 8), "1", kernel_shape=[3, 2], p=1),
    pool("LpPool", (1, 5, 9, 8), "3", kernel_shape=[3, 2], p=3),
]  # fmt: skip


def odd(*shape: int) -> np.ndarray:
    """Few different numbers, some of them NaN or infinite, and rows of the lowest."""
    array = np.round(normal(*shape))
    array.reshape(-1)[3::17] = np.nan
    array.reshape(-1)[5::13] = np.inf
    array[:, -1] = -np.inf
    return array


def peaks(image: np.ndarray, label: str, **attributes: Any) -> Case:
    return Case("MaxPool", (image,), attributes, outputs=2, label=f"indices {label}")


INDICES = [
    peaks(odd(2, 3, 33), "line", kernel_shape=[3], strides=[2], pads=[1, 1]),
    peaks(odd(2, 3, 9, 16), "plane", kernel_shape=[2, 2], strides=[2, 2]),
    peaks(odd(1, 2, 9, 17), "edges", kernel_shape=[3, 5], pads=[1, 2, 2, 3], dilations=[2, 1]),
    peaks(odd(1, 2, 9, 15), "columns first", kernel_shape=[3, 2], storage_order=1, ceil_mode=1,
          strides=[2, 2]),
    peaks(odd(2, 2, 3, 4, 18), "space", kernel_shape=[2, 3, 2], pads=[0, 1, 0, 0, 1, 1]),
    peaks(odd(1, 2, 1, 1), "one", kernel_shape=[1, 1]),
    peaks(np.empty((0, 2, 4, 4), np.float32), "none", kernel_shape=[2, 2]),
    peaks(odd(1, 2, 9, 16).astype(np.float64), "double", kernel_shape=[2, 2]),
    peaks(normal(1, 2, 9, 16).astype(np.float16), "half", kernel_shape=[2, 2]),
    peaks(np.arange(-60, 60, dtype=np.int8).reshape(1, 3, 5, 8), "int8", kernel_shape=[2, 2],
          pads=[1, 1, 1, 1]),
    peaks(np.arange(120, dtype=np.uint8).reshape(1, 3, 5, 8), "uint8", kernel_shape=[2, 2],
          pads=[1, 1, 1, 1]),
]  # fmt: skip


def columns(
    array: np.ndarray, image: list[int], block: list[int], label: str, **attributes: object
) -> Case:
    """Windows summed back into an image."""
    return Case("Col2Im", (array, np.int64(image), np.int64(block)), attributes, fixed=(1, 2),
                label=label)  # fmt: skip


COLUMNS = [
    columns(odd(2, 6, 16), [5, 4], [2, 1], "plane"),
    columns(odd(1, 9, 4), [5, 5], [3, 3], "steps", strides=[2, 2]),
    columns(odd(1, 18, 25), [5, 5], [3, 3], "edges", pads=[1, 1, 1, 1]),
    columns(odd(1, 4, 6), [4, 6], [2, 2], "apart", dilations=[1, 2], strides=[2, 2],
            pads=[0, 1, 0, 0]),
    columns(odd(2, 6, 17), [19], [3], "line"),
    columns(odd(1, 81, 4), [10, 10], [9, 9], "many taps"),
    columns(odd(1, 8, 8), [3, 3, 3], [2, 2, 2], "space"),
    columns(normal(1, 9, 4).astype(np.float16), [4, 4], [3, 3], "half"),
    columns(np.arange(36, dtype=np.int32).reshape(1, 9, 4), [4, 4], [3, 3], "int32"),
    columns(normal(0, 9, 4), [4, 4], [3, 3], "none"),
]  # fmt: skip


CASES = [*DEPTHWISE, *GENERAL, *POOLS, *INDICES, *COLUMNS]
