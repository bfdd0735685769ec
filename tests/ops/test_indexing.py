"""Elements picked by their positions."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from sardonyx.errors import ConversionError, EvaluationError, InferenceError
from tests.ops.direct import inferred, run
from tests.ops.one_node import one_node, run_converted, run_here, run_there, same

X = np.arange(60, dtype=np.float32).reshape(3, 4, 5)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("indices", [0, [0, 2], [[-1, 0], [1, 1]], []])
@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_gather(axis: int, indices: Any, kind: Any) -> None:
    inputs = {"x": X, "i": np.array(indices, kind)}
    content = one_node("Gather", inputs, ["y"], 11, axis=axis)
    expected = run_there(content, inputs)
    same(run_here(content, inputs), expected)
    same(run_converted(content, inputs, 9), expected)


@pytest.mark.parametrize(
    ("indices", "expected"),
    [("k,l", "float[n,k,l,5]"), ("1", "float[n,1,5]"), ("", "float")],
)
def test_gather_shapes(indices: str, expected: str) -> None:
    text = f"g (float[n,4,5] x, int64[{indices}] i) => (y) {{ y = Gather<axis=1>(x, i) }}"
    assert inferred(text) == [expected]
    assert inferred("g (float[n,4,5] x, int64 i) => (y) { y = Gather<axis=1>(x, i) }") == [
        "float[n,5]"
    ]


@pytest.mark.parametrize("operator", ["Gather", "GatherElements"])
def test_positions_outside(operator: str) -> None:
    for index in (4, -5):
        text = (
            f"g (float[4] x) => (y) {{ i = Constant<value_ints=[{index}]>() y = {operator}(x, i) }}"
        )
        with pytest.raises(InferenceError, match="leave a dimension of size 4"):
            inferred(text)
        with pytest.raises(EvaluationError):
            run(operator, np.zeros(4, np.float32), np.int64([index]))


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_gather_elements(axis: int) -> None:
    indices = np.random.default_rng(0).integers(-3, 3, (2, 3, 4))
    inputs = {"x": X, "i": indices}
    content = one_node("GatherElements", inputs, ["y"], 11, axis=axis)
    (result,) = run_here(content, inputs)
    for place in np.ndindex(indices.shape):
        source = list(place)
        source[axis] = indices[place]
        assert result[place] == X[tuple(source)]
    whole = {"x": X, "i": np.random.default_rng(0).integers(-3, 3, X.shape)}
    content = one_node("GatherElements", whole, ["y"], 11, axis=axis)
    same(run_here(content, whole), run_there(content, whole))


def test_gather_elements_shapes() -> None:
    text = "g (float[n,4] x, int64[SHAPE] i) => (y) { y = GatherElements<axis=1>(x, i) }"
    assert inferred(text.replace("SHAPE", "n,k")) == ["float[n,k]"]
    assert inferred(text.replace("SHAPE", "")) == ["float[?,?]"]
    with pytest.raises(InferenceError, match="rank 3 do not fit"):
        inferred(text.replace("SHAPE", "1,2,3"))


@pytest.mark.parametrize(
    ("shape", "batch"),
    [
        ((2, 1), 0),
        ((2, 2), 0),
        ((2, 3), 0),
        ((3, 2, 1), 1),
        ((3, 2), 1),
        ((3, 4, 2, 1), 2),
        ((3,), 0),
    ],
)
def test_gather_nd(shape: tuple[int, ...], batch: int) -> None:
    inputs = {"x": X, "i": np.random.default_rng(1).integers(-3, 3, shape)}
    content = one_node("GatherND", inputs, ["y"], 12, batch_dims=batch)
    expected = run_there(content, inputs)
    same(run_here(content, inputs), expected)
    if batch:
        with pytest.raises(ConversionError, match="'batch_dims'"):
            run_converted(content, inputs, 11)
    else:
        same(run_converted(content, inputs, 11), expected)


def test_gather_nd_without_positions() -> None:
    result = run("GatherND", X, np.zeros((0, 2), np.int64), batch_dims=0)
    assert result.shape == (0, 5)
    content = one_node("GatherND", {"x": X, "i": np.zeros((0, 2), np.int64)}, ["y"], 13)
    theirs = ReferenceEvaluator(onnx.load_from_string(content)).run(
        None, {"x": X, "i": np.zeros((0, 2), np.int64)}
    )
    same([result], theirs)


@pytest.mark.parametrize(
    ("indices", "batch", "expected"),
    [
        ("k,2", 0, "float[k,5]"),
        ("k,3", 0, "float[k]"),
        ("n,k,1", 1, "float[n,k,5]"),
        ("k,l", 0, "float"),
    ],
)
def test_gather_nd_shapes(indices: str, batch: int, expected: str) -> None:
    text = (
        f"g (float[n,4,5] x, int64[{indices}] i) => (y) {{ y = "
        f"GatherND<batch_dims={batch}>(x, i) }}"
    )
    assert inferred(text) == [expected]


@pytest.mark.parametrize(
    ("indices", "batch", "message"),
    [
        ("2,4", 0, "4 coordinates do not fit"),
        ("2,1", 2, "2 batch dimensions do not fit"),
        ("2,2,1", 1, "batch dimension 0 differs"),
    ],
)
def test_wrong_gather_nd(indices: str, batch: int, message: str) -> None:
    text = (
        f"g (float[3,4,5] x, int64[{indices}] i) => (y) {{ y = "
        f"GatherND<batch_dims={batch}>(x, i) }}"
    )
    with pytest.raises(InferenceError, match=message):
        inferred(text)
    with pytest.raises(EvaluationError, match="index 9 is outside"):
        run("GatherND", X, np.int64([[9]]), batch_dims=0)
