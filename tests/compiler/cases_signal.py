"""Cases of Fourier transforms: lengths with small and large factors, cut and filled signals."""

from typing import Any

import numpy as np

from tests.compiler.case import Case, normal


def transform(
    shape: tuple[int, ...], length: int | None = None, axis: int = 1, *, symbolic: bool = False,
    dtype: Any = np.float32, **attributes: int,
) -> Case:  # fmt: skip
    wanted = None if length is None else np.asarray(length, np.int64)
    inputs = (normal(*shape).astype(dtype), wanted, np.asarray(axis, np.int64))
    words = [*map(str, (*shape, length, axis)), *attributes, np.dtype(dtype).name]
    return Case("DFT", inputs, attributes, fixed=(1, 2), label=" ".join(words), symbolic=symbolic)


def frames(
    shape: tuple[int, ...], step: int, length: int | None, window: int | None = None,
    *, symbolic: bool = True, dtype: Any = np.float32, **attributes: int,
) -> Case:  # fmt: skip
    weights = None if window is None else normal(window).astype(dtype)
    wanted = None if length is None else np.asarray(length, np.int64)
    inputs = (normal(*shape).astype(dtype), np.asarray(step, np.int64), weights, wanted)
    words = [*map(str, (*shape, step, length, window)), *attributes, np.dtype(dtype).name]
    return Case(
        "STFT", inputs, attributes, fixed=(1, 2, 3), label=" ".join(words), symbolic=symbolic
    )


LENGTHS = (1, 2, 3, 4, 7, 13, 17, 30, 34, 400)

CASES = [
    *(transform((3, length, 2), dtype=np.float64) for length in LENGTHS),
    *(transform((2, length + 2, 1), length, symbolic=True, onesided=1) for length in LENGTHS),
    *(transform((2, length // 2 + 1, 2), length, inverse=1, onesided=1) for length in LENGTHS),
    transform((15, 20, 1), 20, symbolic=True),
    transform((16, 15, 1), 20, symbolic=True),
    transform((17, 30, 1), 20, symbolic=True),
    transform((0, 20, 1), 20, symbolic=True),
    transform((2, 20, 17, 2)),
    transform((2, 20, 3, 2), inverse=1),
    transform((2, 20, 3, 1), axis=-3, symbolic=False, onesided=1),
    transform((20, 33, 1), 20, axis=0, symbolic=True),
    transform((2, 3, 20, 2), axis=-2),
    transform((2, 12, 2), dtype=np.float16),
    frames((2, 100, 1), 8, 16),
    frames((1, 321, 1), 5, 30, 30),
    frames((1, 321, 1), 16, None, 34),
    frames((1, 321, 1), 16, None, 33, onesided=0),
    frames((2, 64, 2), 7, 12, 12, symbolic=False, onesided=0),
    frames((1, 64, 1), 3, 64),
    frames((1, 200, 1), 10, 25, 25, dtype=np.float64),
]
