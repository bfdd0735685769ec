"""Public calls that join layers."""

from pathlib import Path

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.errors import InputError, UnsupportedError

TEXT = ('<ir_version: 9, opset_import: ["": 17]> g (float[n] x, float[n] y) => '
        "(float[n] s, float[n] d) { s = Add(x, y) d = Sub(x, y) }")  # fmt: skip
ONE, TWO = np.float32([1, 2]), np.float32([3, 5])


def test_a_model_as_a_function(tmp_path: Path) -> None:
    model = sx.load_text(TEXT)
    sx.save(model, tmp_path / "m.onnx")
    for source in (model, sx.to_bytes(model), tmp_path / "m.onnx"):
        add = sx.compile(source, threads=1)
        for results in (add(ONE, TWO), add(ONE, y=TWO), add(y=TWO, x=ONE), add([1, 2], [3, 5])):
            assert [item.tolist() for item in results] == [[4, 7], [-2, -3]]
    assert add.input_names == ["x", "y"] and add.output_names == ["s", "d"]
    assert "x, y -> s, d" in repr(add)


def test_one_output_comes_by_itself() -> None:
    double = sx.compile(
        sx.load_text(
            '<ir_version: 9, opset_import: ["": 17]> g (float[n] x) => (float[n] y) {y = Add(x, x)}'
        ),
        precision="highest",
        target="generic",
    )
    result = double(ONE[::-1])
    assert result.tolist() == [4, 2] and not np.shares_memory(result, ONE)


def test_what_does_not_fit() -> None:
    add = sx.compile(sx.load_text(TEXT))
    with pytest.raises(InputError, match="3 inputs were passed, the model has 2; they are: x, y"):
        add(ONE, TWO, ONE)
    with pytest.raises(InputError, match="'x' is passed by position and by name"):
        add(ONE, x=ONE)
    with pytest.raises(InputError, match="'y' is missing"):
        add(ONE)
    for word in ("low", "fast", ""):
        with pytest.raises(UnsupportedError, match=f"no precision '{word}'; choose one of"):
            sx.compile(sx.load_text(TEXT), precision=word)
    with pytest.raises(InputError, match="0 threads"):
        sx.compile(sx.load_text(TEXT), threads=0)
    with pytest.raises(UnsupportedError, match="nonsense"):
        sx.compile(sx.load_text(TEXT), target="nonsense")
