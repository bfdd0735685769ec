"""Both ways to an array's elements lead to the same place."""

import sys
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sardonyx.compiler.address import address_of, described_address, noted_address

BASE = np.arange(24, dtype=np.float32).reshape(4, 6)
READ_ONLY = np.frombuffer(b"constants", np.uint8)


@pytest.mark.parametrize(
    "array", [BASE, BASE[1:], BASE.T, BASE[:, ::-1], BASE[2, 3:4], np.zeros((0, 3)), np.array(1.0),
              READ_ONLY, np.array(["a", None], object)],
    ids=["whole", "part", "turned", "backwards", "element", "empty", "scalar", "read-only",
         "objects"],
)  # fmt: skip
def test_the_address_is_the_one_that_the_array_tells(array: NDArray[Any]) -> None:
    assert address_of(array) == described_address(array) == array.ctypes.data
    if sys.implementation.name == "cpython":
        assert address_of is noted_address
