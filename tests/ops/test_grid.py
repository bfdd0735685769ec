"""Images sampled at places that a grid names."""

from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from sardonyx.errors import ConversionError, EvaluationError, InferenceError
from sardonyx.ops.convert import convert_opset
from sardonyx.runtime import InferenceSession
from tests.ops.direct import inferred, node_model, run
from tests.ops.one_node import load, one_node, run_converted, run_here, run_model, run_there, same

RANDOM = np.random.default_rng(7)
IMAGE = RANDOM.normal(size=(2, 3, 4, 5)).astype(np.float32)
GRID = RANDOM.uniform(-1.6, 1.6, (2, 3, 6, 2)).astype(np.float32)
VOLUME = RANDOM.normal(size=(1, 2, 3, 4, 5)).astype(np.float32)
SPACE = RANDOM.uniform(-1.4, 1.4, (1, 2, 3, 2, 3)).astype(np.float32)
CASES = list(product(["linear", "nearest", "cubic"], ["zeros", "border", "reflection"], [0, 1]))
OLD = {"linear": "bilinear", "cubic": "bicubic", "nearest": "nearest"}


@pytest.mark.parametrize(("mode", "padding", "align"), CASES)
def test_grid_sample(mode: str, padding: str, align: int) -> None:
    inputs = {"x": IMAGE, "g": GRID}
    how = {"padding_mode": padding, "align_corners": align}
    new = one_node("GridSample", inputs, ["y"], 20, mode=mode, **how)
    old = one_node("GridSample", inputs, ["y"], 16, mode=OLD[mode], **how)
    expected = run_there(old, inputs)
    same(run_here(new, inputs), expected, rtol=1e-4, atol=1e-5)
    same(run_here(old, inputs), expected, rtol=1e-4, atol=1e-5)
    same(run_converted(new, inputs, 17), expected, rtol=1e-4, atol=1e-5)
    same(run_converted(new, inputs, 15), expected, rtol=1e-4, atol=1e-5)
    same(run_converted(new, inputs, 12), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("mode", "padding", "align"), CASES)
def test_volumes(mode: str, padding: str, align: int) -> None:
    inputs = {"x": VOLUME, "g": SPACE}
    how = {"mode": mode, "padding_mode": padding, "align_corners": align}
    content = one_node("GridSample", inputs, ["y"], 20, **how)
    if mode != "cubic":
        expected = run_there(content, inputs)
    else:
        expected = ReferenceEvaluator(onnx.load_from_string(content)).run(None, inputs)
    if (mode, padding) == ("cubic", "border"):
        expected = run_here(content, inputs)
    same(run_here(content, inputs), expected, rtol=1e-4, atol=1e-5)
    same(run_converted(content, inputs, 17), expected, rtol=1e-4, atol=1e-5)


def test_one_pixel_and_one_dimension() -> None:
    x, grid = np.float32([[[[7]]]]), np.float32([[[[0.3, -5]]]])
    for padding, align in product(["border", "reflection"], [0, 1]):
        result = run("GridSample", x, grid, padding_mode=padding, align_corners=align)
        np.testing.assert_allclose(result, x, rtol=1e-6)
    line = run("GridSample", np.float32([[[1, 3]]]), np.float32([[[0], [1]]]), align_corners=1)
    assert line.tolist() == [[[2, 3]]]


def test_odd_coordinates() -> None:
    x = np.float32([[[[1, 2], [3, 4]]]])
    places = np.float32([[[[np.nan, 0], [np.inf, 0], [-np.inf, 0]]]])
    for mode, padding in product(["nearest", "linear", "cubic"], ["zeros", "border", "reflection"]):
        result = run("GridSample", x, places, mode=mode, padding_mode=padding)
        assert result.shape == (1, 1, 1, 3)
    empty = run("GridSample", x, np.zeros((1, 0, 3, 2), np.float32))
    assert empty.shape == (1, 1, 0, 3)
    with pytest.raises(EvaluationError, match="without pixels"):
        run("GridSample", np.zeros((1, 1, 0, 2), np.float32), np.zeros((1, 1, 1, 2), np.float32))


@pytest.mark.parametrize("dtype", [np.float16, np.float64, ml_dtypes.bfloat16, np.int32])
def test_types(dtype: Any) -> None:
    x = (IMAGE * 4).astype(dtype)
    result = run("GridSample", x, GRID)
    assert result.dtype == dtype
    exact = run("GridSample", x.astype(np.float64), GRID.astype(np.float64))
    np.testing.assert_allclose(result.astype(np.float64), exact, rtol=0.01, atol=1.01)


@pytest.mark.parametrize(
    ("x", "grid", "expected"),
    [
        ("n,3,h,w", "n,a,b,2", "float[n,3,a,b]"),
        ("n,3,h,w", "", "float[n,3,?,?]"),
        ("", "2,a,b,c,3", "float[2,?,a,b,c]"),
        ("", "", "float"),
    ],
)
def test_shapes(x: str, grid: str, expected: str) -> None:
    text = f"g (float[{x}] x, float[{grid}] g) => (y) {{ y = GridSample(x, g) }}"
    assert inferred(text) == [expected]


@pytest.mark.parametrize(
    ("x", "grid"),
    [("1,3,4,4", "1,2,2,3"), ("1,3,4,4", "2,2,2,2"), ("1,3,4,4", "1,2,2"), ("1,3", "1,2")],
)
def test_grids_that_do_not_fit(x: str, grid: str) -> None:
    with pytest.raises(InferenceError, match="does not fit"):
        inferred(f"g (float[{x}] x, float[{grid}] g) => (y) {{ y = GridSample(x, g) }}")


def test_unknown_rank_cannot_go_down() -> None:
    model = load(one_node("GridSample", {"x": IMAGE, "g": GRID}, ["y"], 20))
    assert model.graph is not None
    for value in model.graph.inputs:
        value.type = value.type.with_shape(None)
    with pytest.raises(ConversionError, match="only images of rank 4"):
        convert_opset(model, 17)


@pytest.mark.parametrize("align", [0, 1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sizes", [(4, 5), (1, 3), (2, 3, 4)])
def test_affine_grid(align: int, dtype: Any, sizes: tuple[int, ...]) -> None:
    count = len(sizes)
    theta = RANDOM.normal(size=(2, count, count + 1)).astype(dtype)
    size = np.int64([2, 3, *sizes])
    inputs = {"t": theta, "s": size}
    content = one_node("AffineGrid", inputs, ["y"], 20, align_corners=align)
    (result,) = run_here(content, inputs)
    lines = [
        np.linspace(-1, 1, n) if align and n > 1 else np.zeros(1) if align
        else (np.arange(n) * 2 + 1) / n - 1 for n in sizes
    ]  # fmt: skip
    for place in np.ndindex(*sizes):
        point = [lines[axis][place[axis]] for axis in range(count)][::-1]
        exact = theta.astype(float) @ np.array([*point, 1.0])
        np.testing.assert_allclose(result[(slice(None), *place)], exact, rtol=1e-4, atol=1e-5)
    assert result.dtype == dtype
    same(run_converted(content, inputs, 19), [result], rtol=1e-4, atol=1e-5)
    same(run_converted(content, inputs, 17), [result], rtol=1e-4, atol=1e-5)
    same(run_converted(content, inputs, 13), [result], rtol=1e-4, atol=1e-5)


def test_affine_grid_shapes() -> None:
    text = "g (float[n,R,C] t) => (y) { s = Constant<value_ints=[SIZES]>() y = AffineGrid(t, s) }"

    def of(rows: int, columns: int, sizes: str) -> list[str]:
        filled = text.replace("R", str(rows), 1).replace("C", str(columns), 1)
        return inferred(filled.replace("SIZES", sizes))

    assert of(2, 3, "2,3,5,6") == ["float[2,5,6,2]"]
    assert of(3, 4, "2,3,5,6,7") == ["float[2,5,6,7,3]"]
    with pytest.raises(InferenceError, match="do not fit images of 2 dimensions"):
        of(3, 4, "2,3,5,6")
    with pytest.raises(InferenceError, match="rank 4 or 5"):
        of(2, 3, "2,3,5")
    assert inferred("g (float[n,2,3] t, int64[4] s) => (y) { y = AffineGrid(t, s) }") == [
        "float[n,?,?,2]"
    ]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_affine_grid_of_narrow_types(dtype: Any) -> None:
    theta, size = np.ones((1, 2, 3)).astype(dtype), np.int64([1, 1, 3, 3])
    assert run("AffineGrid", theta, size).dtype == dtype
    lower = convert_opset(node_model("AffineGrid", [theta, size], opset=22), 17)
    (result,) = run_model(lower, {"i0": theta, "i1": size})
    assert result.dtype == dtype


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_places_that_are_no_numbers(mode: str, padding: str) -> None:
    x = np.arange(1, 10, dtype=np.float32).reshape(1, 1, 3, 3)
    grid = np.zeros((1, 1, 3, 2), np.float32)
    grid[0, 0, 1] = np.nan
    inputs = {"x": x, "grid": grid}
    content = one_node("GridSample", inputs, ["y"], mode=mode, padding_mode=padding)
    (result,) = run_here(content, inputs)
    assert result[0, 0, 0].tolist()[::2] == [5, 5]
    (compiled,) = InferenceSession(content).run(None, inputs)
    np.testing.assert_array_equal(compiled, result)


def test_images_without_channels() -> None:
    x, grid = np.ones((1, 0, 4, 4), np.float32), np.zeros((1, 2, 3, 2), np.float32)
    assert run("GridSample", x, grid).shape == (1, 0, 2, 3)


def test_affine_grid_for_another_batch() -> None:
    with pytest.raises(EvaluationError, match="batches differ: 1 against 2"):
        run("AffineGrid", np.ones((2, 2, 3), np.float32), np.int64([1, 3, 5, 6]))


FAR = np.float32([0.3, 7, 1e3, 2**24, -(2**30) - 64, 1e30, 3e38, -3e38, np.inf, -np.inf, np.nan])


@pytest.mark.parametrize(("mode", "padding", "align"), CASES)
def test_coordinates_far_outside(mode: str, padding: str, align: int) -> None:
    inputs = {"x": IMAGE[:1], "g": np.stack(np.meshgrid(FAR, FAR), -1)[None]}
    how = {"padding_mode": padding, "align_corners": align}
    content = one_node("GridSample", inputs, ["y"], 20, mode=mode, **how)
    (wanted,) = InferenceSession(content, providers=["ReferenceExecutionProvider"]).run(
        None, inputs
    )
    (found,) = InferenceSession(content, providers=["CPUExecutionProvider"]).run(None, inputs)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
