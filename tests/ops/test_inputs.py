"""Wrong inputs and unknown operators: one clear sentence each."""

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.errors import (
    EvaluationError,
    GraphError,
    InputError,
    SardonyxError,
    UnsupportedError,
)

HEADER = '<ir_version: 10, opset_import: ["": 21, "custom": 1]>'
MODEL = (
    f"{HEADER} g (float[N,3] x, int64[2] k) => (float[N,3] y, float z)"
    "{ y = Relu(x) z = ReduceMax<keepdims=0>(y) }"
)
X, K = np.zeros((2, 3), np.float32), np.zeros(2, np.int64)


def run(feeds: dict, text: str = MODEL, outputs: list[str] | None = None) -> list:
    return sx.evaluate(sx.load_text(text), feeds, outputs)


def test_right_inputs() -> None:
    y, z = run({"x": X, "k": K})
    assert y.shape == (2, 3) and z.shape == ()
    (z,) = run({"x": X, "k": K}, outputs=["z"])
    assert z.dtype == np.float32


@pytest.mark.parametrize(
    ("feeds", "message"),
    [
        ({"x": X}, r"input 'k' is missing; feed a int64\[2\]"),
        ({"x": X, "k": K, "q": X}, "the model has no input 'q'; its inputs are: x, k"),
        ({"x": X[0], "k": K}, r"input 'x' has shape \[3\], the model expects float\[N,3\]"),
        ({"x": X[:, :2], "k": K}, r"input 'x' has shape \[2, 2\], the model expects float\[N,3\]"),
        (
            {"x": X.astype(np.float64), "k": K},
            r"input 'x' is double where float is expected; cast it",
        ),
        ({"x": [["a", "b", "c"]], "k": K}, "input 'x' is string where float is expected"),
        ({"x": X, "k": np.zeros(2, "M8[s]")}, "datetime64"),
        ({"x": X, "k": np.zeros(3, np.int64)}, r"expects int64\[2\]"),
    ],
)
def test_wrong_feeds(feeds: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        run(feeds)


def test_an_output_that_is_not_there() -> None:
    with pytest.raises(InputError, match="no output 'w'; it has: y, z"):
        run({"x": X, "k": K}, outputs=["w"])


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (f"{HEADER} g (float[2] x) => (float[2] y) {{ y = Relo(x) }}", UnsupportedError,
         "operator Relo of domain 'ai.onnx' is not known"),
        (f"{HEADER} g (float[2] x) => (float[2] y) {{ y = custom.Relu(x) }}", UnsupportedError,
         "operator Relu of domain 'custom' is not known"),
        ('<ir_version: 10, opset_import: ["": 99]> g (float[2] x) => (float[2] y) { y = Relu(x) }',
         UnsupportedError, "needs version 99 of 'ai.onnx'; 28 is the newest known here"),
        (f"{HEADER} g (float[2] x) => (float[2] y) {{ y = Relu(w) }}", EvaluationError,
         "'w' is used but nothing makes it"),
        (f"{HEADER} g (float[2] x) => (float[2] y) {{ y = Concat(x, x) }}", GraphError,
         "lacks the attribute 'axis'"),
        (f"{HEADER} g (float[2] x) => (float[2] y) {{ y = Relu<beta = 1>(x) }}", GraphError,
         "its operator does not know the attribute 'beta'"),
        (f"{HEADER} g (float[2] x) => (float[2] y)"
         "{ y = Add(x, c) c = Constant<value_floats=[1.0,2.0,3.0]>() }",
         EvaluationError, "do not broadcast: 2 against 3"),
        (f"{HEADER} g (float[2] x) => (float[n] y)"
         "{ y = Gather(x, c) c = Constant<value_int=7>() }",
         EvaluationError, "with inputs float32"),
    ],
)  # fmt: skip
def test_models_that_cannot_run(text: str, error: type[SardonyxError], message: str) -> None:
    with pytest.raises(error, match=message):
        run({"x": np.zeros(2, np.float32)}, text)
