"""Col2Im and DeformConv: against onnxruntime where it has them, their functions, types, edges."""

import ml_dtypes
import numpy as np
import pytest

from sardonyx.dims import symbol
from sardonyx.dtypes import DataType
from sardonyx.errors import ConversionError, InferenceError, SardonyxError
from sardonyx.ops.convolution import Conv
from sardonyx.ops.fact import of_array, tensor, unknown
from sardonyx.ops.folding import Col2Im, DeformConv
from sardonyx.runtime import InferenceSession
from tests.ops.one_node import inferred, one_node, run_converted, run_here, run_there, same

NONE = {"dilations": None, "pads": None, "strides": None}


def draw(*shape, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def columns(image, block, attributes, *, channels=2, dtype=np.float32):
    rank = len(image)
    strides, dilations = (
        attributes.get("strides", [1] * rank),
        attributes.get("dilations", [1] * rank),
    )
    pads = attributes.get("pads", [0] * 2 * rank)
    counts = [
        (image[i] + pads[i] + pads[i + rank] - dilations[i] * (block[i] - 1) - 1) // strides[i] + 1
        for i in range(rank)
    ]
    return {
        "x": draw(3, channels * int(np.prod(block)), int(np.prod(counts))).astype(dtype),
        "image_shape": np.array(image, np.int64),
        "block_shape": np.array(block, np.int64),
    }


FOLDS = [
    ((5, 5), (1, 5), {}),
    ((6, 7), (2, 3), {"strides": [2, 2]}),
    ((6, 7), (3, 2), {"dilations": [2, 3], "pads": [1, 0, 2, 1]}),
    ((4, 4, 5), (1, 2, 3), {"strides": [1, 2, 1]}),
]


@pytest.mark.parametrize(("image", "block", "attributes"), FOLDS)
def test_col2im(image, block, attributes):
    inputs = columns(image, block, attributes)
    content = one_node("Col2Im", inputs, ["y"], opset=18, **attributes)
    result = run_here(content, inputs)
    same(result, run_there(content, inputs))
    assert result[0].shape == (3, 2, *image)
    same(run_converted(content, inputs, 17), result)


def test_col2im_of_every_type():
    kinds = [item for item in DataType if item and item <= DataType.BFLOAT16]
    for kind in kinds:
        x = np.ones((1, 4, 9)).astype(kind.numpy)
        if kind == DataType.STRING:
            x = np.full((1, 4, 9), "a", object)
        sizes, block = np.array([4, 4]), np.array([2, 2])
        result = Col2Im.reference(x, sizes, block, **NONE)
        assert result.dtype == kind.numpy and result.shape == (1, 1, 4, 4)
        corner, middle = result[0, 0, 0, 0], result[0, 0, 1, 1]
        if kind == DataType.STRING:
            assert (corner, middle) == ("a", "aaaa")
        elif kind == DataType.BOOL:
            assert corner and middle
        else:
            assert (corner, middle) == (1, 4)


def test_col2im_inference():
    n, h = symbol("n"), symbol("h")
    x, block = tensor(DataType.FLOAT, (n, 12, None)), of_array(np.array([2, 3]))
    sizes = tensor(DataType.INT64, (2,)).with_value(np.array([h, 5], object))
    assert Col2Im.infer(x, sizes, block, **NONE).shape == (n, 2, h, 5)
    assert Col2Im.infer(x, tensor(None, (2,)), unknown(1), **NONE).shape == (n, None, None, None)
    assert Col2Im.infer(x, unknown(1), block, **NONE).shape is None
    for wrong in [tensor(None, (n, 7, 2)), tensor(None, (n, 12))]:
        with pytest.raises(InferenceError):
            Col2Im.infer(wrong, sizes, block, **NONE)


def test_col2im_of_integers_does_not_go_down():
    inputs = columns((4, 4), (2, 2), {}, dtype=np.int32)
    with pytest.raises(ConversionError, match="int32"):
        run_converted(one_node("Col2Im", inputs, ["y"], opset=18), inputs, 17)


def deformed(*, group=1, offset_group=1, mask=True, bias=True, rank=2, dtype=np.float32):
    kernel, outputs = (3, 2, 2)[:rank], (4, 5, 2)[:rank]
    image = tuple(size + taps - 1 for size, taps in zip(outputs, kernel, strict=True))
    taps = int(np.prod(kernel))
    return {
        "X": draw(2, 4, *image, dtype=dtype),
        "W": draw(6, 4 // group, *kernel, seed=1, dtype=dtype),
        "offset": draw(2, offset_group * taps * rank, *outputs, seed=2, dtype=dtype),
        "B": draw(6, seed=3, dtype=dtype) if bias else None,
        "mask": draw(2, offset_group * taps, *outputs, seed=4, dtype=dtype) if mask else None,
    }


DEFORMED = [
    {}, {"group": 2}, {"offset_group": 2}, {"group": 2, "offset_group": 4},
    {"mask": False}, {"bias": False}, {"mask": False, "bias": False},
]  # fmt: skip


@pytest.mark.parametrize("options", DEFORMED)
def test_deform_conv(options):
    inputs = deformed(**options)
    groups = {name: value for name, value in options.items() if name.endswith("group")}
    content = one_node("DeformConv", inputs, ["Y"], opset=19, **groups)
    result = run_here(content, inputs)
    same(result, run_there(content, inputs), rtol=1e-4, atol=1e-5)
    same(run_converted(content, inputs, 18), result, rtol=1e-4, atol=1e-5)
    assert inferred(content) == ["float[2,6,4,5]"]


def test_deform_conv_with_steps_and_padding():
    attributes = {"strides": [2, 1], "pads": [1, 2, 1, 0], "dilations": [1, 2]}
    inputs = {
        "X": draw(1, 2, 7, 6), "W": draw(3, 2, 3, 3, seed=1), "offset": draw(1, 18, 4, 4, seed=2)
    }  # fmt: skip
    content = one_node("DeformConv", inputs, ["Y"], opset=19, **attributes)
    result = run_here(content, inputs)
    same(result, run_there(content, inputs), rtol=1e-4, atol=1e-5)
    same(run_converted(content, inputs, 17), result, rtol=1e-4, atol=1e-5)
    half = {name: item.astype(np.float16) for name, item in inputs.items()}
    content = one_node("DeformConv", half, ["Y"], opset=19, **attributes)
    same(run_converted(content, half, 18), run_here(content, half), rtol=2e-3, atol=1e-2)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
def test_deform_conv_without_offsets_is_a_convolution(rank, dtype):
    inputs = deformed(rank=rank, mask=False, dtype=dtype)
    x, w, offset, bias, _ = inputs.values()
    plain = {"group": 1, "kernel_shape": None} | NONE
    result = DeformConv.reference(x, w, offset * dtype(0), bias, None, offset_group=1, **plain)
    expected = Conv.reference(x, w, bias, auto_pad="NOTSET", **plain)
    assert result.dtype == dtype
    np.testing.assert_allclose(
        result.astype(np.float64), expected.astype(np.float64), rtol=2.0**-7, atol=2.0**-6
    )


def test_three_dimensional_deform_conv_goes_down():
    inputs = deformed(rank=3)
    content = one_node("DeformConv", inputs, ["Y"], opset=22)
    same(run_converted(content, inputs, 18), run_here(content, inputs), rtol=1e-4, atol=1e-5)


def test_deform_conv_inference():
    n, h = symbol("n"), symbol("h")
    x, w = tensor(DataType.FLOAT, (n, 2, h, 8)), tensor(DataType.FLOAT, (4, 2, 3, 3))
    run = {"group": 1, "kernel_shape": None, "offset_group": 1} | NONE
    offset = tensor(DataType.FLOAT, (n, 18, None, 6))
    assert DeformConv.infer(x, w, offset, **run).shape == (n, 4, h - 2, 6)
    assert DeformConv.infer(unknown(None), w, offset, **run).shape == (None, 4, None, 6)
    with pytest.raises(InferenceError):
        DeformConv.infer(x, w, tensor(None, (n, 18, h, 7)), **run)


def test_kernels_too_large_to_be_written_out():
    x, w = np.ones((1, 1, 3, 3), np.float32), np.ones((1, 1, 2, 2), np.float32)
    inputs = {"x": x, "w": w, "offset": np.zeros((1, 8, 2, 2), np.float32)}
    content = one_node("DeformConv", inputs, ["y"], kernel_shape=[2**63 - 1, 2])
    with pytest.raises(ConversionError, match="too large to write out"):
        run_converted(content, inputs, 18)


def test_windows_without_elements():
    x, sizes = tensor(DataType.FLOAT, (1, 0, 4)), of_array(np.int64([2, 2]), DataType.INT64)
    with pytest.raises(InferenceError, match="has no elements"):
        Col2Im.infer(x, sizes, of_array(np.int64([0, 2]), DataType.INT64), **NONE)


@pytest.mark.parametrize(
    "attributes", [{"pads": [1] * 5}, {"pads": [1, 1]}, {"strides": [0, 1]}, {"dilations": [1]}]
)
def test_attributes_that_do_not_fit_the_image(attributes):
    inputs = {"x": np.ones((1, 4, 4), np.float32), "sizes": np.int64([3, 3]),
              "block": np.int64([2, 2])}  # fmt: skip
    content = one_node("Col2Im", inputs, ["y"], **attributes)
    for provider in ("CPUExecutionProvider", "ReferenceExecutionProvider"):
        with pytest.raises(SardonyxError, match="must be"):
            InferenceSession(content, providers=[provider]).run(None, inputs)
