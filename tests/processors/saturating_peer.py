"""A plugin of pytest: onnxruntime multiplies bytes as on a processor without instructions for it.

There it adds two products of an unsigned and a signed byte in 16 bits, which saturate. Here, every
answer in which that could have happened is wrong throughout, which no test may notice.

    python -m pytest -p tests.processors.saturating_peer tests/ops/test_quantized_product.py
"""

from typing import Any

import numpy as np
import onnxruntime

import sardonyx as sx

PRODUCTS = frozenset({
    "MatMulInteger", "ConvInteger", "QLinearMatMul", "QLinearConv", "QGemm", "QAttention",
    "MatMulIntegerToFloat", "DynamicQuantizeMatMul", "DynamicQuantizeLSTM",
})  # fmt: skip
OPTIMIZED = frozenset({"DequantizeLinear"})
"""Operators around products, which optimizations turn into products of bytes."""
LARGEST = 32767 // (2 * 255)
"""The size of a signed byte up to which two products with unsigned ones fit into 16 bits."""

_Session = onnxruntime.InferenceSession


class SaturatingSession(_Session):  # type: ignore[misc]
    """Answers wrongly where products of bytes may have saturated."""

    def __init__(self, content: Any, options: Any = None, *rest: Any, **named: Any) -> None:
        super().__init__(content, options, *rest, **named)
        off = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        optimized = options is None or options.graph_optimization_level != off
        model = sx.load(content)
        names = {node.op_type for graph in model.graphs() for node in graph.nodes}
        self._multiplies = bool(names & (PRODUCTS | (OPTIMIZED if optimized else frozenset())))
        self._weights = [tensor.numpy() for tensor in model.tensors()]

    def run(self, names: Any, feeds: Any, *rest: Any) -> list[Any]:
        """What the peer gives, halved where bytes were multiplied."""
        results = list(super().run(names, feeds, *rest))
        given = [*self._weights, *map(np.asarray, feeds.values())]
        large = any(
            item.dtype == np.int8 and item.size and np.abs(item.astype(int)).max() > LARGEST
            for item in given
        )
        if not (self._multiplies and large):
            return results
        return [(item / 2 + 1).astype(item.dtype) for item in results]


def pytest_configure() -> None:
    """Put the saturating session in the place of the peer's."""
    onnxruntime.InferenceSession = SaturatingSession
