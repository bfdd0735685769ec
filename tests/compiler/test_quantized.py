"""Models with QuantizeLinear and DequantizeLinear around products compute these in integers."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import sardonyx as sx
from sardonyx.compiler.forms import Convolution, Source
from sardonyx.compiler.kernels.convolution import adds_exactly
from sardonyx.compiler.program import compile_model
from sardonyx.dtypes import DataType
from sardonyx.graph import Tensor

_random = np.random.default_rng(3)


def _model(weights: NDArray[Any], scale: NDArray[Any], zero: NDArray[Any], **node: Any) -> Any:
    """x -> quantized -> a product with quantized weights -> Relu -> quantized."""
    graph = sx.Graph("quantized")
    op = sx.Builder(graph, opset=23)
    kind, shape, axis = node.pop("kind"), node.pop("shape"), node.pop("axis")
    x = graph.add_input("x", sx.TensorType(DataType.FLOAT, shape))

    def held(array: Any, name: str) -> Any:
        return graph.add_initializer(Tensor(np.asarray(array)), name)

    step, offset = held(np.float32(0.05), "step"), held(np.uint8(117), "offset")
    codes = op.QuantizeLinear(x, step, offset)
    left = op.DequantizeLinear(codes, step, offset)
    right = op.DequantizeLinear(held(weights, "w"), held(scale, "ws"), held(zero, "wz"), axis=axis)
    made = op.Relu(op.node(kind, (left, right), 1, "", node))
    graph.outputs.append(op.QuantizeLinear(made, held(np.float32(0.1), "y"), offset))
    return sx.Model(graph, sx.Opsets({"": 23}), ir_version=10)


def _weights(dtype: Any, *shape: int) -> NDArray[Any]:
    limits = np.iinfo(dtype)
    return _random.integers(limits.min, limits.max + 1, shape).astype(dtype)


CASES = [
    ("conv", _weights(np.int8, 17, 6, 3, 3), 0, (2, 6, 7, 9), {"kind": "Conv", "pads": [1] * 4}),
    ("depthwise", _weights(np.int8, 6, 1, 3, 3), 0, (1, 6, 7, 9),
     {"kind": "Conv", "pads": [1] * 4, "group": 6}),
    ("unsigned", _weights(np.uint8, 5, 4, 1, 1), 0, (1, 4, 7, 9), {"kind": "Conv"}),
    ("matmul", _weights(np.int8, 13, 19), 1, (5, 13), {"kind": "MatMul"}),
    ("gemm", _weights(np.int8, 19, 13), 0, (5, 13), {"kind": "Gemm", "transB": 1}),
]  # fmt: skip


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize(("weights", "axis", "shape", "node"), [case[1:] for case in CASES],
                         ids=[case[0] for case in CASES])  # fmt: skip
def test_products_between_quantizations_stay_within_a_step(
    weights: NDArray[Any], axis: int, shape: tuple[int, ...], node: Any, per_channel: bool
) -> None:
    count = weights.shape[axis] if per_channel else 1
    scale = (_random.random(count) * 0.004 + 0.001).astype(np.float32)
    zero = np.full(count, 128 if weights.dtype == np.uint8 else -3, weights.dtype)
    if not per_channel:
        scale, zero = scale[0], zero[0]
    model = _model(weights, scale, zero, axis=axis, shape=shape, **node)
    feeds = {"x": (_random.standard_normal(shape) * 4).astype(np.float32)}
    program = compile_model(model, threads=1)
    (found,) = program.run(feeds)
    (wanted,) = sx.evaluate(model, feeds)
    rows = program.explain()
    assert all(row.kernel != "reference" for row in rows)
    assert rows[1].kernel == "view", "the product takes bytes, and no numbers are made of them"
    difference = np.abs(found.astype(int) - wanted.astype(int))
    assert difference.max() <= 1 and (difference > 0).mean() < 0.01


def test_a_scale_for_each_input_channel_keeps_the_floats() -> None:
    weights = _weights(np.int8, 13, 19)
    scale = (_random.random(13) * 0.004 + 0.001).astype(np.float32)
    model = _model(weights, scale, np.zeros(13, np.int8), kind="MatMul", shape=(5, 13), axis=0)
    feeds = {"x": (_random.standard_normal((5, 13)) * 4).astype(np.float32)}
    program = compile_model(model, threads=1)
    assert program.explain()[1].kernel != "view"
    (found,) = program.run(feeds)
    difference = np.abs(found.astype(int) - sx.evaluate(model, feeds)[0].astype(int))
    assert difference.max() <= 1


@pytest.mark.parametrize(
    ("given", "reason"),
    [({}, ""), ({"groups": True}, "layout or order"), ({"fed": True}, "only constant weights")],
)
def test_weights_of_four_bits_have_kernels_or_a_reason(given: dict[str, bool], reason: str) -> None:
    graph = sx.Graph("product")
    op = sx.Builder(graph, opset=21)
    rng = np.random.default_rng(0)
    packed = rng.integers(0, 256, (5, 2, 8)).astype(np.uint8)
    x = graph.add_input("x", sx.TensorType(sx.DataType.FLOAT, ("n", 32)))
    weights = graph.add_input("w", sx.TensorType(sx.DataType.UINT8, (5, 2, 8)))
    values = [x, weights if given.get("fed") else op.constant(packed),
              op.constant(np.ones((5, 2), np.float32))]  # fmt: skip
    if given.get("groups"):
        values += [None, op.constant(np.arange(32, dtype=np.int32) // 16)]
    options = {"K": 32, "N": 5, "bits": 4, "block_size": 16}
    graph.outputs.append(op.node("MatMulNBits", tuple(values), 1, "com.microsoft", options))
    model = sx.Model(graph, opsets=sx.Opsets({"": 21, "com.microsoft": 1}), ir_version=10)
    (row,) = compile_model(model, threads=1).explain()
    assert reason in row.reason
    assert (row.kernel == "reference") == bool(reason)


@pytest.mark.parametrize(
    ("image", "weights", "taps", "exact"),
    [
        (DataType.FLOAT, DataType.FLOAT, (9, 100), True),
        (DataType.UINT8, DataType.INT8, (2, 257), True),
        (DataType.UINT8, DataType.INT8, (5, 103), False),
        (DataType.UINT8, DataType.UINT8, (1, 1), False),
        (DataType.INT8, DataType.INT8, (1, 1), False),
        (DataType.INT8, DataType.UINT8, (1, 1), False),
    ],
)
def test_which_filters_add_up_exactly(
    image: DataType, weights: DataType, taps: tuple[int, int], exact: bool
) -> None:
    """Up to 2**24, float32 has every integer: 514 products of bytes at their limits, not 515."""
    given = sx.Graph("forms").add_input("x", sx.TensorType(image, (1,)))
    pixels, filters = Source((1, 1, 9, 999), image, given), Source((1, 1, *taps), weights, given)
    form = Convolution((1, 1, 1, 1), DataType.INT32, pixels, filters, (1, 1), (1, 1), (0,) * 4, 1)
    assert adds_exactly(form) is exact
