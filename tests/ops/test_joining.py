"""Tensors put together along a dimension, and taken apart."""

import numpy as np
import pytest

from sardonyx.dtypes import DataType
from sardonyx.errors import ConversionError, EvaluationError, InferenceError, SardonyxError
from sardonyx.ops.convert import convert_opset
from sardonyx.ops.fact import of_array, tensor
from sardonyx.ops.joining import Concat
from tests.ops.direct import inferred, run, run_text, text_model
from tests.ops.one_node import load, one_node, run_converted, run_here, run_model, run_there, same

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_concat(axis: int) -> None:
    inputs = {"a": X, "b": np.take(X, [0], axis) + 1, "c": np.take(X, [], axis)}
    content = one_node("Concat", inputs, ["y"], 13, axis=axis)
    same(run_here(content, inputs), run_there(content, inputs))
    same(run_converted(content, inputs, 9), run_there(content, inputs))


def test_concat_had_a_default_axis() -> None:
    content = one_node("Concat", {"a": X, "b": X}, ["y"], 3)
    (result,) = run_here(content, {"a": X, "b": X})
    assert result.shape == (2, 6, 4)


@pytest.mark.parametrize(
    ("a", "b", "axis", "expected"),
    [
        ("n,3", "m,3", 0, "m+n,3"),
        ("n,3", "n,k", 1, "n,k+3"),
        ("n,3", "2,3", -1, "2,6"),
        ("?,3", "4,3", 0, "?,3"),
    ],
)
def test_concat_shapes(a: str, b: str, axis: int, expected: str) -> None:
    text = f"g (float[{a}] a, float[{b}] b) => (y) {{ y = Concat<axis={axis}>(a, b) }}"
    assert inferred(text) == [f"float[{expected}]"]


def test_concat_of_unknown_ranks() -> None:
    text = "g (float[2,3] a, float[] b) => (y) { y = Concat<axis=0>(a, b) }"
    assert inferred(text) == ["float[?,3]"]
    assert inferred(text.replace("float[2,3]", "float[]")) == ["float"]


@pytest.mark.parametrize(
    ("a", "b", "axis", "message"),
    [
        ("2,3", "2,4", 0, "dimension 1 of tensors that join along 0 differs"),
        ("2,3", "2,3,4", 0, "do not join"),
        ("2,3", "2,3", 2, "axis 2 does not fit"),
    ],
)
def test_what_does_not_join(a: str, b: str, axis: int, message: str) -> None:
    with pytest.raises(InferenceError, match=message):
        inferred(f"g (float[{a}] a, float[{b}] b) => (y) {{ y = Concat<axis={axis}>(a, b) }}")


@pytest.mark.parametrize("split", [None, [1, 2], [0, 3]])
@pytest.mark.parametrize("opset", [2, 11])
def test_split_by_an_attribute(split: list[int] | None, opset: int) -> None:
    x, axis = (X, 1) if split else (X, 0)
    attributes = {"split": split} if split else {}
    content = one_node("Split", {"x": x}, ["a", "b"], opset, axis=axis, **attributes)
    same(run_here(content, {"x": x}), run_there(content, {"x": x}))


@pytest.mark.parametrize("axis", [1, -2])
def test_split_by_an_input(axis: int) -> None:
    inputs = {"x": X, "s": np.int64([1, 2])}
    for opset in (13, 18):
        content = one_node("Split", inputs, ["a", "b"], opset, axis=axis)
        expected = run_there(content, inputs)
        same(run_here(content, inputs), expected)
    same(run_converted(content, inputs, 13), expected)
    with pytest.raises(ConversionError, match="'split' is computed"):
        run_converted(content, inputs, 12)


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_split_into_a_number_of_parts(count: int) -> None:
    x = np.arange(14, dtype=np.float32).reshape(2, 7)
    names = [f"y{index}" for index in range(count)]
    content = one_node("Split", {"x": x}, names, 18, axis=1, num_outputs=count)
    expected = run_there(content, {"x": x})
    same(run_here(content, {"x": x}), expected)
    same(run_converted(content, {"x": x}, 13), expected)


def test_equal_split_names_its_number_of_parts() -> None:
    content = one_node("Split", {"x": X}, ["a", "b"], 13, axis=0)
    upper = convert_opset(load(content), 18)
    assert upper.graph is not None
    assert upper.graph.nodes[0].attribute("num_outputs") == 2
    same(run_model(upper, {"x": X}), run_there(content, {"x": X}))


def test_first_split_takes_constants_only() -> None:
    text = """g (float[5] x) => (a, b) { s = Constant<value = float[2] {2, 3}>()
        a, b = Split<axis=0>(x, s) }"""
    a, b = run_text(text, {"x": np.arange(5, dtype=np.float32)}, 1)
    assert (a.tolist(), b.tolist()) == ([0, 1], [2, 3, 4])
    with pytest.raises(ConversionError, match="'split' is computed"):
        convert_opset(
            text_model("g (float[5] x, float[2] s) => (a, b) { a, b = Split(x, s) }", 1), 2
        )


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("Split<axis=1, num_outputs=2>(x)", ["float[n,2]", "float[n,2]"]),
        ("Split<axis=0, num_outputs=2>(x)", ["float[(n+1)//2,4]", "float[n-(n+1)//2,4]"]),
        ("Split<axis=0>(x, parts)", ["float[1,4]", "float[3,4]"]),
        ("Split<axis=0>(x, given)", ["float[?,4]", "float[?,4]"]),
        ("Split<axis=0>(x, some)", ["float[?,4]", "float[?,4]"]),
    ],
)
def test_split_shapes(call: str, expected: list[str]) -> None:
    text = f"""g (float[n,4] x, int64[2] given, int64[k] some) => (a, b) {{
        parts = Constant<value_ints=[1,3]>() a, b = {call} }}"""
    assert inferred(text) == expected


def test_split_by_symbolic_sizes() -> None:
    text = """g (float[m,4] x, float[n] y) => (a, b) { n = Shape(y) m = Shape<end=1>(x)
        rest = Sub(m, n) sizes = Concat<axis=0>(n, rest) a, b = Split<axis=0>(x, sizes) }"""
    assert inferred(text) == ["float[n,4]", "float[m-n,4]"]


def test_wrong_splits() -> None:
    text = (
        "g (float[7] x) => (a, b) { s = Constant<value_ints=[3,3]>() a, b = Split<axis=0>(x, s) }"
    )
    with pytest.raises(InferenceError, match="do not make up 7"):
        inferred(text)
    with pytest.raises(EvaluationError, match="do not make up 7"):
        run_text(text, {"x": np.zeros(7, np.float32)})
    with pytest.raises(InferenceError, match="negative"):
        inferred(text.replace("3,3", "8,-1"))
    with pytest.raises(InferenceError, match="3 parts do not fit 2 outputs"):
        inferred(text.replace("3,3", "3,3,1"))


def test_parts_of_nothing() -> None:
    parts = run("Split", np.zeros((0, 2), np.float32), outputs=2, axis=0, num_outputs=2)
    assert [part.shape for part in parts] == [(0, 2), (0, 2)]


@pytest.mark.parametrize("count", [2, 2**31, 2**63 - 1])
def test_other_parts_than_outputs_are_refused_at_once(count: int) -> None:
    outputs = "(float[a] y, float[b] z, float[c] w)"
    text = f"g (float[n] x) => {outputs} {{ y, z, w = Split<num_outputs = {count}>(x) }}"
    message = f"{count} parts do not fit 3 outputs"
    with pytest.raises(InferenceError, match=message):
        inferred(text)
    with pytest.raises(SardonyxError, match=message):
        run_text(text, {"x": np.ones(6, np.float32)})
    with pytest.raises(SardonyxError, match=message):
        convert_opset(text_model(text), 17)


@pytest.mark.parametrize(("count", "known"), [(512, True), (513, False)])
def test_joined_constants_are_followed_up_to_a_size(count: int, known: bool) -> None:
    piece = of_array(np.arange(count))
    fact = Concat.infer(piece, piece, axis=0)
    assert (fact.value is not None) == known and fact.shape == (2 * count,)


def test_joined_sizes_are_known_in_part() -> None:
    vector = tensor(DataType.INT64, (2,))
    one, other = of_array(np.int64([3])), tensor(DataType.INT64, (1,))
    assert Concat.infer(other, vector, axis=0).value is None
    assert Concat.infer(one, of_array(np.int64([4])), axis=0).value.tolist() == [3, 4]
    partly = Concat.infer(one, other, axis=0).sizes()
    assert partly is not None and partly[0] == 3 and len(partly) == 2
    floats = of_array(np.float32([3]))
    assert Concat.infer(floats, tensor(DataType.FLOAT, (1,)), axis=0).value is None
