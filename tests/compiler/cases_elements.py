"""Cases of casts, bits, and functions of single elements beyond the first ones."""

import ml_dtypes
import numpy as np

from sardonyx.dtypes import DataType
from tests.compiler.case import Case, ints, normal

_NARROW = (
    DataType.FLOAT16, DataType.BFLOAT16, DataType.FLOAT8E4M3FN, DataType.FLOAT8E4M3FNUZ,
    DataType.FLOAT8E5M2, DataType.FLOAT8E5M2FNUZ, DataType.FLOAT8E8M0, DataType.FLOAT4E2M1,
)  # fmt: skip
_SMALL = (DataType.INT4, DataType.UINT4, DataType.INT2, DataType.UINT2)
_ODD = np.array([0.0, -0.0, 1.0, -1.5, 1e-9, -3e-3, 0.0625, 447.9, 460.0, -1e6, 3e38, np.inf,
                 -np.inf, np.nan, 57344.0, 61440.0, 0.75, 5.0, 6.5, 2.5], np.float32)  # fmt: skip
_BEYOND = np.array([9.9, -9.9, 255, 256, 300, -300, 65537, 3e9, -3e9, 2.0**63, -(2.0**63),
                    1.5 * 2.0**63, 2.0**64, 1e30, -1e30, np.inf, -np.inf, np.nan])  # fmt: skip
_WHOLE = tuple(kind for kind in DataType if kind.is_integer)
_WORDS = np.array([0, 1, 2, 0x7FFF, 0x8000, 0xFFFF, 300, 17], np.uint16)


def _codes(kind: DataType) -> np.ndarray:
    return np.arange(256, dtype=np.uint8).view(kind.numpy)


CASES: list[Case] = [
    *(Case("Cast", (_ODD,), {"to": int(kind)}, label=f"to-{kind.text}") for kind in _NARROW),
    *(
        Case("Cast", (_ODD,), {"to": int(kind), "saturate": 0}, label=f"open-{kind.text}")
        for kind in _NARROW[2:7]
    ),
    *(
        Case(
            "Cast",
            (_ODD.astype(np.float64) * (1 + 2**-40),),
            {"to": int(kind)},
            label=f"wide-{kind.text}",
        )
        for kind in _NARROW
    ),
    *(
        Case("Cast", (_BEYOND.astype(dtype),), {"to": int(kind)}, label=f"{dtype}-to-{kind.text}")
        for kind in _WHOLE
        for dtype in ("float32", "float64")
    ),
    *(Case("Cast", (_codes(kind),), {"to": 1}, label=f"from-{kind.text}") for kind in _NARROW[2:7]),
    *(
        Case(
            "Cast",
            (np.array([-9, -3, 0, 1, 7, 8, 15, 16, 300], np.int32),),
            {"to": int(kind)},
            label=f"to-{kind.text}",
        )
        for kind in _SMALL
    ),
    *(
        Case("Cast", (np.arange(-2, 2).astype(kind.numpy),), {"to": 7}, label=f"from-{kind.text}")
        for kind in _SMALL[::2]
    ),
    Case("CastLike", (normal(3, 4), np.zeros(1, ml_dtypes.bfloat16))),
    Case("BitCast", (normal(3, 20),), {"to": 6}),
    *(
        Case(name, (np.clip(normal(40), -0.99, 0.99),))
        for name in ("Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Atanh")
    ),
    Case("Acosh", (np.abs(normal(40)) + 1,)),
    Case("Sin", (normal(20).astype(np.float64),), label="double"),
    Case("Exp", (normal(20).astype(np.float64),), label="double"),
    *(Case(f"Bitwise{name}", (_WORDS, _WORDS[::-1].copy())) for name in ("And", "Or", "Xor")),
    Case("BitwiseNot", (_WORDS,)),
    *(
        Case(
            "BitShift",
            (_WORDS, np.array([0, 1, 15, 16, 3, 200, 8, 1], np.uint16)),
            {"direction": way},
            label=way,
        )
        for way in ("LEFT", "RIGHT")
    ),
    Case("Mod", (ints(7, -7, 7, -7, 0), ints(3, 3, -3, -3, 5))),
    Case("Mod", (ints(7, -7, 7, -7), ints(3, 3, -3, -3)), {"fmod": 1}, label="fmod"),
    Case("Mod", (normal(20), normal(20)), {"fmod": 1}, label="floats"),
    Case("Pow", (np.abs(normal(20)), normal(20)), label="any"),
    Case("Pow", (ints(2, 3, -2), ints(3, 2, 5)), label="integers"),
    Case("Pow", (np.int32([2, 3, 5]), np.float32([3, np.nan, np.inf])), label="no integers"),
    Case("Sign", (_ODD,)),
    Case("Sign", (ints(-3, 0, 9),), label="integers"),
    Case("IsInf", (_ODD,)),
    Case("IsInf", (_ODD,), {"detect_negative": 0}, label="positive"),
    *(
        Case(
            name,
            (np.array([[3, 1, 3, np.nan], [1, 2, 2, 0]], np.float32),),
            {"axis": axis},
            label=f"{axis}",
        )
        for name in ("ArgMax", "ArgMin")
        for axis in (0, 1)
    ),
    Case("ArgMax", (ints(1, 3, 3, 2),), {"select_last_index": 1, "keepdims": 0}, label="last"),
    Case("Hardmax", (normal(3, 20),)),
    Case("ReduceLogSumExp", (normal(3, 20) * 100, ints(1)), fixed=(1,)),
    Case(
        "ReduceMax", (np.array([[True, False], [False, False]]), ints(1)), fixed=(1,), label="flags"
    ),
    Case(
        "ReduceMin",
        (np.arange(6, dtype=np.uint8).reshape(2, 3), ints(1)),
        fixed=(1,),
        label="bytes",
    ),
    Case("Tile", (normal(3, 5), ints(2, 3)), fixed=(1,)),
    Case("ConstantOfShape", (ints(3, 4),), symbolic=False),
]
