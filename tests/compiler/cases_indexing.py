"""Cases of operators that choose elements by index, and of running sums."""

import ml_dtypes
import numpy as np

from tests.compiler.case import Case, ints, normal

CASES: list[Case] = [
    Case("Trilu", (normal(2, 5, 7),)),
    Case("Trilu", (normal(5, 20), np.array(-2)), {"upper": 0}, label="lower"),
    Case("Trilu", (normal(5, 20).astype(ml_dtypes.bfloat16),), label="narrow"),
    Case("GatherElements", (normal(4, 5), np.array([[0, -1, 2], [3, 1, -4]])), label="rows"),
    Case("GatherElements", (normal(4, 5), np.array([[0, -1, 2]] * 4)), {"axis": 1}),
    Case("CumSum", (normal(3, 20), ints(1)), fixed=(1,)),
    Case("CumSum", (normal(3, 20), ints(0)), {"exclusive": 1, "reverse": 1}, label="back"),
    Case("CumProd", (normal(3, 4, 5), ints(1)), fixed=(1,)),
]
