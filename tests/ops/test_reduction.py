"""Reductions over axes."""

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper, parser

from sardonyx.dims import symbol
from sardonyx.dtypes import DataType
from sardonyx.errors import ConversionError, InferenceError
from sardonyx.graph import Value
from sardonyx.ops.catalog import standard
from sardonyx.ops.convert import convert_opset
from sardonyx.ops.fact import Fact, tensor
from tests.ops.one_node import (
    inferred,
    load,
    one_node,
    run_converted,
    run_here,
    run_model,
    run_there,
    same,
)

REDUCTIONS = [
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProd",
    "ReduceSum",
    "ReduceSumSquare",
]
X = np.random.default_rng(5).uniform(0.5, 2, (2, 3, 4)).astype(np.float32)


def constant_axes(
    operator: str, axes: list[int], opset: int, x: Any = X, **attributes: Any
) -> bytes:
    """A model whose axes are a constant of the graph."""
    node = helper.make_node(operator, ["x", "axes"], ["y"], **attributes)
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", kind, x.shape)],
        [helper.make_tensor_value_info("y", kind, None)],
        [helper.make_tensor("axes", onnx.TensorProto.INT64, [len(axes)], axes)],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()


@pytest.mark.parametrize("operator", REDUCTIONS)
@pytest.mark.parametrize("axes", [None, [0], [1, -1], [-2]])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_like_onnxruntime_with_attribute(
    operator: str, axes: list[int] | None, keepdims: int
) -> None:
    given = {} if axes is None else {"axes": axes}
    content = one_node(operator, {"x": X}, ["y"], 11, keepdims=keepdims, **given)
    same(run_here(content, {"x": X}), run_there(content, {"x": X}))


PLAIN = ("ReduceMax", "ReduceMin", "ReduceSum", "ReduceMean", "ReduceProd")
# Where nothing is reduced, onnxruntime leaves out the other steps of composed reductions.
WITH_INPUT = [
    (operator, axes, noop)
    for operator in REDUCTIONS
    for axes in ([0], [1, -1], [])
    for noop in (0, 1)
    if axes or not noop or operator in PLAIN
]


@pytest.mark.parametrize(("operator", "axes", "noop"), WITH_INPUT)
def test_like_onnxruntime_with_input(operator: str, axes: list[int], noop: int) -> None:
    content = constant_axes(operator, axes, 18, keepdims=0, noop_with_empty_axes=noop)
    same(run_here(content, {"x": X}), run_there(content, {"x": X}))


ELEMENTWISE = {
    "ReduceL1": np.abs,
    "ReduceL2": np.abs,
    "ReduceLogSum": np.log,
    "ReduceLogSumExp": lambda x: x,
    "ReduceSumSquare": np.square,
}


@pytest.mark.parametrize("operator", REDUCTIONS)
def test_nothing_to_reduce_still_has_its_other_steps(operator: str) -> None:
    content = one_node(operator, {"x": X}, ["y"], 18, noop_with_empty_axes=1)
    expected = ELEMENTWISE.get(operator, lambda x: x)(X)
    np.testing.assert_allclose(run_here(content, {"x": X})[0], expected, rtol=1e-5)
    for opset in (17, 12) if operator == "ReduceSum" else (17,):
        np.testing.assert_allclose(run_converted(content, {"x": X}, opset)[0], expected, rtol=1e-5)


@pytest.mark.parametrize("operator", REDUCTIONS)
@pytest.mark.parametrize("opset", [17, 12, 10])
def test_constant_axes_become_an_attribute(operator: str, opset: int) -> None:
    content = constant_axes(operator, [0, 2], 18, keepdims=0)
    (result,) = run_converted(content, {"x": X}, opset)
    same([result], run_here(content, {"x": X}), rtol=1e-6)
    lowered = convert_opset(load(content), opset)
    assert lowered.graph is not None
    (node,) = lowered.graph.nodes
    assert node.op_type == operator
    if opset < 13 or operator != "ReduceSum":
        assert node.attribute("axes") == (0, 2)


@pytest.mark.parametrize("operator", REDUCTIONS)
@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("axes", [[1], [-1, 0], [0, 1, 2], []])
def test_computed_axes(operator: str, keepdims: int, axes: list[int]) -> None:
    inputs = {"x": X, "axes": np.array(axes, np.int64)}
    content = one_node(operator, inputs, ["y"], 18, keepdims=keepdims)
    same(run_converted(content, inputs, 17), run_here(content, inputs))


@pytest.mark.parametrize("operator", ["ReduceMax", "ReduceMin", "ReduceProd"])
def test_computed_axes_of_an_unknown_rank(operator: str) -> None:
    model = load(one_node(operator, {"x": X, "axes": np.int64([1])}, ["y"], 18))
    assert model.graph is not None
    model.graph.inputs[0].type = None
    with pytest.raises(ConversionError, match="axes must be constants"):
        convert_opset(model, 17)


@pytest.mark.parametrize("operator", ["ReduceMax", "ReduceMin"])
@pytest.mark.parametrize("axes", [[0], [1]])
def test_truth_values(operator: str, axes: list[int]) -> None:
    x = np.array([[True, False], [True, True], [False, False]])
    content = constant_axes(operator, axes, 20, x)
    compute = np.max if operator == "ReduceMax" else np.min
    same(run_here(content, {"x": x}), [compute(x, axes[0], keepdims=True)])
    same(run_converted(content, {"x": x}, 17), run_here(content, {"x": x}))


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "uint64"])
@pytest.mark.parametrize("operator", [name for name in REDUCTIONS if "Log" not in name])
def test_integers(operator: str, dtype: str) -> None:
    x = np.array([[3, 4, 9], [1, 2, 2]], dtype)
    content = constant_axes(operator, [1], 18, x, keepdims=0)
    expected = {
        "ReduceL1": [16, 5],
        "ReduceL2": [10, 3],
        "ReduceMax": [9, 2],
        "ReduceMean": [5, 1],
        "ReduceMin": [3, 1],
        "ReduceProd": [108, 4],
        "ReduceSum": [16, 5],
        "ReduceSumSquare": [106, 9],
    }[operator]
    (result,) = run_here(content, {"x": x})
    assert (result.dtype, result.tolist()) == (np.dtype(dtype), expected)


def test_integers_wrap_around_and_means_do_not() -> None:
    x = np.int32([2**31 - 1, 2**31 - 3])
    assert run_here(constant_axes("ReduceSum", [0], 18, x), {"x": x})[0].tolist() == [-4]
    assert run_here(constant_axes("ReduceMean", [0], 18, x), {"x": x})[0].tolist() == [2**31 - 2]
    down = np.int64([-7, 0])
    assert run_here(constant_axes("ReduceMean", [0], 18, down), {"x": down})[0].tolist() == [-3]


@pytest.mark.parametrize("operator", ["ReduceLogSum", "ReduceLogSumExp"])
def test_logarithms_of_integers_before_opset_28(operator: str) -> None:
    x = np.int32([[30, 40], [1, 2]])
    content = constant_axes(operator, [1], 18, x)
    exact = np.log(
        np.sum(np.exp(x.astype(float)) if operator.endswith("Exp") else x, 1, keepdims=True)
    )
    same(run_here(content, {"x": x}), [exact.astype(np.int32)])
    raised = convert_opset(load(content), 28)
    assert raised.graph is not None
    assert [node.op_type for node in raised.graph.nodes] == ["Cast", operator, "Cast"]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
@pytest.mark.parametrize("operator", REDUCTIONS)
def test_floats_are_rounded_once(operator: str, dtype: Any) -> None:
    x = (X * 1.5).astype(dtype)
    (result,) = run_here(constant_axes(operator, [0, 2], 18, x), {"x": x})
    wide = x.astype(np.float64)
    (exact,) = run_here(constant_axes(operator, [0, 2], 18, wide), {"x": wide})
    eps = float(ml_dtypes.finfo(dtype).eps)
    assert result.dtype == dtype
    np.testing.assert_allclose(result.astype(np.float64), exact, rtol=2 * eps)


EMPTY = {"ReduceSum": 0, "ReduceProd": 1, "ReduceMax": -np.inf, "ReduceMin": np.inf, "ReduceL1": 0,
         "ReduceL2": 0, "ReduceSumSquare": 0, "ReduceLogSum": -np.inf, "ReduceLogSumExp": -np.inf,
         "ReduceMean": np.nan}  # fmt: skip


@pytest.mark.parametrize(("operator", "expected"), EMPTY.items())
def test_of_nothing(operator: str, expected: float) -> None:
    x = np.zeros((2, 0, 3), np.float32)
    (result,) = run_here(constant_axes(operator, [1], 18, x, keepdims=0), {"x": x})
    np.testing.assert_array_equal(result, np.full((2, 3), expected, np.float32))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint64"])
def test_extremes_of_nothing(dtype: str) -> None:
    x, limits = np.zeros((0,), dtype), np.iinfo(dtype)
    assert run_here(constant_axes("ReduceMax", [0], 18, x), {"x": x})[0].tolist() == [limits.min]
    assert run_here(constant_axes("ReduceMin", [0], 18, x), {"x": x})[0].tolist() == [limits.max]


@pytest.mark.parametrize("operator", REDUCTIONS)
def test_scalars(operator: str) -> None:
    x = np.float32(2)
    assert run_here(one_node(operator, {"x": x}, ["y"], 18), {"x": x})[0].shape == ()


def test_log_sum_exp_does_not_overflow() -> None:
    x = np.float32([[1000, 1000], [-1000, -1000], [-np.inf, -np.inf], [np.inf, 0]])
    content = constant_axes("ReduceLogSumExp", [1], 18, x, keepdims=0)
    expected = np.float32([1000 + np.log(2), -1000 + np.log(2), -np.inf, np.inf])
    np.testing.assert_allclose(run_here(content, {"x": x})[0], expected, rtol=1e-6)


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize(
    "operator", ["ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"]
)
def test_function(operator: str, keepdims: int) -> None:
    from sardonyx.graph import Graph, Model, Opsets
    from sardonyx.ops.build import Builder

    graph = Graph("g")
    x = graph.add_input("x")
    build = Builder(graph, 28)
    function = standard()["", operator].function
    assert function is not None
    axes = build.constant(np.int64([1]))
    result = function(build, x, axes, keepdims=keepdims, noop_with_empty_axes=0)
    assert isinstance(result, Value)
    graph.outputs.append(result)
    model = Model(graph, Opsets({"": 28}))
    data = np.float32([[500, 2, 3], [0.25, 0.5, 0.75]]) if operator == "ReduceLogSumExp" else X
    expected = run_here(constant_axes(operator, [1], 28, data, keepdims=keepdims), {"x": data})
    same(run_model(model, {"x": data}), expected)


@pytest.mark.parametrize(
    ("axes", "attributes", "expected"),
    [
        ("{0}", "keepdims = 0", "float[3,m]"),
        ("{0}", "keepdims = 1", "float[1,3,m]"),
        ("{-1, 0}", "keepdims = 0", "float[3]"),
        ("{0, 1, 2}", "keepdims = 0", "float[]"),
    ],
)
def test_shapes(axes: str, attributes: str, expected: str) -> None:
    count = axes.count(",") + 1
    model = parser.parse_model(
        '<ir_version: 10, opset_import: ["": 21]> g (float[n,3,m] x) => (y) '
        f"<int64[{count}] axes = {axes}> {{ y = ReduceSum<{attributes}>(x, axes) }}"
    )
    assert inferred(model.SerializeToString()) == [expected]


def test_shapes_where_axes_are_computed() -> None:
    x = tensor(DataType.FLOAT, (2, 3, 4))
    infer = standard()["", "ReduceMean"].infer
    assert infer is not None
    two = tensor(DataType.INT64, (2,))
    assert infer(x, two, keepdims=0, noop_with_empty_axes=0).rank == 1
    assert infer(x, two, keepdims=1, noop_with_empty_axes=0).shape == (None, None, None)
    some = tensor(DataType.INT64, (None,))
    assert infer(x, some, keepdims=0, noop_with_empty_axes=0).shape is None
    assert infer(x, Fact(), keepdims=0, noop_with_empty_axes=0).shape is None
    none = tensor(DataType.INT64, (0,))
    assert infer(x, none, keepdims=0, noop_with_empty_axes=0).shape == ()
    assert infer(x, none, keepdims=0, noop_with_empty_axes=1).shape == (2, 3, 4)
    assert infer(Fact(), None, keepdims=0, noop_with_empty_axes=0).shape == ()
    assert infer(Fact(), None, keepdims=1, noop_with_empty_axes=0).shape is None


def test_axes_must_exist() -> None:
    with pytest.raises(InferenceError, match="axis 3 does not fit rank 3"):
        inferred(constant_axes("ReduceSum", [3], 18))


def test_sizes_are_followed() -> None:
    n = symbol("n")
    sizes = Fact(None, DataType.INT64, (3,), np.array([n, 2, 3], object))
    both = {"keepdims": 0, "noop_with_empty_axes": 0}
    assert standard()["", "ReduceProd"].infer(sizes, None, **both).value[()] == n * 6
    assert standard()["", "ReduceSum"].infer(sizes, None, **both).value[()] == n + 5
    kept = standard()["", "ReduceSum"].infer(sizes, None, keepdims=1, noop_with_empty_axes=0)
    assert list(kept.value) == [n + 5]
    numbers = tensor(DataType.INT32, (2, 2)).with_value(np.int32([[1, 2], [3, 4]]))
    axis = tensor(DataType.INT64, (1,)).with_value(np.int64([0]))
    found = standard()["", "ReduceMax"].infer(numbers, axis, **both).value
    assert (found.dtype, found.tolist()) == (np.int32, [3, 4])


@pytest.mark.parametrize("operator", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_places_like_onnxruntime(operator: str, axis: int, last: int, dtype: str) -> None:
    x = np.array([[3, 1, 3, 1], [1, 5, 0, 5], [3, 1, 0, 1]], dtype)
    for keepdims in (0, 1):
        content = one_node(
            operator, {"x": x}, ["y"], 13, axis=axis, keepdims=keepdims, select_last_index=last
        )
        same(run_here(content, {"x": x}), run_there(content, {"x": x}))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.uint64, np.int8, np.float64])
def test_places_in_other_types(dtype: Any) -> None:
    x = np.array([[3, 1, 7], [9, 5, 9]]).astype(dtype)
    content = one_node("ArgMax", {"x": x}, ["y"], 13, axis=1, keepdims=0)
    assert run_here(content, {"x": x})[0].tolist() == [2, 0]
    assert inferred(content) == ["int64[2]"]
    old = one_node("ArgMin", {"x": x}, ["y"], 1) if dtype is np.float64 else None
    if old is not None:
        assert run_here(old, {"x": x})[0].tolist() == [[0, 0, 0]]
