"""Tensors out of nothing or of a few numbers."""

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from sardonyx.errors import ConversionError, EvaluationError, InferenceError
from sardonyx.graph import Graph, Model, Node, Opsets, Tensor
from sardonyx.ops.catalog import standard
from sardonyx.ops.convert import convert_opset
from sardonyx.ops.functions import schema_function
from tests.ops.direct import inferred, node_model, run, run_text
from tests.ops.one_node import load, one_node, run_converted, run_here, run_model, run_there, same


@pytest.mark.parametrize(
    ("attribute", "expected"),
    [
        ({"value_int": 7}, np.int64(7)),
        ({"value_ints": [1, -2]}, np.int64([1, -2])),
        ({"value_float": 0.5}, np.float32(0.5)),
        ({"value_floats": [1.5, 2]}, np.float32([1.5, 2])),
        ({"value_string": "x"}, np.array("x", object)),
        ({"value_strings": ["x", "yz"]}, np.array(["x", "yz"], object)),
        ({"value": numpy_helper.from_array(np.float64([[2]]))}, np.float64([[2]])),
    ],
)
@pytest.mark.parametrize("opset", [12, 21])
def test_constant(attribute: dict[str, Any], expected: Any, opset: int) -> None:
    content = one_node("Constant", {}, ["y"], opset, **attribute)
    (result,) = run_here(content, {})
    assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
    assert result.tolist() == expected.tolist()
    if expected.dtype != object:
        same(run_converted(content, {}, 11), [np.asarray(expected)])


def test_sparse_constant_becomes_dense_below_opset_11() -> None:
    values = numpy_helper.from_array(np.float32([5, 6]), "v")
    indices = numpy_helper.from_array(np.int64([1, 3]), "i")
    sparse = helper.make_sparse_tensor(values, indices, [2, 2])
    content = one_node("Constant", {}, ["y"], 11, sparse_value=sparse)
    (result,) = run_here(content, {})
    assert result.tolist() == [[0, 5], [0, 6]]
    same(run_model(convert_opset(load(content), 10), {}), [result])


def test_constant_needs_one_value() -> None:
    with pytest.raises(EvaluationError, match="exactly one attribute"):
        run("Constant")


@pytest.mark.parametrize("fill", [np.float32([0]), np.int64([3]), np.array([True]), np.uint8([9])])
def test_constant_of_shape(fill: Any) -> None:
    shape = np.int64([2, 3])
    value = numpy_helper.from_array(fill)
    content = one_node("ConstantOfShape", {"s": shape}, ["y"], 9, value=value)
    same(run_here(content, {"s": shape}), run_there(content, {"s": shape}))


@pytest.mark.parametrize("shape", [[], [0], [3, 0]])
def test_constant_of_degenerate_shape(shape: list[int]) -> None:
    result = run("ConstantOfShape", np.array(shape, np.int64))
    assert (result.shape, result.dtype) == (tuple(shape), np.float32)


def test_constant_of_shape_in_narrow_types() -> None:
    for dtype in (ml_dtypes.bfloat16, ml_dtypes.int4, ml_dtypes.float8_e4m3fn):
        result = run("ConstantOfShape", np.int64([2]), value=Tensor(np.ones(1, dtype)))
        assert (result.dtype, result.astype(float).tolist()) == (dtype, [1, 1])


def test_constant_of_shape_of_bfloat16_goes_down_by_expanding() -> None:
    fill = np.array([2], ml_dtypes.bfloat16)
    model = node_model("ConstantOfShape", [np.int64([2, 2])], value=Tensor(fill))
    lower = convert_opset(model, 17)
    assert lower.graph is not None
    assert [node.op_type for node in lower.graph.nodes] == ["Expand"]
    (result,) = run_model(lower, {"i0": np.int64([2, 2])})
    assert result.dtype == ml_dtypes.bfloat16 and (result == fill).all()
    eight = node_model(
        "ConstantOfShape", [np.int64([2])], value=Tensor(np.ones(1, ml_dtypes.float8_e5m2))
    )
    with pytest.raises(ConversionError, match="float8e5m2"):
        convert_opset(eight, 17)


def test_negative_sizes_are_refused() -> None:
    with pytest.raises(InferenceError, match="negative sizes"):
        inferred("g () => (y) { s = Constant<value_ints=[2,-1]>() y = ConstantOfShape(s) }")
    with pytest.raises(EvaluationError):
        run("ConstantOfShape", np.int64([-1]))


@pytest.mark.parametrize("k", [-2, 0, 1, 9])
@pytest.mark.parametrize("dtype", [None, 7, 9, 11])
def test_eye_like(k: int, dtype: int | None) -> None:
    x = np.zeros((3, 4), np.int32)
    attributes = {"k": k} | ({} if dtype is None else {"dtype": dtype})
    content = one_node("EyeLike", {"x": x}, ["y"], 9, **attributes)
    (result,) = run_here(content, {"x": x})
    wanted = np.int32 if dtype is None else helper.tensor_dtype_to_np_dtype(dtype)
    assert result.dtype == wanted
    assert (result.astype(int) == np.eye(3, 4, k)).all()


def test_eye_like_needs_a_matrix() -> None:
    with pytest.raises(InferenceError, match="a matrix is needed"):
        inferred("g (float[2,3,4] x) => (y) { y = EyeLike(x) }")


RANGES = [(0, 5, 1), (3, 9, 3), (10, 4, -2), (4, 4, 1), (5, 0, 1), (-3, 4, 2)]


@pytest.mark.parametrize("numbers", RANGES)
@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.int64, np.float32, np.float64])
def test_range(numbers: tuple[int, ...], dtype: Any) -> None:
    inputs = {name: np.array(item, dtype) for name, item in zip("abc", numbers, strict=True)}
    content = one_node("Range", inputs, ["y"], 11)
    same(run_here(content, inputs), run_there(content, inputs))
    same(run_converted(content, inputs, 10), run_here(content, inputs))


def test_range_of_halves_is_accumulated_in_float() -> None:
    for dtype in (np.float16, ml_dtypes.bfloat16):
        start, limit, delta = (np.array(item, dtype) for item in (2040, 2060, 1))
        result = run("Range", start, limit, delta)
        exact = np.arange(float(start), float(limit), 1).astype(dtype)
        assert result.dtype == dtype and (result == exact).all()
        model = node_model("Range", [start, limit, delta])
        lower = convert_opset(model, 17)
        (again,) = run_model(lower, {"i0": start, "i1": limit, "i2": delta})
        assert again.dtype == dtype and (again == exact).all()


def test_range_with_a_fraction_as_step() -> None:
    result = run("Range", np.float32(0), np.float32(1), np.float32(0.3))
    np.testing.assert_allclose(result, np.float32([0, 0.3, 0.6, 0.9]), rtol=1e-6)


def test_range_refuses_a_step_of_zero() -> None:
    with pytest.raises(InferenceError, match="step of a range is zero"):
        run("Range", np.int64(0), np.int64(3), np.int64(0))


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ("zero, n, one", "int64[n]"),
        ("zero, n, two", "int64[(n+1)//2]"),
        ("n, more, one", "int64[3]"),
        ("one, n, one", "int64[max(0, n-1)]"),
        ("n, zero, minus", "int64[n]"),
    ],
)
def test_range_of_symbolic_sizes(limits: str, expected: str) -> None:
    text = f"""g (float[n] x) => (y) {{
        zero = Constant<value_int=0>() one = Constant<value_int=1>()
        two = Constant<value_int=2>() three = Constant<value_int=3>()
        minus = Constant<value_int=-1>()
        n = Size(x) more = Add(n, three) y = Range({limits}) }}"""
    assert inferred(text) == [expected]


def test_elements_of_symbolic_ranges_are_followed() -> None:
    text = """g (float[n] x) => (y) { three = Constant<value_int=3>() one = Constant<value_int=1>()
        n = Size(x) more = Add(n, three) r = Range(n, more, one) y = ConstantOfShape(r) }"""
    assert inferred(text) == ["float[n,n+1,n+2]"]
    (result,) = run_text(text, {"x": np.zeros(2, np.float32)})
    assert result.shape == (2, 3, 4)


def test_range_as_onnx_infers() -> None:
    inputs = {name: np.array(item, np.int64) for name, item in zip("abc", (1, 8, 2), strict=True)}
    proto = onnx.load_from_string(one_node("Range", inputs, ["y"], 21))
    theirs = onnx.shape_inference.infer_shapes(proto).graph.output[0].type.tensor_type
    assert theirs.elem_type == onnx.TensorProto.INT64 and len(theirs.shape.dim) == 1
    assert inferred("g (int64 a, int64 b, int64 c) => (y) { y = Range(a, b, c) }") == ["int64[?]"]


def test_the_function_without_types() -> None:
    operator = standard()["", "Range"]
    signature = operator.at(11)
    assert signature is not None
    body = schema_function(operator, signature, 11)
    body.domain = "f"
    graph = Graph("g")
    values = [graph.add_input(name) for name in "abc"]
    graph.nodes.append(Node("Range", values, ["y"], domain="f"))
    graph.outputs.append(graph.nodes[0].output)
    model = Model(graph, Opsets({"": 11, "f": 1}), 10)
    model.functions = [body]
    (result,) = run_model(model, {"a": np.array(2), "b": np.array(9), "c": np.array(3)})
    assert result.tolist() == [2, 5, 8]
