"""Operators that run graphs."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from sardonyx.errors import ConversionError, EvaluationError, InferenceError
from sardonyx.format.write import write_model
from sardonyx.ops.convert import convert_opset
from tests.ops.direct import inferred, run_text, text_model
from tests.ops.one_node import load, run_here, run_model, run_there, same

X = np.arange(12, dtype=np.float32).reshape(3, 4)

IF = """g (bool c, float[n,4] x) => (float[?,?] y, float[] z) { y, z = If (c) <
    then_branch = t () => (float[n,4] a, float[] b) { a = Neg(x) b = ReduceSum(x) },
    else_branch = e () => (float[m,4] d, float[] f) { d = Concat<axis=0>(x, x)
    f = Identity(x) }> }"""


@pytest.mark.parametrize("condition", [True, False])
def test_if(condition: bool) -> None:
    inputs = {"c": np.array(condition), "x": X}
    content = write_model(text_model(IF, 13)).joined()
    same(run_text(IF, inputs, 13), run_there(content, inputs))


def test_if_joins_what_both_branches_give() -> None:
    text = IF.replace("(float[?,?] y, float[] z)", "(y, z)").replace("float[m,4] d", "d")
    text = text.replace("float[n,4] a", "a").replace("float[] b", "b").replace("float[] f", "f")
    assert inferred(text, 13) == ["float[?,4]", "float[?,?]"]
    known = text.replace("g (bool c, ", "g (").replace(
        "y, z = If", "c = Constant<value = bool {1}>() y, z = If"
    )
    assert inferred(known, 13) == ["float[n,4]", "float[1,1]"]


def test_branches_must_agree() -> None:
    text = """g (bool c, float[2] x) => (y) { y = If (c) <
        then_branch = t () => (a) { a = Neg(x) }, else_branch = e () => (b) { b = Shape(x) }> }"""
    with pytest.raises(InferenceError, match=r"the branches give float\[2\] and int64\[1\]"):
        inferred(text)
    with pytest.raises(EvaluationError, match="has 2 elements"):
        run_text(text.replace("bool c", "bool[2] c"), {"c": np.array([True, True]), "x": X[0, :2]})


LOOP = """g (INPUTS float[1,4] x) => (float[] y, float[] z) { y, z = Loop (M, C, x) <
    body = b (int64 i, bool k, float[] s) => (bool o, float[] t, float[] u) {
        three = Constant<value_int=3>() o = Less(i, three)
        one = Constant<value = float {1}>() t = Add(s, one) u = Mul(t, t) }> }"""


@pytest.mark.parametrize("count", [None, 0, 2, 9])
@pytest.mark.parametrize("condition", [None, True, False])
def test_loop(count: int | None, condition: bool | None) -> None:
    if count is None and condition is None:
        return
    declared, inputs = "", {"x": X[:1]}
    text = LOOP.replace("M,", "m," if count is not None else ",")
    text = text.replace("C,", "c," if condition is not None else ",")
    if count is not None:
        declared, inputs["m"] = declared + "int64 m, ", np.array(count)
    if condition is not None:
        declared, inputs["c"] = declared + "bool c, ", np.array(condition)
    text = text.replace("INPUTS ", declared)
    results = run_text(text, inputs, 13)
    rounds = (
        0
        if condition is False
        else 4
        if count is None
        else min(count, 9 if condition is None else 4)
    )
    assert (results[0] == X[:1] + rounds).all()
    if rounds:
        assert results[1].shape == (rounds, 1, 4)
        assert (results[1][-1] == (X[:1] + rounds) ** 2).all()
    if condition is not None:
        same(results[:1], run_there(write_model(text_model(text, 13)).joined(), inputs)[:1])


def test_rounds_that_were_not_run() -> None:
    text = """g (int64 m, float[2] x) => (y, z) { y, z = Loop (m, , x) <
        body = b (int64 i, bool k, float[2] s) => (bool o, float[2] t, float[3,q] u) {
            o = Identity(k) t = Identity(s) u = Cast<to=1>(w)
            w = Constant<value = int64[3,1] {1,2,3}>() }> }"""
    y, z = run_text(text, {"m": np.array(0), "x": X[0, :2]})
    assert (y.shape, z.shape, z.dtype) == ((2,), (0, 3, 1), np.float32)


def test_an_endless_loop_is_refused() -> None:
    with pytest.raises(EvaluationError, match="never ends"):
        run_text(LOOP.replace("INPUTS ", "").replace("M,", ",").replace("C,", ","), {"x": X[:1]})


@pytest.mark.parametrize("opset", [1, 11, 21])
def test_loop_of_vectors_of_one_number(opset: int) -> None:
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["k"], ["o"]),
            helper.make_node("Identity", ["s"], ["t"]),
            helper.make_node("Identity", ["i"], ["u"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, [1]),
            helper.make_tensor_value_info("k", TensorProto.BOOL, [1]),
            helper.make_tensor_value_info("s", TensorProto.FLOAT, [1]),
        ],
        [
            helper.make_tensor_value_info("o", TensorProto.BOOL, [1]),
            helper.make_tensor_value_info("t", TensorProto.FLOAT, [1]),
            helper.make_tensor_value_info("u", TensorProto.INT64, [1]),
        ],
    )
    graph = helper.make_graph(
        [helper.make_node("Loop", ["m", "c", "x"], ["y", "z"], body=body)],
        "g",
        [
            helper.make_tensor_value_info("m", TensorProto.INT64, [1]),
            helper.make_tensor_value_info("c", TensorProto.BOOL, [1]),
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [1]),
        ],
        [
            helper.make_tensor_value_info("y", TensorProto.FLOAT, [1]),
            helper.make_tensor_value_info("z", TensorProto.INT64, [3, 1]),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    content = model.SerializeToString()
    inputs = {"m": np.int64([3]), "c": np.array([True]), "x": np.float32([1])}
    same(run_here(content, inputs), run_there(content, inputs))


@pytest.mark.parametrize(
    ("state", "body", "expected"),
    [
        ("float[n,4] x", "t = Neg(s)", ["float[n,4]", "float[3,n,4]"]),
        ("float[n,4] x", "t = Concat<axis=0>(s, s)", ["float[?,4]", "float[3,?,4]"]),
        ("float[n,4] x", "a = Constant<value_ints=[0]>() t = Unsqueeze(s, a)", ["float", "float"]),
        ("float[2,n] x", "t = Transpose(s)", ["float[?,?]", "float[3,?,?]"]),
    ],
)
def test_states_that_change_their_shape(state: str, body: str, expected: list[str]) -> None:
    text = f"""g ({state}) => (y, z) {{ m = Constant<value_int=3>() y, z = Loop (m, , x) <
        body = b (int64 i, bool k, s) => (bool o, t, u) {{ o = Identity(k) {body}
        u = Identity(t) }}> }}"""
    assert inferred(text) == expected


def test_constants_in_a_body_stay_known() -> None:
    text = """g (float[n,4] x) => (y, z) { m = Constant<value_int=3>() y, z = Loop (m, , x) <
        body = b (int64 i, bool k, s) => (bool o, t, u) <int64[2] shape = {-1, 2}> {
            o = Identity(k) t = Concat<axis=0>(s, s) u = Reshape(x, shape) }> }"""
    assert inferred(text) == ["float[?,4]", "float[3,2*n,2]"]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [("", "float[3,2]"), ("yes", "float[3,2]"), ("c", "float[?,2]")],
)
def test_number_of_rounds(condition: str, expected: str) -> None:
    text = f"""g (bool c, float[2] x) => (z) {{ m = Constant<value_int=3>()
        yes = Constant<value = bool {{1}}>() y, z = Loop (m, {condition}, x) <
        body = b (int64 i, bool k, s) => (o, t, u) {{ o = Identity(k) t = Neg(s)
        u = Neg(s) }}> }}"""
    assert inferred(text) == [expected]
    if condition == "yes":
        stop = text.replace("o = Identity(k)", "no = Constant<value = bool {0}>() o = Identity(no)")
        assert inferred(stop) == ["float[?,2]"]
        symbolic = text.replace("m = Constant<value_int=3>()", "m = Size(w)").replace(
            "g (bool c,", "g (float[q] w, bool c,"
        )
        assert inferred(symbolic) == ["float[q,2]"]


def test_sequences_as_states() -> None:
    text = """g (int64 m, float[n] x) => (y) { e = SequenceEmpty() y = Loop (m, , e) <
        body = b (int64 i, bool k, seq(float[]) s) => (bool o, seq(float[]) t) {
            o = Identity(k) f = Cast<to=1>(i) a = Add(x, f) t = SequenceInsert(s, a) }> }"""
    (result,) = run_text(text, {"m": np.array(3), "x": X[0, :2]})
    assert [item.tolist() for item in result] == [[0, 1], [1, 2], [2, 3]]
    assert inferred(text) == ["seq(float)"]


def test_loops_in_loops_read_outer_values() -> None:
    text = """g (float x) => (y) { two = Constant<value_int=2>() three = Constant<value_int=3>()
        y = Loop (two, , x) < body = b (int64 i, bool k, float s) => (bool o, float t) {
            o = Identity(k)
            t = Loop (three, , s) < body = c (int64 j, bool l, float p) => (bool q, float r) {
                q = Identity(k) f = Cast<to=1>(i) g = Add(f, x) r = Add(p, g) }> }> }"""
    (result,) = run_text(text, {"x": np.array(1, np.float32)})
    assert result.tolist() == 10


SCAN = """g (float[2] h, float[3,2] x) => (float[2] y, float[] z) { y, z = Scan (h, x) <
    body = b (float[2] s, float[2] e) => (float[2] t, float[2] u) { t = Add(s, e) u = Identity(t) },
    num_scan_inputs = 1 MORE> }"""


@pytest.mark.parametrize("forward", [0, 1])
@pytest.mark.parametrize("back", [0, 1])
@pytest.mark.parametrize(("axis", "out"), [(0, 0), (1, 1), (-1, -1), (1, 0)])
def test_scan(forward: int, back: int, axis: int, out: int) -> None:
    more = f""", scan_input_axes = [{axis}], scan_output_axes = [{out}],
        scan_input_directions = [{forward}], scan_output_directions = [{back}]"""
    text = SCAN.replace("MORE", more)
    x = X[:, :2]
    if axis:
        text = text.replace("float[3,2] x", "float[2,3] x")
        x = np.ascontiguousarray(x.T)
    inputs = {"h": np.float32([1, 2]), "x": x}
    results = run_text(text, inputs, 11)
    same(results, run_there(write_model(text_model(text, 11)).joined(), inputs))
    wanted = "[3,2]" if out == 0 else "[2,3]"
    types = inferred(text.replace("(float[2] y, float[] z)", "(y, z)"), 11)
    assert types == ["float[2]", f"float{wanted}"]


def test_scan_over_symbolic_and_empty_lengths() -> None:
    text = SCAN.replace("MORE", "").replace("float[3,2] x", "float[n,2] x")
    assert inferred(text.replace("(float[2] y, float[] z)", "(y, z)")) == ["float[2]", "float[n,2]"]
    y, z = run_text(text, {"h": np.float32([1, 2]), "x": np.zeros((0, 2), np.float32)})
    assert (y.tolist(), z.shape) == ([1, 2], (0, 2))


def test_scan_needs_inputs_of_one_length() -> None:
    text = """g (float[3] a, float[4] b) => (z) { z = Scan (a, b) <num_scan_inputs = 2,
        body = c (float d, float e) => (float f) { f = Add(d, e) }> }"""
    with pytest.raises(InferenceError, match="different lengths"):
        inferred(text)
    with pytest.raises(EvaluationError, match="have the lengths"):
        run_text(text, {"a": X[0, :3], "b": X[0]})
    with pytest.raises(ConversionError, match="before opset 9"):
        convert_opset(text_model(text, 9), 8)


def batched(lengths: bool, directions: list[int] | None) -> bytes:
    """A scan of opset 8: running sums over each sample of a batch, and their doubles."""
    body = helper.make_graph(
        [
            helper.make_node("Add", ["s", "e"], ["t"]),
            helper.make_node("Add", ["t", "t"], ["u"]),
        ],
        "body",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "se"],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "tu"],
    )
    attributes: dict[str, Any] = {"body": body, "num_scan_inputs": 1}
    if directions:
        attributes["directions"] = directions
    node = helper.make_node("Scan", ["l" if lengths else "", "h", "x"], ["y", "z"], **attributes)
    inputs = [
        helper.make_tensor_value_info("h", TensorProto.FLOAT, [2, 2]),
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3, 2]),
    ]
    if lengths:
        inputs.insert(0, helper.make_tensor_value_info("l", TensorProto.INT64, [2]))
    outputs = [
        helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 2]),
        helper.make_tensor_value_info("z", TensorProto.FLOAT, [2, 3, 2]),
    ]
    graph = helper.make_graph([node], "g", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 8)], ir_version=8)
    return model.SerializeToString()


@pytest.mark.parametrize("lengths", [None, [3, 1], [2, 3]])
@pytest.mark.parametrize("directions", [None, [1]])
def test_scan_over_a_batch(lengths: list[int] | None, directions: list[int] | None) -> None:
    content = batched(lengths is not None, directions)
    inputs = {"h": X[:2, :2].copy(), "x": X.reshape(2, 3, 2)}
    if lengths is not None:
        inputs["l"] = np.int64(lengths)
    expected = run_there(content, inputs)
    same(run_here(content, inputs), expected)
    upper = convert_opset(load(content), 9)
    onnx.checker.check_model(onnx.load_from_string(write_model(upper).joined()))
    same(run_model(upper, inputs), expected)
    same(run_there(write_model(upper).joined(), inputs), expected)
