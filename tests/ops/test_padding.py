"""Tensors made larger or smaller at their edges."""

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from sardonyx.errors import ConversionError, EvaluationError, InferenceError
from sardonyx.ops.convert import convert_opset
from tests.ops.direct import inferred, run, text_model
from tests.ops.one_node import load, one_node, run_converted, run_here, run_model, run_there, same

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
@pytest.mark.parametrize("pads", [[0, 1, 2, 0, 2, 3], [0, 0, 0, 0, 0, 0], [0, 2, 0, 0, 0, 1]])
def test_pad(mode: str, pads: list[int]) -> None:
    inputs = {"x": X, "p": np.int64(pads)}
    content = one_node("Pad", inputs, ["y"], 19, mode=mode)
    expected = run_there(content, inputs)
    same(run_here(content, inputs), expected)
    same(run_converted(content, inputs, 11), expected)


@pytest.mark.parametrize("mode", ["reflect", "wrap", "edge"])
def test_far_padding(mode: str) -> None:
    x, pads = np.arange(3, dtype=np.float32), np.int64([7, 8])
    result = run("Pad", x, pads, mode=mode)
    assert result.tolist() == np.pad(x, (7, 8), mode).tolist()  # type: ignore[call-overload]
    one = run("Pad", x[:1], pads, mode=mode)
    assert one.tolist() == [0] * 16


@pytest.mark.parametrize("pads", [[0, -1, 1, 0, 0, -2], [-1, 0, 0, 0, -1, -1], [-2, 0, 0, 0, 0, 0]])
def test_negative_amounts_cut(pads: list[int]) -> None:
    inputs = {"x": X, "p": np.int64(pads), "v": np.array(7, np.float32)}
    content = one_node("Pad", inputs, ["y"], 13)
    same(run_here(content, inputs), run_there(content, inputs))


@pytest.mark.parametrize("axes", [[1], [2, 0], [-1, 1]])
@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_some_dimensions(axes: list[int], kind: Any) -> None:
    amounts = np.arange(1, 2 * len(axes) + 1, dtype=np.int64)
    inputs = {"x": X, "p": amounts, "v": np.array(5, np.float32), "a": np.array(axes, kind)}
    content = one_node("Pad", inputs, ["y"], 18)
    expected = run_there(content, inputs)
    same(run_here(content, inputs), expected)
    same(run_converted(content, inputs, 17), expected)


@pytest.mark.parametrize("opset", [1, 2])
@pytest.mark.parametrize("value", [0.0, 2.5])
def test_pad_by_attributes(opset: int, value: float) -> None:
    attributes = {"paddings" if opset == 1 else "pads": [0, 1, 0, 0, 0, 2]}
    content = one_node("Pad", {"x": X}, ["y"], opset, mode="constant", value=value, **attributes)
    (result,) = run_here(content, {"x": X})
    expected = np.pad(X, ((0, 0), (1, 0), (0, 2)), constant_values=value)
    same([result], [expected])
    half = X.astype(np.float16)
    content = one_node("Pad", {"x": half}, ["y"], opset, value=value, **attributes)
    (result,) = run_here(content, {"x": half})
    same([result], [expected.astype(np.float16)])


def test_wrapping_some_dimensions() -> None:
    inputs = {"x": X, "p": np.int64([2, -1]), "v": None, "a": np.int64([1])}
    content = one_node("Pad", inputs, ["y"], 19, mode="wrap")
    same(run_converted(content, inputs, 17), run_here(content, inputs))
    model = load(content)
    assert model.graph is not None
    model.graph.inputs[0].type = model.graph.inputs[0].type.with_shape(None)
    with pytest.raises(ConversionError, match="the rank is not known"):
        convert_opset(model, 17)


def test_constant_amounts_go_down_to_attributes() -> None:
    text = """g (float[2] x) => (float[5] y) { p = Constant<value = int64[2] {1, 2}>()
        v = Constant<value = float {3}>() y = Pad(x, p, v) }"""
    x = np.float32([8, 9])
    for opset in (10, 1):
        lower = convert_opset(text_model(text, 11), opset)
        same(run_model(lower, {"x": x}), [np.float32([3, 8, 9, 3, 3])])
    with pytest.raises(ConversionError, match="the value to pad with is computed"):
        inputs = "g (float[2] x, float v)"
        changed = text.replace("g (float[2] x)", inputs).replace(
            "v = Constant<value = float {3}>()", ""
        )
        convert_opset(text_model(changed, 11), 10)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("Pad(x, four)", "float[n+4,m+6]"),
        ("Pad(x, two, , last)", "float[n,m+3]"),
        ("Pad(x, sizes)", "float[2*n,2*m]"),
        ("Pad(x, any)", "float[?,?]"),
        ("Pad(x, two, , axes)", "float[?,?]"),
    ],
)
def test_pad_shapes(call: str, expected: str) -> None:
    text = f"""g (float[n,m] x, int64[4] any, int64[1] axes) => (y) {{
        four = Constant<value_ints=[1,2,3,4]>() two = Constant<value_ints=[1,2]>()
        last = Constant<value_ints=[-1]>() shape = Shape(x) none = Constant<value_ints=[0,0]>()
        sizes = Concat<axis=0>(none, shape) y = {call} }}"""
    assert inferred(text) == [expected]


def test_pad_of_unknown_rank() -> None:
    text = "g (float[] x) => (y) { p = Constant<value_ints=[1,2,3,4]>() y = Pad(x, p) }"
    assert inferred(text) == ["float[?,?]"]


@pytest.mark.parametrize(
    ("pads", "mode", "message"),
    [
        ("1,2,3", "constant", "3 amounts do not pad 1 dimensions"),
        ("-3,-3", "constant", "take more than there is"),
        ("1,1", "mirror", "mode 'mirror' is not one of"),
    ],
)
def test_wrong_pads(pads: str, mode: str, message: str) -> None:
    text = (
        f"g (float[4] x) => (y) {{ p = Constant<value_ints=[{pads}]>() y = "
        f'Pad<mode="{mode}">(x, p) }}'
    )
    with pytest.raises(InferenceError, match=message):
        inferred(text)


def test_nothing_cannot_be_reflected() -> None:
    empty = np.zeros(0, np.float32)
    assert run("Pad", empty, np.int64([1, 1])).tolist() == [0, 0]
    with pytest.raises(EvaluationError, match="size 0 cannot be padded"):
        run("Pad", empty, np.int64([1, 1]), mode="edge")


@pytest.mark.parametrize("dtype", [bool, object, ml_dtypes.int4, ml_dtypes.bfloat16, np.complex64])
def test_pad_of_any_type(dtype: Any) -> None:
    x = np.array([1, 0]).astype(dtype) if dtype is not object else np.array(["a", "b"], object)
    result = run("Pad", x, np.int64([1, 0]))
    assert result.dtype == x.dtype and result[1:].tolist() == x.tolist()
    assert result[0] == ("" if dtype is object else x[1])


def test_a_scalar_has_no_edges() -> None:
    assert run("Pad", np.array(3, np.float32), np.zeros(0, np.int64), mode="edge").shape == ()


@pytest.mark.parametrize("shape", [[2, 3, 4], [4, 1, 9], [1, 6, 4], [3, 2, 3]])
@pytest.mark.parametrize("axes", [None, [0, 2], [-1]])
def test_center_crop_pad(shape: list[int], axes: list[int] | None) -> None:
    wanted = shape if axes is None else [shape[axis] for axis in axes]
    inputs = {"x": X, "s": np.int64(wanted)}
    attributes = {} if axes is None else {"axes": axes}
    content = one_node("CenterCropPad", inputs, ["y"], 18, **attributes)
    theirs = ReferenceEvaluator(onnx.load_from_string(content)).run(None, inputs)
    same(run_here(content, inputs), theirs)
    same(run_converted(content, inputs, 17), theirs)


def test_center_crop_pad_shapes() -> None:
    text = "g (float[n,m] x, int64[1] s) => (y) { y = CenterCropPad<axes=[1]>(x, s) }"
    assert inferred(text) == ["float[n,?]"]
    constant = (
        "g (float[n,m] x) => (y) { s = Constant<value_ints=[5]>() y = "
        "CenterCropPad<axes=[1]>(x, s) }"
    )
    assert inferred(constant) == ["float[n,5]"]
    with pytest.raises(InferenceError, match="1 sizes do not fit 2 dimensions"):
        inferred(constant.replace("<axes=[1]>", ""))
    model = load(one_node("CenterCropPad", {"x": X, "s": np.int64([1, 1, 1])}, ["y"], 18))
    assert convert_opset(model, 17).opset == 17


def test_sizes_that_no_tensor_has() -> None:
    x, pads = np.ones((3, 0), np.float32), np.int64([2**63 - 1, 0, 0, 0])
    with pytest.raises(EvaluationError, match="a size would be 9223372036854775810"):
        run("Pad", x, pads)
