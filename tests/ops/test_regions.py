"""Regions of images against onnxruntime, over options, versions, types and edges."""

import ml_dtypes
import numpy as np
import pytest

from sardonyx.dims import symbol
from sardonyx.dtypes import DataType
from sardonyx.errors import ConversionError, InferenceError
from sardonyx.ops.fact import tensor, unknown
from sardonyx.ops.regions import MaxRoiPool, NonMaxSuppression, RoiAlign
from sardonyx.runtime import InferenceSession
from tests.ops.one_node import inferred, one_node, run_converted, run_here, run_there, same

ALIGN = {
    "coordinate_transformation_mode": "half_pixel", "mode": "avg", "output_height": 2,
    "output_width": 3, "sampling_ratio": 0, "spatial_scale": 1.0,
}  # fmt: skip


def draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


REGIONS = np.array(
    [[0, 0, 9, 7], [2.3, 1.7, 5.1, 6.2], [-3, -2, 4, 4], [5, 5, 20, 20], [4, 4, 4.2, 4.1]],
    np.float32,
)


def aligned():
    return {
        "X": draw(2, 3, 8, 10),
        "rois": REGIONS,
        "batch_indices": np.array([0, 1, 0, 1, 1], np.int64),
    }


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("ratio", [0, 1, 3])
@pytest.mark.parametrize("transformation", ["half_pixel", "output_half_pixel"])
@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_roi_align(mode, ratio, transformation, scale):
    inputs = aligned()
    content = one_node(
        "RoiAlign", inputs, ["Y"], opset=16, mode=mode, output_height=2, output_width=3,
        sampling_ratio=ratio, spatial_scale=scale, coordinate_transformation_mode=transformation,
    )  # fmt: skip
    same(run_here(content, inputs), run_there(content, inputs), rtol=1e-4, atol=1e-5)
    assert inferred(content) == ["float[5,3,2,3]"]


def test_roi_align_of_opset_10_does_not_shift_pixels():
    inputs = aligned()
    shape = {"output_height": 2, "output_width": 3, "sampling_ratio": 2}
    content = one_node("RoiAlign", inputs, ["Y"], opset=10, **shape)
    result = run_here(content, inputs)
    same(result, run_there(content, inputs), rtol=1e-4, atol=1e-5)
    newer = one_node("RoiAlign", inputs, ["Y"], opset=16, **shape)
    assert not np.allclose(run_here(newer, inputs)[0], result[0])
    with pytest.raises(ConversionError, match="half_pixel"):
        run_converted(newer, inputs, 15)
    unshifted = one_node(
        "RoiAlign", inputs, ["Y"], opset=22, coordinate_transformation_mode="output_half_pixel",
        **shape,
    )  # fmt: skip
    same(run_converted(unshifted, inputs, 10), result)


def test_roi_align_types_and_turned_regions():
    inputs = aligned()
    for dtype in (np.float16, np.float64, ml_dtypes.bfloat16):
        x, rois = inputs["X"].astype(dtype), REGIONS.astype(dtype)
        result = RoiAlign.reference(x, rois, inputs["batch_indices"], **ALIGN)
        assert result.dtype == dtype
        exact = RoiAlign.reference(
            x.astype(np.float64), rois.astype(np.float64), inputs["batch_indices"], **ALIGN
        )
        np.testing.assert_allclose(result.astype(np.float64), exact, rtol=0.05, atol=0.05)
    turned = np.array([[5, 5, 2, 2]], np.float32)
    assert not RoiAlign.reference(inputs["X"], turned, np.array([0]), **ALIGN).any()
    none = RoiAlign.reference(inputs["X"], REGIONS[:0], np.empty(0, np.int64), **ALIGN)
    assert none.shape == (0, 3, 2, 3)


def test_roi_align_inference():
    n, r = symbol("n"), symbol("r")
    x, rois = tensor(DataType.FLOAT, (n, 3, None, None)), tensor(DataType.FLOAT, (None, 4))
    assert RoiAlign.infer(x, rois, tensor(DataType.INT64, (r,)), **ALIGN).shape == (r, 3, 2, 3)
    assert RoiAlign.infer(unknown(None), unknown(None), unknown(1), **ALIGN).shape == (
        None,
        None,
        2,
        3,
    )
    for image, regions in [((n, 3, 4), (r, 4)), ((n, 3, 4, 4), (r, 5)), ((n, 3, 4, 4), (r,))]:
        with pytest.raises(InferenceError):
            RoiAlign.infer(tensor(None, image), tensor(None, regions), unknown(1), **ALIGN)
    with pytest.raises(InferenceError):
        RoiAlign.infer(x, tensor(None, (3, 4)), tensor(None, (2,)), **ALIGN)


@pytest.mark.parametrize("scale", [1.0, 0.5, 0.37])
@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (5, 4)])
def test_max_roi_pool(scale, shape):
    rois = np.concatenate([np.array([[0], [1], [0], [1], [1]], np.float32), REGIONS], axis=1)
    inputs = {"X": draw(2, 3, 8, 10), "rois": np.maximum(rois, 0)}
    content = one_node(
        "MaxRoiPool", inputs, ["Y"], opset=1, pooled_shape=shape, spatial_scale=scale
    )
    same(run_here(content, inputs), run_there(content, inputs))
    assert inferred(content) == [f"float[5,3,{shape[0]},{shape[1]}]"]


def test_max_roi_pool_types():
    rois = np.array([[0, 0, 0, 3, 3]])
    for dtype in (np.float16, np.float64, ml_dtypes.bfloat16):
        x = draw(1, 2, 4, 4).astype(dtype)
        result = MaxRoiPool.reference(x, rois.astype(dtype), pooled_shape=(1, 1), spatial_scale=1.0)
        assert result.dtype == dtype
        np.testing.assert_array_equal(result[0, :, 0, 0], x[0].reshape(2, -1).max(1))
    with pytest.raises(InferenceError):
        MaxRoiPool.infer(unknown(4), tensor(None, (2, 4)), pooled_shape=(1, 1), spatial_scale=1.0)


def suppressed(count=30, batches=2, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "boxes": rng.uniform(0, 1, (batches, count, 4)).astype(np.float32),
        "scores": rng.uniform(0, 1, (batches, classes, count)).astype(np.float32).round(2),
        "most": np.array([5], np.int64),
        "overlap": np.array([0.3], np.float32),
        "least": np.array([0.2], np.float32),
    }


@pytest.mark.parametrize("opset", [10, 11])
@pytest.mark.parametrize("centred", [0, 1])
@pytest.mark.parametrize("seed", range(4))
def test_non_max_suppression(opset, centred, seed):
    inputs = suppressed(seed=seed)
    content = one_node("NonMaxSuppression", inputs, ["Y"], opset=opset, center_point_box=centred)
    result = run_here(content, inputs)
    same(result, run_there(content, inputs))
    assert result[0].shape[0] > 0 and inferred(content) == ["int64[?,3]"]
    same(run_converted(content, inputs, 10), result)


@pytest.mark.parametrize("absent", [{"least"}, {"most"}, {"overlap"}, {"most", "overlap", "least"}])
def test_non_max_suppression_without_limits(absent):
    inputs = {name: None if name in absent else item for name, item in suppressed().items()}
    content = one_node("NonMaxSuppression", inputs, ["Y"], opset=11)
    same(run_here(content, inputs), run_there(content, inputs))


def test_non_max_suppression_edges():
    inputs = suppressed()
    none = NonMaxSuppression.reference(
        inputs["boxes"][:, :0], inputs["scores"][:, :, :0], inputs["most"], center_point_box=0
    )
    assert none.shape == (0, 3) and none.dtype == np.int64
    flat = np.zeros((1, 2, 4), np.float32)
    kept = NonMaxSuppression.reference(
        flat, np.ones((1, 1, 2), np.float32), np.array(5), center_point_box=0
    )
    assert kept.tolist() == [[0, 0, 0], [0, 0, 1]]
    with pytest.raises(InferenceError):
        NonMaxSuppression.infer(
            tensor(None, (1, 5, 4)), tensor(None, (1, 2, 6)), center_point_box=0
        )
    with pytest.raises(InferenceError):
        NonMaxSuppression.infer(tensor(None, (5, 4)), unknown(None), center_point_box=0)


@pytest.mark.parametrize("mode", ["avg", "max"])
def test_regions_that_are_nowhere(mode):
    x = np.ones((1, 1, 10, 10), np.float32)
    rois = np.float32([[0, 0, np.nan, 9], [5, -np.inf, 9, 9], [1, 1, 5, 5]])
    inputs = {"x": x, "rois": rois, "batch": np.zeros(3, np.int64)}
    content = one_node("RoiAlign", inputs, ["y"], mode=mode, output_height=2, output_width=2,
                       sampling_ratio=2, coordinate_transformation_mode="half_pixel")  # fmt: skip
    (result,) = run_here(content, inputs)
    assert not result[:2].any() and result[2].all()
    np.testing.assert_array_equal(InferenceSession(content).run(None, inputs)[0], result)


@pytest.mark.parametrize("mode", ["avg", "max"])
def test_pixels_count_only_where_they_lie(mode):
    x = np.arange(100, dtype=np.float32).reshape(1, 1, 10, 10)
    x[0, 0, 9, 9], x[0, 0, 8, 0] = np.inf, np.nan
    inputs = {"x": x, "rois": np.float32([[1, 1, 5, 5]]), "batch": np.zeros(1, np.int64)}
    content = one_node("RoiAlign", inputs, ["y"], mode=mode, output_height=3, output_width=2)
    (result,) = run_here(content, inputs)
    assert np.isfinite(result).all()
    found = InferenceSession(content).run(None, inputs)[0]
    np.testing.assert_allclose(found, result, rtol=1e-6)


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("transformation", ["half_pixel", "output_half_pixel"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_regions_of_negative_size_have_no_points(mode, transformation, dtype):
    rois = [[4, 4, 1, 1], [0, 0, -3, -3], [0, 4, 5, 1], [np.nan, 0, 2, 2], [1, 1, 4, 3]]
    inputs = {
        "X": draw(1, 2, 5, 6).astype(dtype),
        "rois": np.array(rois, dtype),
        "batch_indices": np.zeros(5, np.int64),
    }
    content = one_node(
        "RoiAlign", inputs, ["Y"], opset=22, mode=mode, output_height=2, output_width=2,
        sampling_ratio=0, coordinate_transformation_mode=transformation,
    )  # fmt: skip
    found, wanted = (
        InferenceSession(content, providers=[name]).run(None, inputs)[0]
        for name in ("CPUExecutionProvider", "ReferenceExecutionProvider")
    )
    np.testing.assert_allclose(found, wanted, rtol=1e-5 if dtype != np.float16 else 2e-3)
    if transformation == "half_pixel":
        assert (found[:3] == 0).all()
