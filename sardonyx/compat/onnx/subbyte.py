"""4-bit patterns, as onnx offered them until 1.19; ml_dtypes has types for them."""

from sardonyx.compat.onnx._narrow import (
    float32_to_4bit_unpacked,
    float32_to_float4e2m1_unpacked,
    float32x2_to_4bitx2,
    float32x2_to_float4e2m1x2,
    unpack_4bitx2,
    unpack_single_4bitx2,
)

__all__ = [
    "INT4_MAX",
    "INT4_MIN",
    "UINT4_MAX",
    "UINT4_MIN",
    "float32_to_4bit_unpacked",
    "float32_to_float4e2m1_unpacked",
    "float32x2_to_4bitx2",
    "float32x2_to_float4e2m1x2",
    "unpack_4bitx2",
    "unpack_single_4bitx2",
]

INT4_MIN = -8
INT4_MAX = 7
UINT4_MIN = 0
UINT4_MAX = 15
