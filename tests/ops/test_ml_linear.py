"""Linear models of `ai.onnx.ml` against onnxruntime."""

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.errors import InferenceError, SardonyxError
from sardonyx.ops.ml_linear import LinearClassifier
from sardonyx.ops.ml_scores import transform
from tests.ops.one_node import inferred, one_node, run_here, run_there, same

TRANSFORMS = ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT"]


def model(op_type, x, outputs, shapes=None, **attributes):
    return one_node(
        op_type, {"X": x}, outputs, 17, domain="ai.onnx.ml", shapes=shapes, **attributes
    )


def table(seed=0, rows=12, columns=4):
    return np.random.default_rng(seed).normal(size=(rows, columns)).astype(np.float32)


def numbers(count, seed=1):
    return np.random.default_rng(seed).uniform(-0.2, 0.2, count).tolist()


@pytest.mark.parametrize("post_transform", TRANSFORMS)
@pytest.mark.parametrize("classes", [2, 3])
def test_classifier_with_a_column_for_each_class(classes, post_transform):
    x = table()
    labels = {"classlabels_ints": [5, 3, 9][:classes]}
    if classes == 3:
        labels = {"classlabels_strings": ["b", "a", "c"]}
    content = model("LinearClassifier", x, ["Y", "Z"], coefficients=numbers(4 * classes),
                    intercepts=[0.4] * classes, post_transform=post_transform,
                    **labels)  # fmt: skip
    same(run_here(content, {"X": x}), run_there(content, {"X": x}), rtol=2e-3, atol=1e-3)


@pytest.mark.parametrize("post_transform", TRANSFORMS[:4])
def test_classifier_with_one_column_for_two_classes(post_transform):
    x = table()
    for labels in ({"classlabels_ints": [5, 3]}, {"classlabels_strings": ["no", "yes"]}):
        content = model("LinearClassifier", x, ["Y", "Z"], coefficients=numbers(4),
                        intercepts=[0.1], post_transform=post_transform, **labels)  # fmt: skip
        same(run_here(content, {"X": x}), run_there(content, {"X": x}))


def test_classifier_without_intercepts():
    x = table()
    named = {"coefficients": numbers(8), "classlabels_ints": [1, 2]}
    content = model("LinearClassifier", x, ["Y", "Z"], **named)
    said = model("LinearClassifier", x, ["Y", "Z"], intercepts=[0.0, 0.0], **named)
    same(run_here(content, {"X": x}), run_there(said, {"X": x}))


def test_ties_go_to_the_first_class():
    x = np.zeros((2, 4), np.float32)
    content = model("LinearClassifier", x, ["Y", "Z"], coefficients=[0.0] * 12,
                    intercepts=[0.5, 0.5, 0.1], classlabels_ints=[7, 8, 9])  # fmt: skip
    same(run_here(content, {"X": x}), run_there(content, {"X": x}))


@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.int64])
def test_classifier_input_types(dtype):
    x = (table() * 3).astype(dtype)
    content = model("LinearClassifier", x, ["Y", "Z"], coefficients=numbers(12),
                    intercepts=[0.1, 0.2, 0.3], classlabels_ints=[0, 1, 2])  # fmt: skip
    same(run_here(content, {"X": x}), run_there(content, {"X": x}))


@pytest.mark.parametrize("post_transform", TRANSFORMS)
@pytest.mark.parametrize("targets", [1, 3])
def test_regressor(targets, post_transform):
    x = table()
    content = model("LinearRegressor", x, ["Y"], coefficients=numbers(4 * targets), targets=targets,
                    intercepts=[0.5] * targets, post_transform=post_transform)  # fmt: skip
    same(run_here(content, {"X": x}), run_there(content, {"X": x}), rtol=2e-3, atol=1e-3)


@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.int64])
def test_regressor_input_types_and_vectors(dtype):
    x = (table(rows=1) * 3).astype(dtype)
    content = model("LinearRegressor", x[0], ["Y"], coefficients=numbers(4))
    wide = model("LinearRegressor", x.astype(np.float32), ["Y"], coefficients=numbers(4))
    same(run_here(content, {"X": x[0]}), run_there(wide, {"X": x.astype(np.float32)}))


def test_no_rows():
    x = table(rows=0)
    label, scores = run_here(model("LinearClassifier", x, ["Y", "Z"], coefficients=numbers(8),
                                   classlabels_strings=["a", "b"]), {"X": x})  # fmt: skip
    assert (label.shape, label.dtype, scores.shape) == ((0,), object, (0, 2))


def test_inference():
    x = table()
    shapes = {"X": ["n", 4]}
    content = model("LinearClassifier", x, ["Y", "Z"], shapes, coefficients=numbers(4),
                    intercepts=[0.0], classlabels_strings=["a", "b"])  # fmt: skip
    assert inferred(content) == ["string[n]", "float[n,2]"]
    content = model("LinearRegressor", x, ["Y"], {"X": None}, coefficients=numbers(8), targets=2)
    assert inferred(content) == ["float[?,2]"]
    with pytest.raises(InferenceError, match="rank 3"):
        inferred(model("LinearRegressor", x, ["Y"], {"X": [1, 2, 3]}, coefficients=numbers(8)))


def test_wrong_models_are_refused():
    x = table()
    with pytest.raises(SardonyxError, match="5 coefficients"):
        run_here(model("LinearRegressor", x, ["Y"], coefficients=numbers(5)), {"X": x})
    with pytest.raises(SardonyxError, match="CUBE"):
        run_here(
            model("LinearRegressor", x, ["Y"], coefficients=numbers(4), post_transform="CUBE"),
            {"X": x},
        )


def test_a_single_class_is_transformed_as_the_specification_says() -> None:
    given = {"coefficients": (0.5, -0.25), "intercepts": (0.1,), "multi_class": 0,
             "classlabels_ints": (7,), "classlabels_strings": None}  # fmt: skip
    x = np.array([[1, 2], [-1, 0.5]], np.float32)
    plain = LinearClassifier.reference(x, **given, post_transform="NONE")[1]
    found = LinearClassifier.reference(x, **given, post_transform="LOGISTIC")[1]
    np.testing.assert_allclose(found, 1 / (1 + np.exp(-plain.astype(np.float64))), rtol=1e-6)
    assert (LinearClassifier.reference(x, **given, post_transform="SOFTMAX")[1] == 1).all()


def test_classes_are_counted_by_intercepts() -> None:
    """Coefficients beyond theirs are left alone, as onnxruntime does."""
    text = """<ir_version: 10, opset_import: ["": 21, "ai.onnx.ml": 3]>
        g (float[n,2] x) => (int64[n] y, float[n,3] z) {
          y, z = ai.onnx.ml.LinearClassifier <classlabels_ints = [7, 8, 9],
            coefficients = [0.5, -0.25, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0], intercepts = [0.1, 0.2, 0.3]>
            (x) }"""
    x = np.array([[1, 2], [-1, 0.5]], np.float32)
    weights = np.array([[0.5, -0.25], [1, 2], [3, 4]])
    expected = x @ weights.T + np.array([0.1, 0.2, 0.3])
    for provider in ("CPUExecutionProvider", "ReferenceExecutionProvider"):
        session = sx.InferenceSession(sx.to_bytes(sx.load_text(text)), providers=[provider])
        labels, scores = session.run(None, {"x": x})
        np.testing.assert_allclose(scores, expected, rtol=1e-5)
        assert labels.tolist() == [9, 8]


def test_classes_without_labels_are_refused() -> None:
    given = {"coefficients": (0.5, -0.25, 1.0, 2.0), "intercepts": None, "multi_class": 0,
             "classlabels_ints": (), "classlabels_strings": None}  # fmt: skip
    with pytest.raises(sx.EvaluationError, match="0 labels for 2 classes"):
        LinearClassifier.reference(np.ones((1, 2), np.float32), **given, post_transform="NONE")


def test_scores_that_count_as_nothing():
    """At most 1e-7 is nothing for SOFTMAX_ZERO, more takes part."""
    x = np.float32([[1e-7, 1, -1e-7, 0], [2e-7, 1, -2e-7, 0], [0, 0, 0, 0], [-1, -2, 0, 3]])
    found = transform(x, "SOFTMAX_ZERO")
    assert (found != 0).tolist() == [
        [False, True, False, False],
        [True, True, True, False],
        [False] * 4,
        [True, True, False, True],
    ]
    np.testing.assert_allclose(found.sum(1), [1, 1, 0, 1], rtol=1e-6)
    third = np.exp(np.float64([-4, -5, 0]))
    np.testing.assert_allclose(found[3][[0, 1, 3]], third / third.sum(), rtol=1e-6)
