"""Sequences of tensors."""

from typing import Any

import numpy as np
import onnx
import pytest

from sardonyx.errors import ConversionError, EvaluationError, InferenceError
from sardonyx.format.write import write_model
from sardonyx.ops.convert import convert_opset
from tests.ops.direct import inferred, run, run_text, text_model
from tests.ops.one_node import run_model, run_there, same

A, B, C = (np.full((2, size), size, np.float32) for size in (1, 2, 3))
X = np.arange(12, dtype=np.float32).reshape(3, 4)


def lists(result: Any) -> Any:
    """A sequence as nested lists."""
    return [item.tolist() for item in result]


@pytest.mark.parametrize("position", [0, 1, 2, -1, -3])
@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_one_element(position: int, kind: Any) -> None:
    sequence = [A, B, C]
    place = np.array(position, kind)
    assert (run("SequenceAt", sequence, place) == sequence[position]).all()
    left = run("SequenceErase", sequence, place)
    rest = sequence[:]
    del rest[position]
    assert lists(left) == lists(rest)
    longer = run("SequenceInsert", sequence, A, place)
    more = sequence[:]
    more.insert(position, A)
    assert lists(longer) == lists(more)
    assert len(sequence) == 3


def test_defaults_are_the_end() -> None:
    assert lists(run("SequenceErase", [A, B])) == lists([A])
    assert lists(run("SequenceInsert", [A], B)) == lists([A, B])
    assert lists(run("SequenceInsert", [A], B, np.int64(1))) == lists([A, B])
    assert run("SequenceLength", [A, B]).tolist() == 2
    assert run("SequenceLength", [A, B]).shape == ()
    assert run("SequenceEmpty") == []
    assert lists(run("SequenceConstruct", A, B)) == lists([A, B])


@pytest.mark.parametrize("position", [2, -3])
def test_positions_outside(position: int) -> None:
    place = np.int64(position)
    for operator in ("SequenceAt", "SequenceErase"):
        with pytest.raises(EvaluationError, match=f"position {position} is not between -2 and 1"):
            run(operator, [A, B], np.array(place))
    with pytest.raises(EvaluationError, match="is not between"):
        run("SequenceInsert", [A, B], A, np.array(place * 2))


@pytest.mark.parametrize("split", [None, 1, 2, 3, [1, 3], [2, 0, 2]])
@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("axis", [1, -1])
def test_split_to_sequence(split: Any, keepdims: int, axis: int) -> None:
    text = """g (float[3,4] x, int64[] s) => (n, a) {
        q = SplitToSequence<axis=AXIS, keepdims=KEEP>(x, s)
        n = SequenceLength(q) zero = Constant<value_int=0>() a = SequenceAt(q, zero) }"""
    text = text.replace("AXIS", str(axis)).replace("KEEP", str(keepdims))
    inputs = {"x": X}
    if split is None:
        text = text.replace("(x, s)", "(x)").replace(", int64[] s", "")
    else:
        inputs["s"] = np.array(split, np.int64)
    results = run_text(text, inputs, 11)
    model = write_model(text_model(text, 11)).joined()
    theirs = onnx.load_from_string(model)
    for name in theirs.graph.output:
        name.type.tensor_type.elem_type = 7 if name.name == "n" else 1
    if keepdims or split is None or isinstance(split, list):
        same(results, run_there(theirs.SerializeToString(), inputs))
    else:
        assert results[1].shape == (3, split)


def test_split_that_does_not_fit() -> None:
    with pytest.raises(EvaluationError, match="do not make up 4"):
        run("SplitToSequence", X, np.int64([1, 2]), axis=1)
    with pytest.raises(EvaluationError, match="parts of 0 elements"):
        run("SplitToSequence", X, np.int64(0), axis=1)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("new", [0, 1])
def test_concat_from_sequence(axis: int, new: int) -> None:
    inputs = {"a": X, "b": X + 1}
    text = f"""g (float[3,4] a, float[3,4] b) => (float[] y) {{ q = SequenceConstruct(a, b)
        y = ConcatFromSequence<axis={axis}, new_axis={new}>(q) }}"""
    content = write_model(text_model(text, 11)).joined()
    same(run_text(text, inputs, 11), run_there(content, inputs))
    with pytest.raises(EvaluationError, match="empty sequence"):
        run_text("g () => (y) { q = SequenceEmpty() y = ConcatFromSequence<axis=0>(q) }", {})


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("y = SequenceConstruct(x, x)", "seq(float[n,4])"),
        ("y = SequenceConstruct(x, z)", "seq(float[?,4])"),
        ("y = SequenceEmpty<dtype=7>()", "seq(int64)"),
        ("q = SequenceConstruct(x) y = SequenceAt(q, i)", "float[n,4]"),
        ("q = SequenceConstruct(x) y = SequenceErase(q)", "seq(float[n,4])"),
        ("q = SequenceConstruct(x) y = SequenceInsert(q, z)", "seq(float[?,4])"),
        ("q = SequenceConstruct(x) y = SequenceLength(q)", "int64[]"),
        ("y = SplitToSequence<axis=1>(x)", "seq(float[n,1])"),
        ("y = SplitToSequence<axis=1, keepdims=0>(x)", "seq(float[n])"),
        ("y = SplitToSequence<axis=1>(x, two)", "seq(float[n,2])"),
        ("y = SplitToSequence<axis=1>(x, three)", "seq(float[n,?])"),
        ("y = SplitToSequence<axis=1>(x, parts)", "seq(float[n,2])"),
        ("q = SequenceConstruct(x) y = ConcatFromSequence<axis=0>(q)", "float[?,4]"),
        ("q = SequenceConstruct(x) y = ConcatFromSequence<axis=-1, new_axis=1>(q)", "float[n,4,?]"),
        ("q = Identity(s) y = SequenceAt(q, i)", "float[k]"),
    ],
)
def test_types(body: str, expected: str) -> None:
    text = f"""g (float[n,4] x, float[m,4] z, int64 i, seq(float[k]) s) => (y) {{
        two = Constant<value_int=2>() three = Constant<value_int=3>()
        parts = Constant<value_ints=[2,2]>()
        {body} }}"""
    assert inferred(text) == [expected]


def test_contradictions() -> None:
    with pytest.raises(InferenceError, match="does not go into a sequence"):
        inferred("g (seq(float[k]) s, int64[k] x) => (y) { y = SequenceInsert(s, x) }")
    with pytest.raises(InferenceError, match="a sequence is needed"):
        inferred("g (float[k] x, int64 i) => (y) { y = SequenceAt(x, i) }")


MAP = """g (seq(float[n]) s, MORE) => (y) { y = SequenceMap(s, m)
    <body = b (float[n] a, float[k] c) => (float[n] d) { d = Mul(a, c) }> }"""


@pytest.mark.parametrize("more", ["float[1] m", "seq(float[1]) m"])
def test_map(more: str) -> None:
    text = MAP.replace("MORE", more)
    sequence = [np.float32([1, 2]), np.float32([3])]
    factors = np.float32([2]) if more.startswith("float") else [np.float32([2]), np.float32([5])]
    (result,) = run_text(text, {"s": sequence, "m": factors}, 17)
    assert lists(result) == ([[2, 4], [6]] if more.startswith("float") else [[2, 4], [15]])
    lower = convert_opset(text_model(text, 17), 16)
    assert lower.graph is not None
    assert "Loop" in [node.op_type for node in lower.graph.nodes]
    written = onnx.load_from_string(write_model(lower).joined())
    written.graph.output[0].type.CopyFrom(written.graph.input[0].type)
    onnx.checker.check_model(written)
    (again,) = run_model(lower, {"s": sequence, "m": factors})
    assert lists(again) == lists(result)
    assert run_model(convert_opset(lower, 13), {"s": [], "m": factors}) == [[]]


def test_map_types_and_several_outputs() -> None:
    text = """g (seq(float[n,3]) s, float[n,3] t) => (y, z) { y, z = SequenceMap(s)
        <body = b (float[n,3] a) => (float[n,3] c, int64[2] d) { c = Add(a, t) d = Shape(a) }> }"""
    assert inferred(text, 17) == ["seq(float[n,3])", "seq(int64[2])"]
    inputs = {"s": [np.ones((2, 3), np.float32)], "t": np.ones((2, 3), np.float32)}
    expected = run_text(text, inputs, 17)
    lower = convert_opset(text_model(text, 17), 16)
    again = run_model(lower, inputs)
    assert [lists(item) for item in again] == [lists(item) for item in expected]


def test_map_needs_declared_types_to_go_down() -> None:
    model = text_model(MAP.replace("MORE", "float[1] m"), 17)
    assert model.graph is not None
    body = next(model.graph.nodes[0].subgraphs)
    body.outputs[0].type = None
    body.inputs[0].type = None
    body.inputs[1].type = None
    model.graph.inputs[0].type = None
    model.graph.inputs[1].type = None
    with pytest.raises(ConversionError, match="must be declared"):
        convert_opset(model, 16)
