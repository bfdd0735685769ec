"""Arithmetic on single elements that may be symbolic sizes."""

from typing import Any

import numpy as np
import pytest

from sardonyx.dims import maximum, symbol
from sardonyx.dtypes import DataType
from sardonyx.ops import symbolic
from sardonyx.ops.fact import Fact, tensor

N, M = symbol("n"), symbol("m")


@pytest.mark.parametrize(
    ("size", "bound"),
    [(7, 7), (N, 0), (N * 2 + 3, 3), (N * M + N, 0), (N - 1, -1), (3 - N, None), (N - M, None),
     ((N + 1) // 2, 0), (maximum(N, M) + 4, 4), ((N - 3) // 2, None)],
)  # fmt: skip
def test_lower_bound(size: Any, bound: int | None) -> None:
    assert symbolic.lower_bound(size) == bound


@pytest.mark.parametrize(
    ("number", "expected"),
    [(3, 3), (3.0, 3), (2.5, None), (float("inf"), None), (float("nan"), None), (N, N), (True, 1)],
)
def test_whole(number: Any, expected: Any) -> None:
    assert symbolic.whole(number) == expected


def test_quotients() -> None:
    assert symbolic.quotient(N, 2) == N // 2
    assert symbolic.quotient(N * 6, 3) == N * 2
    assert symbolic.quotient(N, 0) is None and symbolic.quotient(N, -2) is None
    assert symbolic.exact_quotient(N * 6, 3.0) == N * 2
    assert symbolic.exact_quotient(N, 2) is None
    assert symbolic.rest(N * 6, 3) == 0
    assert symbolic.power(N, 2.0) == N * N
    assert symbolic.power(N, 0.5) is None and symbolic.power(N, -1) is None


def test_settled_has_the_type_asked_for_only_where_all_is_known() -> None:
    known = symbolic.settled(np.array([1, 2.0], object), DataType.INT32)
    assert (known.dtype, known.tolist()) == (np.int32, [1, 2])
    partly = symbolic.settled(np.array([1, N], object), DataType.INT32)
    assert (partly.dtype, partly.tolist()) == (np.dtype(object), [1, N])


def test_follow_needs_every_input_and_a_type() -> None:
    known = tensor(DataType.INT64, (2,)).with_value(np.int64([1, 2]))
    result = tensor(DataType.INT64, (2,))
    assert symbolic.follow(result, np.add, None, known, result).value is None
    assert symbolic.follow(Fact(), np.add, None, known, known).value is None
    assert symbolic.follow(result, np.add, None, known, known).value.tolist() == [2, 4]
    sizes = known.with_value(np.array([N, 2], object))
    assert symbolic.follow(result, np.add, None, known, sizes).value is None
    assert symbolic.follow(result, np.add, symbolic.plus, known, sizes).value.tolist() == [N + 1, 4]


def test_reduce_along_axes() -> None:
    values = np.array([[N, 2], [3, None]], object)
    total = symbolic.reduce_known(values, (0,), symbolic.plus, keepdims=True)
    assert total.tolist() == [[N + 3, None]]
    assert symbolic.reduce_known(values[:, :1], (0, 1), symbolic.times, keepdims=False)[()] == N * 3
