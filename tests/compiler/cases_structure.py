"""Cases of einsum, scatters, quantization and normalizations by length."""

import ml_dtypes
import numpy as np

from tests.compiler.case import Case, ints, normal

_SCALES = np.array([0.5, 0.1, 2.0], np.float32)
_BYTES = np.arange(60, dtype=np.uint8).reshape(4, 3, 5)

CASES: list[Case] = [
    *(
        Case("Einsum", inputs, {"equation": equation}, label=equation)
        for equation, inputs in {
            "ij,jk->ik": (normal(3, 5), normal(5, 18)),
            "bij,bjk->bik": (normal(2, 3, 5), normal(2, 5, 17)),
            "...ij,...jk->...ik": (normal(2, 1, 3, 5), normal(2, 4, 5, 17)),
            "bij,jk->bk": (normal(2, 3, 1), normal(5, 17)),
            "bhid,bhjd->bhij": (normal(2, 2, 3, 4), normal(2, 2, 5, 4)),
            "...ij->...i": (normal(2, 3, 5),),
            "ij->ji": (normal(3, 5),),
            "i,j->ij": (normal(3), normal(20)),
            "ij,jk,kl->il": (normal(2, 3), normal(3, 4), normal(4, 5)),
            "bii->bi": (normal(2, 17, 17),),
            "ii": (normal(17, 17),),
            "iji,jk->ik": (normal(5, 3, 5), normal(3, 18)),
            "...ii->...i": (normal(2, 0, 0),),
        }.items()
    ),
    *(
        Case(
            "ScatterElements",
            (normal(3, 5), np.array([[0, 2, -1], [1, 1, 0]]), normal(2, 3)),
            {"axis": 0, "reduction": how},
            label=how,
        )
        for how in ("none", "add", "mul", "max", "min")
    ),
    Case(
        "ScatterElements",
        (
            normal(3, 18).astype(ml_dtypes.bfloat16),
            np.array([[17, -18]]),
            normal(1, 2).astype(ml_dtypes.bfloat16),
        ),
        {"axis": 1, "reduction": "add"},
        label="bfloat16",
    ),
    Case("ScatterND", (normal(4, 5), np.array([[1, -1], [0, 0]]), normal(2)), symbolic=False),
    Case(
        "ScatterND",
        (normal(4, 5), np.array([[2], [2]]), normal(2, 5)),
        {"reduction": "add"},
        symbolic=False,
        label="slices",
    ),
    Case("QuantizeLinear", (normal(4, 20) * 50, np.float32(0.5), np.uint8(128))),
    Case(
        "QuantizeLinear",
        (normal(4, 3, 5) * 50, _SCALES, np.int8([0, -3, 9])),
        {"axis": 1},
        label="channels",
    ),
    Case(
        "QuantizeLinear",
        (normal(4, 6), normal(4, 3) ** 2 + 0.1),
        {"axis": 1, "block_size": 2, "output_dtype": 22},
        label="blocks",
    ),
    Case("QuantizeLinear", (normal(20), np.float32(0.5)), {"output_dtype": 17}, label="float8"),
    Case("DequantizeLinear", (_BYTES, np.float32(0.5), np.uint8(3))),
    Case("DequantizeLinear", (_BYTES, _SCALES, np.uint8([1, 2, 3])), {"axis": 1}, label="channels"),
    Case(
        "DequantizeLinear", (np.arange(-8, 8).astype(ml_dtypes.int4), np.float32(0.5)), label="int4"
    ),
    Case("LpNormalization", (normal(3, 20),), {"p": 1}, label="one"),
    Case("LpNormalization", (normal(3, 20),), {"axis": 0}),
    Case("OptionalGetElement", (normal(3, 20),)),
    Case("Dropout", (normal(3, 20),), outputs=2, label="mask"),
    Case("Dropout", (normal(3, 20), np.float32(0), np.bool_(True)), outputs=2, label="nothing"),
    *(
        Case(
            "BatchNormalization",
            (x, *(normal(x.shape[1]) for _ in range(3)), normal(x.shape[1]) ** 2),
            {"training_mode": training, "momentum": 0.7},
            outputs=3,
            label=f"{'training' if training else 'statistics'} {x.ndim}",
        )
        for x in (normal(4, 17), normal(2, 5, 6, 7))
        for training in (0, 1)
    ),
    Case("ReduceSum", (normal(3, 4, 5), ints(0, 2)), label="fed"),
]
