"""Preparation of feature tables against onnxruntime and by hand."""

import numpy as np
import pytest

from sardonyx.errors import InferenceError, SardonyxError
from tests.ops.one_node import inferred, one_node, run_here, run_there, same

TABLE = np.array([[1, -2, 3], [-4, -5, -6], [0, 0, 0], [7, 0.5, 2]], np.float32)
TYPES = [np.float32, np.float64, np.int32, np.int64]


def model(op_type, inputs, outputs=("Z",), shapes=None, **attributes):
    return one_node(
        op_type, inputs, list(outputs), 17, domain="ai.onnx.ml", shapes=shapes, **attributes
    )


def agree(op_type, inputs, **attributes):
    content = model(op_type, inputs, **attributes)
    same(run_here(content, inputs), run_there(content, inputs))


def here(op_type, inputs, **attributes):
    return run_here(model(op_type, inputs, **attributes), inputs)[0]


@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
def test_normalizer(norm):
    for dtype in TYPES:
        agree("Normalizer", {"X": TABLE.astype(dtype)}, norm=norm)
    agree("Normalizer", {"X": TABLE[0]}, norm=norm)
    assert here("Normalizer", {"X": TABLE[:0]}, norm=norm).shape == (0, 3)


def test_scaler():
    for dtype in TYPES:
        x = TABLE.astype(dtype)
        agree("Scaler", {"X": x}, offset=[1.0, 2.0, 3.0], scale=[2.0, 0.1, 4.0])
        agree("Scaler", {"X": x}, offset=[1.0], scale=[0.3])
    deep = here("Scaler", {"X": TABLE.reshape(2, 2, 3)}, offset=[1.0, 2.0, 3.0], scale=[2.0])
    np.testing.assert_array_equal(deep, (TABLE.reshape(2, 2, 3) - np.float32([1, 2, 3])) * 2)
    with pytest.raises(SardonyxError, match="2 values"):
        here("Scaler", {"X": TABLE}, offset=[1.0, 2.0], scale=[1.0, 2.0])


def test_array_feature_extractor():
    index = np.array([2, 0], np.int64)
    for x in (
        TABLE,
        TABLE[0],
        TABLE.reshape(2, 2, 3),
        TABLE.astype(np.int64),
        TABLE.astype(np.float64),
    ):
        agree("ArrayFeatureExtractor", {"X": x, "Y": index})
        agree("ArrayFeatureExtractor", {"X": x, "Y": index[None]})
    words = np.array([["a", "b"], ["c", "d"]], object)
    agree("ArrayFeatureExtractor", {"X": words, "Y": np.array([1], np.int64)})
    for wrong in (-1, 3):
        with pytest.raises(SardonyxError, match=r"\[0, 3\)"):
            here("ArrayFeatureExtractor", {"X": TABLE, "Y": np.array([wrong], np.int64)})


def test_feature_vectorizer():
    agree("FeatureVectorizer", {"A": TABLE, "B": TABLE[:, :2]}, inputdimensions=[3, 2])
    agree("FeatureVectorizer", {"A": TABLE, "B": TABLE[:, :2]}, inputdimensions=[2, 4])
    agree("FeatureVectorizer", {"A": TABLE[0], "B": TABLE[1]}, inputdimensions=[3, 3])
    agree("FeatureVectorizer", {"A": TABLE.reshape(2, 2, 3)}, inputdimensions=[6])
    for dtype in TYPES:
        agree("FeatureVectorizer", {"A": TABLE.astype(dtype)}, inputdimensions=[3])
    whole = here("FeatureVectorizer", {"A": TABLE, "B": TABLE})
    np.testing.assert_array_equal(whole, np.concatenate([TABLE, TABLE], 1))


def test_binarizer():
    agree("Binarizer", {"X": TABLE}, threshold=0.5)
    for dtype in TYPES:
        x = TABLE.astype(dtype)
        result = here("Binarizer", {"X": x}, threshold=0.0)
        assert result.dtype == dtype
        np.testing.assert_array_equal(result, (x > 0).astype(dtype))
    assert here("Binarizer", {"X": np.float32([np.nan, np.inf])}).tolist() == [0, 1]


def test_imputer():
    holes = np.where(TABLE == 0, np.nan, TABLE).astype(np.float32)
    nan = float("nan")
    agree("Imputer", {"X": holes}, imputed_value_floats=[9.0], replaced_value_float=nan)
    agree("Imputer", {"X": holes}, imputed_value_floats=[7.0, 8.0, 9.0], replaced_value_float=nan)
    agree("Imputer", {"X": holes}, imputed_value_floats=[7.0, 8.0, 9.0], replaced_value_float=1.0)
    whole = TABLE.astype(np.int64)
    agree("Imputer", {"X": whole}, imputed_value_int64s=[7, 8, 9], replaced_value_int64=0)
    small = here("Imputer", {"X": whole.astype(np.int32)}, imputed_value_int64s=[5])
    assert small.dtype == np.int32 and small[2].tolist() == [5, 5, 5]
    wide = here("Imputer", {"X": holes.astype(np.float64)}, imputed_value_floats=[2.0],
                replaced_value_float=nan)  # fmt: skip
    assert wide.dtype == np.float64 and wide[2].tolist() == [2, 2, 2]
    with pytest.raises(SardonyxError, match="2 imputed values"):
        here("Imputer", {"X": TABLE}, imputed_value_floats=[1.0, 2.0])


def test_inference():
    shapes = {"X": ["n", 3], "A": ["n", 3], "B": ["n", "k"]}
    inputs = {"X": TABLE}
    for op_type, text in (("Scaler", "float[n,3]"), ("Normalizer", "float[n,3]"),
                          ("Binarizer", "int64[n,3]"), ("Imputer", "int64[n,3]")):  # fmt: skip
        given = {"X": TABLE.astype(np.int64)}
        assert inferred(model(op_type, given, shapes=shapes)) == [text]
        assert inferred(model(op_type, given, shapes={"X": None})) == [text.split("[")[0]]
    index = np.array([2, 0], np.int64)
    content = model("ArrayFeatureExtractor", inputs | {"Y": index}, shapes=shapes)
    assert inferred(content) == ["float[n,2]"]
    content = model("FeatureVectorizer", {"A": TABLE, "B": TABLE}, shapes=shapes)
    assert inferred(content) == ["float[n,k+3]"]
    content = model(
        "FeatureVectorizer", {"A": TABLE, "B": TABLE}, shapes=shapes, inputdimensions=[3, 4]
    )
    assert inferred(content) == ["float[n,7]"]
    with pytest.raises(InferenceError, match="L3"):
        inferred(model("Normalizer", inputs, norm="L3"))
