"""Running sums and products."""

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper

from sardonyx.errors import ConversionError, EvaluationError, InferenceError
from sardonyx.ops.convert import convert_opset
from tests.ops.one_node import inferred, load, one_node, run_converted, run_here, run_there, same

X = np.arange(1, 25, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize("axis", [0, 1, -1, -3])
@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_sums_like_onnxruntime(axis: int, exclusive: int, reverse: int, dtype: str) -> None:
    inputs = {"x": X.astype(dtype), "axis": np.array(axis)}
    content = one_node("CumSum", inputs, ["y"], 14, exclusive=exclusive, reverse=reverse)
    same(run_here(content, inputs), run_there(content, inputs))


@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize("axis", [0, 1, -1, -2])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_products_as_a_scan(axis: int, exclusive: int, reverse: int, dtype: Any) -> None:
    x = (X % 3 + 1).astype(dtype)
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    node = helper.make_node("CumProd", ["x", "axis"], ["y"], exclusive=exclusive, reverse=reverse)
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", kind, x.shape)],
        [helper.make_tensor_value_info("y", kind, None)],
        [helper.make_tensor("axis", onnx.TensorProto.INT64, [], [axis])],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 26)]
    content = helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()
    (result,) = run_here(content, {"x": x})
    flipped = np.flip(x, axis) if reverse else x
    running = np.cumprod(flipped, axis, dtype)
    if exclusive:
        ones = np.ones_like(np.take(running, [0], axis))
        running = np.concatenate([ones, np.take(running, range(x.shape[axis] - 1), axis)], axis)
    np.testing.assert_array_equal(result, np.flip(running, axis) if reverse else running)
    same(run_converted(content, {"x": x}, 17), [result])


def test_a_product_along_a_computed_axis() -> None:
    for axis in (0, 2, -1, -2):
        for kind in (np.int32, np.int64):
            inputs = {"x": X % 3 + 1, "axis": np.array(axis, kind)}
            content = one_node("CumProd", inputs, ["y"], 26)
            same(run_converted(content, inputs, 17), run_here(content, inputs))
    model = load(content)
    assert model.graph is not None
    model.graph.inputs[0].type = None
    with pytest.raises(ConversionError, match="or the rank known"):
        convert_opset(model, 17)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_narrow_floats_are_summed_in_float32(dtype: Any) -> None:
    x = np.float32([1] + [2**-9] * 512).astype(dtype)
    inputs = {"x": x, "axis": np.array(0, np.int32)}
    (result,) = run_here(one_node("CumSum", inputs, ["y"], 14), inputs)
    assert result.dtype == dtype
    assert result[-1] == 2


@pytest.mark.parametrize("operator", ["CumSum", "CumProd"])
def test_edges(operator: str) -> None:
    empty = {"x": np.zeros((2, 0), np.float32), "axis": np.array(1)}
    assert run_here(one_node(operator, empty, ["y"], 26, exclusive=1), empty)[0].shape == (2, 0)
    limits = {"x": np.int32([2**30, 2**30, 2**30]), "axis": np.array(0)}
    (result,) = run_here(one_node(operator, limits, ["y"], 26), limits)
    assert result.tolist() == (
        [2**30, -(2**31), -(2**30)] if operator == "CumSum" else [2**30, 0, 0]
    )
    wrong = {"x": X, "axis": np.int64([0, 1])}
    with pytest.raises(EvaluationError, match="one number"):
        run_here(one_node(operator, wrong, ["y"], 26), wrong)


def test_inference() -> None:
    inputs = {"x": X, "axis": np.array(0)}
    assert inferred(one_node("CumSum", inputs, ["y"], 14, shapes={"x": ["n", 3, 4]})) == [
        "float[n,3,4]"
    ]
    node = helper.make_node("CumSum", ["x", "axis"], ["y"])
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", 1, [2, 3])],
        [onnx.ValueInfoProto(name="y")],
        [helper.make_tensor("axis", onnx.TensorProto.INT64, [], [2])],
    )  # fmt: skip
    content = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 14)]
    ).SerializeToString()
    with pytest.raises(InferenceError, match="axis 2 does not fit rank 2"):
        inferred(content)
