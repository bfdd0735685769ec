"""Pools against onnxruntime, over ranks, padding, rounding, indices, versions, types and edges."""

import ml_dtypes
import numpy as np
import pytest

from sardonyx.dims import symbol
from sardonyx.dtypes import DataType
from sardonyx.errors import ConversionError, InferenceError, SardonyxError
from sardonyx.ops.fact import of_array, tensor, unknown
from sardonyx.ops.pooling import (
    AveragePool,
    GlobalAveragePool,
    GlobalLpPool,
    GlobalMaxPool,
    LpPool,
    MaxUnpool,
)
from tests.ops.one_node import inferred, one_node, run_converted, run_here, run_there, same

STEPS = {"auto_pad": "NOTSET", "ceil_mode": 0, "dilations": None, "pads": None, "strides": None}


def draw(*shape, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def agree(op_type, x, outputs=("Y",), opset=22, **attributes):
    content = one_node(op_type, {"X": x}, list(outputs), opset=opset, **attributes)
    result = run_here(content, {"X": x})
    same(result, run_there(content, {"X": x}), rtol=1e-4, atol=1e-5)
    sizes = ",".join(map(str, result[0].shape))
    assert inferred(content)[0] == f"float[{sizes}]"
    return content


GEOMETRY = [
    ((2, 3, 9), {"kernel_shape": [3]}),
    ((2, 3, 9), {"kernel_shape": [2], "strides": [2], "pads": [1, 0]}),
    ((1, 2, 7, 8), {"kernel_shape": [3, 2], "strides": [2, 3], "pads": [1, 0, 1, 1]}),
    ((1, 2, 7, 8), {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
    ((1, 2, 7, 8), {"kernel_shape": [2, 3], "strides": [3, 2], "pads": [1, 1, 1, 1],
                    "ceil_mode": 1}),
    ((1, 2, 6, 6), {"kernel_shape": [1, 2], "strides": [3, 4], "ceil_mode": 1}),
    ((1, 2, 8, 8), {"kernel_shape": [2, 3], "dilations": [3, 2]}),
    ((1, 2, 8, 9), {"kernel_shape": [2, 2], "dilations": [2, 2], "strides": [3, 3],
                    "ceil_mode": 1, "pads": [1, 0, 0, 1]}),
    ((1, 2, 4, 5, 6), {"kernel_shape": [2, 3, 2], "strides": [2, 1, 2]}),
    ((1, 2, 7, 8), {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"}),
    ((1, 2, 7, 8), {"kernel_shape": [4, 2], "strides": [2, 3], "auto_pad": "SAME_LOWER"}),
    ((1, 2, 7, 8), {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "VALID"}),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "attributes"), GEOMETRY)
@pytest.mark.parametrize("counted", [0, 1])
def test_average_pool(shape, attributes, counted):
    agree("AveragePool", draw(*shape), count_include_pad=counted, **attributes)


@pytest.mark.parametrize(("shape", "attributes"), GEOMETRY)
def test_max_pool(shape, attributes):
    agree("MaxPool", draw(*shape), **attributes)
    for order in (0, 1):
        agree("MaxPool", draw(*shape), ("Y", "I"), storage_order=order, **attributes)


@pytest.mark.parametrize(("shape", "attributes"), GEOMETRY)
@pytest.mark.parametrize("power", [1, 2, 3])
def test_lp_pool(shape, attributes, power):
    agree("LpPool", draw(*shape), p=power, **attributes)


def test_max_pool_of_equal_elements_names_the_first():
    x = np.full((1, 2, 4, 4), -np.inf, np.float32)
    content = one_node("MaxPool", {"X": x}, ["Y", "I"], kernel_shape=[2, 2], pads=[1, 1, 1, 1])
    result, indices = run_here(content, {"X": x})
    assert np.all(result == -np.inf)
    assert indices[0, 0, 0].tolist() == [0, 0, 1, 2, 3]
    assert indices[0, 1, 0, 0] == 16


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_max_pool_of_bytes(dtype):
    x = np.random.default_rng(0).integers(0, 127, (1, 2, 5, 5)).astype(dtype)
    content = one_node("MaxPool", {"X": x}, ["Y"], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    same(run_here(content, {"X": x}), run_there(content, {"X": x}))


POOLS = ["AveragePool", "MaxPool", "LpPool"]


@pytest.mark.parametrize("dtype", [np.float16, np.float64, ml_dtypes.bfloat16])
@pytest.mark.parametrize("op_type", POOLS)
def test_types(op_type, dtype):
    x = draw(1, 2, 5, 5, dtype=dtype)
    content = one_node(op_type, {"X": x}, ["Y"], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    wide = {"X": x.astype(np.float32)}
    expected = run_here(
        one_node(op_type, wide, ["Y"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]), wide
    )
    (result,) = run_here(content, {"X": x})
    assert result.dtype == dtype
    np.testing.assert_allclose(result.astype(np.float64), expected[0], rtol=2.0**-7, atol=2.0**-7)


@pytest.mark.parametrize("op_type", POOLS)
def test_empty_batches_and_nan(op_type):
    empty = np.zeros((0, 2, 5, 5), np.float32)
    content = one_node(op_type, {"X": empty}, ["Y"], kernel_shape=[3, 3])
    assert run_here(content, {"X": empty})[0].shape == (0, 2, 3, 3)
    x = np.zeros((1, 1, 4), np.float32)
    x[0, 0, 1] = np.nan
    content = one_node(op_type, {"X": x}, ["Y"], kernel_shape=[2])
    assert np.isnan(run_here(content, {"X": x})[0]).tolist() == [[[True, True, False]]]


@pytest.mark.parametrize(
    ("op_type", "opset"),
    [(op_type, opset) for op_type in POOLS for opset in (7, 8, 10, 11, 12, 18, 19)]
    + [("MaxPool", 1)],
)
def test_versions(op_type, opset):
    attributes = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    agree(op_type, draw(1, 2, 6, 7), opset=opset, **attributes)


@pytest.mark.parametrize("power", [1.0, 2.0, 2.5])
def test_lp_pools_of_opset_1(power):
    x = draw(1, 2, 5, 4)
    windows = np.lib.stride_tricks.sliding_window_view(np.abs(x) ** power, (2, 2), axis=(2, 3))
    content = one_node("LpPool", {"X": x}, ["Y"], opset=1, p=power, kernel_shape=[2, 2])
    same(run_here(content, {"X": x}), [(windows.sum((4, 5)) ** (1 / power)).astype(np.float32)])
    content = one_node("GlobalLpPool", {"X": x}, ["Y"], opset=1, p=power)
    total = (np.abs(x) ** power).sum((2, 3), keepdims=True) ** (1 / power)
    same(run_here(content, {"X": x}), [total.astype(np.float32)])


@pytest.mark.parametrize(
    ("op_type", "opset", "shape", "attributes"),
    [
        (op_type, opset, shape, attributes)
        for op_type, opset in [
            ("LpPool", 17), ("LpPool", 8), ("AveragePool", 18), ("AveragePool", 9), ("MaxPool", 9),
            ("MaxPool", 7),
        ]
        for shape, attributes in GEOMETRY
        if op_type != "MaxPool" or "dilations" not in attributes
    ],
)  # fmt: skip
def test_downgrades_say_the_same(op_type, opset, shape, attributes):
    x = {"X": draw(*shape)}
    content = one_node(op_type, x, ["Y"], opset=22, **attributes)
    same(run_converted(content, x, opset), run_here(content, x))


def test_lp_pool_goes_down_to_its_beginning():
    x = {"X": draw(1, 2, 7, 7)}
    content = one_node("LpPool", x, ["Y"], opset=22, kernel_shape=[2, 2], ceil_mode=1, p=3)
    same(run_converted(content, x, 1), run_here(content, x))


@pytest.mark.parametrize("more", [
    {}, {"ceil_mode": 1}, {"strides": [2, 3], "ceil_mode": 1}, {"pads": [2, 1, 0, 1]},
    {"pads": [2, 1, 0, 1], "strides": [2, 3], "ceil_mode": 1}, {"auto_pad": "SAME_LOWER"},
])  # fmt: skip
@pytest.mark.parametrize("counted", [0, 1])
def test_dilated_averages_go_down(counted, more):
    x = {"X": draw(1, 2, 9, 8)}
    run = {"kernel_shape": [2, 3], "dilations": [3, 2], "count_include_pad": counted} | more
    content = one_node("AveragePool", x, ["Y"], opset=22, **run)
    same(run_converted(content, x, 18), run_here(content, x))


@pytest.mark.parametrize("more", [{"auto_pad": "SAME_UPPER"}, {"auto_pad": "VALID"}, {}])
def test_counted_averages_that_round_up_go_down(more):
    x = {"X": draw(1, 2, 8, 8)}
    run = {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1, "count_include_pad": 1}
    content = one_node("AveragePool", x, ["Y"], opset=22, **run | more)
    same(run_converted(content, x, 7), run_here(content, x))


@pytest.mark.parametrize("op_type", [*POOLS, "GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"])
def test_bfloat16_goes_down_through_float(op_type):
    x = {"X": draw(1, 2, 7, 7, dtype=ml_dtypes.bfloat16)}
    run = {} if op_type.startswith("Global") else {"kernel_shape": [3, 3], "strides": [2, 2]}
    outputs = ["Y", "I"] if op_type == "MaxPool" else ["Y"]
    content = one_node(op_type, x, outputs, opset=22, **run)
    same(run_converted(content, x, 17), run_here(content, x), rtol=2**-7)


def test_downgrades_that_cannot_be_said():
    x = {"X": draw(1, 2, 7, 7)}
    padded = {"kernel_shape": [2, 2], "pads": [1, 1, 1, 1], "count_include_pad": 1}
    content = one_node("AveragePool", x, ["Y"], opset=22, ceil_mode=1, **padded)
    with pytest.raises(ConversionError):
        run_converted(content, x, 9)
    content = one_node("MaxPool", x, ["Y"], opset=22, kernel_shape=[2, 2], dilations=[2, 2])
    with pytest.raises(ConversionError):
        run_converted(content, x, 9)
    content = one_node("MaxPool", x, ["Y", "I"], opset=22, kernel_shape=[2, 2])
    with pytest.raises(ConversionError):
        run_converted(content, x, 7)


def test_symbolic_sizes():
    n, h = symbol("n"), symbol("h")
    x = tensor(DataType.FLOAT, (n, 3, h, 8))
    run = {"kernel_shape": (3, 3), "p": 2} | STEPS
    assert LpPool.infer(x, **run | {"strides": (2, 2)}).shape == (n, 3, (h - 3) // 2 + 1, 3)
    assert LpPool.infer(x, **run | {"strides": (2, 2), "ceil_mode": 1}).shape == (
        n, 3, (h - 2) // 2 + 1, 4,
    )  # fmt: skip
    assert LpPool.infer(unknown(None), **run).shape == (None, None, None, None)
    with pytest.raises(InferenceError):
        LpPool.infer(tensor(None, (n, 3, 2, 8)), **run)
    with pytest.raises(InferenceError):
        LpPool.infer(tensor(None, (n, 3, 8)), **run)
    with pytest.raises(InferenceError):
        LpPool.infer(tensor(None, (n, 3)), **run)


@pytest.mark.parametrize("size", range(1, 12))
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_rounding_up_never_starts_a_window_in_the_padding(size, stride):
    for kernel in (1, 2, 3):
        for begin, end in [(0, 0), (1, 0), (0, 1), (1, 1)]:
            if kernel <= max(begin, end) or size + begin + end < kernel:
                continue
            expected = -(-(size + begin + end - kernel) // stride) + 1
            if (expected - 1) * stride >= size + begin:
                expected -= 1
            steps = STEPS | {"ceil_mode": 1, "strides": (stride,), "pads": (begin, end)}
            fact = AveragePool.infer(
                tensor(None, (1, 1, size)), count_include_pad=0, kernel_shape=(kernel,), **steps
            )
            assert fact.shape == (1, 1, expected)


@pytest.mark.parametrize("op_type", ["GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"])
@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 3, 4, 5), (1, 2, 3, 2, 2)])
def test_global_pools(op_type, shape):
    agree(op_type, draw(*shape), opset=1 if op_type != "GlobalLpPool" else 2)
    x = {"X": draw(*shape)}
    content = one_node(op_type, x, ["Y"], opset=22)
    same(run_converted(content, x, 1), run_here(content, x))


def test_global_pools_of_other_types():
    for dtype in (np.float16, np.float64, ml_dtypes.bfloat16):
        x = np.ones((1, 1, 64, 64), dtype)
        for result in (
            GlobalAveragePool.reference(x), GlobalMaxPool.reference(x), GlobalLpPool.reference(x, 1)
        ):  # fmt: skip
            assert result.dtype == dtype and float(result[0, 0, 0, 0]) in (1, 4096)
    n = symbol("n")
    assert GlobalMaxPool.infer(tensor(DataType.FLOAT, (n, 3, None, 5))).shape == (n, 3, 1, 1)
    assert GlobalMaxPool.infer(unknown(None)).shape is None
    with pytest.raises(InferenceError):
        GlobalMaxPool.infer(tensor(None, (3,)))


def test_max_unpool_puts_back_what_max_pool_took():
    x = {"X": draw(2, 3, 6, 8)}
    pooled, indices = run_here(
        one_node("MaxPool", x, ["Y", "I"], kernel_shape=[2, 2], strides=[2, 2]), x
    )
    inputs = {"X": pooled, "I": indices}
    content = one_node("MaxUnpool", inputs, ["Y"], opset=11, kernel_shape=[2, 2], strides=[2, 2])
    (result,) = run_here(content, inputs)
    same([result], run_there(content, inputs))
    assert np.all((result == x["X"]) | (result == 0)) and np.count_nonzero(result) == pooled.size
    assert inferred(content) == ["float[2,3,6,8]"]


def test_max_unpool_inference_and_bad_indices():
    n, h = symbol("n"), symbol("h")
    x, run = (
        tensor(DataType.FLOAT, (n, 3, h)),
        {"kernel_shape": (2,), "pads": None, "strides": (2,)},
    )
    assert MaxUnpool.infer(x, x, **run).shape == (n, 3, 2 * h)
    wanted = of_array(np.array([1, 3, 9]))
    assert MaxUnpool.infer(x, x, wanted, **run).shape == (1, 3, 9)
    assert MaxUnpool.infer(unknown(None), x, **run).shape == (None, None, None)
    assert MaxUnpool.infer(x, unknown(None), **run).shape == (n, 3, 2 * h)
    with pytest.raises(InferenceError, match="do not fit"):
        MaxUnpool.infer(x, unknown(4), **run)
    inputs = {"X": np.ones((1, 1, 1), np.float32), "I": np.full((1, 1, 1), 99)}
    with pytest.raises(SardonyxError, match="outside of the 2 elements"):
        run_here(one_node("MaxUnpool", inputs, ["Y"], kernel_shape=[2], strides=[2]), inputs)


@pytest.mark.parametrize(
    ("sizes", "attributes", "expected"),
    [
        ((4,), {}, (5,)),
        ((4,), {"strides": (2,)}, (8,)),
        ((4,), {"pads": (1, 0)}, (4,)),
        ((4,), {"pads": (0, 1)}, (4,)),
        ((4,), {"strides": (2,), "pads": (1, 1)}, (6,)),
        ((4,), {"strides": (3,), "pads": (2, 1), "kernel_shape": (4,)}, (10,)),
        ((1, 5), {"strides": (2, 1), "pads": (0, 1, 1, 2), "kernel_shape": (3, 2)}, (2, 3)),
    ],
)
def test_max_unpool_sizes_with_pads(sizes, attributes, expected):
    given = {"kernel_shape": (2,), "pads": None, "strides": None} | attributes
    x = tensor(DataType.FLOAT, (2, 3, *sizes))
    assert MaxUnpool.infer(x, x, **given).shape == (2, 3, *expected)
    inputs = {"X": np.ones((2, 3, *sizes), np.float32), "I": np.zeros((2, 3, *sizes), np.int64)}
    attributes = {name: list(item) for name, item in given.items() if item is not None}
    (result,) = run_here(one_node("MaxUnpool", inputs, ["Y"], **attributes), inputs)
    assert result.shape == (2, 3, *expected)


@pytest.mark.parametrize(("index", "fits"), [(-1, False), (0, True), (1, True), (2, False)])
def test_max_unpool_takes_indices_of_its_elements(index, fits):
    inputs = {"X": np.ones((1, 1, 1), np.float32), "I": np.full((1, 1, 1), index)}
    content = one_node("MaxUnpool", inputs, ["Y"], kernel_shape=[2], strides=[2])
    if fits:
        assert run_here(content, inputs)[0].reshape(-1)[index] == 1
    else:
        with pytest.raises(SardonyxError, match="outside of the 2 elements"):
            run_here(content, inputs)


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_an_image_has_at_least_three_axes(rank):
    steps = {"kernel_shape": (2,), "pads": None, "strides": None}
    with pytest.raises(InferenceError, match="an image needs a batch, channels and spatial"):
        MaxUnpool.infer(unknown(rank), unknown(None), **steps)
    assert MaxUnpool.infer(unknown(3), unknown(None), **steps).shape == (None,) * 3
