"""CategoryMapper, LabelEncoder and OneHotEncoder against onnxruntime and the specification."""

import numpy as np
import pytest
from onnx.numpy_helper import from_array

from sardonyx.errors import ConversionError, InferenceError, SardonyxError
from sardonyx.ops.convert import convert_opset
from tests.ops.one_node import inferred, load, one_node, run_converted, run_here, run_there, same

WORDS = np.array([["a", "b"], ["q", "a"]], object)
NUMBERS = np.array([1, 2, 9, 1], np.int64)


def model(op_type, x, version=1, shapes=None, **attributes):
    return one_node(op_type, {"X": x}, ["Y"], 17, domain="ai.onnx.ml", version=version,
                    shapes=shapes, **attributes)  # fmt: skip


def agree(op_type, x, version=1, **attributes):
    content = model(op_type, x, version, **attributes)
    same(run_here(content, {"X": x}), run_there(content, {"X": x}))


def test_category_mapper():
    tables = {"cats_strings": ["a", "b", "a"], "cats_int64s": [1, 2, 3]}
    agree("CategoryMapper", WORDS, default_int64=-5, **tables)
    agree("CategoryMapper", NUMBERS, default_string="?", **tables)
    agree("CategoryMapper", NUMBERS, cats_strings=["a", "b"], cats_int64s=[1, 1])
    empty = run_here(model("CategoryMapper", WORDS[:0], **tables), {"X": WORDS[:0]})[0]
    assert (empty.dtype, empty.shape) == (np.int64, (0, 2))
    with pytest.raises(InferenceError, match="differ in length"):
        inferred(model("CategoryMapper", WORDS, cats_strings=["a"], cats_int64s=[1, 2]))


def test_label_encoder_of_version_1():
    agree("LabelEncoder", WORDS, classes_strings=["b", "c", "a"], default_int64=-5)
    agree("LabelEncoder", NUMBERS, classes_strings=["zero", "one", "two"], default_string="?")


@pytest.mark.parametrize("version", [2, 3, 4])
def test_label_encoder(version):
    floats = np.array([1.5, -2.0, 0.0, 7.0], np.float32)
    agree("LabelEncoder", WORDS, version, keys_strings=["a", "b"], values_int64s=[5, 6])
    agree("LabelEncoder", WORDS, version, keys_strings=["a", "b"], values_floats=[5.0, 6.5])
    agree("LabelEncoder", NUMBERS, version, keys_int64s=[1, 2], values_strings=["x", "y"],
          default_string="none")  # fmt: skip
    agree("LabelEncoder", floats, version, keys_floats=[1.5, -0.0], values_strings=["x", "y"])
    agree("LabelEncoder", floats, version, keys_floats=[1.5, -2.0], values_int64s=[3, 4],
          default_int64=99)  # fmt: skip
    agree("LabelEncoder", NUMBERS, version, keys_int64s=[1, 2], values_floats=[0.5, 0.25])


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.int32, np.int16])
def test_label_encoder_tensors(dtype):
    x = np.array([3, 4, 5], dtype)
    tables = {
        "keys_tensor": from_array(np.array([3, 5], dtype)),
        "values_tensor": from_array(np.array([30, 50], dtype)),
        "default_tensor": from_array(np.array([-7], dtype)),
    }
    (result,) = run_here(model("LabelEncoder", x, 4, **tables), {"X": x})
    assert (result.dtype, result.tolist()) == (dtype, [30, -7, 50])
    del tables["default_tensor"]
    (result,) = run_here(model("LabelEncoder", x, 4, **tables), {"X": x})
    assert result.tolist() == [30, -1 if np.dtype(dtype).kind == "i" else 0, 50]


def test_label_encoder_follows_the_specification():
    """The last of equal keys counts, and NaN is found; onnxruntime does neither."""
    content = model("LabelEncoder", WORDS, 4, keys_strings=["a", "b", "a"], values_int64s=[1, 2, 3])
    assert run_here(content, {"X": WORDS})[0].tolist() == [[3, 2], [-1, 3]]
    x = np.array([np.nan, 1], np.float32)
    content = model("LabelEncoder", x, 4, keys_floats=[float("nan")], values_strings=["missing"])
    assert run_here(content, {"X": x})[0].tolist() == ["missing", "_Unused"]


def test_label_encoder_downgrades():
    tables = {
        "keys_tensor": from_array(np.array(["a", "b"], object)),
        "values_tensor": from_array(np.array([30, 50], np.int64)),
        "default_tensor": from_array(np.array([-7], np.int64)),
    }
    content = model("LabelEncoder", WORDS, 4, **tables)
    expected = run_here(content, {"X": WORDS})
    same(run_converted(content, {"X": WORDS}, 2, "ai.onnx.ml"), expected)
    x = np.array([3, 4, 5], np.int32)
    tables = {
        name: from_array(np.array([1, 2], np.int32)) for name in ("keys_tensor", "values_tensor")
    }
    with pytest.raises(ConversionError, match="int32"):
        convert_opset(load(model("LabelEncoder", x, 4, **tables)), 3, "ai.onnx.ml")


def test_one_hot_encoder():
    agree("OneHotEncoder", NUMBERS.reshape(2, 2), cats_int64s=[1, 2, 5])
    agree("OneHotEncoder", NUMBERS, cats_int64s=[1, 2, 1])
    agree("OneHotEncoder", np.array([1.7, 2.2, -1.5], np.float32), cats_int64s=[1, 2, -1])
    agree("OneHotEncoder", np.array([1.7, 2.2], np.float64), cats_int64s=[1, 2])
    small = np.array([1, 2], np.int32)
    (result,) = run_here(model("OneHotEncoder", small, cats_int64s=[2, 1]), {"X": small})
    assert result.tolist() == [[0, 1], [1, 0]]
    agree("OneHotEncoder", WORDS, cats_strings=["a", "b"])
    with pytest.raises(SardonyxError, match="'q' is no category"):
        run_here(model("OneHotEncoder", WORDS, cats_strings=["a", "b"], zeros=0), {"X": WORDS})


def test_inference():
    shapes = {"X": ["n", 2]}
    words = WORDS[:, :2]
    assert inferred(model("CategoryMapper", words, shapes=shapes)) == ["int64[n,2]"]
    content = model("LabelEncoder", words, 4, shapes, keys_strings=["a"], values_floats=[1.0])
    assert inferred(content) == ["float[n,2]"]
    assert inferred(model("OneHotEncoder", words, shapes=shapes, cats_strings=["a", "b", "c"])) == [
        "float[n,2,3]"
    ]
    assert inferred(model("OneHotEncoder", words, shapes={"X": None}, cats_strings=["a"])) == [
        "float"
    ]
    with pytest.raises(InferenceError, match="keys are int64, X is string"):
        inferred(model("LabelEncoder", words, 4, keys_int64s=[1], values_floats=[1.0]))
    with pytest.raises(InferenceError, match="exactly one"):
        inferred(model("OneHotEncoder", words))
