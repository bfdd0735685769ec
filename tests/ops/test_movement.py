"""Elements moved to other places, repeated, or cleared."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from sardonyx.errors import ConversionError, InferenceError
from sardonyx.ops.convert import convert_opset
from tests.ops.direct import inferred, run, text_model
from tests.ops.one_node import load, one_node, run_converted, run_here, run_model, run_there, same

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize("perm", [None, [0, 2, 1], [2, 0, 1], [1, 0, 2]])
def test_transpose(perm: list[int] | None) -> None:
    attributes = {} if perm is None else {"perm": perm}
    content = one_node("Transpose", {"x": X}, ["y"], 13, **attributes)
    same(run_here(content, {"x": X}), run_there(content, {"x": X}))


def test_transpose_shapes() -> None:
    assert inferred("g (float[n,3,m] x) => (y) { y = Transpose<perm=[2,0,1]>(x) }") == [
        "float[m,n,3]"
    ]
    assert inferred("g (float[n,3,m] x) => (y) { y = Transpose(x) }") == ["float[m,3,n]"]
    assert inferred("g (float x) => (y) { y = Transpose(x) }") == ["float[]"]
    for perm in ("0,1", "0,0,1", "0,1,3"):
        with pytest.raises(InferenceError, match="is no order of the dimensions"):
            inferred(f"g (float[n,3,m] x) => (y) {{ y = Transpose<perm=[{perm}]>(x) }}")


@pytest.mark.parametrize("shape", [[2, 3, 4], [5, 2, 3, 4], [1], [2, 1, 1], []])
def test_expand(shape: list[int]) -> None:
    inputs = {"x": X, "s": np.array(shape, np.int64)}
    content = one_node("Expand", inputs, ["y"], 8)
    same(run_here(content, inputs), run_there(content, inputs))


@pytest.mark.parametrize(
    ("x", "shape", "expected"),
    [
        ("n,1", "1,5", "n,5"),
        ("n,1", "4,5", "4,5"),
        ("1", "2,0", "2,0"),
        ("n,m", "2,1,1", "2,n,m"),
    ],
)
def test_expand_of_symbolic_sizes(x: str, shape: str, expected: str) -> None:
    text = f"g (float[{x}] x) => (y) {{ s = Constant<value_ints=[{shape}]>() y = Expand(x, s) }}"
    assert inferred(text) == [f"float[{expected}]"]


def test_impossible_expansions() -> None:
    for shape, message in (("2", "do not broadcast"), ("-1", "negative sizes")):
        text = f"g (float[3] x) => (y) {{ s = Constant<value_ints=[{shape}]>() y = Expand(x, s) }}"
        with pytest.raises(InferenceError, match=message):
            inferred(text)
    assert inferred("g (float[3,1] x, int64[2] s) => (y) { y = Expand(x, s) }") == ["float[3,?]"]
    assert inferred("g (float[3,1] x, int64[n] s) => (y) { y = Expand(x, s) }") == ["float"]


@pytest.mark.parametrize("repeats", [[1, 1, 1], [2, 1, 3], [0, 1, 2]])
def test_tile(repeats: list[int]) -> None:
    inputs = {"x": X, "r": np.int64(repeats)}
    content = one_node("Tile", inputs, ["y"], 6)
    same(run_here(content, inputs), run_there(content, inputs))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_tile_along_one_axis(axis: int) -> None:
    text = f"""g (float[2,3,4] x, float t) => (y) {{
        a = Constant<value = float {{{axis}}}>() y = Tile(x, t, a) }}"""
    (result,) = run_model(text_model(text, 1), {"x": X, "t": np.array(2, np.float32)})
    assert (result == np.concatenate([X, X], axis)).all()
    unknown = text_model(text.replace("float[2,3,4]", "float"), 1)
    assert unknown.graph is not None
    unknown.graph.inputs[0].type = None
    with pytest.raises(ConversionError, match="its rank and its axis must be known"):
        convert_opset(unknown, 6)


def test_tile_shapes() -> None:
    text = "g (float[n,2] x) => (y) { r = Constant<value_ints=[3,2]>() y = Tile(x, r) }"
    assert inferred(text) == ["float[3*n,4]"]
    with pytest.raises(InferenceError, match="3 repetitions do not fit"):
        inferred(text.replace("3,2", "3,2,1"))
    text = text.replace("float[n,2]", "float[3,2]")
    text = text.replace("value_ints=[3,2]", "value=int64[2] {3,2}")
    with pytest.raises(ConversionError, match="before opset 6"):
        convert_opset(text_model(text, 6), 5)


IMAGE = np.arange(2 * 8 * 4 * 6, dtype=np.float32).reshape(2, 8, 4, 6)


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
@pytest.mark.parametrize("operator", ["DepthToSpace", "SpaceToDepth"])
def test_blocks_there_and_back(operator: str, mode: str) -> None:
    content = one_node(operator, {"x": IMAGE}, ["y"], 28, blocksize=2, mode=mode)
    (result,) = run_here(content, {"x": IMAGE})
    other = "SpaceToDepth" if operator == "DepthToSpace" else "DepthToSpace"
    assert (run(other, result, blocksize=2, mode=mode) == IMAGE).all()
    theirs = ReferenceEvaluator(onnx.load_from_string(content)).run(None, {"x": IMAGE})
    same([result], theirs)
    same(run_converted(content, {"x": IMAGE}, 17), [result])
    same(run_converted(content, {"x": IMAGE}, 9), [result])


@pytest.mark.parametrize("operator", ["DepthToSpace", "SpaceToDepth"])
def test_blocks_like_onnxruntime(operator: str) -> None:
    content = one_node(operator, {"x": IMAGE}, ["y"], 13, blocksize=2)
    same(run_here(content, {"x": IMAGE}), run_there(content, {"x": IMAGE}))


@pytest.mark.parametrize(
    ("operator", "x", "expected"),
    [
        ("DepthToSpace", "b,8,h,w", "b,2,2*h,2*w"),
        ("DepthToSpace", "b,c,4,w", "b,c//4,8,2*w"),
        ("SpaceToDepth", "b,8,h,6", "b,32,h//2,3"),
    ],
)
def test_block_shapes(operator: str, x: str, expected: str) -> None:
    text = f"g (float[{x}] x) => (y) {{ y = {operator}<blocksize=2>(x) }}"
    assert inferred(text) == [f"float[{expected}]"]


@pytest.mark.parametrize(
    ("operator", "x", "message"),
    [
        ("DepthToSpace", "1,6,4,4", "do not fill blocks of 4"),
        ("SpaceToDepth", "1,6,5,4", "do not fill"),
        ("SpaceToDepth", "1,6,5", "four dimensions"),
    ],
)
def test_blocks_must_fit(operator: str, x: str, message: str) -> None:
    with pytest.raises(InferenceError, match=message):
        inferred(f"g (float[{x}] x) => (y) {{ y = {operator}<blocksize=2>(x) }}")


@pytest.mark.parametrize(("time", "batch"), [(0, 1), (1, 0)])
def test_reverse_sequence(time: int, batch: int) -> None:
    inputs = {"x": X, "l": np.int64([1, 2, 0][: X.shape[batch]])}
    content = one_node("ReverseSequence", inputs, ["y"], 10, time_axis=time, batch_axis=batch)
    (result,) = run_here(content, inputs)
    expected = X.copy()
    for index, length in enumerate(inputs["l"]):
        rows = np.moveaxis(np.moveaxis(expected, batch, 0)[index], 0, 0)
        rows[:length] = rows[:length][::-1].copy()
    same([result], [expected])
    if min(inputs["l"]):
        same([result], run_there(content, inputs))


def test_reverse_sequence_needs_a_length_for_each() -> None:
    with pytest.raises(InferenceError, match="lengths of another batch"):
        inferred("g (float[4,2] x, int64[3] l) => (y) { y = ReverseSequence(x, l) }")
    with pytest.raises(InferenceError, match="both 1"):
        inferred("g (float[4,2] x, int64[4] l) => (y) "
                 "{ y = ReverseSequence<batch_axis = -1, time_axis = 1>(x, l) }")  # fmt: skip


@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("k", [None, -2, 0, 1, 7])
@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.bool_])
def test_trilu(upper: int, k: int | None, dtype: Any) -> None:
    x = (X + 1).astype(dtype)
    inputs = {"x": x, "k": None if k is None else np.array(k, np.int64)}
    content = one_node("Trilu", inputs, ["y"], 14, upper=upper)
    expected = run_there(content, inputs)
    same(run_here(content, inputs), expected)
    same(run_converted(content, inputs, 13), expected)


def test_trilu_keeps_what_is_not_a_number() -> None:
    x = np.full((2, 2), np.nan, np.float32)
    assert np.isnan(run("Trilu", x)).tolist() == [[True, True], [False, True]]
    model = load(one_node("Trilu", {"x": x}, ["y"], 14))
    (result,) = run_model(convert_opset(model, 13), {"x": x})
    assert np.isnan(result).tolist() == [[True, True], [False, True]]
    with pytest.raises(InferenceError, match="matrices are needed"):
        inferred("g (float[3] x) => (y) { y = Trilu(x) }")
