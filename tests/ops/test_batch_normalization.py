"""BatchNormalization in all its versions, up and down."""

import ml_dtypes
import numpy as np
import pytest

from sardonyx.dims import symbol
from sardonyx.dtypes import DataType
from sardonyx.errors import InferenceError
from sardonyx.ops.batch_normalization import BatchNormalization
from sardonyx.ops.fact import tensor, unknown
from tests.ops.one_node import inferred, one_node, run_converted, run_here, run_there, same

NAMES = ["Y", "mean_out", "var_out", "saved_mean", "saved_var"]
RUN = {"epsilon": 1e-5, "momentum": 0.9, "training_mode": 0}


def draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def batch(shape=(2, 3, 4, 5), features=(3,), dtype=np.float32):
    inputs = {
        "X": draw(*shape),
        "scale": draw(*features, seed=1),
        "B": draw(*features, seed=2),
        "mean": draw(*features, seed=3),
        "var": np.abs(draw(*features, seed=4)) + 0.1,
    }
    return {name: item.astype(dtype) for name, item in inputs.items()}


def by_given(inputs, epsilon=1e-5):
    """What the inputs' own statistics give."""
    x, scale, bias, mean, variance = (item.astype(np.float64) for item in inputs.values())
    shape = (-1, *(1,) * (x.ndim - 2)) if scale.ndim == 1 else scale.shape
    scale, bias, mean, variance = (item.reshape(shape) for item in (scale, bias, mean, variance))
    return ((x - mean) / np.sqrt(variance + epsilon) * scale + bias).astype(np.float32)


def by_batch(inputs, momentum=0.9):
    """What the batch's statistics give: the result, moved statistics, and the batch's."""
    x, scale, bias, mean, variance = inputs.values()
    axes = tuple(axis for axis in range(x.ndim) if axis != 1) if scale.ndim == 1 else (0,)
    new_mean, new_variance = x.mean(axes), x.var(axes)
    result = by_given(dict(zip("xsbmv", (x, scale, bias, new_mean, new_variance), strict=True)))
    moved = (
        mean * momentum + new_mean * (1 - momentum),
        variance * momentum + new_variance * (1 - momentum),
    )
    return [result, *moved, new_mean, new_variance]


@pytest.mark.parametrize("opset", [7, 9, 14, 15])
@pytest.mark.parametrize("shape", [(4, 3), (2, 3, 5), (2, 3, 4, 5), (1, 3, 2, 2, 2)])
def test_inference_mode(opset, shape):
    inputs = batch(shape)
    content = one_node("BatchNormalization", inputs, ["Y"], opset=opset, epsilon=1e-3)
    result = run_here(content, inputs)
    same(result, run_there(content, inputs), rtol=1e-4, atol=1e-5)
    same(result, [by_given(inputs, 1e-3)], atol=1e-5)
    assert inferred(content) == [f"float[{','.join(map(str, shape))}]"]


EARLY = {1: {"consumed_inputs": [0, 0, 0, 1, 1]}, 6: {}}


@pytest.mark.parametrize("opset", [1, 6])
def test_early_opsets_say_whether_they_test(opset):
    inputs = batch()
    content = one_node("BatchNormalization", inputs, ["Y"], opset, is_test=1, **EARLY[opset])
    same(run_here(content, inputs), [by_given(inputs)], atol=1e-5)
    content = one_node("BatchNormalization", inputs, ["Y"], opset, **EARLY[opset])
    same(run_here(content, inputs), by_batch(inputs)[:1], atol=1e-5)
    content = one_node("BatchNormalization", inputs, NAMES, opset, **EARLY[opset])
    same(run_here(content, inputs), by_batch(inputs), atol=1e-5)
    content = one_node("BatchNormalization", inputs, NAMES, opset, is_test=1, **EARLY[opset])
    given = [inputs["mean"], inputs["var"]]
    same(run_here(content, inputs), [by_given(inputs), *given, *given], atol=1e-5)


@pytest.mark.parametrize("opset", [1, 6, 7])
def test_features_that_are_not_spatial(opset):
    inputs = batch((4, 3, 2, 2), (3, 2, 2))
    more = EARLY.get(opset, {}) | {"spatial": 0}
    testing = {"is_test": 1} if opset < 7 else {}
    content = one_node("BatchNormalization", inputs, ["Y"], opset, **more, **testing)
    same(run_here(content, inputs), [by_given(inputs)], atol=1e-5)
    content = one_node("BatchNormalization", inputs, NAMES, opset, **more)
    same(run_here(content, inputs), by_batch(inputs), atol=1e-5)


@pytest.mark.parametrize("opset", [7, 9])
def test_more_outputs_meant_training(opset):
    inputs = batch()
    content = one_node("BatchNormalization", inputs, NAMES, opset)
    same(run_here(content, inputs), by_batch(inputs), atol=1e-5)
    content = one_node("BatchNormalization", inputs, NAMES[:3], opset)
    same(run_here(content, inputs), by_batch(inputs)[:3], atol=1e-5)
    content = one_node("BatchNormalization", inputs, ["Y", "", "", "", ""], opset)
    same(run_here(content, inputs), [by_given(inputs)], atol=1e-5)


@pytest.mark.parametrize("opset", [14, 15])
def test_training_mode(opset):
    inputs = batch()
    content = one_node(
        "BatchNormalization", inputs, NAMES[:3], opset, training_mode=1, momentum=0.7
    )
    same(run_here(content, inputs), by_batch(inputs, 0.7)[:3], atol=1e-5)
    assert inferred(content) == ["float[2,3,4,5]", "float[3]", "float[3]"]


@pytest.mark.parametrize("opset", [1, 6, 7, 9, 14])
@pytest.mark.parametrize("training", [0, 1])
def test_downgrades(opset, training):
    inputs = batch()
    names = NAMES[: 3 if training else 1]
    content = one_node("BatchNormalization", inputs, names, 15, training_mode=training)
    same(run_converted(content, inputs, opset), run_here(content, inputs), atol=1e-5)


@pytest.mark.parametrize("opset", [9, 14])
def test_downgrades_of_mixed_types(opset):
    inputs = batch()
    mixed = {
        name: item.astype(np.float16) if name == "X" else item for name, item in inputs.items()
    }
    for training in (0, 1):
        names = NAMES[: 3 if training else 1]
        content = one_node("BatchNormalization", mixed, names, 15, training_mode=training)
        same(run_converted(content, mixed, opset), run_here(content, mixed), rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("dtype", [np.float16, np.float64, ml_dtypes.bfloat16])
def test_types(dtype):
    inputs = batch(dtype=dtype)
    for training in (0, 1):
        results = BatchNormalization.reference(
            *inputs.values(), **RUN | {"training_mode": training}
        )
        assert [item.dtype for item in results] == [dtype] * 3
        wide = {name: item.astype(np.float64) for name, item in inputs.items()}
        exact = by_batch(wide)[:3] if training else [by_given(wide), wide["mean"], wide["var"]]
        for result, wanted in zip(results, exact, strict=True):
            np.testing.assert_allclose(result.astype(np.float64), wanted, rtol=3e-2, atol=3e-2)


def test_one_axis_is_one_channel():
    x, one = np.array([1, 2, 3], np.float32), np.ones(1, np.float32)
    result, *_ = BatchNormalization.reference(x, one, one, one, one, **RUN | {"epsilon": 0.0})
    assert result.tolist() == [1, 2, 3]


def test_inference():
    n, h, c = symbol("n"), symbol("h"), symbol("c")
    x = tensor(DataType.FLOAT16, (n, None, h))
    vector = tensor(DataType.FLOAT, (c,))
    result, mean, variance = BatchNormalization.infer(x, vector, vector, vector, vector, **RUN)
    assert (result.dtype, result.shape) == (DataType.FLOAT16, (n, c, h))
    assert (mean.dtype, mean.shape, variance.shape) == (DataType.FLOAT, (c,), (c,))
    free = unknown(None)
    assert BatchNormalization.infer(free, free, free, free, free, **RUN)[0].shape is None
    with pytest.raises(InferenceError):
        three, four = tensor(None, (3,)), tensor(None, (4,))
        BatchNormalization.infer(x, three, three, four, three, **RUN)
    with pytest.raises(InferenceError):
        square = tensor(None, (3, 3))
        BatchNormalization.infer(x, square, square, square, square, **RUN)
