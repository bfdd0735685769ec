"""Tensors with elements put in at positions that are data."""

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from sardonyx.errors import EvaluationError, InferenceError
from sardonyx.ops.convert import convert_opset
from tests.ops.direct import inferred, node_model, run
from tests.ops.one_node import one_node, run_converted, run_here, run_model, run_there, same

RANDOM = np.random.default_rng(4)
X = RANDOM.integers(0, 9, (3, 4, 2)).astype(np.float32)


def permuted(shape: tuple[int, ...], size: int, axis: int) -> Any:
    """Positions along an axis, none twice in a line."""
    lines = RANDOM.permuted(np.broadcast_to(np.arange(size), (*shape, size)).copy(), axis=-1)
    return np.moveaxis(lines, -1, axis)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_scatter_elements(axis: int, kind: Any) -> None:
    shape = np.delete(X.shape, axis)
    indices = permuted(tuple(shape), X.shape[axis], axis).astype(kind)
    inputs = {"x": X, "i": indices - X.shape[axis] * (indices % 2), "u": X[::-1] + 10}
    content = one_node("ScatterElements", inputs, ["y"], 11, axis=axis)
    expected = run_there(content, inputs)
    same(run_here(content, inputs), expected)
    same(run_converted(content, inputs, 9), expected)


def test_scatter_was_the_older_name() -> None:
    inputs = {"x": X, "i": np.int64([[[1, 0]]]), "u": np.float32([[[7, 8]]])}
    old = one_node("Scatter", inputs, ["y"], 9, axis=1)
    new = one_node("ScatterElements", inputs, ["y"], 13, axis=1)
    same(run_here(old, inputs), run_there(old, inputs))
    same(run_here(old, inputs), run_here(new, inputs))
    deprecated = one_node("Scatter", inputs, ["y"], 11, axis=1)
    same(run_here(deprecated, inputs), run_here(new, inputs))


REDUCTIONS = ["none", "add", "mul", "max", "min"]


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.float64])
def test_reductions_of_elements(reduction: str, dtype: Any) -> None:
    x = np.arange(1, 6, dtype=dtype)
    indices = np.int64([0, 4, 0, -2]) if reduction != "none" else np.int64([0, 4, 1, -2])
    inputs = {"x": x, "i": indices, "u": np.array([2, 3, 4, 1], dtype)}
    content = one_node("ScatterElements", inputs, ["y"], 18, reduction=reduction)
    same(run_here(content, inputs), run_there(content, inputs))
    for opset in (17, 16, 15, 13):
        same(run_converted(content, inputs, opset), run_there(content, inputs))


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("coordinates", [1, 2, 3])
def test_scatter_nd(reduction: str, coordinates: int) -> None:
    indices = np.int64([[0, -1, 1], [2, 0, 0], [1, 2, -1]])[:, :coordinates]
    updates = RANDOM.integers(0, 9, (3, *X.shape[coordinates:])).astype(np.float32)
    inputs = {"x": X, "i": indices, "u": updates}
    content = one_node("ScatterND", inputs, ["y"], 18, reduction=reduction)
    expected = run_there(content, inputs)
    same(run_here(content, inputs), expected)
    for opset in (17, 13):
        same(run_converted(content, inputs, opset), expected)
    if reduction == "none":
        same(run_converted(content, inputs, 11), expected)


def test_repeated_places_are_reduced_in_turn() -> None:
    x, indices = np.zeros(2, np.float32), np.int64([[1], [1], [1]])
    updates = np.float32([1, 2, 3])
    assert run("ScatterND", x, indices, updates, reduction="add").tolist() == [0, 6]
    assert run("ScatterND", x + 1, indices, updates, reduction="mul").tolist() == [1, 6]
    assert run("ScatterND", x, indices, updates, reduction="max").tolist() == [0, 3]
    assert run("ScatterND", x + 9, indices, updates, reduction="min").tolist() == [9, 1]
    model = node_model("ScatterND", [x, indices, updates], reduction="max")
    given = {"i0": x, "i1": indices, "i2": updates}
    same(run_model(convert_opset(model, 17), given), run_model(model, given))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_a_loop_reduces_along_any_axis(axis: int) -> None:
    indices = RANDOM.integers(0, 2, (2, 3, 2))
    inputs = {"x": X, "i": indices, "u": RANDOM.normal(0, 9, indices.shape).astype(np.float32)}
    content = one_node("ScatterElements", inputs, ["y"], 18, axis=axis, reduction="min")
    same(run_converted(content, inputs, 17), run_here(content, inputs))
    flags = {"x": X > 4, "i": indices, "u": inputs["u"] > 0}
    content = one_node("ScatterElements", flags, ["y"], 18, axis=axis, reduction="max")
    same(run_converted(content, flags, 17), run_here(content, flags))


def test_reductions_of_narrow_types_and_booleans() -> None:
    x = np.array([1, 1], ml_dtypes.bfloat16)
    small = np.full(256, 2.0**-9).astype(ml_dtypes.bfloat16)
    result = run("ScatterElements", x, np.zeros(256, np.int64), small, reduction="add")
    assert result.dtype == x.dtype and result.astype(float).tolist() == [1.5, 1]
    flags = np.array([False, True])
    both = run("ScatterElements", flags, np.int64([0, 1]), np.array([True, False]), reduction="add")
    assert both.tolist() == [True, True]
    wrapped = run(
        "ScatterElements", np.uint8([250]), np.int64([0]), np.uint8([10]), reduction="add"
    )
    assert wrapped.tolist() == [4]
    texts = run(
        "ScatterElements", np.array(["a", "b"], object), np.int64([1]), np.array(["z"], object)
    )
    assert texts.tolist() == ["a", "z"]


def test_inputs_are_left_alone() -> None:
    x = np.zeros(3, np.float32)
    x.flags.writeable = False
    assert run("ScatterElements", x, np.int64([1]), np.float32([5])).tolist() == [0, 5, 0]
    assert run("ScatterND", x, np.int64([[1]]), np.float32([5])).tolist() == [0, 5, 0]
    assert run("ScatterND", x, np.zeros((0, 1), np.int64), np.zeros(0, np.float32)).tolist() == [
        0,
        0,
        0,
    ]


@pytest.mark.parametrize(
    ("indices", "expected"),
    [
        ([1], [[0, 0], [5, 6]]),
        ([[1]], [[0, 0], [5, 6]]),
        ([[[1], [0]]], [[7, 8], [5, 6]]),
        ([[[[1]]]], [[0, 0], [5, 6]]),
        ([1, 0], [[0, 0], [5, 0]]),
        ([[[1, 0], [0, 1]]], [[0, 6], [5, 0]]),
    ],
)
def test_indices_of_any_rank(indices: Any, expected: list[list[int]]) -> None:
    places = np.int64(indices)
    shape = (*places.shape[:-1], *(2,) * (2 - places.shape[-1]))
    updates = np.float32([5, 6, 7, 8])[: int(np.prod(shape))].reshape(shape)
    assert run("ScatterND", np.zeros((2, 2), np.float32), places, updates).tolist() == expected


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("ScatterElements(x, i, u)", "float[n,4]"),
        ("ScatterND(x, j, v)", "float[n,4]"),
        ("TensorScatter<axis=1>(x, u)", "float[n,4]"),
    ],
)
def test_shapes(call: str, expected: str) -> None:
    text = f"""g (float[n,4] x, int64[k,2] i, float[k,2] u, int64[k,1] j, float[k,4] v) => (y)
        {{ y = {call} }}"""
    assert inferred(text, 24) == [expected]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("ScatterElements(x, i, x)", "do not fit the indices"),
        ("ScatterElements(x, v, u)", "their ranks differ"),
        ('ScatterElements<reduction="sum">(x, i, u)', "reduction 'sum' is not one of"),
        ("ScatterND(x, i, x)", r"updates of \[2\] are needed"),
        ("ScatterND(x, five, u)", "5 coordinates do not fit"),
        ("TensorScatter<axis=0>(x, x)", "does not fit the cache"),
        ('TensorScatter<axis=1, mode="ring">(x, u)', "mode 'ring'"),
    ],
)
def test_contradictions(call: str, message: str) -> None:
    text = f"""g (float[3,4] x, int64[2,2] i, float[2,2] u, int64[2] v, int64[2,5] five) => (y)
        {{ y = {call} }}"""
    with pytest.raises(InferenceError, match=message):
        inferred(text, 24)


def test_places_outside() -> None:
    with pytest.raises(EvaluationError, match="index 3 is outside"):
        run("ScatterElements", np.zeros(3, np.float32), np.int64([3]), np.float32([1]))
    with pytest.raises(EvaluationError, match="index -4 is outside"):
        run("ScatterND", np.zeros(3, np.float32), np.int64([[-4]]), np.float32([1]))
    cache, update = np.zeros((1, 2, 3), np.float32), np.ones((1, 2, 3), np.float32)
    with pytest.raises(EvaluationError, match="leave a cache of 2"):
        run("TensorScatter", cache, update, np.int64([1]))


@pytest.mark.parametrize("mode", ["linear", "circular"])
@pytest.mark.parametrize("starts", [None, [0, 2]])
@pytest.mark.parametrize(("axis", "rank"), [(-2, 4), (1, 3), (1, 2)])
def test_tensor_scatter(mode: str, starts: list[int] | None, axis: int, rank: int) -> None:
    shape = [2, 3, 4, 5][:rank]
    shape[axis] = 4
    cache = RANDOM.normal(size=shape).astype(np.float32)
    shape[axis] = 2
    update = RANDOM.normal(size=shape).astype(np.float32)
    places = None if starts is None else np.int64(starts) + (mode == "circular")
    inputs = {"c": cache, "u": update, "w": places}
    content = one_node("TensorScatter", inputs, ["y"], 24, axis=axis, mode=mode)
    given = {name: item for name, item in inputs.items() if item is not None}
    theirs = ReferenceEvaluator(onnx.load_from_string(content)).run(None, given)
    same(run_here(content, inputs), theirs)
    same(run_converted(content, inputs, 17), theirs)
