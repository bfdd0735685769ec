"""Functions of one real variable that NumPy lacks, or that need care at the ends of their range."""

from math import erf as exact_erf
from math import exp, factorial, pi, sqrt

import numpy as np

from sardonyx.ops.precision import Array

_STEP = 1 / 16
_LIMIT = 6.0
_TERMS = 9


def _erf_table() -> Array:
    """Taylor coefficients of erf around 0, 1/16, 2/16 ... 6, one column for each point.

    The derivatives of erf are Hermite polynomials times a Gaussian.
    """
    columns = []
    for index in range(round(_LIMIT / _STEP) + 1):
        at = index * _STEP
        hermite = [1.0, -2 * at]
        while len(hermite) < _TERMS:
            order = len(hermite) - 1
            hermite.append(-2 * at * hermite[order] - 2 * order * hermite[order - 1])
        slope = 2 / sqrt(pi) * exp(-at * at)
        rows = [slope * value / factorial(order + 1) for order, value in enumerate(hermite)]
        columns.append([exact_erf(at), *rows])
    return np.asarray(columns).T


_ERF = _erf_table()


def erf(x: Array) -> Array:
    """The error function, to the last digits of float64; the result has the type of `x`.

    >>> [round(float(y), 15) for y in erf(np.array([0.5, -1.0]))], erf(np.array(9.0)).item()
    ([0.520499877813047, -0.842700792949715], 1.0)
    """
    size = np.fmin(np.abs(x.astype(np.float64)), _LIMIT)
    nearest = np.rint(size / _STEP).astype(np.intp)
    rest = size - nearest * _STEP
    result = _ERF[_TERMS][nearest]
    for order in range(_TERMS - 1, -1, -1):
        result = result * rest + _ERF[order][nearest]
    return np.asarray(np.where(np.isnan(x), x, np.copysign(result, x))).astype(x.dtype, copy=False)


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)), without overflow and without losing small results."""
    small = np.exp(-np.abs(x))
    return np.asarray(np.where(x < 0, small, 1) / (1 + small)).astype(x.dtype, copy=False)


def softplus(x: Array) -> Array:
    """log(1 + exp(x)), without overflow."""
    return np.asarray(np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))))
