# mypy: disable-error-code="misc"
"""Linear models of `ai.onnx.ml`."""

from typing import Any

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.errors import EvaluationError
from sardonyx.graph import Value
from sardonyx.ops.build import Builder
from sardonyx.ops.fact import Fact, tensor
from sardonyx.ops.ml_scores import (
    Labels,
    label_fact,
    labels_of,
    one_label,
    row_count,
    rows,
    through_numbers,
    transform,
    two_columns,
    vector,
)
from sardonyx.ops.operator import Operator
from sardonyx.ops.precision import Array

Floats = tuple[float, ...]


def _scores(x: Array, coefficients: Floats | None, intercepts: Floats | None, count: int) -> Array:
    """X times each column of coefficients, plus intercepts: a column for each of `count` models."""
    table = rows(x).astype(np.float32)
    weights = vector(coefficients)
    if weights.size != count * table.shape[1]:
        raise EvaluationError(
            f"{weights.size} coefficients for {count} models of {table.shape[1]} features",
            hint="feed a table with as many columns as the model was trained with",
        )
    if intercepts and len(intercepts) not in (1, count):
        raise EvaluationError(f"{len(intercepts)} intercepts for {count} models")
    result: Array = table @ weights.reshape(count, table.shape[1]).T
    return result + vector(intercepts) if intercepts else result


def class_count(labels: int, coefficients: Floats, intercepts: Floats | None, width: int) -> int:
    """How many models a classifier has: an intercept each, or else as many as coefficients make.

    >>> class_count(3, (1.0,) * 12, (0.0, 0.0, 0.0), 2), class_count(2, (1.0, 2.0), None, 2)
    (3, 1)
    """
    made = len(coefficients) // max(width, 1)
    if intercepts and (len(intercepts) > 1 or labels < 3):
        return min(len(intercepts), made)
    return made


class LinearClassifier(Operator):
    """A score for each class, linear in the features, and the class with the largest."""

    domain = "ai.onnx.ml"
    signatures = (
        "1(X: T1, classlabels_ints?: ints, classlabels_strings?: strings, coefficients: floats, "
        "intercepts?: floats, multi_class: int = 0, post_transform: string = 'NONE') "
        "-> (Y: T2, Z: tensor(float)); T1: double float int32 int64; T2: int64 string",
    )

    def infer(
        x: Fact, classlabels_ints: tuple[int, ...] | None,
        classlabels_strings: tuple[str, ...] | None, coefficients: Floats,
        intercepts: Floats | None, multi_class: int, post_transform: str,
    ) -> tuple[Fact, Fact]:  # fmt: skip
        labels = (classlabels_ints, classlabels_strings)
        count = len(labels_of(labels)) or None
        return label_fact(labels, x), tensor(DataType.FLOAT, (row_count(x), count))

    def reference(
        x: Array, classlabels_ints: tuple[int, ...] | None,
        classlabels_strings: tuple[str, ...] | None, coefficients: Floats,
        intercepts: Floats | None, multi_class: int, post_transform: str,
    ) -> tuple[Array, Array]:  # fmt: skip
        labels: Labels = (classlabels_ints, classlabels_strings)
        names = labels_of(labels)
        width = rows(x).shape[1]
        count = class_count(len(names), coefficients, intercepts, width)
        # What lies beyond the last class's coefficients is left alone, as onnxruntime does.
        scores = _scores(x, coefficients[: count * width], intercepts, count)
        if scores.shape[1] > 1:
            if len(names) < scores.shape[1]:
                raise EvaluationError(
                    f"there are {len(names)} labels for {scores.shape[1]} classes",
                    hint="a label is needed for each class",
                )
            return names[scores.argmax(1)], transform(scores, post_transform)
        score = scores[:, 0]
        chosen = one_label(score > 0, labels)
        if len(names) == 2:
            return chosen, two_columns(score, post_transform, probability=True)
        return chosen, transform(scores, post_transform, alone=True)

    def function(build: Builder, x: Value, **given: Any) -> Any:
        return through_numbers(build, "LinearClassifier", x, given)


class LinearRegressor(Operator):
    """Targets that are linear in the features."""

    domain = "ai.onnx.ml"
    signatures = (
        "1(X: T, coefficients?: floats, intercepts?: floats, post_transform: string = 'NONE', "
        "targets: int = 1) -> Y: tensor(float); T: double float int32 int64",
    )

    def infer(
        x: Fact, coefficients: Floats | None, intercepts: Floats | None, post_transform: str,
        targets: int,
    ) -> Fact:  # fmt: skip
        return tensor(DataType.FLOAT, (row_count(x), targets))

    def reference(
        x: Array, coefficients: Floats | None, intercepts: Floats | None, post_transform: str,
        targets: int,
    ) -> Array:  # fmt: skip
        return transform(_scores(x, coefficients, intercepts, targets), post_transform)
