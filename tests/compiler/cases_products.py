"""Cases of products of other types than float32, and of quantized tensors."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.compiler.case import Case, normal, positive

_MS = "com.microsoft"
_BYTES = (np.uint8, np.int8)
_random = np.random.default_rng(5)


def _numbers(dtype: Any, *shape: int) -> NDArray[Any]:
    """Every number of a narrow type may occur; the first ones are its ends."""
    limits = np.iinfo(dtype)
    made = _random.integers(limits.min, limits.max + 1, shape).astype(dtype)
    made.reshape(-1)[:2] = [limits.min, limits.max][: made.size]
    return made


def _end(dtype: Any, low: bool = False) -> NDArray[Any]:
    limits = np.iinfo(dtype)
    return np.array(limits.min if low else limits.max, dtype)


def _step(value: float) -> NDArray[Any]:
    return np.array(value, np.float32)


def _whole(dtype: Any, *shape: int) -> NDArray[Any]:
    return (normal(*shape) * 9).astype(dtype)


def _extremes(left: Any, right: Any) -> list[Case]:
    """Sums of the largest products there are, in rows that are no multiple of four."""
    return [
        Case(
            "MatMulInteger",
            (np.full((3, 70), _end(left), left), np.full((70, 18), _end(right, True), right)),
            fixed=fixed,
            label=f"{np.dtype(left)}-{np.dtype(right)}-ends-{len(fixed)}",
            symbolic=False,
        )
        for fixed in ((), (1,))
    ]


def _quantized_conv(image: Any, weights: NDArray[Any], **attributes: Any) -> Case:
    channels = weights.shape[0]
    zeros = np.zeros(channels, weights.dtype)
    scales = (_random.random(channels) * 1e-3 + 5e-4).astype(np.float32)
    x = _numbers(image, 2, weights.shape[1] * attributes.get("group", 1), 6, 9)
    bias = _random.integers(-900, 900, channels).astype(np.int32)
    inputs = (x, _step(0.02), _end(image), weights, scales, zeros, _step(0.05), _end(image), bias)
    kernel = "x".join(map(str, weights.shape))
    return Case("QLinearConv", inputs, attributes, tuple(range(1, 9)), 1, f"{x.dtype}-{kernel}")


_PAIR = (_numbers(np.uint8, 3, 21), _step(0.04), np.array(3, np.uint8))
_OTHER = (_numbers(np.uint8, 21), _step(0.03), np.array(255, np.uint8))
_RESULT = (_step(0.05), np.array(100, np.uint8))
_IMAGE = (_numbers(np.int8, 2, 5, 6, 7), _step(0.04), np.array(-128, np.int8))
_TO_BYTES = (_step(0.05), np.array(-7, np.int8))

CASES: list[Case] = [
    *(
        Case("MatMul", (_whole(dtype, m, k), _whole(dtype, k, n)), fixed=fixed,
             label=f"{np.dtype(dtype)}-{m}x{k}x{n}-{len(fixed)}")
        for dtype in (np.float64, np.int32, np.int64)
        for m, k, n, fixed in ((1, 1, 1, ()), (7, 5, 33, (1,)), (13, 0, 3, ()))
    ),
    Case("MatMul", (_whole(np.uint64, 2, 1, 4, 3), _whole(np.uint64, 3, 3, 5)), label="uint64"),
    Case("Gemm", (_whole(np.int32, 4, 6), _whole(np.int32, 9, 6), _whole(np.int32, 9)),
         {"transB": 1, "alpha": 2.0, "beta": -3.0}, label="int32"),
    Case("Einsum", (_whole(np.float64, 4, 6), _whole(np.float64, 6, 9)),
         {"equation": "ij,jk->ik"}, label="double"),
    Case("Conv", (normal(1, 3, 7, 8).astype(np.float64), normal(5, 3, 3, 3).astype(np.float64)),
         {"pads": [1, 1, 1, 1]}, (1,), 1, "double"),
    Case("Conv", (normal(1, 4, 7, 8).astype(np.float64), normal(4, 1, 3, 3).astype(np.float64)),
         {"group": 4}, (1,), 1, "double-depthwise"),
    *(
        Case("MatMulInteger",
             (_numbers(left, m, k), _numbers(right, k, n), _end(left), _end(right, True)),
             fixed=fixed, label=f"{np.dtype(left)}-{np.dtype(right)}-{m}x{k}x{n}-{len(fixed)}")
        for left in _BYTES
        for right in _BYTES
        for m, k, n, fixed in ((5, 7, 17, (1, 2, 3)), (1, 8, 48, (1,)), (2, 1, 3, ()))
    ),
    *(case for left in _BYTES for right in _BYTES for case in _extremes(left, right)),
    Case("MatMulInteger", (_numbers(np.uint8, 4, 6), _numbers(np.int8, 6, 5),
         _numbers(np.uint8, 4), _numbers(np.int8, 5)), label="by-row-and-column"),
    Case("MatMulInteger", (_numbers(np.uint8, 3, 2, 6), _numbers(np.int8, 3, 6, 5)), label="batch"),
    Case("MatMulInteger", (_numbers(np.int8, 6), _numbers(np.int8, 6)), label="vectors"),
    Case("QLinearMatMul", (_numbers(np.uint8, 5, 9), _step(0.01), np.array(7, np.uint8),
         _numbers(np.int8, 9, 6), (_random.random(6) * 0.01).astype(np.float32),
         np.zeros(6, np.int8), _step(0.02), np.array(128, np.uint8)), fixed=tuple(range(1, 8))),
    *(
        Case("ConvInteger", (_numbers(image, 1, 6, 5, 8), _numbers(weights, 9, 6, 3, 2),
             _end(image, low), _end(weights, low)), {"pads": [1, 0, 2, 1], "strides": [1, 2]},
             (1, 2, 3), 1, f"{np.dtype(image)}-{np.dtype(weights)}-{low}")
        for image in _BYTES for weights in _BYTES for low in (False, True)
    ),
    Case("ConvInteger", (_numbers(np.uint8, 1, 4, 5, 6), _numbers(np.int8, 3, 4, 3, 3),
         np.array(9, np.uint8)), {"pads": [1, 1, 1, 1]}, label="fed", symbolic=False),
    _quantized_conv(np.uint8, _numbers(np.int8, 20, 8, 3, 3), pads=[1, 1, 1, 1]),
    _quantized_conv(np.int8, _numbers(np.int8, 17, 5, 1, 1)),
    _quantized_conv(np.uint8, _numbers(np.int8, 18, 1, 3, 3), group=18, pads=[1, 1, 1, 1]),
    _quantized_conv(np.int8, _numbers(np.int8, 6, 3, 2, 2), group=2),
    Case("DynamicQuantizeLinear", (normal(4, 33),), outputs=3),
    Case("DynamicQuantizeLinear", (np.zeros((2, 5), np.float32),), outputs=3, label="zeros"),
    *(
        Case("DynamicQuantizeMatMul", (normal(4, 10), _numbers(right, 10, 19), _step(0.01),
             _end(right), normal(19)), fixed=(1, 2, 3), domain=_MS, label=str(np.dtype(right)),
             rtol=1e-4, atol=1e-4)
        for right in _BYTES
    ),
    Case("MatMulIntegerToFloat", (_numbers(np.int8, 3, 10), _numbers(np.int8, 10, 5), _step(0.02),
         _step(0.01), _end(np.int8)), fixed=(1, 2, 3), domain=_MS),
    Case("QGemm", (_numbers(np.uint8, 3, 10), _step(0.02), _end(np.uint8), _numbers(np.int8, 5, 10),
         _step(0.01), _end(np.int8), _whole(np.int32, 5), _step(0.3), _end(np.uint8)),
         {"transB": 1}, tuple(range(1, 9)), domain=_MS),
    Case("QLinearAdd", (*_PAIR, *_OTHER, *_RESULT), fixed=(1, 2, 4, 5, 6, 7), domain=_MS),
    Case("QLinearMul", (*_PAIR, *_OTHER, *_RESULT), domain=_MS, label="fed"),
    Case("QLinearSigmoid", (*_PAIR, _step(1 / 256), _RESULT[1]), fixed=(1, 2, 3, 4), domain=_MS),
    Case("QLinearLeakyRelu", (*_PAIR, *_RESULT), {"alpha": 0.1}, (1, 2, 3, 4), domain=_MS),
    Case("QLinearSoftmax", (*_PAIR, _step(1 / 256), np.array(0, np.uint8)),
         {"axis": -1, "opset": 13}, (1, 2, 3, 4), domain=_MS),
    Case("QLinearConcat", (*_RESULT, *_PAIR, _numbers(np.uint8, 3, 4), *_OTHER[1:]), {"axis": 1},
         (0, 1, 3, 4, 6, 7), domain=_MS),
    Case("QLinearWhere", (np.arange(21) % 3 == 0, *_PAIR, *_OTHER, *_RESULT),
         fixed=(2, 3, 5, 6, 7, 8), domain=_MS),
    Case("QLinearReduceMean", (*_IMAGE, *_TO_BYTES), {"axes": [1, 3], "keepdims": 0}, (1, 2, 3, 4),
         domain=_MS),
    Case("QLinearGlobalAveragePool", (*_IMAGE, *_TO_BYTES), {"channels_last": 0}, (1, 2, 3, 4),
         domain=_MS),
    Case("QLinearAveragePool", (*_IMAGE, *_TO_BYTES), {"kernel_shape": [2, 3]}, (1, 2, 3, 4),
         domain=_MS),
    Case("QuantizeLinear", (normal(3, 5, 4), _step(0.02), np.array(100, np.uint8)), fixed=(1, 2),
         domain=_MS, label="microsoft"),
    Case("DequantizeLinear", (_numbers(np.int8, 3, 5), normal(5), _numbers(np.int8, 5)),
         domain=_MS, label="microsoft"),
    *(
        Case(name, (data, positive(size) / 50, _numbers(np.uint8, size)),
             {} if axis is None else {"axis": axis}, domain=_MS, label=f"microsoft-{axis}",
             symbolic=False)
        for name, data in (("QuantizeLinear", normal(3, 5, 4)),
                           ("DequantizeLinear", _numbers(np.uint8, 3, 5, 4)))
        for axis, size in ((None, 5), (0, 3), (2, 4))
    ),
]  # fmt: skip
