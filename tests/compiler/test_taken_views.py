"""Elements taken at computed indices of a view: inside means inside of the view."""

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.compiler.program import compile_model
from sardonyx.errors import EvaluationError

HEAD = '<ir_version: 10, opset_import: ["": 21]> '
X = np.arange(1, 11, dtype=np.float32)


def agrees(text: str) -> None:
    model = sx.load_text(HEAD + text)
    program = compile_model(model, threads=1)
    assert all(row.kernel != "reference" for row in program.explain())
    wanted = sx.evaluate(model, {"x": X})
    for found, expected in zip(program.run({"x": X}), wanted, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_an_axis_of_one_that_a_view_adds_has_an_end() -> None:
    agrees(
        "g (float[10] x) => (float[10,2] y) <int64[1] a = {1}, int64[4] p = {0, 0, 0, 1}>"
        "{ wide = Unsqueeze(x, a)  y = Pad(wide, p) }"
    )


def test_a_slice_ends_before_what_lies_behind_it() -> None:
    agrees(
        "g (float[10] x) => (float[6] y)"
        "<int64[1] b = {2}, int64[1] e = {5}, int64[2] p = {1, 2}>"
        "{ part = Slice(x, b, e)  y = Pad(part, p) }"
    )


def test_an_index_behind_a_slice_is_an_error() -> None:
    model = sx.load_text(
        HEAD + "g (float[10] x, int64[2] i) => (float[2] y) <int64[1] b = {2}, int64[1] e = {5}>"
        "{ part = Slice(x, b, e)  y = GatherElements(part, i) }"
    )
    program = compile_model(model, threads=1)
    assert program.run({"x": X, "i": np.array([0, -1])})[0].tolist() == [3.0, 5.0]
    with pytest.raises(EvaluationError, match="out of range"):
        program.run({"x": X, "i": np.array([0, 3])})
