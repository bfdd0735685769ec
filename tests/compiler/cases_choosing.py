"""Cases of operators that only a run tells the output's size of."""

import numpy as np

from tests.compiler.case import Case, flags, normal

_MIXED = np.array([[0.0, np.nan, -0.0, 3], [3, -np.inf, 1, np.nan]], np.float32)
_DIGITS = np.random.default_rng(5).integers(-2, 3, (4, 5, 6))
_CORNERS = np.random.default_rng(6).random((2, 30, 4)).astype(np.float32)
_SCORES = np.random.default_rng(7).integers(0, 9, (2, 3, 30)).astype(np.float32) / 8


def _boxes(label: str, *limits: float, centred: int = 0, fixed: tuple[int, ...] = ()) -> Case:
    types = (np.int64, np.float32, np.float32)
    given = (np.array([limit], kind) for limit, kind in zip(limits, types, strict=False))
    inputs = (_CORNERS, _SCORES, *given)
    options = {"center_point_box": centred}
    return Case("NonMaxSuppression", inputs, options, fixed=fixed, label=label)


CASES: list[Case] = [
    Case("NonZero", (_MIXED,), label="nan"),
    *(Case("NonZero", (_DIGITS.astype(kind),), label=kind.__name__)
      for kind in (np.int64, np.float16, np.uint8, np.bool_)),
    Case("NonZero", (np.zeros((3, 2), np.float32),), label="none"),
    Case("NonZero", (normal(0, 3),), label="empty", symbolic=False),
    Case("Compress", (normal(4, 5, 6), np.array([True, False, True, True])), {"axis": 0}),
    Case("Compress", (normal(4, 5, 17), flags(5)), {"axis": 1}, label="middle"),
    Case("Compress", (_DIGITS.astype(np.float16), flags(6)), {"axis": -1}, label="last"),
    Case("Compress", (normal(4, 5), flags(7)), label="flat"),
    Case("Compress", (normal(3), np.array([True, False, False, False])), label="long"),
    Case("Compress", (normal(4, 5), flags(0)), {"axis": 0}, label="none", symbolic=False),
    *(
        Case("Unique", (array,), {"sorted": in_order}, outputs=4, label=f"{label}-{in_order}")
        for in_order in (0, 1)
        for label, array in (
            ("nan", _MIXED), ("digits", _DIGITS), ("half", _DIGITS.astype(np.float16)),
            ("bytes", _DIGITS.astype(np.uint8)), ("one", normal(1)),
        )
    ),
    Case("Unique", (_DIGITS.reshape(-1),), {"axis": 0}, outputs=4, label="axis"),
    *(
        Case("Unique", (array,), {"axis": axis, "sorted": in_order}, outputs=4,
             label=f"{label}-{axis}-{in_order}")
        for in_order in (0, 1)
        for label, array, axis in (
            ("rows", np.round(normal(17, 2)), 0), ("columns", np.round(normal(2, 33)), -1),
            ("middle", np.arange(60).reshape(3, 4, 5) // 20, 1), ("one", normal(1, 3), 0),
            ("nan", np.float32([[1, np.nan], [1, np.nan], [np.nan, 1], [1, -np.inf]]), 0),
        )
    ),
    Case("Unique", (normal(0),), outputs=4, label="empty", symbolic=False),
    Case("Unique", (normal(0, 4, 2),), {"axis": 1}, outputs=4, label="alike since empty"),
    Case("Unique", (normal(2, 0, 2),), {"axis": 1}, outputs=4, label="no slice"),
    _boxes("no-limit"),
    _boxes("three", 3),
    _boxes("all", 3, 0.4, 0.5),
    _boxes("fixed", 5, 0.2, 0.3, fixed=(2, 3, 4)),
    _boxes("centred", 30, 0.3, centred=1),
    _boxes("none", 3, 0.4, 5.0),
    _boxes("negative", -3, 0.4),
    _boxes("negative fixed", -3, 0.4, fixed=(2,)),
    Case("NonMaxSuppression", (_CORNERS, _SCORES, np.array(2)), fixed=(2,), label="single number"),
]  # fmt: skip
