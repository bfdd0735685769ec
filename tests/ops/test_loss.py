"""Losses of classification."""

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from sardonyx.errors import EvaluationError, InferenceError
from tests.ops.one_node import inferred, one_node, run_converted, run_here, same

RANDOM = np.random.default_rng(2)
SCORES = RANDOM.normal(0, 2, (3, 5, 2, 2)).astype(np.float32)
LABELS = RANDOM.integers(0, 5, (3, 2, 2))
WEIGHTS = RANDOM.uniform(0.5, 2, 5).astype(np.float32)
NAMES = ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")


def _outputs(operator: str) -> list[str]:
    return ["loss", "logs"] if operator == NAMES[1] else ["loss"]


def _content(operator: str, inputs: Any, opset: int = 13, **attributes: Any) -> bytes:
    return one_node(operator, inputs, _outputs(operator), opset, **attributes)


@pytest.mark.parametrize("operator", NAMES)
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("ignored", [None, 2, -7])
@pytest.mark.parametrize("rank", [2, 4])
def test_like_onnx(
    operator: str, reduction: str, weighted: bool, ignored: int | None, rank: int
) -> None:
    labels = LABELS.copy()
    if ignored == -7:
        labels[0, 0, 0] = -7
    inputs = {"x": SCORES, "labels": labels}
    if rank == 2:
        inputs = {"x": SCORES[:, :, 0, 0].copy(), "labels": labels[:, 0, 0].copy()}
    if weighted:
        inputs["weights"] = WEIGHTS
    given = {} if ignored is None else {"ignore_index": ignored}
    content = _content(operator, inputs, reduction=reduction, **given)
    theirs = ReferenceEvaluator(onnx.load_from_string(content)).run(None, inputs)
    mine = run_here(content, inputs)
    same(mine, [np.asarray(item, np.float32) for item in theirs])
    same(run_converted(content, inputs, 11), mine)


@pytest.mark.parametrize("operator", NAMES)
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
@pytest.mark.parametrize("labels", [np.int32, np.int64])
def test_types(operator: str, dtype: Any, labels: Any) -> None:
    inputs = {
        "x": SCORES.astype(dtype),
        "labels": LABELS.astype(labels),
        "w": WEIGHTS.astype(dtype),
    }
    content = _content(operator, inputs, 22)
    result = run_here(content, inputs)
    wide = {
        "x": inputs["x"].astype(np.float64),
        "labels": LABELS,
        "w": inputs["w"].astype(np.float64),
    }
    exact = run_here(_content(operator, wide, 22), wide)
    eps = 2 * float(ml_dtypes.finfo(dtype).eps)
    for mine, other in zip(result, exact, strict=True):
        assert mine.dtype == dtype
        np.testing.assert_allclose(mine.astype(np.float64), other, rtol=eps, atol=eps)


@pytest.mark.parametrize("operator", NAMES)
def test_function_for_bfloat16(operator: str) -> None:
    inputs = {"x": SCORES.astype(ml_dtypes.bfloat16), "labels": LABELS}
    content = _content(operator, inputs, 22, ignore_index=1)
    same(run_converted(content, inputs, 17), run_here(content, inputs), rtol=3e-2, atol=3e-2)


@pytest.mark.parametrize("operator", NAMES)
def test_everything_ignored(operator: str) -> None:
    inputs = {"x": SCORES, "labels": np.full_like(LABELS, 9)}
    content = _content(operator, inputs, ignore_index=9, reduction="mean")
    assert np.isnan(run_here(content, inputs)[0])
    content = _content(operator, inputs, ignore_index=9, reduction="sum")
    assert run_here(content, inputs)[0] == 0


@pytest.mark.parametrize("operator", NAMES)
def test_a_label_without_a_class(operator: str) -> None:
    for label in (5, -1):
        inputs = {"x": SCORES, "labels": np.full_like(LABELS, label)}
        with pytest.raises(EvaluationError, match="not one of 5 classes"):
            run_here(_content(operator, inputs), inputs)


def test_shapes() -> None:
    inputs = {"x": SCORES, "labels": LABELS}
    shapes = {"x": ["n", 5, "h", 2], "labels": ["n", "h", 2]}
    content = one_node(NAMES[1], inputs, ["a", "b"], 13, shapes=shapes, reduction="none")
    assert inferred(content) == ["float[n,h,2]", "float[n,5,h,2]"]
    content = one_node(NAMES[0], inputs, ["a"], 13, shapes=shapes)
    assert inferred(content) == ["float[]"]


@pytest.mark.parametrize("operator", NAMES)
def test_contradictions(operator: str) -> None:
    inputs = {"x": SCORES, "labels": LABELS[:2].copy()}
    with pytest.raises(InferenceError, match="3 against 2"):
        inferred(_content(operator, inputs, reduction="none"))
    with pytest.raises(InferenceError, match="none of none, sum, mean"):
        inferred(_content(operator, {"x": SCORES, "labels": LABELS}, reduction="median"))
    flat = {"x": SCORES.reshape(-1), "labels": LABELS}
    with pytest.raises(InferenceError, match="at least two axes"):
        inferred(_content(operator, flat))
