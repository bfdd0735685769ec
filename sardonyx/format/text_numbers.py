"""Numbers in text: the shortest decimal that reads back exactly, and exact reading."""

import math
import re
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

_POWERS = 10.0 ** np.arange(0, 23)
_FEWEST, _MOST = 6, 9
_LARGEST = float(np.finfo(np.float32).max)
_OVERFLOW = 2.0**128 - 2.0**103
"""Halfway between the largest float32 and the power of two after it: rounds to infinity."""
_BLANK = r"[ \t\n\v\f\r]*+"
_DECIMAL = r"-?(?:[0-9]++(?:\.[0-9]*+)?(?:[eE][+-]?[0-9]++)?|inf|nan)"


def _listing(number: str) -> re.Pattern[str]:
    return re.compile(f"{_BLANK}{number}{_BLANK}(?:,{_BLANK}{number}{_BLANK})*+")


INTEGER_LIST = _listing("-?[0-9]{1,20}+")
"""Plain integers separated by commas."""
DECIMAL_LIST = _listing(_DECIMAL)
"""Plain decimals separated by commas."""


def format_floats(values: NDArray[Any]) -> list[str]:
    """Each float32 or float64 as the shortest decimal that reads back to the same value.

    >>> format_floats(np.array([0.1, 1e20, 100000, -0.0], np.float32))
    ['0.1', '1e+20', '1e+05', '-0']
    """
    flat = values.reshape(-1)
    if flat.dtype != np.float32 or flat.size < 16:
        return [format_float(value) for value in flat]
    formats, certain = _formats(flat)
    written = (" ".join(formats) % tuple(flat.tolist())).split(" ")
    for position in np.flatnonzero(~certain).tolist():
        written[position] = format_float(flat[position])
    return written


def format_float(value: Any) -> str:
    """One NumPy float32 or float64 as its shortest exact decimal; plain or scientific, by length.

    >>> format_float(np.float32(0.0001)), format_float(np.float64(123456789.5))
    ('1e-04', '123456789.5')
    """
    sign = "-" if np.signbit(value) else ""
    if not np.isfinite(value):
        return sign + ("nan" if np.isnan(value) else "inf")
    if value == 0:
        return sign + "0"
    mantissa, _, power = np.format_float_scientific(abs(value), unique=True, trim="-").partition(
        "e"
    )
    digits, exponent = mantissa.replace(".", ""), int(power)
    scientific = digits[0] + ("." + digits[1:] if len(digits) > 1 else "") + f"e{exponent:+03d}"
    if exponent >= len(digits) - 1:
        plain = str(int(abs(value))) if exponent < len(scientific) else scientific
    elif exponent >= 0:
        plain = f"{digits[: exponent + 1]}.{digits[exponent + 1 :]}"
    else:
        plain = f"0.{'0' * (-exponent - 1)}{digits}" if -exponent < len(scientific) else scientific
    return sign + (plain if len(plain) <= len(scientific) else scientific)


def _formats(values: NDArray[np.float32]) -> tuple[list[str], NDArray[np.bool_]]:
    """A printf format for every value, and which of them surely give the shortest exact text."""
    with np.errstate(invalid="ignore"):
        magnitude = np.abs(values).astype(np.float64)
    certain = (magnitude > 1e-13) & (magnitude < 1e13)
    magnitude[~certain] = 1.0
    target = magnitude.astype(np.float32)
    exponent = np.floor(np.log10(magnitude)).astype(np.int64)
    length = np.full(values.shape, _MOST)
    digits = np.zeros(values.shape, np.int64)
    for count in range(_MOST, _FEWEST - 1, -1):
        scale = count - 1 - exponent
        factor = _POWERS[np.abs(scale)]
        scaled = np.where(scale >= 0, magnitude * factor, magnitude / factor)
        rounded = np.rint(scaled)
        back = np.where(scale >= 0, rounded / factor, rounded * factor)
        below = np.nextafter(back, 0).astype(np.float32) == target
        above = np.nextafter(back, np.inf).astype(np.float32) == target
        exact = below & above
        tie = np.abs(np.abs(scaled - rounded) - 0.5) < 1e-5
        certain &= ~((below != above) | (tie & exact & (length == count + (count < _MOST))))
        accepted = exact & (length == count + (count < _MOST))
        length[accepted] = count
        digits[accepted] = rounded[accepted].astype(np.int64)
    certain &= (digits >= 10 ** (length - 1)) & (digits < 10**length)
    power_of_two = (values.view(np.uint32) & 0x7FFFFF) == 0
    certain &= ~(power_of_two & (length > _FEWEST))
    for _ in range(_FEWEST):
        trailing = (length <= _FEWEST) & (length > 1) & (digits % 10 == 0)
        digits[trailing] //= 10
        length[trailing] -= 1
    return _choose(length, exponent), certain | (values == 0)


def _choose(length: NDArray[np.int64], exponent: NDArray[np.int64]) -> list[str]:
    """Plain or scientific notation, whichever is shorter, as printf formats."""
    scientific = length + (length > 1) + 4
    decimals = np.maximum(length - 1 - exponent, 0)
    plain = np.maximum(exponent, 0) + 1 + (decimals > 0) + decimals
    code = np.where(plain <= scientific, decimals, -length)
    kinds = {c: f"%.{c}f" if c >= 0 else f"%.{-c - 1}e" for c in np.unique(code).tolist()}
    return [kinds[c] for c in code.tolist()]


def read_float64(text: str) -> float | None:
    """The nearest float64 of a decimal; None when it is too large or no number.

    >>> read_float64("1e999") is None, read_float64("-inf")
    (True, -inf)
    """
    try:
        value = float(text)
    except ValueError:
        return None
    return None if math.isinf(value) and "f" not in text.lower() else value


def read_float32(text: str) -> float | None:
    """The nearest float32 of a decimal, rounded once; None when it is too large or no number.

    >>> read_float32("0.1"), read_float32("1e39") is None
    (0.10000000149011612, True)
    """
    value = read_float64(text)
    if value is None or not math.isfinite(value):
        return value
    if abs(value) > _OVERFLOW:
        return None
    if abs(value) == _OVERFLOW:
        return (
            math.copysign(_LARGEST, value)
            if Decimal(text).copy_abs() < Decimal(_OVERFLOW)
            else None
        )
    nearest = np.float32(value)
    if float(nearest) == value:
        return value
    toward = np.float32(math.copysign(math.inf, value - float(nearest)))
    with np.errstate(over="ignore"):
        other = np.nextafter(nearest, toward)
    if (float(nearest) + float(other)) / 2 != value:
        return float(nearest)
    exact, halfway = Decimal(text), Decimal(value)
    if exact == halfway:
        return float(nearest)
    return float(max(nearest, other) if exact > halfway else min(nearest, other))


def read_floats(texts: list[str], single: bool) -> NDArray[Any] | None:
    """Many decimals at once, as float32 (`single`) or float64; None when one of them does not fit.

    >>> read_floats(["0.1", "2"], single=True)
    array([0.1, 2. ], dtype=float32)
    """
    values = np.array(list(map(float, texts)), np.float64)
    if not single:
        bad = np.isinf(values) & np.array(["f" not in text for text in texts])
        return None if bad.any() else values
    with np.errstate(over="ignore", invalid="ignore"):
        nearest = values.astype(np.float32)
        wide = nearest.astype(np.float64)
        toward = np.where(values > wide, np.float32(np.inf), np.float32(-np.inf))
        other = np.nextafter(nearest, toward).astype(np.float64)
        halfway = (wide != values) & ((wide + other) / 2 == values)
    doubtful = halfway | ~(np.abs(values) < _LARGEST)
    for position in np.flatnonzero(doubtful).tolist():
        value = read_float32(texts[position])
        if value is None:
            return None
        nearest[position] = value
    return nearest
