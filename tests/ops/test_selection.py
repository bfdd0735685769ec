"""Elements chosen by conditions, by their order, or by being different."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from sardonyx.errors import ConversionError, EvaluationError, InferenceError
from sardonyx.ops.convert import convert_opset
from tests.ops.direct import inferred, run, text_model
from tests.ops.one_node import one_node, run_converted, run_here, run_model, run_there, same

RANDOM = np.random.default_rng(5)
X = RANDOM.integers(-4, 5, (3, 4, 5)).astype(np.float32)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint8, object])
def test_where(dtype: Any) -> None:
    x = np.array(list("abcd"), object) if dtype is object else X[0, :, 0].astype(dtype)
    y = np.array([["z"]], object) if dtype is object else np.array([[7]], dtype)
    inputs = {"c": np.array([[True], [False]]), "x": x, "y": y}
    content = one_node("Where", inputs, ["o"], 9)
    same(run_here(content, inputs), run_there(content, inputs))


def test_where_of_symbolic_sizes() -> None:
    text = """g (float[n,4] x, bool c) => (y) { s = Shape(x) a = Constant<value_ints=[2,4]>()
        t = Constant<value = bool[2] {1, 0}>() w = Where(COND, s, a) y = ConstantOfShape(w) }"""
    assert inferred(text.replace("COND", "t")) == ["float[n,4]"]
    assert inferred(text.replace("COND", "c")) == ["float[?,?]"]
    assert inferred("g (bool[n,1] c, float[m] x, float y) => (z) { z = Where(c, x, y) }") == [
        "float[n,m]"
    ]
    with pytest.raises(InferenceError, match="do not broadcast"):
        inferred("g (bool[3] c, float[4] x, float y) => (z) { z = Where(c, x, y) }")


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_compress(axis: int | None) -> None:
    inputs = {"x": X, "c": np.array([True, False, True])}
    attributes = {} if axis is None else {"axis": axis}
    content = one_node("Compress", inputs, ["y"], 11, **attributes)
    expected = run_there(content, inputs)
    same(run_here(content, inputs), expected)
    same(run_converted(content, inputs, 9), expected)


def test_compress_shapes() -> None:
    text = "g (float[n,4] x, bool[4] c) => (y) { y = Compress<axis=1>(x, c) }"
    assert inferred(text) == ["float[n,?]"]
    known = """g (float[n,4] x) => (y) { c = Constant<value = bool[4] {1, 0, 1, 1}>()
        y = Compress<axis=1>(x, c) }"""
    assert inferred(known) == ["float[n,3]"]
    assert inferred("g (float[n,4] x, bool[4] c) => (y) { y = Compress(x, c) }") == ["float[?]"]


@pytest.mark.parametrize("dtype", [np.float32, np.int32, bool, np.uint8, np.int64])
def test_non_zero(dtype: Any) -> None:
    x = X.astype(dtype)
    content = one_node("NonZero", {"x": x}, ["y"], 9)
    same(run_here(content, {"x": x}), run_there(content, {"x": x}))


def test_non_zero_of_scalars_nothing_and_other_types() -> None:
    assert run("NonZero", np.array(5, np.float32)).shape == (0, 1)
    assert run("NonZero", np.array(0, np.float32)).shape == (0, 0)
    assert run("NonZero", np.zeros((2, 0), np.float32)).shape == (2, 0)
    assert run("NonZero", np.float32([-0.0, np.nan])).tolist() == [[1]]
    assert run("NonZero", np.array([0, 2], ml_dtypes.bfloat16)).tolist() == [[1]]
    assert run("NonZero", np.array(["", "a"], object)).tolist() == [[1]]
    assert inferred("g (float[n,4] x) => (y) { y = NonZero(x) }") == ["int64[2,?]"]


@pytest.mark.parametrize("axis", [-1, 0, 1, 2, -2])
@pytest.mark.parametrize("kind", [np.int64, np.int32, np.float32])
def test_one_hot(axis: int, kind: Any) -> None:
    inputs = {
        "i": np.array([[0, 3, -1], [9, -5, 4]], kind),
        "d": np.array([5], np.int64),
        "v": np.float32([-1, 2]),
    }
    content = one_node("OneHot", inputs, ["y"], 11, axis=axis)
    usual = inputs | {"i": inputs["i"].astype(np.int64)}
    expected = run_there(one_node("OneHot", usual, ["y"], 11, axis=axis), usual)
    same(run_here(content, inputs), expected)
    lower = run_converted(content, inputs, 10) if axis in (-1, 0, 1, 2) else expected
    same(lower, expected)


def test_negative_indices_pointed_nowhere() -> None:
    inputs = {"i": np.int64([1, -1]), "d": np.array(3, np.int64), "v": np.float32([0, 1])}
    old = one_node("OneHot", inputs, ["y"], 9)
    new = one_node("OneHot", inputs, ["y"], 11)
    assert run_here(old, inputs)[0].tolist() == [[0, 1, 0], [0, 0, 0]]
    assert run_here(new, inputs)[0].tolist() == [[0, 1, 0], [0, 0, 1]]


def test_one_hot_shapes_and_types() -> None:
    text = (
        "g (int64[n,m] i, float[2] v) => (y) { d = Constant<value_ints=[7]>() y = "
        "OneHot<axis=AXIS>(i, d, v) }"
    )
    assert inferred(text.replace("AXIS", "-1")) == ["float[n,m,7]"]
    assert inferred(text.replace("AXIS", "1")) == ["float[n,7,m]"]
    with pytest.raises(InferenceError, match="axis 3 does not fit rank 3"):
        inferred(text.replace("AXIS", "3"))
    texts = run("OneHot", np.int64([1]), np.float32(2.9), np.array(["-", "+"], object))
    assert texts.tolist() == [["-", "+"]]
    assert run("OneHot", np.array(1, np.uint8), np.int64(3), np.array([1, 0], bool)).tolist() == [
        1,
        0,
        1,
    ]


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.float64, np.int32])
def test_top_k(axis: int, largest: int, dtype: Any) -> None:
    inputs = {"x": X.astype(dtype), "k": np.int64([2])}
    content = one_node("TopK", inputs, ["v", "i"], 11, axis=axis, largest=largest)
    expected = run_there(content, inputs)
    same(run_here(content, inputs), expected)
    if largest and dtype == np.float32:
        same(run_converted(content, inputs, 10), expected)
    if not largest:
        with pytest.raises(ConversionError, match="'largest'"):
            run_converted(content, inputs, 10)


@pytest.mark.parametrize("opset", [1, 10])
def test_older_top_k(opset: int) -> None:
    inputs: dict[str, Any] = {"x": X} if opset == 1 else {"x": X, "k": np.int64([3])}
    attributes = {"k": 3} if opset == 1 else {}
    content = one_node("TopK", inputs, ["v", "i"], opset, **attributes)
    new = {"x": X, "k": np.int64([3])}
    expected = run_here(one_node("TopK", new, ["v", "i"], 24), new)
    same(run_here(content, inputs), expected)
    same(run_there(content, inputs), expected)


def test_constant_k_goes_down_to_an_attribute() -> None:
    text = "g (float[5] x) => (v, i) { k = Constant<value = int64[1] {2}>() v, i = TopK(x, k) }"
    lower = convert_opset(text_model(text, 10), 9)
    values, indices = run_model(lower, {"x": np.float32([1, 5, 3, 5, 0])})
    assert (values.tolist(), indices.tolist()) == ([5, 5], [1, 3])


@pytest.mark.parametrize("dtype", [np.uint8, np.uint64, np.float16, ml_dtypes.bfloat16, np.int8])
def test_top_k_of_any_type(dtype: Any) -> None:
    x = np.array([3, 1, 3, 0]).astype(dtype)
    values, indices = run("TopK", x, np.int64([3]), outputs=2)
    assert (values.dtype, indices.tolist()) == (x.dtype, [0, 2, 1])
    _, indices = run("TopK", x, np.int64([2]), outputs=2, largest=0)
    assert indices.tolist() == [3, 1]


def test_top_k_edges() -> None:
    x = np.float32([1, np.nan, -np.inf, np.inf])
    assert run("TopK", x, np.int64([4]), outputs=2)[1].tolist() == [1, 3, 0, 2]
    assert run("TopK", x, np.int64([0]), outputs=2)[0].shape == (0,)
    with pytest.raises(EvaluationError, match="5 elements cannot be taken of 4"):
        run("TopK", x, np.int64([5]), outputs=2)
    text = "g (float[n,4] x) => (v, i) { k = Constant<value_ints=[K]>() v, i = TopK(x, k) }"
    assert inferred(text.replace("K", "2", 1).replace("Top2", "TopK")) == [
        "float[n,2]",
        "int64[n,2]",
    ]
    with pytest.raises(InferenceError, match="5 elements cannot be taken of 4"):
        inferred(text.replace("[K]", "[5]"))


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("ordered", [0, 1])
def test_unique(axis: int | None, ordered: int) -> None:
    x = RANDOM.integers(0, 2, (4, 3)).astype(np.float32)
    attributes: dict[str, Any] = {"sorted": ordered} | ({} if axis is None else {"axis": axis})
    content = one_node("Unique", {"x": x}, ["y", "i", "v", "c"], 11, **attributes)
    same(run_here(content, {"x": x}), run_there(content, {"x": x}))


def test_unique_texts_and_other_types() -> None:
    x = np.array(["b", "a", "b"], object)
    values, first, inverse, counts = run("Unique", x, outputs=4)
    assert values.tolist() == ["a", "b"]
    assert (first.tolist(), inverse.tolist(), counts.tolist()) == ([1, 0], [1, 0, 1], [1, 2])
    assert run("Unique", x, outputs=4, sorted=0)[0].tolist() == ["b", "a"]
    rows = np.array([["b", "a"], ["a", "z"], ["b", "a"]], object)
    assert run("Unique", rows, outputs=4, axis=0)[0].tolist() == [["a", "z"], ["b", "a"]]
    narrow = run("Unique", np.array([2, 1, 2], ml_dtypes.bfloat16), outputs=4)[0]
    assert narrow.dtype == ml_dtypes.bfloat16 and narrow.astype(int).tolist() == [1, 2]
    assert run("Unique", np.zeros(0, np.float32), outputs=4)[0].shape == (0,)


def test_unique_shapes() -> None:
    text = "g (float[n,4] x) => (y, i, v, c) { y, i, v, c = Unique(x) }"
    assert inferred(text) == ["float[?]", "int64[?]", "int64[4*n]", "int64[?]"]
    along = "g (float[n,4] x) => (y, i, v, c) { y, i, v, c = Unique<axis=-2>(x) }"
    assert inferred(along) == ["float[?,4]", "int64[?]", "int64[n]", "int64[?]"]
