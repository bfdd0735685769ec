"""What classifiers and regressors of `ai.onnx.ml` share: feature rows, score transforms, labels.

Scores in one column are left alone by every transform but PROBIT, as onnxruntime does, except
those of linear classifiers of one class, where the specification's words count.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sardonyx.dims import Size
from sardonyx.dtypes import DataType
from sardonyx.errors import ConversionError, EvaluationError, InferenceError
from sardonyx.graph import Value
from sardonyx.ops.build import Builder
from sardonyx.ops.fact import Fact, tensor
from sardonyx.ops.precision import Array

Labels = tuple[tuple[int, ...] | None, tuple[str, ...] | None]
"""Class labels as a node gives them: integers or strings."""


def rows(x: Array) -> Array:
    """The input as rows of features; a vector is one row."""
    if x.ndim not in (1, 2):
        raise EvaluationError(f"an input of rank {x.ndim} is no table of features")
    return x.reshape(1, -1) if x.ndim == 1 else x


def row_count(x: Fact) -> Size | None:
    """How many rows of features an input has, where that is known."""
    if x.rank not in (None, 1, 2):
        raise InferenceError(f"X has rank {x.rank}, expected 1 or 2")
    return None if x.shape is None else 1 if x.rank == 1 else x.shape[0]


def vector(values: Sequence[float] | None) -> Array:
    """A list of floats that an attribute holds."""
    return np.array(values or (), np.float32)


def labels_of(labels: Labels) -> Array:
    """The class labels, integers or strings."""
    integers, strings = labels
    if strings:
        return np.array(strings, object)
    return np.array(integers or (), np.int64)


def through_numbers(build: Builder, op_type: str, x: Value, given: dict[str, Any]) -> Any:
    """A classifier whose labels are strings, as one of numbers and an encoder of those."""
    names = given.pop("classlabels_strings")
    if not names or len(names) < 2:
        raise ConversionError(f"{op_type} is a function of others only with strings as labels")
    key = "classlabels_ints" if "classlabels_ints" in given else "classlabels_int64s"
    given = {name: item for name, item in given.items() if item is not None}
    given[key] = places = list(range(len(names)))
    domain = "ai.onnx.ml"
    label, scores = build.node(op_type, (x,), 2, domain, given)
    named = build.LabelEncoder(label, domain=domain, keys_int64s=places, values_strings=list(names))
    return named, scores


def label_fact(labels: Labels, x: Fact) -> Fact:
    """What is known of a classifier's first output: a label for each row."""
    return tensor(DataType.STRING if labels[1] else DataType.INT64, (row_count(x),))


def logistic(x: Array) -> Array:
    """1 / (1 + exp(-x)), without overflow."""
    value: Array = 1 / (1 + np.exp(-np.abs(x)))
    return np.where(x < 0, 1 - value, value).astype(x.dtype)


def probit(x: Array) -> Array:
    """The normal distribution's quantiles, by an inverse of erf that is right to three digits."""
    twice = 2 * x - 1
    log: Array = np.log((1 - twice) * (1 + twice))
    half = 2 / (3.14159 * 0.147) + 0.5 * log
    root: Array = np.sqrt(np.sqrt(half * half - log / 0.147) - half)
    result: Array = np.sqrt(2) * np.copysign(root, twice)
    return result.astype(x.dtype)


def _softmax(x: Array) -> Array:
    exponentials: Array = np.exp(x - x.max(-1, keepdims=True))
    total: Array = exponentials.sum(-1, keepdims=True)
    return exponentials / total


def _softmax_without_zeros(x: Array) -> Array:
    """Softmax over the scores that are not 0; those stay 0."""
    present = np.abs(x) > 1e-7
    exponentials = np.where(present, np.exp(x - x.max(-1, keepdims=True)), 0)
    total: Array = exponentials.sum(-1, keepdims=True)
    return exponentials / np.where(total == 0, 1, total)


_TRANSFORMS: dict[str, Callable[[Array], Array]] = {
    "NONE": lambda x: x,
    "LOGISTIC": logistic,
    "SOFTMAX": _softmax,
    "SOFTMAX_ZERO": _softmax_without_zeros,
    "PROBIT": probit,
}


def transform(scores: Array, name: str, *, alone: bool = False) -> Array:
    """Scores, a row for each example, after a `post_transform`, of one column only if `alone`.

    >>> transform(np.zeros((1, 4)), "SOFTMAX").tolist()
    [[0.25, 0.25, 0.25, 0.25]]
    """
    if name not in _TRANSFORMS:
        raise EvaluationError(f"post_transform '{name}' is none of {', '.join(_TRANSFORMS)}")
    if scores.shape[1] == 1 and name != "PROBIT" and not alone:
        return scores
    return _TRANSFORMS[name](scores)


def two_columns(score: Array, name: str, *, probability: bool) -> Array:
    """Scores of both classes from the second's: 1 minus a probability, else negated.

    >>> two_columns(np.array([0.75]), "NONE", probability=True).tolist()
    [[0.25, 0.75]]
    """
    if name == "LOGISTIC":
        return np.stack([logistic(-score), logistic(score)], 1)
    if name == "PROBIT":
        return np.stack([probit(1 - score), probit(score)], 1)
    return np.stack([1 - score if probability else -score, score], 1)


def one_label(positive: Array, labels: Labels) -> Array:
    """The label of each row where one score decides; 0 or 1 where there are not two labels."""
    names = labels_of(labels)
    if len(names) != 2:
        names = np.array(["0", "1"], object) if labels[1] else np.array([0, 1], np.int64)
    return names[positive.astype(np.int64)]
