"""Numbers from the ends of every type, and arrays of them."""

import random
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, helper

Array = NDArray[Any]

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float32", "float64", "float16", "bfloat16")
SIZES = (0, 1, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17)
BEYOND = (2**31, 2**32, 2**33, 2**53, 2**62, 2**63)
"""Counts at which some arithmetic ends: taken with both signs and their neighbours."""

EXTREME = tuple(
    sorted(
        {
            number
            for count in BEYOND
            for number in (count, -count, count - 1, 1 - count, count + 1, -count - 1)
            if -(2**63) <= number < 2**63
        }
    )
)
ENDS = (-(2**63), -(2**63), 1 - 2**63, 2**63 - 1, 2**63 - 1, 2**63 - 2)
SMALL = (-9, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 8, 17)
WORDS = ("", "a", "Ab", "é", "日本", "0", "nan", "x" * 70, "a b", "\x00")


def dtype_of(name: str) -> np.dtype[Any]:
    """A NumPy type by name, those of ml_dtypes among them."""
    return np.dtype(getattr(ml_dtypes, name)) if hasattr(ml_dtypes, name) else np.dtype(name)


def element_type(dtype: np.dtype[Any]) -> int:
    """ONNX's number of a type."""
    if dtype.kind in "OUS":
        return int(TensorProto.STRING)
    return int(helper.np_dtype_to_tensor_dtype(dtype))


def number(rng: random.Random, wild: float = 0.5) -> int:
    """A whole number: small, or from the ends of what 64 bits hold."""
    if rng.random() >= wild:
        return rng.choice(SMALL)
    return rng.choice(ENDS if rng.random() < 0.5 else EXTREME)


def numbers(rng: random.Random, shape: Any, name: str = "int64", wild: float = 0.5) -> Array:
    """Numbers of an integer type; those that it cannot hold become its ends."""
    limits = np.iinfo(name)
    count = int(np.prod(shape, dtype=np.int64))
    found = [min(max(number(rng, wild), limits.min), limits.max) for _ in range(count)]
    return np.array(found, name).reshape(shape)


def _odd_floats(dtype: np.dtype[Any]) -> list[float]:
    facts = ml_dtypes.finfo(dtype)
    ends = [float(facts.max), float(facts.tiny), float(facts.smallest_subnormal), float(facts.eps)]
    far = [3e38, 1e30, 1e-30, 65504.0, 2.0**31, 2.0**63, 2.0**64, 1e-45, 0.5]
    signed = [*ends, *[item for item in far if item <= float(facts.max)], 0.0, float("inf")]
    return [*signed, *[-item for item in signed], float("nan")]


_ODD = {name: _odd_floats(dtype_of(name)) for name in FLOATS}


def floats(rng: random.Random, shape: Any, name: str = "float32", wild: float = 0.2) -> Array:
    """Numbers around 0, some of them NaN, infinite, denormal or close to the largest."""
    dtype = dtype_of(name)
    count = int(np.prod(shape, dtype=np.int64))
    found = np.array([rng.gauss(0, 2) for _ in range(count)], np.float64)
    for place in range(count):
        if rng.random() < wild:
            found[place] = rng.choice(_ODD[name])
    with np.errstate(all="ignore"):
        return found.astype(dtype).reshape(shape)


def elements(rng: random.Random, shape: Any, name: str, wild: float = 0.2) -> Array:
    """Elements of any type."""
    if name in FLOATS:
        return floats(rng, shape, name, wild)
    count = int(np.prod(shape, dtype=np.int64))
    if name == "bool":
        return np.array([rng.random() < 0.5 for _ in range(count)], bool).reshape(shape)
    if name == "str":
        return np.array([rng.choice(WORDS) for _ in range(count)], object).reshape(shape)
    if name in INTEGERS:
        return numbers(rng, shape, name, wild)
    return np.array([rng.choice(SMALL) for _ in range(count)]).astype(dtype_of(name)).reshape(shape)
