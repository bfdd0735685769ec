"""Support vector machines against onnxruntime."""

import numpy as np
import pytest

from sardonyx.errors import SardonyxError
from sardonyx.ops.ml_svm import SVMClassifier
from tests.ops.one_node import inferred, one_node, run_here, run_there, same

KERNELS = ["LINEAR", "POLY", "RBF", "SIGMOID"]
TRANSFORMS = ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"]


def model(op_type, x, outputs, shapes=None, **attributes):
    return one_node(
        op_type, {"X": x}, outputs, 17, domain="ai.onnx.ml", shapes=shapes, **attributes
    )


def machine(classes, *, probabilities=False, kernel="RBF", seed=0, features=3):
    """Attributes of a random classifier with a machine for each pair of classes."""
    draw = np.random.default_rng(seed)
    counts = draw.integers(1, 5, classes)
    total, pairs = int(counts.sum()), classes * (classes - 1) // 2
    made = {
        "vectors_per_class": counts.tolist(),
        "support_vectors": draw.normal(size=total * features).tolist(),
        "coefficients": draw.normal(size=(classes - 1) * total).tolist(),
        "rho": (draw.normal(size=pairs) * 0.2).tolist(),
        "kernel_type": kernel,
        "kernel_params": [0.4, 0.3, 3.0],
        "classlabels_ints": list(range(20, 20 + classes)),
    }
    if probabilities:
        made["prob_a"] = draw.uniform(-2, -0.5, pairs).tolist()
        made["prob_b"] = draw.normal(size=pairs).tolist()
    return made


def table(rows=15, features=3, seed=9):
    return np.random.default_rng(seed).normal(size=(rows, features)).astype(np.float32)


def agree(op_type, x, outputs, **attributes):
    content = model(op_type, x, outputs, **attributes)
    same(run_here(content, {"X": x}), run_there(content, {"X": x}), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_classifier(classes, kernel):
    for seed in range(3):
        given = machine(classes, kernel=kernel, seed=seed)
        agree("SVMClassifier", table(), ["Y", "Z"], **given)
        given = machine(classes, kernel=kernel, seed=seed, probabilities=True)
        agree("SVMClassifier", table(), ["Y", "Z"], **given)


@pytest.mark.parametrize("probabilities", [False, True])
@pytest.mark.parametrize("post_transform", TRANSFORMS)
@pytest.mark.parametrize("classes", [2, 4])
def test_classifier_transforms(classes, post_transform, probabilities):
    given = machine(classes, probabilities=probabilities)
    given["classlabels_strings"] = [f"class {label}" for label in given.pop("classlabels_ints")]
    agree("SVMClassifier", table(), ["Y", "Z"], post_transform=post_transform, **given)


@pytest.mark.parametrize("post_transform", TRANSFORMS)
@pytest.mark.parametrize("low", [-1.0, 0.0])
@pytest.mark.parametrize("classes", [2, 3])
def test_linear_machines(classes, low, post_transform):
    draw = np.random.default_rng(classes)
    given = {
        "coefficients": draw.uniform(low, 1, classes * 3).tolist(),
        "rho": [0.1],
        "classlabels_ints": [4, 5, 6][:classes],
        "kernel_type": "LINEAR",
        "kernel_params": [0.0, 0.0, 0.0],
    }
    agree("SVMClassifier", table(), ["Y", "Z"], post_transform=post_transform, **given)


@pytest.mark.parametrize("kernel", KERNELS)
def test_regressor(kernel):
    draw = np.random.default_rng(1)
    given = {
        "support_vectors": draw.normal(size=12).tolist(),
        "coefficients": draw.normal(size=4).tolist(),
        "n_supports": 4,
        "rho": [0.25],
        "kernel_type": kernel,
        "kernel_params": [0.4, 0.3, 2.0],
    }
    agree("SVMRegressor", table(), ["Y"], **given)
    agree("SVMRegressor", table(), ["Y"], one_class=1, **given)
    linear = {"coefficients": [0.1, 0.2, -0.4], "rho": [0.3], "kernel_params": [0.0, 0.0, 0.0]}
    agree("SVMRegressor", table(), ["Y"], kernel_type=kernel, **linear)


def test_what_a_score_of_nothing_means():
    x = np.float32([[-1, 0, 0], [0, 0, 0], [1e-6, 0, 0]])
    given = {"coefficients": [1.0, 0.0, 0.0], "rho": [0.0], "kernel_type": "LINEAR"}
    given["kernel_params"] = [0.0, 0.0, 0.0]
    content = model("SVMRegressor", x, ["Y"], one_class=1, **given)
    assert run_here(content, {"X": x})[0].tolist() == [[-1], [-1], [1]]
    agree("SVMRegressor", x, ["Y"], one_class=1, **given)


@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.int64])
def test_input_types_and_vectors(dtype):
    x = (table() * 2).astype(dtype)
    agree("SVMClassifier", x, ["Y", "Z"], **machine(3))
    agree("SVMClassifier", x[0], ["Y", "Z"], **machine(3))


def test_inference():
    for classes, probabilities, columns in ((2, False, 2), (4, False, 6), (4, True, 4)):
        content = model("SVMClassifier", table(), ["Y", "Z"], {"X": ["n", 3]},
                        **machine(classes, probabilities=probabilities))  # fmt: skip
        assert inferred(content) == ["int64[n]", f"float[n,{columns}]"]
    content = model("SVMRegressor", table(), ["Y"], {"X": None}, coefficients=[1.0], rho=[0.0])
    assert inferred(content) == ["float[?,1]"]


def test_wrong_models_are_refused():
    x = table()
    with pytest.raises(SardonyxError, match="LAPLACE"):
        run_here(model("SVMClassifier", x, ["Y", "Z"], **machine(3, kernel="LAPLACE")), {"X": x})
    with pytest.raises(SardonyxError, match="3 features against vectors of 4"):
        run_here(model("SVMClassifier", x, ["Y", "Z"], **machine(3, features=4)), {"X": x})


def test_sums_are_as_exact_as_the_result_can_say():
    """Scores are small differences of large sums."""
    draw = np.random.default_rng(4)
    vectors, weights = draw.normal(size=(400, 30)), draw.normal(size=400)
    x = (draw.normal(size=(20, 30)) + 5).astype(np.float32)
    vectors, weights = vectors.astype(np.float32), weights.astype(np.float32)
    given = {"vectors_per_class": (200, 200), "support_vectors": tuple(vectors.reshape(-1)),
             "coefficients": tuple(weights), "rho": (0.25,), "kernel_type": "LINEAR",
             "kernel_params": (1.0, 0.0, 1.0), "classlabels_ints": (0, 1), "prob_a": None,
             "classlabels_strings": None, "prob_b": None, "post_transform": "NONE"}  # fmt: skip
    _, found = SVMClassifier.reference(x, **given)
    score = x.astype(np.float64) @ vectors.astype(np.float64).T @ weights.astype(np.float64) + 0.25
    assert found.dtype == np.float32
    np.testing.assert_allclose(found[:, 1], score, rtol=1e-7)
