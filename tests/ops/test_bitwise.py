"""Operations on bits."""

import numpy as np
import pytest

from sardonyx.errors import UnsupportedError
from tests.ops.one_node import one_node, run_converted, run_here, run_there, same

DTYPES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


def _numbers(dtype: str) -> np.ndarray:
    limits = np.iinfo(dtype)
    return np.array([limits.min, limits.min + 5, 0, 1, 77, limits.max // 3, limits.max], dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("operator", ["BitwiseAnd", "BitwiseOr", "BitwiseXor"])
def test_two_inputs(operator: str, dtype: str) -> None:
    inputs = {"a": _numbers(dtype)[:, None].copy(), "b": _numbers(dtype)}
    content = one_node(operator, inputs, ["y"], 18)
    same(run_here(content, inputs), run_there(content, inputs))
    same(run_converted(content, inputs, 17), run_here(content, inputs))


@pytest.mark.parametrize("dtype", DTYPES)
def test_not(dtype: str) -> None:
    inputs = {"x": _numbers(dtype)}
    content = one_node("BitwiseNot", inputs, ["y"], 18)
    same(run_here(content, inputs), run_there(content, inputs))
    same(run_converted(content, inputs, 17), run_here(content, inputs))


@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_shift(dtype: str, direction: str) -> None:
    bits = np.dtype(dtype).itemsize * 8
    places = [0, 1, 3, bits - 1, bits, 100]
    places += [-1] if dtype.startswith("i") else []
    x, y = _numbers(dtype)[:, None].copy(), np.array(places, dtype)
    content = one_node("BitShift", {"x": x, "y": y}, ["z"], 28, direction=direction)
    (result,) = run_here(content, {"x": x, "y": y})
    limits = np.iinfo(dtype)
    expected = [[_shift(int(a), int(b), bits, direction, limits.min) for b in y] for a in x[:, 0]]
    assert result.dtype == np.dtype(dtype)
    assert result.tolist() == expected
    same(run_converted(content, {"x": x, "y": y}, 27), [result])


def _shift(number: int, places: int, bits: int, direction: str, least: int) -> int:
    outside = not 0 <= places < bits
    if direction == "RIGHT":
        return (-1 if number < 0 else 0) if outside else number >> places
    return 0 if outside else ((number << places) - least) % 2**bits + least


def test_shift_in_no_direction() -> None:
    inputs = {"x": np.uint8([1]), "y": np.uint8([1])}
    content = one_node("BitShift", inputs, ["z"], 11, direction="UP")
    with pytest.raises(UnsupportedError, match="'UP' is not one of LEFT, RIGHT"):
        run_here(content, inputs)
