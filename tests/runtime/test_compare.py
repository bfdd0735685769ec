"""How far two values are apart, whatever kind they are."""

import math
from typing import Any

import numpy as np
import pytest

from sardonyx.runtime.compare import compare_values

EQUAL: list[tuple[Any, Any]] = [
    (np.array([1.0, np.nan, np.inf]), np.array([1.0, np.nan, np.inf])),
    (np.array([1e6], np.float32), np.array([1e6 + 1], np.float32)),
    (np.zeros((0, 3)), np.zeros((0, 3))),
    (np.array(["a", "b"], object), np.array(["a", "b"], object)),
    (np.array([1 + 2j]), np.array([1 + 2j])),
    ([np.ones(2), np.zeros(1)], [np.ones(2), np.zeros(1)]),
    ([{0: 0.25, 1: 0.75}], [{1: 0.75, 0: 0.25}]),
    ([], []),
    (None, None),
]
DIFFERENT: list[tuple[Any, Any, str]] = [
    (np.ones((2, 3)), np.ones((3, 2)), "shapes differ: [2, 3] and [3, 2]"),
    (np.ones(2, np.float32), np.ones(2, np.float64), "element types differ: float32 and float64"),
    (np.array(["a"], object), np.array(["b"], object), "texts differ"),
    ([np.ones(1)], [], "lengths differ: 1 and 0"),
    ({0: 1.0}, {1: 1.0}, "the keys differ"),
    (None, np.ones(1), "one of them is absent"),
    (np.array([np.nan]), np.array([1.0]), ""),
    (np.array([np.inf]), np.array([-np.inf]), ""),
]


@pytest.mark.parametrize(("ours", "theirs"), EQUAL)
def test_agree(ours: Any, theirs: Any) -> None:
    assert compare_values("y", ours, theirs).agrees


@pytest.mark.parametrize(("ours", "theirs", "remark"), DIFFERENT)
def test_differ(ours: Any, theirs: Any, remark: str) -> None:
    found = compare_values("y", ours, theirs)
    assert not found.agrees and math.isinf(found.largest) and found.remark == remark


def test_the_worst_part_of_a_list_counts() -> None:
    found = compare_values("y", [np.zeros(1), np.ones(1)], [np.zeros(1), np.array([3.0])])
    assert (found.largest, found.agrees) == (2, False)


def test_tolerances() -> None:
    ours, theirs = np.array([1.0]), np.array([1.01])
    assert not compare_values("y", ours, theirs).agrees
    assert compare_values("y", ours, theirs, rtol=0.1).agrees
    assert compare_values("y", ours, theirs, atol=0.1).agrees
