"""Models that compute in 16 bits: same inputs and outputs, close results, sound graphs."""

import numpy as np
import pytest

import sardonyx as sx
from tests.shared_models import FOLDER, needs_models

HEAD = '<ir_version: 10, opset_import: ["": 21]>'


def casts(model: sx.Model) -> list[tuple[str, int]]:
    """Every node in order, with what casts lead to."""
    assert model.graph is not None
    return [
        (node.op_type, node.attribute("to", 0) if node.op_type == "Cast" else 0)
        for node in model.graph.nodes
    ]


@pytest.mark.parametrize(("to", "number"), [("float16", 10), ("bfloat16", 16)])
def test_a_product(to: str, number: int) -> None:
    model = sx.load_text(
        HEAD + "g (float[n,2] x) => (float[n,2] y) <float[2,2] w = {1, 2, 3, 4}>"
        "{ p = MatMul(x, w)  y = Relu(p) }"
    )
    half = sx.convert_floats(model, to)
    sx.check(half, full=True)
    assert casts(half) == [("Cast", number), ("MatMul", 0), ("Relu", 0), ("Cast", 1)]
    assert half.graph is not None
    (weight,) = half.graph.initializers
    assert (weight.name, weight.tensor.dtype) == ("w", sx.DataType(number))
    assert [(v.name, str(v.type)) for v in half.graph.inputs] == [("x", "float[n,2]")]
    assert [(v.name, str(v.type)) for v in half.graph.outputs] == [("y", "float[n,2]")]
    x = np.array([[1, -1], [0.5, 2]], np.float32)
    assert sx.evaluate(half, {"x": x})[0].tolist() == sx.evaluate(model, {"x": x})[0].tolist()
    assert model.graph is not None and len(model.graph.nodes) == 2, "the original is left alone"


def test_what_does_not_take_the_type_stays_wide() -> None:
    """Resize keeps its scales, a sequence its elements, and an unknown operator all it reads."""
    model = sx.load_text(
        '<ir_version: 10, opset_import: ["": 21, "other": 1]>'
        "g (float[1,1,2,2] x) => (float[1,1,4,4] y, float[1,1,2,2] z) "
        "<float[4] scales = {1, 1, 2, 2}>"
        '{ y = Resize<mode = "nearest">(x, , scales)  a = Abs(x)  z = other.Thing(a) }'
    )
    half = sx.convert_floats(model, "float16")
    assert half.graph is not None
    assert half.graph.value("scales").tensor.dtype == sx.DataType.FLOAT
    thing = next(node for node in half.graph.nodes if node.op_type == "Thing")
    assert thing.inputs[0].producer.attribute("to") == int(sx.DataType.FLOAT)


def test_numbers_at_the_limits(caplog: pytest.LogCaptureFixture) -> None:
    model = sx.load_text(
        HEAD + "g (float[2] x) => (float[2] y, float[2] z)"
        "<float[2] mask = {0, -3e38}, float epsilon = {1e-12}>"
        "{ y = Add(x, mask)  z = Add(x, epsilon) }"
    )
    half = sx.convert_floats(model, "float16")
    assert half.graph is not None
    names = {value.name: value.tensor for value in half.graph.initializers}
    assert names["mask"].numpy().tolist() == [0, -65504]
    assert names["epsilon"].dtype == sx.DataType.FLOAT
    assert "1 constants held numbers too large" in caplog.text
    kept = sx.load_text(
        HEAD + "g (float[3] x) => (float[3] y) <float[3] w = {inf, -inf, nan}> { y = Add(x, w) }"
    )
    (weight,) = sx.convert_floats(kept, "float16").graph.initializers
    assert [str(item) for item in weight.tensor.numpy()] == ["inf", "-inf", "nan"]


def test_subgraphs_read_outer_values_and_return_wide_ones() -> None:
    model = sx.load_text(
        HEAD + "g (float[n] x, bool c) => (float[n] y, float[n] t) <float[1] w = {2}> {"
        " t = Mul(x, w)"
        " y = If(c) <then_branch = a () => (float[n] p) { p = Mul(t, w) },"
        " else_branch = b () => (t) { }> }"
    )
    half = sx.convert_floats(model, "float16")
    sx.check(half, full=True)
    for choice in (True, False):
        feeds = {"x": np.array([1.5], np.float32), "c": np.array(choice)}
        found, expected = sx.evaluate(half, feeds), sx.evaluate(model, feeds)
        assert [item.tolist() for item in found] == [item.tolist() for item in expected]
        assert {item.dtype for item in found} == {np.dtype(np.float32)}


def test_functions_and_an_output_that_is_returned_twice() -> None:
    model = sx.load_text(
        '<ir_version: 10, opset_import: ["": 21, "local": 1]>'
        "g (float[2] x) => (float[2] y, float[2] y) { y = local.Twice(x) }"
        '<domain: "local", opset_import: ["": 21]> Twice (a) => (b) { b = Add(a, a) }'
    )
    half = sx.convert_floats(model, "bfloat16")
    assert [item.tolist() for item in sx.evaluate(half, {"x": np.ones(2, np.float32)})] == [
        [2, 2], [2, 2],
    ]  # fmt: skip


def test_mistakes() -> None:
    model = sx.load("examples/digits.onnx")
    with pytest.raises(sx.ConversionError, match="choose float16 or bfloat16"):
        sx.convert_floats(model, "float8")
    old = sx.convert_opset(model, 9)
    with pytest.raises(sx.ConversionError, match="takes bfloat16 at opset 9"):
        sx.convert_floats(old, "bfloat16")


@needs_models
@pytest.mark.parametrize(
    ("name", "most"),
    [("cnn_mnist_pytorch", 1e-3), ("deeploy_cct2", 5e-3), ("loop_lstm_tiny", 5e-3),
     ("mnist_8", 5e-3), ("scan_rnn", 5e-3), ("voice_commands", 5e-3)],
)  # fmt: skip
def test_real_models_are_close_and_open_elsewhere(name: str, most: float) -> None:
    runtime = pytest.importorskip("onnxruntime")
    model = sx.load(FOLDER / name / "model.onnx")
    recorded = np.load(FOLDER / name / "case0.npz")
    feeds = {key[3:]: recorded[key] for key in recorded.files if key.startswith("in:")}
    half = sx.convert_floats(model, "float16")
    sx.check(half, full=True)
    runtime.InferenceSession(sx.to_bytes(half), providers=["CPUExecutionProvider"])
    for value, found in zip(half.graph.outputs, sx.evaluate(half, feeds), strict=True):
        expected = recorded[f"out:{value.name}"]
        assert found.dtype == expected.dtype
        assert np.abs(found - expected).max() <= most * np.abs(expected).max()
