"""Cases of operators that choose elements by index, and of running sums."""

import ml_dtypes
import numpy as np

from tests.compiler.case import Case, ints, normal

_FACTORS = np.array([1, 1, 2, 1.5], np.float32)

CASES: list[Case] = [
    *(
        Case(
            "Resize",
            (normal(1, 2, 5, 9), None, _FACTORS),
            {"mode": mode},
            fixed=(2,),
            label=mode,
            symbolic=mode != "cubic",
        )
        for mode in ("nearest", "linear", "cubic")
    ),
    *(
        Case(
            "Resize",
            (normal(1, 2, 5, 9), None, None, ints(1, 2, 3, 20)),
            {"mode": "linear", "coordinate_transformation_mode": how},
            fixed=(3,),
            label=how,
            atol=1e-4,
        )
        for how in ("align_corners", "asymmetric", "pytorch_half_pixel")
    ),
    Case(
        "Resize",
        (np.arange(40, dtype=np.uint8).reshape(1, 1, 5, 8), None, _FACTORS),
        {"mode": "linear"},
        fixed=(2,),
        label="bytes",
        symbolic=False,
    ),
    Case(
        "Resize",
        (normal(1, 1, 8, 8), None, None, ints(3, 3)),
        {"mode": "linear", "antialias": 1, "axes": [2, 3]},
        fixed=(3,),
        label="antialias",
        symbolic=False,
    ),
    Case("Trilu", (normal(2, 5, 7),)),
    Case("Trilu", (normal(5, 20), np.array(-2)), {"upper": 0}, label="lower"),
    Case("Trilu", (normal(5, 20).astype(ml_dtypes.bfloat16),), label="narrow"),
    Case("GatherElements", (normal(4, 5), np.array([[0, -1, 2], [3, 1, -4]])), label="rows"),
    Case("GatherElements", (normal(4, 5), np.array([[0, -1, 2]] * 4)), {"axis": 1}),
    Case("GatherElements", (normal(3, 3), np.array([[2], [1], [0]], np.int32)), label="int32"),
    Case("GatherND", (normal(3, 4, 5), np.array([[0, 1], [-1, 2]])), symbolic=False),
    Case("GatherND", (normal(2, 4, 5), np.array([[[1]], [[-2]]])), {"batch_dims": 1}, label="each"),
    Case("Pad", (normal(2, 3, 17), ints(0, 1, 2, 0, 0, 1)), fixed=(1,)),
    Case("Pad", (normal(2, 9), ints(0, -1, 0, 3), np.float32(7)), fixed=(1,), label="value"),
    *(
        Case("Pad", (normal(3, 18), ints(1, 2, 1, 2)), {"mode": mode}, fixed=(1,), label=mode)
        for mode in ("reflect", "edge", "wrap")
    ),
    Case("Range", (np.float32(1), np.float32(9), np.float32(0.75)), symbolic=False),
    Case("Range", (np.int64(9), np.int64(-20), np.int64(-1)), symbolic=False, label="down"),
    Case("OneHot", (np.array([0, -1, 5, 9]), np.int64(6), ints(2, 5)), fixed=(1,)),
    Case(
        "OneHot",
        (np.array([[0], [2]]), np.int64(3), normal(2)),
        {"axis": 0},
        fixed=(1,),
        label="front",
    ),
    Case("EyeLike", (normal(5, 20),), {"k": -1}),
    Case("EyeLike", (normal(3, 4),), {"dtype": 16}, label="bfloat16"),
    Case("ReverseSequence", (normal(4, 3, 17), ints(4, 1, 0))),
    Case(
        "ReverseSequence",
        (normal(3, 18), ints(4, 18, 0)),
        {"batch_axis": 0, "time_axis": 1},
        label="rows",
    ),
    Case("CumSum", (normal(3, 20), ints(1)), fixed=(1,)),
    Case("CumSum", (normal(3, 20), ints(0)), {"exclusive": 1, "reverse": 1}, label="back"),
    Case("CumProd", (normal(3, 4, 5), ints(1)), fixed=(1,)),
]
