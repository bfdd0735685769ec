"""Arithmetic on single elements that may be symbolic sizes."""

from typing import Any

import numpy as np
import pytest

from sardonyx.dims import maximum, symbol
from sardonyx.dtypes import DataType
from sardonyx.ops import symbolic
from sardonyx.ops.fact import LARGEST_VALUE, Fact, of_array, tensor
from sardonyx.ops.symbolic import (
    equal,
    exact_quotient,
    follow,
    larger,
    less,
    minus,
    plus,
    positive,
    power,
    quotient,
    rest,
    smaller,
    times,
)

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


@pytest.mark.parametrize(
    ("left", "right", "is_equal", "is_less"),
    [
        (2, 2, True, False),
        (2, 3, False, True),
        (3, 2, False, False),
        (N, N, True, False),
        (N, N + 1, False, True),
        (N + 1, N, False, False),
        (N, 0, None, False),
        (0, N, None, None),
        (0, N + 1, False, True),
        (N + 1, 0, False, False),
        (N, 3, None, None),
        (N, M, None, None),
        (N, N + M, None, None),
        (N + M, N, None, False),
        (1.5, 2, None, None),
        (2, float("inf"), None, None),
    ],
)
def test_comparisons(left: Any, right: Any, is_equal: Any, is_less: Any) -> None:
    assert equal(left, right) is is_equal
    assert less(left, right) is is_less


@pytest.mark.parametrize(
    ("base", "exponent", "expected"),
    [
        (N, 0, 1),
        (N, 1, N),
        (N, 2, N * N),
        (2, 8, 256),
        (2, 9, None),
        (2, -1, None),
        (2, N, None),
        (2, 1.5, None),
        (1.5, 2, None),
    ],
)
def test_powers(base: Any, exponent: Any, expected: Any) -> None:
    assert power(base, exponent) == expected


@pytest.mark.parametrize(
    ("size", "expected"),
    [(1, True), (0, False), (-1, False), (N, True), (N + 1, True), (N - 1, False), (-N, False)],
)
def test_positive(size: Any, expected: bool) -> None:
    assert positive(size) == expected


def test_steps_on_sizes() -> None:
    assert plus(N, 2) == N + 2 and minus(N, 2) == N - 2 and times(N, 2) == 2 * N
    assert plus(N, 2.0) == N + 2 and plus(N, 2.5) is None and minus(0.5, N) is None
    assert larger(2, 3) == 3 and smaller(2, 3) == 2
    assert larger(N + 1, N) == N + 1 and smaller(N + 1, N) == N
    assert quotient(7, 2) == 3 and quotient(7, 0) is None and quotient(7, -2) is None
    assert rest(7, 2) == 1 and rest(7, 0) is None and rest(2 * N, N) == 0
    assert exact_quotient(6, 2) == 3 and exact_quotient(7, 2) is None
    assert exact_quotient(2 * N, 2) == N and exact_quotient(N, 2) is None


@pytest.mark.parametrize(("count", "known"), [(LARGEST_VALUE, True), (LARGEST_VALUE + 1, False)])
def test_follow_stops_at_a_size(count: int, known: bool) -> None:
    row, one = tensor(DataType.INT64, (count,)), of_array(np.int64([2]))
    many = Fact(None, DataType.INT64, (count,), np.arange(count))
    assert (follow(row, np.add, None, many, one).value is not None) == known


def test_follow_with_some_sizes_unknown() -> None:
    pair = tensor(DataType.INT64, (2,))
    partly = pair.with_value(np.array([N, None], object))
    two = of_array(np.int64([2]))
    assert follow(pair, np.add, plus, partly, two).sizes() == (N + 2, None)
    assert follow(pair, np.add, None, partly, two).value is None
    assert follow(pair, np.add, plus, pair, two).value is None
    assert follow(tensor(None, (2,)), np.add, plus, partly, two).value is None
