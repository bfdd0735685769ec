"""Convolutions, pools and crops of images."""

import numpy as np
import pytest

from sardonyx.errors import EvaluationError, InferenceError
from sardonyx.ops.infer import infer_facts
from tests.ops.contrib_case import (
    Draw,
    check,
    check_against,
    check_codes,
    node_model,
    read,
    run_here,
)
from tests.ops.exact_products import along, convolve, whole

BYTES = (np.uint8, np.int8)
POOLS = [
    {"kernel_shape": [3, 2]},
    {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]},
    {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1},
    {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"},
]


def number(value, dtype=np.float32):
    return np.array(value, dtype)


@pytest.fixture
def draw():
    return Draw()


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("Relu", None),
        ("Tanh", None),
        ("Sigmoid", None),
        ("LeakyRelu", [0.2]),
        ("Clip", [-1.0, 1.0]),
        ("HardSigmoid", [0.2, 0.5]),
    ],
)
def test_fused_conv(draw, name, parameters):
    attributes = {"activation": name, "pads": [1, 1, 1, 1], "strides": [2, 1]}
    attributes |= {"activation_params": parameters} if parameters else {}
    inputs = [draw.floats(2, 3, 7, 9), draw.floats(6, 3, 3, 3), draw.floats(6)]
    check("FusedConv", inputs, attributes)


def test_fused_conv_with_an_addend(draw):
    inputs = [draw.floats(2, 3, 7, 9), draw.floats(6, 3, 3, 3), draw.floats(6)]
    check("FusedConv", [*inputs, draw.floats(2, 6, 5, 7)], {"activation": "Relu"})


def test_fused_conv_in_groups_on_one_axis(draw):
    inputs = [draw.floats(2, 3, 7), draw.floats(6, 1, 3)]
    check("FusedConv", inputs, {"activation": "Relu", "group": 3})


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("attributes", [*POOLS, {"kernel_shape": [3, 3], "dilations": [2, 2]}])
def test_max_pool_with_channels_last(draw, dtype, attributes):
    check("NhwcMaxPool", [draw.codes(dtype, 2, 7, 9, 3)], attributes)


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("group", [1, 3])
@pytest.mark.parametrize("each", [False, True])
def test_quantized_conv(draw, dtype, last, group, each):
    shape = (2, 7, 9, 3) if last else (2, 3, 7, 9)
    scale = np.abs(draw.floats(6)) if each else number(0.05)
    zero = np.zeros(6 if each else (), np.int8)
    inputs = [
        draw.codes(dtype, *shape), number(0.2), number(1, dtype),
        draw.codes(np.int8, 6, 3 // group, 3, 3), scale, zero, number(5.03), number(9, dtype),
        draw.whole(-50, 50, 6),
    ]  # fmt: skip
    attributes = {"channels_last": last, "group": group, "strides": [2, 1], "pads": [1, 0, 1, 1]}
    image = np.moveaxis(inputs[0], -1, 1) if last else inputs[0]
    how = {"group": group, "strides": [2, 1], "pads": [1, 0, 1, 1]}
    exact = convolve(whole(image, inputs[2]), whole(inputs[3], zero, 0), **how)
    real = (exact + along(inputs[8], 4, 1)) * (0.2 * along(scale, 4, 1)) / 5.03
    real = np.moveaxis(real, 1, -1) if last else real
    check_codes(real, inputs[7], "QLinearConv", inputs, attributes, constants=(3, 4, 5, 8))


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("attributes", [*POOLS, POOLS[1] | {"count_include_pad": 1}])
def test_quantized_average_pool(draw, dtype, last, attributes):
    shape = (2, 7, 9, 3) if last else (2, 3, 7, 9)
    parameters = [number(0.2), number(1, dtype), number(0.1537), number(9, dtype)]
    inputs = [draw.codes(dtype, *shape), *parameters]
    check("QLinearAveragePool", inputs, attributes | {"channels_last": last})


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("last", [0, 1])
def test_quantized_global_average_pool(draw, dtype, last):
    shape = (2, 7, 9, 3) if last else (2, 3, 7, 9)
    parameters = [number(0.2), number(1, dtype), number(0.0537), number(9, dtype)]
    inputs = [draw.codes(dtype, *shape), *parameters]
    check("QLinearGlobalAveragePool", inputs, {"channels_last": last})


@pytest.mark.parametrize("constant", [False, True])
def test_transposed_conv_with_pads_as_input(draw, constant):
    x, w, b = draw.floats(2, 3, 7, 9), draw.floats(3, 4, 3, 3), draw.floats(4)
    inputs = [x, w, np.array([1, 0, 1, 2]), b]
    attributes = {"strides": [2, 1], "output_padding": [1, 0]}
    constants = (2,) if constant else ()
    check(
        "ConvTransposeWithDynamicPads", inputs, attributes, constants=constants,
        dynamic=not constant,
    )  # fmt: skip


def test_transposed_conv_without_pads(draw):
    x, w = draw.floats(1, 1, 3), draw.floats(1, 1, 2)
    expected = np.zeros((1, 1, 6), np.float32)
    for index in range(3):
        expected[0, 0, 2 * index : 2 * index + 2] = x[0, 0, index] * w[0, 0]
    check_against(expected, "ConvTransposeWithDynamicPads", [x, w], {"strides": [2]})


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("corners", [0, 1])
def test_grid_sample(draw, mode, padding, corners):
    inputs = [draw.floats(2, 3, 5, 7), draw.floats(2, 4, 6, 2) * np.float32(1.5)]
    attributes = {"mode": mode, "padding_mode": padding, "align_corners": corners}
    check("GridSample", inputs, attributes, rtol=1e-3, atol=1e-4)


REGIONS = np.array(
    [[0, 0, 1, 1], [0.1, 0.2, 0.7, 0.9], [-0.2, 0.1, 1.3, 0.8], [0.9, 0.8, 0.2, 0.1]], np.float32
)


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("size", [[4, 5], [1, 1], [1, 3]])
def test_crop_and_resize(draw, mode, size):
    batches = np.array([0, 1, 1, 0], np.int32)
    inputs = [draw.floats(2, 3, 7, 9), REGIONS, batches, np.array(size, np.int32)]
    attributes = {"mode": mode, "extrapolation_value": 0.5}
    check("CropAndResize", inputs, attributes, constants=(3,))


def test_crops_of_no_image_are_named(draw):
    size = np.array([2, 2], np.int32)
    inputs = [draw.floats(2, 3, 7, 9), REGIONS[:1], np.array([2], np.int32), size]
    with pytest.raises(EvaluationError, match="outside the 2 images"):
        run_here("CropAndResize", inputs)
    model = read(node_model("CropAndResize", inputs, {"mode": "cubic"}))
    with pytest.raises(InferenceError, match="neither bilinear nor nearest"):
        infer_facts(model, strict=True)
