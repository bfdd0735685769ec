"""Cases of operators that put elements in order."""

import numpy as np

from tests.compiler.case import Case, ints, normal

_MIXED = np.array([[3, np.nan, -np.inf, 3, 0.0], [-0.0, np.inf, 1, np.nan, np.nan]], np.float32)
_ALIKE = np.random.default_rng(3).integers(-3, 4, (3, 150))

CASES: list[Case] = [
    *(
        Case("TopK", (_MIXED, ints(count)), {"largest": largest}, fixed=(1,), outputs=2,
             label=f"nan-{count}-{largest}")
        for count in (1, 3, 5)
        for largest in (0, 1)
    ),
    *(
        Case("TopK", (_ALIKE.astype(dtype), ints(count)), {"largest": largest}, outputs=2,
             label=f"{dtype.__name__}-{count}-{largest}", symbolic=count == 150)
        for dtype in (np.float32, np.int64, np.int8, np.float64)
        for count, largest in ((7, 1), (65, 0), (150, 1))
    ),
    Case("TopK", (normal(5, 4, 3), ints(2)), {"axis": 0}, fixed=(1,), outputs=2, label="first"),
    Case("TopK", (normal(2, 100, 3), ints(70)), {"axis": 1}, fixed=(1,), outputs=2, label="middle"),
    Case("TopK", (normal(2, 7), ints(0)), fixed=(1,), outputs=2, label="none", symbolic=False),
    Case("TopK", (normal(0, 7), ints(2)), fixed=(1,), outputs=2, label="no-rows", symbolic=False),
    Case("TopK", (normal(1), ints(1)), {"sorted": 0}, fixed=(1,), outputs=2, label="one"),
    Case("TopK", (normal(3, 9).astype(np.float16), ints(4)), fixed=(1,), outputs=2, label="half"),
    Case("TopK", (np.tile(_MIXED, (1, 20)), ints(90)), fixed=(1,), outputs=2, label="nan-many"),
    Case("TopK", (np.tile(_MIXED, (1, 20)), ints(90)), {"largest": 0}, outputs=2, label="nan-low"),
]  # fmt: skip
