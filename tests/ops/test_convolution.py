"""Convolutions against onnxruntime, over ranks, groups, padding, types and edges."""

import ml_dtypes
import numpy as np
import onnx.reference
import pytest

from sardonyx.dims import symbol
from sardonyx.dtypes import DataType
from sardonyx.errors import InferenceError, SardonyxError
from sardonyx.ops.convolution import CausalConvWithState, Conv, ConvTranspose
from sardonyx.ops.fact import tensor, unknown
from tests.ops.one_node import inferred, one_node, run_converted, run_here, run_there, same

PLAIN = {
    "auto_pad": "NOTSET", "dilations": None, "group": 1, "kernel_shape": None, "pads": None,
    "strides": None,
}  # fmt: skip
SPREAD = PLAIN | {"output_padding": None, "output_shape": None}


def draw(*shape, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def agree(op_type, x, w, b=None, **attributes):
    inputs = {"X": x, "W": w, "B": b}
    content = one_node(op_type, inputs, ["Y"], opset=11, **attributes)
    result = run_here(content, inputs)
    same(result, run_there(content, inputs), rtol=1e-4, atol=1e-4)
    assert inferred(content) == [f"float[{','.join(map(str, result[0].shape))}]"]


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(
    ("image", "weights", "attributes"),
    [
        ((2, 3, 9), (4, 3, 3), {"pads": [1, 2], "strides": [2]}),
        ((2, 3, 9), (4, 3, 3), {"dilations": [3]}),
        ((1, 3, 8, 7), (4, 3, 3, 2), {"pads": [1, 0, 2, 1], "strides": [2, 3]}),
        ((1, 4, 8, 7), (6, 2, 3, 3), {"group": 2, "dilations": [2, 1]}),
        ((2, 4, 6, 6), (4, 1, 3, 3), {"group": 4, "pads": [1, 1, 1, 1]}),
        ((2, 4, 6, 6), (8, 1, 3, 3), {"group": 4, "kernel_shape": [3, 3]}),
        ((1, 2, 5, 6, 7), (3, 2, 2, 3, 1), {"strides": [1, 2, 2], "pads": [0, 1, 0, 1, 0, 1]}),
        ((1, 3, 5, 5), (2, 3, 1, 1), {"strides": [2, 2]}),
        ((1, 3, 4, 4), (2, 3, 4, 4), {}),
    ],
)
def test_conv(image, weights, attributes, bias):
    b = draw(weights[0], seed=2) if bias else None
    agree("Conv", draw(*image), draw(*weights, seed=1), b, **attributes)


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER", "VALID"])
@pytest.mark.parametrize("size", [5, 6, 7])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_conv_auto_pad(auto_pad, size, stride):
    x, w = draw(1, 2, size, size + 1), draw(3, 2, 3, 2, seed=1)
    agree("Conv", x, w, auto_pad=auto_pad, strides=[stride, stride])


def test_conv_in_parts_is_the_same(monkeypatch):
    x, w = draw(5, 2, 6, 6), draw(3, 2, 3, 3, seed=1)
    whole = Conv.reference(x, w, None, **PLAIN)
    monkeypatch.setattr("sardonyx.ops.convolution.LARGEST_COLUMNS", 600)
    np.testing.assert_array_equal(Conv.reference(x, w, None, **PLAIN), whole)


@pytest.mark.parametrize("dtype", [np.float16, np.float64, ml_dtypes.bfloat16])
@pytest.mark.parametrize("operator", [Conv, ConvTranspose])
def test_types(operator, dtype):
    attributes = PLAIN if operator is Conv else SPREAD
    x, w, b = draw(1, 2, 5, 5, dtype=dtype), draw(2, 2, 3, 3, dtype=dtype), draw(2, dtype=dtype)
    result = operator.reference(x, w, b, **attributes)
    exact = operator.reference(*(item.astype(np.float64) for item in (x, w, b)), **attributes)
    assert result.dtype == dtype
    np.testing.assert_allclose(result.astype(np.float64), exact, rtol=2.0**-7, atol=2.0**-7)


def test_inputs_are_not_changed_and_batches_may_be_empty():
    x, w, b = draw(0, 2, 5, 5), draw(3, 2, 3, 3), draw(3)
    for item in (x, w, b):
        item.flags.writeable = False
    assert Conv.reference(x, w, b, **PLAIN).shape == (0, 3, 3, 3)
    assert ConvTranspose.reference(x, draw(2, 3, 3, 3), b, **SPREAD).shape == (0, 3, 7, 7)


def test_wrong_groups_are_reported():
    inputs = {"X": draw(1, 3, 4, 4), "W": draw(2, 2, 3, 3)}
    content = one_node("Conv", inputs, ["Y"])
    for run in (lambda: run_here(content, inputs), lambda: inferred(content)):
        with pytest.raises(SardonyxError, match="channels"):
            run()


def test_conv_inference():
    n, h, w = symbol("n"), symbol("h"), symbol("w")
    x, weights = tensor(DataType.FLOAT, (n, 3, h, w)), tensor(DataType.FLOAT, (8, 3, 3, 3))
    strided = PLAIN | {"strides": (2, 2), "pads": (1, 1, 1, 1)}
    assert Conv.infer(x, weights, None, **strided).shape == (
        n,
        8,
        (h - 1) // 2 + 1,
        (w - 1) // 2 + 1,
    )
    assert Conv.infer(x, weights, None, **PLAIN | {"pads": (1, 1, 1, 1)}).shape == (n, 8, h, w)
    same_padded = PLAIN | {"strides": (2, 2), "auto_pad": "SAME_UPPER"}
    assert Conv.infer(x, weights, None, **same_padded).shape == (n, 8, (h + 1) // 2, (w + 1) // 2)
    assert Conv.infer(unknown(None), weights, None, **PLAIN).shape == (None, 8, None, None)
    assert Conv.infer(unknown(None), unknown(None), None, **PLAIN).shape is None
    assert Conv.infer(x, unknown(None), None, **PLAIN).shape == (n, None, None, None)
    shaped = PLAIN | {"kernel_shape": (3, 3)}
    assert Conv.infer(x, unknown(None), None, **shaped).shape == (n, None, h - 2, w - 2)


@pytest.mark.parametrize(
    ("image", "weights", "attributes"),
    [
        ((1, 3, 8), (4, 3, 3, 3), {}),
        ((1, 3, 8, 8), (4, 2, 3, 3), {}),
        ((1, 3, 2, 8), (4, 3, 3, 3), {}),
        ((1, 3), (4, 3), {}),
        ((1, 3, 8, 8), (4, 3, 3, 3), {"kernel_shape": (5, 5)}),
        ((1, 3, 8, 8), (4, 3, 3, 3), {"strides": (1,)}),
        ((1, 3, 8, 8), (4, 3, 3, 3), {"strides": (0, 1)}),
        ((1, 3, 8, 8), (4, 3, 3, 3), {"pads": (1, 1)}),
        ((1, 3, 8, 8), (4, 3, 3, 3), {"auto_pad": "SAME"}),
    ],
)
def test_conv_contradictions(image, weights, attributes):
    with pytest.raises(InferenceError):
        Conv.infer(tensor(None, image), tensor(None, weights), None, **PLAIN | attributes)


def test_bfloat16_goes_down_through_float():
    bfloat16 = ml_dtypes.bfloat16
    inputs = {
        "X": draw(1, 2, 5, 5, dtype=bfloat16), "W": draw(2, 2, 3, 3, dtype=bfloat16),
        "B": draw(2, dtype=bfloat16),
    }  # fmt: skip
    for op_type in ("Conv", "ConvTranspose"):
        content = one_node(op_type, inputs, ["Y"], opset=22)
        same(run_converted(content, inputs, 17), run_here(content, inputs), rtol=2**-7)


def test_conv_converts_down():
    inputs = {"X": draw(1, 2, 5, 5), "W": draw(2, 2, 3, 3)}
    for op_type in ("Conv", "ConvTranspose"):
        content = one_node(op_type, inputs, ["Y"], opset=22, strides=[2, 2])
        same(run_converted(content, inputs, 1), run_here(content, inputs))


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(
    ("image", "weights", "attributes"),
    [
        ((2, 3, 5), (3, 4, 3), {"strides": [2], "pads": [1, 1]}),
        ((1, 3, 4, 5), (3, 2, 3, 3), {"strides": [2, 3], "output_padding": [1, 2]}),
        ((1, 3, 4, 5), (3, 2, 3, 3), {"dilations": [2, 2], "pads": [1, 2, 0, 1]}),
        ((1, 4, 4, 5), (4, 3, 3, 2), {"group": 2, "strides": [2, 2]}),
        ((1, 4, 4, 5), (4, 1, 3, 3), {"group": 4, "pads": [1, 1, 1, 1]}),
        ((1, 2, 3, 3), (2, 2, 3, 3), {"strides": [3, 2], "output_shape": [10, 8]}),
        ((1, 2, 3, 3), (2, 2, 4, 4), {"strides": [2, 2], "output_shape": [7, 5]}),
        ((1, 2, 3, 3), (2, 2, 3, 3), {"strides": [2, 2], "auto_pad": "SAME_UPPER"}),
        ((1, 2, 3, 3), (2, 2, 4, 3), {"strides": [2, 3], "auto_pad": "SAME_LOWER"}),
        ((1, 2, 3, 3), (2, 2, 3, 3), {"strides": [2, 2], "auto_pad": "VALID"}),
        ((1, 2, 2, 3, 2), (2, 3, 2, 2, 3), {"strides": [2, 1, 2], "pads": [0, 1, 0, 1, 0, 1]}),
    ],
)
def test_conv_transpose(image, weights, attributes, bias):
    maps = weights[1] * attributes.get("group", 1)
    b = draw(maps, seed=2) if bias else None
    agree("ConvTranspose", draw(*image), draw(*weights, seed=1), b, **attributes)


def test_conv_transpose_inference():
    n, h = symbol("n"), symbol("h")
    x, w = tensor(DataType.FLOAT, (n, 3, h)), tensor(DataType.FLOAT, (3, 4, 3))
    attributes = SPREAD | {"strides": (2,), "pads": (1, 1), "output_padding": (1,), "group": 2}
    assert ConvTranspose.infer(x, w, None, **attributes).shape == (n, 8, 2 * h)
    padded = SPREAD | {"auto_pad": "SAME_UPPER", "strides": (3,)}
    assert ConvTranspose.infer(x, w, None, **padded).shape == (n, 4, 3 * h)
    assert ConvTranspose.infer(x, w, None, **SPREAD | {"output_shape": (9,)}).shape == (n, 4, 9)
    assert ConvTranspose.infer(x, unknown(3), None, **SPREAD).shape == (n, None, None)
    assert ConvTranspose.infer(x, unknown(None), None, **SPREAD).shape == (n, None, None)
    assert ConvTranspose.infer(unknown(None), w, None, **SPREAD).shape == (None, 4, None)
    assert ConvTranspose.infer(unknown(None), unknown(None), None, **SPREAD).shape is None
    sized = SPREAD | {"kernel_shape": (3,)}
    assert ConvTranspose.infer(x, unknown(None), None, **sized).shape == (n, None, h + 2)
    with pytest.raises(InferenceError, match="kernel_shape is"):
        ConvTranspose.infer(x, w, None, **SPREAD | {"kernel_shape": (2,)})
    with pytest.raises(InferenceError):
        ConvTranspose.infer(x, tensor(None, (4, 4, 3)), None, **SPREAD)


def causal(*, taps=3, length=5, bias=True, past=True, dtype=np.float32):
    return {
        "input": draw(2, 3, length, dtype=dtype),
        "weight": draw(3, 1, taps, seed=1, dtype=dtype),
        "bias": draw(3, seed=2, dtype=dtype) if bias else None,
        "past_state": draw(2, 3, taps - 1, seed=3, dtype=dtype) if past else None,
    }


@pytest.mark.parametrize("activation", ["none", "silu", "swish"])
@pytest.mark.parametrize("options", [
    {}, {"bias": False}, {"past": False}, {"taps": 1}, {"length": 1}, {"taps": 6, "past": False},
    {"length": 0}, {"dtype": np.float16},
])  # fmt: skip
def test_causal_convolution_and_its_function(activation, options):
    inputs = causal(**options)
    content = one_node("CausalConvWithState", inputs, ["y", "s"], opset=27, activation=activation)
    result = run_here(content, inputs)
    half = options.get("dtype") == np.float16
    tolerance = {"rtol": 2e-3, "atol": 2e-3} if half else {}
    same(run_converted(content, inputs, 26), result, **tolerance)
    same(run_converted(content, inputs, 17), result, **tolerance)
    if options.get("length", 1):
        model = onnx.load_from_string(content)
        expected = onnx.reference.ReferenceEvaluator(model).run(
            None, {name: item for name, item in inputs.items() if item is not None}
        )
        same(result, expected, **tolerance)


def test_causal_convolution_goes_on_where_it_stopped():
    inputs = causal(length=8)
    run = {"activation": "none"}
    whole, state = CausalConvWithState.reference(*inputs.values(), **run)
    x, weight, bias, past = inputs.values()
    first, between = CausalConvWithState.reference(x[:, :, :5], weight, bias, past, **run)
    second, last = CausalConvWithState.reference(x[:, :, 5:], weight, bias, between, **run)
    np.testing.assert_allclose(np.concatenate([first, second], axis=2), whole, rtol=1e-5)
    np.testing.assert_array_equal(last, state)


def test_causal_convolution_inference():
    n, t = symbol("n"), symbol("t")
    x, weight = tensor(DataType.FLOAT, (n, 3, t)), tensor(DataType.FLOAT, (3, 1, 4))
    result, state = CausalConvWithState.infer(x, weight, activation="none")
    assert (result.shape, state.shape) == ((n, 3, t), (n, 3, 3))
    with pytest.raises(InferenceError):
        CausalConvWithState.infer(x, weight, activation="relu")
    with pytest.raises(InferenceError):
        CausalConvWithState.infer(x, weight, None, tensor(None, (n, 3, 2)), activation="none")
    with pytest.raises(InferenceError):
        CausalConvWithState.infer(x, tensor(None, (4, 1, 2)), activation="none")


@pytest.mark.parametrize("operator", [Conv, ConvTranspose])
@pytest.mark.parametrize("rank", [0, 1, 2])
def test_an_image_has_at_least_three_axes(operator, rank):
    steps = SPREAD if operator is ConvTranspose else PLAIN
    for x, w in ((unknown(rank), unknown(None)), (unknown(None), unknown(rank))):
        with pytest.raises(InferenceError, match="an image needs a batch, channels and spatial"):
            operator.infer(x, w, None, **steps)
    assert operator.infer(unknown(3), unknown(None), None, **steps).shape == (None,) * 3
