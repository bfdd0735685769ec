"""Cases of products by weights of a few bits: sizes around a panel, a block and a tile of rows."""

from typing import Any

import numpy as np

from tests.compiler.case import Case, normal

_CODES = np.random.default_rng(9)


def _case(
    rows: int, depth: int, columns: int, block: int, bits: int = 4, *, zeros: str = "",
    kind: Any = np.float32, bias: bool = False,
) -> Case:  # fmt: skip
    blocks = -(-depth // block)
    packed = _CODES.integers(0, 256, (columns, blocks, block * bits // 8)).astype(np.uint8)
    scales = (_CODES.random((columns, blocks)) * 0.1).astype(kind)
    centre = None
    if zeros == "packed":
        centre = _CODES.integers(0, 256, (columns, -(-blocks * bits // 8))).astype(np.uint8)
    elif zeros == "floats":
        centre = (_CODES.random((columns, blocks)) * 5).astype(kind)
    added = normal(columns).astype(kind) if bias else None
    attributes = {"K": depth, "N": columns, "bits": bits, "block_size": block}
    label = f"{rows}x{depth}x{columns}-{block}-{bits}{zeros}-{np.dtype(kind).name}"
    narrow = np.dtype(kind).itemsize < 4
    return Case("MatMulNBits", (normal(rows, depth).astype(kind), packed, scales, centre, None,
                added), attributes, fixed=(1, 2, 3, 5), label=label, domain="com.microsoft",
                rtol=2e-3 if narrow else 1e-4, atol=2e-2 if narrow else 2e-4)  # fmt: skip


CASES: list[Case] = [
    *(_case(rows, 64, 32, 16) for rows in (0, 1, 2, 3, 4, 5, 12, 13, 30)),
    *(_case(1, 96, columns, 32) for columns in (1, 31, 33, 64)),
    *(_case(5, depth, 33, 32) for depth in (1, 31, 33, 255, 257, 600)),
    *(_case(rows, 100, 40, 16, bits, zeros=zeros)
      for rows in (1, 7) for bits in (2, 4, 8) for zeros in ("", "packed", "floats")),
    _case(3, 300, 35, 512),
    _case(6, 300, 35, 128, bias=True),
    _case(2, 64, 33, 32, kind=np.float16, zeros="packed", bias=True),
    _case(9, 64, 33, 32, kind=np.float16, zeros="floats"),
]  # fmt: skip
